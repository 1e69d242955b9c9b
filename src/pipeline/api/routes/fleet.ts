import type { FastifyInstance } from 'fastify'
import type { PartView, RowType } from '#http'
import {
  getCluster,
  getNode,
  listClusterOperators,
  listClusters,
  listDeployments,
  listEvents,
  listNamespaces,
  listNodes,
  listOperators,
} from '#http'
import type { FleetEvent, Health } from '#model'
import { type Body, type ListBody, listBody } from '../bodies.ts'
import { type Page, type PageQuery, page, readCursor, type SortValue, writeCursor } from '../page.ts'
import { nodeNotFound } from '../problem.ts'
import { clusterBody, fleetBody, type Parts, route } from '../route.ts'
import type { Row, VisibleCluster } from '../views.ts'

/** /api/v2: the same picture in base units, in pages. */
export function fleetRoutes(app: FastifyInstance, parts: Parts): void {
  route(app, parts, listClusters, (call) =>
    fleetBody(parts, listClusters, call, (clusters, previous) => {
      const { health, stale, label } = call.query
      const items = clusters.filter(
        (cluster) =>
          (health === undefined || cluster.status.health === health) &&
          (stale === undefined || cluster.isStale(call.now) === stale) &&
          (label === undefined || hasLabel(cluster.state.connection?.labels, label)),
      )
      const found = page({ items, name: ({ state }) => state.name, value: clusterValue(call.now) }, call.query)
      return pageBody(found, (cluster) => cluster.json(call.now), null, previous)
    }),
  )

  route(app, parts, getCluster, (call) =>
    clusterBody(parts, getCluster, call, call.params.name, (cluster) => `${cluster.json(call.now)}\n`),
  )

  route(app, parts, listNodes, (call) =>
    clusterBody(parts, listNodes, call, call.params.name, (cluster) => {
      const { role, ready } = call.query
      return rowsPage(cluster, 'node', call.query, nodeValue, ({ snapshot }) => {
        return (
          (role === undefined || snapshot.roles.includes(role)) && (ready === undefined || snapshot.ready === ready)
        )
      })
    }),
  )

  route(app, parts, getNode, (call) =>
    clusterBody(parts, getNode, call, call.params.name, (cluster) => {
      const row = cluster.rows('node').get(call.params.node)
      if (!row) throw nodeNotFound(call.params.name, call.params.node)
      return `${row.json}\n`
    }),
  )

  route(app, parts, listNamespaces, (call) =>
    clusterBody(parts, listNamespaces, call, call.params.name, (cluster) =>
      rowsPage(
        cluster,
        'namespace',
        call.query,
        (row, sort) => (sort === 'pods' ? (row.pods?.total ?? null) : row.deployments),
        ({ snapshot }) => call.query.phase === undefined || snapshot.phase === call.query.phase,
      ),
    ),
  )

  route(app, parts, listDeployments, (call) =>
    clusterBody(parts, listDeployments, call, call.params.name, (cluster) =>
      rowsPage(
        cluster,
        'deployment',
        call.query,
        ({ snapshot }, sort) => (sort === 'replicas' ? snapshot.replicas : snapshot.ready),
        ({ snapshot }) => call.query.namespace === undefined || snapshot.namespace === call.query.namespace,
      ),
    ),
  )

  route(app, parts, listOperators, (call) =>
    clusterBody(parts, listOperators, call, call.params.name, (cluster) => {
      const { namespace, status } = call.query
      return rowsPage(
        cluster,
        'operator',
        call.query,
        ({ snapshot }, sort) => (sort === 'status' ? snapshot.status : snapshot.displayName),
        ({ snapshot }) =>
          (status === undefined || snapshot.status === status) &&
          (namespace === undefined ||
            snapshot.availableInNamespaces.includes('*') ||
            snapshot.availableInNamespaces.includes(namespace)),
      )
    }),
  )

  route(app, parts, listClusterOperators, (call) =>
    clusterBody(parts, listClusterOperators, call, call.params.name, (cluster) => {
      const { degraded, available } = call.query
      return rowsPage(cluster, 'clusterOperator', call.query, nameOnly, ({ snapshot }) => {
        return (
          (degraded === undefined || snapshot.degraded === degraded) &&
          (available === undefined || snapshot.available === available)
        )
      })
    }),
  )

  route(app, parts, listEvents, (call) =>
    clusterBody(parts, listEvents, call, call.params.name, (cluster) => {
      const { type } = call.query
      const events = cluster.events.filter((event) => type === undefined || event.type === type)
      return pageBody(eventPage(events, call.query), eventJson, null).plain.toString()
    }),
  )
}

const nameOnly = (): SortValue => null

// Worst first, so that the first page is the one that needs somebody.
const severity: Readonly<Record<Health, number>> = { unhealthy: 0, degraded: 1, unknown: 2, healthy: 3 }

const clusterValue =
  (now: number) =>
  (cluster: VisibleCluster, sort: string): SortValue => {
    if (sort === 'health') return severity[cluster.status.health]
    if (sort === 'checkedAt') return cluster.state.status.checkedAt
    const { nodes, cpuCores, memoryBytes } = cluster.view(now)
    if (sort === 'nodes') return nodes?.total ?? null
    return sort === 'cpu' ? cpuCores.allocatable : memoryBytes.allocatable
  }

function nodeValue({ snapshot }: Row<'node'>, sort: string): SortValue {
  if (sort === 'ready') return snapshot.ready
  if (sort === 'pods') return snapshot.pods?.total ?? null
  return sort === 'cpu' ? snapshot.allocatable.cpuCores : snapshot.allocatable.memoryBytes
}

function hasLabel(labels: Readonly<Record<string, string>> | undefined, wanted: string): boolean {
  const split = wanted.indexOf('=')
  const key = split < 0 ? wanted : wanted.slice(0, split)
  if (!labels || !Object.hasOwn(labels, key)) return false
  return split < 0 || labels[key] === wanted.slice(split + 1)
}

function rowsPage<T extends RowType>(
  cluster: VisibleCluster,
  type: T,
  query: PageQuery,
  value: (row: Row<T>, sort: string) => SortValue,
  matches: (row: Row<T>) => boolean,
): string {
  const items = [...cluster.rows(type).values()].filter(matches)
  const found = page({ items, name: (row) => row.name, value }, query)
  return pageBody(found, (row) => row.json, cluster.part(type)).plain.toString()
}

function pageBody<T>(
  { items, total, next }: Page<T>,
  json: (item: T) => string,
  part: PartView | null,
  previous?: Body,
): ListBody {
  const suffix = `],"total":${total},"next":${JSON.stringify(next)},"part":${JSON.stringify(part)}}\n`
  return listBody(
    '{"items":[',
    items.map(json),
    suffix,
    previous && 'chunks' in previous ? (previous as ListBody) : undefined,
  )
}

export const eventJson = ({ type, cluster, at, data }: FleetEvent): string =>
  JSON.stringify({ type, cluster, at, data })

/**
 * Events have no name, only a time that several may share. The cursor says of the last time on the page how many of its
 * events are still to come: newer events are put in front of them and old ones drop off the end, so that count stays true.
 */
function eventPage(events: readonly FleetEvent[], { limit = 100, cursor }: PageQuery): Page<FleetEvent> {
  let start = 0
  if (cursor !== undefined) {
    const [at, left] = readCursor(cursor, 'at', 'desc')
    const older = events.findIndex((event) => event.at < Number(at))
    const end = older < 0 ? events.length : older
    const same = events.filter((event) => event.at === Number(at)).length
    start = end - Math.min(Number(left), same)
  }
  const items = events.slice(start, start + limit)
  const last = items.at(-1)
  if (!last || start + limit >= events.length) return { items, total: events.length, next: null }
  const left = events.slice(start + limit).filter((event) => event.at === last.at).length
  return { items, total: events.length, next: writeCursor([last.at, String(left)], 'at', 'desc') }
}
