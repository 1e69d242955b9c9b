import { useEffect, useRef } from 'react'
import { type ApiProblem, isWhole } from '../contract.ts'
import { backOffMs } from './back-off.ts'
import { useLive } from './hooks.ts'
import type { Link } from './live-store.ts'
import { isAway, mayKeep } from './problem.ts'
import { useNoteUnanswered } from './unanswered.ts'

type State = Link['state']

/** How a look stands: why the last one brought nothing new, and whether another is on its way. */
export interface Look {
  readonly problem: ApiProblem | null
  readonly isAsking: boolean
}

/** Tabs that hear the same at once do not all ask in the same moment, ms. */
const spreadMs = 300
const firstMs = 400
/** What reaches nobody costs nobody anything; what a proxy or the hub answers is asked for less often. */
const mostMs = { unsent: 3_000, answered: 8_000 }

/** Once for each time that the hub is heard again: when it answers, and when its stream is open. */
export class Return {
  #before: State
  #isOwed = false

  constructor(state: State) {
    this.#before = state
  }

  /**
   * Whether to ask again now: what failed for want of the hub, be it told before or after the hub is heard again, and what has been
   * on its way since before, perhaps over a connection that is dead.
   */
  isDue(state: State, { problem, isAsking }: Look): boolean {
    const isNew = state !== this.#before
    this.#before = state
    if (isNew) this.#isOwed = state === 'live' || state === 'polling'
    const isDue = this.#isOwed && ((isNew && isAsking) || (problem !== null && mayKeep(problem)))
    if (isDue) this.#isOwed = false
    return isDue
  }
}

/**
 * How long what stands unread waits until it is asked for again while the hub is heard and whole: neither a return of the stream
 * nor another message of it tells that the way of a question is free again.
 */
export class Retries {
  #failures = 0

  /** The way may be another one: begins anew. */
  forget(): void {
    this.#failures = 0
  }

  /** @returns ms; null: it is left as it is */
  waitMs(problem: ApiProblem | null, random?: () => number): number | null {
    if (problem === null) this.forget()
    if (problem === null || !isAway(problem)) return null
    return backOffMs(this.#failures++, firstMs, problem.status === 0 ? mostMs.unsent : mostMs.answered, random)
  }
}

/**
 * Asks again what failed for want of the hub, or still waits for it, as soon as the hub is heard again or the browser says that
 * there is a network again, and, while the hub is heard, by itself.
 * @param problem of the last look; null: it was answered
 * @param again gives up what is on its way
 */
export function useReturn(problem: ApiProblem | null, again: () => void, isAsking: () => boolean): void {
  useNoteUnanswered(problem)
  const state = useLive(({ link }) => link.state)
  const isHeard = useLive(
    ({ link, fleet }) => (link.state === 'live' || link.state === 'polling') && isWhole(fleet.store),
  )
  const isAtRest = state === 'paused' || state === 'refused'
  const latest = useRef({ again, isAsking, problem })
  latest.current = { again, isAsking, problem }
  const own = useRef<Return>(undefined)
  own.current ??= new Return(state)
  const retries = useRef(new Retries())
  useEffect(() => {
    if (own.current?.isDue(state, { problem, isAsking: latest.current.isAsking() })) latest.current.again()
  }, [state, problem])
  useEffect(() => {
    if (!isHeard) return retries.current.forget()
    const waitMs = retries.current.waitMs(problem)
    if (waitMs === null) return
    const timer = setTimeout(() => latest.current.again(), waitMs)
    return () => clearTimeout(timer)
  }, [isHeard, problem])
  useEffect(() => {
    if (isAtRest) return
    let timer: ReturnType<typeof setTimeout> | undefined
    const isOpen = () =>
      latest.current.isAsking() || (latest.current.problem !== null && mayKeep(latest.current.problem))
    const back = () => {
      retries.current.forget()
      clearTimeout(timer)
      if (isOpen()) timer = setTimeout(() => latest.current.again(), Math.random() * spreadMs)
    }
    window.addEventListener('online', back)
    return () => {
      window.removeEventListener('online', back)
      clearTimeout(timer)
    }
  }, [isAtRest])
}
