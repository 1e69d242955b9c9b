import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { request } from 'node:https'
import { connect, type Socket } from 'node:net'
import { describe, expect, it } from 'vitest'
import { listenApi } from './listen.ts'
import { ApiServer } from './server.ts'

describe('the port of an embedded API', () => {
  it('answers beside a thousand connections that say nothing, and keeps a watch open', async () => {
    await using server = await ApiServer.open({ storage: { kind: 'memory' }, name: 'hub' })
    const tokens = [{ token: 'word', user: 'me', groups: ['system:masters'] }]
    await using listener = await listenApi({ tokens, mounts: new Map([['', server]]), maxConnections: 100 })
    const { port, caPem: ca } = listener
    const ask = (path: string, localAddress: string) =>
      request({
        port,
        path,
        ca,
        host: '127.0.0.1',
        localAddress,
        agent: false,
        headers: { authorization: 'Bearer word' },
      })
    const watch = ask('/api/v1/namespaces?watch=true', '127.0.0.1').on('error', () => undefined)
    watch.end()
    const [events] = await once(watch, 'response')
    let isWatching = true
    events.resume().on('close', () => {
      isWatching = false
    })
    const sockets: Socket[] = []
    for (let i = 0; i < 1000; i++) {
      const socket = connect({ port, host: '127.0.0.1', localAddress: '127.0.0.2' }).on('error', () => undefined)
      sockets.push(socket)
      await once(socket, 'connect')
    }
    for (const localAddress of ['127.0.0.1', '127.0.0.2', '127.0.0.3']) {
      const asked = ask('/version', localAddress)
      asked.end()
      const [answer] = await once(asked, 'response')
      expect(answer.resume().statusCode).toBe(200)
    }
    expect(isWatching).toBe(true)
    for (const socket of sockets) socket.destroy()
    watch.destroy()
  })

  describe('that refuses a request while its body is still on its way', () => {
    const KIB = 1024
    /** Sends `chunks` times 64 KiB, a millisecond apart; resolves to what was answered, and whether the connection may be used again. */
    const sent = async (chunks: number, token: string) => {
      await using server = await ApiServer.open({ storage: { kind: 'memory' }, name: 'hub' })
      const tokens = [
        { token: 'word', user: 'me', groups: ['system:masters'] },
        { token: 'other', user: 'somebody' },
      ]
      await using listener = await listenApi({ tokens, mounts: new Map([['', server]]) })
      const asked = request({
        ...{ port: listener.port, ca: listener.caPem, host: '127.0.0.1', agent: false, method: 'POST' },
        path: '/api/v1/namespaces/default/configmaps',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', connection: 'keep-alive' },
      })
      let lost = 0
      asked.on('error', () => lost++)
      const answered = new Promise<IncomingMessage>((resolve) => asked.once('response', resolve))
      let heard: IncomingMessage | undefined
      void answered.then((answer) => {
        heard = answer
      })
      for (let i = 0; i < chunks && !heard; i++) {
        asked.write(Buffer.alloc(64 * KIB, ' '))
        await new Promise((resolve) => setTimeout(resolve, 1))
      }
      if (!heard) asked.end()
      const { statusCode, headers } = (await answered).resume()
      asked.destroy()
      return { statusCode, connection: headers.connection, lost }
    }

    it('reads the rest first: who writes sees why', async () => {
      expect(await sent(20, 'other')).toEqual({ statusCode: 403, connection: 'keep-alive', lost: 0 })
      expect(await sent(20, 'nobody')).toEqual({ statusCode: 401, connection: 'keep-alive', lost: 0 })
      expect(await sent(60, 'word')).toEqual({ statusCode: 413, connection: 'keep-alive', lost: 0 })
    })

    it('ends the connection with the answer where the rest has no end', async () => {
      expect(await sent(Number.POSITIVE_INFINITY, 'other')).toEqual({ statusCode: 403, connection: 'close', lost: 0 })
    })
  })
})
