import type { Batch, SampleGroup, SampleSet, SourceId } from '#model'

/** A MetricSource that is watched may change every second: history keeps one sample of it in so long. */
export const ROWS_SAMPLE_EVERY_MS = 10_000
/** Sources of buffers, by who numbered them. */
const MAX_BACKFILLED = 2_000

interface Kept {
  readonly at: number
  /** numbers that came too soon after it, and are still the newest */
  readonly withheld?: SampleGroup
}

export interface Paced {
  /** undefined: nothing is to be kept of this batch */
  readonly samples: SampleSet | undefined
  /** the batch was taken: what was kept, and what waits, is remembered */
  commit(): void
}

/**
 * Thins what MetricSources of one cluster say between two rounds. The first sample is kept at once, what follows within ten
 * seconds waits, and the last of what waited goes with the next batch that comes late enough, whatever its own content, at
 * that batch's time: as of then it was the newest. Rounds themselves are never thinned.
 */
export class SamplePace {
  readonly #live = new Map<SourceId, Kept>()
  readonly #backfilled = new Map<string, number>()

  take(batch: Batch, set: SampleSet | undefined): Paced {
    return batch.backfill ? this.#late(batch, set) : this.#now(batch, set)
  }

  forget(source: SourceId): void {
    this.#live.delete(source)
  }

  #now(batch: Batch, set: SampleSet | undefined): Paced {
    const { cluster, collectedAt: at, source: way, partial } = batch
    const kept = new Map<SourceId, Kept>()
    const groups = (set?.groups ?? []).flatMap((group) => {
      const [source] = group.keys
      if (group.scope !== 'custom' || source === undefined) return [group]
      const last = this.#live.get(source)
      const isSoon = partial && last !== undefined && isNear(last.at, at)
      kept.set(source, isSoon ? { at: last.at, withheld: group } : { at })
      return isSoon ? [] : [group]
    })
    for (const [source, { at: before, withheld }] of this.#live) {
      if (!withheld || kept.has(source) || at < before || isNear(before, at)) continue
      kept.set(source, { at })
      groups.push(withheld)
    }
    const samples = groups.length > 0 ? { cluster, at, source: way, repaired: false, ...set, groups } : undefined
    return {
      samples,
      commit: () => {
        for (const [source, one] of kept) this.#live.set(source, one)
      },
    }
  }

  #late({ origin = '', partial }: Batch, set: SampleSet | undefined): Paced {
    if (!partial || !set) return { samples: set, commit: () => undefined }
    const taken: string[] = []
    const groups = set.groups.filter((group) => {
      const [source] = group.keys
      if (group.scope !== 'custom' || source === undefined) return true
      const key = `${origin}\n${source}`
      const last = this.#backfilled.get(key)
      const isKept = last === undefined || !isNear(last, set.at)
      if (isKept) taken.push(key)
      return isKept
    })
    return {
      samples: groups.length > 0 ? { ...set, groups } : undefined,
      commit: () => {
        if (this.#backfilled.size > MAX_BACKFILLED) this.#backfilled.clear()
        for (const key of taken) this.#backfilled.set(key, set.at)
      },
    }
  }
}

const isNear = (before: number, at: number): boolean => Math.abs(at - before) < ROWS_SAMPLE_EVERY_MS
