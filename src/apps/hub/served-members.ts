import type { ServedMembers } from '#api'
import { AgentCredentials } from '#connections'
import { accept, detach, JoinTokens, RequestIndex, refuse, revokeMember } from '#joining'
import type { KubeClient } from '#kube'
import { type DecideMember, parseClusterName, systemClock } from '#model'
import { MemberIndex } from '#registration'
import { silentLogger } from '#runtime'
import { type HubLogger, part } from './run.ts'

/**
 * Who is a member, who asks to be one, and how that is decided, for the page and the API; none of it waits for the hub's objects.
 * @param namespace of the hub's own objects
 */
export function servedMembers(hub: () => KubeClient, namespace: string, logger: HubLogger) {
  const watching = <T extends AsyncDisposable & { start(): void }>(name: string, Index: new (shared: Shared) => T) =>
    part<T>(name, () => {
      const index = new Index({ hub: hub(), logger: logger.child({ part: name }), clock: systemClock })
      index.start()
      return Promise.resolve(index)
    })
  const index = watching('member-index', MemberIndex)
  const requests = watching('member-requests', RequestIndex)
  const get = (): ServedMembers => ({
    members: index.get(),
    requests: requests.get(),
    decide: memberDecisions(hub, namespace),
  })
  return { parts: [index, requests], get }
}

type Shared = ConstructorParameters<typeof MemberIndex>[0]

/** Carries decisions out as the commands of the same names do. */
function memberDecisions(hub: () => KubeClient, namespace: string): DecideMember {
  return async (decision, { cluster: name, request }) => {
    const what = { hub: hub(), cluster: parseClusterName(name), ...(request !== undefined && { request }) }
    switch (decision) {
      case 'accept':
        return accept(what)
      case 'deny':
        return refuse(what)
      case 'detach':
        return detach(what)
      case 'revoke': {
        await using credentials = new AgentCredentials({ hub: what.hub, namespace, logger: silentLogger })
        return await revokeMember({
          ...what,
          tokens: new JoinTokens({ hub: what.hub, namespace, clock: systemClock }),
          credentials,
        })
      }
    }
  }
}
