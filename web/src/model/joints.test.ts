import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { piecesOf } from './joints.ts'

describe('piecesOf', () => {
  it.each([
    ['https://127.0.0.1:40123', ['https://', '127.', '0.', '0.', '1:', '40123']],
    ['https://api.prod-east.example.com', ['https://', 'api.', 'prod-east.', 'example.', 'com']],
    [
      'registry.example.com/shop/cart@sha256:0123',
      ['registry.', 'example.', 'com/', 'shop/', 'cart@', 'sha256:', '0123'],
    ],
    ['topology.kubernetes.io/zone=eu-1a', ['topology.', 'kubernetes.', 'io/', 'zone=', 'eu-1a']],
    [
      'no answer from api.prod.example.com in 10 s',
      ['no answer from ', 'api.', 'prod.', 'example.', 'com', ' in 10 s'],
    ],
  ])('breaks %s behind what joins its parts', (text, pieces) => expect(piecesOf(text)).toEqual(pieces))

  it.each(['v1.29.4', '10.0.4.17', 'kube-system', '', 'a sentence. Of short words: all of them'])(
    'leaves %j whole',
    (text) => expect(piecesOf(text)).toEqual(text === '' ? [] : [text]),
  )

  it.each([fc.string({ unit: 'binary' }), fc.string({ unit: fc.constantFrom(...'ab./:@= ') })])(
    'loses and adds nothing, whatever the text (%#)',
    (texts) => {
      fc.assert(
        fc.property(texts, (text) => {
          expect(piecesOf(text).join('')).toBe(text)
        }),
      )
    },
  )
})
