import type { HistoryStore } from '#history'
import { documentTime, metricPrefix, seconds } from '#model'
import { askStore, hidesOfNodes } from './history.ts'
import type { VisibleCluster } from './views.ts'

const maxSamples = 100

/** The documented sample, field by field, and the metric it is read from. */
const fields = [
  ['cpu_usage', 'cpu_usage_percent'],
  ['memory_usage', 'memory_usage_percent'],
  ['cpu_requested', 'cpu_requested'],
  ['memory_requested', 'memory_requested_bytes'],
  ['pods_running', 'pods_running'],
  ['pods_pending', 'pods_pending'],
  ['pods_total', 'pods_total'],
] as const

/** The last samples of one node, newest first, one per collection interval; what was not measured, or is not for the caller, is null. */
export async function nodeSamples(
  store: HistoryStore,
  cluster: VisibleCluster,
  node: string,
  now: number,
): Promise<readonly Readonly<Record<string, string | number | null>>[]> {
  const { name, connection } = cluster.state
  const stepMs = Math.max(seconds(1), Math.ceil((connection?.intervalMs ?? seconds(30)) / 1000) * 1000)
  const to = Math.floor(now / stepMs) * stepMs
  const query = {
    cluster: name,
    scope: 'node' as const,
    metrics: fields.map(([, metric]) => metricPrefix.node + metric),
    keys: [node],
    from: to - (maxSamples - 1) * stepMs,
    to: to + stepMs - 1,
    stepMs,
    maxSeries: fields.length,
  }
  const hides = hidesOfNodes(cluster, [node])
  const { start, series } = await askStore(store, (signal) => store.range(query, signal))
  const columns = fields.map(([field, metric]) => {
    const found = series.find((one) => one.metric === metricPrefix.node + metric && one.key === node)
    return [field, found && !hides(metric) ? found.values : []] as const
  })
  const points = Math.max(0, ...columns.map(([, values]) => values.length))
  const samples = Array.from({ length: points }, (_, index) => ({
    timestamp: documentTime(start + index * stepMs),
    ...Object.fromEntries(columns.map(([field, values]) => [field, values[index] ?? null])),
  }))
  const measured = (sample: object): boolean => Object.values(sample).some((value) => typeof value === 'number')
  return samples.filter(measured).reverse().slice(0, maxSamples)
}
