import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Ranges } from '#model'
import { wordOf } from './audience.ts'
import { coveredWith, isForHistory, isForState, type Live } from './choose-use.ts'

const INTERVAL = 30_000

/** Takes batches as the ingester does, and remembers which history kept. */
function aCluster(intervalMs = INTERVAL) {
  const covered = new Map<string, Ranges>()
  let live: Live | undefined
  const kept: { origin: string; at: number }[] = []
  return {
    kept,
    offer(origin: string, sequence: number, at: number, hasSamples = true) {
      const [known, offered] = [
        { live, covered, intervalMs },
        { origin, sequence, at, hasSamples },
      ]
      const audience = new Set<string>()
      if (isForState(known, offered)) audience.add('state')
      if (isForHistory(known, offered)) audience.add('history')
      if (audience.has('state')) live = { origin, sequence, at }
      if (audience.has('history')) {
        covered.set(origin, coveredWith(covered.get(origin) ?? [], at, intervalMs))
        kept.push({ origin, at })
      }
      return wordOf(audience)
    },
  }
}

const at = (round: number) => 1_000_000_000 + round * INTERVAL

describe('where a batch belongs', () => {
  it('takes live batches of one origin into both', () => {
    const cluster = aCluster()
    expect([1, 2, 3].map((n) => cluster.offer('', n, at(n)))).toEqual(['both', 'both', 'both'])
  })

  it('keeps what is older than the newest for history only', () => {
    const cluster = aCluster()
    cluster.offer('a', 10, at(10))
    expect(cluster.offer('a', 4, at(4))).toBe('history')
    expect(cluster.offer('b', 99, at(8))).toBe('history')
  })

  it('follows the numbers of an origin, whatever its clock says', () => {
    const cluster = aCluster()
    cluster.offer('', 1, at(100))
    expect(cluster.offer('', 2, at(1))).toBe('both')
  })

  it('keeps a span that was pulled once when the agent sends it later', () => {
    const cluster = aCluster()
    cluster.offer('agent', 1, at(0))
    for (let n = 1; n <= 5; n++) cluster.offer('', n, at(2 + n))
    // A round that came late makes no hole.
    cluster.offer('', 6, at(8.4))
    expect([2, 3, 4, 5, 6, 7, 8, 9].map((n) => cluster.offer('agent', n, at(n - 0.3)))).toEqual([
      'history', // 1.7: nobody pulled then
      'none', // 2.7: less than half an interval before the first pull
      'none',
      'none',
      'none',
      'none',
      'none',
      'state', // 8.7: newer than the last pull, and close to it
    ])
  })

  it('leaves a round without samples no place in history, and lets it cover nothing', () => {
    const cluster = aCluster()
    expect(cluster.offer('', 1, at(1), false)).toBe('state')
    expect(cluster.offer('agent', 1, at(1))).toBe('both')
  })

  it('covers no time twice, and leaves out none that anybody saw', () =>
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.constantFrom('', 'a', 'b'), fc.nat(60)), { minLength: 1, maxLength: 60 }),
        (offers) => {
          const cluster = aCluster(10)
          const sequences = new Map<string, number>()
          const seen = new Set<string>()
          for (const [origin, time] of offers) {
            if (seen.has(`${origin}/${time}`)) continue // the ledger knows it
            seen.add(`${origin}/${time}`)
            const sequence = (sequences.get(origin) ?? 0) + 1
            sequences.set(origin, sequence)
            cluster.offer(origin, sequence, time)
          }
          for (const one of cluster.kept) {
            for (const other of cluster.kept) {
              if (one.origin !== other.origin) expect(Math.abs(one.at - other.at)).toBeGreaterThanOrEqual(5)
            }
          }
          // Half of the widest step inside a span is three quarters of an interval.
          for (const [origin, time] of offers) {
            const nearest = Math.min(...cluster.kept.map((kept) => Math.abs(kept.at - time)))
            expect(nearest, `${origin} at ${time}`).toBeLessThanOrEqual(7.5)
          }
        },
      ),
      { numRuns: 500 },
    ))

  it('never takes state back to an older batch', () =>
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.constantFrom('', 'a'), fc.nat(50), fc.nat(50))), (offers) => {
        const cluster = aCluster(10)
        const applied: Live[] = []
        for (const [origin, sequence, time] of offers) {
          const use = cluster.offer(origin, sequence, time)
          if (use === 'both' || use === 'state') applied.push({ origin, sequence, at: time })
        }
        for (const [i, { origin, sequence, at: time }] of applied.entries()) {
          const before = applied[i - 1]
          if (!before) continue
          if (before.origin === origin) expect(sequence).toBeGreaterThan(before.sequence)
          else expect(time).toBeGreaterThanOrEqual(before.at)
        }
      }),
    ))
})
