import { useRef } from 'react'
import type { RowList } from '../../live/row-list.ts'
import { firstPageSize, type ShownRow } from '../../live/row-pages.ts'

/** The first rows that came of what the key names: they stay, however often others are asked for. */
export function useSample(key: string, rows: RowList): readonly ShownRow[] {
  const first = useRef<{ readonly key: string; readonly rows: readonly ShownRow[] }>({ key, rows: [] })
  if (first.current.key !== key || first.current.rows.length === 0)
    first.current = { key, rows: rows.slice(0, firstPageSize) }
  return first.current.rows
}
