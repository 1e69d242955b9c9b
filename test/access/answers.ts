import { inspect, isDeepStrictEqual } from 'node:util'
import { type Access, type AccessView, openAccess, type Principal, standardTypes } from '#access'
import { type ApiServer, apiServer } from '#api'
import { InProcessEventBus } from '#events'
import type { Identity } from '#identity'
import { type ClusterState, systemClock } from '#model'
import { kinds, registries, resources, snapshotKinds } from '#resources'
import { Metrics, silentLogger } from '#runtime'
import type { Difference } from './compare.ts'
import { ConstantHistory } from './constant-history.ts'
import { GivenRegistries, registryOf } from './given-registries.ts'
import { GivenState } from './given-state.ts'
import { left, listsAggregation, openAccessOf, openAccessView, sumsFor, wholeOf } from './left.ts'
import { Oracle } from './oracle.ts'
import { Chance } from './random.ts'
import { GivenPolicies, stored } from './source.ts'
import { allSources, GivenCatalog, sourcesIn, sumsOf, takeable, typeNames } from './sources.ts'
import { changesBetween, Streams } from './streams.ts'
import { type PlainCluster, start, stateOf, type World } from './world.ts'

/*
 *  real:  everything in state ─ the real access core ─ the real API ─┐
 *                                                                    ├─ must be the same bytes
 *  left:  what the oracle leaves ─ an access view that hides nothing ─ API ─┘
 *
 * Both servers live for many worlds, so that what is kept too long is found as well.
 */
export interface Side {
  readonly state: GivenState
  readonly registries: GivenRegistries
  readonly history: ConstantHistory
  readonly catalog: GivenCatalog
  readonly bus: InProcessEventBus
  readonly server: ApiServer
}

/** What a test tells both servers. */
interface Words {
  /** of the clock of both */
  now: number
  /** who asks */
  principal: Principal | undefined
  /** of the real side */
  access: Access | undefined
  /** of the other side */
  accessView: AccessView | undefined
  world: World | undefined
  /** what the servers did not foresee */
  readonly errors: unknown[]
}

export interface Servers {
  readonly told: Words
  readonly policies: GivenPolicies
  readonly real: Side
  readonly left: Side
}

function anIdentity(told: Words): Identity {
  const known: Pick<Identity, 'identify' | 'methods' | 'onEnded' | 'forget'> = {
    identify: async () => {
      const { principal } = told
      if (!principal) return null
      const { actor } = principal
      const behind = actor && { ...principal, username: actor, groups: [], email: '', isServiceAccount: false }
      return { principal, byCookie: false, ...(behind && { actor: behind }) }
    },
    methods: () => [],
    onEnded: () => () => undefined,
    forget: () => 0,
  }
  return known as Identity // nobody signs in or out here
}

const noLimit = { perSecond: 1e9, burst: 1e9 }

function aSide(told: Words, access: Access): Side {
  const state = new GivenState()
  const registries = new GivenRegistries()
  const history = new ConstantHistory()
  const catalog = new GivenCatalog()
  const bus = new InProcessEventBus({ capacity: 10_000 })
  const clock = {
    now: () => told.now,
    sleep: systemClock.sleep,
  }
  const server = apiServer({
    state,
    registries,
    events: bus,
    identity: anIdentity(told),
    access,
    history,
    catalog,
    logger: { ...silentLogger, error: (...words: unknown[]) => void told.errors.push(words) },
    clock,
    version: '1.2.3',
    metrics: new Metrics({}, { processMetrics: false }),
    config: { host: '127.0.0.1', port: 0, identity: {}, streamGatherMs: 0, rateLimit: noLimit, streamOpens: noLimit },
  })
  return { state, registries, history, catalog, bus, server }
}

function told<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('nothing was told yet')
  return value
}

function openServers(): Servers {
  const words: Words = {
    now: start,
    principal: undefined,
    access: undefined,
    accessView: undefined,
    world: undefined,
    errors: [],
  }
  const policies = new GivenPolicies()
  const current: Access = {
    viewOf: (...given) => told(words.access).viewOf(...given),
    viewNow: (...given) => told(words.access).viewNow(...given),
    explain: (...given) => told(words.access).explain(...given),
    policiesOf: (...given) => told(words.access).policiesOf(...given),
    policies: () => told(words.access).policies(),
    isAdministrator: (principal) => told(words.access).isAdministrator(principal),
    withPolicies: (...given) => told(words.access).withPolicies(...given),
    onChange: (listener) => policies.onChange(listener),
  }
  return {
    told: words,
    policies,
    real: aSide(words, current),
    left: aSide(
      words,
      openAccessOf(
        () => told(words.accessView),
        (principal) => told(words.access).isAdministrator(principal),
      ),
    ),
  }
}

let opened: Servers | undefined

export function servers(): Servers {
  opened ??= openServers()
  return opened
}

export async function endServers(): Promise<void> {
  const ended = opened
  opened = undefined
  await Promise.all([ended?.real.server.stop(), ended?.left.server.stop()])
}

class Differs extends Error {
  readonly difference: Difference
  constructor(kind: string, detail: string) {
    super(detail)
    this.difference = { kind, detail }
  }
}

/**
 * Asks the real API about a world, and again after something changed.
 * @param wanted asks these questions only, and follows no stream
 * @returns the first answer that is not what the oracle leaves
 */
export async function compareAnswers(world: World, wanted?: RegExp): Promise<Difference | undefined> {
  try {
    await compareAll(world, wanted)
    return undefined
  } catch (thrown) {
    if (thrown instanceof Differs) return thrown.difference
    if (thrown instanceof Error) return { kind: `thrown ${thrown.name}`, detail: thrown.stack ?? thrown.message }
    throw thrown
  }
}

async function compareAll(world: World, wanted?: RegExp): Promise<void> {
  const both = servers()
  const chance = new Chance(world.seed ^ 0x5eed)
  const clock = { now: () => both.told.now, sleep: () => Promise.resolve() }
  both.told.access = openAccess({
    source: both.policies,
    semantics: world.semantics,
    administrators: world.administrators,
    clock,
  })
  const before = world.clusters.map((plain) => stateOf(plain, version()))
  begin(both, world, before)
  await ask(both, world, before, chance, wanted)
  const follows = chance.often(0.25) && !wanted
  const names = world.clusters.map(({ name }) => name)
  const streams = follows ? await Streams.open(both, world.principals, names, streamed(chance)) : undefined
  try {
    const asked = await streams?.differ(before)
    if (asked) throw new Differs(asked.kind, asked.detail)
    checkFrames(both, world, streams, [before])
    // Then something moves, and every answer with it.
    const later = moved(world, chance)
    const after = later.clusters.map((plain, index) => {
      const same = plain === world.clusters[index] ? before[index] : undefined
      return same ?? stateOf(plain, version())
    })
    begin(both, later, after)
    await both.real.bus.publish(changesBetween(before, after, later.now))
    await ask(both, later, after, chance, wanted)
    const moving = await streams?.differ(after)
    if (moving) throw new Differs(`${moving.kind} after something moved`, moving.detail)
  } finally {
    streams?.close()
  }
}

/** From now on this is the world. */
function begin(both: Servers, world: World, full: readonly ClusterState[]): void {
  both.told.now = world.now
  both.told.errors.length = 0
  both.told.world = world
  both.real.state.set(full, alertsOf(world))
  both.real.registries.set(full.map(registryOf))
  both.real.history.clusters = full
  both.real.catalog.set(sourcesIn(world.taken))
  both.policies.set(stored(world.policies, world.now))
}

function checkFrames(
  both: Servers,
  world: World,
  streams: Streams | undefined,
  fleets: readonly (readonly ClusterState[])[],
): void {
  for (const { principal, text } of streams?.taken() ?? []) {
    const eyes = new Oracle(world).eyes(principal)
    const seen = fleets.flatMap((full) => full.flatMap((state) => left(eyes, state, world.taken) ?? []))
    const shown = fleets.flatMap((full) =>
      full.map(registryOf).filter((_, at) => eyes.showsRegistry(full[at] as ClusterState)),
    )
    const allowed = new Set(JSON.stringify([seen.map(plainState), shown]).match(marks) ?? [])
    const leaked = text.match(marks)?.find((mark) => !allowed.has(mark))
    if (leaked) throw new Differs('leak in the stream', `${principal.username} reads ${leaked} at ${both.told.now}`)
  }
}

/** From now on this one asks, and the other server holds what is left for these eyes. */
export function see(both: Servers, principal: Principal, full: readonly ClusterState[]): ReadonlySet<string> {
  const world = told(both.told.world)
  const eyes = new Oracle(world).eyes(principal)
  const seen = full.flatMap((state) => left(eyes, state, world.taken) ?? [])
  const alerts = world.clusters.flatMap(({ name, alerts: all }) => {
    const state = full.find((one) => one.name === name)
    return state ? [[name, all.filter((alert) => eyes.showsAlert(state, alert))] as const] : []
  })
  both.told.principal = principal
  const shown = full.map(registryOf).filter((_, at) => eyes.showsRegistry(full[at] as ClusterState)) // of the same length
  both.left.state.set(seen, new Map(alerts))
  both.left.registries.set(shown)
  both.left.history.clusters = seen
  both.left.history.keeps = (state, source, name) =>
    listsAggregation(eyes, state, { source, name, taken: world.taken }, full)
  both.left.catalog.set(
    sourcesIn(world.taken)
      .filter(
        ({ typeName }) =>
          // That a name is taken is no secret: the kind that is compiled in has another for everybody.
          kinds.some((kind) => kind.typeName === typeName) ||
          eyes.administrator ||
          eyes.discovers(typeName)?.listed ||
          full.some((state) => eyes.custom(state, typeName).allowed),
      )
      .map((source) => ({
        ...source,
        aggregate: sumsOf,
        sumsOfNothing: (rows) => source.sumsOfNothing(wholeOf.get(rows) ?? rows),
      })),
  )
  both.told.accessView = openAccessView(eyes, full)
  return new Set(JSON.stringify([seen.map(plainState), alerts, shown]).match(marks) ?? [])
}

let versions = 0
const version = (): number => {
  versions += 1
  return versions
}

/** The same world after policies, rows or the time moved; what did not move is the same object. */
export function moved(world: World, chance: Chance): World {
  const what = chance.int(0, 4)
  if (what === 0) return { ...world, policies: chance.some(world.policies, world.policies.length) }
  if (what === 1) return { ...world, now: world.now + chance.one([1, 1000, 2000]) }
  if (what === 4) return { ...world, taken: chance.some(takeable, 2) }
  if (what === 2) return { ...world, clusters: world.clusters.map((plain) => fewerRows(plain, chance)) }
  return { ...world, policies: world.policies.map((policy) => (chance.often(0.5) ? policy : turned(policy))) }
}

const turned = (policy: World['policies'][number]): World['policies'][number] => {
  const effect = policy.spec.access.effect === 'Allow' ? 'Deny' : 'Allow'
  return { ...policy, spec: { ...policy.spec, access: { ...policy.spec.access, effect } } }
}

const fewerRows = (plain: PlainCluster, chance: Chance): PlainCluster => ({
  ...plain,
  nodes: plain.nodes && chance.some(plain.nodes, plain.nodes.length),
  namespaces: plain.namespaces && chance.some(plain.namespaces, plain.namespaces.length),
  custom: chance.some(plain.custom, plain.custom.length),
  resources: chance.some(plain.resources, plain.resources.length),
})

const alertsOf = (world: World): Map<string, readonly Readonly<Record<string, string>>[]> =>
  new Map(world.clusters.map(({ name, alerts }) => [name, alerts]))

// Everybody is asked the same: what is kept for one must not be given to another.
async function ask(
  both: Servers,
  world: World,
  full: readonly ClusterState[],
  chance: Chance,
  wanted?: RegExp,
): Promise<void> {
  const urls = questions(world, full, chance, wanted)
  for (const [index, principal] of world.principals.entries()) {
    const allowed = see(both, principal, full)
    if (!wanted || wanted.test('/api/v2/types')) await checkSums(both, principal, full)
    for (const url of urls) await compareOne(both, url, allowed, `principal ${index} asks ${url}`)
  }
}

/** Sums are also checked against the oracle itself: how they are kept back is the same code on both sides. */
async function checkSums(both: Servers, principal: Principal, full: readonly ClusterState[]): Promise<void> {
  const world = told(both.told.world)
  const eyes = new Oracle(world).eyes(principal)
  const { status, body } = await get(both.real, '/api/v2/types')
  if (status !== 200) return // the comparison tells
  const { items } = JSON.parse(body) as { items: readonly SeenType[] }
  for (const { type, sources, clusters } of items) {
    for (const { cluster, aggregations, part } of clusters) {
      if ([...snapshotKinds, registries].some(({ id }) => sources[0]?.id === id)) {
        // Which rows those are the comparison tells; of each one word is counted.
        const counted = Object.values(aggregations ?? {}).flatMap(
          (groups) => Object.values(groups as object) as number[],
        )
        if (counted.reduce((sum, count) => sum + count, 0) === part.count) continue
        throw new Differs(
          'sums of a kind',
          `${principal.username} on ${cluster}, ${type}: ${JSON.stringify(aggregations)} of ${part.count}`,
        )
      }
      const state = full.find(({ name }) => name === cluster)
      const expected = state ? sumsFor(eyes, state, type, world.taken) : undefined
      if (!isDeepStrictEqual(aggregations, expected))
        throw new Differs(
          'sums of a type',
          `${principal.username} on ${cluster}, ${type}: is ${JSON.stringify(aggregations)}, must be ${JSON.stringify(expected)}`,
        )
    }
  }
}

interface SeenType {
  readonly type: string
  readonly sources: readonly { readonly id: string }[]
  readonly clusters: readonly {
    readonly cluster: string
    readonly aggregations: unknown
    readonly part: { readonly count: number }
  }[]
}

const marks = /zq\d+x\d+qz/g

/** With its maps as lists, for text. */
const plainState = ({ parts, tables, ...rest }: ClusterState): unknown => [
  rest,
  [...tables.values()].map(({ rows, errors }) => [rows.toColumns(), errors]),
  Object.values(parts).map(({ items }) => [...(items as ReadonlyMap<string, unknown>).values()]),
]

interface Got {
  readonly status: number
  readonly headers: Readonly<Record<string, unknown>>
  readonly body: string
}

async function get({ server }: Side, url: string): Promise<Got> {
  const { statusCode, headers, body } = await server.app.inject({ method: 'GET', url, headers: { host: 'localhost' } })
  return { status: statusCode, headers, body }
}

async function compareOne(both: Servers, url: string, allowed: ReadonlySet<string>, where: string): Promise<void> {
  let next: string | null = url
  for (let pages = 0; next !== null && pages < 20; pages++) {
    const [actual, expected] = [await get(both.real, next), await get(both.left, next)]
    const kind = `answer of ${url.replace(/\?.*/, '').replace(/clusters\/[^/]+(\/nodes\/[^/]+)?/, 'clusters/x$1')}`
    for (const mark of `${actual.body} ${JSON.stringify(actual.headers)}`.match(marks) ?? [])
      if (!allowed.has(mark)) throw new Differs(`leak in ${kind}`, `${where}: the answer holds ${mark}\n${actual.body}`)
    const shown = (got: Got): unknown => [
      got.status,
      bare(got.body),
      got.headers['cache-control'],
      got.headers['content-type'],
    ]
    if (!isDeepStrictEqual(shown(actual), shown(expected)))
      throw new Differs(
        kind,
        `${where}: is ${actual.status}, must be ${expected.status}\n${parting(actual.body, expected.body)}`,
      )
    if (actual.status === 500)
      throw new Differs(`${kind} fails`, `${where}: ${inspect(both.told.errors, { depth: 4 })}`)
    next = nextOf(url, actual.body)
  }
}

/** Both texts around the place where they part. */
export function parting(actual: string, expected: string): string {
  let at = 0
  while (at < actual.length && actual[at] === expected[at]) at++
  const around = (text: string): string => text.slice(Math.max(0, at - 150), at + 250)
  return `is      …${around(actual)}\nmust be …${around(expected)}\nwhole: ${actual.slice(0, 4000)}`
}

const comparedTypes: readonly string[] = [
  ...standardTypes,
  ...resources.flatMap(({ typeName }) => [typeName, `core/${typeName}`]),
]

/** Queries of rows for a stream: a kind whole and as a window, and another that may be anything. */
function streamed(chance: Chance): readonly string[] {
  const [type, other] = [chance.one(everyType), chance.one(everyType)]
  const [column, where] = columnAsked(chance, type)
  const order = chance.one(['asc', 'desc'])
  return [type, `${type}?sort=${column}&order=${order}&limit=2`, `${type}?where=${where}`, `${other}?namespace=app-1`]
}

/** Without what differs from one request to the next by itself, and without the words that explain a decision. */
function bare(body: string): string {
  const text = body
    .replace(/"(requestId|evaluated_at|retrieved_at)":"[^"]*"/g, '')
    // Custom types are named there as well; the core is asked about them by itself.
    .replace(/"filtered_types":\[[^\]]*\]/g, (list) =>
      standardTypes.filter((type) => list.includes(`"${type}"`)).join(),
    )
  if (!body.includes('"accessible_cluster_names"')) return text
  const explaining = new Set(['decided_by', 'filters', 'evaluated_at'])
  return JSON.stringify(JSON.parse(body), (key, value: unknown) => {
    if (key !== 'visibility') return explaining.has(key) ? undefined : value
    return Object.entries(value as object)
      .filter(([type]) => comparedTypes.includes(type))
      .sort()
  })
}

function nextOf(url: string, body: string): string | null {
  const cursor = /"next":"([^"]+)"/.exec(body)?.[1]
  return cursor === undefined ? null : `${url}${url.includes('?') ? '&' : '?'}cursor=${encodeURIComponent(cursor)}`
}

const ofSnapshots = [...snapshotKinds, registries].flatMap(({ typeName }) => [typeName, `core/${typeName}`])
const everyType = [...typeNames, ...ofSnapshots, 'none', 'core/none'].map(encodeURIComponent)

const declaredNames = allSources.map(({ typeName }) => typeName)

let asked = 0

/** Some of all there is to ask; of `wanted` alone those, about any type. */
function questions(world: World, full: readonly ClusterState[], chance: Chance, wanted?: RegExp): readonly string[] {
  // An answer out of history is kept for a while: each time asks about another hour, or it is that of another world.
  asked += 1
  const windowAt = 1_772_000_000 - (1_772_000_000 % 180) - asked * 720
  const fleet = [
    '/api/v2/clusters?limit=1',
    '/api/v2/clusters?sort=health&order=desc&limit=2',
    `/api/v2/clusters?sort=${chance.one(['nodes', 'cpu', 'memory'])}`,
    `/api/v2/clusters?health=${chance.one(['healthy', 'degraded', 'unhealthy'])}`,
    '/api/v2/clusters?label=env',
    '/api/v1/clusters',
    '/api/v1/auth/permissions',
    '/api/v2/clusters/unknown',
    '/api/v2/registries',
    '/api/v1/registries/status',
    `/api/v2/registries/${chance.one(world.clusters)?.name}`,
  ]
  const ofPromQl = [
    '/api/v1/label/cluster/values',
    '/api/v1/query?query=clusterpulse_cluster_nodes_total&time=1772366400',
    '/api/v1/labels',
    `/api/v1/labels?match[]={cluster="${world.clusters[0]?.name}"}&limit=1`,
    '/api/v1/label/source/values?match[]={__name__=~".%2B"}&start=1772366400',
    '/api/v1/label/__name__/values',
    `/api/v1/series?match[]=up&match[]=${chance.one(['total', 'cost'].map((name) => `clusterpulse_custom_resource_${name}`))}`,
    '/api/v1/metadata',
    '/api/v1/query_exemplars?query=up',
    '/api/v1/query?query=1%2B1',
    `/api/v1/query?time=1772366400&query=${chance.one(['total', 'cost', 'other'].map((name) => `clusterpulse_custom_resource_${name}`))}`,
  ]
  const askedTypes = wanted ? everyType : [chance.one(everyType)]
  const ofTypes = askedTypes.flatMap((type) => questionsOfType(world, chance, type))
  const ofCluster = world.clusters.flatMap(({ name }) => {
    const nodes = [...(full.find((one) => one.name === name)?.parts.node?.items.keys() ?? []), 'app-1']
    const node = encodeURIComponent(chance.one(nodes))
    const v1 = `/api/v1/clusters/${name}`
    const v2 = `/api/v2/clusters/${name}`
    const times = `start=${windowAt}&end=${windowAt + 540}&step=180`
    return [
      ...[
        v1,
        `${v1}/nodes`,
        `${v1}/nodes?role=worker&status=Ready`,
        `${v1}/nodes/${node}`,
        `${v1}/nodes/${node}?include_metrics=true`,
      ],
      ...[`${v1}/operators`, `${v1}/operators?namespace=app-1`, `${v1}/cluster-operators`, `${v1}/namespaces`],
      ...[
        `${v1}/namespaces?with_operator_count=true&with_resource_counts=true`,
        `${v1}/alerts`,
        `${v1}/alerts?severity=critical`,
      ],
      ...[`${v1}/events`, `${v1}/events?limit=2`, `${v1}/metrics/history?metric=nodes_total,pods_total&${times}`],
      `${v1}/nodes/${node}/metrics/history?metric=cpu_capacity,pods_total,cpu_usage_percent&${times}`,
      ...[
        v2,
        `${v2}/nodes?limit=1`,
        `${v2}/nodes?sort=cpu&order=desc&limit=2`,
        `${v2}/nodes?sort=pods&limit=2`,
        `${v2}/nodes?ready=ready`,
      ],
      ...[
        `${v2}/nodes/${node}`,
        `${v2}/namespaces?limit=2`,
        `${v2}/namespaces?sort=pods&order=desc`,
        `${v2}/deployments?limit=1`,
      ],
      ...[
        `${v2}/deployments?namespace=app-1`,
        `${v2}/operators?limit=1&sort=displayName`,
        `${v2}/operators?namespace=app-1`,
      ],
      ...[
        `${v2}/operators?status=Failed`,
        `${v2}/cluster-operators`,
        `${v2}/cluster-operators?degraded=true`,
        `${v2}/events?limit=2`,
      ],
      ...[`${v2}/events?type=node.ready`, `${v2}/history?metric=cpu_capacity,pods_total&${times}`],
      ...[
        `${v2}/history?scope=operator&metric=installed&${times}`,
        `${v2}/history?scope=cluster&metric=nodes_total&${times}&format=csv`,
      ],
      ...[
        `${v2}/history?metric=cpu_usage_percent&${times}&format=csv`,
        `${v2}/history?key=app-1&key=app-2&metric=cpu_capacity&${times}`,
      ],
    ]
  })
  const ofTypesThere = askedTypes.flatMap((type) => questionsOfTypeThere(world, chance, type, windowAt))
  const text = encodeURIComponent(chance.one(['app', 'a', 'prod', 'display', 'kube', 'zq', '1', 'worker']))
  const search = `/api/v2/search?q=${text}&limit=${chance.one([2, 50])}`
  const some = (urls: readonly string[], count: number): readonly string[] =>
    chance.some(wanted ? urls.filter((url) => wanted.test(url)) : urls, count, count)
  return [
    ...some([search], 1),
    ...some(fleet, 5),
    ...some(ofPromQl, 3),
    ...some(ofCluster, 9),
    ...some(ofTypes, 4),
    ...some(ofTypesThere, 5),
  ]
}

/** A question about a column that another kind has is refused: each kind is asked about its own. */
function columnAsked(chance: Chance, type: string): readonly [column: string, where: string] {
  const kind = kinds.find(({ typeName }) => encodeURIComponent(typeName) === type.replace('core%2F', ''))
  const column = kind ? chance.one(kind.columns).name : chance.one(['amount', 'note', 'phase'])
  const where = chance.one([`${column}>1`, `${column}=`, `${column}!=app-1`, `${column}=app-2`])
  return [column, encodeURIComponent(where)]
}

/** @param type as in an address */
function questionsOfType(world: World, chance: Chance, type: string): readonly string[] {
  const [column, where] = columnAsked(chance, type)
  const rows = `/api/v2/rows/${type}`
  const groups = `/api/v2/groups/${type}`
  return [
    '/api/v2/types',
    `/api/v2/types?cluster=${world.clusters[0]?.name}`,
    `/api/v2/types/${type}`,
    rows,
    `${rows}?limit=1&sort=${column}`,
    `${rows}?limit=2&sort=${column}&order=desc&namespace=app-1`,
    `${rows}?where=${where}&sort=name`,
    `${rows}?q=${chance.one(['app', 'bound', 'zq', 'app-2'])}&cluster=${world.clusters[0]?.name}`,
    `${rows}?format=csv&sort=${column}`,
    `${groups}?by=cluster&by=${column}`,
    `${groups}?by=namespace&where=${where}&limit=1&sort=health`,
    `${rows}?format=csv&headings=labels`,
    '/api/v1/custom-types?include_source_details=true&include_cluster_availability=true',
    `/api/v1/custom-types/clusters?include_aggregations=true&${declaredNames.map((name) => `type=${name}`).join('&')}`,
    `/api/v1/custom-types/clusters?type=${type}&type=none`,
  ]
}

/** @param type as in an address */
function questionsOfTypeThere(world: World, chance: Chance, type: string, windowAt: number): readonly string[] {
  const [column, where] = columnAsked(chance, type)
  return world.clusters.flatMap(({ name }) => {
    const v1 = `/api/v1/clusters/${name}/custom/${type}`
    const v2 = `/api/v2/clusters/${name}/types/${type}`
    const times = `start=${windowAt}&end=${windowAt + 540}&step=180`
    return [
      ...[
        `${v2}?limit=1`,
        `${v2}?limit=2&sort=${column}&order=desc`,
        `${v2}?sort=${column}&limit=1`,
        `${v2}?format=csv&sort=${column}`,
        `${v2}?where=${where}`,
      ],
      ...[`${v2}?q=app`, `${v2}?q=${chance.one(['zq', 'bound', 'lost 1'])}`, `${v2}?namespace=app-1`],
      ...[`${v2}?where=amount>1&where=phase=Bound`, `${v2}?where=size!=Bound`, `${v2}?where=none=1`],
      ...[
        `${v2}/history?metric=total,count&${times}`,
        `${v2}/history?metric=${chance.one(['cost', 'by_phase', 'x'])}&${times}`,
      ],
      ...[
        v1,
        `${v1}?sort_by=amount&sort_order=desc&page_size=1&page=2`,
        `${v1}?namespace=app-1&include_aggregations=false`,
      ],
    ]
  })
}
