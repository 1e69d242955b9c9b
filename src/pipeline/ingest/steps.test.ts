import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { openEvents } from '#events'
import { samplesOf } from '#history'
import { type Batch, type NodeSnapshot, type Part, systemClock, type Table } from '#model'
import { openLog } from '#runtime'
import { EmbeddedStateStore } from '#state'
import { all } from '../../../test/properties.ts'
import { aBatch, aNode, complete, facts, seen, seenSince, sizes, T0, west } from '../state/test/fleet-words.ts'
import { BaseMismatchError } from './errors.ts'
import { Ingester } from './ingester.ts'
import { FileHistory } from './test/file-history.ts'

/*
 * Rounds and steps of an agent at random: told as differences or whole, repeated because the ack got lost, late from its buffer, to a
 * hub that restarts with or without what it had in state. What is there at the end is what the agent had, and history has every round.
 */
let directory: string
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'steps-'))
})
afterEach(() => rm(directory, { recursive: true, force: true }))

const NOW = T0 + 10_000 * 30_000

async function aHub(stateName: string) {
  const log = await openLog({ directory: join(directory, 'log') })
  const state = await EmbeddedStateStore.open({ directory: join(directory, stateName), writeBehindMs: 5 })
  const history = await FileHistory.open(join(directory, 'history'))
  const events = openEvents({ kind: 'in-process' })
  const clock = { ...systemClock, now: () => NOW }
  const ingester = await Ingester.open({ log, state, events, history, random: () => 0.01, clock })
  await ingester.connect(west, facts({ mode: 'push' }))
  return {
    ingester,
    state,
    history,
    async [Symbol.asyncDispose]() {
      await ingester[Symbol.asyncDispose]()
      await events[Symbol.asyncDispose]()
      await history[Symbol.asyncDispose]()
      await state[Symbol.asyncDispose]()
      await log[Symbol.asyncDispose]()
    },
  }
}

type Hub = Awaited<ReturnType<typeof aHub>>

const names = ['a', 'b', 'c']
const op = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('round' as const), whole: fc.boolean() }) },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('step' as const),
      node: fc.option(fc.tuple(fc.constantFrom(...names), fc.constantFrom('ready', 'notReady', 'gone'))),
      size: fc.option(fc.tuple(fc.constantFrom('x', 'y'), fc.integer({ min: 0, max: 3 }))),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('repeat' as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('late' as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('pull' as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('restart' as const), loses: fc.boolean() }) },
)

/** The agent: what it sees, and what it told. */
class Model {
  nodes = new Map<string, NodeSnapshot>(names.map((name) => [name, aNode(name)]))
  rows: Table = sizes({ x: 0 })
  /** as of the newest that was acknowledged */
  acked = { sequence: 0, nodes: this.nodes, rows: this.rows }
  sequence = 0
  readonly told: { readonly batch: Batch; readonly whole: Batch }[] = []
  readonly rounds: number[] = []

  see(node: readonly [string, string] | null, size: readonly [string, number] | null): void {
    if (node) {
      this.nodes = new Map(this.nodes)
      if (node[1] === 'gone') this.nodes.delete(node[0])
      else this.nodes.set(node[0], aNode(node[0], { ready: node[1] as NodeSnapshot['ready'] }))
    }
    if (size) this.rows = this.rows.patch(sizes({ [size[0]]: size[1] }), [])
  }

  /** The next batch, as a difference to the newest that was acknowledged, and whole. */
  batch(partial: boolean): { readonly batch: Batch; readonly whole: Batch } {
    const { sequence: base, nodes, rows } = this.acked
    const sequence = ++this.sequence
    const more = { origin: 'a', source: 'push', ...(partial && { partial }) } as const
    const part: Part = {
      type: 'node',
      collector: 'nodes',
      durationMs: 1,
      outcome: 'changed',
      put: [...this.nodes.values()].filter((node) => nodes.get(node.name) !== node),
      removed: [...nodes.keys()].filter((name) => !this.nodes.has(name)),
    }
    const changed = { base, tables: [seenSince(this.rows, rows)] }
    const whole = aBatch(west, sequence, [complete('node', ...this.nodes.values())], {
      ...more,
      tables: [seen(this.rows)],
    })
    return { batch: base === 0 ? whole : aBatch(west, sequence, [part], { ...more, ...changed }), whole }
  }
}

/** As a stream does: what is refused for its base is told whole. */
async function tell(hub: Hub, model: Model, { batch, whole }: Model['told'][number]): Promise<'as told' | 'whole'> {
  const samples = samplesOf(whole)
  let how: 'as told' | 'whole' = 'as told'
  try {
    await hub.ingester.accept({ batch, samples })
  } catch (error) {
    if (!(error instanceof BaseMismatchError)) throw error
    await hub.ingester.accept({ batch: whole, samples })
    how = 'whole'
  }
  model.told.push({ batch, whole })
  model.acked = { sequence: batch.sequence, nodes: model.nodes, rows: model.rows }
  return how
}

describe('rounds and steps at random', () => {
  it('leave state as the agent saw it, and every round in history', async () => {
    let run = 0
    let [differences, refused] = [0, 0]
    await fc.assert(
      fc.asyncProperty(fc.array(op, { minLength: 4, maxLength: 25 }), async (ops) => {
        await rm(join(directory), { recursive: true, force: true })
        let states = 0
        const stateName = () => `state-${run}-${states}`
        run++
        const model = new Model()
        let hub = await aHub(stateName())
        try {
          for (const one of ops) {
            if (one.kind === 'restart') {
              await hub[Symbol.asyncDispose]()
              if (one.loses) states++
              hub = await aHub(stateName())
            } else if (one.kind === 'repeat') {
              const last = model.told.at(-1)
              if (last) expect((await hub.ingester.accept({ batch: last.batch })).duplicate).toBe(true)
            } else if (one.kind === 'pull') {
              // The hub read it itself: a difference to what the agent told before has lost its base.
              const parts = [complete('node', ...model.nodes.values())]
              const sequence = hub.ingester.nextSequence(west)
              const collectedAt = T0 + model.sequence * 30_000
              const own = aBatch(west, sequence, parts, { partial: true, tables: [seen(model.rows)], collectedAt })
              await hub.ingester.accept({ batch: own })
            } else if (one.kind === 'late') {
              // A round that waited in the buffer, of before all others.
              const { whole } = model.batch(false)
              const late = { ...whole, backfill: true, collectedAt: T0 - 3_600_000 + model.sequence * 30_000 }
              model.rounds.push(late.collectedAt)
              await hub.ingester.accept({ batch: late })
              // Its number is above those of state, its content is the agent's: it may be taken there as well.
              model.acked = { sequence: 0, nodes: model.nodes, rows: model.rows }
            } else {
              if (one.kind === 'step') model.see(one.node, one.size)
              const next = model.batch(one.kind === 'step')
              const told = one.kind === 'round' && one.whole ? { batch: next.whole, whole: next.whole } : next
              if (one.kind === 'round') model.rounds.push(told.batch.collectedAt)
              const how = await tell(hub, model, told)
              if (told.batch.base !== undefined) how === 'whole' ? refused++ : differences++
            }
          }
          await hub.ingester.flushed()
          await hub.ingester.flushed('history')
          const known = hub.state.cluster('west')
          if (model.told.length > 0) {
            expect(new Map(known?.parts.node?.items)).toEqual(model.nodes)
            expect(known?.tables.get('team/sizes')?.rows.equals(model.rows)).toBe(true)
          }
          const times = hub.history.timesOf('west')
          for (const at of model.rounds) expect(times).toContain(at)
          expect(hub.ingester.received(west, 'a')).toEqual(model.sequence === 0 ? [] : [[1, model.sequence]])
        } finally {
          await hub[Symbol.asyncDispose]()
        }
      }),
      all({ numRuns: 60 }),
    )
    // Both ways were gone.
    expect(differences).toBeGreaterThan(50)
    expect(refused).toBeGreaterThan(0)
  })
})
