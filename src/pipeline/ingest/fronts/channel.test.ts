import { Duplex } from 'node:stream'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { BaseMismatchError } from '../errors.ts'
import { Channel, type ChannelEnd } from './channel.ts'
import { Credit } from './credit.ts'

/** Two ends of a line that cuts what is written into pieces of the given sizes. */
function aLine(sizes: readonly number[]): [Duplex, Duplex] {
  let turn = 0
  const end = (other: () => Duplex): Duplex =>
    new Duplex({
      read() {
        // pushed by the other end
      },
      write(chunk: Buffer, _encoding, done) {
        for (let at = 0; at < chunk.length; ) {
          const size = sizes[turn++ % sizes.length] ?? 1
          other().push(chunk.subarray(at, at + size))
          at += size
        }
        done()
      },
    })
  const a: Duplex = end(() => b)
  const b: Duplex = end(() => a)
  return [a, b]
}

const deaf: ChannelEnd<unknown> = {
  heard: () => undefined,
  asked: () => Promise.resolve(),
  closed: () => undefined,
}

describe('a channel between two processes', () => {
  it('brings messages and answers as they were sent, in order, however they are cut', async () => {
    const pieces = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 5 })
    const messages = fc.array(fc.tuple(fc.jsonValue(), fc.uint8Array({ maxLength: 60 })), { maxLength: 12 })
    await fc.assert(
      fc.asyncProperty(pieces, messages, async (sizes, sent) => {
        const [a, b] = aLine(sizes)
        const heard: unknown[] = []
        const channel = new Channel<unknown, unknown>(a, deaf)
        await using _other = new Channel<unknown, unknown>(b, {
          ...deaf,
          heard: (message) => heard.push(message),
          asked: (message, bytes) => Promise.resolve([message, [...bytes]]),
        })
        const plain = (value: unknown) => JSON.parse(JSON.stringify(value))
        const answers = await Promise.all(
          sent.map(([message, bytes]) => {
            channel.tell(message)
            return channel.ask(message, bytes)
          }),
        )
        expect(heard).toEqual(sent.map(([message]) => plain(message)))
        expect(answers).toEqual(sent.map(([message, bytes]) => [plain(message), [...bytes]]))
        await channel[Symbol.asyncDispose]()
      }),
      { numRuns: 100 },
    )
  })

  it('brings an error as the error it was, and fails what is asked when the other end is gone', async () => {
    const [a, b] = aLine([1000])
    const channel = new Channel<unknown, unknown>(a, deaf)
    const other = new Channel<unknown, unknown>(b, {
      ...deaf,
      asked: (message) =>
        message === 'wait' ? new Promise(() => undefined) : Promise.reject(new BaseMismatchError('west')),
    })
    await expect(channel.ask('x')).rejects.toBeInstanceOf(BaseMismatchError)
    const waiting = channel.ask('wait')
    a.destroy()
    await expect(waiting).rejects.toMatchObject({ code: 'store_unavailable', retryable: true })
    await expect(channel.ask('later')).rejects.toMatchObject({ retryable: true })
    await other[Symbol.asyncDispose]()
  })
})

describe('credit', () => {
  it('never lets more on its way than its bound, lets all go at last, in order', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.integer({ min: 1, max: 150 })), async (sizes) => {
        const credit = new Credit(100)
        const order: number[] = []
        let under = 0
        const one = async (size: number, i: number) => {
          await credit.take(size)
          order.push(i)
          under += size
          expect(under <= 100 || under === size).toBe(true)
          await new Promise((resolve) => setImmediate(resolve))
          under -= size
          credit.give(size)
        }
        await Promise.all(sizes.map(one))
        expect(order).toEqual(sizes.map((_, i) => i))
      }),
      { numRuns: 50 },
    )
  })
})
