/** One round of an agent: when it began and ended, ms, and whether the cluster could be read. */
export interface Seen {
  readonly at: number
  readonly until: number
  readonly isRead: boolean
}

/**
 * Consecutive numbers of one origin that were all received, and the first and the last round among them; undefined where there is
 * none, since declared losses and what MetricSources saw between rounds have numbers, too.
 */
export interface Run {
  readonly first: number
  readonly last: number
  readonly head?: Seen
  readonly tail?: Seen
  /** the interval that its last rounds kept, one that was in force, ms; 0: not known yet */
  readonly paceMs: number
}

/** Two rounds of one origin with nothing between them that an agent could still deliver. */
export interface Neighbours {
  readonly before: Seen
  readonly after: Seen
  /** the longer interval of both sides, ms; 0: not known */
  readonly paceMs: number
}

/**
 * The runs with one more, joined where they touch. Each pair of neighbours meets once, when the last number between them comes,
 * in whatever order they come.
 * @param meet says what interval is kept after them
 */
export function withRun(runs: readonly Run[], added: Run, meet: (pair: Neighbours) => number): readonly Run[] {
  const from = runs.findIndex(({ last }) => last >= added.first - 1)
  if (from < 0) return [...runs, added]
  const touched = runs.slice(from).filter(({ first }) => first <= added.last + 1)
  const joined = [...touched, added].sort((a, b) => a.first - b.first || a.last - b.last)
  const whole = joined.reduce((one, other) => join(one, other, meet))
  return [...runs.slice(0, from), whole, ...runs.slice(from + touched.length)]
}

function join(one: Run, other: Run, meet: (pair: Neighbours) => number): Run {
  const [head, tail] = [one.head ?? other.head, other.last < one.last ? one.tail : (other.tail ?? one.tail)]
  const ends = { first: one.first, last: Math.max(one.last, other.last), ...(head && { head }), ...(tail && { tail }) }
  const kept = other.paceMs || one.paceMs
  // Where they overlap, as in the books of two folders that were mixed, each has its neighbours already.
  if (other.first <= one.last || !one.tail || !other.head) return { ...ends, paceMs: kept }
  const pace = meet({ before: one.tail, after: other.head, paceMs: Math.max(one.paceMs, other.paceMs) })
  return { ...ends, paceMs: other.paceMs || pace }
}
