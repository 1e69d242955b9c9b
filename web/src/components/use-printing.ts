import { useSyncExternalStore } from 'react'
import { flushSync } from 'react-dom'

/** More rows than these are not printed; an export has them all. */
export const printedAtMost = 5000

let isPrinting = false
const listeners = new Set<() => void>()
function turn(next: boolean): void {
  // The browser lays the paper out as soon as its event is over.
  flushSync(() => {
    isPrinting = next
    for (const listener of listeners) listener()
  })
}
window.addEventListener('beforeprint', () => turn(true))
window.addEventListener('afterprint', () => turn(false))

const subscribe = (listener: () => void) => {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

/** On paper nothing scrolls: what is rendered as it comes into view is then there as a whole. */
export const usePrinting = (): boolean => useSyncExternalStore(subscribe, () => isPrinting)
