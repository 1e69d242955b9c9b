import { type Logger as PinoLogger, pino, stdTimeFunctions } from 'pino'

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
      formatters: { level: (label) => ({ level: label }) },
    },
    pino.destination({ fd: 2, sync: true }),
  )
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
