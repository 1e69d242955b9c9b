import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { StreamIds } from './stream-ids.ts'

const place = fc.record({ place: fc.string({ maxLength: 60 }), mark: fc.string({ maxLength: 16 }) })

describe('the id of a stream message', () => {
  it('is opened by the process that sealed it, and by no other', () => {
    const ids = new StreamIds()
    const others = new StreamIds()
    fc.assert(
      fc.property(place, (sealed) => {
        const id = ids.seal(sealed)
        expect(ids.open(id)).toEqual(sealed)
        expect(others.open(id)).toBeUndefined()
        expect(id).toMatch(/^[\w-]{1,500}$/)
      }),
    )
  })

  it('tells nothing of the place: not by its text, not by its length, not by being the same twice', () => {
    const ids = new StreamIds()
    const seals = ['g-1', 'g-1', 'g-99999999999999'].map((one) => ids.seal({ place: one, mark: 'm' }))
    expect(new Set(seals).size).toBe(3)
    expect(new Set(seals.map(({ length }) => length)).size).toBe(1)
  })

  it('is nothing when anything of it was changed, or when nobody sealed it', () => {
    const ids = new StreamIds()
    const bytes = Buffer.from(ids.seal({ place: 'g-1', mark: 'm' }), 'base64url')
    for (const at of bytes.keys()) {
      const changed = Buffer.from(bytes)
      changed[at] = (changed[at] ?? 0) ^ 1
      expect(ids.open(changed.toString('base64url')), String(at)).toBeUndefined()
    }
    fc.assert(
      fc.property(fc.string({ maxLength: 300 }), (text) => {
        expect(ids.open(text)).toBeUndefined()
      }),
    )
    expect(ids.open('A'.repeat(400))).toBeUndefined()
  })
})
