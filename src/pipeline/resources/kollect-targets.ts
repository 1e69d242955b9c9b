import { fields, text } from '#collect'
import type { KubeObject } from '#kube'
import { type NamedElsewhere, seconds } from '#model'
import { defineResource } from './define.ts'
import { conditionOf, kollectList, standingHealth, standingOf, whyOf } from './kollect-lists.ts'
import { createdAt, listed, numberOf, textOf } from './read.ts'

/** A target speaks of the namespaces that it chooses, and that what it says may name. */
const ofChosen: NamedElsewhere = { source: null, column: 'about', withCluster: false }

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
    rows: {
      label: 'Rows',
      kind: 'number',
      absence: 'unknown',
      isRestricted: true,
      tells: ofChosen,
      read: numberOf('status', 'collectedCount'),
    },
    failures: {
      label: 'Failures',
      kind: 'number',
      absence: 'unknown',
      isRestricted: true,
      tells: ofChosen,
      read: numberOf('status', 'extractionFailures'),
    },
    why: { label: 'Why', kind: 'string', tells: ofChosen, read: whyOf },
    lastFailure: {
      label: 'Last failure',
      kind: 'string',
      isWide: true,
      tells: ofChosen,
      read: textOf('status', 'lastExtractionError'),
    },
    namespaces: {
      label: 'Namespaces',
      kind: 'string',
      isExtra: true,
      tells: 'namespaces',
      read: ({ status }) => listed(fields(status).effectiveNamespaces),
    },
    about: { label: 'About namespaces', kind: 'string', isExtra: true, tells: 'namespaces', read: namespacesOf },
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

/** As many names as a status holds: of one with so many, there may be more. */
const MAX_NAMES = 1000

/** The namespaces it may speak of; null: any. */
function namespacesOf({ metadata, spec, status }: KubeObject): string | null {
  const { includedNamespaces, namespaceSelector, profileRef } = fields(spec)
  const named = texts(includedNamespaces)
  const chosen = [...texts(fields(status).matchedNamespaces), ...texts(fields(status).effectiveNamespaces)]
  const own = metadata.namespace ?? ''
  // Until its status says what a choice comes to, it may come to anything but where names are given, or nothing is.
  const isOpen = named.length === 0 ? namespaceSelector !== undefined || own === '' : !named.every(isName)
  if ((chosen.length === 0 && isOpen) || chosen.length >= MAX_NAMES) return null
  const all = [...chosen, ...named.filter(isName), own, text(fields(profileRef).namespace)]
  return [...new Set(all)].filter(Boolean).sort().join(', ')
}

const texts = (list: unknown): readonly string[] => (Array.isArray(list) ? list.map(text).filter(Boolean) : [])
const isName = (name: string): boolean => /^[a-z0-9-]+$/.test(name)
