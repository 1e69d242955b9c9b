import { useEffect, useRef } from 'react'
import type { ApiProblem } from '../contract.ts'
import { useLive } from './hooks.ts'
import type { Link } from './live-store.ts'
import { mayKeep } from './problem.ts'
import { useNoteUnanswered } from './unanswered.ts'

type State = Link['state']

/** How a look stands: why the last one brought nothing new, and whether another is on its way. */
export interface Look {
  readonly problem: ApiProblem | null
  readonly isAsking: boolean
}

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
 * Asks again what failed for want of the hub, or still waits for it, as soon as the hub is heard again.
 * @param problem of the last look; null: it was answered
 * @param again gives up what is on its way
 */
export function useReturn(problem: ApiProblem | null, again: () => void, isAsking: () => boolean): void {
  useNoteUnanswered(problem)
  const state = useLive(({ link }) => link.state)
  const latest = useRef({ again, isAsking })
  latest.current = { again, isAsking }
  const own = useRef<Return>(undefined)
  own.current ??= new Return(state)
  useEffect(() => {
    if (own.current?.isDue(state, { problem, isAsking: latest.current.isAsking() })) latest.current.again()
  }, [state, problem])
}
