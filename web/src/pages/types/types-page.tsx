import '../../styles/types.css'
import type { ReactNode } from 'react'
import { TypeList } from './type-list.tsx'
import { TypeAcrossClusters } from './type-page.tsx'

/** What MetricSources collect: all types, or one over all clusters. */
export function TypesPage({ type }: { type: string | null }): ReactNode {
  return type === null ? <TypeList /> : <TypeAcrossClusters key={type} type={type} />
}
