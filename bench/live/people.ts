import type { Change } from './mark.ts'
import type { Person } from './viewers.ts'

/** People with equal rights, who therefore share what the hub makes for them. */
export interface Sort {
  readonly name: string
  /** of the group they are in; undefined: administrators */
  readonly policy: { readonly name: string; readonly spec: object } | undefined
  readonly sees: (change: Change) => boolean
}

export interface Audience {
  readonly sorts: readonly Sort[]
  /** `sortOf[i]` tells of `all[i]` */
  readonly all: readonly Person[]
  readonly sortOf: readonly Sort[]
}

const TEAMS = 10

/**
 * A fifth are administrators, two fifths see the clusters of their team, two fifths one namespace of every cluster. Each looks at the pods
 * changed last, as many as a stream shows at most, so that what comes late is still shown; one in ten at the clusters too.
 */
export function audience(viewers: number, turn: readonly Change[]): Audience {
  const clusters = [...new Set(turn.map(({ cluster }) => cluster))].sort()
  const namespaces = [...new Set(turn.map(({ namespace }) => namespace))].sort()
  const teams = Array.from({ length: Math.min(TEAMS, clusters.length) }, (_, team) =>
    teamOf(team, new Set(clusters.filter((_, at) => at % TEAMS === team))),
  )
  const ofNamespaces = namespaces.slice(0, TEAMS).map(namespaceOf)
  const sorts = [ADMINISTRATORS, ...teams, ...ofNamespaces]
  const sortOf = Array.from({ length: viewers }, (_, at) => {
    const among = at % 5 === 0 ? [ADMINISTRATORS] : at % 5 < 3 ? teams : ofNamespaces
    return among[Math.floor(at / 5) % among.length] ?? ADMINISTRATORS
  })
  const rows = encodeURIComponent('pods?sort=message&order=desc&limit=1000')
  const all = sortOf.map(({ policy }, at) => ({
    user: `viewer-${at}`,
    groups: policy?.name ?? 'administrators',
    query: `clusters=${at % 10 === 0}&rows=${rows}`,
    isPacked: Math.floor(at / 5) % 10 === 9,
    isProbe: at === 0,
  }))
  return { sorts, all, sortOf }
}

const ADMINISTRATORS: Sort = { name: 'administrators', policy: undefined, sees: () => true }

function teamOf(team: number, clusters: ReadonlySet<string>): Sort {
  const rule = { selector: { matchNames: [...clusters] }, permissions: { view: true, viewMetrics: true } }
  return { name: 'teams', policy: policyOf(`team-${team}`, rule), sees: ({ cluster }) => clusters.has(cluster) }
}

function namespaceOf(namespace: string): Sort {
  const rule = {
    selector: { matchNames: ['*'] },
    permissions: { view: true },
    resources: [{ type: 'namespaces', visibility: 'filtered', filters: { names: { allowed: [namespace] } } }],
  }
  return {
    name: 'of a namespace',
    policy: policyOf(`namespace-${namespace}`, rule),
    sees: (change) => change.namespace === namespace,
  }
}

const policyOf = (name: string, rule: object) => ({
  name,
  spec: {
    identity: { subjects: { groups: [name] }, priority: 100 },
    access: { effect: 'Allow', enabled: true },
    scope: { clusters: { default: 'none', rules: [rule] } },
  },
})
