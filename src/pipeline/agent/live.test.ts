import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { collectors } from '#collect'
import { type KubeClient, KubeError, type KubeObject, type Resource, type WatchOptions } from '#kube'
import { parseClusterName, type RowFeed, Table } from '#model'
import { capabilities } from '#wire'
import { Agent } from './agent.ts'
import { MemoryHub, type MemoryHubOptions } from './testing/memory-hub.ts'
import { VirtualTime } from './testing/virtual-time.ts'

const cluster = parseClusterName('west')
let directory = ''
let time = new VirtualTime(0)
const open: Agent[] = []

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'agent-live-'))
  time = new VirtualTime(Date.UTC(2026, 10, 1))
})
afterEach(async () => {
  for (const agent of open.splice(0)) await stopped(agent)
  await rm(directory, { recursive: true, force: true })
})

async function stopped(agent: Agent): Promise<void> {
  let isOver = false
  const stopping = agent.stop().finally(() => {
    isOver = true
  })
  while (!isOver) await time.advance(100, () => new Promise((resolve) => setImmediate(resolve)))
  await stopping
}

/** Pods in memory, which may be listed and watched. */
class Member {
  lists = 0
  refusesWatch = false
  readonly #pods = new Map<string, KubeObject>()
  readonly #watchers = new Set<(pod: KubeObject) => void>()

  put(name: string, phase: string): void {
    const pod = { metadata: { name, namespace: 'shop' }, spec: { nodeName: 'n1', containers: [] }, status: { phase } }
    this.#pods.set(name, pod)
    for (const tell of this.#watchers) tell(pod)
  }

  kube(): KubeClient {
    const member = this
    async function* list({ plural }: Resource) {
      if (plural === 'pods') member.lists++
      yield { items: plural === 'pods' ? [...member.#pods.values()] : [], resourceVersion: '1', next: '' }
    }
    async function* watch({ plural }: Resource, { signal, onOpen }: WatchOptions & { signal: AbortSignal }) {
      if (member.refusesWatch) throw new KubeError('forbidden', 'no watch for you')
      onOpen?.()
      const waiting: KubeObject[] = []
      let wake: () => void = () => undefined
      const tell = (pod: KubeObject) => {
        waiting.push(pod)
        wake()
      }
      if (plural === 'pods') member.#watchers.add(tell)
      signal.addEventListener('abort', () => wake())
      while (!signal.aborted) {
        for (const object of waiting.splice(0)) yield { type: 'modified', object }
        await new Promise<void>((resolve) => {
          wake = resolve
          if (waiting.length > 0 || signal.aborted) resolve()
        })
      }
      member.#watchers.delete(tell)
    }
    const serves = async ({ group }: Resource) => ['', 'apps'].includes(group)
    const version = async () => ({ gitVersion: 'v1.33.1', platform: 'linux/amd64' })
    const client = { endpoint: 'https://api', ping: async () => undefined, list, watch, serves, version }
    return client as unknown as KubeClient // the calls that rounds make
  }
}

async function settle(agent: Agent, hub: MemoryHub): Promise<void> {
  let same = 0
  for (let last = ''; same < 6; ) {
    await new Promise((resolve) => setImmediate(resolve))
    const { buffer, collection, uplink } = agent.status()
    const now = `${hub.arrivals.size} ${buffer.batches} ${collection.rounds} ${uplink.sentBytes} ${uplink.phase}`
    same = now === last && !agent.isBusy ? same + 1 : 0
    last = now
  }
}

async function aWorld(over: Partial<MemoryHubOptions> = {}) {
  const member = new Member()
  const hub = new MemoryHub({ cluster, now: () => time.now(), ...over })
  const kube = member.kube()
  const agent = await Agent.open({
    ...{ cluster, version: '1', transport: hub, directory, collectors, clock: time, monotonic: time.monotonic },
    token: () => Promise.resolve('secret'),
    kube: () => kube,
    plan: { intervalMs: 30_000, resources: ['pods'] },
    random: () => 0.5,
  })
  open.push(agent)
  const pass = (ms: number) => time.advance(ms, () => settle(agent, hub))
  const steps = () => [...hub.arrivals.values()].filter(({ batch }) => batch.partial)
  const podsOf = ({ view }: ReturnType<typeof steps>[number]) => view.tables?.get('pods')
  return { member, hub, agent, pass, steps, podsOf }
}

describe('an agent whose cluster moves', () => {
  it('tells it as a difference at once, without listing again, and keeps nothing of it on disk', async () => {
    const { member, pass, steps, podsOf, agent } = await aWorld()
    member.put('a', 'Pending')
    await pass(1_000)
    const before = steps().length
    member.put('a', 'Running')
    await pass(400)
    const [step, ...more] = steps().slice(before)
    expect(more).toEqual([])
    expect(step?.base).toBeGreaterThan(0)
    expect(step?.messageBytes).toBeLessThan(2_000)
    expect(step && podsOf(step)?.row(0).values.phase).toBe('Running')
    await pass(120_000)
    expect(member.lists).toBe(1)
    expect(agent.status().buffer.batches).toBe(0)
  })

  it('has one step on its way: what moves meanwhile is one more, however often', async () => {
    const { member, hub, pass, steps, podsOf } = await aWorld()
    member.put('a', 'Pending')
    await pass(1_000)
    const before = steps().length
    hub.onFrame = () => 'nothing'
    for (let i = 0; i < 50; i++) {
      member.put('a', i % 2 ? 'Running' : 'Pending')
      await pass(200)
    }
    expect(steps().length - before).toBeLessThanOrEqual(1)
    hub.onFrame = undefined
    member.put('a', 'Failed')
    await pass(200_000)
    const last = steps().at(-1)
    expect(last && podsOf(last)?.row(0).values.phase).toBe('Failed')
  })

  it('buffers rounds and no steps while nobody hears it; back again, a round says everything', async () => {
    const { member, hub, agent, pass, steps, podsOf } = await aWorld()
    member.put('a', 'Pending')
    await pass(1_000)
    hub.up = false
    hub.cut()
    await pass(1_000)
    const rounds = agent.status().collection.rounds
    for (let i = 0; i < 60; i++) {
      member.put('a', i % 2 ? 'Running' : 'Pending')
      await pass(5_000)
    }
    const { buffer, collection } = agent.status()
    expect(buffer.batches).toBeLessThanOrEqual(collection.rounds - rounds + 2)
    hub.up = true
    await pass(120_000)
    const last = steps().at(-1)
    expect(last && podsOf(last)?.row(0).values.phase).toBe('Running')
    expect(agent.status().buffer.batches).toBe(0)
    expect(member.lists).toBe(1)
  })

  it('tells a hub that takes no steps by rounds alone', async () => {
    const { member, pass, steps, podsOf } = await aWorld({
      capabilities: capabilities.filter((one) => one !== 'steps'),
    })
    member.put('a', 'Pending')
    await pass(1_000)
    const before = steps().length
    member.put('a', 'Running')
    await pass(5_000)
    expect(steps()).toHaveLength(before)
    await pass(30_000)
    const last = steps().at(-1)
    expect(last && podsOf(last)?.row(0).values.phase).toBe('Running')
  })

  it('whose role lacks watch reads on with every round, and says why', async () => {
    const { member, agent, pass, steps, podsOf } = await aWorld()
    member.refusesWatch = true
    member.put('a', 'Pending')
    await pass(1_000)
    expect(agent.status().polled).toContain('pods: the role lacks watch on pods')
    member.put('a', 'Running')
    await pass(31_000)
    const last = steps().at(-1)
    expect(last && podsOf(last)?.row(0).values.phase).toBe('Running')
    expect(member.lists).toBeGreaterThan(1)
  })
})

describe('rows that this process keeps', () => {
  const tableOf = (count: number): Table =>
    Table.of(
      ['kind'],
      Array.from({ length: count }, (_, i) => ({
        ...{ namespace: 'shop', name: `row-${String(i).padStart(5, '0')}`, labels: {} },
        values: { kind: 'Deployment' },
      })),
    )
  const told = (rows: Table) => ({ outcome: 'complete', rows, truncated: false, errors: [], errorCount: 0 }) as const

  async function aFedWorld(resources: readonly string[]) {
    let rows = tableOf(2000)
    let changed: () => void = () => undefined
    const feed: RowFeed = {
      source: 'inventory',
      read: () => told(rows),
      onChange(listener) {
        changed = listener
        return () => undefined
      },
    }
    const hub = new MemoryHub({ cluster, now: () => time.now() })
    const kube = new Member().kube()
    const agent = await Agent.open({
      ...{ cluster, version: '1', transport: hub, directory, collectors, clock: time, monotonic: time.monotonic },
      token: () => Promise.resolve('secret'),
      kube: () => kube,
      plan: { intervalMs: 30_000, resources },
      feeds: [feed],
      random: () => 0.5,
    })
    open.push(agent)
    const pass = (ms: number) => time.advance(ms, () => settle(agent, hub))
    const arrived = () =>
      [...hub.arrivals.values()].filter(({ batch }) => batch.tables?.some(({ source }) => source === 'inventory'))
    const put = (next: Table) => {
      rows = next
      changed()
    }
    return { hub, agent, pass, arrived, put, rows: () => rows }
  }

  it('come whole with the stream, then as differences, and nothing of them is kept on disk', async () => {
    const { pass, arrived, put, rows, agent } = await aFedWorld(['inventory'])
    await pass(2_000)
    expect(arrived().at(-1)?.view.tables?.get('inventory')?.size).toBe(2000)
    put(rows().patch(tableOf(2001), []))
    await pass(1_000)
    expect(arrived().at(-1)?.view.tables?.get('inventory')?.size).toBe(2001)
    expect(arrived().at(-1)?.messageBytes).toBeLessThan(2_000)
    expect(agent.status().buffer.batches).toBe(0)
  })

  it('wait for a hub that is away without a queue, and the difference arrives when it is back', async () => {
    const { hub, pass, arrived, put, rows, agent } = await aFedWorld(['inventory'])
    await pass(2_000)
    hub.up = false
    hub.cut()
    const before = arrived().length
    for (let i = 1; i <= 20; i++) {
      put(rows().patch(tableOf(2000 + i), []))
      await pass(1_000)
    }
    const { batches } = agent.status().buffer
    expect(batches).toBeLessThan(5) // rounds alone
    hub.up = true
    await pass(90_000)
    expect(arrived().length).toBeLessThan(before + 5)
    expect(arrived().at(-1)?.view.tables?.get('inventory')?.size).toBe(2020)
  })

  it('are told to no hub that does not ask for them', async () => {
    const { pass, arrived } = await aFedWorld(['pods'])
    await pass(200_000)
    expect(arrived()).toEqual([])
  })
})
