import type { HistorySpan, HistoryStore, PromQl, RangeAnswer, RangeQuery } from '#history'
import { type ClusterState, type MetricScope, metricPrefix } from '#model'
import { type Kept, listOf, seriesOf } from './told-series.ts'

/** A history in which everything of some clusters has one value for ever, another for each thing and metric. */
export class ConstantHistory implements HistoryStore {
  readonly driver = 'duckdb'
  clusters: readonly ClusterState[] = []
  /** of which aggregations there are series */
  keeps: Kept = () => true
  /** answers with the question, which must say whose values are asked for, and lists what is there */
  readonly promql: PromQl = {
    ask: async (...asked) => {
      const [path, { 'match[]': selectors }] = asked
      const text = JSON.stringify(asked)
      const data = /^(query|query_range)$/.test(path)
        ? { resultType: 'vector', result: [text] }
        : [text, ...listOf(path, [selectors ?? []].flat(), seriesOf(this.clusters, this.keeps))]
      return { status: 200, body: { status: 'success', data } }
    },
  }

  availability() {
    return { state: 'available' } as const
  }

  async append(): Promise<void> {}

  position(): number {
    return 0
  }

  #keys(cluster: string, scope: MetricScope): readonly string[] {
    const parts: ClusterState['parts'] = this.clusters.find(({ name }) => name === cluster)?.parts ?? {}
    if (scope === 'cluster') return ['']
    if (scope === 'custom') return [...(this.clusters.find(({ name }) => name === cluster)?.tables.keys() ?? [])]
    if (scope === 'node') return [...(parts.node?.items.keys() ?? [])]
    if (scope === 'operator') return [...new Set([...(parts.operator?.items.values() ?? [])].map(({ csv }) => csv))]
    return scope === 'clusterOperator' ? [...(parts.clusterOperator?.items.keys() ?? [])] : []
  }

  /** Totals over time tell how many rows there are. */
  #sum(cluster: string): string {
    const parts: ClusterState['parts'] = this.clusters.find(({ name }) => name === cluster)?.parts ?? {}
    return JSON.stringify(
      Object.entries(parts)
        .map(([type, { items }]) => [type, items.size])
        .sort(),
    )
  }

  /** Aggregations over time tell how many rows there are. */
  #sumOf(cluster: string, scope: MetricScope, key: string): string {
    if (scope === 'cluster') return this.#sum(cluster)
    if (scope !== 'custom') return ''
    return String(this.clusters.find(({ name }) => name === cluster)?.tables.get(key)?.rows.size)
  }

  async range({ cluster, scope, metrics, keys, from, to, stepMs }: RangeQuery): Promise<RangeAnswer> {
    const start = Math.ceil(from / stepMs) * stepMs
    const points = Math.floor(to / stepMs) - start / stepMs + 1
    const known = this.#keys(cluster, scope).filter((key) => scope === 'cluster' || (keys?.includes(key) ?? true))
    const state = this.clusters.find(({ name }) => name === cluster)
    const isKept = (metric: string, key: string) =>
      scope !== 'custom' || (state && this.keeps(state, key, metric.slice(metricPrefix.custom.length)))
    const series = metrics.flatMap((metric) =>
      known
        .filter((key) => isKept(metric, key))
        .map((key) => ({
          metric,
          key,
          values: Array.from({ length: points }, () =>
            numberOf(cluster, metric, key, this.#sumOf(cluster, scope, key)),
          ),
        })),
    )
    return { start, stepMs, points, series }
  }

  async spans(): Promise<readonly HistorySpan[]> {
    return []
  }

  async keys(): Promise<readonly string[]> {
    return []
  }

  async [Symbol.asyncDispose](): Promise<void> {}
}

function numberOf(...texts: readonly string[]): number {
  let value = 7
  for (const char of texts.join(' ')) value = (value * 31 + (char.codePointAt(0) ?? 0)) % 1_000_003
  return value
}
