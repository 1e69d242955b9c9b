import { Duplex } from 'node:stream'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { StoreUnavailableError } from '#model'
import { Channel, type ChannelEnd } from './channel.ts'

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

const deaf: ChannelEnd<unknown> = { heard: () => undefined, closed: () => undefined }

describe('a channel between two processes', () => {
  it('brings messages, bytes and answers as they were sent, in order, however they are cut', async () => {
    const pieces = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 5 })
    const messages = fc.array(fc.tuple(fc.jsonValue(), fc.uint8Array({ maxLength: 60 })), { maxLength: 12 })
    await fc.assert(
      fc.asyncProperty(pieces, messages, async (sizes, sent) => {
        const [a, b] = aLine(sizes)
        const heard: unknown[] = []
        const channel = new Channel<unknown, unknown>(a, deaf)
        await using _other = new Channel<unknown, unknown>(b, {
          ...deaf,
          heard: (message, bytes) => heard.push([message, [...bytes]]),
          asked: (message, bytes) => Promise.resolve([message, [...bytes]]),
        })
        const plain = (value: unknown) => JSON.parse(JSON.stringify(value))
        const answers = await Promise.all(
          sent.map(([message, bytes]) => {
            channel.tell(message, bytes)
            return channel.ask(message, bytes)
          }),
        )
        const expected = sent.map(([message, bytes]) => [plain(message), [...bytes]])
        expect(heard).toEqual(expected)
        expect(answers).toEqual(expected)
        await channel[Symbol.asyncDispose]()
      }),
      { numRuns: 100 },
    )
  })

  it('brings an error with its code, and fails what is asked when the other end is gone', async () => {
    const [a, b] = aLine([1000])
    const channel = new Channel<unknown, unknown>(a, deaf)
    const other = new Channel<unknown, unknown>(b, {
      ...deaf,
      asked: (message) =>
        message === 'wait'
          ? new Promise(() => undefined)
          : Promise.reject(new StoreUnavailableError('Redis', 'it is full')),
    })
    await expect(channel.ask('x')).rejects.toMatchObject({ code: 'store_unavailable', retryable: true })
    const waiting = channel.ask('wait')
    a.destroy()
    await expect(waiting).rejects.toMatchObject({ code: 'other_process_gone', retryable: true })
    await expect(channel.ask('later')).rejects.toMatchObject({ code: 'other_process_gone' })
    await other[Symbol.asyncDispose]()
  })

  it('ends at what is no frame of it, and what is asked fails', async () => {
    const frame = (text: string) => {
      const bytes = Buffer.alloc(13 + text.length)
      bytes.writeUInt32LE(9 + text.length, 0)
      bytes.writeUInt32LE(text.length, 9)
      bytes.write(text, 13)
      return bytes
    }
    const bad = [frame('{"cut'), Buffer.alloc(20, 255), Buffer.from([1, 0, 0, 0, 0])]
    for (const bytes of bad) {
      const [a, b] = aLine([1000])
      await using channel = new Channel<unknown, unknown>(a, deaf)
      const waiting = channel.ask('x')
      b.write(bytes)
      await expect(waiting).rejects.toMatchObject({ code: 'other_process_gone' })
      expect(channel.isClosed).toBe(true)
    }
  })

  it('says that nobody answers where nobody does', async () => {
    const [a, b] = aLine([7])
    await using channel = new Channel<unknown, unknown>(a, deaf)
    await using _other = new Channel<unknown, unknown>(b, deaf)
    await expect(channel.ask('x')).rejects.toThrow('nobody answers')
  })
})
