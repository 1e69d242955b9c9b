import { useEffect, useSyncExternalStore } from 'react'
import type { ApiProblem } from '../contract.ts'

let count = 0
const listeners = new Set<() => void>()

function add(more: number): void {
  count += more
  for (const listener of [...listeners]) listener()
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

/** Notes that a part of the page is of the past, or missing, as nothing answered when it was looked at last. */
export function useNoteUnanswered(problem: ApiProblem | null): void {
  const isUnanswered = problem?.status === 0
  useEffect(() => {
    if (!isUnanswered) return
    add(1)
    return () => add(-1)
  }, [isUnanswered])
}

/** Whether any part of the page is. */
export const useUnanswered = (): boolean => useSyncExternalStore(subscribe, () => count > 0)
