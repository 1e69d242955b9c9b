import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { AccessView } from '#access'
import {
  getType,
  groupFleetRows,
  listCustomRows,
  listFleetRows,
  listTypes,
  type RouteContract,
  type RowGroupsView,
  type TypeOnClusterView,
} from '#http'
import type { RowKind } from '#metricsource'
import type { ClusterState } from '#model'
import { isFleetKind } from '#resources'
import { inTurns, type Steps } from '#runtime'
import { type Body, bodySteps, textBody } from '../bodies.ts'
import { requireSets, withSetOfRows } from '../cluster-sets.ts'
import { RefusedError, typeNotFound } from '../problem.ts'
import {
  type Answer,
  type AnyCall,
  accessViewOf,
  goneSignal,
  inSet,
  nobodyWaits,
  originOf,
  type Parts,
  questionOf,
  route,
  sendBody,
  visibleCluster,
  visibleClusters,
} from '../route.ts'
import { type GroupsQuery, groupSteps } from '../row-groups.ts'
import { RowLinks, referenceOf } from '../row-links.ts'
import { type CsvOptions, type Located, orderedSteps, type PageQuery, pageSteps, rowsCsv } from '../type-rows.ts'
import { partOnCluster, sourceView, typeOnCluster, typeView } from '../type-views.ts'
import type { VisibleCluster } from '../views.ts'
import { rowsStaleAt, type VisibleType, type VisibleTypes } from '../visible-types.ts'

/** What MetricSources collect: types, and their rows on one cluster. A type that policies deny is one that is not there. */
export function typeRoutes(app: FastifyInstance, parts: Parts): void {
  const { types } = parts

  route(app, parts, listTypes, (call) =>
    fleetOfTypes(parts, listTypes, call, (accessView, clusters) => {
      const { cluster } = call.query
      const asked = statesOf(clusters).filter(({ name }) => (cluster ?? name) === name)
      const items = [...types.types().values()].flatMap((sources) => {
        const isOfFleet = isFleetKind(sources[0])
        if (isOfFleet && cluster !== undefined) return []
        const view = typeView(types, accessView, asked, sources, call.now)
        // What nobody declared is there where it is read.
        const isSaid = cluster === undefined && sources[0].access === 'declared'
        const isThere = isOfFleet ? view?.count !== 0 : view && view.clusters.length > 0
        return view && (isSaid || isThere) ? [view] : []
      })
      return textBody(`${JSON.stringify({ items })}\n`)
    }),
  )

  route(app, parts, getType, (call) =>
    fleetOfTypes(parts, getType, call, (accessView, clusters) => {
      const { type } = call.params
      const states = statesOf(clusters)
      const [first, ...others] = types.meant(type, accessView, states)
      const view = first && typeView(types, accessView, states, [first, ...others], call.now)
      if (!view) throw noSuchType(parts, type)
      return textBody(`${JSON.stringify(view)}\n`)
    }),
  )

  route(app, parts, listCustomRows, async (call) => {
    const { request, params, query, now } = call
    const accessView = accessViewOf(request)
    const cluster = visibleCluster(parts, accessView, params.name)
    const type = visibleType(
      parts,
      accessView,
      cluster.state,
      types.meant(params.type, accessView, [cluster.state]),
      params.type,
      query.source,
    )
    if (wantsCsv(request, query.format)) {
      const csv = csvBody(orderedSteps([type], query), type.source, query)
      return sendCsv(parts, call, csv, fileName(params.name, params.type))
    }
    lookAt(parts, accessView, type)
    const text = () => kindPage(types, accessView, type, query, now)
    return typeBody(parts, listCustomRows, call, accessView, type, cluster, text)
  })

  route(app, parts, listFleetRows, async (call) => {
    const { request, params, query, now } = call
    const asked = { ...query, type: params.type }
    const ordered = { sort: 'cluster', ...query }
    if (!wantsCsv(request, query.format))
      return fleetOfTypes(parts, listFleetRows, call, (accessView, clusters) =>
        fleetBody(
          parts,
          accessView,
          seenOn(parts, accessView, clusters, asked),
          withSetOfRows(kindFor(parts, accessView, clusters, asked), ordered),
          now,
        ),
      )
    const accessView = accessViewOf(request)
    const clusters = visibleClusters(parts, accessView)
    const kind = kindFor(parts, accessView, clusters, asked)
    const on = seenOn(parts, accessView, clusters, asked)
    if (!kind) throw noSuchType(parts, params.type)
    const csv = csvBody(orderedSteps(on, withSetOfRows(kind, ordered)), kind, { ...query, isFleet: true })
    return sendCsv(parts, call, csv, fileName(params.type))
  })

  route(app, parts, groupFleetRows, (call) =>
    fleetOfTypes(parts, groupFleetRows, call, (accessView, clusters) => {
      const { params, query, now } = call
      const asked = { ...query, type: params.type }
      const on = seenOn(parts, accessView, clusters, asked)
      return groupsBody(accessView, on, withSetOfRows(kindFor(parts, accessView, clusters, asked), query), now)
    }),
  )
}

/** Which type is asked for, and where. */
interface AskedType {
  readonly type: string
  readonly source?: string
  /** absent: everywhere */
  readonly cluster?: readonly string[]
  /** only clusters in this set */
  readonly set?: string
}

function kindFor(
  { types }: Parts,
  accessView: AccessView,
  clusters: readonly VisibleCluster[],
  { type, source }: AskedType,
): RowKind | undefined {
  const kinds = types.meant(type, accessView, statesOf(clusters))
  return source === undefined ? kinds[0] : kinds.find(({ id }) => id === source)
}

/** @throws RefusedError `type_not_found`: unknown and denied everywhere go the same way */
function seenOn(
  parts: Parts,
  accessView: AccessView,
  clusters: readonly VisibleCluster[],
  asked: AskedType,
): readonly VisibleType[] {
  const kind = kindFor(parts, accessView, clusters, asked)
  const on = kind ? parts.types.over(accessView, statesOf(clusters), kind) : []
  if (!kind || (on.length === 0 && !accessView.administrator)) throw noSuchType(parts, asked.type)
  const names = asked.cluster && new Set(asked.cluster)
  const there = names ? on.filter(({ cluster }) => names.has(cluster.name)) : on
  if (asked.set === undefined) return there
  requireSets(kind, asked)
  const inIt = new Set(inSet(parts, accessView, clusters, asked.set).map(({ state }) => state.name))
  if (isFleetKind(kind)) return there
  return there.filter(({ cluster }) => inIt.has(cluster.name))
}

/**
 * What is declared could not be read since the start: then no answer may look like "there is none".
 * @throws RefusedError `store_unavailable`
 */
export function requireDeclared({ types }: Pick<Parts, 'types'>): void {
  const why = types.unknown()
  if (why === undefined) return
  throw new RefusedError('store_unavailable', `the MetricSources cannot be read: ${why}`, { retryAfterSeconds: 5 })
}

function noSuchType(parts: Pick<Parts, 'types'>, name: string): RefusedError {
  requireDeclared(parts)
  return typeNotFound(name)
}

/**
 * Unknown and denied go the same way.
 * @param kinds what the name means
 * @param source of several of one type name, which
 * @throws RefusedError `type_not_found`
 */
export function visibleType(
  parts: Parts,
  accessView: AccessView,
  cluster: ClusterState,
  kinds: readonly RowKind[],
  name: string,
  source?: string,
): VisibleType {
  const found = source === undefined ? kinds[0] : kinds.find(({ id }) => id === source)
  const type = found && parts.types.on(accessView, cluster, found)
  if (!type) throw noSuchType(parts, name)
  return type
}

/** One page of the rows of a kind on one cluster. */
function* kindPage(
  types: VisibleTypes,
  accessView: AccessView,
  type: VisibleType,
  query: PageQuery,
  now: number,
): Steps<string> {
  const { rows, total, next } = yield* pageSteps([type], query)
  const links = new RowLinks(types, accessView)
  const referredBy = links.referringTo(type)
  const items = rows.map((row) => ({
    ...rowView(row, links),
    ...(referredBy.length > 0 && { reference: referenceOf(row) }),
  }))
  const source = sourceView(type.source, [type])
  const on = typeOnCluster(accessView, type, now)
  return `${JSON.stringify({ items, total, next, source, on, ...(referredBy.length > 0 && { referredBy }) })}\n`
}

function* fleetBody(
  parts: Parts,
  accessView: AccessView,
  on: readonly VisibleType[],
  query: PageQuery & { readonly aggregations?: boolean },
  now: number,
): Steps<Body> {
  const { rows, total, next } = yield* pageSteps(on, query)
  const links = new RowLinks(parts.types, accessView)
  const items = []
  for (const row of rows) {
    items.push({ cluster: row.type.cluster.name, ...rowView(row, links) })
    yield
  }
  const clusters = yield* collectedOn(accessView, on, now, query.aggregations ?? true)
  const source = on[0] ? sourceView(on[0].source, on) : null
  const body = textBody(`${JSON.stringify({ items, total, next, source, clusters })}\n`)
  const isMeasured = on[0]?.source.measured !== undefined
  const shown = rows.filter(({ type }) => isMeasured && accessView.usage(type.cluster))
  looks.set(body, [...new Set(shown.map(({ type }) => type.cluster.name))])
  lookAgain(parts, body)
  return body
}

/** The clusters whose usage an answer shows: given again, it is looked at again. */
const looks = new WeakMap<Body, readonly string[]>()

function lookAgain({ attention }: Parts, body: Body): void {
  for (const cluster of looks.get(body) ?? []) attention?.look(cluster)
}

/** Somebody is shown what this cluster uses. */
function lookAt({ attention }: Parts, accessView: AccessView, { source, cluster }: VisibleType): void {
  if (source.measured && accessView.usage(cluster)) attention?.look(cluster.name)
}

/** How the rows of each cluster stand where something was collected. */
function* collectedOn(
  accessView: AccessView,
  on: readonly VisibleType[],
  now: number,
  withAggregations: boolean,
): Steps<TypeOnClusterView[]> {
  const views: TypeOnClusterView[] = []
  for (const type of on) {
    if (type.state === undefined) continue
    views.push(typeOnCluster(accessView, type, now, withAggregations))
    yield
  }
  return views
}

/** A cluster whose rows nobody knows is named, and not counted as one that has none. */
function* groupsBody(accessView: AccessView, on: readonly VisibleType[], query: GroupsQuery, now: number): Steps<Body> {
  const read = on.filter(({ state }) => state?.freshness)
  const { groups, others, total } = yield* groupSteps(read, query)
  const times = read.map(({ state }) => state?.freshness?.observedAt ?? 0)
  const view: RowGroupsView = {
    by: [...query.by],
    groups: groups.map(({ values, ...group }) => ({ ...group, values: [...values] })),
    others,
    total: read.length === 0 && on.length > 0 ? null : total,
    observedAt: times.length > 0 ? { oldest: Math.min(...times), newest: Math.max(...times) } : null,
    stale: read.filter(({ staleAt }) => now >= staleAt).map(({ cluster }) => cluster.name),
    truncated: read.filter(({ state }) => state?.truncated).map(({ cluster }) => cluster.name),
    unread: on
      .filter(({ state }) => !state?.freshness)
      .map((type) => {
        const { outcome, message } = partOnCluster(accessView, type)
        return { cluster: type.cluster.name, outcome, message }
      }),
  }
  return textBody(`${JSON.stringify(view)}\n`)
}

function rowView(located: Located, links: RowLinks) {
  const { rows, source } = located.type
  const row = rows.row(located.place)
  const leads = links.of(located)
  const id = rows.idAt(located.place)
  return { id, ...row, name: source.rowName(row.name), ...(leads.length > 0 && { links: leads }) }
}

const statesOf = (clusters: readonly VisibleCluster[]): readonly ClusterState[] => clusters.map(({ state }) => state)

/**
 * What is kept of one answer about types counts for one state of the fleet and one set of declarations. Nobody waits long for the steps
 * of an answer; where its client goes, they end.
 */
export async function fleetOfTypes(
  parts: Parts,
  contract: RouteContract,
  { request, reply, params, query, now }: AnyCall,
  encode: (accessView: AccessView, clusters: readonly VisibleCluster[]) => Body | Steps<Body>,
): Promise<Answer> {
  const accessView = accessViewOf(request)
  const key = questionOf(contract.schema.operationId, accessView.fingerprint, [params, query])
  const tag = `${parts.state.version()} ${parts.types.version()} ${parts.types.fleetVersion()}`
  const known = parts.bodies.get(key, tag, now)
  if (known) {
    lookAgain(parts, known)
    return { body: known }
  }
  const clusters = visibleClusters(parts, accessView)
  const made = encode(accessView, clusters)
  const gone = goneSignal(reply)
  const body = 'plain' in made ? made : await inTurns(made, parts.turns, gone)
  if (!body) return nobodyWaits(reply)
  const { validUntil } = originOf(tag, clusters, accessView, now)
  const turnsAt = Math.min(parts.types.fleetTurnsAt(now), turnOf(parts, clusters, now))
  parts.bodies.set(key, { tag, validUntil: Math.min(validUntil, turnsAt) }, body)
  return { body }
}

/** When the first of what was collected on these clusters becomes old. */
function turnOf({ types }: Parts, clusters: readonly VisibleCluster[], now: number): number {
  const kinds = types.kinds()
  let first = Number.POSITIVE_INFINITY
  for (const { state } of clusters) {
    for (const kind of kinds) {
      const at = rowsStaleAt(kind, state)
      if (at > now && at < first) first = at
    }
  }
  return first
}

/** One answer about one type on one cluster, kept as long as that state of the cluster and those declarations. */
export async function typeBody(
  parts: Parts,
  contract: RouteContract,
  { reply, params, query, now }: AnyCall,
  accessView: AccessView,
  type: VisibleType,
  cluster: VisibleCluster,
  encode: () => string | Steps<string>,
): Promise<Answer> {
  const version = parts.types.version()
  const key = questionOf(contract.schema.operationId, accessView.fingerprint, [params, query, version])
  const known = parts.bodies.get(key, cluster.state, now)
  if (known) return { body: known }
  const made = encode()
  const text = typeof made === 'string' ? made : await inTurns(made, parts.turns, goneSignal(reply))
  if (text === undefined) return nobodyWaits(reply)
  const body = textBody(text)
  const { validUntil } = originOf(cluster.state, [cluster], accessView, now)
  const turn = type.staleAt > now ? type.staleAt : Number.POSITIVE_INFINITY
  parts.bodies.set(key, { tag: cluster.state, validUntil: Math.min(validUntil, turn) }, body)
  return { body }
}

function* csvBody(rows: Steps<readonly Located[]>, kind: RowKind, options: CsvOptions): Steps<Body> {
  return yield* bodySteps(rowsCsv(yield* rows, kind, options))
}

async function sendCsv({ turns }: Parts, { request, reply }: AnyCall, csv: Steps<Body>, name: string): Promise<Answer> {
  const body = await inTurns(csv, turns, goneSignal(reply))
  if (!body) return nobodyWaits(reply)
  reply.header('content-disposition', `attachment; filename="${name}.csv"`)
  await sendBody(request, reply, body, 'text/csv; charset=utf-8')
  return 'sent'
}

export const wantsCsv = ({ headers }: FastifyRequest, format: 'json' | 'csv' | undefined): boolean =>
  format === 'csv' || (format === undefined && /^\s*text\/csv\b/i.test(headers.accept ?? ''))

/** Names of files go through many hands. */
const fileName = (...words: readonly string[]): string => words.join('-').replace(/[^A-Za-z0-9._-]/g, '_')
