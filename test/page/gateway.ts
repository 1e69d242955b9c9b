import { once } from 'node:events'
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Transform } from 'node:stream'

/** Whom a signing-in proxy says somebody is. */
export interface Visitor {
  readonly username: string
  readonly email: string
  readonly groups: readonly string[]
}

/** What is answered in the place of the hub. */
export interface Refusal {
  readonly status: number
  readonly code: string
  readonly error: string
  readonly retryAfterSeconds?: number
}

/** The port of the gateway that stopped last; 0 where another one has it. */
let free = 0

/**
 * What stands between a browser and a hub: signs people in by headers, may publish the hub below a path, notes what is asked,
 * and can refuse, hold and cut.
 */
export class Gateway {
  /** who looks; null: nobody is signed in */
  visitor: Visitor | null
  /** paths and queries, in the order they came */
  readonly requests: string[] = []
  /** what every answer of the API is instead, if anything */
  refuse: Refusal | null = null
  /** which requests `refuse` and `hold` are about; default: all of the API */
  only: RegExp = /^\/api\//
  /** answers of the API wait until this is false, and so do the frames of open streams */
  hold = false
  /** whether a stream gets through; polling still does */
  streams = true
  readonly #prefix: string
  readonly #hub: string
  readonly #open = new Set<ServerResponse>()
  #server: Server | undefined

  constructor({ hub, visitor, prefix = '' }: { hub: string; visitor: Visitor; prefix?: string }) {
    this.#hub = hub
    this.visitor = visitor
    this.#prefix = prefix
  }

  /**
   * @param port default: where the one before listened, so that a browser has the scripts of the page already, compiled
   * @returns the address for browsers
   */
  async start(port?: number): Promise<string> {
    const server = createServer((asked, answer) => {
      this.#answer(asked, answer).catch(() => answer.destroy())
    })
    this.#server = server
    const listen = async (on: number) => {
      server.listen(on, '127.0.0.1')
      await once(server, 'listening')
    }
    const before = free
    free = 0
    await listen(port ?? before).catch(() => listen(port ?? 0))
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}${this.#prefix}`
  }

  async stop(): Promise<void> {
    const server = this.#server
    if (!server) return
    this.#server = undefined
    free = (server.address() as AddressInfo).port
    server.close()
    server.closeAllConnections()
    await once(server, 'close')
  }

  get openStreams(): number {
    return this.#open.size
  }

  /** Breaks every stream off. */
  cut(): void {
    for (const stream of this.#open) stream.destroy()
    this.#open.clear()
  }

  /** A frame in every open stream that the hub did not send; for readers that asked for streams as they are. */
  say(kind: string, data: object): void {
    for (const stream of this.#open) stream.write(`event: ${kind}\nid: said\ndata: ${JSON.stringify(data)}\n\n`)
  }

  async #answer(asked: IncomingMessage, answer: ServerResponse): Promise<void> {
    const url = asked.url ?? '/'
    if (!url.startsWith(`${this.#prefix}/`)) return void answer.writeHead(404).end()
    const path = url.slice(this.#prefix.length)
    this.requests.push(path)
    const isMeant = this.only.test(path)
    while (isMeant && this.hold) await new Promise((resolve) => setTimeout(resolve, 10))
    const isStream = path.startsWith('/api/v1/stream')
    if (isStream && !this.streams)
      return refuseWith(answer, { status: 503, code: 'too_many_streams', error: 'too many streams are open' })
    // Who looks is asked of the hub also while it refuses everything else.
    if (isMeant && this.refuse && path !== '/api/v1/session') return refuseWith(answer, this.refuse)
    if (isStream) {
      this.#open.add(answer)
      answer.once('close', () => this.#open.delete(answer))
    }
    this.#forward(asked, answer, { path, isHeld: isStream && isMeant })
  }

  #forward(asked: IncomingMessage, answer: ServerResponse, { path, isHeld }: Way): void {
    const { visitor } = this
    const onward = request(new URL(path, this.#hub), {
      method: asked.method ?? 'GET',
      headers: {
        ...asked.headers,
        ...(this.#prefix && { 'accept-encoding': 'identity' }),
        ...(visitor && {
          'x-forwarded-user': visitor.username,
          'x-forwarded-email': visitor.email,
          'x-forwarded-groups': visitor.groups.join(','),
        }),
      },
    })
    onward.once('response', (told) => {
      const isPage = String(told.headers['content-type']).startsWith('text/html')
      if (this.#prefix && isPage) return void this.#below(told, answer)
      answer.writeHead(told.statusCode ?? 502, told.headers)
      const body = isHeld ? told.pipe(this.#whileNotHeld()) : told
      body.pipe(answer)
      told.once('error', () => answer.destroy())
    })
    onward.once('error', () => answer.destroy())
    answer.once('close', () => onward.destroy())
    asked.pipe(onward)
  }

  #whileNotHeld(): Transform {
    const isHeld = () => this.hold
    return new Transform({
      transform(chunk, _encoding, done) {
        const pass = () => void (isHeld() && !this.destroyed ? setTimeout(pass, 10) : done(null, chunk))
        pass()
      },
    })
  }

  /** What a server that publishes a page below a path does: index.html alone names files from the root. */
  async #below(told: IncomingMessage, answer: ServerResponse): Promise<void> {
    let page = ''
    for await (const chunk of told) page += String(chunk)
    const { 'content-length': _length, ...headers } = told.headers
    answer.writeHead(told.statusCode ?? 502, headers)
    answer.end(page.replaceAll(/(href|src)="\//g, `$1="${this.#prefix}/`))
  }
}

interface Way {
  readonly path: string
  /** what comes of it waits while the gateway holds */
  readonly isHeld: boolean
}

function refuseWith(answer: ServerResponse, { status, ...problem }: Refusal): void {
  answer.writeHead(status, { 'content-type': 'application/json' })
  answer.end(JSON.stringify({ ...problem, requestId: 'req-4711' }))
}
