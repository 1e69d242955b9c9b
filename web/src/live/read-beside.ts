import { packedFleetAnswer, type ToRead, type WasRead } from './fleet-answer.ts'
import { learnNames } from './packed-row.ts'
import type { RowsAnswer } from './row-pages.ts'

interface Waiting {
  readonly body: Blob
  readonly resolve: (answer: RowsAnswer | Promise<RowsAnswer>) => void
  readonly reject: (cause: unknown) => void
}

/** by the number of what is read */
const waiting = new Map<number, Waiting>()
let count = 0
let worker: Worker | undefined
let isBroken = false

/**
 * Reads a long answer about rows in a worker: a thousand of them are half a million letters, and as objects, which are packed at once,
 * work for the garbage collector of whoever reads them. @param body a FleetPageView as JSON
 */
export function readBeside(body: Blob): Promise<RowsAnswer> {
  if (isBroken) return readHere(body)
  worker ??= start()
  const nth = count++
  const answer = new Promise<RowsAnswer>((resolve, reject) => waiting.set(nth, { body, resolve, reject }))
  worker.postMessage({ nth, body } satisfies ToRead)
  return answer
}

const readHere = async (body: Blob): Promise<RowsAnswer> => (await packedFleetAnswer(body)).answer

function start(): Worker {
  const started = new Worker(new URL('./rows-worker.ts', import.meta.url), { type: 'module' })
  started.onmessage = ({ data }: MessageEvent<WasRead>) => {
    const one = waiting.get(data.nth)
    waiting.delete(data.nth)
    if ('failure' in data) one?.reject(new Error(data.failure))
    else {
      learnNames(data.names)
      one?.resolve(data.answer)
    }
  }
  // Its script cannot be had.
  started.onerror = () => {
    isBroken = true
    for (const { body, resolve } of waiting.values()) resolve(readHere(body))
    waiting.clear()
  }
  return started
}
