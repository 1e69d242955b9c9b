import { fields } from '#collect'
import { seconds } from '#model'
import { defineResource } from './define.ts'
import { conditionOf, kollectList, standingHealth, standingOf, whyOf } from './kollect-lists.ts'
import { createdAt, listed, numberOf, textOf } from './read.ts'

/** What inventories collect: targets of namespaces, and of the cluster, which stand in none. */
export const kollectTargets = defineResource({
  name: 'kollecttargets',
  singular: 'kollecttarget',
  shortNames: ['ktgt'],
  title: 'Inventory targets',
  reads: [kollectList('KollectTarget', 'kollecttargets'), kollectList('KollectClusterTarget', 'kollectclustertargets')],
  access: 'namespaced',
  everyMs: seconds(60),
  maxRows: 50_000,
  sort: 'status',
  columns: {
    status: { label: 'Status', kind: 'string', health: standingHealth, read: standingOf },
    kind: { label: 'Kind', kind: 'string', isExtra: true, read: (_, kind) => kind },
    profile: {
      label: 'Profile',
      kind: 'string',
      read: ({ spec }) => {
        const { profileRef } = fields(spec)
        const name = typeof profileRef === 'string' ? profileRef : fields(profileRef).name
        return typeof name === 'string' ? name : null
      },
    },
    rows: { label: 'Rows', kind: 'number', absence: 'unknown', read: numberOf('status', 'collectedCount') },
    failures: { label: 'Failures', kind: 'number', absence: 'unknown', read: numberOf('status', 'extractionFailures') },
    why: { label: 'Why', kind: 'string', read: whyOf },
    lastFailure: { label: 'Last failure', kind: 'string', isWide: true, read: textOf('status', 'lastExtractionError') },
    namespaces: {
      label: 'Namespaces',
      kind: 'string',
      isExtra: true,
      read: ({ status }) => listed(fields(status).effectiveNamespaces),
    },
    since: {
      label: 'Since',
      kind: 'number',
      unit: 'time',
      isWide: true,
      absence: 'unknown',
      read: ({ status }) => conditionOf(status, 'Ready')?.since ?? null,
    },
    createdAt: { ...createdAt, isExtra: true },
  },
  counts: {
    byStatus: { function: 'count', field: undefined, groupBy: 'status' },
    rows: { function: 'sum', field: 'rows', groupBy: undefined },
  },
})
