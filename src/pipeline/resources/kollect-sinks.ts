import { fields, text } from '#collect'
import type { KubeObject } from '#kube'
import { seconds } from '#model'
import { defineResource } from './define.ts'
import { conditionOf, kollectList, standingHealth } from './kollect-lists.ts'
import { createdAt, textOf } from './read.ts'

/** Where inventories of a cluster go: databases, files and events. Where that is stays in the cluster. */
export const kollectSinks = defineResource({
  name: 'kollectsinks',
  singular: 'kollectsink',
  shortNames: ['ksink'],
  title: 'Inventory sinks',
  reads: [
    kollectList('KollectDatabaseSink', 'kollectdatabasesinks'),
    kollectList('KollectSnapshotSink', 'kollectsnapshotsinks'),
    kollectList('KollectEventSink', 'kollecteventsinks'),
  ],
  access: 'namespaced',
  everyMs: seconds(60),
  maxRows: 50_000,
  sort: 'status',
  columns: {
    status: {
      label: 'Status',
      kind: 'string',
      health: { ...standingHealth, Connected: 'healthy', 'Not reachable': 'unhealthy', 'Not tested': 'unknown' },
      read: statusOf,
    },
    type: { label: 'Type', kind: 'string', read: textOf('spec', 'type') },
    kind: { label: 'Kind', kind: 'string', isExtra: true, read: (_, kind) => kind },
    // Only where it says another name than that of its agent.
    writesAs: { label: 'Writes as', kind: 'string', read: ({ spec }) => text(fields(spec).cluster) || null },
    why: {
      label: 'Why',
      kind: 'string',
      read: ({ status }) => {
        const [degraded, verified] = [conditionOf(status, 'Degraded'), conditionOf(status, 'ConnectionVerified')]
        if (degraded?.isTrue) return degraded.message || degraded.reason || null
        return verified && !verified.isTrue ? verified.message || verified.reason || null : null
      },
    },
    isInsecure: {
      label: 'TLS not verified',
      kind: 'boolean',
      isExtra: true,
      read: ({ status }) => conditionOf(status, 'TLSInsecure')?.isTrue === true,
    },
    since: {
      label: 'Since',
      kind: 'number',
      unit: 'time',
      absence: 'unknown',
      read: ({ status }) =>
        (conditionOf(status, 'Degraded') ?? conditionOf(status, 'ConnectionVerified'))?.since ?? null,
    },
    createdAt: { ...createdAt, isExtra: true },
  },
  counts: {
    byStatus: { function: 'count', field: undefined, groupBy: 'status' },
    byType: { function: 'count', field: undefined, groupBy: 'type' },
  },
})

function statusOf({ status }: KubeObject): string {
  if (conditionOf(status, 'Degraded')?.isTrue) return 'Degraded'
  const verified = conditionOf(status, 'ConnectionVerified')
  if (!verified) return 'Not tested'
  return verified.isTrue ? 'Connected' : 'Not reachable'
}
