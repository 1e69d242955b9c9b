import type { IncomingMessage } from 'node:http'
import type { Readable } from 'node:stream'

/** How much of a body that is not wanted is read, and for how long. */
const UNWANTED = { maxBytes: 4 * 1024 * 1024, withinMs: 1_000 } as const

/**
 * A whole body. Beyond the limit the rest stays unread, and the connection open for the answer.
 * @throws the error that `tooLarge` makes, or that of the source
 */
export async function readBounded(
  source: AsyncIterable<Buffer>,
  maxBytes: number,
  tooLarge: () => Error,
): Promise<Buffer> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of source) {
    length += chunk.length
    if (length > maxBytes) throw tooLarge()
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

/** The chunks of a request. Who stops reading them does not end its connection, as a loop over the request itself would. */
export const chunksOf = (request: Readable): AsyncIterable<Buffer> => ({
  [Symbol.asyncIterator]: () => request.iterator({ destroyOnReturn: false }) as AsyncIterator<Buffer>,
})

/**
 * Reads what is left of the body of a request that is refused: a client that is still writing when the connection ends never sees
 * the answer. Resolves to false where there was more than 4 MiB or it took more than a second: the connection ends with the answer
 * then.
 */
export function discardBody(request: Readable & Pick<IncomingMessage, 'complete'>): Promise<boolean> {
  if (request.complete) return Promise.resolve(true)
  return new Promise((resolve) => {
    let length = 0
    const done = () => {
      clearTimeout(timer)
      request.off('data', count).off('close', done).off('end', done).off('error', done)
      resolve(request.complete)
    }
    const count = (chunk: Buffer) => {
      length += chunk.length
      if (length > UNWANTED.maxBytes) done()
    }
    const timer = setTimeout(done, UNWANTED.withinMs)
    request.on('data', count).once('close', done).once('end', done).once('error', done).resume()
  })
}
