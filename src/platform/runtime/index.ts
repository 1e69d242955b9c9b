/**
 * How our processes run: configuration read once and refused as a whole, a structured logger, own metrics, retry with
 * full jitter, parts that start in order and stop in reverse, and durable logs (in segments of
 * files, the one driver so far).
 *
 * For every layer above `contract`. Nothing here works at import time, and nothing keeps state outside an object.
 */
export { type BreakerOptions, type BreakerState, CircuitBreaker, type Verdict } from './breaker.ts'
export { ConfigError, type ConfigReader, configReader, parseDurationMs, type Setting } from './config.ts'
export { claimFormat } from './format-file.ts'
export { keepHeapTight, keepProcessSmall } from './heap.ts'
export { boundConnections, CONNECTION_TIMES, type ConnectionBounds } from './http-connections.ts'
export { Listeners } from './listeners.ts'
export type { Log, LogRecord, LogStats } from './log.ts'
export { createLogger, type Logger, type LogLevel, parseLogLevel, silentLogger } from './logger.ts'
export { countBuild, Metrics, type MetricsMoment, metricsText, type Series } from './metrics.ts'
export { hostName, isLoopback, networkOf } from './network.ts'
export { type Part, type RunningParts, startParts } from './parts.ts'
export { keepPrivate } from './private-files.ts'
export { replaceFile } from './replace-file.ts'
export { chunksOf, discardBody, readBounded } from './request-body.ts'
export { type BackoffOptions, backoffMs, retryForever } from './retry.ts'
export { lockDirectory } from './segment-log/directory-lock.ts'
export {
  DirectoryLockedError,
  isDiskFull,
  LogFullError,
  LogWriteError,
  RecordTooLargeError,
} from './segment-log/errors.ts'
export { type LogDamage, openLog, type SegmentLogOptions as LogOptions } from './segment-log/segment-log.ts'
export { writeShared } from './shared-body.ts'
export { type Piece, SlowWriter, type SlowWriterOptions } from './slow-writer.ts'
export { sortedSteps } from './sorted-steps.ts'
export { atOnce, inTurns, type Steps } from './steps.ts'
export { Turns } from './turns.ts'
