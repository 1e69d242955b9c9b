import { useEffect, useSyncExternalStore } from 'react'
import type { ApiProblem } from '../contract.ts'
import { isAway } from './problem.ts'

/** `unanswered`: of the past or missing, as there was no hub to answer, or no store behind it; `old`: of the past, as is said beside it */
export type Unread = 'unanswered' | 'old'

const counts: Record<Unread, number> = { unanswered: 0, old: 0 }
const listeners = new Set<() => void>()

function add(kind: Unread, more: number): void {
  counts[kind] += more
  for (const listener of [...listeners]) listener()
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

function useNote(kind: Unread, isSo: boolean): void {
  useEffect(() => {
    if (!isSo) return
    add(kind, 1)
    return () => add(kind, -1)
  }, [kind, isSo])
}

/** Notes that a part of the page could not be read for want of the hub, where that is so. */
export const useNoteUnanswered = (problem: ApiProblem | null): void =>
  useNote('unanswered', problem !== null && isAway(problem))

/** Notes that the page says of a part of it that it is of the past, where it does. */
export const useNoteOld = (isSaid: boolean): void => useNote('old', isSaid)

/** Whether any part of the page is, and how; null: none */
export const useUnread = (): Unread | null =>
  useSyncExternalStore(subscribe, () => (counts.unanswered > 0 ? 'unanswered' : counts.old > 0 ? 'old' : null))
