import { existsSync, readFileSync } from 'node:fs'
import { FleetError } from '#model'

/** Every fault of a configuration, together; refuses the start. */
export class ConfigError extends FleetError {
  override readonly name = 'ConfigError'
  readonly code = 'invalid_configuration'
  readonly retryable = false
  readonly faults: readonly string[]

  constructor(faults: readonly string[]) {
    super(
      `the configuration has ${faults.length === 1 ? 'a fault' : `${faults.length} faults`}:\n  - ${faults.join('\n  - ')}`,
    )
    this.faults = faults
  }
}

/** One setting as the reference page shows it. */
export interface Setting {
  readonly name: string
  readonly type: string
  readonly default: string
  readonly range: string
  readonly meaning: string
}

interface Described {
  readonly meaning: string
}

/** Reads settings from the environment, and remembers each with its default for the reference. */
export interface ConfigReader {
  text(name: string, options: Described & { default: string; oneOf?: readonly string[] }): string
  optionalText(name: string, options: Described): string | undefined
  /** `NAME` or, for a value kept in a file, `NAME_FILE`. Never shown. */
  secret(name: string, options: Described): string | undefined
  flag(name: string, options: Described & { default: boolean }): boolean
  /** `raise`: a value below `min` becomes `min` with a warning, as the documented variables always did. */
  integer(name: string, options: Described & { default: number; min?: number; max?: number; raise?: boolean }): number
  /** Milliseconds from `30`, `30s`, `5m`, `500ms`, `1h`; a bare number is in seconds. */
  duration(name: string, options: Described & { default: string; min?: string; max?: string; raise?: boolean }): number
  /** Comma list, trimmed, empty items dropped. */
  list(name: string, options: Described & { default?: readonly string[] }): readonly string[]
  /** Adds a fault found outside, such as a contradiction between two settings. */
  fault(sentence: string): void
  /** @throws ConfigError naming every fault found so far */
  done(): void
  settings(): readonly Setting[]
  /** what was read in another way than written, for the log */
  warnings(): readonly string[]
}

const DURATION = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)?$/
const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** @returns undefined where the text is no duration. A bare number is in seconds. */
export function parseDurationMs(text: string): number | undefined {
  const match = DURATION.exec(text.trim())
  if (!match) return undefined
  return Number(match[1]) * (UNIT_MS[match[2] ?? 's'] ?? Number.NaN)
}

const TRUE = new Set(['1', 't', 'true', 'yes', 'y', 'on'])
const FALSE = new Set(['0', 'f', 'false', 'no', 'n', 'off'])

/**
 * Reads settings from an environment. Empty text counts as not set. Faults are collected, `done()` throws them together;
 * until then a faulty setting reads as its default.
 */
export function configReader(env: Readonly<Record<string, string | undefined>>): ConfigReader {
  const faults: string[] = []
  const known: Setting[] = []
  const warnings: string[] = []

  const describe = (name: string, type: string, fallback: string, range: string, meaning: string) => {
    known.push({ name, type, default: fallback, range, meaning })
  }
  const raw = (name: string): string | undefined => {
    const text = env[name]?.trim()
    return text === '' ? undefined : text
  }
  const bounds = (min?: number | string, max?: number | string) =>
    min !== undefined && max !== undefined
      ? `${min} … ${max}`
      : min !== undefined
        ? `≥ ${min}`
        : max !== undefined
          ? `≤ ${max}`
          : ''

  return {
    text(name, { default: fallback, oneOf, meaning }) {
      describe(name, oneOf ? 'word' : 'text', fallback, oneOf?.join(', ') ?? '', meaning)
      const text = raw(name) ?? fallback
      if (oneOf && !oneOf.includes(text)) {
        faults.push(`${name} is ${JSON.stringify(text)}; it must be one of ${oneOf.join(', ')}`)
        return fallback
      }
      return text
    },
    optionalText(name, { meaning }) {
      describe(name, 'text', '', '', meaning)
      return raw(name)
    },
    secret(name, { meaning }) {
      describe(name, 'secret', '', `or ${name}_FILE`, meaning)
      const file = raw(`${name}_FILE`)
      if (file === undefined) return raw(name)
      if (!existsSync(file)) {
        faults.push(`${name}_FILE names ${file}, which does not exist`)
        return undefined
      }
      return readFileSync(file, 'utf8').trim()
    },
    flag(name, { default: fallback, meaning }) {
      describe(name, 'flag', String(fallback), 'true, false', meaning)
      const text = raw(name)?.toLowerCase()
      if (text === undefined) return fallback
      if (TRUE.has(text)) return true
      if (FALSE.has(text)) return false
      faults.push(`${name} is ${JSON.stringify(text)}; it must be true or false`)
      return fallback
    },
    integer(name, { default: fallback, min, max, raise, meaning }) {
      describe(name, 'whole number', String(fallback), bounds(min, max), meaning)
      const text = raw(name)
      if (text === undefined) return fallback
      const value = Number(text)
      if (!/^[+-]?\d+$/.test(text) || !Number.isSafeInteger(value)) {
        faults.push(`${name} is ${JSON.stringify(text)}; it must be a whole number`)
        return fallback
      }
      if (raise && min !== undefined && value < min) {
        warnings.push(`${name} is ${value}; raised to its minimum of ${min}`)
        return min
      }
      if ((min !== undefined && value < min) || (max !== undefined && value > max)) {
        faults.push(`${name} is ${value}; it must be ${bounds(min, max)}`)
        return fallback
      }
      return value
    },
    duration(name, { default: fallback, min, max, raise, meaning }) {
      describe(name, 'duration', fallback, bounds(min, max), meaning)
      const fallbackMs = parseDurationMs(fallback) ?? 0
      const text = raw(name)
      if (text === undefined) return fallbackMs
      const value = parseDurationMs(text)
      if (value === undefined) {
        faults.push(`${name} is ${JSON.stringify(text)}; it must be a duration such as 30s, 5m or 1h`)
        return fallbackMs
      }
      if (raise && min !== undefined && value < (parseDurationMs(min) ?? 0)) {
        warnings.push(`${name} is ${text}; raised to its minimum of ${min}`)
        return parseDurationMs(min) ?? 0
      }
      if (
        (min !== undefined && value < (parseDurationMs(min) ?? 0)) ||
        (max !== undefined && value > (parseDurationMs(max) ?? 0))
      ) {
        faults.push(`${name} is ${text}; it must be ${bounds(min, max)}`)
        return fallbackMs
      }
      return value
    },
    list(name, { default: fallback = [], meaning }) {
      describe(name, 'comma list', fallback.join(','), '', meaning)
      const text = raw(name)
      if (text === undefined) return fallback
      return text
        .split(',')
        .map((item) => item.trim())
        .filter((item) => item !== '')
    },
    fault: (sentence) => void faults.push(sentence),
    done() {
      if (faults.length > 0) throw new ConfigError(faults)
    },
    settings: () => known,
    warnings: () => warnings,
  }
}
