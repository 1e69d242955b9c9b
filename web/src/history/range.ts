const [second, minute, hour, day] = [1000, 60_000, 3_600_000, 86_400_000]

export interface Preset {
  /** what `range=` of the address and of the API says */
  readonly id: string
  readonly ms: number
  readonly word: string
}

export const presets: readonly Preset[] = [
  { id: '15m', ms: 15 * minute, word: '15 min' },
  { id: '1h', ms: hour, word: '1 h' },
  { id: '6h', ms: 6 * hour, word: '6 h' },
  { id: '24h', ms: day, word: '24 h' },
  { id: '7d', ms: 7 * day, word: '7 d' },
  { id: '30d', ms: 30 * day, word: '30 d' },
]
const usual: Preset = { id: '1h', ms: hour, word: '1 h' }

/** What is looked at: the time up to now, or a fixed piece of the past. `preset` is where leaving a fixed piece leads to. */
export type Range =
  | { readonly kind: 'live'; readonly preset: Preset }
  | { readonly kind: 'fixed'; readonly preset: Preset; readonly from: number; readonly to: number }

/** ms since the Unix epoch */
export interface Bounds {
  readonly from: number
  readonly to: number
}

export const narrowestMs = 5 * minute
export const widestMs = 30 * day

/** Out of the address. A link that says nonsense shows the usual range and says so. */
export function parseRange(query: string): { range: Range; fault: string | null } {
  const asked = new URLSearchParams(query)
  const name = asked.get('range')
  const preset = presets.find(({ id }) => id === name) ?? usual
  const live: Range = { kind: 'live', preset }
  const [from, to] = [asked.get('from'), asked.get('to')]
  if (from === null && to === null) {
    const isOdd = name !== null && preset.id !== name
    return { range: live, fault: isOdd ? `This page knows no range "${name}".` : null }
  }
  const fault = faultOf(parseMoment(from), parseMoment(to))
  if (fault !== null) return { range: live, fault: `The range of this link cannot be shown: ${fault}.` }
  return { range: { kind: 'fixed', preset, from: parseMoment(from), to: parseMoment(to) }, fault: null }
}

/** Why these two moments are no range, for people; null where they are. */
export function faultOf(from: number, to: number): string | null {
  if (Number.isNaN(from)) return 'its start is no date'
  if (Number.isNaN(to)) return 'its end is no date'
  if (to <= from) return 'its end is not after its start'
  if (to - from < narrowestMs) return 'it is shorter than 5 minutes'
  if (to - from > widestMs) return 'it is longer than 30 days'
  return null
}

/** For the address: what a range says there; null takes a word away. */
export function rangeQuery(range: Range): Readonly<Record<'range' | 'from' | 'to', string | null>> {
  const name = range.preset.id === usual.id ? null : range.preset.id
  if (range.kind === 'live') return { range: name, from: null, to: null }
  return { range: name, from: formatIso(range.from), to: formatIso(range.to) }
}

/** To the second, by UTC: a link means the same everywhere. */
export const formatIso = (at: number): string => new Date(at).toISOString().replace(/\.\d+Z$/, 'Z')

const parseMoment = (text: string | null): number => {
  if (text === null) return Number.NaN
  const at = /^\d{12,14}$/.test(text) ? Number(text) : Date.parse(text)
  return Math.abs(at) <= 8.64e15 ? at : Number.NaN
}

/** A fixed piece within what can be shown: not too narrow, not too wide, not of the future, in whole seconds. */
export function clampBounds({ from, to }: Bounds, now: number): Bounds {
  const span = Math.round(Math.min(widestMs, Math.max(narrowestMs, to - from)) / second) * second
  const end = Math.floor(Math.min(now, (from + to) / 2 + span / 2) / second) * second
  return { from: end - span, to: end }
}

/** Half or twice as wide, about a moment that keeps its place. */
export function zoom({ from, to }: Bounds, factor: number, about: number, now: number): Bounds {
  const span = Math.min(widestMs, Math.max(narrowestMs, (to - from) * factor))
  const start = about - ((about - from) / (to - from)) * span
  return clampBounds({ from: start, to: start + span }, now)
}

/** To the side by half of what is seen. */
export function pan({ from, to }: Bounds, direction: -1 | 1, now: number): Bounds {
  const by = (direction * (to - from)) / 2
  return clampBounds({ from: from + by, to: to + by }, now)
}

const steps = [
  ...[5, 10, 15, 20, 30, 45].map((count) => count * second),
  ...[1, 2, 3, 5, 10, 15, 20, 30].map((count) => count * minute),
  ...[1, 2, 3, 4, 6, 12, 24].map((count) => count * hour),
]

/**
 * How much time one point stands for, ms: so few points that each has its pixel, and so much time that each round falls
 * into one even where rounds come a little late. A point without a sample is then a hole, and not a late round.
 */
export function stepFor(spanMs: number, intervalMs: number, points: number): number {
  const least = Math.max(spanMs / points, intervalMs * 1.5)
  return steps.find((step) => step >= least) ?? day
}

/** How long to wait between two looks at a live range: one round, and less often where a point takes many rounds. */
export const refreshMs = (stepMs: number, intervalMs: number): number =>
  Math.max(intervalMs, Math.min(stepMs / 10, 2 * minute))
