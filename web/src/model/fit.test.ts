import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { fitWidths, LEAST_NAME, USUAL_ROOM } from './fit.ts'

const name = { width: undefined, least: 0 }
const fixed = (width: number) => ({ width, least: width })
const words = (width: number) => ({ width, least: 100 })
const sum = (widths: readonly (number | undefined)[]) =>
  widths.reduce<number>((total, width) => total + (width ?? LEAST_NAME), 0)

describe('fitWidths', () => {
  it('leaves columns as they are where there is room', () =>
    expect(fitWidths([name, words(230), fixed(90)], 1000)).toEqual([undefined, 230, 90]))
  it('takes from the widest first, and nothing from what is not to give way', () =>
    expect(fitWidths([name, words(230), words(130), fixed(300)], 800)).toEqual([undefined, 150, 130, 300]))
  it('lets a table scroll that cannot fit, with the widths of a usual window', () => {
    const many = [name, ...Array.from({ length: 8 }, () => words(230))]
    expect(sum(fitWidths(many, 400))).toBeLessThanOrEqual(USUAL_ROOM)
    expect(sum(fitWidths(many, 400))).toBeGreaterThan(USUAL_ROOM - 9)
  })
  it('fits whatever can fit, and makes no column wider or narrower than its least', () => {
    const column = fc.record({ width: fc.integer({ min: 40, max: 400 }), least: fc.integer({ min: 40, max: 400 }) })
    fc.assert(
      fc.property(fc.array(column, { maxLength: 14 }), fc.integer({ min: 300, max: 3000 }), (some, room) => {
        const columns = [name, ...some.map(({ width, least }) => ({ width, least: Math.min(least, width) }))]
        const widths = fitWidths(columns, room)
        if (columns.reduce((total, { least }) => total + least, LEAST_NAME) <= room)
          expect(sum(widths)).toBeLessThanOrEqual(room)
        for (const [i, { width, least }] of columns.entries()) {
          if (width === undefined) continue
          expect(widths[i]).toBeLessThanOrEqual(width)
          expect(widths[i]).toBeGreaterThanOrEqual(least)
        }
      }),
    )
  })
})
