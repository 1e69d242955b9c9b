import { once } from 'node:events'
import { createServer } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import { openSink } from '../open.ts'
import type { EventDeclaration } from '../sink.ts'
import { at, contextOf, deliveryOf, rowsTo, writingOf } from '../testing/contract.ts'

/** A server that answers each attempt to sign in with these words. */
async function refusing(words: string): Promise<string> {
  const info = {
    server_id: 's',
    version: '2.10.0',
    proto: 1,
    max_payload: 1_048_576,
    auth_required: true,
    headers: true,
  }
  const server = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.write(`INFO ${JSON.stringify(info)}\r\n`)
    socket.once('data', () => socket.end(`-ERR '${words}'\r\n`))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  const address = server.address()
  return `nats://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`
}

async function refusal(words: string) {
  const declaration: EventDeclaration = {
    ...{ namespace: 'team-a', name: 'events', cluster: 'west', credentials: { token: Buffer.from('hunter2') } },
    spec: {
      type: 'nats',
      endpoint: await refusing(words),
      nats: { subject: 'inventory.{cluster}.{namespace}.{name}' },
    },
  }
  const sink = await openSink('event', declaration, contextOf({}))
  onTestFinished(() => sink[Symbol.asyncDispose]())
  const signal = new AbortController().signal
  return sink.deliver(deliveryOf(writingOf('west'), at(1), rowsTo(1)), signal).catch((error: unknown) => error)
}

// The library has one class for both.
it('tells a server that heard no credentials in time from one that does not take them', async () => {
  expect(await refusal('Authentication Timeout')).toMatchObject({
    code: 'sink_transient',
    message: expect.stringMatching(/heard no credentials in time .+; it is tried again$/),
  })
  expect(await refusal('Authorization Violation')).toMatchObject({
    code: 'sink_terminal',
    message: expect.stringContaining('does not take the credentials'),
  })
})
