import type { ClusterState, JsonValue, NamedElsewhere, Table, Telling } from '#model'
import { type RowRules, showsNamespace } from './row-filter.ts'
import type { ToldRow } from './types.ts'

/*
 * A row that is shown may speak of namespaces that are not: it says nothing of them. Whether one is shown is decided as for rows.
 *
 *   namespaces     those that are shown
 *   object         null, where its namespace is not shown
 *   a text         a sentence that says so, where one of the namespaces it may be about is not shown, or is not known
 *   a number, …    null, in the same cases: it counts what is there
 */

export const WITHHELD = 'hidden: it may be about a namespace that is not shown'

const BETWEEN = ', '

/** What is told of a value. */
export function toldOf(
  rules: RowRules,
  cluster: ClusterState,
  tells: Telling,
  value: JsonValue,
  row: ToldRow,
): JsonValue {
  if (value === null) return null
  const isShown = (name: string): boolean => showsNamespace(rules, cluster, name)
  if (typeof tells === 'object') {
    if (areAllShown(cluster, tells, row, isShown)) return value
    return typeof value === 'string' ? WITHHELD : null
  }
  if (typeof value !== 'string') return null
  if (tells === 'namespaces') return value.split(BETWEEN).filter(isShown).join(BETWEEN) || null
  return isShown(value.slice(0, Math.max(0, value.indexOf('/')))) ? value : null
}

/** Whether all namespaces are shown that a value of the row may be about. */
function areAllShown(
  cluster: ClusterState,
  { source, column, withCluster }: NamedElsewhere,
  row: ToldRow,
  isShown: (name: string) => boolean,
): boolean {
  if (source === null) return namesIn(row.value(column))?.every(isShown) ?? false
  const state = cluster.tables.get(source)
  if (!state?.freshness || state.truncated) return false
  const named = namedIn(state.rows, column)
  return [row.namespace, ...(withCluster ? [''] : [])].every((namespace) => {
    const names = named.get(namespace) ?? []
    return names !== 'any' && names.every(isShown)
  })
}

/** undefined: it is not known */
const namesIn = (value: JsonValue | undefined): readonly string[] | undefined =>
  typeof value === 'string' && value !== '' ? value.split(BETWEEN) : undefined

type Named = ReadonlyMap<string, readonly string[] | 'any'>

// A table never changes: what its rows name, namespace by namespace, is found out once.
const known = new WeakMap<Table, Map<string, Named>>()

function namedIn(rows: Table, column: string): Named {
  const ofRows = known.get(rows) ?? new Map<string, Named>()
  known.set(rows, ofRows)
  const made = ofRows.get(column) ?? newNamed(rows, column)
  ofRows.set(column, made)
  return made
}

function newNamed(rows: Table, column: string): Named {
  const sets = new Map<string, Set<string> | 'any'>()
  const valueAt = rows.column(column)
  for (let place = 0; place < rows.size; place++) {
    const namespace = rows.namespaceAt(place)
    const names = namesIn(valueAt?.(place))
    const before = sets.get(namespace) ?? new Set<string>()
    if (!names || before === 'any') sets.set(namespace, 'any')
    else
      sets.set(
        namespace,
        names.reduce((all, name) => all.add(name), before),
      )
  }
  return new Map([...sets].map(([namespace, names]) => [namespace, names === 'any' ? names : [...names]]))
}
