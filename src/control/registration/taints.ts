import type { Said } from './availability.ts'
import type { Taint } from './objects.ts'
import { TAINTS } from './words.ts'

const ours: ReadonlySet<string> = new Set(Object.values(TAINTS))

/**
 * The taints a member has by what is known of it: unreachable where nobody knows, unavailable where it is not available.
 * Those of people stay, in their order.
 * @param mayAdd false: nothing new is tainted for now
 * @param timeAdded for a taint that is stored without a time, where no admission writes it; RFC 3339
 * @returns undefined where nothing differs
 */
export function taintsOf(
  stored: readonly Taint[],
  available: Said['status'] | undefined,
  { mayAdd, timeAdded }: { readonly mayAdd: boolean; readonly timeAdded: string },
): readonly Taint[] | undefined {
  const wanted = available === 'True' ? undefined : available === 'False' ? TAINTS.unavailable : TAINTS.unreachable
  const isOurs = ({ key, effect }: Taint) => ours.has(key) && effect === 'NoSelect'
  const kept = stored.filter((taint) => !isOurs(taint) || taint.key === wanted)
  const has = kept.some((taint) => isOurs(taint) && taint.key === wanted)
  const isTimed = kept.every(({ timeAdded }) => timeAdded)
  const adds = wanted !== undefined && !has && mayAdd
  if (kept.length === stored.length && !adds && isTimed) return undefined
  // A new one is sent without its time, which admission sets and refuses to be told.
  return [
    ...kept.map((taint) => (taint.timeAdded ? taint : { ...taint, timeAdded })),
    ...(adds ? [{ key: wanted, effect: 'NoSelect' as const }] : []),
  ]
}
