import { MemoryPolicies, openAccess } from '#access'
import type { ApiOptions } from '#api'
import { type IdentityConfig, openIdentity } from '#identity'
import { systemClock } from '#model'
import { Metrics, silentLogger } from '#runtime'

const identity: IdentityConfig = { localAdministrator: {} }

/** What a server on which nobody signs in is made of: whoever reaches it sees everything. */
export async function localAdministrator(): Promise<
  Pick<ApiOptions, 'access' | 'identity'> & { readonly config: { readonly identity: IdentityConfig } }
> {
  const source = new MemoryPolicies()
  await source.resync([])
  const metrics = new Metrics({}, { processMetrics: false })
  return {
    access: openAccess({ source, semantics: 'strict', administrators: { users: [], groups: [] }, clock: systemClock }),
    identity: await openIdentity({ config: identity, clock: systemClock, logger: silentLogger, metrics }),
    config: { identity },
  }
}
