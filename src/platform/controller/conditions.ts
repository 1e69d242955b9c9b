/** A condition as Kubernetes keeps it in a status (metav1.Condition). */
export interface Condition {
  readonly type: string
  readonly status: 'True' | 'False' | 'Unknown'
  readonly reason: string
  readonly message: string
  readonly lastTransitionTime: string
  readonly observedGeneration?: number
}

/**
 * The conditions with one more said: in its old place, or at the end when it is new. `lastTransitionTime` moves only when
 * the status changes. Returns the very same array when nothing differs, so that a caller can skip a write.
 * @param now ms since the Unix epoch
 */
export function setCondition(
  conditions: readonly Condition[],
  said: Omit<Condition, 'lastTransitionTime'>,
  now: number,
): readonly Condition[] {
  const known = conditions.find(({ type }) => type === said.type)
  const lastTransitionTime =
    known && known.status === said.status ? known.lastTransitionTime : `${new Date(now).toISOString().slice(0, 19)}Z`
  const next: Condition = { ...said, lastTransitionTime }
  if (!known) return [...conditions, next]
  if (sameCondition(known, next)) return conditions
  return conditions.map((condition) => (condition === known ? next : condition))
}

function sameCondition(a: Condition, b: Condition): boolean {
  return (
    a.status === b.status &&
    a.reason === b.reason &&
    a.message === b.message &&
    a.lastTransitionTime === b.lastTransitionTime &&
    a.observedGeneration === b.observedGeneration
  )
}
