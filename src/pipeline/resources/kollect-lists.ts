import { fields, instant, items, listOf, text } from '#collect'
import type { KubeObject } from '#kube'
import type { ListRead } from './define.ts'

/** The list of a kind of inventory; clusters without it are as good as others, and one that gets it is noticed with the next read. */
export function kollectList(kind: string, plural: string): ListRead {
  const [group, version, namespaced] = ['kollect.dev', 'v1alpha1', !plural.startsWith('kollectcluster')]
  const resource = { group, version, plural, kind, namespaced }
  // `serves` believes for ten minutes that it is missing; people wait for what they just installed.
  const servedAs: ListRead['servedAs'] = async (kube, signal) =>
    (await kube.find(group, version, kind, signal)) && resource
  return { ...listOf<KubeObject>(resource), servedAs }
}

/** What the agent says of a sink in which rows stand that are gone. */
export const DELETIONS_WAIT = 'DeletionsWait'
/** Reasons of a sink that fails in nothing: it got nothing yet, all but deletions, or what changed late. */
export const WAITING: readonly string[] = ['Pending', DELETIONS_WAIT, 'Behind']
/** What the agent says of a sink that holds rows of another cluster under the same name. */
export const CONFLICT = 'WriterConflict'

/** What a condition of a status says; undefined: there is none of the type. */
export interface Said {
  readonly isTrue: boolean
  readonly reason: string
  readonly message: string
  /** ms since the Unix epoch; null: not known */
  readonly since: number | null
}

export function conditionOf(status: unknown, type: string): Said | undefined {
  const found = items(fields(status).conditions).find((one) => one.type === type)
  if (!found) return undefined
  const { reason, message, lastTransitionTime } = found
  return {
    isTrue: found.status === 'True',
    reason: text(reason),
    message: text(message),
    since: instant(lastTransitionTime),
  }
}

/** One word for how an object of inventory is, of its conditions. */
export function standingOf({ spec, status }: KubeObject): string {
  if (fields(spec).suspend === true) return 'Suspended'
  const [ready, degraded] = [conditionOf(status, 'Ready'), conditionOf(status, 'Degraded')]
  if (degraded?.isTrue) return 'Degraded'
  if (!ready) return 'Waiting'
  return ready.isTrue ? 'Ready' : 'Not ready'
}

/** What the words of `standingOf` say of the object. */
export const standingHealth = {
  Ready: 'healthy',
  Degraded: 'unhealthy',
  Suspended: 'unknown',
  Waiting: 'unknown',
} as const

/** Why it is not ready, a sentence; null: it is. */
export function whyOf({ status }: KubeObject): string | null {
  const [ready, degraded] = [conditionOf(status, 'Ready'), conditionOf(status, 'Degraded')]
  if (degraded?.isTrue) return degraded.message || degraded.reason || null
  return ready && !ready.isTrue ? ready.message || ready.reason || null : null
}
