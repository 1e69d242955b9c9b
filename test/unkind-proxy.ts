import { once } from 'node:events'
import { createServer, request, type Server } from 'node:http'

/** `pass`: to the server behind. `hang`: nobody ever answers. A status: that is all that is said. */
type Mood = 'pass' | 'hang' | number

/** Stands before a server and treats every request as its mood is. */
export class UnkindProxy implements AsyncDisposable {
  mood: Mood = 'pass'
  /** requests that met no kindness */
  refused = 0
  readonly #server: Server

  private constructor(behind: string) {
    this.#server = createServer((incoming, response) => {
      if (this.mood !== 'pass') this.refused++
      if (typeof this.mood === 'number') {
        incoming.resume()
        incoming.once('end', () => response.writeHead(this.mood as number).end('not now'))
        return
      }
      if (this.mood === 'hang') {
        incoming.resume()
        return
      }
      const { method = 'GET', headers, url = '/' } = incoming
      const onward = request(new URL(url, behind), { method, headers }, (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers)
        answer.pipe(response)
        answer.once('error', () => response.destroy())
      })
      onward.once('error', () => response.destroy())
      incoming.pipe(onward)
    })
  }

  static async before(behind: string): Promise<UnkindProxy> {
    const proxy = new UnkindProxy(behind)
    proxy.#server.listen(0, '127.0.0.1')
    await once(proxy.#server, 'listening')
    return proxy
  }

  get endpoint(): string {
    const address = this.#server.address()
    return address && typeof address === 'object' ? `http://127.0.0.1:${address.port}` : ''
  }

  /** Whoever waits is disconnected. */
  be(mood: Mood): void {
    if (this.mood === 'hang') this.#server.closeAllConnections()
    this.mood = mood
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    this.#server.close()
    await once(this.#server, 'close')
  }
}
