import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type NumberedChange, openEvents } from '#events'
import { samplesOf } from '#history'
import type { Part } from '#model'
import { openLog } from '#runtime'
import { openState, RedisMirror } from '#state'
import { aBatch, aNode, anAgent, complete, east, facts, west } from '../state/test/fleet-words.ts'
import { eventually, redisMissing, startRedis, type TestRedis } from '../state/test/redis-server.ts'
import { Ingester } from './ingester.ts'
import { FileHistory } from './test/file-history.ts'

// The two roles of a hub that scale apart: `manager` writes, `api` follows, Redis between them.
describe.skipIf(redisMissing)(`manager and api${redisMissing ? ` (skipped: ${redisMissing})` : ''}`, () => {
  let server: TestRedis
  let directory: string
  beforeAll(async () => {
    server = await startRedis()
    directory = await mkdtemp(join(tmpdir(), 'follow-'))
  })
  afterAll(async () => {
    await server[Symbol.asyncDispose]()
    await rm(directory, { recursive: true, force: true })
  })

  it('brings an accepted batch to the other process as numbered changes, over a Redis that was killed in between', async () => {
    await using log = await openLog({ directory })
    await using state = await openState({ kind: 'redis', connection: server, logId: log.id, checkEveryMs: 50 })
    await using managerEvents = openEvents({ kind: 'in-process' })
    await using ingester = await Ingester.open({ log, state, events: managerEvents, random: () => 0.1 })
    await ingester.connect(west, facts())
    await ingester.flushed()

    await using mirror = new RedisMirror({ connection: server, waitMs: 50, random: () => 0.1 })
    await using apiEvents = openEvents({ kind: 'follow', source: mirror })
    await eventually('the mirror has loaded', () => mirror.availability().state === 'available')
    const seen: NumberedChange[] = []
    apiEvents.subscribe((events) => seen.push(...events))
    const rows = () => seen.flatMap(({ change }) => (change.kind === 'snapshot' ? [`${change.op} ${change.name}`] : []))

    await ingester.accept({ batch: aBatch(west, 1, [complete('node', aNode('n1'))]) })
    await eventually('the change arrived', () => rows().includes('put n1'))

    await server.kill()
    // Redis is away: batches are acknowledged all the same.
    await ingester.accept({ batch: aBatch(west, 2, [complete('node', aNode('n2'))]) })
    await eventually('both noticed', () => [state, mirror].every((one) => one.availability().state === 'unavailable'))
    expect(mirror.cluster('west')?.parts.node?.items.has('n1')).toBe(true)
    await server.start()
    await ingester.flushed()
    await eventually(
      'the mirror is there again',
      () => mirror.cluster('west')?.sequence === 2 && mirror.availability().state === 'available',
    )
    expect(rows()).toEqual(['put n1', 'put n2', 'remove n1'])
  })

  it('converges over pushes and differences while Redis vanishes and comes back empty', async () => {
    await using log = await openLog({ directory: join(directory, 'pushes') })
    await using state = await openState({ kind: 'redis', connection: server, logId: log.id, checkEveryMs: 50 })
    await using history = await FileHistory.open(join(directory, 'history'))
    await using events = openEvents({ kind: 'in-process' })
    await using ingester = await Ingester.open({ log, state, events, history, random: () => 0.1 })
    await using mirror = new RedisMirror({ connection: server, waitMs: 50, random: () => 0.1 })
    await ingester.connect(east, facts({ mode: 'push' }))
    const names = (sequence: number) => [`n${sequence - (sequence % 3)}`, `n${sequence}`]
    const nodes = (sequence: number) => new Map(names(sequence).map((name) => [name, aNode(name)]))
    const push = async (sequence: number, isWhole: boolean) => {
      const [old, now] = [nodes(sequence - 1), nodes(sequence)]
      const part: Part = isWhole
        ? complete('node', ...now.values())
        : {
            type: 'node',
            collector: 'nodes',
            durationMs: 1,
            outcome: 'changed',
            put: [...now.values()].filter(({ name }) => !old.has(name)),
            removed: [...old.keys()].filter((name) => !now.has(name)),
          }
      const base = isWhole ? {} : { base: sequence - 1 }
      const batch = aBatch(east, sequence, [part], { origin: 'a', source: 'push', ...base })
      await ingester.accept({ batch, samples: samplesOf(batch, { node: now }) })
      await ingester.agent(east, anAgent({ heartbeatAt: batch.collectedAt }))
    }
    for (let sequence = 1; sequence <= 60; sequence++) {
      if (sequence === 20 || sequence === 45) await server.kill()
      if (sequence === 35 || sequence === 50) await server.start()
      await push(sequence, sequence === 1)
    }
    await ingester.flushed()
    await ingester.flushed('history')
    const expected = [...nodes(60).keys()]
    await eventually('the mirror is there', () => mirror.cluster('east')?.sequence === 60)
    await using again = await openState({ kind: 'redis', connection: server, logId: log.id })
    for (const reader of [state, mirror, again]) {
      const known = reader.cluster('east')
      expect([known?.origin, known?.sequence, known?.agent?.connected]).toEqual(['a', 60, true])
      expect([...(known?.parts.node?.items.keys() ?? [])].sort()).toEqual(expected.sort())
    }
    expect(history.timesOf('east')).toHaveLength(60)
    expect(new Set(history.timesOf('east')).size).toBe(60)
  })
})
