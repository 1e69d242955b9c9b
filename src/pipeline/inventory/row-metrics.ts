import { setImmediate } from 'node:timers/promises'
import { type Clock, seconds } from '#model'
import type { Metrics } from '#runtime'
import { type AttributeSeries, attributeSeries, kindOf, type SeriesSource } from './attribute-series.ts'
import type { InventoryInformers } from './objects.ts'
import { type RowStore, targetText } from './store/index.ts'

interface Counted {
  readonly store: RowStore
  readonly informers: Pick<InventoryInformers, 'targets' | 'clusterTargets' | 'profiles'>
  /** rows of each inventory; undefined: not composed yet */
  readonly itemCounts: () => Iterable<number | undefined>
  readonly clock: Clock
}

/** Attributes are added up anew at most so often, ms: all rows are read for it. */
const SAMPLE_EVERY_MS = seconds(30)

/** Attributes are added up in pieces of so many ms: those of embedded objects take seconds in all. */
const PIECE_MS = 10

/** How many rows there are: in memory, in inventories, and of each profile and kind; and what their attributes add up to. */
export function measureRows(metrics: Metrics, counted: Counted): void {
  const { store, itemCounts } = counted
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
    for (const [text, count] of countedBy(counted)) {
      const [profile = '', gvk = ''] = text.split('\n')
      gauge.set({ profile, gvk }, count)
    }
  })
  measureAttributes(metrics, counted)
}

function measureAttributes(metrics: Metrics, counted: Counted): void {
  let sampled: Promise<AttributeSeries> = Promise.resolve({ sums: [], divided: [], leftOut: [] })
  let at = Number.NEGATIVE_INFINITY
  let of = ''
  const anew = async (before: Promise<AttributeSeries>): Promise<AttributeSeries> => {
    // One that failed was told to whoever asked for it.
    const former = await before.then(
      ({ leftOut: known }) => known,
      () => [],
    )
    const next = await withoutHoldingUp(attributeSeries(sourcesOf(counted)))
    for (const { labels, value } of next.leftOut) leftOut.inc(labels, value)
    const left = new Set(next.leftOut.map(({ labels }) => JSON.stringify(labels)))
    for (const { labels } of former) if (!left.has(JSON.stringify(labels))) leftOut.remove(labels)
    return next
  }
  const sample = (): Promise<AttributeSeries> => {
    const { clock, store, informers } = counted
    if (clock.now() - at < SAMPLE_EVERY_MS) return sampled
    at = clock.now()
    const versions = [informers.profiles, informers.targets, informers.clusterTargets].map((informer) =>
      informer.list().map(({ metadata: { uid, generation } }) => [uid, generation]),
    )
    const now = JSON.stringify([store.sequence, versions])
    if (now !== of) sampled = anew(sampled)
    of = now
    return sampled
  }
  metrics.series(
    'kollect_custom_resource_series',
    'Sums of attributes over the rows of a profile, by kind; object_count: how many rows',
    async () => (await sample()).sums,
  )
  metrics.series(
    'kollect_custom_resource_labeled_series',
    'The same sums, divided by the attributes that spec.metrics[].labels of the profile names',
    async () => (await sample()).divided,
  )
  const leftOut = metrics.counter(
    'kollect_custom_resource_labeled_series_capped_total',
    'Combinations of values that had no series of their own, in each sample',
    ['profile', 'gvk', 'series'],
  )
}

/** Runs it to its end, and lets everything else run meanwhile. */
async function withoutHoldingUp<T>(work: Generator<undefined, T>): Promise<T> {
  for (let beganAt = performance.now(); ; ) {
    const step = work.next()
    if (step.done) return step.value
    if (performance.now() - beganAt < PIECE_MS) continue
    await setImmediate()
    beganAt = performance.now()
  }
}

/** Rows of all targets that have a profile. */
function* sourcesOf({ store, informers }: Counted): Generator<SeriesSource> {
  for (const { key, ref, hasRules } of declared(informers)) {
    const spec = ref && informers.profiles.get(ref)?.spec
    const state = store.state(key)
    if (!ref || !spec || state.kind !== 'rows') continue
    const kinds = hasRules || !spec.targetGVK ? [] : [kindOf(spec.targetGVK)]
    yield { profile: `${ref.namespace}/${ref.name}`, spec, kinds, rows: state.rows }
  }
}

/** Every target with its profile. */
function* declared({ targets, clusterTargets }: Counted['informers']) {
  for (const { metadata, spec } of [...targets.list(), ...clusterTargets.list()]) {
    const { namespace = '', name } = metadata
    const ref = typeof spec.profileRef === 'string' ? { name: spec.profileRef, namespace } : spec.profileRef
    yield { key: { namespace, name }, ref, hasRules: (spec.resourceRules ?? []).length > 0 }
  }
}

/** Rows by profile (`namespace/name`; '' for rules that stand in the target itself) and kind. */
function countedBy({ store, informers }: Counted): ReadonlyMap<string, number> {
  const profiles = new Map<string, string>()
  for (const { key, ref } of declared(informers))
    profiles.set(targetText(key), ref ? `${ref.namespace}/${ref.name}` : '')
  const counts = new Map<string, number>()
  for (const key of store.targets()) {
    const state = store.state(key)
    const profile = profiles.get(targetText(key)) ?? ''
    for (const row of state.kind === 'rows' ? state.rows : []) {
      const text = `${profile}\n${kindOf(row)}`
      counts.set(text, (counts.get(text) ?? 0) + 1)
    }
  }
  return counts
}
