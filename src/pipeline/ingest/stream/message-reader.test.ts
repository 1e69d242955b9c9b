import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ByteBudget, MessageReader } from './message-reader.ts'

const limits = { maxMessageBytes: 4_000, maxNewcomerMessageBytes: 100 }

function aReader({ maxBytes = 10_000, newcomers = new ByteBudget(maxBytes) } = {}) {
  const refused: string[] = []
  return {
    reader: new MessageReader({ limits, newcomers, onRefused: (why) => refused.push(why) }),
    newcomers,
    refused,
  }
}

const prefix = (size: number) => {
  const bytes = Buffer.alloc(5)
  bytes.writeUInt32BE(size, 1)
  return bytes
}
const framed = (body: Uint8Array) => Buffer.concat([prefix(body.length), body])

describe('messages of a call', () => {
  it('come whole, one at a time and in their order, however their bytes are cut, and nothing of them stays', () => {
    const body = fc.uint8Array({ maxLength: limits.maxNewcomerMessageBytes })
    fc.assert(
      fc.property(
        fc.array(body, { maxLength: 12 }),
        fc.infiniteStream(fc.integer({ min: 1, max: 90 })),
        (bodies, cuts) => {
          const { reader, newcomers, refused } = aReader()
          const got: Buffer[] = []
          let rest = Buffer.concat(bodies.map(framed))
          while (rest.length > 0) {
            const { value: cut } = cuts.next()
            let messages = reader.write(rest.subarray(0, cut))
            rest = rest.subarray(cut)
            // As its call does: what is here already is asked for before more comes.
            while (messages.length > 0) {
              expect(messages).toHaveLength(1)
              got.push(...messages)
              messages = reader.write(Buffer.alloc(0))
            }
          }
          expect(got.map((message) => [...message])).toEqual(bodies.map((one) => [...framed(one)]))
          expect([newcomers.held, refused]).toEqual([0, []])
        },
      ),
    )
  })

  it('of a newcomer are refused by their prefix, with the bound in the answer, before anything of them is held', () => {
    const { reader, newcomers, refused } = aReader()
    expect(() => reader.write(Buffer.concat([prefix(101), Buffer.alloc(50)]))).toThrow(
      'too_large: before the registration a message has at most 100 bytes, and this one 101',
    )
    expect([newcomers.held, refused]).toEqual([0, ['too_large']])
    expect(reader.write(framed(Buffer.alloc(3)))).toEqual([])
  })

  it('behind a registration may be as large as those of members, though they came with it', () => {
    const { reader, newcomers } = aReader()
    const large = framed(Buffer.alloc(4_000, 7))
    expect(reader.write(Buffer.concat([framed(Buffer.from('register')), large.subarray(0, 900)]))).toHaveLength(1)
    reader.admit()
    expect(newcomers.held).toBe(0)
    expect(reader.write(Buffer.alloc(0))).toEqual([])
    expect(reader.write(large.subarray(900))).toEqual([large])
    expect(() => reader.write(prefix(4_001))).toThrow('too_large: a message has at most 4000 bytes, and this one 4001')
  })

  it('of all newcomers together hold so much and no more; who goes or is admitted gives it back', () => {
    const newcomers = new ByteBudget(200)
    const [one, two, three] = [aReader({ newcomers }), aReader({ newcomers }), aReader({ newcomers })]
    const most = framed(Buffer.alloc(90)).subarray(0, 90)
    one.reader.write(most)
    two.reader.write(most)
    expect(() => three.reader.write(most)).toThrow(
      'busy: streams that have not registered hold at most 200 bytes together; try again later',
    )
    expect(three.refused).toEqual(['newcomer_bytes'])
    one.reader.close()
    two.reader.admit()
    expect(newcomers.held).toBe(0)
    aReader({ newcomers }).reader.write(most)
    expect(newcomers.held).toBe(90)
  })

  it('count what they hold, byte by byte as well', () => {
    const { reader, newcomers } = aReader()
    for (const byte of framed(Buffer.alloc(100)).subarray(0, 104)) {
      reader.write(Buffer.from([byte]))
      expect(newcomers.held).toBeLessThanOrEqual(105)
    }
    expect(reader.write(Buffer.from([0]))).toHaveLength(1)
  })

  it('are not inflated: a few bytes could be as many as the bound, a thousand times in one read', () => {
    const { reader } = aReader()
    const message = framed(Buffer.alloc(10))
    message[0] = 1
    expect(() => reader.write(message)).toThrow('messages may not be compressed by gRPC')
  })
})
