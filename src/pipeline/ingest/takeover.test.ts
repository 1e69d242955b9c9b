import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openEvents } from '#events'
import { openLog } from '#runtime'
import { RedisStateStore } from '#state'
import { aBatch, aNode, complete, facts, T0, west } from '../state/test/fleet-words.ts'
import { redisMissing, startRedis, type TestRedis } from '../state/test/redis-server.ts'
import { Ingester } from './ingester.ts'

describe.skipIf(redisMissing)(`managers that take turns${redisMissing ? ` (skipped: ${redisMissing})` : ''}`, () => {
  let server: TestRedis
  let directory: string
  beforeAll(async () => {
    server = await startRedis()
    directory = await mkdtemp(join(tmpdir(), 'takeover-'))
  })
  afterAll(async () => {
    await server[Symbol.asyncDispose]()
    await rm(directory, { recursive: true, force: true })
  })

  let minutes = 0
  /** Leads with a folder of its own, and reads the cluster so often. @returns what state says after each round */
  async function lead(manager: string, rounds: number): Promise<string[]> {
    await using log = await openLog({ directory: join(directory, manager) })
    await using state = await RedisStateStore.open({ connection: server, logId: manager })
    await using events = openEvents({ kind: 'in-process' })
    await using ingester = await Ingester.open({ log, state, events })
    await ingester.connect(west, facts())
    const seen: string[] = []
    for (let n = 0; n < rounds; n++) {
      minutes++
      const sequence = ingester.nextSequence(west)
      const round = aBatch(west, sequence, [complete('node', aNode(`${manager}-${minutes}`))], {
        collectedAt: T0 + minutes * 60_000,
      })
      expect((await ingester.accept({ batch: round })).duplicate).toBe(false)
      await ingester.flushed()
      seen.push([...(state.cluster(west)?.parts.node?.items.keys() ?? [])].join())
    }
    await state.flush()
    return seen
  }

  it('go on from where the other was, however many rounds each has read before', async () => {
    expect(await lead('a', 2)).toEqual(['a-1', 'a-2'])
    expect(await lead('b', 5)).toEqual(['b-3', 'b-4', 'b-5', 'b-6', 'b-7'])
    expect(await lead('a', 2)).toEqual(['a-8', 'a-9'])
    expect(await lead('b', 1)).toEqual(['b-10'])
  })
})
