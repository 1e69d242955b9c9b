import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import type { TestRedis } from './redis-server.ts'

/** The same Redis over a line that can be held up: what it answers waits, and comes in order. */
export interface LaggingRedis extends AsyncDisposable {
  readonly host: string
  readonly port: number
  hold(): void
  release(): void
}

export async function laggingRedis({ host, port }: TestRedis): Promise<LaggingRedis> {
  const answers = new Set<Socket>()
  let isHeld = false
  const server = createServer((asks) => {
    const redis = connect(port, host)
    answers.add(redis)
    if (isHeld) redis.pause()
    asks.on('data', (bytes) => redis.write(bytes))
    redis.on('data', (bytes) => asks.write(bytes))
    const end = () => {
      answers.delete(redis)
      asks.destroy()
      redis.destroy()
    }
    for (const socket of [asks, redis]) socket.on('close', end).on('error', end)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port was given')
  return {
    host: '127.0.0.1',
    port: address.port,
    hold() {
      isHeld = true
      for (const redis of answers) redis.pause()
    },
    release() {
      isHeld = false
      for (const redis of answers) redis.resume()
    },
    async [Symbol.asyncDispose]() {
      for (const redis of answers) redis.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}
