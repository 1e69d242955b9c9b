import type { ServerResponse } from 'node:http'
import { writeShared } from '#runtime'
import type { Sink } from '../stream/client.ts'
import type { Frame } from '../stream/frame.ts'

const BEAT = Buffer.from(': \n\n')

/** The head of an answer that is a stream of server-sent events. */
export function beginEvents(response: ServerResponse, headers: Readonly<Record<string, string>>): void {
  response.writeHead(200, {
    ...headers,
    'content-type': 'text/event-stream',
    'cache-control': 'no-cache',
    connection: 'keep-alive',
    'x-accel-buffering': 'no',
  })
  response.flushHeaders()
}

/** Server-sent events after their head. */
export class SseSink implements Sink {
  readonly #response: ServerResponse

  /** @param retryMs after which a client that lost it comes back */
  constructor(response: ServerResponse, retryMs: number) {
    this.#response = response
    writeShared(response, Buffer.from(`retry: ${retryMs}\n\n`))
  }

  get isBusy(): boolean {
    return this.#response.socket?.writableNeedDrain ?? true
  }

  write(frame: Frame): void {
    writeShared(this.#response, frame.plain)
  }

  beat(): void {
    writeShared(this.#response, BEAT)
  }

  end(last?: Frame): void {
    const { socket, chunkedEncoding } = this.#response
    // Who takes nothing would keep what is not sent for ever.
    if (socket?.writableNeedDrain !== false) return void this.#response.destroy()
    if (last) this.write(last)
    this.#response.end()
    // Without chunks the end of the connection is that of the stream.
    if (!chunkedEncoding) socket.end()
  }

  onDrain(listener: () => void): void {
    this.#response.socket?.on('drain', listener)
  }
}
