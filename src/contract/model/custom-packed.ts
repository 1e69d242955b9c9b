import { type CustomColumns, CustomRows } from './custom.ts'

/**
 * CustomRows as JSON that repeats little: for stores, for the log, and between processes of one version.
 * `namespaces` are runs of the sorted column; `labels` the distinct maps, `labelOf` the place of each row's among them.
 */
export interface PackedRows {
  readonly fields: readonly string[]
  readonly namespaces: readonly (readonly [name: string, rows: number])[]
  readonly names: readonly string[]
  readonly labels: CustomColumns['labels']
  readonly labelOf: readonly number[]
  readonly values: CustomColumns['values']
}

export function packRows(rows: CustomRows): PackedRows {
  const { fields, namespaces, names, labels, values } = rows.columns
  const runs: [string, number][] = []
  for (const namespace of namespaces) {
    const last = runs.at(-1)
    if (last?.[0] === namespace) last[1]++
    else runs.push([namespace, 1])
  }
  const places = new Map<CustomColumns['labels'][number], number>()
  const labelOf = labels.map((one) => {
    const known = places.get(one) ?? places.size
    places.set(one, known)
    return known
  })
  return { fields, namespaces: runs, names, labels: [...places.keys()], labelOf, values }
}

/** What packRows gave, after JSON. @returns undefined where it is nothing of the sort */
export function unpackRows(packed: PackedRows): CustomRows | undefined {
  if (typeof packed !== 'object' || packed === null) return undefined
  const { fields, namespaces: runs, names, labels, labelOf, values } = packed
  if (![runs, names, labels, labelOf].every(Array.isArray)) return undefined
  const namespaces: string[] = []
  for (const run of runs) {
    if (!Array.isArray(run)) return undefined
    const [name, count] = run
    if (!Number.isSafeInteger(count) || namespaces.length + count > names.length) return undefined
    for (let i = 0; i < count; i++) namespaces.push(name)
  }
  const ofRows = labelOf.map((place) => labels[place])
  // A place that is none leaves a gap, which `from` refuses.
  return CustomRows.from({ fields, namespaces, names, labels: ofRows as CustomColumns['labels'], values })
}
