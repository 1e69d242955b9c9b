import { useEffect, useRef } from 'react'
import type { ApiProblem } from '../contract.ts'
import { useLive } from './hooks.ts'
import { mayKeep } from './problem.ts'

/**
 * Asks again what failed for want of the hub as soon as it is heard again: when it answers, and when its stream is open.
 * @param problem of the last look; null: it was answered
 */
export function useReturn(problem: ApiProblem | null, again: () => void): void {
  const state = useLive(({ link }) => link.state)
  const latest = useRef({ problem, again })
  latest.current = { problem, again }
  const before = useRef(state)
  useEffect(() => {
    const was = before.current
    before.current = state
    const isHeard = state === 'live' || state === 'polling'
    if (isHeard && was !== state && latest.current.problem && mayKeep(latest.current.problem)) latest.current.again()
  }, [state])
}
