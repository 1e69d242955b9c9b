import type { ClusterState } from '#model'
import { serving } from '../../src/pipeline/monitor/testing/serving.ts'
import { signed } from '../../src/pipeline/monitor/testing/tokens.ts'
import { EventReader } from '../event-stream.ts'
import type { Difference } from './compare.ts'
import { Chance } from './random.ts'
import { type PlainCluster, stateOf, type World } from './world.ts'

/*
 * Cluster Monitor's listener over the worlds of the fuzz, whose namespaces become those of tenants. What each token may see is read
 * from its rule here a second time: nothing of the product is asked.
 */
const users = ['aB3dE6', 'ab3de6', 'ab3de', 'zZ9', 'core', '', '*', 'x-1'] as const
const SYSTEM = 'core'
const TENANTS = 'compute-'
/** The past is asked for around the time of all worlds. */
const RANGE = 'start=2026-02-01T00:00:00Z&end=2026-04-01T00:00:00Z&resolution=raw'

type Served = Awaited<ReturnType<typeof serving>>
let opened: Promise<Served> | undefined

/** Lives for many worlds, so that what is kept too long is found as well. */
const served = (): Promise<Served> => {
  opened ??= serving([], { allNamespaces: true, refreshMs: 20 })
  return opened
}

export async function endMonitor(): Promise<void> {
  const ended = opened
  opened = undefined
  await (await ended)?.[Symbol.asyncDispose]()
}

/** Each namespace may become somebody's: by label, by name, by both, or by neither. */
function withTenants(cluster: PlainCluster, chance: Chance): PlainCluster {
  const renamed = new Map<string, string>()
  const nameOf = (name: string): string => {
    const known = renamed.get(name)
    if (known !== undefined) return known
    const tenant = `${TENANTS}${chance.one(users).toLowerCase()}-${renamed.size}`
    const made =
      chance.often(0.1) && ![...renamed.values()].includes(SYSTEM) ? SYSTEM : chance.often(0.7) ? tenant : name
    renamed.set(name, made)
    return made
  }
  const namespaces = cluster.namespaces?.map((namespace) => ({
    ...namespace,
    name: nameOf(namespace.name),
    labels: { ...namespace.labels, ...(chance.often(0.5) && { 'user-id': chance.one(users) }) },
  }))
  const resources = cluster.resources.map((row) => ({ ...row, namespace: nameOf(row.namespace) }))
  return { ...cluster, namespaces: namespaces ?? null, resources }
}

/** The rule of tenancy, from its specification alone. */
function owns(userId: string, cluster: ClusterState, namespace: string): boolean {
  const row = cluster.parts.namespace?.items.get(namespace)
  if (userId === '' || !row || namespace === SYSTEM || !namespace.startsWith(TENANTS)) return false
  if (!/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/.test(namespace)) return false // no name of Kubernetes
  const owner = row.labels['user-id']
  return owner === undefined ? namespace.startsWith(`${TENANTS}${userId}-`) : owner === userId
}

type Place = readonly [namespace: string, name: string]
const placesIn = (cluster: ClusterState, source: string): readonly Place[] =>
  [...(cluster.tables.get(source)?.rows.rows() ?? [])].map(({ namespace, name }) => [namespace, name])
/** What is measured of a cluster. */
const measuredOf = (cluster: ClusterState) => placesIn(cluster, 'pod-usage')
/** Pods, measured or not. */
const countedOf = (cluster: ClusterState) => [...measuredOf(cluster), ...placesIn(cluster, 'pods')]

class Differs extends Error {}

/** @returns the first answer that is more, or less, than the rule says */
export async function compareMonitor(world: World): Promise<Difference | undefined> {
  const chance = new Chance(world.seed ^ 0x7e4a)
  const { state, url } = await served()
  const clusters = world.clusters.map((plain) => {
    version++
    return stateOf(withTenants(plain, chance), version)
  })
  state.set(...clusters)
  try {
    await compareUser(url, clusters, undefined)
    for (const userId of chance.some(users, 4, 2)) await compareUser(url, clusters, userId)
    return undefined
  } catch (thrown) {
    if (thrown instanceof Differs) return { kind: 'monitor', detail: thrown.message }
    if (thrown instanceof Error) return { kind: `thrown ${thrown.name}`, detail: thrown.stack ?? thrown.message }
    throw thrown
  }
}
let version = 1

/** @param userId undefined: an administrator */
async function compareUser(url: string, clusters: readonly ClusterState[], userId: string | undefined): Promise<void> {
  const isAdmin = userId === undefined
  const token = await signed(isAdmin ? { user_id: 'r', is_admin: true } : { user_id: userId })
  const ask = async (path: string) => {
    const answer = await fetch(url + path, { headers: { authorization: `Bearer ${token}` } })
    const text = await answer.text()
    return { status: answer.status, json: answer.status === 200 ? JSON.parse(text) : undefined }
  }
  const is = (what: string, actual: unknown, expected: unknown) => {
    if (JSON.stringify(actual) !== JSON.stringify(expected))
      throw new Differs(
        `${what} for ${userId ?? 'an administrator'}: ${JSON.stringify(actual)}, must be ${JSON.stringify(expected)}`,
      )
  }
  const shownOf = (cluster: ClusterState, places: readonly Place[]) =>
    places
      .filter(([namespace]) => isAdmin || owns(userId, cluster, namespace))
      .map((place) => place.join('/'))
      .sort()
  const shownIn = (cluster: ClusterState) => shownOf(cluster, measuredOf(cluster))
  const keysOf = (pods: readonly { namespace: string; name: string }[]) =>
    pods.map(({ namespace, name }) => `${namespace}/${name}`).sort()
  const isThere = (cluster: ClusterState) =>
    isAdmin || [...(cluster.parts.namespace?.items.keys() ?? [])].some((name) => owns(userId, cluster, name))

  const fleet = (await ask('/fleet/pod-metrics')).json.clusters as Record<string, { pods: never[] }>
  const expected = clusters.filter(isThere).map((cluster) => [cluster.name, shownIn(cluster)] as const)
  const sorted = expected.toSorted(([a], [b]) => (a < b ? -1 : 1))
  is(
    'the fleet',
    Object.entries(fleet).map(([name, { pods }]) => [name, keysOf(pods)]),
    sorted,
  )
  const { clusters: sums, total } = (await ask('/fleet/summary')).json
  is(
    'pods in total',
    total.pods,
    clusters.filter(isThere).reduce((sum, cluster) => sum + new Set(shownOf(cluster, countedOf(cluster))).size, 0),
  )
  is('nodes in total', total.nodes === null, !isAdmin)
  is(
    'the clusters that are summed',
    Object.keys(sums),
    sorted.map(([name]) => name),
  )
  is('nodes of the fleet', (await ask('/fleet/cluster-info')).status, isAdmin ? 200 : 403)
  for (const cluster of clusters) {
    const prefix = `/clusters/${cluster.name}`
    const found = isThere(cluster)
    const pods = await ask(`${prefix}/pod-metrics`)
    is(`the status of ${cluster.name}`, pods.status, found ? 200 : 404)
    is(`the nodes of ${cluster.name}`, (await ask(`${prefix}/cluster-info`)).status, isAdmin ? 200 : found ? 403 : 404)
    if (!found) continue
    is(`pods of ${cluster.name}`, keysOf(pods.json.pods), shownIn(cluster))
    const past = (await ask(`${prefix}/api/metrics/pods?${RANGE}`)).json
    is(`pods beside the past of ${cluster.name}`, keysOf(past.pods), shownIn(cluster))
    const foreign = Object.keys(past.series).filter(
      (key) => !isAdmin && !owns(userId, cluster, key.split('/')[0] ?? ''),
    )
    is(`the past of others on ${cluster.name}`, foreign, [])
    for (const [namespace] of measuredOf(cluster).slice(0, 2)) {
      const { status } = await ask(`${prefix}/api/metrics/pods?namespace=${namespace}`)
      is(`the past of ${namespace}`, status, isAdmin || owns(userId, cluster, namespace) ? 200 : 403)
    }
  }
  for (const protocol of [1, 2]) {
    using stream = await EventReader.open(`${url}/fleet/sse/health?protocol=${protocol}&token=${token}`)
    const perCluster = protocol === 1 ? (isAdmin ? 2 : 1) : isAdmin ? 3 : 2
    await until(() => stream.events.length >= expected.length * perCluster, `a stream of protocol ${protocol}`)
    const told = stream.documents.flatMap(({ type, kind, cluster, payload, items }) =>
      type === 'pods' ? [[cluster, (payload as { pods: never[] }).pods]] : kind === 'pods' ? [[cluster, items]] : [],
    ) as [string, never[]][]
    const names = told.map(([name, pods]) => [name, keysOf(pods)] as const).sort(([a], [b]) => (a < b ? -1 : 1))
    is(`a stream of protocol ${protocol}`, names, sorted)
    is(
      'nodes in a stream',
      stream.documents.some(({ type, kind }) => type === 'cluster' || kind === 'nodes'),
      isAdmin && expected.length > 0,
    )
  }
}

async function until(holds: () => boolean, what: string): Promise<void> {
  const limit = Date.now() + 20_000
  while (!holds()) {
    if (Date.now() > limit) throw new Differs(`${what} never told all that is there`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}
