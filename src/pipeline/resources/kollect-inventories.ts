import { fields, instant, items, text } from '#collect'
import type { KubeObject } from '#kube'
import { type JsonValue, type NamedElsewhere, seconds } from '#model'
import { defineResource } from './define.ts'
import { CONFLICT, conditionOf, kollectList, standingHealth, standingOf, WAITING, whyOf } from './kollect-lists.ts'
import { createdAt, numberOf, once } from './read.ts'

/** How one sink of an inventory stands. */
interface Export {
  readonly name: string
  readonly isFailing: boolean
  readonly status: string
  readonly message: string
  /** ms since the Unix epoch; null: never */
  readonly lastAt: number | null
  readonly since: number | null
  /** of the last export; null: not known */
  readonly rows: number | null
  /** of the oldest change that it lacks, where that is late */
  readonly behindSince: number | null
}

const exportsOf = once(({ status }: KubeObject): readonly Export[] =>
  items(fields(status).sinkExports).map((one): Export => {
    const said = conditionOf(one, 'Synced')
    const isPending = !said || WAITING.includes(said.reason)
    return {
      name: text(one.name),
      isFailing: !isPending && !said.isTrue,
      status: said?.reason ?? 'Pending',
      message: said && !said.isTrue ? said.message : '',
      lastAt: instant(one.lastExportTime),
      since: said?.since ?? null,
      rows: typeof one.itemCount === 'number' ? one.itemCount : null,
      behindSince: instant(one.behindSince),
    }
  }),
)

const least = (times: readonly (number | null)[]): number | null => {
  const known = times.filter((time) => time !== null)
  return known.length === 0 ? null : Math.min(...known)
}

/** What its sinks lack while it is ready, a sentence; null: nothing. */
function lagOf({ status }: KubeObject): string | null {
  const synced = conditionOf(status, 'Synced')
  return synced && !synced.isTrue ? synced.message || synced.reason || null : null
}

/** It speaks of what the targets of its namespace choose. */
const ofTargets: NamedElsewhere = { source: 'kollecttargets', column: 'about', withCluster: false }

/** Who writes where: an inventory with its sinks, each with its last export and what keeps it from the next. */
export const kollectInventories = defineResource({
  name: 'kollectinventories',
  singular: 'kollectinventory',
  shortNames: ['kinv'],
  title: 'Inventory exports',
  reads: [
    kollectList('KollectInventory', 'kollectinventories'),
    kollectList('KollectClusterInventory', 'kollectclusterinventories'),
  ],
  access: 'namespaced',
  everyMs: seconds(60),
  maxRows: 50_000,
  sort: 'status',
  columns: {
    status: { label: 'Status', kind: 'string', health: standingHealth, read: standingOf },
    kind: { label: 'Kind', kind: 'string', isExtra: true, read: (_, kind) => kind },
    rows: {
      label: 'Rows',
      kind: 'number',
      absence: 'unknown',
      isRestricted: true,
      tells: ofTargets,
      read: numberOf('status', 'itemCount'),
    },
    complete: {
      label: 'Complete',
      kind: 'string',
      absence: 'unknown',
      health: { Complete: 'healthy' },
      read: ({ status }) => {
        const said = conditionOf(status, 'Complete')
        return said ? (said.isTrue ? 'Complete' : 'Incomplete') : null
      },
    },
    sinks: { label: 'Sinks', kind: 'number', isWide: true, read: (object) => exportsOf(object).length },
    failing: {
      label: 'Failing',
      kind: 'number',
      read: (object) => exportsOf(object).filter((one) => one.isFailing).length,
    },
    failingSince: {
      label: 'Failing since',
      kind: 'number',
      unit: 'time',
      read: (object) => least(exportsOf(object).flatMap(({ isFailing, since }) => (isFailing ? [since] : []))),
    },
    // A time and not a length: its age is told as of whenever somebody looks.
    behindSince: {
      label: 'Behind since',
      kind: 'number',
      unit: 'time',
      read: (object) => least(exportsOf(object).map(({ behindSince }) => behindSince)),
    },
    lastExportAt: {
      label: 'Last write',
      kind: 'number',
      unit: 'time',
      read: (object) => {
        const times = exportsOf(object).flatMap(({ lastAt }) => lastAt ?? [])
        return times.length === 0 ? null : Math.max(...times)
      },
    },
    conflict: {
      label: 'Other writer',
      kind: 'string',
      isWide: true,
      tells: ofTargets,
      read: (object) => exportsOf(object).find(({ status }) => status === CONFLICT)?.message ?? null,
    },
    why: { label: 'Why', kind: 'string', tells: ofTargets, read: (object) => whyOf(object) ?? lagOf(object) },
    exports: {
      label: 'Exports',
      kind: 'any',
      isExtra: true,
      isRestricted: true,
      tells: ofTargets,
      read: (object) =>
        exportsOf(object).map(
          ({ name, status, lastAt, since, rows, behindSince, message }): JsonValue => ({
            sink: name,
            status,
            sinceAt: since,
            lastWriteAt: lastAt,
            ...(rows !== null && { rows }),
            ...(behindSince !== null && { behindSinceAt: behindSince }),
            ...(message !== '' && { message }),
          }),
        ),
    },
    createdAt: { ...createdAt, isExtra: true },
  },
  counts: {
    byStatus: { function: 'count', field: undefined, groupBy: 'status' },
    rows: { function: 'sum', field: 'rows', groupBy: undefined },
    failing: { function: 'sum', field: 'failing', groupBy: undefined },
  },
})
