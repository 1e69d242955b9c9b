import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { slowness } from '../../platform/runtime/testing/slowness.ts'
import { openSink } from './open.ts'
import type { SinkFamily } from './sink.ts'
import { at, contextOf, deliveryOf, rowsTo, writingOf } from './testing/contract.ts'

/*
 * Addresses of sinks are the tenants': whatever answers there costs that sink alone. An error outside of the promise that is waited for
 * fails the run, as it would end the process.
 */

/** A server that speaks first, and answers each piece it is sent. */
async function serverThat(answers: (socket: Socket, piece: Buffer, at: number) => void): Promise<number> {
  const server = createServer((socket) => {
    let pieces = 0
    socket.on('error', () => undefined)
    answers(socket, Buffer.alloc(0), pieces++)
    socket.on('data', (piece) => answers(socket, piece, pieces++))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return (server.address() as AddressInfo).port
}

const bytes = (text: string) => new Uint8Array(Buffer.from(text))
type Declaration = Parameters<typeof openSink>[1]
const declared = (credentials: Record<string, Uint8Array>, spec: object) =>
  ({ namespace: 'a', name: 'k', cluster: 'west', credentials, spec }) as unknown as Declaration

const drivers: Readonly<Record<string, readonly [SinkFamily, (port: number) => Declaration]>> = {
  kafka: ['event', (port) => declared({}, { type: 'kafka', kafka: { brokers: [`127.0.0.1:${port}`], topic: 't' } })],
  'kafka with credentials': [
    'event',
    (port) =>
      declared(
        { username: bytes('u'), password: bytes('p') },
        { type: 'kafka', kafka: { brokers: [`127.0.0.1:${port}`], topic: 't' } },
      ),
  ],
  nats: ['event', (port) => declared({}, { type: 'nats', nats: { url: `nats://127.0.0.1:${port}`, stream: 'S' } })],
  s3: [
    'snapshot',
    (port) =>
      declared(
        { accessKeyID: bytes('a'), secretAccessKey: bytes('b') },
        { type: 's3', endpoint: `http://127.0.0.1:${port}/bucket` },
      ),
  ],
  postgres: [
    'database',
    (port) =>
      declared(
        { dsn: bytes(`postgres://u:p@127.0.0.1:${port}/d?sslmode=disable`) },
        { type: 'postgres', postgres: { table: 'inventory' } },
      ),
  ],
}

/** The same for a seed. */
function randomOf(seed: number): () => number {
  let state = seed
  return () => {
    state = (state * 1664525 + 1013904223) % 2 ** 32
    return state / 2 ** 32
  }
}

async function outcome(driver: string, port: number, forMs = 1_000): Promise<unknown> {
  const [family, declarationOf] = drivers[driver] ?? []
  if (!family || !declarationOf) throw new Error(driver)
  try {
    await using sink = await openSink(family, declarationOf(port), contextOf())
    await sink.deliver(deliveryOf(writingOf('west'), at(1), rowsTo(1)), AbortSignal.timeout(forMs))
    return 'taken'
  } catch (error) {
    return error
  }
}

/** What makes each library wait for an answer that never ends. */
const floods: Readonly<Record<string, readonly string[]>> = {
  nats: [
    'INFO {"server_id":"x","version":"2.9.0","proto":1,"max_payload":1048576,"headers":true}\r\n',
    'PONG\r\nMSG _INBOX.a 1 999999999\r\n',
  ],
  postgres: ['', 'D\x7f\xff\xff\xff'],
  s3: ['', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n7fffffff\r\n'],
}

it.each(Object.keys(floods))('%s takes no flood into memory', async (driver) => {
  let sent = 0
  const [greeting = '', beginning = ''] = floods[driver] ?? []
  const piece = Buffer.alloc(2 ** 16, 'x')
  const port = await serverThat((socket, _, at) => {
    if (at === 0) return void socket.write(greeting, 'latin1')
    if (at > 1) return
    socket.write(beginning, 'latin1')
    const flood = () => {
      if (socket.destroyed) return
      sent += piece.length
      if (socket.write(piece)) setImmediate(flood)
      else socket.once('drain', flood)
    }
    flood()
  })
  // A document that is none of ours stays there; whoever floods a connection may end.
  expect(await outcome(driver, port, 60_000)).toMatchObject({ errorClass: driver === 's3' ? 'terminal' : 'transient' })
  expect(sent).toBeLessThan(2 ** 30)
})

it('s3 reads few of the words of an error', async () => {
  const words = `<?xml version="1.0"?><Error>${'<a>'.repeat(1_000_000)}`
  const head = `HTTP/1.1 400 Bad Request\r\ncontent-type: application/xml\r\ncontent-length: ${words.length}\r\n\r\n`
  const port = await serverThat((socket, _, at) => void (at === 1 && socket.write(head + words)))
  const began = performance.now()
  expect(await outcome('s3', port, 30_000)).toMatchObject({
    errorClass: 'transient',
    message: expect.stringContaining('64 KiB with status 400'),
  })
  expect((performance.now() - began) / slowness).toBeLessThan(5000)
})

describe.each(Object.keys(drivers))('%s', (driver) => {
  it('survives whatever is answered', async () => {
    const random = randomOf(7)
    const some = (n: number) => Math.floor(random() * n)
    const frame = (size: number, rest: Buffer) => {
      const head = Buffer.alloc(4)
      head.writeInt32BE(size)
      return Buffer.concat([head, rest])
    }
    const noise = (n: number) => Buffer.from(Array.from({ length: n }, () => some(256)))
    const natsGreeting = Buffer.from(
      'INFO {"server_id":"x","version":"2.9.0","proto":1,"max_payload":1048576,"headers":true}\r\nPONG\r\n',
    )
    const natsReply = (piece: Buffer): Buffer => {
      const inbox = /(_INBOX\.\S+) \d+\r\n/.exec(piece.toString('latin1'))?.[1] ?? '_INBOX.a'
      const body =
        ['{}', '{"error":{"code":5}}', '{"config":{},"state":{}}', '[]', 'null', '{"stream":1,"seq":"x"}'][some(6)] ??
        ''
      return Buffer.from(`MSG ${inbox} 1 ${body.length + some(2) * some(5)}\r\n${body}\r\n`)
    }
    const answerOf = (piece: Buffer): Buffer => {
      const id = piece.subarray(8, 12)
      switch (some(9)) {
        case 0:
          return frame(some(12) - 4, Buffer.alloc(0))
        case 1:
          return frame(-some(2 ** 30), noise(some(30)))
        case 2:
          return frame(4, id)
        case 3: {
          const body = noise(some(60))
          return frame(4 + body.length, Buffer.concat([id, body]))
        }
        case 4:
          return noise(1 + some(200))
        case 5:
          return Buffer.from(
            ['-ERR x\r\n', 'MSG a b c\r\n', 'INFO {}\r\nMSG _INBOX.x 1 -5\r\n', 'INFO {"max_payload":-1}\r\nPONG\r\n'][
              some(4)
            ] ?? '',
          )
        case 6:
          return Buffer.concat([Buffer.from('RSEKZTCDN'[some(9)] ?? ''), frame(some(40) - 8, noise(some(40)))])
        case 7:
          return Buffer.concat([
            Buffer.from('R'),
            frame(8, Buffer.alloc(4)),
            Buffer.from('Z'),
            frame(5, Buffer.from('I')),
          ])
        default:
          return Buffer.concat([natsGreeting, natsReply(piece), noise(some(2) * some(50))])
      }
    }
    const port = await serverThat((socket, piece) => {
      if (random() < 0.1) socket.destroy()
      else socket.write(answerOf(piece))
      // Who is left waiting is another test's.
      setTimeout(() => socket.destroy(), 300).unref()
    })
    const outcomes = await Promise.all(Array.from({ length: 60 }, () => outcome(driver, port)))
    for (const one of outcomes) expect(one).toBeInstanceOf(Error)
  })
})
