import { type ComponentProps, type ReactNode, Suspense } from 'react'
import { lazyView } from '../components/lazy-view.ts'
import { Skeleton } from '../components/states.tsx'
import type { HistoryView } from './history-view.tsx'

// The drawing library comes with the first chart, and never before.
const View = lazyView(async () => (await import('./history-view.tsx')).HistoryView)

export function History(props: ComponentProps<typeof HistoryView>): ReactNode {
  return (
    <Suspense fallback={<Skeleton label="Loading the charts" lines={6} />}>
      <View {...props} />
    </Suspense>
  )
}
