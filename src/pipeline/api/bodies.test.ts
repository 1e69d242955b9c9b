import { gunzipSync } from 'node:zlib'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { BodyCache, type ListBody, listBody, textBody } from './bodies.ts'

const members = fc.array(fc.string({ unit: 'grapheme' }), { maxLength: 60 })

describe('a list body', () => {
  it('is the same bytes, tag and packed form however it came to be', async () => {
    await fc.assert(
      fc.asyncProperty(members, fc.array(members, { maxLength: 4 }), async (last, before) => {
        let previous: ListBody | undefined
        for (const version of before) previous = listBody('[', version, ']', previous)
        const body = listBody('[', last, ']', previous)
        expect(body.plain.toString()).toBe(`[${last.join(',')}]`)
        expect(gunzipSync(await body.gzipped()).equals(body.plain)).toBe(true)
        expect(body.etag).toBe(listBody('[', last, ']').etag)
      }),
    )
  })

  it('has equal tags for equal bytes only', () => {
    fc.assert(
      fc.property(members, members, (left, right) => {
        const [one, other] = [listBody('[', left, ']'), listBody('[', right, ']')]
        if (one.etag === other.etag) expect(one.plain.equals(other.plain)).toBe(true)
      }),
    )
    expect(listBody('[', ['1'], ']').etag).not.toBe(listBody('[', ['1'], '],').etag)
  })

  it('encodes only the chunk in which a member changed', () => {
    const texts = Array.from({ length: 1000 }, (_, index) => `{"n":${index}}`)
    const before = listBody('[', texts, ']')
    const after = listBody('[', texts.with(500, '{"n":"new"}'), ']', before)
    const renewed = after.chunks.filter((chunk, index) => chunk !== before.chunks[index])
    expect(renewed).toHaveLength(1)
  })
})

describe('the body cache', () => {
  it('forgets an answer when its origin changes or its time is over', () => {
    const cache = new BodyCache(1e6)
    const body = textBody('x')
    cache.set('key', { tag: 1, validUntil: 100 }, body)
    expect(cache.get('key', 1, 99)).toBe(body)
    expect(cache.get('key', 1, 100)).toBeUndefined()
    expect(cache.get('key', 2, 99)).toBeUndefined()
    expect(cache.previous('key')).toBe(body)
  })

  it('keeps no more bytes than it may', () => {
    const cache = new BodyCache(10_000)
    for (let index = 0; index < 100; index++) {
      cache.set(`key ${index}`, { tag: 1, validUntil: 1 }, textBody('x'.repeat(1000)))
    }
    const kept = Array.from({ length: 100 }, (_, index) => cache.previous(`key ${index}`)).filter(Boolean)
    expect(kept.length).toBeLessThanOrEqual(4)
    expect(cache.previous('key 99')).toBeDefined()
  })
})
