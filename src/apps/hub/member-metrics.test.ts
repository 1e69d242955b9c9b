import { expect, it } from 'vitest'
import type { ClusterState } from '#model'
import { Metrics } from '#runtime'
import { memberMetrics } from './member-metrics.ts'

const state = (name: string, health: string, lastSyncAt: number | null, agent: object | null = null) =>
  ({ name, status: { health, lastSyncAt }, agent }) as unknown as ClusterState

it('speaks of each member by name, of what is known only, and forgets who left', async () => {
  const metrics = new Metrics({}, { processMetrics: false })
  let known: readonly ClusterState[] | undefined
  memberMetrics(metrics, () => known)
  const samples = async () => (await metrics.registry.metrics()).split('\n').filter((line) => /^[a-z]/.test(line))
  expect(await samples()).toEqual([])
  known = [state('east', 'healthy', 1_700_000_000_500), state('west', 'unknown', null, { connected: false })]
  expect(await samples()).toEqual([
    'clusterpulse_member_health{cluster="east",health="healthy"} 1',
    'clusterpulse_member_health{cluster="west",health="unknown"} 1',
    'clusterpulse_member_last_read_timestamp_seconds{cluster="east"} 1700000000.5',
    'clusterpulse_member_agent_connected{cluster="west"} 0',
  ])
  known = [state('east', 'unhealthy', 1_700_000_000_500)]
  expect(await samples()).toEqual([
    'clusterpulse_member_health{cluster="east",health="unhealthy"} 1',
    'clusterpulse_member_last_read_timestamp_seconds{cluster="east"} 1700000000.5',
  ])
})
