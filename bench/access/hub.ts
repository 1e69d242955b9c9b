import { MemoryPolicies, openAccess, type PolicyDocument } from '#access'
import { apiServer } from '#api'
import { openEvents } from '#events'
import { type IdentityConfig, openIdentity } from '#identity'
import { type Part, systemClock } from '#model'
import { Metrics, silentLogger } from '#runtime'
import { EmbeddedStateStore, type StateRecord } from '#state'
import { batchOf, clusterName, connectionOf } from '../baseline/fleet.ts'

/** The server with a fleet behind it and policies before it; people are told by header, `admin` sees everything. */
export async function startHub({
  directory,
  clusters,
  nodes,
  policies,
}: {
  readonly directory: string
  readonly clusters: number
  readonly nodes: number
  readonly policies: readonly PolicyDocument[]
}) {
  const state = await EmbeddedStateStore.open({ directory })
  const events = openEvents({ kind: 'in-process' })
  const source = new MemoryPolicies()
  await source.resync(policies.map((document) => ({ document, status: {} })))
  const metrics = new Metrics()
  const identity: IdentityConfig = { proxy: { trustedPeers: ['127.0.0.1'] } }
  let position = 0
  const apply = async (...records: StateRecord[]): Promise<void> => {
    position += records.length
    await events.publish(await state.apply(records, position))
  }
  const sequences = new Array<number>(clusters).fill(0)
  const changed = (index: number): StateRecord => {
    const sequence = (sequences[index] ?? 0) + 1
    sequences[index] = sequence
    const now = Date.now()
    const batch = batchOf(index, nodes, sequence, now)
    const parts = sequence === 1 ? [...batch.parts, ...namespaceParts()] : batch.parts
    return { kind: 'batch', batch: { ...batch, parts }, receivedAt: now }
  }
  for (let index = 0; index < clusters; index++) {
    await apply(
      { kind: 'connection', cluster: clusterName(index), connection: connectionOf(index), at: Date.now() },
      changed(index),
    )
  }
  const server = apiServer({
    state,
    events,
    identity: await openIdentity({ config: identity, clock: systemClock, logger: silentLogger, metrics }),
    access: openAccess({
      source,
      semantics: 'strict',
      administrators: { users: ['admin'], groups: [] },
      clock: systemClock,
    }),
    config: { host: '127.0.0.1', port: 0, identity, rateLimit: { perSecond: 1e6, burst: 1e6 } },
    logger: silentLogger,
    clock: systemClock,
    version: 'bench',
    metrics,
  })
  return { server, policies: source, change: (index: number) => apply(changed(index)) }
}

const namespaces = Array.from({ length: 20 }, (_, i) => (i < 5 ? `kube-${i}` : `app-${i}`))
const counts = { total: 5, running: 5, pending: 0, failed: 0, succeeded: 0, unknown: 0 }

function namespaceParts(): readonly Part[] {
  const part = (type: string, items: readonly object[]) =>
    ({ type, collector: 'bench', durationMs: 20, outcome: 'complete', items }) as unknown as Part
  const byNamespace = Object.fromEntries(namespaces.map((name) => [name, counts]))
  return [
    part(
      'namespace',
      namespaces.map((name) => ({ name, phase: 'Active', createdAt: 0, labels: {} })),
    ),
    part('podSummary', [
      { name: 'pods', counts: { ...counts, total: 100, running: 100 }, unscheduled: 0, byNamespace },
    ]),
  ]
}

/** An Allow for one group: clusters by name, and in them what `resources` leaves. */
export const allowed = (
  name: string,
  group: string,
  matchNames: readonly string[],
  resources: NonNullable<PolicyDocument['cluster_rules']>[number]['resources'] = null,
): PolicyDocument => ({
  policy_name: name,
  namespace: 'bench',
  priority: 100,
  effect: 'Allow',
  enabled: true,
  users: [],
  groups: [group],
  service_accounts: [],
  default_cluster_access: 'none',
  cluster_rules: [{ cluster_selector: { matchNames }, permissions: { view: true, viewMetrics: true }, resources }],
  not_before: null,
  not_after: null,
  compiled_at: '2026-01-01T00:00:00Z',
  hash: '0123456789abcdef',
  custom_resource_types: null,
})
