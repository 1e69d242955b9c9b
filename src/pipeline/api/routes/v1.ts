import type { FastifyInstance } from 'fastify'
import type { HistoryStore } from '#history'
import {
  v1GetCluster,
  v1GetNode,
  v1ListAlerts,
  v1ListClusterOperators,
  v1ListClusters,
  v1ListEvents,
  v1ListNamespaces,
  v1ListNodes,
  v1ListOperators,
} from '#http'
import {
  type ClusterState,
  clusterOperatorDocument,
  clusterTotals,
  documentText,
  documentTime,
  eventDocument,
  infoDocument,
  isKnown,
  metricsDocument,
  nodeStatus,
  operatorDocument,
  type SeenNode,
  type SnapshotType,
  seenNodeDocument,
  specDocument,
  statusDocument,
} from '#model'
import type { NodeSeries } from '#state'
import { type ListBody, listBody, textBody } from '../bodies.ts'
import { openStore } from '../history.ts'
import { keptSamples, nodeSamples } from '../node-samples.ts'
import { nodeNotFound } from '../problem.ts'
import { type CountsOf, resourceCollection, resourceCounter } from '../resource-counts.ts'
import { accessViewOf, clusterBody, fleetBody, type Parts, route, visibleCluster } from '../route.ts'
import { seenFacts } from '../seen-status.ts'
import { byText, silentAt, type VisibleCluster } from '../views.ts'

/** The documented routes: bare arrays of the documents as they lie in the store. */
export function v1Routes(
  app: FastifyInstance,
  parts: Parts,
  { history, series }: { readonly history: HistoryStore | undefined; readonly series: NodeSeries | undefined },
): void {
  const { types } = parts
  for (const url of [v1ListClusters.url, `${v1ListClusters.url}/`]) {
    route(app, parts, { ...v1ListClusters, url }, (call) =>
      fleetBody(parts, v1ListClusters, { ...call, query: {} }, (clusters, previous) => {
        const before = previous && 'chunks' in previous ? (previous as ListBody) : undefined
        return listBody(
          '[',
          clusters.map((cluster) => listedText(cluster, call.now)),
          ']\n',
          before,
        )
      }),
    )
  }

  for (const url of [v1GetCluster.url, `${v1GetCluster.url}/`]) {
    route(app, parts, { ...v1GetCluster, url }, (call) =>
      clusterBody(parts, v1GetCluster, { ...call, query: types.version() }, call.params.name, (cluster) => {
        const lists = resourceCollection({ types, accessView: accessViewOf(call.request), cluster, now: call.now })
        return line({ ...clusterDocument(cluster, call.now), ...(lists && { resource_collection: lists }) })
      }),
    )
  }

  route(app, parts, v1ListNodes, (call) =>
    clusterBody(parts, v1ListNodes, call, call.params.name, (cluster) => {
      const { role, status } = call.query
      const nodes = [...cluster.rows('node').values()].filter(
        ({ snapshot }) => (!role || snapshot.roles.includes(role)) && (!status || nodeStatus(snapshot) === status),
      )
      return line(nodes.map(({ snapshot }) => nodeOf(cluster, snapshot)))
    }),
  )

  route(app, parts, v1GetNode, async (call) => {
    const { name, node } = call.params
    const documentOf = (cluster: VisibleCluster) => {
      const row = cluster.rows('node').get(node)
      if (!row) throw nodeNotFound(name, node)
      return nodeOf(cluster, row.snapshot)
    }
    if (call.query.include_metrics !== 'true')
      return clusterBody(parts, v1GetNode, { ...call, query: {} }, name, (cluster) => line(documentOf(cluster)))
    const cluster = visibleCluster(parts, accessViewOf(call.request), name)
    const document = documentOf(cluster)
    // As documented, who may not have them gets the node without them.
    if (!cluster.history) return { body: textBody(line(document)) }
    const samples = history
      ? await nodeSamples(openStore(history), cluster, node, call.now)
      : series
        ? await keptSamples(series, cluster, node)
        : []
    return { body: textBody(line({ ...document, metrics_history: samples })) }
  })

  route(app, parts, v1ListOperators, (call) =>
    clusterBody(parts, v1ListOperators, call, call.params.name, (cluster) => {
      const { namespace, status } = call.query
      const operators = [...cluster.rows('operator').values()].filter(
        ({ snapshot }) =>
          (!status || snapshot.status === status) &&
          (!namespace ||
            isEverywhere(snapshot.availableInNamespaces) ||
            snapshot.availableInNamespaces.includes(namespace)),
      )
      return line(operators.map(({ snapshot }) => operatorDocument(snapshot, receivedAt(cluster, 'operator'))))
    }),
  )

  route(app, parts, v1ListClusterOperators, (call) =>
    clusterBody(parts, v1ListClusterOperators, call, call.params.name, (cluster) =>
      line(
        [...cluster.rows('clusterOperator').values()].map(({ snapshot }) =>
          clusterOperatorDocument(snapshot, receivedAt(cluster, 'clusterOperator')),
        ),
      ),
    ),
  )

  route(app, parts, v1ListNamespaces, (call) =>
    clusterBody(
      parts,
      v1ListNamespaces,
      { ...call, query: [call.query, types.version()] },
      call.params.name,
      (cluster) =>
        line(
          namespaces(cluster, {
            operators: call.query.with_operator_count === 'true',
            ...(call.query.with_resource_counts === 'true' && {
              resources: resourceCounter({ types, accessView: accessViewOf(call.request), cluster, now: call.now }),
            }),
          }),
        ),
    ),
  )

  // Alerts stand beside the cluster's state, so its version does not tell of them: never kept.
  route(app, parts, v1ListAlerts, ({ request, params, query }) => {
    const accessView = accessViewOf(request)
    const { state } = visibleCluster(parts, accessView, params.name)
    const alerts = parts.state
      .alerts(params.name)
      .filter((alert) => accessView.showsAlert(state, alert))
      .filter(({ severity }) => !query.severity || severity === query.severity)
    return { fresh: alerts }
  })

  route(app, parts, v1ListEvents, (call) =>
    clusterBody(parts, v1ListEvents, call, call.params.name, ({ events }) =>
      line(events.slice(0, eventLimit(call.query.limit)).map(eventDocument)),
    ),
  )
}

const line = (document: unknown): string => `${documentText(document)}\n`

const observedAt = ({ state }: VisibleCluster, type: SnapshotType): number | null =>
  state.parts[type]?.freshness?.observedAt ?? null

const receivedAt = ({ state }: VisibleCluster, type: SnapshotType): number | null =>
  state.parts[type]?.freshness?.receivedAt ?? null

const nodeOf = (cluster: VisibleCluster, node: SeenNode) =>
  seenNodeDocument(node, observedAt(cluster, 'node'), cluster.usage)

// The text changes with time only where the cluster goes stale or silent.
function listedText(cluster: VisibleCluster, now: number): string {
  const key = `v1 ${cluster.isStale(now)} ${now >= silentAt(cluster.state)}`
  return cluster.memo(key, () => documentText({ ...clusterDocument(cluster, now), accessible: true }))
}

function clusterDocument(cluster: VisibleCluster, now: number) {
  const { state, visible } = cluster
  const { connection } = state
  const facts = seenFacts(cluster)
  const freshness = state.parts.node?.freshness
  return {
    name: state.name,
    spec: connection ? shownSpec(connection) : {},
    info: facts
      ? infoDocument(facts, connection?.endpoint ?? '')
      : { ...(connection && { api_url: connection.endpoint }) },
    metrics: IN_METRICS.some((type) => observedAt(cluster, type) !== null) ? metricsOf(cluster) : {},
    status: statusOf(cluster, now),
    ...(countsOperators(state) && { operator_count: visible('operator').length }),
    freshness: freshness
      ? {
          observed_at: documentTime(freshness.observedAt),
          received_at: documentTime(freshness.receivedAt),
          source: freshness.source,
        }
      : {},
  }
}

// Where the credentials lie is nobody's business but the hub's.
function shownSpec(connection: Parameters<typeof specDocument>[0]) {
  const { credentialsRef: _, ...shown } = specDocument(connection)
  return shown
}

const IN_METRICS: readonly SnapshotType[] = ['node', 'podSummary', 'namespace', 'deployment']

function metricsOf(cluster: VisibleCluster) {
  const { visible, state } = cluster
  const known = <T extends SnapshotType>(type: T) => (isKnown(state.parts[type]) ? visible(type) : null)
  const nodes = known('node')
  const totals = clusterTotals({
    nodes,
    podSummary: known('podSummary')?.[0] ?? null,
    namespaces: known('namespace'),
    deployments: known('deployment'),
    deploymentCount: cluster.deploymentCount,
  })
  const times = IN_METRICS.flatMap((type) => observedAt(cluster, type) ?? [])
  const document = metricsDocument(totals, nodes, observedAt(cluster, 'node') ?? Math.max(...times))
  return cluster.whole ? document : { ...document, filtered: true, filter_metadata: filterMetadata(cluster) }
}

/** By which of their filters, and to which namespaces, the numbers are reduced: nothing of what is hidden. */
function filterMetadata({ accessView, state, visible }: VisibleCluster) {
  const filters = Object.entries(accessView.permissions(state).filters)
  return {
    filtered_types: filters.flatMap(([type, { visibility }]) => (visibility === 'all' ? [] : [type])).sort(byText),
    allowed_namespaces: visible('namespace')
      .map(({ name }) => name)
      .sort(byText),
  }
}

/** A health that nobody has confirmed for three rounds is not known, whatever it was. */
function statusOf(cluster: VisibleCluster, now: number) {
  const status = { ...cluster.status, checkedAt: cluster.state.status.checkedAt, lastSyncAt: null }
  const stale = cluster.isStale(now)
  if (now < silentAt(cluster.state)) return { ...statusDocument(status), stale }
  const message = `no news since ${documentTime(status.checkedAt)}; before that ${status.health}`
  return { ...statusDocument({ ...status, health: 'unknown', message }), stale }
}

const isEverywhere = (namespaces: readonly string[]): boolean => namespaces.length === 1 && namespaces[0] === '*'

/** A whole number from 1; 100 where the text is none; never above 10000. */
function eventLimit(text: string | undefined): number {
  const limit = /^\d+$/.test(text ?? '') ? Number(text) : 0
  return limit > 0 ? Math.min(limit, 10_000) : 100
}

interface Counts {
  readonly operators: boolean
  /** absent: they are not asked for */
  readonly resources?: CountsOf
}

function namespaces(cluster: VisibleCluster, counts: Counts): unknown[] {
  const rows = [...cluster.rows('namespace').values()]
  if (!counts.operators && !counts.resources) return rows.map(({ name }) => name)
  const operatorsIn = counts.operators && countsOperators(cluster.state) && operatorCounter(cluster)
  const documents = rows.map(({ name, pods, deployments }) => ({
    name,
    ...(operatorsIn && { operator_count: operatorsIn(name) }),
    ...counts.resources?.(name, pods, deployments),
  }))
  if (!counts.resources) return documents
  const total = (document: object): number => ('total_resources' in document ? Number(document.total_resources) : 0)
  return documents.sort((left, right) => total(right) - total(left) || byText(left.name, right.name))
}

/**
 * Operators that nobody could read are not 0; where the kind is not served they are, and where a collector of the original
 * read the cluster and names none.
 */
function countsOperators({ parts: { operator, node } }: ClusterState): boolean {
  if (!operator) return (node?.freshness ?? null) !== null
  return operator.freshness !== null || operator.outcome === 'absent'
}

/** Operators of the whole cluster count in every namespace. */
function operatorCounter({ visible }: VisibleCluster): (namespace: string) => number {
  let everywhere = 0
  const inNamespace = new Map<string, number>()
  for (const { clusterWide, availableInNamespaces } of visible('operator')) {
    if (clusterWide || isEverywhere(availableInNamespaces)) everywhere += 1
    else for (const name of new Set(availableInNamespaces)) inNamespace.set(name, (inNamespace.get(name) ?? 0) + 1)
  }
  return (namespace) => everywhere + (inNamespace.get(namespace) ?? 0)
}
