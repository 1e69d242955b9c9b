import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'

/** `pass`: to the server behind. `taken, then …`: the server behind took it, but nobody hears of that. */
export type Fault =
  | 'pass'
  | 'reset'
  | 'hang'
  | 'taken, then reset'
  | 'taken, then hang'
  | { status: number; text: string }

/** Stands before a server and does to imports what a network may do. Everything else passes. */
export class FaultyBackend implements AsyncDisposable {
  fault: Fault = 'pass'
  /** bodies of imports that came, compressed ones as they came */
  readonly imports: { body: Buffer; encoding: string | undefined }[] = []
  readonly #server: Server
  readonly #behind: string | undefined

  private constructor(behind: string | undefined) {
    this.#behind = behind
    this.#server = createServer((request, response) => {
      this.#answer(request, response).catch(() => response.destroy())
    })
  }

  static async start(behind?: string): Promise<FaultyBackend> {
    const backend = new FaultyBackend(behind)
    backend.#server.listen(0, '127.0.0.1')
    await once(backend.#server, 'listening')
    return backend
  }

  get endpoint(): string {
    const address = this.#server.address()
    return address && typeof address === 'object' ? `http://127.0.0.1:${address.port}` : ''
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    this.#server.close()
    await once(this.#server, 'close')
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const body = Buffer.concat(chunks)
    const isImport = request.url?.startsWith('/api/v1/import') === true
    const encoding = request.headers['content-encoding']
    if (isImport) this.imports.push({ body, encoding })
    const { fault } = this
    const lines = body.toString().trim().split('\n')
    const isMarker = lines.every((line) => line.startsWith('clusterpulse_history_position{'))
    if (!isImport || isMarker || fault === 'pass') return this.#pass(request, body, response)
    if (typeof fault === 'object') {
      response.writeHead(fault.status).end(fault.text)
      return
    }
    if (fault.startsWith('taken')) await this.#forward(request, body)
    if (fault.endsWith('reset')) response.destroy()
  }

  async #pass(request: IncomingMessage, body: Buffer, response: ServerResponse): Promise<void> {
    const answer = await this.#forward(request, body)
    const text = answer ? await answer.arrayBuffer() : new ArrayBuffer(0)
    response.writeHead(answer?.status ?? 204).end(new Uint8Array(text))
  }

  #forward(request: IncomingMessage, body: Buffer): Promise<Response> | undefined {
    if (this.#behind === undefined) return undefined
    const names = ['content-type', 'content-encoding'] as const
    const headers = names.flatMap((name): [string, string][] => {
      const value = request.headers[name]
      return value === undefined ? [] : [[name, value]]
    })
    const method = request.method ?? 'GET'
    return fetch(this.#behind + request.url, {
      method,
      headers,
      ...(method === 'POST' && { body: new Uint8Array(body) }),
    })
  }
}
