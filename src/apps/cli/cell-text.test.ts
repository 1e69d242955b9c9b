import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { JsonValue } from '#model'
import { cellText } from './cell-text.ts'

describe('what a table shows of a list or an object', () => {
  it.each([
    [['a', 'b'], 'a,b'],
    [{ cpu: '8', memory: '32Gi' }, 'cpu=8,memory=32Gi'],
    [[{ type: 'Joined', status: 'True', reason: 'ItJoined', message: 'since…', since: 1 }], 'Joined=True'],
    [[{ name: 'operator', version: '4.18.1' }], 'operator=4.18.1'],
    [[{ group: '', resource: 'pods', namespace: 'shop', name: 'web' }], 'pods/shop/web'],
    [{ web: { restarts: 2 } }, 'web=(restarts=2)'],
    [{ web: 2, init: null }, 'web=2,init='],
    [[], null],
    [{}, null],
  ] satisfies [JsonValue, string | null][])('%j is %s', (value, text) => expect(cellText(value)).toBe(text))

  it('is never JSON, and never empty text', () => {
    const word = fc.stringMatching(/^[a-z0-9]{1,8}$/)
    const { tree } = fc.letrec<{ tree: JsonValue }>((tie) => ({
      tree: fc.oneof({ maxDepth: 3 }, word, fc.integer(), fc.array(tie('tree')), fc.dictionary(word, tie('tree'))),
    }))
    fc.assert(
      fc.property(fc.oneof(fc.array(tree), fc.dictionary(word, tree)), (value) => {
        expect(cellText(value) ?? '-').toMatch(/^[^{}[\]"]+$/)
      }),
    )
  })
})
