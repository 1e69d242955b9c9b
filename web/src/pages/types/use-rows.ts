import { useCallback, useEffect, useMemo, useRef, useState } from 'react'
import type { Client, RowsPageQuery } from '../../contract.ts'
import { useHub } from '../../live/hooks.ts'
import type { Live } from '../../live/live-store.ts'
import { useRefresh } from '../../live/refresh.ts'
import { type Paged, RowPages, type RowsPage } from '../../live/row-pages.ts'

export interface RowsShown {
  readonly paged: Paged
  /** what is shown answers the question before; this one is on its way */
  readonly pending: boolean
  readonly want: (count: number) => void
  readonly again: () => void
}

type Ask = (page: RowsPageQuery, signal: AbortSignal) => Promise<RowsPage>

function ofCluster(client: Client, cluster: string, type: string): Ask {
  return async (question, signal) => {
    const { items, on, ...page } = await client.customRows(cluster, type, question, signal)
    return { ...page, items: items.map((row) => ({ ...row, cluster, rowId: row.id })), on: [on] }
  }
}

function ofFleet(client: Client, type: string): Ask {
  return async (question, signal) => {
    const { items, clusters, ...page } = await client.fleetRows(type, question, signal)
    return {
      ...page,
      items: items.map((row) => ({ ...row, id: `${row.cluster}/${row.id}`, rowId: row.id })),
      on: clusters,
    }
  }
}

/** Every frame of a fleet may touch a type: that many are not worth a look each. */
const leastFleetMs = 3000

/**
 * Rows of a type, read again when a frame of their clusters arrives. Another question keeps the old rows until it is answered.
 * @param cluster null: of all clusters
 */
export function useRows(cluster: string | null, type: string, query: RowsPageQuery): RowsShown {
  const { client } = useHub()
  const key = JSON.stringify(query)
  const [shown, setShown] = useState<{ key: string; paged: Paged }>({ key: '', paged: { state: 'waiting' } })
  const pages = useRef<RowPages>(undefined)

  useEffect(() => {
    const question = JSON.parse(key) as RowsPageQuery // what was made a text above
    const ask = cluster === null ? ofFleet(client, type) : ofCluster(client, cluster, type)
    const own = new RowPages({
      ask: (page, signal) => ask({ ...question, ...page }, signal),
      onChange: (paged) => setShown({ key, paged }),
    })
    pages.current = own
    own.refresh()
    return () => own.end()
  }, [client, cluster, type, key])

  const again = useCallback(() => pages.current?.refresh(), [])
  useRefresh(
    useCallback(
      ({ fleet }: Live): unknown => (cluster === null ? fleet.clusters : fleet.clusters.get(cluster)),
      [cluster],
    ),
    useCallback(() => pages.current?.refreshInTurn(), []),
    cluster === null ? leastFleetMs : undefined,
  )
  const want = useCallback((count: number) => pages.current?.want(count), [])
  const pending = shown.key !== key
  return useMemo(() => ({ paged: shown.paged, pending, want, again }), [shown.paged, pending, want, again])
}
