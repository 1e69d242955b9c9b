import { cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { openEvents } from '#events'
import { systemClock } from '#model'
import { openLog } from '#runtime'
import { EmbeddedStateStore } from '#state'
import { aBatch, aNode, complete, T0, west } from '../state/test/fleet-words.ts'
import { Ingester } from './ingester.ts'
import { FileHistory } from './test/file-history.ts'

/*
 * The folder of a hub's log as commit 925dc38 wrote it, while neither state nor history took anything: every kind of record,
 * both versions of their form, a batch of the original kept as its message, a ledger with its checkpoint.
 */
const FORMER = fileURLToPath(new URL('test/former-log', import.meta.url))
const ROUND = 30_000

let directory: string
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'former-log-'))
  await cp(FORMER, join(directory, 'log'), { recursive: true })
})
afterEach(() => rm(directory, { recursive: true, force: true }))

describe('the log of a former build', () => {
  it('is read without loss, into state and into history, and goes on', async () => {
    const clock = { ...systemClock, now: () => T0 + 1000 * ROUND }
    const log = await openLog({ directory: join(directory, 'log') })
    await using state = await EmbeddedStateStore.open({ directory: join(directory, 'state'), writeBehindMs: 5 })
    await using history = await FileHistory.open(join(directory, 'history'))
    await using events = openEvents({ kind: 'in-process' })
    await using ingester = await Ingester.open({ log, state, events, history, clock })
    const settled = () => Promise.all([ingester.flushed(), ingester.flushed('history')])
    await settled()
    expect(log.stats()).toMatchObject({ damagedPlaces: 0, tornBytes: 0 })
    expect(log.lastIndex(), 'with the note that an agent is waited for').toBe(21)

    const nodesOf = (name: string) => [...(state.cluster(name)?.parts.node?.items.keys() ?? [])]
    expect(state.clusters().map(({ name, sequence }) => [name, sequence, nodesOf(name)])).toEqual([
      ['east', 1, []],
      ['first', 4, ['v1']],
      ['north', 1, ['o1', 'o2']],
      ['west', 20, ['n2', 'n20']],
    ])
    expect(state.cluster('north')?.deploymentCount).toBe(7)
    const seen = state.cluster('west')
    expect([...(seen?.tables ?? [])].map(([source, { rows }]) => [source, ...rows.rows()])).toMatchObject([
      ['team/sizes', { name: 'x', values: { size: 5 } }, { name: 'z', values: { size: null } }],
    ])
    expect(seen?.status).toMatchObject({ reasons: [{ code: 'not_read' }] })
    expect(state.cluster('east')?.status).toMatchObject({ reasons: [{ code: 'cluster_unreachable' }] })

    const roundsOf = (name: string) => history.timesOf(name).map((at) => (at - T0) / ROUND)
    expect(roundsOf('west')).toEqual([1, 2, 3, 4, 20, 12])
    expect(['first', 'north', 'south'].map(roundsOf)).toEqual([[4], [1], [3]])
    expect(history.lossesOf('west').map(({ origin, count, cause }) => [origin, count, cause])).toEqual([
      ['a', 7, 'thinned'],
      ['hub', 2, 'agent_down'],
    ])

    expect(ingester.received(west, 'a')).toEqual([
      [1, 12],
      [20, 21],
    ])
    const offer = (sequence: number) =>
      ingester.accept({
        batch: aBatch(west, sequence, [complete('node', aNode('new'))], { origin: 'a', source: 'push' }),
      })
    expect((await offer(20)).duplicate).toBe(true)
    expect((await offer(30)).duplicate).toBe(false)
    await settled()
    expect(nodesOf('west')).toEqual(['new'])
    expect(log.lastIndex()).toBeGreaterThan(21)
    await ingester[Symbol.asyncDispose]()
    await log[Symbol.asyncDispose]()
  })
})
