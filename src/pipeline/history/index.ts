/**
 * Numbers over time: what charts are drawn from.
 *
 *   batch → samplesOf → SampleSet → encodeSamples → hub's log → HistoryStore.append → range, keys, spans
 *
 * One interface, two drivers: duckdb.ts (embedded, the default) and victoria.ts (VictoriaMetrics, with PromQL). Original
 * times; each sample once, however often the log offers it; what came late or never has a span that says so.
 */
export { decodeSamples, encodeSamples, InvalidSamplesError } from './encoding.ts'
export { InvalidRangeError, ReadOnlyHistoryError, SamplesRefusedError, TooManySeriesError } from './errors.ts'
export { type HistoryConfig, openHistory } from './open.ts'
export { beginNoted, notedPosition } from './position-file.ts'
export { samplesOf } from './samples.ts'
export { unnamed } from './spans.ts'
export type * from './types.ts'
