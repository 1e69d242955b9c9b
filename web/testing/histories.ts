import type { HistoryView, SpanView } from '../../src/contract/http/index.ts'
import { metricsCatalogue } from '../../src/contract/model/index.ts'
import type { World } from './worlds.ts'

const GiB = 2 ** 30
const [minute, hour, day] = [60_000, 3_600_000, 86_400_000]

/** What a cluster's past is like; ms since the Unix epoch. */
export interface Past {
  /** the first sample */
  readonly began: number
  /** the last one; null: they still come */
  readonly ended: number | null
  readonly spans: readonly SpanView[]
  /** what the hub answers with, whatever step is asked for */
  readonly stepMs: number | null
  /** when nothing came */
  readonly holes: readonly (readonly [from: number, to: number])[]
}

/** Samples for 26 days, none missing. */
export const aPast = (now: number, wish: Partial<Past> = {}): Past => ({
  began: now - 26 * day,
  ended: null,
  stepMs: null,
  spans: [],
  holes: [],
  ...wish,
})

/** An agent that was cut off for twelve minutes: the hub read meanwhile, most was sent later, a little was lost. */
export const aTroubledPast = (now: number): Past =>
  aPast(now, {
    spans: [
      { kind: 'repaired', from: now - 52 * minute, to: now - 40 * minute, cause: '', count: 24 },
      { kind: 'pulled', from: now - 36 * minute, to: now - 30 * minute, cause: '', count: 12 },
      { kind: 'lost', from: now - 24 * minute, to: now - 21 * minute, cause: 'thinned', count: 6 },
      { kind: 'lost', from: now - 9 * hour, to: now - 7 * hour, cause: 'dropped', count: 240 },
      { kind: 'repaired', from: now - 3 * day, to: now - 2 * day, cause: '', count: 2880 },
    ],
    holes: [
      [now - 24 * minute, now - 21 * minute],
      [now - 12 * minute, now - 8 * minute],
      [now - 9 * hour, now - 7 * hour],
      [now - 9 * day, now - 8 * day],
    ],
  })

/** The same for the same moment, whenever it is asked for: waves of a day and of some minutes. */
function wave(seed: string, at: number): number {
  let hash = 7
  for (const letter of seed) hash = (hash * 31 + letter.charCodeAt(0)) % 9973
  const noise = Math.sin(at / 41_000 + hash) * 0.5 + Math.sin(at / 17_300 + hash * 3) * 0.3
  return (
    Math.sin(((at + hash * minute) / day) * 2 * Math.PI) * 0.6 +
    noise * 0.25 +
    Math.sin(at / (47 * minute) + hash) * 0.2
  )
}

/** What a metric of a cluster of so many nodes is at a moment; node metrics are those of one node. */
function metricAt(metric: string, scope: 'cluster' | 'node', nodes: number, at: number): number | null {
  const size = scope === 'node' ? 1 : nodes
  const used = 0.42 + 0.2 * wave(`${metric.slice(0, 3)}${scope}`, at)
  switch (metric) {
    case 'cpu_used':
      return 15.5 * size * used
    case 'cpu_requested':
      return 15.5 * size * 0.61
    case 'cpu_allocatable':
      return 15.5 * size
    case 'cpu_capacity':
      return 16 * size
    case 'memory_used_bytes':
      return 62 * GiB * size * (used + 0.1)
    case 'memory_requested_bytes':
      return 62 * GiB * size * 0.7
    case 'memory_allocatable_bytes':
      return 62 * GiB * size
    case 'memory_capacity_bytes':
      return 64 * GiB * size
    case 'cpu_usage_percent':
      return 100 * used
    case 'memory_usage_percent':
      return 100 * (used + 0.1)
    case 'pods_total':
      return 42 * size
    case 'pods_running':
      return Math.round(40 * size + 2 * wave('pods', at))
    case 'pods_pending':
      return Math.max(0, Math.round(size * wave('pending', at)))
    case 'pods_failed':
      return wave('failed', at) > 0.7 ? 2 : 0
    case 'pods_allocatable':
      return 110 * size
    case 'nodes_total':
      return nodes
    case 'nodes_ready':
      return wave('ready', at) > 0.75 ? nodes - 1 : nodes
    case 'ready':
      return wave('ready', at) > 0.75 ? 0 : 1
    case 'namespaces_total':
      return 6
    case 'deployments_total':
      return 12
    case 'deployments_ready':
      return wave('ready', at) > 0.6 ? 11 : 12
    default:
      return null
  }
}

const durationMs = (text: string): number => {
  const [, count = '', unit = ''] = /^(\d+)([smhd]?)$/.exec(text) ?? []
  return Number(count) * ({ s: 1000, m: minute, h: hour, d: day }[unit] ?? 1000)
}

interface Asked {
  readonly world: World
  readonly scope: 'cluster' | 'node'
  readonly past: Past
  readonly now: number
}

/** Answers a history route as the contract says. */
export function answerHistory(query: URLSearchParams, { world, scope, past, now }: Asked): HistoryView {
  const stepMs = past.stepMs ?? durationMs(query.get('step') ?? '60s')
  const end = query.has('end') ? Number(query.get('end')) * 1000 : now
  const start = query.has('start') ? Number(query.get('start')) * 1000 : end - durationMs(query.get('range') ?? '1h')
  const first = Math.floor(start / stepMs) * stepMs
  const last = Math.floor(Math.min(end, now) / stepMs) * stepMs
  const times = Array.from({ length: Math.max(0, (last - first) / stepMs + 1) }, (_, index) => first + index * stepMs)
  const isThere = (at: number) =>
    at >= past.began &&
    at <= Math.min(past.ended ?? now, now) &&
    !past.holes.some(([from, to]) => at >= from && at < to)
  const metrics = (query.get('metric') ?? '').split(',')
  const nodes = world.rows.node.length
  return {
    metrics: metrics.map((name) => {
      const known = metricsCatalogue.find((metric) => metric.scope === scope && metric.name === name)
      return { name, unit: known?.unit ?? 'count', title: known?.title ?? name }
    }),
    start: first / 1000,
    end: last / 1000,
    step: stepMs / 1000,
    series: metrics.map((metric) => ({
      metric,
      labels: { cluster: world.view.name },
      points: times.map((at) => [at / 1000, isThere(at) ? metricAt(metric, scope, nodes, at) : null]),
    })),
    spans: past.spans.filter(({ from, to }) => from < last + stepMs && to >= first),
  }
}
