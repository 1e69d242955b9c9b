import type { Fault } from '../../kind.ts'
import { faultIf, shown, textOf } from './json.ts'

const UNIT_MS: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  μs: 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
}
const PART = /(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)/g
const WHOLE = /^[-+]?((\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h))+$/

/**
 * Milliseconds of a Go duration, such as `30s`, `1h30m` or `0`, as manifests write them.
 * @returns undefined where the text is none
 */
export function goDurationMs(text: string): number | undefined {
  if (/^[-+]?0$/.test(text)) return 0
  if (text.length > 64 || !WHOLE.test(text)) return undefined
  const ms = [...text.matchAll(PART)].reduce(
    (sum, [, amount, unit]) => sum + Number(amount) * (UNIT_MS[unit ?? ''] ?? 0),
    0,
  )
  return text.startsWith('-') ? -ms : ms
}

const DAY_MS = 24 * 3_600_000

/** Why this is not an interval of exports. */
export function intervalProblem(text: string): string | undefined {
  const ms = goDurationMs(text)
  if (ms === undefined) return `is ${shown(text)}: write a duration such as 30s, 5m or 1h30m`
  return ms >= 0 && ms <= DAY_MS ? undefined : `is ${shown(text)}: it must be from 0s to 24h`
}

/** An interval in an object; nothing is said of one that is not there. */
export function intervalFaults(path: string, value: unknown): Fault[] {
  const text = textOf(value)
  return text === undefined ? [] : faultIf(path, intervalProblem(text))
}
