import { useCallback, useEffect, useRef, useState } from 'react'
import type { ApiProblem } from '../contract.ts'
import { problemOf } from './problem.ts'
import { useReturn } from './use-return.ts'

export type Answer<T> =
  | { readonly state: 'waiting' }
  | { readonly state: 'here'; readonly value: T }
  | { readonly state: 'failed'; readonly problem: ApiProblem }

/** Asks once per `ask`, again on demand; what is not wanted any more is cancelled. */
export function useAnswer<T>(ask: (signal: AbortSignal) => Promise<T>): [answer: Answer<T>, again: () => void] {
  const [answer, setAnswer] = useState<Answer<T>>({ state: 'waiting' })
  const [attempt, setAttempt] = useState(0)
  const isAsking = useRef(false)
  // biome-ignore lint/correctness/useExhaustiveDependencies: another attempt asks again
  useEffect(() => {
    const asking = new AbortController()
    isAsking.current = true
    setAnswer((before) => (before.state === 'here' ? before : { state: 'waiting' }))
    ask(asking.signal).then(
      (value) => {
        if (!asking.signal.aborted) isAsking.current = false
        setAnswer({ state: 'here', value })
      },
      (cause: unknown) => {
        if (asking.signal.aborted) return
        isAsking.current = false
        setAnswer({ state: 'failed', problem: problemOf(cause) })
      },
    )
    return () => asking.abort()
  }, [ask, attempt])
  const again = useCallback(() => setAttempt((count) => count + 1), [])
  useReturn(answer.state === 'failed' ? answer.problem : null, again, () => isAsking.current)
  return [answer, again]
}
