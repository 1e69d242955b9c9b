import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** A way to a server on which everything takes its time and nothing is lost. */
export interface SlowWay extends AsyncDisposable {
  readonly port: number
  /** connections that were taken so far */
  readonly taken: number
  /** in each direction, ms; of what comes from now on */
  delayMs: number
}

/** A port of 127.0.0.1 before another one. */
export async function slowWay(to: number, delayMs = 0): Promise<SlowWay> {
  const open = new Set<Socket>()
  const way = { taken: 0, delayMs }
  const server = createServer((near) => {
    way.taken++
    const far = connect(to, '127.0.0.1')
    const carry = (from: Socket, into: Socket) => {
      open.add(from)
      from.on('data', (data) => setTimeout(() => into.write(data), way.delayMs))
      from.on('error', () => from.destroy())
      from.on('close', () => {
        open.delete(from)
        into.destroy()
      })
    }
    carry(near, far)
    carry(far, near)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return Object.assign(way, {
    port,
    async [Symbol.asyncDispose]() {
      server.close()
      for (const socket of open) socket.destroy()
      await once(server, 'close')
    },
  })
}
