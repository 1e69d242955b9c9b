import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import { openSink } from '../open.ts'
import { at, contextOf, deliveryOf, rowsTo, writingOf } from '../testing/contract.ts'

it('takes no flood of a broker into memory', async () => {
  let sent = 0
  const server = createServer((socket) => {
    const piece = Buffer.alloc(2 ** 16, 0x7f)
    const flood = () => {
      if (socket.destroyed) return
      sent += piece.length
      // An answer that says it has 2 GB.
      if (socket.write(piece)) setImmediate(flood)
      else socket.once('drain', flood)
    }
    socket.on('error', () => undefined)
    socket.once('data', flood)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  const spec = { type: 'kafka' as const, kafka: { brokers: [`127.0.0.1:${port}`], topic: 'inventory' } }
  const declaration = { namespace: 'a', name: 'k', cluster: 'west', credentials: {}, spec }
  const sink = await openSink('event', declaration, contextOf())
  onTestFinished(() => sink[Symbol.asyncDispose]())
  const delivery = deliveryOf(writingOf('west'), at(1), rowsTo(1))
  await expect(sink.deliver(delivery, new AbortController().signal)).rejects.toMatchObject({
    errorClass: 'transient',
    message: expect.stringContaining('it begins an answer of 2139062143 bytes'),
  })
  expect(sent).toBeLessThan(64 * 2 ** 20)
})
