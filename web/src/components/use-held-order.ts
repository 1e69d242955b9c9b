import { type RefObject, useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from 'react'
import { holdOrder } from '../model/arrange.ts'

export interface Held<T> {
  readonly rows: readonly T[]
  /** keys of rows that are shown only because the order is held */
  readonly gone: ReadonlySet<string>
  /** rows would stand elsewhere if the order were not held */
  readonly moved: boolean
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
 */
export function useHeldOrder<T>(
  arranged: readonly T[],
  all: Pick<ReadonlyMap<string, T>, 'get' | 'has'>,
  rowKey: (row: T) => string,
  intent: string,
  list: RefObject<HTMLElement | null>,
): Held<T> {
  const [pointed, setPointed] = useState(false)
  const [focused, setFocused] = useState(false)
  const selected = useSelected(list)
  const [released, setReleased] = useState(0)
  const shown = useRef<{ intent: string; rows: readonly T[] }>({ intent: '', rows: [] })
  const ask = `${intent} ${released}`
  const holding = (pointed || focused || selected) && shown.current.intent === ask && shown.current.rows.length > 0

  const held = useMemo(() => {
    if (!holding) return { rows: arranged, gone: new Set<string>(), moved: false }
    const before = shown.current.rows
    // Nothing came or went: the order is the same, however many there are.
    if (before.length === arranged.length && before.every((row, place) => sameKey(rowKey, row, arranged[place])))
      return { rows: arranged, gone: new Set<string>(), moved: false }
    const last = new Map(before.map((row) => [rowKey(row), row]))
    const byKey = new Map(arranged.map((row) => [rowKey(row), row]))
    const order = holdOrder([...last.keys()], [...byKey.keys()])
    const arrangedKeys = [...byKey.keys()]
    const rows = order.flatMap((key) => byKey.get(key) ?? all.get(key) ?? last.get(key) ?? [])
    const gone = new Set(order.filter((key) => !all.has(key)))
    const moved = order.length !== arrangedKeys.length || order.some((key, index) => key !== arrangedKeys[index])
    return { rows, gone, moved }
  }, [holding, arranged, all, rowKey])

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
  return { ...held, release, guard }
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

const sameKey = <T>(rowKey: (row: T) => string, row: T, other: T | undefined): boolean =>
  row === other || (other !== undefined && rowKey(row) === rowKey(other))
