import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { filterMark } from './filter.ts'
import { continueToken, hasMore, pageOf, type RowPage, readContinueToken } from './page.ts'
import { aRow, World } from './testing/world.ts'

const names = fc.uniqueArray(fc.constantFrom(...Array.from({ length: 40 }, (_, at) => `n${at}`)), { maxLength: 40 })
const limits = fc.integer({ min: 1, max: 7 })
const MARK = filterMark({ namespace: 'team-a' })

const worldOf = (all: readonly string[]): World => {
  const world = new World()
  world.collect(
    'team-a',
    'apps',
    all.map((name) => ({ name })),
  )
  return world
}
const namesOf = (page: RowPage) => page.items.map(({ name }) => name)
const read = (world: World, paging: Parameters<typeof pageOf>[1]) =>
  pageOf(world.view.read({ namespace: 'team-a' }).rows(), paging)

describe('pages', () => {
  it('are together all rows, each once and in canonical order, by offset', () =>
    fc.assert(
      fc.property(names, limits, (all, limit) => {
        const world = worldOf(all)
        const seen: string[] = []
        let offset = 0
        for (;;) {
          const page = read(world, { limit, offset })
          expect(page.total).toBe(all.length)
          expect(page.items.length).toBeLessThanOrEqual(limit)
          seen.push(...namesOf(page))
          offset += page.items.length
          if (!hasMore(page)) break
        }
        expect(seen).toEqual([...all].sort())
      }),
    ))

  it('show by token every row that stays, once, whatever comes and goes between them', () =>
    fc.assert(
      fc.property(names, limits, fc.array(names, { maxLength: 12 }), (all, limit, changes) => {
        const world = worldOf(all)
        const target = world.store.target({ namespace: 'team-a', name: 'apps' })
        const seen: string[] = []
        let staying = new Set(all)
        let token: string | undefined
        for (let at = 0; ; at++) {
          const after = token === undefined ? undefined : readContinueToken(token, MARK)
          const page = read(world, { limit, offset: 0, ...(after && { after }) })
          expect(page.offset + page.items.length + (hasMore(page) ? 1 : 0)).toBeLessThanOrEqual(page.total)
          seen.push(...namesOf(page))
          token = continueToken(page, MARK)
          if (token === undefined) break
          const now = changes[at]
          if (!now) continue
          target.replace(now.map((name) => aRow({ name })))
          staying = new Set([...staying].filter((name) => now.includes(name)))
        }
        expect(new Set(seen).size).toBe(seen.length)
        expect(seen).toEqual([...seen].sort())
        for (const name of staying) expect(seen).toContain(name)
      }),
    ))

  it('take an offset beyond the end for the end', () => {
    const page = read(worldOf(['a', 'b', 'c']), { limit: 10, offset: 99 })
    expect(page).toEqual({ items: [], offset: 3, total: 3 })
    expect(hasMore(page)).toBe(false)
  })

  it('have a token that is of its own question, and of nobody else’s making', () => {
    const page = read(worldOf(['a', 'b']), { limit: 1, offset: 0 })
    const token = continueToken(page, MARK) ?? ''
    expect(readContinueToken(token, MARK)).toMatchObject({ targetNamespace: 'team-a', targetName: 'apps', name: 'a' })
    expect(() => readContinueToken(token, filterMark({ namespace: 'team-b' }))).toThrow(/another question/)
    fc.assert(
      fc.property(fc.string(), (text) => {
        expect(() => readContinueToken(text, MARK)).toThrow(/continue/)
      }),
    )
  })
})
