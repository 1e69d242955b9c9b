import type { HistoryStore } from '#history'
import { documentTime, metricPrefix, seconds } from '#model'
import type { NodeSeries } from '#state'
import { askStore, hidesOfNodes } from './history.ts'
import { RefusedError } from './problem.ts'
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

type SampleDocument = Readonly<Record<string, string | number | null>>

/** The same from the series beside the state, where no other history is kept: as they were written. */
export async function keptSamples(
  series: NodeSeries,
  cluster: VisibleCluster,
  node: string,
): Promise<readonly SampleDocument[]> {
  const hides = hidesOfNodes(cluster, [node])
  const samples = await series.newest(cluster.state.name, node, maxSamples).catch((cause: unknown) => {
    throw new RefusedError('history_unavailable', 'the series of nodes cannot be read from the store', {
      cause,
      retryAfterSeconds: 5,
    })
  })
  return samples.map(({ at, values }) => ({
    timestamp: documentTime(at),
    ...Object.fromEntries(fields.map(([field, metric]) => [field, hides(metric) ? null : values[field]])),
  }))
}

/** The last samples of one node, newest first, one per collection interval; what was not measured, or is not for the caller, is null. */
export async function nodeSamples(
  store: HistoryStore,
  cluster: VisibleCluster,
  node: string,
  now: number,
): Promise<readonly SampleDocument[]> {
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
