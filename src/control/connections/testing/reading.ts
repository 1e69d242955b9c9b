import type { Collector, Read } from '#collect'

/** The collector, which makes this one read instead of its own, and finds nothing by it. */
export function reading(collector: Collector, one: NonNullable<Read['one']>): Collector {
  const read: Read = { verbs: [], one }
  const take = (_: Read, event: Parameters<ReturnType<Collector['open']>['take']>[1]) => {
    if (event.type === 'failed') throw event.error
    return true
  }
  return { ...collector, reads: [read], open: () => ({ take, parts: () => ({}) }) }
}
