import type { ServerResponse } from 'node:http'
import type { Sink } from '../stream/client.ts'
import type { Frame } from '../stream/frame.ts'

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
  const write = ({ id, body }: Frame) => {
    response.cork()
    response.write(`id: ${id}\n`)
    response.write(body.sse)
    response.uncork()
  }
  return {
    get isBusy() {
      return response.writableNeedDrain
    },
    write,
    beat: () => void response.write(': \n\n'),
    end(last): void {
      // Who takes nothing would keep what is not sent for ever.
      if (response.writableNeedDrain) return void response.destroy()
      if (last) write(last)
      response.end()
    },
    onDrain: (listener) => void response.on('drain', listener),
  }
}
