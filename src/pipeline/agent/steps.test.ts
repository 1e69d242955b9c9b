import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  type Batch,
  type ClusterState,
  missingFrom,
  type NodeSnapshot,
  parseClusterName,
  rangesOf,
  type Table,
} from '#model'
import { silentLogger } from '#runtime'
import { applyRecord } from '#state'
import { capabilities, encodeBody } from '#wire'
import { aBatch, aNode, complete, seen, sizes } from '../state/test/fleet-words.ts'
import { BatchBuffer } from './buffer.ts'
import { laneOf } from './sources.ts'
import { MemoryHub } from './testing/memory-hub.ts'
import { VirtualTime } from './testing/virtual-time.ts'
import { packed, Uplink } from './uplink.ts'

/*
 * The agent's end at random: rounds and steps go into the buffer and over streams that break, to hubs that can take steps or cannot,
 * that answer nothing or ask for the whole, across restarts of the agent.
 */
const cluster = parseClusterName('west')
const names = ['a', 'b', 'c']
const op = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('round' as const) }) },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('step' as const),
      node: fc.constantFrom(...names),
      cpuCores: fc.integer({ min: 1, max: 4 }),
      size: fc.option(fc.integer({ min: 0, max: 3 })),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('cut' as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('silent' as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('resync' as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('heard' as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('restart' as const) }) },
)

type Op = typeof op extends fc.Arbitrary<infer O> ? O : never

async function aWorld(directory: string, hub: MemoryHub, time: VirtualTime) {
  const clocks = { clock: time, monotonic: time.monotonic, logger: silentLogger }
  const open = async () => {
    const buffer = await BatchBuffer.open({ directory, ...clocks })
    const uplink = new Uplink({
      cluster,
      version: '1',
      transport: hub,
      buffer,
      token: () => Promise.resolve('secret'),
      planVersion: () => '',
      onPlan: () => undefined,
      onConfig: () => undefined,
      health: () => ({ uptimeMs: 0, lastCollectionMs: 0, rssBytes: 0 }),
      random: () => 0.5,
      ...clocks,
    })
    uplink.start()
    return { buffer, uplink }
  }
  let now = await open()
  const settle = async () => {
    for (let same = 0, last = ''; same < 4; ) {
      await new Promise((resolve) => setImmediate(resolve))
      const { batches, losses } = now.buffer.stats()
      const at = `${hub.arrivals.size} ${batches} ${losses} ${now.uplink.status().sentBytes} ${now.uplink.status().phase}`
      same = at === last && !now.buffer.isBusy ? same + 1 : 0
      last = at
    }
  }
  return {
    settle,
    pass: (ms: number) => time.advance(ms, settle),
    buffered: () => now.buffer.stats().batches + now.buffer.stats().losses,
    newest: () => now.buffer.newest,
    async keep(batch: Batch) {
      const lane = laneOf(batch)
      const stamp = time.monotonic.now()
      const body = packed(encodeBody(batch))
      const record = await now.buffer.append({
        collectedAt: batch.collectedAt,
        stamp,
        ...body,
        ...(lane > 0 && { lane }),
      })
      now.uplink.collected({ ...batch, origin: now.buffer.origin, sequence: record.sequence }, record)
    },
    async stop() {
      let isOver = false
      const stopping = now.uplink.stop().finally(() => {
        isOver = true
      })
      while (!isOver) await time.advance(100, () => new Promise((resolve) => setImmediate(resolve)))
      await stopping
      await now.buffer[Symbol.asyncDispose]()
    },
    async restart() {
      await this.stop()
      now = await open()
    },
  }
}

async function isTold(ops: readonly Op[], canStep: boolean): Promise<number> {
  const directory = await mkdtemp(join(tmpdir(), 'agent-steps-'))
  const time = new VirtualTime(Date.UTC(2026, 10, 1))
  const hub = new MemoryHub({
    cluster,
    now: () => time.now(),
    capabilities: capabilities.filter((one) => canStep || one !== 'steps'),
  })
  const world = await aWorld(directory, hub, time)
  let nodes = new Map<string, NodeSnapshot>(names.map((name) => [name, aNode(name)]))
  let rows: Table = sizes({ x: 0 })
  const batch = (partial: boolean): Batch => ({
    ...aBatch(cluster, 0, [complete('node', ...nodes.values())], { tables: [seen(rows)], ...(partial && { partial }) }),
    collectedAt: time.now(),
    source: 'push',
  })
  const rounds: number[] = []
  const round = async () => {
    rounds.push(time.now())
    await world.keep(batch(false))
  }
  try {
    await world.pass(1_000)
    await round()
    for (const one of ops) {
      if (one.kind === 'cut') hub.cut()
      else if (one.kind === 'restart') await world.restart()
      else if (one.kind === 'silent') hub.onFrame = () => 'nothing'
      else if (one.kind === 'heard') hub.onFrame = undefined
      else if (one.kind === 'resync') {
        let left = 2
        hub.onFrame = () => (left-- > 0 ? 'resync' : undefined)
      } else if (one.kind === 'round') await round()
      else {
        nodes = new Map(nodes).set(
          one.node,
          aNode(one.node, { capacity: { ...aNode('').capacity, cpuCores: one.cpuCores } }),
        )
        if (one.size !== null) rows = rows.patch(sizes({ x: one.size }), [])
        await world.keep(batch(true))
      }
      await world.pass(700)
    }
    hub.onFrame = undefined
    // A hub that takes no steps has the rest by the next round.
    if (!canStep) await round()
    for (let tries = 0; world.buffered() > 0 && tries < 60; tries++) await world.pass(10_000)
    expect(world.buffered()).toBe(0)
    expect(missingFrom(rangesOf(hub.received), [1, world.newest()])).toEqual([])
    let state: ClusterState | undefined
    let steps = 0
    for (const { batch: told } of hub.arrivals.values()) {
      state = applyRecord(state, { kind: 'batch', batch: told, receivedAt: time.now() }, (state?.version ?? 0) + 1).next
      if (told.partial && told.parts.length > 0) steps++
    }
    if (!canStep) expect(steps).toBe(0)
    expect(state?.parts.node?.items).toEqual(nodes)
    expect(state?.tables.get('team/sizes')?.rows.equals(rows)).toBe(true)
    const times = [...hub.arrivals.values()]
      .filter(({ batch: told }) => !told.partial)
      .map(({ batch: told }) => told.collectedAt)
    for (const at of rounds) expect(times).toContain(at)
    return steps
  } finally {
    await world.stop()
    await rm(directory, { recursive: true, force: true })
  }
}

describe('rounds and steps of an agent at random', () => {
  it.each([
    ['takes steps', true],
    ['takes none', false],
  ])(
    'come to a hub that %s: its state is what the agent saw, no number is missing, and every round is there',
    async (_, canStep) => {
      let steps = 0
      await fc.assert(
        fc.asyncProperty(fc.array(op, { minLength: 3, maxLength: 14 }), async (ops) => {
          steps += await isTold(ops, canStep)
        }),
        { numRuns: 25 },
      )
      expect(steps > 25).toBe(canStep)
    },
  )
})
