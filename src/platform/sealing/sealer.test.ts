import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { SealBrokenError, UnknownKeyError } from './errors.ts'
import type { KeyProvider } from './key-provider.ts'
import { localKeys } from './local-keys.ts'
import { createSealer, isSealed, type SealedPlace, wrappingKeyOf } from './sealer.ts'

const aKey = () => randomBytes(32)
const place: SealedPlace = { kind: 'Secret', namespace: 'a', name: 'b' }
const bytes = fc.uint8Array({ maxLength: 2_000 })
const places = fc.record({
  kind: fc.string(),
  namespace: fc.string(),
  name: fc.string(),
})
const refusal = (opening: Promise<unknown>) =>
  opening.then(
    () => 'opened',
    (error: unknown) => error,
  )

/** A key service elsewhere: it keeps the keys, answers late, and counts what it is asked. */
function aKeyService(): KeyProvider & { asked: number } {
  const inside = localKeys([aKey()])
  return {
    id: 'projects/p/keys/k/versions/1',
    ids: () => ['projects/p/keys/k/versions/1'],
    asked: 0,
    async wrap(dataKey) {
      this.asked++
      await new Promise(setImmediate)
      return inside.wrap(dataKey)
    },
    async unwrap(wrapped, id) {
      this.asked++
      await new Promise(setImmediate)
      if (id !== this.id) throw new UnknownKeyError(id, this.ids())
      return inside.unwrap(wrapped, inside.id)
    },
  }
}

describe.each([
  ['keys of a setting', () => localKeys([aKey()])],
  ['a key service', aKeyService],
])('what is sealed with %s', (_, provider) => {
  it('is opened as it was, by another process with the same keys, and by nothing else', () =>
    fc.assert(
      fc.asyncProperty(bytes, places, places, async (text, here, there) => {
        const keys = provider()
        const sealed = await createSealer(keys).seal(text, here)
        const later = createSealer(keys)
        expect(new Uint8Array(await later.open(sealed, here))).toEqual(text)
        expect(await refusal(createSealer(provider()).open(sealed, here))).toBeInstanceOf(Error)
        if (JSON.stringify(here) === JSON.stringify(there)) return
        expect(await refusal(later.open(sealed, there))).toBeInstanceOf(SealBrokenError)
      }),
      { numRuns: 60 },
    ))

  it('does not open with any byte changed, cut off, put in or added, and says what it is', () =>
    fc.assert(
      fc.asyncProperty(bytes, fc.nat(), fc.integer({ min: 1, max: 255 }), fc.nat(3), async (text, where, by, how) => {
        const sealer = createSealer(provider())
        const sealed = await sealer.seal(text, place)
        const at = where % sealed.length
        const harmed = [
          () => Buffer.from(sealed).fill((sealed[at] ?? 0) ^ by, at, at + 1),
          () => sealed.subarray(0, at),
          () => Buffer.concat([sealed.subarray(0, at), Buffer.of(by), sealed.subarray(at)]),
          () => Buffer.concat([sealed, Buffer.of(by)]),
        ][how]?.()
        const said = await refusal(sealer.open(harmed ?? sealed, place))
        expect(said).toBeInstanceOf(Error)
        expect((said as Error).message).toMatch(/^(Secret a\/b|a data key) (cannot be opened|is sealed with the key)/)
      }),
      { numRuns: 200 },
    ))

  it('shows nothing of the text, and is never twice the same', async () => {
    const sealer = createSealer(provider())
    const text = Buffer.from('correct horse battery staple')
    const [one, other] = [await sealer.seal(text, place), await sealer.seal(text, place)]
    expect(one.includes(text) || one.includes(text.toString('base64'))).toBe(false)
    expect(one.equals(other)).toBe(false)
    expect(isSealed(one)).toBe(true)
    expect(isSealed(text)).toBe(false)
  })
})

describe('a sealer', () => {
  it('asks a key service once for many, both ways', async () => {
    const keys = aKeyService()
    const sealer = createSealer(keys)
    const sealed = await Promise.all(Array.from({ length: 100 }, (_, i) => sealer.seal(Buffer.from([i]), place)))
    expect(keys.asked).toBe(1)
    const later = createSealer(keys)
    await Promise.all(sealed.map((one) => later.open(one, place)))
    expect(keys.asked).toBe(2)
  })

  it('asks again after the key service was away', async () => {
    const keys = aKeyService()
    const { wrap } = keys
    keys.wrap = () => Promise.reject(new Error('away'))
    const sealer = createSealer(keys)
    await expect(sealer.seal(Buffer.of(1), place)).rejects.toThrow('away')
    keys.wrap = wrap
    expect(await sealer.open(await sealer.seal(Buffer.of(1), place), place)).toEqual(Buffer.of(1))
  })

  it('opens what former keys sealed, seals with the one in force, and says which former ones may go', async () => {
    const [old, now] = [aKey(), aKey()]
    const other: SealedPlace = { kind: 'File', name: 'ca' }
    const before = createSealer(localKeys([old]))
    const [one, two] = [await before.seal(Buffer.from('1'), place), await before.seal(Buffer.from('2'), other)]
    const sealer = createSealer(localKeys([now, old]))
    expect((await sealer.open(one, place)).toString()).toBe('1')
    expect((await sealer.open(two, other)).toString()).toBe('2')
    expect([sealer.isCurrent(one), sealer.unneededKeyIds()]).toEqual([false, []])
    const anew = await sealer.seal(Buffer.from('1'), place)
    expect([sealer.isCurrent(anew), sealer.unneededKeyIds()]).toEqual([true, []])
    await sealer.seal(Buffer.from('2'), other)
    expect(sealer.unneededKeyIds()).toEqual([before.keyId])
    expect((await createSealer(localKeys([now])).open(anew, place)).toString()).toBe('1')
  })

  it('names the key that is missing, and where it is given', async () => {
    const sealed = await createSealer(localKeys([aKey()])).seal(Buffer.of(1), place)
    const sealer = createSealer(localKeys([aKey()]))
    const said = await refusal(sealer.open(sealed, place))
    expect(said).toBeInstanceOf(UnknownKeyError)
    expect(said).toMatchObject({ code: 'encryption_key_missing', keyId: wrappingKeyOf(sealed), known: [sealer.keyId] })
    expect((said as Error).message).toMatch(/^Secret a\/b is sealed with the key [0-9a-f]{16}.*ENCRYPTION_KEY_FILE/)
  })
})
