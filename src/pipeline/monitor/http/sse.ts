import type { ServerResponse } from 'node:http'
import type { Sink } from '../stream/client.ts'
import { chunkOf, type Frame } from '../stream/frame.ts'

const BEAT = ': \n\n'
const BEAT_CHUNK = chunkOf(BEAT)

/** Answers with a stream of server-sent events. @param retryMs after which a client that lost it comes back */
export function sseSink(response: ServerResponse, headers: Readonly<Record<string, string>>, retryMs: number): Sink {
  response.writeHead(200, {
    ...headers,
    'content-type': 'text/event-stream',
    'cache-control': 'no-cache',
    connection: 'keep-alive',
    'x-accel-buffering': 'no',
  })
  response.write(`retry: ${retryMs}\n\n`)
  // The head is on its way; what follows are whole chunks, the same bytes for many. HTTP/1.0, which proxies speak, knows none.
  const { socket, chunkedEncoding: isChunked } = response
  const write = (frame: Frame) => void socket?.write(isChunked ? frame.chunk : frame.event)
  return {
    get isBusy() {
      return socket?.writableNeedDrain ?? true
    },
    write,
    beat: () => void socket?.write(isChunked ? BEAT_CHUNK : BEAT),
    end(last): void {
      // Who takes nothing would keep what is not sent for ever.
      if (socket?.writableNeedDrain !== false) return void response.destroy()
      if (last) write(last)
      response.end()
      // Without chunks the end of the connection is that of the stream.
      if (!isChunked) socket.end()
    },
    onDrain: (listener) => void socket?.on('drain', listener),
  }
}
