import { lazy, type ReactNode, Suspense } from 'react'
import { Skeleton } from '../../components/states.tsx'
import type { ClusterView } from '../../contract.ts'

// The drawing library comes with the first chart, and never before.
const View = lazy(async () => ({ default: (await import('../../history/history-view.tsx')).HistoryView }))

export function History(props: { cluster: ClusterView; node?: string; compact?: boolean }): ReactNode {
  return (
    <Suspense fallback={<Skeleton label="Loading the charts" lines={6} />}>
      <View {...props} />
    </Suspense>
  )
}
