import { once } from 'node:events'
import { WebSocket } from 'ws'
import type { Frame } from './stream-reader.ts'

/** A client of the stream over a WebSocket, as `StreamReader` is one of server-sent events. */
export class SocketReader {
  readonly frames: Frame[] = []
  readonly socket: WebSocket
  #wake = (): void => undefined

  private constructor(socket: WebSocket) {
    this.socket = socket
    socket.on('error', () => this.#wake())
    socket.on('message', (text) => {
      const { kind, id, ...data } = JSON.parse(String(text)) as { kind: string; id?: string }
      if (kind !== 'heartbeat') this.frames.push({ event: kind, id, data })
      this.#wake()
    })
  }

  /** @param url as of server-sent events */
  static async open(url: string, headers: Record<string, string> = {}): Promise<SocketReader> {
    const address = url.replace(/^http/, 'ws').replace('/api/v1/stream', '/api/v1/stream/ws')
    const reader = new SocketReader(new WebSocket(address, { headers }))
    await once(reader.socket, 'open')
    return reader
  }

  async until(is: (frames: readonly Frame[]) => boolean, withinMs = 20_000): Promise<void> {
    for (const end = Date.now() + withinMs; !is(this.frames); ) {
      if (Date.now() > end)
        throw new Error(`the socket did not say so; it said ${this.frames.map(({ event }) => event)}`)
      await new Promise<void>((resolve) => {
        this.#wake = resolve
        setTimeout(resolve, 100)
      })
    }
  }

  close(): void {
    this.socket.terminate()
  }
}
