import { isDeepStrictEqual } from 'node:util'
import { type Access, type AccessView, openAccess } from '#access'
import type { ClusterState, JsonValue, SnapshotType } from '#model'
import { resources } from '#resources'
import { type Eyes, Oracle } from './oracle.ts'
import { CompileDifference, GivenPolicies, stored } from './source.ts'
import { objectsOfEvents, takeable, typeNames } from './sources.ts'
import { type PlainCluster, stateOf, type World } from './world.ts'

/** Where the oracle and the access core part. `kind` says which question, so that a smaller world can be asked the same. */
export interface Difference {
  readonly kind: string
  readonly detail: string
}

class Differs extends Error {
  readonly difference: Difference
  constructor(kind: string, detail: string) {
    super(`${kind}: ${detail}`)
    this.difference = { kind, detail }
  }
}

const types: readonly SnapshotType[] = [
  'cluster',
  'node',
  'podSummary',
  'namespace',
  'deployment',
  'operator',
  'clusterOperator',
]
/** No MetricSource may be called `pods`. */
const customTypes = typeNames.filter((name) => name !== 'pods')
const aggregations = ['total', 'cost', 'count', 'by_phase', 'byStatus', 'other']

/** Each kind that is compiled in, under its own name and where a MetricSource has that. */
const kinds = resources.flatMap(({ typeName, access, rowName, columns }) =>
  access === 'declared'
    ? []
    : [false, true].map((isTaken) => ({
        ...{ name: typeName, rule: access, rowName, columns, isTaken },
        ...(access === 'events' && { about: objectsOfEvents(isTaken ? takeable : []) }),
      })),
)

const short = (value: unknown): string => JSON.stringify(value)?.slice(0, 600) ?? 'undefined'

function same(kind: string, actual: unknown, expected: unknown, where: string, what?: unknown): void {
  if (!isDeepStrictEqual(actual, expected))
    throw new Differs(
      kind,
      `${where} ${what === undefined ? '' : short(what)}: is ${short(actual)}, must be ${short(expected)}`,
    )
}

const sorted = <T>(rows: readonly T[]): T[] => [...rows].sort((left, right) => (nameOf(left) < nameOf(right) ? -1 : 1))
const nameOf = (row: unknown): string => (row as { readonly name: string }).name

const rowsOf = ({ resources: rows }: PlainCluster, { name, rowName }: (typeof kinds)[number]) =>
  rows.filter(({ type }) => type === name).map((row) => ({ ...row, name: rowName(row.name) }))

/** What an access view says of a cluster, as a value that can be compared. */
function comparable(accessView: AccessView, cluster: ClusterState, plain: PlainCluster): unknown {
  return {
    canSee: accessView.canSee(cluster),
    usage: accessView.usage(cluster),
    history: accessView.history(cluster),
    whole: accessView.whole(cluster),
    rows: types.map((type) => sorted(accessView.visible(cluster, type))),
    events: cluster.events.map((event) => accessView.showsEvent(cluster, event)),
    alerts: plain.alerts.map((alert) => accessView.showsAlert(cluster, alert)),
    permissions: accessView.permissions(cluster).permissions,
    level: accessView.permissions(cluster).level,
    custom: customTypes.map((type) => {
      const custom = accessView.custom(cluster, type)
      const shown = plain.custom.filter((item) => item.type === type).map((item) => custom.shows(item))
      return [custom.result, custom.whole, custom.metrics, shown, aggregations.map((name) => custom.aggregation(name))]
    }),
    resources: kinds.map((kind) => {
      const { result, whole, shows } = accessView.resource(cluster, kind)
      return [result, whole, rowsOf(plain, kind).map((row) => shows(row))]
    }),
  }
}

/**
 * Asks the access core and the oracle everything about a world.
 * @returns the first difference; undefined where they agree
 */
export async function compareAccessViews(world: World): Promise<Difference | undefined> {
  try {
    await compareAll(world)
    return undefined
  } catch (thrown) {
    if (thrown instanceof Differs) return thrown.difference
    if (thrown instanceof CompileDifference) return { kind: 'compile', detail: thrown.message }
    if (thrown instanceof Error) return { kind: `thrown ${thrown.name}`, detail: thrown.stack ?? thrown.message }
    throw thrown
  }
}

interface Core {
  readonly source: GivenPolicies
  readonly access: Access
  now: number
}

/** Each lives for many worlds, so that what it keeps too long is found as well. */
const cores = new Map<string, Core>()

function coreOf({ semantics, administrators }: World): Core {
  const key = JSON.stringify([semantics, administrators])
  const known = cores.get(key)
  if (known) return known
  const source = new GivenPolicies()
  const clock = { now: () => made.now, sleep: () => Promise.resolve() }
  const made: Core = { source, access: openAccess({ source, semantics, administrators, clock }), now: 0 }
  cores.set(key, made)
  return made
}

async function compareAll(world: World): Promise<void> {
  const core = coreOf(world)
  const { access } = core
  core.now = world.now
  core.source.set(stored(world.policies, world.now))
  const oracle = new Oracle(world)
  const clusters = world.clusters.map((plain) => [plain, stateOf(plain)] as const)
  const byFingerprint = new Map<string, unknown>()
  for (const [index, principal] of world.principals.entries()) {
    const accessView = await access.viewOf(principal)
    const eyes = oracle.eyes(principal)
    const who = `principal ${index} (${principal.username})`
    same('administrator', accessView.administrator, eyes.administrator, who)
    same('isAdministrator', access.isAdministrator(principal), eyes.administrator, who)
    if (!(accessView.validUntil > world.now)) throw new Differs('validUntil', `${who}: is over already`)
    if (!eyes.administrator && accessView.validUntil > eyes.validUntilAtMost())
      throw new Differs(
        'validUntil',
        `${who}: is ${accessView.validUntil}, a policy begins or ends at ${eyes.validUntilAtMost()}`,
      )
    for (const [plain, state] of clusters)
      compareCluster(world, accessView, eyes, state, plain, `${who} on ${state.name}`)
    const all = clusters.map(([plain, state]) => comparable(accessView, state, plain))
    const before = byFingerprint.get(accessView.fingerprint)
    if (before !== undefined) same('fingerprint', all, before, `${who} has the fingerprint of another`)
    byFingerprint.set(accessView.fingerprint, all)
    same('viewNow', access.viewNow(principal).fingerprint, accessView.fingerprint, who)
    await compareExplanations(access, eyes, principal, clusters, who)
  }
}

function compareCluster(
  world: World,
  accessView: AccessView,
  eyes: Eyes,
  state: ClusterState,
  plain: PlainCluster,
  where: string,
): void {
  const strict = world.semantics === 'strict'
  same('canSee', accessView.canSee(state), eyes.canSee(state), where)
  same('usage', accessView.usage(state), eyes.usage(state), where)
  same('history', accessView.history(state), eyes.history(state), where)
  same('whole', accessView.whole(state), eyes.whole(state), where)
  for (const type of types) {
    const actual = sorted(accessView.visible(state, type))
    const expected = sorted(eyes.rows(state, type))
    // Which rows there are, in both semantics; what they hold, in ours.
    same(`rows ${type}`, actual.map(nameOf), expected.map(nameOf), where)
    if (strict || type === 'node' || type === 'operator') same(`fields ${type}`, actual, expected, where)
  }
  for (const event of state.events)
    same(`event ${event.type}`, accessView.showsEvent(state, event), eyes.showsEvent(state, event), where, event)
  for (const alert of plain.alerts)
    same('alert', accessView.showsAlert(state, alert), eyes.showsAlert(state, alert), where, alert)
  for (const type of customTypes) {
    const actual = accessView.custom(state, type)
    const expected = eyes.custom(state, type)
    same('custom result', actual.result !== 'deny', expected.allowed, `${where} ${type}`)
    same('custom whole', actual.whole, expected.whole, `${where} ${type}`)
    same('custom metrics', actual.metrics, expected.metrics, `${where} ${type}`)
    for (const item of plain.custom.filter((one) => one.type === type))
      same('custom item', actual.shows(item), expected.shows(item), where, item)
    for (const name of aggregations)
      same('aggregation', actual.aggregation(name), expected.aggregation(name), `${where} ${type} ${name}`)
  }
  for (const kind of kinds) compareResource(accessView, eyes, state, plain, kind, where)
  for (const type of customTypes)
    same('discovers', accessView.discovers(type), eyes.discovers(type), `${where} ${type}`)
  comparePermissions(accessView, eyes, state, where)
}

function compareResource(
  accessView: AccessView,
  eyes: Eyes,
  state: ClusterState,
  plain: PlainCluster,
  kind: (typeof kinds)[number],
  where: string,
): void {
  const actual = accessView.resource(state, kind)
  const expected = eyes.resource(state, kind, kind.isTaken)
  const what = `${where} ${kind.name}${kind.isTaken ? ', whose name is taken' : ''}`
  same('resource result', actual.result !== 'deny', expected.allowed, what)
  same('resource whole', actual.whole, expected.whole, what)
  for (const row of rowsOf(plain, kind)) same('resource row', actual.shows(row), expected.shows(row), what, row)
  for (const row of rowsOf(plain, kind).filter((one) => expected.shows(one)))
    same('withheld of a row', actual.withholds?.(row) ?? [], expected.withholds?.(row) ?? [], what, row)
  for (const row of rowsOf(plain, kind).filter((one) => expected.shows(one)))
    for (const { name, tells } of kind.columns.filter((column) => column.tells)) {
      const value = (row.values[name] ?? null) as JsonValue // as it was made
      const told = { namespace: row.namespace, value: (column: string) => row.values[column] as JsonValue }
      if (!tells) continue
      const is = actual.tells ? actual.tells(tells, value, told) : value
      same('told of namespaces', is, expected.tells ? expected.tells(tells, value, row) : value, what, [name, row])
    }
  for (const name of aggregations) same('resource sum', actual.aggregation(name), expected.aggregation(name), what)
  for (const { name } of plain.nodes ?? [])
    if (kind.rule === 'pods')
      same('node in a row', actual.showsNode?.(name) ?? true, !expected.allowed || eyes.showsNode(state, name), what)
}

function comparePermissions(accessView: AccessView, eyes: Eyes, state: ClusterState, where: string): void {
  const { permissions, level, decidedBy } = accessView.permissions(state)
  const canSee = eyes.canSee(state)
  const expected = [...(canSee ? ['view'] : []), ...(canSee && eyes.usage(state) ? ['view_metrics'] : [])]
  if (eyes.administrator || !canSee || level !== 'limited') {
    const full = canSee && eyes.usage(state) && eyes.full(state)
    same('level', level, full ? 'full' : canSee ? 'limited' : 'none', where)
  }
  same('permissions', [...permissions].sort(), expected, where)
  if (eyes.administrator || !canSee) return
  const verdict = eyes.decide('view', state, null)
  same('decided by', [decidedBy?.policy ?? null, decidedBy?.rule ?? null], [verdict.policy, verdict.rule], where)
}

/** What the state knows of the object of an event. */
function objectOf(state: ClusterState, text: unknown, namespace: string) {
  const [kind = '', name = ''] = String(text).split(/\/(.*)/s)
  if (kind === 'Node') {
    const labels = state.parts.node?.items.get(name)?.labels
    return labels && { labels, values: {} }
  }
  const [rowKind, rowName] = kind === 'ReplicaSet' ? ['Deployment', name.replace(/-[^-]*$/, '')] : [kind, name]
  const its = objectsOfEvents([]).find(({ kinds }) => kinds.includes(rowKind))
  const rows = its && state.tables.get(its.rows)?.rows
  const place = rows?.indexOf(namespace, its && its.kinds.length > 1 ? `${rowName}:${rowKind}` : rowName) ?? -1
  return place < 0 ? undefined : rows?.row(place)
}

type Clusters = readonly (readonly [PlainCluster, ClusterState])[]

async function compareExplanations(
  access: Access,
  eyes: Eyes,
  principal: Eyes['principal'],
  clusters: Clusters,
  who: string,
): Promise<void> {
  for (const [plain, state] of clusters) {
    const cluster = { name: state.name, labels: state.connection?.labels ?? {} }
    const about = await access.explain(principal, { action: 'view', cluster })
    same('explain', about.result !== 'deny', eyes.canSee(state), `${who} on ${state.name}`)
    if (!eyes.administrator) {
      const verdict = eyes.decide('view', state, null)
      same(
        'explain decided by',
        [about.decidedBy?.policy ?? null, about.decidedBy?.rule ?? null],
        [verdict.policy, verdict.rule],
        `${who} on ${state.name}`,
      )
    }
    for (const node of state.parts.node?.items.values() ?? []) {
      const question = { action: 'view', cluster, type: 'nodes', name: node.name, labels: node.labels } as const
      const { item } = await access.explain(principal, question)
      same(
        'explain node',
        item?.shown ?? false,
        eyes.showsNode(state, node.name) && eyes.canSee(state),
        `${who} ${state.name}/${node.name}`,
      )
    }
    for (const kind of kinds) {
      const asked = { action: 'view', cluster, type: kind.name, resource: kind } as const
      for (const row of rowsOf(plain, kind)) {
        const { name, namespace, labels, values: fields } = row
        const namespaceLabels = state.parts.namespace?.items.get(namespace)?.labels
        const object = kind.rule === 'events' ? objectOf(state, fields.object, namespace) : undefined
        const question = {
          ...{ ...asked, name, namespace, labels, fields },
          ...(namespaceLabels && { namespaceLabels }),
          ...(object && { object }),
        }
        const { item } = await access.explain(principal, question)
        same(
          'explain row',
          item?.shown,
          eyes.resource(state, kind, kind.isTaken).shows(row),
          `${who} ${state.name}`,
          row,
        )
      }
      if (kind.rule === 'pods') continue
      const { result } = await access.explain(principal, asked)
      same('explain kind', result !== 'deny', eyes.resource(state, kind, kind.isTaken).allowed, `${who} ${kind.name}`)
    }
    for (const namespace of state.parts.namespace?.items.values() ?? []) {
      const question = {
        action: 'view',
        cluster,
        type: 'namespaces',
        name: namespace.name,
        labels: namespace.labels,
      } as const
      const { item } = await access.explain(principal, question)
      same(
        'explain namespace',
        item?.shown ?? false,
        eyes.showsNamespace(state, namespace.name) && eyes.canSee(state),
        `${who} ${state.name}/${namespace.name}`,
      )
    }
  }
}
