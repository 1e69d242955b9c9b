import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ownerName, ownerOf, owns, soleOwner } from './owners.ts'

const names = Array.from({ length: 2_000 }, (_, i) => `cluster-${i}`)

describe('who owns a cluster', () => {
  it('is exactly one of them, whatever its name and however many they are', () => {
    fc.assert(
      fc.property(fc.string(), fc.integer({ min: 1, max: 64 }), (name, of) => {
        const owners = Array.from({ length: of }, (_, i) => i + 1).filter((index) => owns({ index, of }, name))
        expect(owners).toEqual([ownerOf(name, of)])
      }),
    )
  })

  it('is spread evenly', () => {
    for (const of of [2, 3, 4, 8]) {
      const counts = Array.from(
        { length: of },
        (_, i) => names.filter((name) => owns({ index: i + 1, of }, name)).length,
      )
      for (const count of counts) expect(Math.abs(count - names.length / of)).toBeLessThan(names.length / of / 4)
    }
  })

  it('changes, with one owner more, for those clusters only that go to the new one', () => {
    for (const of of [1, 2, 3, 7]) {
      const moved = names.filter((name) => ownerOf(name, of) !== ownerOf(name, of + 1))
      expect(moved.length).toBeGreaterThan(0)
      for (const name of moved) expect(ownerOf(name, of + 1)).toBe(of + 1)
    }
  })

  it('stays what it is: logs on disk are divided by it', () => {
    expect(['west', 'east', 'north', 'south', 'edge-1'].map((name) => ownerOf(name, 4))).toEqual([3, 4, 4, 2, 2])
    expect(ownerOf('west', 1)).toBe(1)
  })

  it('has a name only where there are several', () => {
    expect([ownerName(soleOwner), ownerName({ index: 2, of: 3 })]).toEqual([undefined, 'owner-2'])
  })
})
