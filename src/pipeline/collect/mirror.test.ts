import fc from 'fast-check'
import { afterEach, describe, expect, it } from 'vitest'
import { type ApiObject, ApiServer, listenApi } from '#apiserver'
import { createKubeClient, type KubeClient, KubeError, type KubeObject, type Resource, type WatchOptions } from '#kube'
import { type Batch, type ClusterState, parseClusterName, systemClock } from '#model'
import { resources } from '#resources'
import { silentLogger } from '#runtime'
import { applyRecord } from '#state'
import { until } from '../../platform/kube/testing/scripted-server.ts'
import { VirtualTime } from '../agent/testing/virtual-time.ts'
import { collectors } from './index.ts'
import type { Relisting } from './mirror.ts'
import { Rounds } from './rounds.ts'
import { fakeCluster } from './testing/fake-cluster.ts'
import { WatchBudget } from './watch-budget.ts'

const cluster = parseClusterName('west')
const times = { intervalMs: 30_000, timeoutMs: 10_000, operatorScanIntervalMs: 300_000 }
const rows = resources.flatMap(({ collector }) => collector ?? [])
const never = new AbortController().signal
const settled = async () => {
  for (let i = 0; i < 12; i++) await new Promise((resolve) => setImmediate(resolve))
}
const closing: AsyncDisposable[] = []
afterEach(async () => {
  for (const one of closing.splice(0).reverse()) await one[Symbol.asyncDispose]()
})

/** What a test holds up until it resolves it, or is over. */
function aGate() {
  let resolve = () => {}
  const promise = new Promise<void>((open) => {
    resolve = open
  })
  closing.push({ [Symbol.asyncDispose]: async () => resolve() })
  return { promise, resolve }
}

/** Where batches go: the state a hub would make of them. */
class Hub {
  readonly steps: Batch[] = []
  state: ClusterState | undefined
  #sequence = 0

  take(batch: Batch): void {
    const numbered = { ...batch, sequence: ++this.#sequence }
    this.state = applyRecord(
      this.state,
      { kind: 'batch', batch: numbered, receivedAt: batch.collectedAt },
      this.#sequence,
    ).next
  }

  rowsOf = (kind: string) => this.state?.tables.get(kind)?.rows
  node = (name: string) => this.state?.parts.node?.items.get(name)
}

/** A cluster whose lists and watches are counted, and whose watches a test may spoil. */
function counted(kube: KubeClient) {
  const lists: string[] = []
  const watches: string[] = []
  const world = {
    lists,
    watches,
    spoil: undefined as
      | ((plural: string, options: WatchOptions & { signal: AbortSignal }) => Promise<void>)
      | undefined,
    kube: {
      endpoint: kube.endpoint,
      ping: (signal?: AbortSignal) => kube.ping(signal),
      version: (signal?: AbortSignal) => kube.version(signal),
      get: kube.get.bind(kube),
      serves: kube.serves.bind(kube),
      find: kube.find?.bind(kube),
      list: (resource: Resource<unknown>, options: object) => {
        lists.push(resource.group === 'metrics.k8s.io' ? `metrics/${resource.plural}` : resource.plural)
        return kube.list(resource, options)
      },
      async *watch(resource: Resource<unknown>, options: WatchOptions & { signal: AbortSignal }) {
        watches.push(resource.plural)
        await world.spoil?.(resource.plural, options)
        yield* kube.watch(resource, options)
      },
    } as unknown as KubeClient, // the calls that rounds make
  }
  return world
}

async function served() {
  const server = await ApiServer.open({ storage: { kind: 'memory' } })
  const listener = await listenApi({
    tokens: [{ token: 't', user: 'u', groups: ['system:masters'] }],
    mounts: new Map([['', server]]),
  })
  const credentials = { kind: 'token', token: 't' } as const
  const client = createKubeClient({ server: listener.url, ca: listener.caPem, verifyTls: true, credentials })
  closing.push(server, listener, client)
  await server.objects.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } })
  const put = (object: object) => server.objects.put(object as ApiObject)
  const remove = (plural: string, name: string, namespace?: string) =>
    server.objects.delete({ group: '', version: 'v1', plural }, { name, ...(namespace && { namespace }) })
  return { ...counted(client), put, remove, server }
}

const aNode = (name: string, ready = 'True') => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name },
  status: { conditions: [{ type: 'Ready', status: ready }], allocatable: { cpu: '4' }, capacity: { cpu: '4' } },
})
const aPod = (name: string, over: { readonly node?: string; readonly phase?: string; readonly cpu?: string } = {}) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: 'shop' },
  spec: {
    nodeName: over.node ?? 'n1',
    containers: [{ name: 'a', image: 'a', resources: { requests: { cpu: over.cpu ?? '250m' } } }],
  },
  status: { phase: over.phase ?? 'Running' },
})

function aReader(
  kube: KubeClient,
  over: { readonly budget?: WatchBudget; readonly clock?: VirtualTime; readonly relisting?: Relisting } = {},
) {
  const hub = new Hub()
  const clock = over.clock ?? systemClock
  const watches = over.budget ?? new WatchBudget()
  const onStep = async (step: Batch) => {
    hub.steps.push(step)
    hub.take(step)
  }
  const rounds = new Rounds({
    cluster,
    source: 'pull',
    collectors,
    clock,
    logger: silentLogger,
    live: { onStep, watches, ...(over.relisting && { relisting: over.relisting }) },
  })
  closing.push({ [Symbol.asyncDispose]: () => rounds.leave() })
  let count = 0
  const round = async (client = kube) => {
    const at = 30_000 * count++
    const batch = await rounds.collect({ kube: client, times, rows, at, signal: never })
    const { tables, ...rest } = batch
    hub.take(rest)
    if (tables) hub.take({ ...rest, parts: [], tables, partial: true })
    rounds.kept(batch, at)
    rounds.handedIn()
    return batch
  }
  return { hub, rounds, round, watches }
}

describe('what is followed', () => {
  it('is listed once: later rounds say it all, and read only what cannot be watched', async () => {
    const { kube, lists, put } = await served()
    await put(aNode('n1'))
    await put(aPod('a'))
    const { round } = aReader(kube)
    await round()
    expect(lists.toSorted()).toEqual([...new Set(lists)].toSorted())
    expect(lists).toContain('pods')
    const before = lists.length
    const second = await round()
    expect(lists.slice(before).filter((plural) => !plural.startsWith('metrics/'))).toEqual([])
    expect(second.failure).toBeUndefined()
    expect(Object.fromEntries(second.parts.map(({ type, outcome }) => [type, outcome]))).toMatchObject({
      ...{ node: 'complete', podSummary: 'complete', namespace: 'complete', deployment: 'complete' },
    })
    const pods = second.tables?.find(({ source }) => source === 'pods')
    expect(pods?.outcome === 'complete' && pods.rows.size).toBe(1)
  })

  it('becomes a step when it moves, which says that and nothing else', async () => {
    const { kube, put, remove } = await served()
    await put(aNode('n1'))
    await put(aPod('a'))
    await put(aPod('b'))
    const { hub, round } = aReader(kube)
    await round()
    expect(hub.node('n1')).toMatchObject({ ready: 'ready', pods: { total: 2 }, requested: { cpuCores: 0.5 } })
    await put(aNode('n1', 'False'))
    await until(() => hub.node('n1')?.ready === 'notReady')
    expect(hub.state?.status.health).toBe('unhealthy')
    expect(hub.steps.every(({ partial, failure }) => partial && !failure)).toBe(true)
    expect(hub.steps.flatMap(({ parts }) => parts.map(({ type }) => type))).toEqual(['node'])
    hub.steps.length = 0
    await put(aPod('c', { cpu: '1' }))
    await until(() => hub.rowsOf('pods')?.size === 3 && hub.node('n1')?.pods?.total === 3)
    expect(hub.node('n1')).toMatchObject({ requested: { cpuCores: 1.5 } })
    await remove('pods', 'a', 'shop')
    await until(() => hub.rowsOf('pods')?.size === 2)
    await until(() => hub.node('n1')?.pods?.total === 2)
    const told = hub.steps.flatMap(({ parts, tables = [] }) => [
      ...parts.map(({ type }) => type),
      ...tables.map(({ source }) => source),
    ])
    expect(new Set(told)).toEqual(new Set(['node', 'podSummary', 'pods']))
  })

  it('is in a round as the last step said it, however long the round waits for something else', async () => {
    const { kube, put } = await served()
    await put(aNode('n1'))
    await put(aPod('a'))
    let waits: Promise<void> | undefined
    const version = async (signal?: AbortSignal) => {
      await waits
      return kube.version(signal)
    }
    const { hub, round } = aReader({ ...kube, version } as unknown as KubeClient)
    await round()
    const { promise, resolve } = aGate()
    waits = promise
    const going = round()
    await settled()
    await put(aPod('b'))
    await until(() => hub.rowsOf('pods')?.size === 2)
    resolve()
    const { tables } = await going
    const pods = tables?.find(({ source }) => source === 'pods')
    expect(pods?.outcome === 'complete' && pods.rows.size).toBe(2)
    expect(hub.rowsOf('pods')?.size).toBe(2)
  })

  it('is no step where nothing of it is kept', async () => {
    const { kube, put } = await served()
    await put(aNode('n1'))
    await put(aPod('a'))
    const { hub, round } = aReader(kube)
    await round()
    await put({ ...aPod('a'), metadata: { name: 'a', namespace: 'shop', annotations: { seen: 'often' } } })
    await put(aPod('b'))
    await until(() => hub.rowsOf('pods')?.size === 2)
    expect(hub.steps.filter(({ tables = [] }) => tables.length > 0)).toHaveLength(1)
  })

  it('comes to what a list says, whatever came, changed and went', async () => {
    const { kube, put, remove } = await served()
    const { hub, round } = aReader(kube)
    await put(aNode('n1'))
    await put(aPod('last'))
    await round()
    const change = fc.record({
      name: fc.constantFrom('a', 'b', 'c', 'd'),
      node: fc.constantFrom('n1', 'n2', ''),
      phase: fc.constantFrom('Running', 'Pending', 'Failed', 'Succeeded'),
      cpu: fc.constantFrom('100m', '2', 'lots'),
      isGone: fc.boolean(),
      isNode: fc.boolean(),
    })
    let marks = 0
    await fc.assert(
      fc.asyncProperty(fc.array(change, { maxLength: 25 }), async (changes) => {
        for (const { name, isGone, isNode, ...over } of changes) {
          if (isGone) await remove(isNode ? 'nodes' : 'pods', name, isNode ? undefined : 'shop').catch(() => undefined)
          else await put(isNode ? aNode(name, over.phase === 'Running' ? 'True' : 'False') : aPod(name, over))
        }
        // What comes last in each list is there: all before it is.
        const mark = `mark${++marks}`
        await put(aPod(mark))
        await put(aNode(mark))
        await until(() => (hub.rowsOf('pods')?.indexOf('shop', mark) ?? -1) >= 0 && hub.node(mark)?.pods)
        const fresh = aReader(kube)
        await fresh.round()
        await until(
          () =>
            JSON.stringify(hub.state?.parts.podSummary?.items.get('pods')) ===
            JSON.stringify(fresh.hub.state?.parts.podSummary?.items.get('pods')),
        )
        const byName = ({ state }: Hub) =>
          new Map([...(state?.parts.node?.items ?? [])].sort(([a], [b]) => (a < b ? -1 : 1)))
        expect(byName(hub)).toEqual(byName(fresh.hub))
        const pods = fresh.hub.rowsOf('pods')
        expect(pods && hub.rowsOf('pods')?.equals(pods)).toBe(true)
        expect(hub.state?.tables.get('pods')?.aggregations).toEqual(fresh.hub.state?.tables.get('pods')?.aggregations)
        await fresh.rounds.leave()
      }),
      { numRuns: 8 },
    )
  })

  it('is kept while a kind of row comes later: its list is read once more, for all', async () => {
    const { kube, lists, put } = await served()
    await put(aPod('a'))
    const hub = new Hub()
    const rounds = new Rounds({
      ...{ cluster, source: 'pull', collectors, logger: silentLogger },
      live: { onStep: async (step) => hub.take(step), watches: new WatchBudget() },
    })
    closing.push({ [Symbol.asyncDispose]: () => rounds.leave() })
    const round = (some: typeof rows) => rounds.collect({ kube, times, rows: some, at: Date.now(), signal: never })
    await round([])
    rounds.handedIn()
    const second = await round(rows)
    rounds.handedIn()
    expect(lists.filter((plural) => plural === 'pods')).toHaveLength(2)
    expect(lists.filter((plural) => plural === 'nodes')).toHaveLength(1)
    expect(second.parts.find(({ type }) => type === 'podSummary')).toMatchObject({ items: [{ counts: { total: 1 } }] })
  })
})

describe('what moves', () => {
  it('after a quiet time is told at once, and what follows soon is gathered', async () => {
    const time = new VirtualTime(1_000_000)
    const { kube, put } = await served()
    let arrived = 0
    const watch = async function* (resource: Resource<unknown>, options: WatchOptions & { signal: AbortSignal }) {
      for await (const event of kube.watch(resource, options)) {
        yield event
        arrived += 1 // it was taken
      }
    }
    const { round, hub } = aReader({ ...kube, watch } as unknown as KubeClient, { clock: time })
    await round()
    await time.advance(5_000, settled)
    const move = async (name: string) => {
      const before = arrived
      await put(aPod(name))
      await until(() => arrived > before)
      await settled()
    }
    const told = hub.steps.length
    await move('a')
    await time.advance(20, settled)
    expect(hub.steps.length).toBe(told + 1)
    await move('b')
    await move('c')
    await time.advance(50, settled)
    expect(hub.steps.length).toBe(told + 1)
    await time.advance(60, settled)
    expect(hub.steps.length).toBe(told + 2)
    expect(hub.rowsOf('pods')?.size).toBe(3)
  })
})

const aNamespace = (name: string) => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } })

/** A cluster that may be listed and not watched, and whose lists a test may hold up. */
function unwatchable() {
  const time = new VirtualTime(1_000_000)
  const objects: Record<string, readonly KubeObject[] | KubeError> = {
    nodes: [aNode('n1')],
    pods: [aPod('a')],
    namespaces: [aNamespace('shop')],
    deployments: [],
  }
  let held: { readonly plural: string; readonly until: Promise<void> } | undefined
  const onPage = (plural: string) => {
    const waiting = held?.plural === plural ? held.until : undefined
    held = waiting ? undefined : held
    return waiting
  }
  const world = counted(fakeCluster({ objects, onPage }))
  world.spoil = () => Promise.reject(new KubeError('forbidden', 'no watch for you'))
  return {
    ...{ kube: world.kube, lists: world.lists, time, objects },
    /** The next list of these waits. @returns lets it go on */
    hold(plural: string): () => void {
      let go: (() => void) | undefined
      const until = new Promise<void>((resolve) => {
        go = resolve
      })
      held = { plural, until }
      return () => go?.()
    },
  }
}

const relisting: Relisting = { everyMs: 1000, resources: ['nodes', 'namespaces', 'pods'] }

describe('a watch that is no good', () => {
  it('for want of the right: the read is polled with every round, which says why, and is tried again when roles may be mended', async () => {
    const time = new VirtualTime(1_000_000)
    const world = counted(fakeCluster({ objects: { nodes: [], pods: [], namespaces: [], deployments: [] } }))
    world.spoil = async (plural, { signal, onOpen }) => {
      if (plural === 'pods') throw new KubeError('forbidden', 'no watch for you')
      onOpen?.()
      await time.sleep(1e9, signal)
    }
    const { round, rounds } = aReader(world.kube, { clock: time })
    for (let i = 0; i < 3; i++) {
      await round()
      await time.advance(30_000, settled)
    }
    expect(world.lists.filter((plural) => plural === 'pods')).toHaveLength(3)
    expect(world.lists.filter((plural) => plural === 'nodes')).toHaveLength(1)
    expect(rounds.polled()).toEqual(['pods: the role lacks watch on pods'])
    expect(world.watches.filter((plural) => plural === 'pods')).toHaveLength(1)
    await time.advance(300_000, settled)
    await round()
    await settled()
    expect(world.watches.filter((plural) => plural === 'pods')).toHaveLength(2)
  })

  it('for want of the right: where it is to be listed between rounds, what moved is a step at the next tick', async () => {
    const { kube, time, objects, lists } = unwatchable()
    const { hub, round, rounds } = aReader(kube, { clock: time, relisting })
    await round()
    await settled()
    expect(rounds.polled()).toContain('pods: the role lacks watch on pods')
    const tick = async () => {
      const before = lists.length
      await time.advance(1000, settled)
      return lists.slice(before).toSorted()
    }
    expect(await tick()).toEqual(['namespaces', 'nodes', 'pods'])
    expect(hub.steps).toEqual([])
    objects.nodes = [aNode('n1', 'False'), aNode('n2')]
    objects.pods = [aPod('a', { node: 'n2' }), aPod('b')]
    objects.namespaces = [{ ...aNamespace('shop'), metadata: { name: 'shop', labels: { 'user-id': 'me' } } }]
    await tick()
    await time.advance(200, settled)
    expect(hub.node('n1')?.ready).toBe('notReady')
    expect(hub.rowsOf('pods')?.size).toBe(2)
    expect(hub.state?.parts.namespace?.items.get('shop')?.labels).toEqual({ 'user-id': 'me' })
    objects.nodes = [aNode('n2')]
    await tick()
    await time.advance(200, settled)
    expect(hub.node('n1')).toBeUndefined()
    const told = hub.steps.length
    await tick()
    await time.advance(200, settled)
    expect(hub.steps).toHaveLength(told)
    await rounds.leave()
    expect(await tick()).toEqual([])
  })

  it('for want of the right: a list that takes longer than a tick is alone, and one that a round begins takes its place', async () => {
    const { kube, time, objects, lists, hold } = unwatchable()
    const { hub, round } = aReader(kube, { clock: time, relisting })
    await round()
    await settled()
    const pods = () => lists.filter((plural) => plural === 'pods').length
    const before = pods()
    const go = hold('pods')
    await time.advance(5000, settled)
    expect(pods()).toBe(before + 1)
    objects.pods = [aPod('a'), aPod('b')]
    await round()
    expect(hub.rowsOf('pods')?.size).toBe(2)
    go()
    await time.advance(300, settled)
    expect(hub.rowsOf('pods')?.size).toBe(2)
    await time.advance(1000, settled)
    expect(pods()).toBe(before + 3)
  })

  it('for want of the right: a list between rounds that fails takes nothing away, and the next one goes on', async () => {
    const { kube, time, objects } = unwatchable()
    const { hub, round } = aReader(kube, { clock: time, relisting })
    await round()
    await settled()
    Object.assign(objects, { pods: new KubeError('server', 'it failed'), nodes: [aNode('n1', 'False')] })
    await time.advance(1200, settled)
    expect([hub.rowsOf('pods')?.size, hub.node('n1')?.ready]).toEqual([1, 'notReady'])
    objects.pods = [aPod('a'), aPod('b')]
    await time.advance(1200, settled)
    expect(hub.rowsOf('pods')?.size).toBe(2)
  })

  it('whose version is gone again and again: it is listed once a minute at most, and what is known keeps its age meanwhile', async () => {
    const time = new VirtualTime(1_000_000)
    const world = counted(fakeCluster({ objects: { nodes: [], pods: [], namespaces: [], deployments: [] } }))
    world.spoil = async (plural, { signal, onOpen }) => {
      if (plural === 'pods') throw new KubeError('expired', 'too old')
      onOpen?.()
      await time.sleep(1e9, signal)
    }
    const { round } = aReader(world.kube, { clock: time })
    let parts: readonly string[] = []
    for (let i = 0; i < 20; i++) {
      parts = (await round()).parts.map(({ type }) => type)
      await time.advance(30_000, settled)
    }
    expect(world.lists.filter((plural) => plural === 'pods').length).toBeLessThanOrEqual(11)
    expect(world.lists.filter((plural) => plural === 'pods').length).toBeGreaterThanOrEqual(8)
    expect(parts).toContain('namespace')
  })

  it('whose version is gone while a round is made: half of the list that is read anew is told by nobody', async () => {
    const time = new VirtualTime(1_000_000)
    const pods = Array.from({ length: 6 }, (_, i) => aPod(`p${i}`))
    let page: Promise<void> | undefined
    const world = counted(
      fakeCluster({
        objects: { nodes: [aNode('n1')], pods, namespaces: [], deployments: [] },
        onPage: (plural, at) => (plural === 'pods' && at === 1 ? page : undefined),
      }),
    )
    let isAway = false
    const end = aGate()
    world.spoil = async (plural, { signal, onOpen, onTrouble, pause }) => {
      onOpen?.()
      if (plural !== 'pods') return time.sleep(1e9, signal)
      while (!isAway) await time.sleep(1000, signal)
      onTrouble?.(new KubeError('unreachable', 'nobody answers'))
      await pause?.(1e9, signal)
      // Taken again, and ended soon: by a server whose cache is younger.
      onOpen?.()
      await end.promise
      throw new KubeError('expired', 'too old')
    }
    let waits: Promise<void> | undefined
    const kube = { ...world.kube, version: () => Promise.resolve(waits).then(() => world.kube.version()) }
    const { hub, round } = aReader(kube as KubeClient, { clock: time })
    await round()
    expect(hub.rowsOf('pods')?.size).toBe(6)
    isAway = true
    await time.advance(70_000, settled)
    const [page1, version] = [aGate(), aGate()]
    ;[page, waits] = [page1.promise, version.promise]
    const going = round()
    await settled()
    end.resolve()
    await time.advance(10, settled)
    expect(world.lists.filter((plural) => plural === 'pods')).toHaveLength(2)
    version.resolve()
    expect((await going).parts.map(({ type }) => type)).toContain('namespace')
    expect([hub.rowsOf('pods')?.size, hub.node('n1')?.pods?.total]).toEqual([6, 6])
    page1.resolve()
    await time.advance(1000, settled)
    expect([hub.rowsOf('pods')?.size, hub.node('n1')?.pods?.total]).toEqual([6, 6])
  })

  it('because the cluster is away for a minute: nothing begins anew, and nothing is listed when it is back', async () => {
    const time = new VirtualTime(1_000_000)
    const world = counted(fakeCluster({ objects: { nodes: [], pods: [], namespaces: [], deployments: [] } }))
    let isAway = false
    const watch = async function* (resource: Resource<unknown>, options: WatchOptions & { signal: AbortSignal }) {
      world.watches.push(resource.plural)
      yield* [] as never[]
      let isOpen = false
      while (!options.signal.aborted) {
        if (isAway) {
          isOpen = false
          options.onTrouble?.(new KubeError('unreachable', 'nobody answers'))
          await options.pause?.(30_000, options.signal)
        } else {
          if (!isOpen) options.onOpen?.()
          isOpen = true
          await time.sleep(500, options.signal)
        }
      }
    }
    const kube = { ...world.kube, watch } as unknown as KubeClient
    const { round, rounds } = aReader(kube, { clock: time })
    await round()
    await time.advance(1_000, settled)
    const before = [world.lists.length, world.watches.length]
    isAway = true
    await time.advance(5_000, settled)
    const during = round()
    await time.advance(6_000, settled)
    // It answered the test of the connection, and no watch goes on: what would be of before is left out.
    expect((await during).parts.map(({ type }) => type)).toEqual(['cluster', 'clusterOperator'])
    await time.advance(49_000, settled)
    isAway = false
    const back = round()
    await time.advance(6_000, settled)
    expect((await back).parts.map(({ type }) => type)).toContain('node')
    const lists = world.lists.slice(before[0]).filter((plural) => !plural.startsWith('metrics/'))
    expect([lists, world.watches.length]).toEqual([[], before[1]])
    expect(rounds.polled()).toEqual([])
  })

  it('because its list fails: the next round names it and tells the rest, and follows it again when that is over', async () => {
    const time = new VirtualTime(1_000_000)
    const fake = fakeCluster({ objects: { nodes: [], pods: [], namespaces: [], deployments: [] } })
    const world = counted(fake)
    let trouble: KubeError | undefined
    const opened: string[] = []
    const watch = async function* (resource: Resource<unknown>, options: WatchOptions & { signal: AbortSignal }) {
      yield* [] as never[]
      let isOpen = false
      while (!options.signal.aborted) {
        if (trouble && resource.plural === 'deployments') {
          isOpen = false
          options.onTrouble?.(trouble)
          await options.pause?.(30_000, options.signal)
        } else {
          if (!isOpen) opened.push(resource.plural)
          if (!isOpen) options.onOpen?.()
          isOpen = true
          await time.sleep(500, options.signal)
        }
      }
    }
    const list = async function* (resource: Resource<unknown>, options: object) {
      if (trouble && resource.plural === 'deployments') throw trouble
      yield* world.kube.list(resource, options)
    }
    const { round, rounds } = aReader({ ...world.kube, watch, list } as unknown as KubeClient, { clock: time })
    await round()
    await time.advance(1_000, settled)
    trouble = new KubeError('server', 'GET /apis/apps/v1/deployments: the cluster failed (500)')
    await time.advance(1_000, settled)
    const during = round()
    await time.advance(100, settled)
    expect((await during).parts).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ type: 'deployment', outcome: 'unreachable', message: trouble.message }),
        expect.objectContaining({ type: 'namespace', outcome: 'complete' }),
      ]),
    )
    expect(rounds.polled()).toEqual([`deployments.apps: its watch cannot be opened: ${trouble.message}`])
    trouble = undefined
    await time.advance(30_000, settled)
    const back = await round()
    await time.advance(1_000, settled)
    expect(back.parts).toContainEqual(expect.objectContaining({ type: 'deployment', outcome: 'complete' }))
    expect(rounds.polled()).toEqual([])
    expect(opened.filter((plural) => plural === 'deployments')).toHaveLength(2)
  })

  it('of our own closed client says nothing of the cluster, and the next client reads anew', async () => {
    const { kube, lists, put, ...world } = await served()
    await put(aPod('a'))
    const { round, rounds, hub } = aReader(kube)
    world.spoil = async () => undefined
    await round()
    const other = counted(kube)
    await round(other.kube)
    expect(other.lists).toContain('pods')
    await put(aPod('b'))
    await until(() => hub.rowsOf('pods')?.size === 2)
    expect(rounds.polled()).toEqual([])
    expect(lists.length).toBeGreaterThan(other.lists.length)
  })

  it('for one too many of them: what is beyond is polled, and says so; what ends makes room', async () => {
    const { kube, put } = await served()
    await put(aPod('a'))
    const budget = new WatchBudget(2)
    const first = aReader(kube, { budget })
    await first.round()
    expect(budget.taken).toBe(2)
    expect(first.rounds.polled().length).toBeGreaterThan(3)
    expect(first.rounds.polled()).toContainEqual(
      expect.stringMatching(/^namespaces: 2 watches are open, which is as many as MAX_WATCHES lets one process have$/),
    )
    await first.rounds.leave()
    expect(budget.taken).toBe(0)
  })

  it('too early: while the first rounds of a fleet are made everything is polled, and the next round follows it', async () => {
    const { kube, put } = await served()
    await put(aPod('a'))
    const budget = new WatchBudget()
    budget.hold()
    const { round, rounds } = aReader(kube, { budget })
    await round()
    expect([budget.taken, rounds.polled()]).toEqual([0, []])
    budget.release()
    await round()
    expect(budget.taken).toBeGreaterThan(2)
  })
})
