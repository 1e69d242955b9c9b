import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'

/**
 * Stands before a server and can let the connections of a moment go silent: they stay open and carry nothing any more, in neither
 * direction, as when a node died hard or a NAT entry was dropped. New connections are well.
 */
export class SilentProxy implements AsyncDisposable {
  /** connections that were taken so far */
  taken = 0
  readonly #silent = new Set<readonly [Socket, Socket]>()
  readonly #server: Server
  readonly #pairs = new Set<readonly [Socket, Socket]>()
  #isCut = false

  private constructor(port: number, host: string) {
    this.#server = createServer((near) => {
      this.taken++
      const far = connect({ port, host })
      const pair = [near, far] as const
      this.#pairs.add(pair)
      const end = () => {
        this.#pairs.delete(pair)
        this.#silent.delete(pair)
        near.destroy()
        far.destroy()
      }
      for (const socket of pair) socket.once('close', end).once('error', end)
      if (this.#isCut) return void this.#silent.add(pair)
      near.pipe(far)
      far.pipe(near)
    })
  }

  static async before(port: number, host = '127.0.0.1'): Promise<SilentProxy> {
    const proxy = new SilentProxy(port, host)
    proxy.#server.listen(0, '127.0.0.1')
    await once(proxy.#server, 'listening')
    return proxy
  }

  get port(): number {
    const address = this.#server.address()
    return address && typeof address === 'object' ? address.port : 0
  }

  /** open connections that did not go silent */
  get carrying(): number {
    return this.#pairs.size - this.#silent.size
  }

  /** Those that went silent carry again, and what was said meanwhile arrives. */
  speak(): void {
    this.#isCut = false
    this.#silent.clear()
    for (const [near, far] of this.#pairs) {
      near.pipe(far)
      far.pipe(near)
    }
  }

  /** @returns how many connections went silent */
  silence(): number {
    const silenced = [...this.#pairs]
    for (const pair of silenced) {
      const [near, far] = pair
      this.#silent.add(pair)
      near.unpipe(far)
      far.unpipe(near)
      near.pause()
      far.pause()
    }
    return silenced.length
  }

  /** As `silence`, for connections that are opened from now on as well, until `speak`. */
  cut(): number {
    this.#isCut = true
    return this.silence()
  }

  /** Nobody listens there any more, as of a server that ended. @returns comes back, at the same port */
  async leave(): Promise<() => Promise<void>> {
    const { port } = this
    await this[Symbol.asyncDispose]()
    return async () => {
      this.#server.listen(port, '127.0.0.1')
      await once(this.#server, 'listening')
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const pair of this.#pairs) for (const socket of pair) socket.destroy()
    this.#server.close()
    await once(this.#server, 'close')
  }
}
