import { useMemo } from 'react'
import type { TypeView } from '../../contract.ts'
import { useHub, useLive } from '../../live/hooks.ts'
import { asOfNow } from '../../model/row-values.ts'

/** A type over many clusters, old on those that could not be read since it was asked for. */
export function useAsOfNow(view: TypeView | null): TypeView | null {
  const { store } = useHub()
  const old = useLive(({ fleet: { clusters } }) =>
    (view?.clusters ?? [])
      .filter((on) => asOfNow(on, clusters.get(on.cluster)) !== on)
      .map(({ cluster }) => cluster)
      .join(' '),
  )
  return useMemo(() => {
    if (view === null || old === '') return view
    const { clusters } = store.current().fleet
    return { ...view, clusters: view.clusters.map((on) => asOfNow(on, clusters.get(on.cluster))) }
  }, [view, old, store])
}
