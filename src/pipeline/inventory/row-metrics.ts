import type { Metrics } from '#runtime'
import type { InventoryInformers } from './objects.ts'
import { type RowStore, targetText } from './store/index.ts'

interface Counted {
  readonly store: RowStore
  readonly informers: Pick<InventoryInformers, 'targets' | 'clusterTargets'>
  /** rows of each inventory; undefined: not composed yet */
  readonly itemCounts: () => Iterable<number | undefined>
}

/** How many rows there are: in memory, in inventories, and of each profile and kind. */
export function measureRows(metrics: Metrics, { store, informers, itemCounts }: Counted): void {
  metrics.gauge('kollect_collect_items_total', 'Rows that targets hold in memory', [], (gauge) => gauge.set(store.size))
  metrics.gauge(
    'kollect_inventory_items_total',
    'Rows of all inventories; one of two inventories counts twice',
    [],
    (gauge) => {
      let sum = 0
      for (const count of itemCounts()) sum += count ?? 0
      gauge.set(sum)
    },
  )
  const labels = ['profile', 'gvk'] as const
  metrics.gauge('kollect_collected_objects', 'Rows of all targets of a profile, by kind', labels, (gauge) => {
    gauge.reset()
    for (const [text, count] of countedBy(store, informers)) {
      const [profile = '', gvk = ''] = text.split('\n')
      gauge.set({ profile, gvk }, count)
    }
  })
}

/** Rows by profile (`namespace/name`; '' for rules that stand in the target itself) and kind. */
function countedBy(store: RowStore, informers: Counted['informers']): ReadonlyMap<string, number> {
  const profiles = new Map<string, string>()
  for (const { metadata, spec } of [...informers.targets.list(), ...informers.clusterTargets.list()]) {
    const { namespace = '', name } = metadata
    const ref = typeof spec.profileRef === 'string' ? { name: spec.profileRef, namespace } : spec.profileRef
    profiles.set(targetText({ namespace, name }), ref ? `${ref.namespace}/${ref.name}` : '')
  }
  const counts = new Map<string, number>()
  for (const key of store.targets()) {
    const state = store.state(key)
    const profile = profiles.get(targetText(key)) ?? ''
    for (const { group, version, kind } of state.kind === 'rows' ? state.rows : []) {
      const text = `${profile}\n${group === '' ? '' : `${group}/`}${version}/${kind}`
      counts.set(text, (counts.get(text) ?? 0) + 1)
    }
  }
  return counts
}
