import type { ClusterState } from '#model'
import type { Metrics } from '#runtime'

/**
 * Gauges about each member, which alerting rules go by; each carries `cluster`. For listeners that only the operator reaches: names
 * of clusters are not for everybody.
 * @param known those of this process; undefined while it has none to speak for
 */
export function memberMetrics(metrics: Metrics, known: () => readonly ClusterState[] | undefined): void {
  const clusters = (): readonly ClusterState[] => {
    try {
      return known() ?? []
    } catch {
      return [] // state is not open yet, or not any more: the other metrics are answered all the same
    }
  }
  metrics.gauge(
    'clusterpulse_member_health',
    'Health of each cluster: 1 at the one it has.',
    ['cluster', 'health'],
    (gauge) => {
      gauge.reset()
      for (const { name, status } of clusters()) gauge.set({ cluster: name, health: status.health }, 1)
    },
  )
  metrics.gauge(
    'clusterpulse_member_last_read_timestamp_seconds',
    'When the nodes of each cluster were last read, Unix time; absent where they never were.',
    ['cluster'],
    (gauge) => {
      gauge.reset()
      for (const { name, status } of clusters())
        if (status.lastSyncAt !== null) gauge.set({ cluster: name }, status.lastSyncAt / 1000)
    },
  )
  metrics.gauge(
    'clusterpulse_member_agent_connected',
    'Whether the agent of each cluster that has one is connected.',
    ['cluster'],
    (gauge) => {
      gauge.reset()
      for (const { name, agent } of clusters()) if (agent) gauge.set({ cluster: name }, agent.connected ? 1 : 0)
    },
  )
}

/** Counts writes about members that a rule refused. */
export function refusalsCounted(metrics: Metrics): (rule: string) => void {
  const count = metrics.counter(
    'clusterpulse_admission_refusals_total',
    'Writes about members that a rule refused, by the rule.',
    ['rule'],
  )
  return (rule) => count.inc({ rule })
}
