import type { HistoryRecord, HistoryStore } from '#history'
import type { Ledger } from './ledger.ts'
import { HUB_ORIGIN } from './origins.ts'

/**
 * What history lacks after it came back as an older copy, as losses: of each cluster the stretches that were received, that
 * are newer than what history has, and older than what the log can give it again. What an agent delivered late into an older
 * stretch is not found.
 */
export async function lostWith(
  history: HistoryStore,
  ledger: Ledger,
  until: number,
): Promise<readonly HistoryRecord[]> {
  const records: HistoryRecord[] = []
  if (!history.newestRound) return records
  for (const cluster of ledger.clusters()) {
    const { covered } = ledger.known(cluster, 0)
    const stretches = [...covered].flatMap(([, ranges]) => ranges).filter(([from]) => from < until)
    if (stretches.length === 0) continue
    const had = (await history.newestRound(cluster, until)) ?? -1
    for (const [first, last] of stretches) {
      const [from, to] = [Math.max(first, had + 1), Math.min(last, until)]
      if (from >= to) continue
      const loss = {
        origin: HUB_ORIGIN,
        sequence: 0,
        lost: [],
        from,
        to,
        cause: 'restored',
        count: 1,
        keptEveryMs: 0,
      } as const
      records.push({ kind: 'lost', cluster, loss })
    }
  }
  return records
}
