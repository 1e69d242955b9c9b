import { closedEntry, type Entry } from './entry.ts'
import { printGo, printPlain } from './print-value.ts'
import type { FilterSummary, ListSummary, Semantics } from './types.ts'

/**
 * What is left of one type on one cluster. Several entries of the same type all have to let an item through: the most
 * restrictive wins, whatever their order (RBAC-Q12).
 */
export interface TypeFilter {
  readonly entries: readonly Entry[]
  /** nothing is hidden */
  readonly isOpen: boolean
  /** everything is hidden */
  readonly isClosed: boolean
}

export const openFilter: TypeFilter = { entries: [], isOpen: true, isClosed: false }
export const closedFilter: TypeFilter = { entries: [closedEntry], isOpen: false, isClosed: true }

export const filterOf = (entries: readonly Entry[]): TypeFilter => ({
  entries,
  isOpen: entries.every(({ isOpen }) => isOpen),
  isClosed: entries.some(({ isClosed }) => isClosed),
})

export type Labels = Readonly<Record<string, string>>
/** `visibility`: the type as a whole is hidden */
export type Why = 'visibility' | 'name' | 'namespace' | 'labels' | 'field'

/**
 * Why an item is hidden; null: it is shown. The only place where a filter is compared with anything.
 * @param alias a second name it is known by
 * @param namespaces where it is; null: namespaces play no part for it; empty: it has none
 * @param labels null: it has none that could be compared
 */
export function whyHidden(
  filter: TypeFilter,
  semantics: Semantics,
  name: string,
  alias: string | null,
  namespaces: readonly string[] | null,
  labels: Labels | null,
  values: Readonly<Record<string, unknown>> | null = null,
): Why | null {
  if (filter.isOpen) return null
  if (filter.isClosed) return 'visibility'
  for (const entry of filter.entries) {
    const { names, namespaces: spaces } = entry
    if (names && !(alias === null ? names.passes(name) : names.passesEither(name, alias))) return 'name'
    if (spaces && namespaces && !namespaces.some(spaces.passes)) return 'namespace'
    if (entry.labels.length > 0 && !hasLabels(entry, labels, semantics)) return 'labels'
    for (const [field, texts] of entry.fields) {
      const text = fieldText(values, field, semantics)
      if (text === undefined || !texts.passes(text)) return 'field'
    }
  }
  return null
}

/** Absence never equals (RBAC-Q16); in the original an absent label was an empty text. */
function hasLabels(entry: Entry, labels: Labels | null, semantics: Semantics): boolean {
  if (!labels) return false
  for (const [key, value] of entry.labels) {
    const found = Object.hasOwn(labels, key) ? labels[key] : semantics === 'original' ? '' : undefined
    if (found !== value) return false
  }
  return true
}

/** undefined: nothing that could be compared, so nothing that could pass (RBAC-Q22) */
function fieldText(
  values: Readonly<Record<string, unknown>> | null,
  field: string,
  semantics: Semantics,
): string | undefined {
  const value = values && Object.hasOwn(values, field) ? values[field] : undefined
  if (semantics === 'original') return printGo(value)
  return value === undefined || value === null ? undefined : printPlain(value)
}

/** What of an item the filters compare with something, besides its namespace. */
export const looksAt = (filters: readonly TypeFilter[]) => {
  const entries = filters.flatMap((filter) => filter.entries)
  return {
    names: entries.some(({ names }) => names !== null),
    labels: entries.some(({ labels }) => labels.length > 0),
    fields: entries.some(({ fields }) => fields.length > 0),
  }
}

export const showsAggregation = ({ entries }: TypeFilter, name: string): boolean =>
  entries.every(({ aggregations }) => !aggregations || aggregations.shows(name))

/** For people. Where entries meet, what is allowed by all of them is told pair by pair. */
export function filterSummary(filter: TypeFilter): FilterSummary {
  if (filter.isClosed) return { visibility: 'none' }
  const [first = { visibility: 'all' as const }, ...rest] = filter.entries.map(({ summary }) => summary)
  return rest.reduce(meet, first)
}

function meet(one: FilterSummary, other: FilterSummary): FilterSummary {
  const names = meetLists(one.names, other.names)
  const namespaces = meetLists(one.namespaces, other.namespaces)
  const aggregations = meetAggregations(one.aggregations, other.aggregations)
  return {
    visibility: one.visibility === 'all' ? other.visibility : one.visibility,
    ...(names && { names }),
    ...(namespaces && { namespaces }),
    ...((one.labels || other.labels) && { labels: { ...one.labels, ...other.labels } }),
    ...((one.fields || other.fields) && { fields: { ...one.fields, ...other.fields } }),
    ...(aggregations && { aggregations }),
  }
}

const PAIRS = 100

function meetLists(one: ListSummary | undefined, other: ListSummary | undefined): ListSummary | undefined {
  if (!one || !other) return one ?? other
  const both = one.allowed.flatMap((a) => other.allowed.map((b) => (a === b ? a : `${a} and ${b}`)))
  const allowed =
    one.allowed.length === 0 ? other.allowed : other.allowed.length === 0 ? one.allowed : both.slice(0, PAIRS)
  return { allowed, denied: [...new Set([...one.denied, ...other.denied])] }
}

type AggregationSummary = NonNullable<FilterSummary['aggregations']>
function meetAggregations(one: AggregationSummary | undefined, other: AggregationSummary | undefined) {
  if (!one || !other) return one ?? other
  const lists = meetLists(
    { allowed: one.include, denied: one.exclude },
    { allowed: other.include, denied: other.exclude },
  )
  return lists && { include: lists.allowed, exclude: lists.denied }
}
