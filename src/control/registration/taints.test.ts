import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Taint } from './objects.ts'
import { taintsOf } from './taints.ts'
import { TAINTS } from './words.ts'

const at = '2026-01-01T00:00:00Z'
const now = { mayAdd: true, timeAdded: '2026-02-02T00:00:00Z' }
const taint = (key: string): Taint => ({ key, effect: 'NoSelect', timeAdded: at })
const theirs: Taint = { key: 'example.com/maintenance', value: 'disk', effect: 'PreferNoSelect', timeAdded: at }
const { unavailable, unreachable } = TAINTS

describe('the taints of a member', () => {
  it.each([
    ['True', [], undefined],
    ['True', [taint(unreachable), theirs], [theirs]],
    ['True', [taint(unavailable)], []],
    ['False', [], [{ key: unavailable, effect: 'NoSelect' }]],
    ['False', [taint(unreachable)], [{ key: unavailable, effect: 'NoSelect' }]],
    ['False', [taint(unavailable)], undefined],
    ['Unknown', [theirs], [theirs, { key: unreachable, effect: 'NoSelect' }]],
    ['Unknown', [taint(unreachable)], undefined],
    [undefined, [], [{ key: unreachable, effect: 'NoSelect' }]],
  ] as const)('that is available: %s, and has %j, become %j', (available, stored, wanted) =>
    expect(taintsOf(stored, available, now)).toEqual(wanted),
  )

  it('get none while many were lost at once, and lose what does not hold any more', () => {
    expect(taintsOf([], 'Unknown', { ...now, mayAdd: false })).toBeUndefined()
    expect(taintsOf([taint(unavailable)], 'Unknown', { ...now, mayAdd: false })).toEqual([])
  })

  it('get the time that no admission wrote', () =>
    expect(taintsOf([{ key: unreachable, effect: 'NoSelect' }], 'Unknown', now)).toEqual([
      { key: unreachable, effect: 'NoSelect', timeAdded: now.timeAdded },
    ]))

  it('settle after one write, or two where nobody adds the time, and keep those of people in their order', () => {
    const any = fc.record({
      key: fc.constantFrom(unavailable, unreachable, 'a', 'b'),
      effect: fc.constantFrom('NoSelect', 'PreferNoSelect', 'NoSelectIfNew'),
      timeAdded: fc.constant(at),
    }) as fc.Arbitrary<Taint>
    const stored = fc.uniqueArray(any, { selector: ({ key, effect }) => `${key} ${effect}` })
    const isTheirs = ({ key, effect }: Taint) =>
      !([unavailable, unreachable] as string[]).includes(key) || effect !== 'NoSelect'
    fc.assert(
      fc.property(stored, fc.constantFrom('True', 'False', 'Unknown', undefined), (before, available) => {
        const once = taintsOf(before, available, now) ?? before
        const twice = taintsOf(once, available, now) ?? once
        expect(taintsOf(twice, available, now)).toBeUndefined()
        expect(twice.filter(isTheirs)).toEqual(before.filter(isTheirs))
        expect(twice.filter((one) => !isTheirs(one)).map(({ key }) => key)).toEqual(
          available === 'True' ? [] : [available === 'False' ? unavailable : unreachable],
        )
      }),
    )
  })
})
