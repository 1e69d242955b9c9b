import { AgentCredentials } from '#connections'
import { accept, bootstrapKubeconfig, detach, JoinTokens, refuse, revokeMember } from '#joining'
import { createKubeClient, type KubeClient } from '#kube'
import { type ClusterName, systemClock } from '#model'
import { silentLogger } from '#runtime'
import type { ConnectAnswer } from './connect.ts'
import { trustedRoots } from './joins.ts'
import { HUB_NAMESPACE } from './object-names.ts'
import { clusterNameOf, type HubObjectsOptions, hubAccess } from './objects-of-hub.ts'
import { unanswered } from './unanswered.ts'

/** What commands about one member are called with. */
export interface MembershipOptions extends HubObjectsOptions {
  readonly cluster: string
  readonly namespace?: string
  /** of several that wait, the one that is meant */
  readonly request?: string
}

export const acceptMember = (options: MembershipOptions): Promise<ConnectAnswer> =>
  decided(options, (what) =>
    accept({ ...what, ...wantedOf(options), trusted: () => trustedRoots(what.hub, namespaceOf(options)) }),
  )

export const denyMember = (options: MembershipOptions): Promise<ConnectAnswer> =>
  decided(options, (what) => refuse({ ...what, ...wantedOf(options) }))

const namespaceOf = ({ namespace, environment }: MembershipOptions) =>
  namespace ?? environment.NAMESPACE ?? HUB_NAMESPACE

const wantedOf = ({ request }: MembershipOptions) => (request !== undefined ? { request } : {})

export const revoke = (options: MembershipOptions): Promise<ConnectAnswer> =>
  decided(options, async ({ hub, cluster }) => {
    const namespace = namespaceOf(options)
    await using credentials = new AgentCredentials({ hub, namespace, logger: silentLogger })
    const tokens = new JoinTokens({ hub, namespace, clock: systemClock })
    return revokeMember({ hub, cluster, tokens, credentials })
  })

export const detachMember = (options: MembershipOptions): Promise<ConnectAnswer> => decided(options, detach)

/** For OCM's own registration agent. */
export async function bootstrap(
  options: HubObjectsOptions & { readonly server?: string; readonly lifeMs: number },
): Promise<ConnectAnswer> {
  const access = await hubAccess(options)
  await using hub = createKubeClient(access)
  const server = options.server ?? access.server
  const text = await bootstrapKubeconfig({
    ...{ hub, server, lifeMs: options.lifeMs },
    ...(access.ca !== undefined && { ca: access.ca }),
  })
  const notes = [
    `with it OCM's registration agent asks ${server} to join; keep it secret: it reads all ManagedClusters; each request waits for \`clusterpulse accept NAME\``,
  ]
  return { text: `${text}\n`, notes }
}

async function decided(
  options: MembershipOptions,
  decide: (what: { hub: KubeClient; cluster: ClusterName }) => Promise<readonly string[]>,
): Promise<ConnectAnswer> {
  const cluster = clusterNameOf(options.cluster)
  await using hub = createKubeClient(await hubAccess(options))
  const done = await decide({ hub, cluster }).catch((error: unknown) => {
    throw unanswered(error)
  })
  return { text: done.map((line) => `${line}\n`).join(''), notes: [] }
}
