import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Loss, SequenceRange } from '#model'
import { aBatch, connected, east, removed, west } from '../state/test/fleet-words.ts'
import { type AudienceWord, audienceOf } from './audience.ts'
import { decodeSnapshot, encodeSnapshot, Ledger, MAX_ORIGINS, MAX_RANGES, MAX_SPANS } from './ledger.ts'
import type { LogEntry } from './log-record.ts'

const LOG = '00000000-0000-4000-8000-000000000000'
const noHole = () => {
  throw new Error('no hole was to be closed')
}

const pushed = (origin: string, sequence: number, into: AudienceWord = 'both', cluster = west): LogEntry => ({
  record: { kind: 'batch', batch: aBatch(cluster, sequence, [], { origin, source: 'push' }), receivedAt: 0 },
  audience: audienceOf({ into }),
})
const lossOf = (origin: string, sequence: number, lost: SequenceRange[]): LogEntry => {
  const loss: Loss = { origin, sequence, lost, from: 0, to: 1, cause: 'thinned', count: 1, keptEveryMs: 0 }
  return { record: { kind: 'lost', cluster: west, loss, at: 0 } }
}

type Step =
  | { readonly what: 'batch'; readonly origin: string; readonly sequence: number }
  | { readonly what: 'lost'; readonly origin: string; readonly sequence: number; readonly lost: SequenceRange[] }
  | { readonly what: 'removed' }
  | { readonly what: 'restart' }

const origin = fc.constantFrom('a', 'b')
const sequence = fc.integer({ min: 1, max: 40 })
const range = fc.tuple(sequence, fc.nat(5)).map(([first, more]): SequenceRange => [first, first + more])
const steps = fc.array(
  fc.oneof(
    { weight: 8, arbitrary: fc.record({ what: fc.constant('batch' as const), origin, sequence }) },
    {
      weight: 2,
      arbitrary: fc.record({
        what: fc.constant('lost' as const),
        origin,
        sequence,
        lost: fc.array(range, { maxLength: 3 }),
      }),
    },
    { weight: 1, arbitrary: fc.constant({ what: 'removed' as const }) },
    { weight: 1, arbitrary: fc.constant({ what: 'restart' as const }) },
  ),
  { maxLength: 60 },
)

describe('Ledger', () => {
  it('knows what a plain set of sequences knows, over restarts from any snapshot', () =>
    fc.assert(
      fc.property(steps, fc.nat(60), (all: Step[], snapshotAt) => {
        let ledger = new Ledger(noHole)
        const log: [index: number, entry: LogEntry][] = []
        const naive = new Map<string, Set<number>>([
          ['a', new Set()],
          ['b', new Set()],
        ])
        let file: string | undefined
        for (const [i, step] of all.entries()) {
          if (i === snapshotAt) file = encodeSnapshot(ledger.snapshot(), LOG)
          if (step.what === 'restart') {
            const snapshot = file === undefined ? undefined : decodeSnapshot(file, LOG)
            ledger = new Ledger(noHole, snapshot)
            for (const [index, entry] of log) ledger.note(entry, index)
            continue
          }
          if (step.what === 'removed') for (const set of naive.values()) set.clear()
          else {
            const set = naive.get(step.origin) as Set<number>
            set.add(step.sequence)
            const lost = step.what === 'lost' ? step.lost : []
            for (const [first, last] of lost) for (let n = first; n <= last; n++) set.add(n)
          }
          const entry =
            step.what === 'batch'
              ? pushed(step.origin, step.sequence)
              : step.what === 'lost'
                ? lossOf(step.origin, step.sequence, step.lost)
                : { record: removed(west) }
          log.push([i, entry])
          ledger.note(entry, i)
        }
        for (const [name, set] of naive) {
          for (let n = 1; n <= 50; n++) expect(ledger.has(west, name, n)).toBe(set.has(n))
        }
      }),
      { numRuns: 300 },
    ))

  it('takes every older round of the hub itself as received', () => {
    const ledger = new Ledger(noHole)
    ledger.note(pushed('', 7), 0)
    expect(ledger.received(west, '')).toEqual([[1, 7]])
    expect(ledger.newestPull(west)).toBe(7)
  })

  it('counts nothing twice that is noted twice', () => {
    const ledger = new Ledger(noHole)
    ledger.note({ record: connected(west) }, 0)
    ledger.note(pushed('a', 5), 1)
    ledger.note({ record: removed(west) }, 2)
    ledger.note(pushed('a', 5), 1)
    expect(ledger.received(west, 'a')).toEqual([])
  })

  it('stays bounded: the oldest hole is given up and named, the oldest span and the silent origin are forgotten', () => {
    const holes: SequenceRange[] = []
    const ledger = new Ledger((_cluster, _origin, hole) => holes.push(hole))
    ledger.note({ record: connected(west, { intervalMs: 1000 }) }, 0)
    const count = MAX_RANGES + 3
    for (let n = 1; n <= count; n++) ledger.note(pushed('a', n * 2), n)
    expect(holes).toEqual([
      [3, 3],
      [5, 5],
      [7, 7],
    ])
    expect(ledger.received(west, 'a')).toHaveLength(MAX_RANGES)
    expect(ledger.received(west, 'a')[0]).toEqual([2, 8])
    const [[, spans]] = [...ledger.known(west, 1000).covered] as [[string, unknown[]]]
    expect(spans).toHaveLength(MAX_SPANS)
    for (let n = 0; n < MAX_ORIGINS; n++) ledger.note(pushed(`o${n}`, 1), count + 1 + n)
    expect(ledger.received(west, 'a')).toEqual([])
    expect(ledger.received(west, 'o0')).toEqual([[1, 1]])
  })

  it('is not read from a file that is damaged or of another log', () => {
    const ledger = new Ledger(noHole)
    ledger.note(pushed('a', 5, 'both', east), 3)
    const file = encodeSnapshot(ledger.snapshot(), LOG)
    expect(decodeSnapshot(file, LOG)?.position).toBe(3)
    expect(decodeSnapshot(file, LOG.replace('8', '9'))).toBeUndefined()
    for (let at = 0; at < file.length - 1; at++) {
      const damaged = `${file.slice(0, at)}${file[at] === 'x' ? 'y' : 'x'}${file.slice(at + 1)}`
      expect(decodeSnapshot(damaged, LOG), `damage at ${at}`).toBeUndefined()
    }
  })
})
