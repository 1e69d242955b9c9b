import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isWithin, topWindow, windowAt } from './rows-window.ts'

const starts = [0, 200, 1000, 2000, 3000].map((at) => ({ at, cursor: at === 0 ? undefined : `behind ${at}` }))

describe('the window of rows that the stream is asked for', () => {
  it('shows what somebody looks at, wherever that is, and some rows around it', () => {
    fc.assert(
      fc.property(fc.nat(3900), fc.integer({ min: 1, max: 300 }), (from, count) => {
        const look = { from, to: from + count }
        const window = windowAt(look, starts)
        expect(isWithin(look, window, 4000)).toBe(true)
        expect(isWithin({ from: Math.max(0, from - 30), to: look.to + 30 }, window, 4000)).toBe(true)
      }),
    )
  })

  it('is the first rows at the top, and the page where somebody looks elsewhere', () => {
    expect(windowAt({ from: 0, to: 40 }, starts)).toEqual(topWindow)
    expect(windowAt({ from: 1500, to: 1540 }, starts)).toEqual({ at: 1000, cursor: 'behind 1000', limit: 1000 })
    expect(windowAt({ from: 1980, to: 2020 }, starts)).toEqual({ at: 1000, cursor: 'behind 1000', limit: 2000 })
  })

  it('reaches to the end of what is loaded, and no further', () => {
    const last = { at: 3000, cursor: 'behind 3000', limit: 1000 }
    expect(isWithin({ from: 3990, to: 4040 }, last, 4000)).toBe(true)
    expect(isWithin({ from: 2990, to: 3030 }, last, 4000)).toBe(false)
  })
})
