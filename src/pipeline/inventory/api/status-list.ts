import { compareTexts } from '#extract'
import { KOLLECT_API_VERSION } from '#kinds'
import { sliceOf } from './page.ts'
import type { Question } from './query.ts'
import { pagination } from './summary.ts'
import type { InventoryView, SeenInventory } from './view.ts'

/** How one inventory or target stands, as its status in the cluster says it. */
interface StatusItem {
  readonly name: string
  readonly namespace: string
  readonly generation: number
  readonly observedGeneration: number
  /** absent: it was never counted */
  readonly itemCount?: number
  readonly lastExportTime?: string
  readonly conditions: readonly unknown[]
}

/** `StatusListResponse`. */
export function statusList(
  view: InventoryView,
  of: 'inventories' | 'targets' | 'cluster-inventories',
  { cluster, question: { filter, paging } }: { readonly cluster: string; readonly question: Question },
) {
  const all = {
    inventories: () => view.allInventories().map(ofInventory),
    targets: () => view.allTargets().map(ofTarget),
    'cluster-inventories': () => view.allClusterInventories().map(ofInventory),
  }[of]()
  const matching = all
    .filter(
      ({ namespace, name }) =>
        (filter.namespace === undefined || namespace === filter.namespace) &&
        (filter.name === undefined || name === filter.name),
    )
    .sort((a, b) => compareTexts(a.namespace, b.namespace) || compareTexts(a.name, b.name))
  const page = sliceOf(matching, paging)
  return {
    schemaVersion: KOLLECT_API_VERSION,
    cluster,
    items: page.items,
    ...(page.total > 0 && { pagination: pagination(page, paging.limit) }),
  }
}

function ofInventory({ metadata, status = {} }: SeenInventory['object']): StatusItem {
  const { lastExportTime, itemCount } = status
  return {
    ...baseOf(metadata, status),
    ...(itemCount !== undefined && { itemCount }),
    ...(lastExportTime !== undefined && { lastExportTime }),
  }
}

const ofTarget = ({ metadata, status = {} }: ReturnType<InventoryView['allTargets']>[number]): StatusItem => ({
  ...baseOf(metadata, status),
  ...(status.collectedCount !== undefined && { itemCount: status.collectedCount }),
})

const baseOf = (
  {
    name,
    namespace = '',
    generation = 0,
  }: { readonly name: string; readonly namespace?: string; readonly generation?: number },
  {
    observedGeneration = 0,
    conditions = [],
  }: { readonly observedGeneration?: number; readonly conditions?: readonly unknown[] },
) => ({ name, namespace, generation, observedGeneration, conditions })
