import { useCallback, useLayoutEffect, useMemo, useRef, useState } from 'react'
import { holdOrder } from '../model/arrange.ts'

export interface Held<T> {
  readonly rows: readonly T[]
  /** keys of rows that are shown only because the order is held */
  readonly gone: ReadonlySet<string>
  /** rows would stand elsewhere if the order were not held */
  readonly moved: boolean
  readonly release: () => void
  /** for the part of the list that must not move under pointer or focus */
  readonly guard: {
    readonly onPointerEnter: (event: { pointerType: string }) => void
    readonly onPointerLeave: () => void
    readonly onFocus: () => void
    readonly onBlur: (event: { currentTarget: Element; relatedTarget: EventTarget | null }) => void
  }
}

/**
 * New data never moves the row under the pointer: while pointer or focus is inside, rows keep their places.
 * `intent` is what the person asked for (filter, sorting): a change of it is theirs, and takes effect at once.
 */
export function useHeldOrder<T>(
  arranged: readonly T[],
  all: Pick<ReadonlyMap<string, T>, 'get' | 'has'>,
  rowKey: (row: T) => string,
  intent: string,
): Held<T> {
  const [pointed, setPointed] = useState(false)
  const [focused, setFocused] = useState(false)
  const [released, setReleased] = useState(0)
  const shown = useRef<{ intent: string; rows: readonly T[] }>({ intent: '', rows: [] })
  const ask = `${intent} ${released}`
  const holding = (pointed || focused) && shown.current.intent === ask && shown.current.rows.length > 0

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
      onPointerEnter: ({ pointerType }: { pointerType: string }) => setPointed(pointerType !== 'touch'),
      onPointerLeave: () => setPointed(false),
      onFocus: () => setFocused(true),
      onBlur: ({ currentTarget, relatedTarget }: { currentTarget: Element; relatedTarget: EventTarget | null }) =>
        setFocused(relatedTarget instanceof Node && currentTarget.contains(relatedTarget)),
    }),
    [],
  )
  return { ...held, release, guard }
}

const sameKey = <T>(rowKey: (row: T) => string, row: T, other: T | undefined): boolean =>
  row === other || (other !== undefined && rowKey(row) === rowKey(other))
