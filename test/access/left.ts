import type { Access, AccessView, Explanation, FilterSummary } from '#access'
import { NODE_USAGE, POD_USAGE } from '#collect'
import {
  type ClusterState,
  type JsonValue,
  type RowsState,
  type SeenOf,
  type SnapshotType,
  Table,
  type TableRow,
} from '#model'
import { resources } from '#resources'
import { evaluateHealth } from '#state'
import { type CustomVerdict, type Eyes, leavesNothing } from './oracle.ts'
import { allSources, countsOf, objectsOfEvents, openType, sumsOf, toldSums } from './sources.ts'
import { snapshotTypesOfRows } from './world.ts'

/*
 * The fleet as the oracle leaves it to somebody: what is hidden is not in it. A server that holds nothing else and hides
 * nothing must answer like one that holds everything and hides; whatever the latter takes from hidden things shows.
 */

const noPods = { total: 0, running: 0, pending: 0, failed: 0, succeeded: 0, unknown: 0 }
const hiddenPods = { name: 'pods', counts: noPods, unscheduled: 0, byNamespace: {} }

/** One cluster without what these eyes do not see; undefined: without the cluster. */
export function left(eyes: Eyes, state: ClusterState, taken: readonly string[] = []): ClusterState | undefined {
  if (!eyes.canSee(state)) return undefined
  if (eyes.administrator) return state
  const parts = Object.fromEntries(
    snapshotTypesOfRows.flatMap((type) => {
      const part = state.parts[type]
      if (!part) return []
      const rows = eyes.rows(state, type).map((row) => [(row as { readonly name: string }).name, row] as const)
      // That there is a sum of pods may be known; the access view shows nothing of it.
      const hidden = type === 'podSummary' && rows.length === 0 && part.items.size > 0
      const items = new Map<string, unknown>(hidden ? [['pods', hiddenPods]] : rows)
      return [[type, { ...part, items }]]
    }),
  ) as unknown as ClusterState['parts'] // rows may lack what is summed over hidden things, as in what an access view leaves
  const verdict = evaluateHealth({ parts, failure: undefined, source: 'pull', checked: true })
  const whole = eyes.whole(state)
  return {
    ...state,
    parts,
    tables: new Map([
      ...leftOfTypes(eyes, state),
      ...leftOfResources(eyes, state, taken),
      ...leftOfUsage(eyes, state, taken),
    ]),
    status: whole ? state.status : { ...state.status, ...verdict },
    heartbeats: whole
      ? state.heartbeats
      : state.heartbeats.map((beat) => (beat.health === 'degraded' ? { ...beat, health: 'healthy' } : beat)),
    events: state.events.filter((event) => eyes.showsEvent(state, event)),
  }
}

/** Of rows that are left of a type whose sums are over all: all of them. */
export const wholeOf = new WeakMap<Table, Table>()

/** What is collected without what these eyes do not see, summed up anew unless the declaration gives everybody the whole. */
function leftOfTypes(eyes: Eyes, state: ClusterState): [string, RowsState][] {
  const left: [string, RowsState][] = []
  for (const { id, typeName } of allSources) {
    const full = state.tables.get(id)
    const verdict = eyes.custom(state, typeName)
    if (!full || !verdict.allowed) continue
    const places = [...full.rows.rows()].flatMap((row, place) => (verdict.shows(itemOf(row)) ? [place] : []))
    const rows = full.rows.only(places)
    const errors = full.errors.filter(({ namespace }) => namespace === '' || readsIn(eyes, state, verdict, namespace))
    const aggregations = typeName === openType ? full.aggregations : sumsOf(rows)
    if (typeName === openType) wholeOf.set(rows, full.rows)
    left.push([id, { ...full, rows, aggregations, errors, errorCount: errors.length }])
  }
  return left
}

/** Rows of kinds that are compiled in, without what they say of nodes and namespaces that these eyes do not see. */
function leftOfResources(eyes: Eyes, state: ClusterState, taken: readonly string[]): [string, RowsState][] {
  const left: [string, RowsState][] = []
  for (const kind of resources) {
    const full = state.tables.get(kind.id)
    const verdict = verdictOf(eyes, state, kind, taken)
    if (!full || !verdict.allowed) continue
    const naming = kind.columns.filter(({ refersTo }) => refersTo === 'node').map(({ name }) => name)
    const itemIn = (row: TableRow) => ({ ...itemOf(row), name: kind.rowName(row.name) })
    const seen = [...full.rows.rows()].filter((row) => verdict.shows(itemIn(row)))
    const told = (field: string, value: JsonValue, row: TableRow): JsonValue => {
      const tells = kind.columns.find(({ name }) => name === field)?.tells
      return tells && verdict.tells ? verdict.tells(tells, value, itemIn(row)) : value
    }
    const rows = Table.of(
      full.rows.fields,
      seen.map((row) => ({
        ...row,
        values: Object.fromEntries(
          Object.entries(row.values).map(([field, value]) => [
            field,
            (naming.includes(field) && !eyes.showsNode(state, String(value))) ||
            verdict.withholds?.(itemIn(row)).includes(field)
              ? null
              : told(field, value, row),
          ]),
        ),
      })),
    )
    left.push([kind.id, { ...full, rows, aggregations: countsOf(kind, rows) }])
  }
  return left
}

/** What is measured of the pods and nodes that these eyes see; nothing where measurements are not for them. */
function leftOfUsage(eyes: Eyes, state: ClusterState, taken: readonly string[]): [string, RowsState][] {
  if (!eyes.usage(state)) return []
  const seenPods = leftOfResources(eyes, state, taken).find(([id]) => id === 'pods')?.[1].rows ?? Table.empty
  const pods = new Set([...seenPods.rows()].map(({ namespace, name }) => `${namespace}/${name}`))
  const nodes = new Set(eyes.rows(state, 'node').map((node) => (node as { readonly name: string }).name))
  const of = (source: string, isSeen: (row: TableRow) => boolean): [string, RowsState][] => {
    const full = state.tables.get(source)
    if (!full) return []
    const places = [...full.rows.rows()].flatMap((row, place) => (isSeen(row) ? [place] : []))
    return [[source, { ...full, rows: full.rows.only(places) }]]
  }
  return [
    ...of(NODE_USAGE, ({ name }) => nodes.has(name)),
    ...of(POD_USAGE, ({ namespace, name }) => pods.has(`${namespace}/${name}`)),
  ]
}

/** Rows of a kind with what these eyes may see of what is measured of them. */
function withMeasured(
  eyes: Eyes,
  state: ClusterState,
  { measured }: Kind,
  rows: Table,
  taken: readonly string[],
): Table {
  if (!measured) return rows
  const [, usage] = leftOfUsage(eyes, state, taken).find(([id]) => id === measured.source) ?? []
  const values = new Map([...(usage?.rows.rows() ?? [])].map((row) => [`${row.namespace}/${row.name}`, row.values]))
  return Table.of(
    [...rows.fields, ...measured.fields],
    [...rows.rows()].map((row) => {
      const known = values.get(`${row.namespace}/${row.name}`) ?? {}
      const taken = Object.fromEntries(measured.fields.map((field) => [field, known[field] ?? null]))
      return { ...row, values: { ...row.values, ...taken } }
    }),
  )
}

type Kind = (typeof resources)[number]

function verdictOf(
  eyes: Eyes,
  state: ClusterState,
  { typeName, access }: Kind,
  taken: readonly string[],
): CustomVerdict {
  if (access === 'declared') throw new Error(`${typeName} is compiled in without a rule of access`)
  const about = access === 'events' && { about: objectsOfEvents(taken) }
  return eyes.resource(state, { name: typeName, rule: access, ...about }, taken.includes(typeName))
}

/** Whether a list of series may name an aggregation: its values are over all rows, so none may be hidden. */
export function listsAggregation(
  eyes: Eyes,
  { name: cluster }: ClusterState,
  { source, name, taken }: { readonly source: string; readonly name: string; readonly taken: readonly string[] },
  full: readonly ClusterState[],
): boolean {
  const state = full.find((one) => one.name === cluster)
  const kind = resources.find(({ id }) => id === source)
  const typeName = allSources.find(({ id }) => id === source)?.typeName
  if (!state || (!kind && typeName === undefined)) return false
  const { allowed, whole, metrics, aggregation } = kind
    ? verdictOf(eyes, state, kind, taken)
    : eyes.custom(state, typeName ?? '')
  return allowed && whole && metrics && aggregation(name)
}

/** What the specification lets them read of the sums of a type; null: nothing measured. */
export function sumsFor(eyes: Eyes, state: ClusterState, typeName: string, taken: readonly string[]): unknown {
  const kind = resources.find(
    (one) => typeName === (taken.includes(one.typeName) ? `core/${one.typeName}` : one.typeName),
  )
  if (kind) {
    const { aggregation } = verdictOf(eyes, state, kind, taken)
    const [, own] = leftOfResources(eyes, state, taken).find(([id]) => id === kind.id) ?? []
    const fields = kind.aggregations.flatMap(({ name, function: how, field }) =>
      how === 'sum' && field ? [[name, field]] : [],
    )
    const rows = own && withMeasured(eyes, state, kind, own.rows, taken)
    const sums = rows ? toldSums(countsOf(kind, rows), Object.fromEntries(fields), rows) : {}
    return Object.fromEntries(Object.entries(sums).filter(([name]) => aggregation(name)))
  }
  const verdict = eyes.custom(state, typeName)
  const id = allSources.find((source) => source.typeName === typeName)?.id ?? ''
  const full = state.tables.get(id)
  if (!verdict.metrics || !full) return null
  const seen = [...full.rows.rows()].flatMap((row, place) => (verdict.shows(itemOf(row)) ? [place] : []))
  const rows = typeName === openType ? full.rows : full.rows.only(seen)
  const sums = toldSums(typeName === openType ? full.aggregations : sumsOf(rows), { total: 'amount' }, rows)
  return Object.fromEntries(Object.entries(sums).filter(([name]) => verdict.aggregation(name)))
}

const itemOf = ({ name, namespace, labels, values }: TableRow) => ({
  name,
  ...(namespace !== '' && { namespace }),
  labels,
  values,
})

/** Whether they may hear that something of the type could not be read there: who may see neither the namespace nor a row in it may not. */
function readsIn(eyes: Eyes, state: ClusterState, verdict: CustomVerdict, namespace: string): boolean {
  const isThere = eyes.rows(state, 'namespace').some(({ name }) => name === namespace)
  const knows = eyes.isWholeType(state, 'namespaces') || isThere
  return knows && (verdict.whole || verdict.shows({ name: '', namespace, labels: {}, values: {} }))
}

function summaries(eyes: Eyes, state: ClusterState): Record<string, FilterSummary> {
  const reduced = eyes.types().filter((type) => !eyes.isWholeType(state, type))
  return Object.fromEntries(
    reduced.map((type) => {
      const { allowed, entries } = eyes.decide('view', state, type)
      const none =
        !allowed || entries.some((entry) => (eyes.strict ? leavesNothing(entry) : entry.visibility === 'none'))
      return [type, { visibility: none ? 'none' : 'filtered' }]
    }),
  )
}

let made = 0

/** An access view over the fleet that is left: it shows whatever is there. `full` are the clusters as they are. */
export function openAccessView(eyes: Eyes, full: readonly ClusterState[]): AccessView {
  const of = ({ name }: ClusterState): ClusterState => {
    const found = full.find((one) => one.name === name)
    if (!found) throw new Error(`no cluster ${name}`)
    return found
  }
  made += 1
  return {
    fingerprint: `left ${made}`,
    generation: '',
    // Nothing is kept from one person to the next: what the other server keeps too long must not be kept here as well.
    validUntil: 0,
    administrator: eyes.administrator,
    canSee: ({ name }) => full.some((one) => one.name === name),
    usage: (cluster) => eyes.usage(of(cluster)),
    history: (cluster) => eyes.history(of(cluster)),
    whole: (cluster) => eyes.whole(of(cluster)),
    visible: <T extends SnapshotType>({ parts }: ClusterState, type: T) =>
      [...(parts[type]?.items.values() ?? [])].filter(
        (row) => (row as unknown) !== hiddenPods,
      ) as unknown as readonly SeenOf<T>[],
    showsEvent: () => true,
    showsAlert: () => true,
    showsRegistry: () => true,
    custom: (cluster, type) => {
      const { allowed, whole, metrics, aggregation } = eyes.custom(of(cluster), type)
      const result = allowed ? (whole ? 'allow' : 'partial') : 'deny'
      return { result, reason: '', whole, metrics, shows: () => allowed, aggregation, basis: [] }
    },
    // Names of hidden nodes are not in what is left.
    resource: (cluster, resource) => {
      const { allowed, whole, metrics, aggregation } = eyes.resource(of(cluster), resource, resource.isTaken)
      const result = allowed ? (whole ? 'allow' : 'partial') : 'deny'
      return { result, reason: '', whole, metrics, shows: () => allowed, aggregation, basis: [] }
    },
    discovers: (type) => eyes.discovers(type),
    namedTypes: new Set(eyes.administrator ? [] : eyes.types()),
    permissions: (cluster) => {
      const state = of(cluster)
      const level = eyes.usage(state) && eyes.full(state) ? 'full' : 'limited'
      const permissions = eyes.usage(state) ? (['view', 'view_metrics'] as const) : (['view'] as const)
      return { permissions, level, decidedBy: null, filters: eyes.administrator ? {} : summaries(eyes, state) }
    },
  }
}

/** Always the access view that was told last. */
export function openAccessOf(accessView: () => AccessView, isAdministrator: Access['isAdministrator']): Access {
  const access: Access = {
    viewOf: async () => accessView(),
    viewNow: () => accessView(),
    explain: async (): Promise<Explanation> => {
      throw new Error('no question here')
    },
    policiesOf: async () => [],
    policies: async () => ({ generation: '', policies: [] }),
    isAdministrator,
    withPolicies: () => access,
    onChange: () => () => undefined,
  }
  return access
}
