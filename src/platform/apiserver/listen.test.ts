import { once } from 'node:events'
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
})
