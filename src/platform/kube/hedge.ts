import type { Clock } from '#model'
import type { BorrowedAnswer } from './http.ts'

interface Hedge {
  /** tells each sign of its answer */
  readonly first: (signal: AbortSignal, onProgress: () => void) => Promise<BorrowedAnswer>
  readonly second: (signal: AbortSignal) => Promise<BorrowedAnswer>
  /** silence of the first after which the second begins, ms */
  readonly afterMs: number
  readonly clock: Clock
  /** ends both; its reason is thrown */
  readonly signal: AbortSignal
}

/**
 * A request that has heard nothing for a while is sent once more beside itself; the answer that is complete first is taken and the
 * other request ended, which closes its connection. A server that is only slow is none the worse for it, and a connection that
 * died silently costs a moment instead of the whole call.
 * @throws the first's error, where both fail
 */
export async function hedged({ first, second, afterMs, clock, signal }: Hedge): Promise<BorrowedAnswer> {
  const settled = new AbortController()
  const one = linked(signal)
  let two: Linked | undefined
  let lastAt = clock.now()
  const running = first(one.signal, () => {
    lastAt = clock.now()
  }).finally(() => settled.abort(SETTLED))
  // Awaited below in either case; until then nobody may call it unwatched.
  running.catch(() => undefined)
  try {
    for (let left = afterMs; left > 0 && !settled.signal.aborted; left = lastAt + afterMs - clock.now())
      await clock.sleep(left, settled.signal)
    if (settled.signal.aborted || signal.aborted) return await running
    const other = linked(signal)
    two = other
    const besides = second(other.signal)
    const winner = await Promise.any([
      running.then((answer) => ({ answer, loser: other, lost: besides })),
      besides.then((answer) => ({ answer, loser: one, lost: running })),
    ]).catch(async () => ({ answer: await running, loser: other, lost: besides }))
    winner.loser.end(OTHER_WON)
    winner.lost.then((late) => late.release()).catch(() => undefined)
    return winner.answer
  } finally {
    one.unlink()
    two?.unlink()
  }
}

/** Given, as errors that aborts make by themselves cost a stack trace. */
const SETTLED = 'the request ended'
const OTHER_WON = 'the same request was answered on another connection'

type Linked = ReturnType<typeof linked>

function linked(outer: AbortSignal) {
  const own = new AbortController()
  const end = (reason: unknown = outer.reason) => own.abort(reason)
  const follow = () => end()
  if (outer.aborted) end()
  outer.addEventListener('abort', follow, { once: true })
  return { signal: own.signal, end, unlink: () => outer.removeEventListener('abort', follow) }
}
