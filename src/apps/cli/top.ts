import type { FleetRowView, TypeOnClusterView } from '#http'
import { age, type Column, share } from './format.ts'
import { type KindRow, textOf, usageWords } from './get-kinds.ts'
import type { TopSort, TopWord } from './top-words.ts'

/** The column that each of these words sorts by. */
export const topColumn: Readonly<Record<TopSort, string>> = { cpu: 'cpuUsed', memory: 'memoryUsed', disk: 'diskUsed' }

const amount = (row: FleetRowView, field: string): number | null => {
  const value = row.values[field]
  return typeof value === 'number' ? value : null
}

const used = (header: string, field: string, unit: 'cores' | 'bytes'): Column<KindRow> => ({
  header,
  value: (row) => textOf(amount(row, field), unit, 0),
})

const shared = (header: string, field: string, of: string): Column<KindRow> => ({
  header,
  value: (row) => share(amount(row, field), amount(row, of)),
})

/** `AS-OF` is the age of the measurements. */
export function topColumns(what: TopWord, now: number): readonly Column<KindRow>[] {
  const isNodes = what === 'nodes'
  return [
    { header: 'CLUSTER', value: ({ cluster }) => cluster },
    ...(isNodes ? [] : [{ header: 'NAMESPACE', value: ({ namespace }: KindRow) => namespace }]),
    { header: 'NAME', value: ({ name }) => name },
    used('CPU', 'cpuUsed', 'cores'),
    ...(isNodes ? [shared('CPU%', 'cpuUsed', 'cpuAllocatable')] : []),
    used('MEMORY', 'memoryUsed', 'bytes'),
    ...(isNodes ? [shared('MEMORY%', 'memoryUsed', 'memoryAllocatable')] : []),
    used('DISK', 'diskUsed', 'bytes'),
    ...(isNodes ? [shared('DISK%', 'diskUsed', 'diskCapacity')] : []),
    { header: 'AS-OF', value: ({ measuredAt }) => (measuredAt === null ? null : age(now - measuredAt)) },
  ]
}

/** Why clusters have no numbers, or old ones. */
export const topNotes = (what: TopWord, on: readonly TypeOnClusterView[]): readonly string[] =>
  on.flatMap(({ cluster, part, measured }) => {
    if (part.outcome !== 'complete') return []
    if (!measured) return [`${cluster}: what its ${what} use was not read yet, or is not for you`]
    // What else is not measured is said of every list.
    return measured.outcome === 'absent' ? [usageWords(what, cluster, measured)] : []
  })
