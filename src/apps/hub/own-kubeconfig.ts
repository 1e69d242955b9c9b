import { realpath } from 'node:fs/promises'
import { kubeconfigPaths } from '#kube'
import { FleetError } from '#model'
import type { Env } from './config.ts'
import { kubeconfigOf } from './control-plane.ts'
import type { KubeconfigMembers } from './members.ts'

/** The hub was told to show itself as a cluster. */
class OwnHubError extends FleetError {
  override readonly name = 'OwnHubError'
  readonly code = 'own_hub'
  readonly retryable = false
}

/** Kubeconfigs that `up` reads. */
export interface FleetKubeconfigs {
  readonly paths: readonly string[]
  /** somebody named them; else one lay at the usual place */
  readonly isNamed: boolean
  /** the hub's own one, where it was named by KUBECONFIG beside or instead of them, and is left out */
  readonly own: readonly string[]
}

/**
 * As kubectl chooses them, without the hub's own: a shell whose KUBECONFIG names that was used with kubectl, and is as one without.
 * @throws OwnHubError where `--kubeconfig` names the hub's own
 */
export async function fleetKubeconfigs(
  named: string | undefined,
  environment: Env,
  dataDir: string,
): Promise<FleetKubeconfigs> {
  const file = kubeconfigOf(dataDir)
  const places = new Set([file, await placeOf(file)])
  const all = kubeconfigPaths(named, environment)
  const isOwn = await Promise.all(all.map(async (path) => places.has(path) || places.has(await placeOf(path))))
  const own = all.filter((_, at) => isOwn[at])
  const others = all.filter((_, at) => !isOwn[at])
  if (named !== undefined && own.length > 0) throw new OwnHubError(refusal(named))
  const isNamed = named !== undefined || (Boolean(environment.KUBECONFIG) && others.length > 0)
  return { paths: others.length > 0 || own.length === 0 ? others : kubeconfigPaths(undefined, {}), isNamed, own }
}

const placeOf = (path: string): Promise<string> => realpath(path).catch(() => path)

/**
 * Without contexts that lead to the hub itself, such as copies of its own kubeconfig: told by the CA of its API, which no other has.
 * @param chosen contexts that were named
 * @throws OwnHubError where one of those does
 */
export function withoutHub(
  given: KubeconfigMembers,
  { ca, chosen }: { readonly ca: string; readonly chosen: readonly string[] },
): { readonly given: KubeconfigMembers | undefined; readonly own: readonly string[] } {
  const isHub = (member: KubeconfigMembers['members'][number]) => member.ca?.trim() === ca.trim()
  const own = given.members.filter(isHub).map(({ displayName }) => displayName)
  if (own.length === 0) return { given, own }
  if (chosen.length > 0) throw new OwnHubError(refusal(`the context ${own.join(', ')}`))
  const members = given.members.filter((member) => !isHub(member))
  return {
    given: members.length > 0 || given.leftOut.length > 0 ? { ...given, members } : undefined,
    own: own.map((context) => `the context ${context} of ${given.paths.join(', ')}`),
  }
}

const refusal = (what: string): string =>
  `${what} leads to this hub itself, which is no cluster to show: it is for kubectl; name the kubeconfig of your clusters, or start without --kubeconfig`

/** What was left out, for whoever starts it. */
export const ownHubWords = (own: readonly string[]): string =>
  `Not shown as a cluster: ${own.join(' and ')}, which leads to this hub itself and is for kubectl. Clusters to show: clusterpulse up --kubeconfig FILE`
