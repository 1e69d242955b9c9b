import fc from 'fast-check'
import { expect, it } from 'vitest'
import { Answers } from './answers.ts'

const int32 = (...values: number[]) => {
  const buffer = Buffer.alloc(4 * values.length)
  values.forEach((value, at) => {
    buffer.writeInt32BE(value, 4 * at)
  })
  return buffer
}
const framed = (body: Buffer) => Buffer.concat([int32(body.length), body])
const request = (api: number, version: number, id: number) =>
  framed(Buffer.concat([Buffer.from([0, api, 0, version]), int32(id), Buffer.from('rest')]))
const answer = (id: number, ...body: number[]) => framed(int32(id, ...body))

it('reads the same, however an answer is cut into pieces, and finds the first that is wrong', () => {
  const whole = fc.constantFrom('scram', 'ack', 'metadata', 'old metadata')
  const wrong = fc.constantFrom(
    'hashes',
    'hashes said twice',
    'hashes behind a space',
    'long sasl',
    'nobody asked',
    'empty',
    'negative',
    'huge',
    'brokers',
    'old brokers',
    'cut',
    undefined,
  )
  fc.assert(
    fc.property(fc.array(whole, { maxLength: 6 }), wrong, fc.infiniteStream(fc.nat(40)), (good, bad, cuts) => {
      const answers = new Answers()
      let id = 0
      const ask = (api: number, version: number) => {
        answers.ask(request(api, version, ++id))
        return id
      }
      const good_ = good.map((kind) => {
        if (kind === 'scram') return framed(Buffer.concat([int32(ask(36, 1)), Buffer.from('r=abc,s=def,i=4096')]))
        if (kind === 'ack') return answer(ask(0, 7), 1, 2, 3, 4, 5, 6)
        return kind === 'metadata' ? answer(ask(3, 6), 0, 1000, 7) : answer(ask(3, 1), 1000, 7)
      })
      const last = {
        'nobody asked': () => answer(9999, 1, 2, 3),
        empty: () => int32(0),
        negative: () => int32(-8, 1, 1),
        huge: () => int32(2 ** 21),
        brokers: () => answer(ask(3, 6), 0, 1_000_000, 7),
        'old brokers': () => answer(ask(3, 2), 1001),
        hashes: () => {
          const said = Buffer.from('r=abc,s=def,i=1000001')
          return framed(Buffer.concat([int32(ask(36, 1)), said]))
        },
        'hashes said twice': () => {
          const said = Buffer.from('r=abc,s=def,i=4096,i=2000000000')
          return framed(Buffer.concat([int32(ask(36, 1)), said]))
        },
        'hashes behind a space': () => {
          const said = Buffer.from('i=\u00a0+2000000000,r=abc,s=def')
          return framed(Buffer.concat([int32(ask(36, 1)), said]))
        },
        'long sasl': () => framed(Buffer.concat([int32(ask(36, 1)), Buffer.alloc(9000)])),
        cut: () => answer(ask(3, 6), 0),
      }
      const bytes = Buffer.concat([...good_, ...(bad ? [last[bad]()] : [])])
      let fault: string | undefined
      for (let at = 0; at < bytes.length && fault === undefined; ) {
        const end = at + 1 + (cuts.next().value as number) // the stream has no end
        fault = answers.fault(bytes.subarray(at, end))
        at = end
      }
      expect(fault === undefined).toBe(bad === undefined)
    }),
  )
})
