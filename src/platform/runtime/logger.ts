import { type Logger as PinoLogger, pino, stdTimeFunctions } from 'pino'
import { FleetError } from '#model'

/** Levels of pino, most talkative first. */
export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'silent'

/** Structured log: facts first, then a sentence. `child` adds facts to every line. */
export interface Logger {
  trace(facts: object, sentence: string): void
  debug(facts: object, sentence: string): void
  info(facts: object, sentence: string): void
  warn(facts: object, sentence: string): void
  error(facts: object, sentence: string): void
  child(facts: object): Logger
}

/** Paths that are never written, wherever they appear in the facts of a line. */
const SECRET_PATHS = [
  'token',
  'password',
  'authorization',
  '*.token',
  '*.password',
  '*.authorization',
  '*.*.token',
  '*.*.password',
]

/** JSON lines on standard error, one per event; secrets under the usual names are replaced. */
export function createLogger(level: LogLevel, facts: object = {}): PinoLogger {
  return pino(
    {
      level,
      base: { ...facts },
      timestamp: stdTimeFunctions.isoTime,
      redact: { paths: SECRET_PATHS, censor: '[secret]' },
      serializers: { error: (value: unknown) => plainError(value) },
      formatters: { level: (label) => ({ level: label }) },
    },
    pino.destination({ fd: 2, sync: true }),
  )
}

const MAX_CAUSES = 5

/**
 * An error as facts of our own: what of it is not enumerable is seen as well, and an error of the platform (a DOMException,
 * as timeouts are) is not copied with getters that fail on a copy. What is foreseen needs no stack.
 */
function plainError(value: unknown, depth = 0): unknown {
  if (!(value instanceof Error) || depth > MAX_CAUSES) return value instanceof Error ? value.name : value
  const { name, message, stack, cause } = value
  return {
    ...value,
    name,
    message,
    ...(!(value instanceof FleetError) && { stack }),
    ...(cause !== undefined && { cause: plainError(cause, depth + 1) }),
  }
}

/** Says nothing: for tests and for commands whose output is their result. */
export const silentLogger: Logger = {
  trace: () => undefined,
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => silentLogger,
}

/** Reads `LOG_LEVEL` as documented: any letter case, `warning` is `warn`, anything else is info. */
export function parseLogLevel(text: string | undefined): LogLevel {
  const word = text?.trim().toLowerCase()
  if (word === 'warning') return 'warn'
  return word === 'trace' || word === 'debug' || word === 'warn' || word === 'error' || word === 'silent'
    ? word
    : 'info'
}
