import { packedFleetAnswer, type ToRead, type WasRead } from './fleet-answer.ts'
import { learnNames } from './packed-row.ts'
import type { RowsAnswer } from './row-pages.ts'

interface Waiting {
  readonly resolve: (answer: RowsAnswer) => void
  readonly reject: (cause: unknown) => void
}

/** by the number of what is read */
const waiting = new Map<number, Waiting>()
let count = 0
let worker: Worker | undefined
let isBroken = false

/**
 * Reads a long answer about rows in a worker: a thousand of them are half a million letters, and as objects, which are packed at once,
 * work for the garbage collector of whoever reads them. @param body a FleetPageView as JSON, which is gone then
 */
export async function readBeside(body: ArrayBuffer): Promise<RowsAnswer> {
  if (isBroken) return packedFleetAnswer(body).answer
  worker ??= start()
  const nth = count++
  const answer = new Promise<RowsAnswer>((resolve, reject) => waiting.set(nth, { resolve, reject }))
  worker.postMessage({ nth, body } satisfies ToRead, [body])
  return answer
}

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
  // Its script cannot be had: the next answers are read here.
  started.onerror = () => {
    isBroken = true
    for (const { reject } of waiting.values()) reject(new Error('the script that reads rows could not be loaded'))
    waiting.clear()
  }
  return started
}
