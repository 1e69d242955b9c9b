import { fields, instant, text } from '#collect'
import type { KubeObject } from '#kube'
import { type NamedElsewhere, seconds } from '#model'
import { defineResource } from './define.ts'
import {
  CONFLICT,
  conditionOf,
  DELETIONS_WAIT,
  kollectList,
  type Said,
  standingHealth,
  WAITING,
} from './kollect-lists.ts'
import { createdAt, numberOf, textOf } from './read.ts'

/** It speaks of what the targets of its namespace choose, and those of the cluster, whose rows may go to it as well. */
const ofTargets: NamedElsewhere = { source: 'kollecttargets', column: 'about', withCluster: true }

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
    writesAs: {
      label: 'Writes as',
      kind: 'string',
      isWide: true,
      read: ({ spec }) => text(fields(spec).cluster) || null,
    },
    exports: {
      label: 'Exports',
      kind: 'string',
      absence: 'unknown',
      health: {
        'Caught up': 'healthy',
        Failing: 'unhealthy',
        'Other writer': 'unhealthy',
        'Deletions wait': 'unknown',
        'Nothing yet': 'unknown',
        'Not used': 'unknown',
      },
      read: exportsWord,
    },
    rows: {
      label: 'Rows',
      kind: 'number',
      absence: 'unknown',
      isRestricted: true,
      tells: ofTargets,
      read: numberOf('status', 'itemCount'),
    },
    lastExportAt: {
      label: 'Last write',
      kind: 'number',
      unit: 'time',
      read: ({ status }) => instant(fields(status).lastExportTime),
    },
    // A time and not a length: the lag is its age, as of whenever somebody looks.
    behindSince: {
      label: 'Lag',
      kind: 'number',
      unit: 'time',
      read: ({ status }) => instant(fields(status).behindSince),
    },
    failingSince: {
      label: 'Failing since',
      kind: 'number',
      unit: 'time',
      read: ({ status }) => failing(status)?.since ?? null,
    },
    conflict: {
      label: 'Other writer',
      kind: 'string',
      isWide: true,
      tells: ofTargets,
      read: ({ status }) => {
        const found = failing(status)
        return found?.reason === CONFLICT ? found.message : null
      },
    },
    why: {
      label: 'Why',
      kind: 'string',
      tells: ofTargets,
      read: ({ status }) => {
        const [degraded, verified] = [conditionOf(status, 'Degraded'), conditionOf(status, 'ConnectionVerified')]
        if (degraded?.isTrue) return degraded.message || degraded.reason || null
        if (verified && !verified.isTrue) return verified.message || verified.reason || null
        return lagging(status)?.message || null
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
      isWide: true,
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
    byExports: { function: 'count', field: undefined, groupBy: 'exports' },
    byType: { function: 'count', field: undefined, groupBy: 'type' },
  },
})

/** What it lacks, whether it fails or not; undefined: nothing, or all. */
function lagging(status: unknown): Said | undefined {
  const synced = conditionOf(status, 'Synced')
  return synced && !synced.isTrue && synced.reason !== 'Pending' ? synced : undefined
}

/** What keeps it from taking what it is given; undefined: nothing does. */
function failing(status: unknown): Said | undefined {
  const synced = lagging(status)
  return synced && !WAITING.includes(synced.reason) ? synced : undefined
}

/** How it stands with what it is given; null: its agent does not say. */
function exportsWord({ status }: KubeObject): string | null {
  const { inventories, lastExportTime, behindSince } = fields(status)
  if (typeof inventories !== 'number') return null
  if (inventories === 0) return 'Not used'
  const found = failing(status)
  if (found) return found.reason === CONFLICT ? 'Other writer' : 'Failing'
  if (conditionOf(status, 'Synced')?.reason === DELETIONS_WAIT) return 'Deletions wait'
  if (behindSince !== undefined) return 'Behind'
  return lastExportTime === undefined ? 'Nothing yet' : 'Caught up'
}

function statusOf({ status }: KubeObject): string {
  if (conditionOf(status, 'Degraded')?.isTrue) return 'Degraded'
  const verified = conditionOf(status, 'ConnectionVerified')
  if (!verified) return 'Not tested'
  return verified.isTrue ? 'Connected' : 'Not reachable'
}
