import type { Loss, MetricScope, SampleSet, Source } from '#model'
import type { Availability } from '#state'

/** What the hub's log hands to history, in order. */
export type HistoryRecord =
  | { readonly kind: 'samples'; readonly samples: SampleSet }
  | { readonly kind: 'lost'; readonly cluster: string; readonly loss: Loss }

/** A stretch of time of one cluster in which the numbers did not come live by the usual way; ms, both ends included. */
export interface HistorySpan {
  /**
   * `repaired`: sent later out of an agent's buffer. `lost`: declared lost. `pulled`: read by the hub in a push cluster.
   * `simulated`: never measured, made up for a demonstration.
   */
  readonly kind: 'repaired' | 'lost' | 'pulled' | 'simulated'
  readonly from: number
  readonly to: number
  /** of a loss: what an agent or the hub says (`bufferCauses`, `holeCauses`); else '' */
  readonly cause: string
  /** batches */
  readonly count: number
}

/** Which series are wanted, from when to when, in steps; times in ms. */
export interface RangeQuery {
  readonly cluster: string
  readonly scope: MetricScope
  /** full metric names; at least one */
  readonly metrics: readonly string[]
  /** node, operator or source names; undefined: all of the scope. Ignored for scope `cluster`. */
  readonly keys?: readonly string[]
  /** ms, both included */
  readonly from: number
  readonly to: number
  /** one point per step, ms, at whole multiples of the step: the mean of the samples in [t, t+step) */
  readonly stepMs: number
  /** more series than this: TooManySeriesError */
  readonly maxSeries: number
}

/** One metric of one thing over time; null where nothing was measured. */
export interface Series {
  readonly metric: string
  readonly key: string
  /** ms; one entry per step from the first to the last of the query, the same for all series of an answer */
  readonly values: readonly (number | null)[]
}

/** Series of one query over the same steps; times in ms. */
export interface RangeAnswer {
  /** of values[0], ms */
  readonly start: number
  readonly stepMs: number
  readonly points: number
  readonly series: readonly Series[]
}

/**
 * Samples over time. Drivers: duckdb.ts (embedded), victoria.ts; both pass contract.test.ts.
 * Each sample is kept once, however often its record is offered: by position for what follows the hub's log in order.
 */
export interface HistoryStore extends AsyncDisposable {
  readonly driver: 'duckdb' | 'victoria'
  availability(): Availability
  /**
   * Keeps records, in order, each once.
   * @param position of the last record in the hub's log
   * @throws StoreUnavailableError when it may not have been kept; the records are to be offered again. Where `position()`
   *   went back (the store was lost and begun anew) everything from `position() + 1` on is, as far as the log still has it
   * @throws FleetError that is not retryable: the store will never take them; offer them one by one and leave out the bad one
   */
  append(records: readonly HistoryRecord[], position: number, signal?: AbortSignal): Promise<void>
  /**
   * of the last record that is safe in the store (or in its own file beside); -1 before the first. It may be behind what
   * was appended, and it goes back where the store was lost and begun anew
   */
  position(): number
  /** whole steps: samples of the first and the last count also where they lie outside of [from, to]; series without a sample are left out */
  range(query: RangeQuery, signal?: AbortSignal): Promise<RangeAnswer>
  /** the spans that touch [from, to], oldest first, neighbours of one kind and cause merged */
  spans(query: {
    readonly cluster: string
    readonly from: number
    readonly to: number
  }): Promise<readonly HistorySpan[]>
  /** keys known for a scope in a range, sorted: which nodes had samples; at most `limit`. Long ranges may be taken by whole days */
  keys(query: {
    readonly cluster: string
    readonly scope: MetricScope
    readonly from: number
    readonly to: number
    readonly limit: number
  }): Promise<readonly string[]>
  /** when the newest round that is kept of a cluster up to this time was read, ms; undefined: none is. Absent: unknown */
  newestRound?(cluster: string, until: number): Promise<number | undefined>
  /**
   * rises with what this process keeps of a cluster's past: an answer from before may lack it. What is measured now does not
   * count. Absent: unknown
   */
  lateRecords?(cluster: string): number
  /** undefined: this driver has no PromQL */
  readonly promql?: PromQl
}

export type PromQlPath = 'query' | 'query_range' | 'series' | 'labels' | `label/${string}/values`

/** PromQL passed through. Queries and selectors were already narrowed to what the caller may see. */
export interface PromQl {
  /** `path` below /api/v1/; the parameters as documented by Prometheus; the backend's JSON, with its status */
  ask(
    path: PromQlPath,
    parameters: Readonly<Record<string, string | readonly string[]>>,
    signal?: AbortSignal,
  ): Promise<{ readonly status: number; readonly body: unknown }>
}

/** What a batch came by, as history keeps it per batch to tell spans. */
export type BatchMark = {
  readonly cluster: string
  readonly at: number
  readonly source: Source
  readonly repaired: boolean
}
