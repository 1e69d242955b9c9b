import { type RefObject, useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from 'react'
import { type Beyond, type Hold, hold, inOrder, nothingBeyond, type OrderedRows } from '../model/ordered-rows.ts'

export interface Held<T> extends Hold<T> {
  /** somebody reads or points at the list */
  readonly holding: boolean
  readonly release: () => void
  /** for the part of the list that must not move while somebody is in it */
  readonly guard: {
    readonly onPointerOver: (event: { pointerType: string; target: EventTarget }) => void
    readonly onPointerLeave: () => void
    readonly onFocus: (event: { target: EventTarget }) => void
    readonly onBlur: (event: { currentTarget: Element; relatedTarget: EventTarget | null }) => void
  }
}

/**
 * The one rule of all lists: rows keep their places while the pointer is over one of them, the keyboard is at one of them, or text in
 * the list is selected; else they stand in order, at once. A row that is held elsewhere than in its order is said (`moved`).
 * `intent` is what the person asked for (filter, sorting): a change of it is theirs, and takes effect at once.
 * @param list the element with the rows
 * @param beyond what is known of rows that are in neither; default: there are none
 */
export function useHeldOrder<T>(
  arranged: OrderedRows<T>,
  all: Pick<ReadonlyMap<string, T>, 'get' | 'has'>,
  intent: string,
  list: RefObject<HTMLElement | null>,
  beyond: Beyond<T> = nothingBeyond,
): Held<T> {
  const [pointed, setPointed] = useState(false)
  const [focused, setFocused] = useState(false)
  const selected = useSelected(list)
  const [released, setReleased] = useState(0)
  const shown = useRef<{ intent: string; rows: OrderedRows<T> | null }>({ intent: '', rows: null })
  const ask = `${intent} ${released}`
  const before = shown.current.intent === ask ? shown.current.rows : null
  const holding = (pointed || focused || selected) && before !== null && before.size > 0

  // biome-ignore lint/correctness/useExhaustiveDependencies: what was shown before changes nothing by itself
  const held = useMemo(
    () => (holding ? hold(before, arranged, all, beyond) : inOrder(arranged)),
    [holding, arranged, all, beyond],
  )

  useLayoutEffect(() => {
    shown.current = { intent: ask, rows: held.rows }
  }, [held, ask])

  const release = useCallback(() => setReleased((count) => count + 1), [])
  const guard = useMemo(
    () => ({
      // A finger does not hover; its last touch would hold the order for ever.
      onPointerOver: ({ pointerType, target }: { pointerType: string; target: EventTarget }) =>
        setPointed(pointerType !== 'touch' && !isHead(target)),
      onPointerLeave: () => setPointed(false),
      // What was clicked keeps the focus long after the pointer has left: that is nobody who reads.
      onFocus: ({ target }: { target: EventTarget }) =>
        setFocused(target instanceof Element && target.matches(':focus-visible') && !isHead(target)),
      onBlur: ({ currentTarget, relatedTarget }: { currentTarget: Element; relatedTarget: EventTarget | null }) => {
        if (!(relatedTarget instanceof Node && currentTarget.contains(relatedTarget))) setFocused(false)
      },
    }),
    [],
  )
  return { ...held, holding, release, guard }
}

/** Whoever is at the heads of the columns sorts, and wants to see the order. */
const isHead = (target: EventTarget): boolean => target instanceof Element && target.closest('thead') !== null

/** Text in the list is selected, which would slip from under the selection. */
function useSelected(list: RefObject<HTMLElement | null>): boolean {
  const [selected, setSelected] = useState(false)
  useEffect(() => {
    const look = () => {
      const selection = getSelection()
      const from = selection && !selection.isCollapsed ? selection.anchorNode : null
      setSelected(from !== null && list.current?.contains(from) === true)
    }
    document.addEventListener('selectionchange', look)
    return () => document.removeEventListener('selectionchange', look)
  }, [list])
  return selected
}
