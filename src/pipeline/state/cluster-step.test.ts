import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type ClusterState, type Part, type SourceId, Table } from '#model'
import { changesOf, MAX_STEP_BYTES, parseStep, stateAfter, stepText } from './cluster-step.ts'
import { FleetMemory } from './memory.ts'
import { changedFields } from './stored.ts'
import { StoredRows } from './stored-rows.ts'
import {
  aBatch,
  aNode,
  anAgent,
  aPodSummary,
  batchRecord,
  complete,
  connected,
  failed,
  partial,
  seen,
  seenSince,
  T0,
  west,
} from './test/fleet-words.ts'
import type { StateRecord } from './types.ts'

/** An owner with its hash, and one who follows it by steps alone. */
class Pair {
  readonly owner = new FleetMemory(0)
  readonly #written = new StoredRows()
  readonly #followed = new StoredRows()
  readonly hash = new Map<string, string>()
  followed: ClusterState | undefined
  told: string[] = []
  /** how often a step named fields to be read */
  reads = 0
  wholes = 0
  #before: ClusterState | undefined

  apply(...records: StateRecord[]): void {
    for (const record of records) {
      const draft = this.owner.draft([record])
      this.owner.keep(draft)
    }
  }

  /** Writes what came, as one step, and follows it. */
  step(): void {
    const [before, after] = [this.#before, this.owner.cluster(west)]
    if (!after || before === after) return
    const fields = changedFields(before, after, this.#written)
    for (const [field, text] of fields) {
      if (text === undefined) this.hash.delete(field)
      else this.hash.set(field, text)
    }
    this.#before = after
    const text = stepText(before, after, fields)
    expect(text).toBeDefined()
    const step = text && parseStep({ text: text.text, fields: text.fields })
    if (!step) throw new Error('no step')
    const bytes = text.text.length + text.fields.flat().join('').length
    expect(bytes).toBeLessThanOrEqual(MAX_STEP_BYTES)
    if (step.read.length > 0) this.reads++
    const read = new Map(step.read.map((field) => [field, this.hash.get(field)!]))
    const next = stateAfter(this.followed, step, { rows: this.#followed, read })
    if (next) this.followed = next
    else {
      // Only where chunks are again what they were once written as.
      this.wholes++
      this.followed = { ...after, tables: this.#followed.read(Object.fromEntries(this.hash)) }
    }
    this.told = changesOf(west, step, T0).map((change) =>
      change.kind === 'snapshot'
        ? `${change.op} ${change.type} ${change.name}`
        : change.kind === 'custom'
          ? `${change.op} ${change.source} ${change.rows}`
          : change.kind === 'event'
            ? change.event.type
            : change.kind,
    )
    this.expectSame()
  }

  expectSame(): void {
    const plain = ({ tables, ...state }: ClusterState) => ({
      ...state,
      tables: new Map([...tables].map(([source, { rows, ...head }]) => [source, { ...head, rows: [...rows.rows()] }])),
    })
    expect(plain(this.followed!)).toEqual(plain(this.owner.cluster(west)!))
    for (const [type, part] of Object.entries(this.owner.cluster(west)?.parts ?? {}))
      expect([...this.followed!.parts[type as 'node']!.items.keys()]).toEqual([...part.items.keys()])
  }
}

const rowsOf = (count: number, turn: (i: number) => number): Table =>
  Table.of(
    ['phase', 'size'],
    Array.from({ length: count }, (_, i) => ({
      namespace: `n${i % 3}`,
      name: `r${String(i).padStart(5, '0')}`,
      labels: { app: `a${i % 5}` },
      values: { phase: turn(i) % 2 === 0 ? 'up' : 'down', size: i + turn(i) },
    })),
  )

type Action =
  | { readonly kind: 'round'; readonly nodes: readonly string[]; readonly isFailed: boolean }
  | {
      readonly kind: 'rows'
      readonly source: SourceId
      readonly count: number
      readonly every: number
      readonly isDiff: boolean
    }
  | { readonly kind: 'nodes'; readonly n: number }
  | { readonly kind: 'facts'; readonly n: number }
  | { readonly kind: 'agent'; readonly n: number }
  | { readonly kind: 'gone'; readonly n: number }

const sources = ['pods', 'team/sizes']
const action: fc.Arbitrary<Action> = fc.oneof(
  fc.record({
    kind: fc.constant('round' as const),
    nodes: fc.uniqueArray(fc.constantFrom('a', 'b', 'c', 'd', 'e'), { maxLength: 5 }),
    isFailed: fc.boolean(),
  }),
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('rows' as const),
      source: fc.constantFrom(...sources),
      count: fc.oneof(fc.nat(900), fc.constant(700)),
      every: fc.constantFrom(1, 7, 300, 1000),
      isDiff: fc.boolean(),
    }),
  },
  fc.record({
    kind: fc.constantFrom('nodes' as const, 'facts' as const, 'agent' as const, 'gone' as const),
    n: fc.nat(4),
  }),
)

/** Turns actions into records, as a hub would. */
function recorder(): (one: Action, state: ClusterState | undefined) => StateRecord[] {
  let sequence = 0
  return (one, state) => {
    const base = sequence
    if (one.kind === 'facts') return [connected(west, { labels: { env: `e${one.n}` } })]
    if (one.kind === 'agent') return [{ kind: 'agent', cluster: west, agent: anAgent({ epoch: one.n }), at: T0 }]
    if (one.kind === 'gone') return [{ kind: 'source-removed', cluster: west, source: sources[one.n % 2]!, at: T0 }]
    sequence++
    if (one.kind === 'round') {
      const parts: Part[] = one.isFailed
        ? [failed('node', 'forbidden')]
        : [complete('node', ...one.nodes.map((name) => aNode(name))), complete('podSummary', aPodSummary(sequence))]
      const more = sequence % 5 === 0 ? { deploymentCount: sequence } : {}
      return [batchRecord(aBatch(west, sequence, parts, more))]
    }
    if (one.kind === 'nodes') {
      const put = [aNode('a', { unschedulable: one.n % 2 === 0 })]
      const part = { type: 'node', collector: 'x', durationMs: 1, outcome: 'changed', put, removed: [] } as const
      const isThere = state?.parts.node?.freshness
      const parts: Part[] = isThere ? [part] : [complete('node', ...put)]
      return [batchRecord(aBatch(west, sequence, parts, { partial: true, ...(isThere && { base }) }))]
    }
    const rows = rowsOf(one.count, (i) => (i % one.every === 0 ? sequence : 0))
    const before = state?.tables.get(one.source)?.rows
    const isDiff = one.isDiff && before !== undefined && state?.tables.get(one.source)?.freshness
    const part = isDiff ? seenSince(rows, before, { source: one.source }) : seen(rows, { source: one.source })
    return [batchRecord(partial(west, sequence, [part], isDiff ? { base } : {}))]
  }
}

describe('a step of a cluster', () => {
  it('leads whoever has the state before to the state after, whatever came, and however much at once', () => {
    fc.assert(
      fc.property(
        fc.array(fc.array(action, { minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 12 }),
        (steps) => {
          const pair = new Pair()
          const record = recorder()
          pair.apply(connected(west))
          pair.step()
          for (const actions of steps) {
            for (const one of actions) pair.apply(...record(one, pair.owner.cluster(west)))
            pair.step()
          }
        },
      ),
      { numRuns: 60 },
    )
  })

  it('tells what changed, by itself', () => {
    const pair = new Pair()
    pair.apply(connected(west), batchRecord(aBatch(west, 1, [complete('node', aNode('a'), aNode('b'))])))
    pair.step()
    pair.apply(
      batchRecord(aBatch(west, 2, [complete('node', aNode('a'), aNode('c'))], { tables: [seen(rowsOf(3, () => 0))] })),
    )
    pair.step()
    expect(pair.told).toEqual([
      'put node c',
      'remove node b',
      'put team/sizes true',
      'cluster',
      'node.added',
      'node.removed',
    ])
    pair.apply({ kind: 'source-removed', cluster: west, source: 'team/sizes', at: T0 })
    pair.step()
    expect(pair.told).toEqual(['remove team/sizes true', 'cluster'])
  })

  it('of one row of many thousands is small; of all of them it names what is to be read', () => {
    const pair = new Pair()
    pair.apply(connected(west), batchRecord(partial(west, 1, [seen(rowsOf(20_000, () => 0))])))
    pair.step()
    expect([pair.reads, pair.wholes]).toEqual([1, 0])
    const before = pair.owner.cluster(west)!.tables.get('team/sizes')!.rows
    const one = rowsOf(20_000, (i) => (i === 77 ? 1 : 0))
    pair.apply(batchRecord(partial(west, 2, [seenSince(one, before)], { base: 1 })))
    pair.step()
    expect([pair.reads, pair.wholes]).toEqual([1, 0])
    pair.apply(batchRecord(partial(west, 3, [seen(rowsOf(20_000, () => 3))])))
    pair.step()
    expect([pair.reads, pair.wholes]).toEqual([2, 0])
  })

  it('that was altered, or is of another state, leads nowhere', () => {
    const pair = new Pair()
    pair.apply(connected(west))
    pair.step()
    const before = pair.followed!
    pair.apply(batchRecord(aBatch(west, 1, [complete('node', aNode('a'))], { tables: [seen(rowsOf(600, () => 0))] })))
    const after = pair.owner.cluster(west)!
    const text = stepText(before, after, changedFields(before, after, new StoredRows()))!
    const step = parseStep(text)!
    const options = () => ({ rows: new StoredRows(), read: new Map<string, string>() })
    expect(stateAfter(before, step, options())?.version).toBe(after.version)
    expect(stateAfter(undefined, step, options())).toBeUndefined()
    expect(stateAfter(after, step, options())).toBeUndefined()
    expect(stateAfter(before, { ...step, fields: step.fields.slice(1) }, options())?.tables).not.toEqual(after.tables)
    for (const i of step.fields.keys()) {
      const [field, value] = step.fields[i]!
      const altered = step.fields.with(i, [field, field.startsWith('custom:') ? value.slice(1) : `${value} `])
      if (/^rows:[^:]+$/.test(field)) continue // its chunks are not there then
      expect(stateAfter(before, { ...step, fields: altered }, options())).toBeUndefined()
    }
    for (const harmed of ['', '{}', 'null', '[]', text.text.slice(1)])
      expect(parseStep({ text: harmed, fields: [] })).toBeUndefined()
  })
})
