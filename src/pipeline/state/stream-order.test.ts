import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Entry } from './redis-entry.ts'
import { StreamOrder, type Writer } from './stream-order.ts'

const OWNERS = 4
const generations = new Map(Array.from({ length: OWNERS }, (_, i) => [i + 1, `g${i + 1}`]))

/** A stream in which these owners write in turn. */
function aStream(turns: readonly number[], countOf = new Map<number, number>()): Entry[] {
  return turns.map((owner, i) => {
    const count = (countOf.get(owner) ?? 0) + 1
    countOf.set(owner, count)
    return {
      id: `${i}-0`,
      op: 'put',
      cluster: 'c',
      version: i,
      owner,
      generation: `g${owner}`,
      writer: `w${owner}`,
      count,
      step: undefined,
      isAgain: false,
    }
  })
}

/** Who wrote last, after some of the stream was read. */
const writersAfter = (entries: readonly Entry[]): Map<number, Writer> =>
  new Map(entries.map(({ owner, writer, count }) => [owner, { name: writer, count }]))

const turns = fc.array(fc.integer({ min: 1, max: OWNERS }), { minLength: 1, maxLength: 60 })

describe('StreamOrder', () => {
  it('follows any order in which owners write, from any place in the stream', () =>
    fc.assert(
      fc.property(turns, fc.nat(), (all, from) => {
        const stream = aStream(all)
        const start = from % stream.length
        const order = new StreamOrder(generations, writersAfter(stream.slice(0, start)))
        expect(stream.slice(start).map((entry) => order.take(entry))).toEqual(stream.slice(start).map(() => undefined))
      }),
    ))

  it('notices what is missing with the next entry of its owner, and never with that of another', () =>
    fc.assert(
      fc.property(turns, fc.nat(), fc.nat({ max: 5 }), (all, at, length) => {
        const stream = aStream(all)
        const start = at % stream.length
        const missing = stream.slice(start, start + length + 1)
        const order = new StreamOrder(generations, writersAfter(stream.slice(0, start)))
        const holes = new Set(missing.map(({ owner }) => owner))
        for (const entry of stream.slice(start + length + 1)) {
          const why = order.take(entry)
          expect(why).toBe(holes.has(entry.owner) ? 'a piece of the stream is missing' : undefined)
          if (why) return
        }
      }),
    ))

  it.each<[string, Partial<Entry>, string]>([
    ['another writer of the same share', { writer: 'other', count: 1 }, 'another process writes'],
    ['a share that was written anew', { generation: 'new' }, 'all of it was written again'],
    ['what is about all owners', { op: 'reload', owner: 0 }, 'all of it was written again'],
    ['an owner that the division does not know', { owner: OWNERS + 1 }, 'all of it was written again'],
  ])('does not go on at %s', (_, changes, why) => {
    const [first, second] = aStream([1, 1]) as [Entry, Entry]
    const order = new StreamOrder(generations, writersAfter([first]))
    expect(order.take({ ...second, ...changes })).toBe(why)
  })
})
