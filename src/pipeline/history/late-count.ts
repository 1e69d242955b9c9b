import type { HistoryRecord } from './types.ts'

/** How often something was kept of a cluster that is about the past: sent late, made up, or declared lost. */
export class LateCount {
  readonly #counts = new Map<string, number>()

  add(records: readonly HistoryRecord[]): void {
    for (const record of records) {
      const isLate = record.kind === 'lost' || record.samples.repaired || record.samples.simulated === true
      const cluster = record.kind === 'lost' ? record.cluster : record.samples.cluster
      if (isLate) this.#counts.set(cluster, this.of(cluster) + 1)
    }
  }

  of(cluster: string): number {
    return this.#counts.get(cluster) ?? 0
  }
}
