import { seconds } from '#model'
import type { Attention } from './attention.ts'

/** Rows of pods that are refreshed in a second for those who look, over all clusters of this process, at most. */
export const MAX_ROWS_PER_SECOND = 4_000

/** How often what a cluster uses is read. */
export interface UsageRates {
  /** @param roundMs time between two rounds of the cluster: what counts where nobody looks. @returns ms */
  of(cluster: string, roundMs: number): number
  onChange(listener: (cluster: string) => void): () => void
}

export interface UsageRatesOptions {
  readonly attention: Attention
  /** where somebody looks, ms */
  readonly refreshMs: number
  /** pods of a cluster, as far as they are known here; undefined: it is not one of ours */
  readonly podsOf: (cluster: string) => number | undefined
}

/**
 * The round, and faster where somebody looks: every `refreshMs`, or, where those clusters have more pods than may be refreshed so
 * fast, as much slower as it takes, all of them alike. With 20,000 pods looked at that is 5 s, with 60,000 it is 15 s, and from 120,000
 * on the round of 30 s: whoever looks at a million pods at once makes nothing faster.
 */
export function usageRates({ attention, refreshMs, podsOf }: UsageRatesOptions): UsageRates {
  const fastMs = () => {
    const pods = attention.clusters().reduce((sum, cluster) => sum + (podsOf(cluster) ?? 0), 0)
    return refreshMs * Math.max(1, Math.ceil(seconds(pods / MAX_ROWS_PER_SECOND) / refreshMs))
  }
  return {
    of: (cluster, roundMs) => (attention.isLookedAt(cluster) ? Math.min(roundMs, fastMs()) : roundMs),
    onChange: (listener) =>
      attention.onChange((changed) => {
        // One cluster more may slow down the others, one less speeds them up.
        for (const cluster of new Set([changed, ...attention.clusters()]))
          if (podsOf(cluster) !== undefined) listener(cluster)
      }),
  }
}
