import { useCallback, useEffect, useMemo, useRef, useState } from 'react'
import type { CustomRowsQuery } from '../../contract.ts'
import { useHub } from '../../live/hooks.ts'
import type { Live } from '../../live/live-store.ts'
import { useRefresh } from '../../live/refresh.ts'
import { type Paged, RowPages } from '../../live/row-pages.ts'

export interface RowsShown {
  readonly paged: Paged
  /** what is shown answers the question before; this one is on its way */
  readonly pending: boolean
  readonly want: (count: number) => void
  readonly again: () => void
}

/** Rows of a type on a cluster, read again when the cluster's frame arrives. Another question keeps the old rows until it is answered. */
export function useCustomRows(cluster: string, type: string, query: CustomRowsQuery): RowsShown {
  const { client } = useHub()
  const key = JSON.stringify(query)
  const [shown, setShown] = useState<{ key: string; paged: Paged }>({ key: '', paged: { state: 'waiting' } })
  const pages = useRef<RowPages>(undefined)

  useEffect(() => {
    const question = JSON.parse(key) as CustomRowsQuery // what was made a text above
    const own = new RowPages({
      ask: (page, signal) => client.customRows(cluster, type, { ...question, ...page }, signal),
      onChange: (paged) => setShown({ key, paged }),
    })
    pages.current = own
    own.refresh()
    return () => own.end()
  }, [client, cluster, type, key])

  const again = useCallback(() => pages.current?.refresh(), [])
  useRefresh(
    useCallback((of: Live) => of.fleet.clusters.get(cluster), [cluster]),
    useCallback(() => pages.current?.refreshInTurn(), []),
  )
  const want = useCallback((count: number) => pages.current?.want(count), [])
  const pending = shown.key !== key
  return useMemo(() => ({ paged: shown.paged, pending, want, again }), [shown.paged, pending, want, again])
}
