import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type ClusterName, isClusterName } from '#model'
import { decodeJoinText, encodeJoinText, type JoinText, JoinTextError } from './join-text.ts'

const ofLetters = (letters: string, minLength: number, maxLength = minLength) =>
  fc.array(fc.constantFrom(...letters), { minLength, maxLength }).map((all) => all.join(''))
const BASE64URL = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
const cluster = ofLetters('abcdefghijklmnopqrstuvwxyz0123456789-', 1, 63).filter(
  isClusterName,
) as fc.Arbitrary<ClusterName>
const secret = ofLetters(BASE64URL, 43)
const address = fc.tuple(fc.domain(), fc.integer({ min: 1, max: 65_535 })).map(([host, port]) => `${host}:${port}`)
const joinText: fc.Arbitrary<JoinText> = fc.record(
  {
    cluster,
    secret,
    addresses: fc.array(address, { minLength: 1, maxLength: 8 }),
    caFingerprint: ofLetters('0123456789abcdef', 64),
    caPem: fc.string({ unit: 'grapheme' }).map((text) => `-----BEGIN CERTIFICATE-----\n${text}`),
    serverName: fc.domain(),
  },
  { requiredKeys: ['cluster', 'secret', 'addresses'] },
)

describe('a join token', () => {
  it('says after reading what was written, in one word a shell leaves alone', () => {
    fc.assert(
      fc.property(joinText, (text) => {
        const written = encodeJoinText(text)
        expect(written).toMatch(/^[A-Za-z0-9_-]+$/)
        expect(decodeJoinText(` ${written}\n`)).toEqual(text)
      }),
    )
  })

  it('of which a part is missing is refused, and so is any other text, without repeating it', () => {
    const refused = (text: string) => {
      try {
        decodeJoinText(text)
        return undefined
      } catch (error) {
        expect(error).toBeInstanceOf(JoinTextError)
        return (error as Error).message
      }
    }
    fc.assert(
      fc.property(joinText, fc.nat(), (text, cut) => {
        const written = encodeJoinText(text)
        const message = refused(written.slice(0, cut % written.length))
        expect(message).toMatch(/no join token/)
        expect(message).not.toContain(text.secret)
      }),
    )
    fc.assert(fc.property(fc.string(), (text) => void expect(refused(`cpj1_${text}`)).toBeDefined()))
  })
})
