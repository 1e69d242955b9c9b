import type { HistorySpan, HistoryStore, PromQl, RangeAnswer, RangeQuery } from '#history'
import type { ClusterState, MetricScope } from '#model'

/** A history in which everything of some clusters has one value for ever, another for each thing and metric. */
export class ToldHistory implements HistoryStore {
  readonly driver = 'duckdb'
  clusters: readonly ClusterState[] = []
  /** answers with the question: it must say whose values are asked for */
  readonly promql: PromQl = {
    ask: async (...asked) => {
      const text = JSON.stringify(asked)
      const data = /^(query|query_range)$/.test(asked[0]) ? { resultType: 'vector', result: [text] } : [text]
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
    if (scope === 'custom') return [...(this.clusters.find(({ name }) => name === cluster)?.custom.keys() ?? [])]
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
    return String(this.clusters.find(({ name }) => name === cluster)?.custom.get(key)?.rows.size)
  }

  async range({ cluster, scope, metrics, keys, from, to, stepMs }: RangeQuery): Promise<RangeAnswer> {
    const start = Math.ceil(from / stepMs) * stepMs
    const points = Math.floor(to / stepMs) - start / stepMs + 1
    const known = this.#keys(cluster, scope).filter((key) => scope === 'cluster' || (keys?.includes(key) ?? true))
    const series = metrics.flatMap((metric) =>
      known.map((key) => ({
        metric,
        key,
        values: Array.from({ length: points }, () => numberOf(cluster, metric, key, this.#sumOf(cluster, scope, key))),
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
