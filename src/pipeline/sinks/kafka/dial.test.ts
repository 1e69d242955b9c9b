import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { expect, it, onTestFinished, vi } from 'vitest'
import { OutboundGuard } from '#outbound'
import { openSink } from '../open.ts'
import { at, contextOf, deliveryOf, rowsTo, writingOf } from '../testing/contract.ts'
import { KafkaDialer } from './dial.ts'

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

it('sends nothing to a broker once another replica may write, also of what is sent again by itself', async () => {
  const heard: Buffer[] = []
  const server = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.on('data', (piece) => heard.push(piece))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  const guard = new OutboundGuard({ use: 'sink', allowLoopback: true, allowPrivate: true })
  let leads = true
  const dialer = new KafkaDialer([{ host: '127.0.0.1', port }], guard, () => {
    if (!leads) throw new Error('the lease is lost')
  })
  onTestFinished(() => dialer.end())
  const connected = new Promise<Socket>((resolve) => {
    const socket = dialer.dial({ host: '127.0.0.1', port, ssl: undefined as never, onConnect: () => resolve(socket) })
  })
  const socket = await connected
  socket.on('error', () => undefined)
  const request = Buffer.from([0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 1, 0, 0])
  socket.write(request)
  await vi.waitFor(() => expect(Buffer.concat(heard)).toEqual(request))
  leads = false
  const closed = new Promise((resolve) => socket.on('close', resolve))
  expect(socket.write(request)).toBe(false)
  await closed
  expect(Buffer.concat(heard)).toEqual(request)
})
