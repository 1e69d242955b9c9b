import { useCallback, useEffect, useRef, useState } from 'react'
import type { ApiProblem } from '../contract.ts'
import { mayKeep, problemOf } from './problem.ts'
import { useReturn } from './use-return.ts'

export type Fresh<T> =
  | { readonly state: 'waiting' }
  | { readonly state: 'failed'; readonly problem: ApiProblem }
  /** `problem`: why the last look brought nothing new; what is shown is from before it */
  | { readonly state: 'here'; readonly value: T; readonly problem: ApiProblem | null }

/** Asks, and again on demand; what was answered stays while the hub cannot be asked. */
export function useFresh<T>(ask: (signal: AbortSignal) => Promise<T>): [fresh: Fresh<T>, again: () => void] {
  const [fresh, setFresh] = useState<{ ask: unknown; shown: Fresh<T> }>({ ask, shown: { state: 'waiting' } })
  const [attempt, setAttempt] = useState(0)
  const isAsking = useRef(false)
  // biome-ignore lint/correctness/useExhaustiveDependencies: another attempt asks again
  useEffect(() => {
    const asking = new AbortController()
    isAsking.current = true
    ask(asking.signal).then(
      (value) => {
        if (!asking.signal.aborted) isAsking.current = false
        setFresh({ ask, shown: { state: 'here', value, problem: null } })
      },
      (cause: unknown) => {
        if (asking.signal.aborted) return
        isAsking.current = false
        const problem = problemOf(cause)
        setFresh(({ ask: of, shown }) => ({
          ask,
          shown:
            of === ask && shown.state === 'here' && mayKeep(problem)
              ? { ...shown, problem }
              : { state: 'failed', problem },
        }))
      },
    )
    return () => asking.abort()
  }, [ask, attempt])
  const shown: Fresh<T> = fresh.ask === ask ? fresh.shown : { state: 'waiting' }
  const again = useCallback(() => setAttempt((count) => count + 1), [])
  useReturn(shown.state === 'waiting' ? null : shown.problem, again, () => isAsking.current)
  return [shown, again]
}
