import type { BindingView } from '../bindings/view.ts'
import type { SeenInventory } from './view.ts'

/** How one sink of an inventory stands, as readers of Kollect know it. */
interface ExportStatus {
  readonly sinkName: string
  readonly sinkNamespace: string
  readonly sinkFamily: string
  /** `debounced`: the sink took what was exported, and what changed since, or what is gone, waits */
  readonly status: 'ok' | 'degraded' | 'debounced' | 'unknown'
  readonly lastExportTime?: string
  readonly message: string
}

const NOT_RUNNING = 'the inventory does not run here (yet): this is what its status says of an earlier run'

/** How each sink of an inventory stands. @param now ms since 1970 */
export function exportStatus({ object, bindings }: SeenInventory, now: number): readonly ExportStatus[] {
  if (bindings) return bindings.map((view) => ofBinding(view, now))
  return (object.status?.sinkExports ?? []).map(({ name, namespace, lastExportTime }) => ({
    ...placeOf(name),
    sinkNamespace: namespace ?? object.metadata.namespace ?? '',
    status: 'unknown',
    ...(lastExportTime !== undefined && { lastExportTime }),
    message: NOT_RUNNING,
  }))
}

function ofBinding(view: BindingView, now: number): ExportStatus {
  const { behindSince, lastExportAt, lateAt } = view
  const isLate = lateAt !== undefined && now >= lateAt
  const status = statusOf(view, isLate)
  const since = behindSince === undefined ? '' : new Date(behindSince).toISOString()
  const waits = isLate
    ? `; it lacks what changed since ${since}`
    : status === 'debounced' && view.state !== 'waiting'
      ? `; what changed since ${since} waits for the end of its window`
      : ''
  return {
    ...placeOf(view.name),
    sinkNamespace: view.namespace,
    status,
    ...(lastExportAt !== undefined && { lastExportTime: new Date(lastExportAt).toISOString() }),
    message: `${view.message}${waits}`,
  }
}

function statusOf({ state, behindSince }: BindingView, isLate: boolean): ExportStatus['status'] {
  if (state === 'pending') return 'unknown'
  if (isLate || state === 'failing' || state === 'blocked') return 'degraded'
  if (state === 'waiting') return 'debounced'
  return behindSince === undefined ? 'ok' : 'debounced'
}

/** A binding is called `family/name`. */
function placeOf(binding: string): Pick<ExportStatus, 'sinkName' | 'sinkFamily'> {
  const slash = binding.indexOf('/')
  return { sinkName: binding.slice(slash + 1), sinkFamily: binding.slice(0, Math.max(0, slash)) }
}
