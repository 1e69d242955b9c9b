import { type Matches, storedPattern } from './pattern.ts'
import type { DocumentPattern, FilterSummary, ListSummary, ResourceDocument, Semantics } from './types.ts'

/** Allowed and denied texts of one kind, ready to be asked. */
export interface TextFilter {
  passes(text: string): boolean
  /** of something with two names: neither may be denied, and either may be the one that is allowed */
  passesEither(one: string, other: string): boolean
  readonly summary: ListSummary
}

interface Texts {
  readonly allowed: readonly string[]
  readonly denied: readonly string[]
  readonly allowedPatterns: readonly DocumentPattern[]
  readonly deniedPatterns: readonly DocumentPattern[]
}

/** What one `resources` entry of a rule lets through. */
export interface Entry {
  readonly visibility: 'all' | 'none' | 'filtered'
  /** nothing is hidden */
  readonly isOpen: boolean
  /** everything is hidden */
  readonly isClosed: boolean
  readonly names: TextFilter | null
  readonly namespaces: TextFilter | null
  readonly labels: readonly (readonly [key: string, value: string])[]
  readonly fields: readonly (readonly [name: string, filter: TextFilter])[]
  readonly aggregations: Aggregations | null
  readonly summary: FilterSummary
}

export interface Aggregations {
  shows(name: string): boolean
}

/** Which filters have a meaning for a type; the others must not let anything through in its name. */
const filterable: Readonly<Record<string, { readonly namespaces: boolean; readonly fields: boolean }>> = {
  nodes: { namespaces: false, fields: false },
  operators: { namespaces: true, fields: false },
  namespaces: { namespaces: true, fields: false },
  pods: { namespaces: true, fields: false },
  alerts: { namespaces: true, fields: false },
  events: { namespaces: true, fields: false },
  registries: { namespaces: false, fields: false },
}
const filterableOf = (type: string) => (Object.hasOwn(filterable, type) ? filterable[type] : undefined)

/** @param hasFault something of the entry could not be read; the original never looked */
export function prepareEntry(document: ResourceDocument, semantics: Semantics, hasFault = false): Entry {
  return semantics === 'strict' ? strictEntry(document, hasFault) : originalEntry(document)
}

/** Elements that cannot be read count against the reader: an include matches nothing, an exclude matches everything. */
function strictEntry(document: ResourceDocument, hasFault: boolean): Entry {
  const { visibility } = document
  const kind = filterableOf(document.type)
  const names = strictTexts(namesOf(document))
  const ignoresNamespaces = kind?.namespaces === false && !isEmpty(namespacesOf(document))
  const namespaces = kind?.namespaces === false ? NO_TEXTS : strictTexts(namespacesOf(document))
  const labels = Object.entries(document.labels ?? {})
  const fields = Object.entries(document.field_filters ?? {}).map(
    ([name, lists]) => [name, strictTexts(fieldTexts(lists))] as const,
  )
  const fieldFilters = fields.flatMap(([name, { filter }]) => (filter ? [[name, filter] as const] : []))
  const isFiltered = [names.filter, namespaces.filter, ...labels, ...fieldFilters].some((filter) => filter !== null)
  const isKnown = visibility === 'all' || visibility === '' || visibility === 'filtered'
  const isClosed =
    hasFault ||
    !isKnown ||
    (visibility === 'filtered' && !isFiltered) ||
    [names, namespaces, ...fields.map(([, texts]) => texts)].some(({ isBlind }) => isBlind) ||
    (kind?.fields === false && fieldFilters.length > 0)
  return entryOf(document, {
    // A filter that is ignored hides nothing, and yet its author meant something to be hidden: no sums over that.
    visibility: isClosed ? 'none' : isFiltered || ignoresNamespaces ? 'filtered' : 'all',
    names: names.filter,
    namespaces: namespaces.filter,
    labels,
    fields: fieldFilters,
    aggregations: aggregationsOf(document),
  })
}

/** `filtered` and `all` make no difference (RBAC-Q10, RBAC-Q11), and what does not compile is dropped (RBAC-Q36). */
function originalEntry(document: ResourceDocument): Entry {
  const names = originalTexts(namesOf(document))
  const namespaces = originalTexts(namespacesOf(document))
  const labels = Object.entries(document.labels ?? {})
  const fields = Object.entries(document.field_filters ?? {}).flatMap(([name, lists]) => {
    const filter = originalTexts(fieldTexts(lists))
    return filter ? [[name, filter] as const] : []
  })
  const isFiltered =
    document.visibility === 'filtered' || [names, namespaces, ...labels, ...fields].some((f) => f !== null)
  const visibility = document.visibility === 'none' ? 'none' : isFiltered ? 'filtered' : 'all'
  return entryOf(document, { visibility, names, namespaces, labels, fields, aggregations: aggregationsOf(document) })
}

function entryOf(
  document: ResourceDocument,
  prepared: Pick<Entry, 'visibility' | 'names' | 'namespaces' | 'labels' | 'fields' | 'aggregations'>,
): Entry {
  const { visibility, names, namespaces, labels, fields, aggregations } = prepared
  const rules = document.aggregation_rules
  return {
    ...prepared,
    isOpen: visibility === 'all',
    isClosed: visibility === 'none',
    summary: {
      visibility,
      ...(names && { names: names.summary }),
      ...(namespaces && { namespaces: namespaces.summary }),
      ...(labels.length > 0 && { labels: Object.fromEntries(labels) }),
      ...(fields.length > 0 && { fields: Object.fromEntries(fields.map(([name, { summary }]) => [name, summary])) }),
      ...(aggregations && { aggregations: { include: rules?.include ?? [], exclude: rules?.exclude ?? [] } }),
    },
  }
}

/** Hides everything: a type that a Deny names, or one that cannot be told. */
export const closedEntry: Entry = {
  visibility: 'none',
  isOpen: false,
  isClosed: true,
  names: null,
  namespaces: null,
  labels: [],
  fields: [],
  aggregations: null,
  summary: { visibility: 'none' },
}

/** Excluded wins over included (RBAC-Q21). */
function aggregationsOf({ aggregation_rules: rules }: ResourceDocument): Aggregations | null {
  if (!rules) return null
  const include = new Set(rules.include ?? [])
  const exclude = new Set(rules.exclude ?? [])
  return { shows: (name) => !exclude.has(name) && (include.size === 0 || include.has(name)) }
}

// ── texts ────────────────────────────────────────────────────────────────────────────────────────────────────────────

const namesOf = (document: ResourceDocument): Texts => ({
  allowed: document.allowed_names ?? [],
  denied: document.denied_names ?? [],
  allowedPatterns: document.name_patterns ?? [],
  deniedPatterns: document.deny_name_patterns ?? [],
})

const namespacesOf = (document: ResourceDocument): Texts => ({
  allowed: document.allowed_ns ?? [],
  denied: document.denied_ns ?? [],
  allowedPatterns: document.ns_patterns ?? [],
  deniedPatterns: document.deny_ns_patterns ?? [],
})

type FieldLists = NonNullable<ResourceDocument['field_filters']>[string]
const fieldTexts = (lists: FieldLists): Texts => ({
  allowed: lists.allowed_literals ?? [],
  denied: lists.denied_literals ?? [],
  allowedPatterns: lists.allowed_patterns ?? [],
  deniedPatterns: lists.denied_patterns ?? [],
})

const isEmpty = ({ allowed, denied, allowedPatterns, deniedPatterns }: Texts): boolean =>
  allowed.length + denied.length + allowedPatterns.length + deniedPatterns.length === 0

const NO_TEXTS = { filter: null, isBlind: false } as const

/** `isBlind`: what must be hidden cannot be told, so everything has to be. */
function strictTexts(texts: Texts): { readonly filter: TextFilter | null; readonly isBlind: boolean } {
  if (isEmpty(texts)) return NO_TEXTS
  const allowed = texts.allowedPatterns.map((pair) => storedPattern(pair, 'strict', 'allowed').matches ?? never)
  const denied = texts.deniedPatterns.map((pair) => storedPattern(pair, 'strict', 'denied').matches)
  const readable = denied.filter((matches) => matches !== undefined)
  return { filter: textFilter(texts, allowed, readable), isBlind: readable.length < denied.length }
}

function originalTexts(texts: Texts): TextFilter | null {
  if (isEmpty(texts)) return null
  const readable = (pairs: readonly DocumentPattern[], list: 'allowed' | 'denied'): Matches[] =>
    pairs.flatMap((pair) => storedPattern(pair, 'original', list).matches ?? [])
  return textFilter(texts, readable(texts.allowedPatterns, 'allowed'), readable(texts.deniedPatterns, 'denied'))
}

const never: Matches = () => false

function textFilter(texts: Texts, allowedPatterns: readonly Matches[], deniedPatterns: readonly Matches[]): TextFilter {
  const allowed = new Set(texts.allowed)
  const denied = new Set(texts.denied)
  const takesAny = allowed.size === 0 && allowedPatterns.length === 0
  const isDenied = (text: string) => denied.has(text) || matchesAny(deniedPatterns, text)
  const isAllowed = (text: string) => takesAny || allowed.has(text) || matchesAny(allowedPatterns, text)
  return {
    passes: (text) => !isDenied(text) && isAllowed(text),
    passesEither: (one, other) => !isDenied(one) && !isDenied(other) && (isAllowed(one) || isAllowed(other)),
    summary: {
      allowed: [...texts.allowed, ...texts.allowedPatterns.map(([text]) => text)],
      denied: [...texts.denied, ...texts.deniedPatterns.map(([text]) => text)],
    },
  }
}

function matchesAny(patterns: readonly Matches[], text: string): boolean {
  for (const matches of patterns) if (matches(text)) return true
  return false
}
