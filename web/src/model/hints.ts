import { isNearIn, nearest } from '../contract.ts'
import { type Field, type FilterTarget, fieldOf, parseFilter, type Term, termText, type Value } from './filter.ts'

/** So many different values of a field are looked at, of so many rows. */
const mostValues = 1000
const mostRows = 20_000

type FieldTerm = Extract<Term, { kind: 'field' }>

/**
 * Sentences on terms that are understood and that no row can pass, because no row says such a thing: a label that is nowhere, a
 * value that no row has, a word that none is called. With what was probably meant.
 * @param isWhole false: there are more rows than these, so that only what was probably meant can be said
 */
export function filterHints<T>(
  text: string,
  target: FilterTarget<T>,
  rows: readonly T[],
  noun: string,
  isWhole = true,
): string[] {
  if (rows.length === 0 || rows.length > mostRows) return []
  const hints = parseFilter(text).flatMap((term) =>
    term.kind === 'field' ? hintsOf(term, target, rows, noun) : wordHints(term, target, rows, noun),
  )
  return hints.flatMap(({ of, why, meant, isNoColumn }) => {
    if (isWhole) return [`${of}${why}${meant}`]
    if (isNoColumn) return [`${of} is no column here, and no label of the first ${rows.length} ${noun}${meant}`]
    return meant.startsWith(asking) ? [`${of}: ${meant.slice(2)}`] : []
  })
}

interface Hint {
  /** what is not understood */
  readonly of: string
  readonly why: string
  /** what to write instead, as the end of the sentence; '' where nothing is near */
  readonly meant: string
  /** no column has this name, whatever the rows are */
  readonly isNoColumn?: boolean
}
const asking = '; did you mean '

/** A word that is in no row. Only names are offered: of the other words of a row nobody knows which are names. */
function wordHints<T>(
  { text, not, source }: Extract<Term, { kind: 'word' }>,
  { words, fields }: FilterTarget<T>,
  rows: readonly T[],
  noun: string,
): Hint[] {
  if (not || rows.some((row) => words(row).toLowerCase().includes(text))) return []
  const names = fields.name && valuesOf(fields.name.read, rows)
  return [
    { of: source, why: `: none of these ${noun} is called so`, meant: didYouMean(text, [...(names?.keys() ?? [])]) },
  ]
}

function hintsOf<T>(term: FieldTerm, target: FilterTarget<T>, rows: readonly T[], noun: string): Hint[] {
  const { labels } = target
  const { field, op, source } = term
  const known = fieldOf(target, field)
  if (!known && labels && !rows.some((row) => labels(row)[field] !== undefined))
    return [
      {
        of: field,
        why: ` is no column here, and no label of these ${noun}`,
        meant: didYouMean(field, namesOf(target, rows)),
        isNoColumn: true,
      },
    ]
  if ((known && known.kind !== 'text') || !(op === ':' || op === '!=' || op === '~')) return []
  const values = valuesOf(known?.read ?? ((row: T) => labels?.(row)[field] ?? null), rows)
  if (values === undefined) return []
  const all = new Map([...values.keys(), ...(known?.values ?? [])].map((value) => [value.toLowerCase(), value]))
  const isSaid = (value: string) => (op === '~' ? [...all.keys()].some((one) => one.includes(value)) : all.has(value))
  return term.values
    .filter((value) => value.toLowerCase() !== 'none' && !isSaid(value.toLowerCase()))
    .map((value) => ({
      of: source,
      why: `: none of these ${noun} has that`,
      meant: didYouMean(value, [...all.values()], field),
    }))
}

function didYouMean(word: string, candidates: readonly string[], field?: string): string {
  const meant = nearestIn(word, candidates)
  if (meant !== undefined) return `${asking}${field ? termText(field, ':', meant) : meant}?`
  const few = candidates.toSorted()
  return field && few.length > 0 && few.length <= 6 ? `; there are ${few.join(', ')}` : ''
}

/** The whole of a name, or the end or the beginning of one: `prdo-east` is meant for `eu-prod-east`. */
const nearestIn = (word: string, candidates: readonly string[]): string | undefined =>
  nearest(word, candidates) ?? candidates.find((candidate) => word.length > 3 && isNearIn(word, candidate))

const namesOf = <T>({ fields, labels }: FilterTarget<T>, rows: readonly T[]): string[] => [
  ...Object.keys(fields),
  ...(labels ? labelKeys(rows, labels).keys() : []),
]

/** How many rows have each label. */
function labelKeys<T>(rows: readonly T[], labels: NonNullable<FilterTarget<T>['labels']>): Map<string, number> {
  const keys = new Map<string, number>()
  for (const row of rows.slice(0, mostRows))
    for (const key of Object.keys(labels(row))) keys.set(key, (keys.get(key) ?? 0) + 1)
  return keys
}

/** Values as the rows write them, with how many rows have each; undefined: too many to tell. */
function valuesOf<T>(read: (row: T) => Value, rows: readonly T[]): Map<string, number> | undefined {
  const values = new Map<string, number>()
  for (const row of rows) {
    const value = read(row)
    const texts = value !== null && typeof value === 'object' ? value : [value]
    for (const one of texts) {
      if (one === null || one === '') continue
      const text = typeof one === 'boolean' ? (one ? 'yes' : 'no') : String(one)
      values.set(text, (values.get(text) ?? 0) + 1)
    }
    if (values.size > mostValues) return undefined
  }
  return values
}

const sampleRows = 2000

/**
 * An example out of what is here: `health:* *=* cpu>80 name~*` with a value, a label and a beginning of a name that some rows
 * have and others do not. What nothing fits is left out.
 */
export function fillExample<T>(template: string, target: FilterTarget<T>, rows: readonly T[]): string {
  const some = rows.slice(0, sampleRows)
  return template
    .split(' ')
    .flatMap((term) => {
      if (!term.includes('*')) return [term]
      const [, field = '', op = ':'] = /^([^:=~<>]*)(:|=|~|<|>)\*$/.exec(term) ?? []
      if (field === '*') return labelExample(target, some) ?? []
      return fieldExample(field, op, fieldOf(target, field), some) ?? []
    })
    .join(' ')
}

function fieldExample<T>(
  name: string,
  op: string,
  field: Field<T> | undefined,
  rows: readonly T[],
): string | undefined {
  const values = field && valuesOf(field.read, rows)
  if (op === '~') {
    const starts = field && valuesOf((row) => /^[a-z0-9]+-/i.exec(String(field.read(row)))?.[0] ?? null, rows)
    const start = starts && telling(starts, rows.length)
    return start === undefined ? undefined : `${name}~${start}`
  }
  const value = values && telling(values, rows.length)
  return value === undefined ? undefined : `${name}${op}${termText('', ':', value).slice(1)}`
}

function labelExample<T>({ labels }: FilterTarget<T>, rows: readonly T[]): string | undefined {
  if (!labels) return undefined
  // Short keys first: they are the ones people gave.
  const keys = [...labelKeys(rows, labels)].sort(([a], [b]) => a.length - b.length || (a < b ? -1 : 1))
  for (const [key] of keys) {
    const values = valuesOf((row) => labels(row)[key] ?? null, rows)
    const value = values && values.size > 1 ? telling(values, rows.length) : undefined
    if (value !== undefined) return `${key}=${termText('', ':', value).slice(1)}`
  }
  return undefined
}

/** The value that the most rows have, of those that not all have. */
function telling(values: ReadonlyMap<string, number>, count: number): string | undefined {
  const [first] = [...values]
    .filter(([value, times]) => times < count && value.length <= 30)
    .sort(([a, times], [b, others]) => others - times || (a < b ? -1 : 1))
  return first?.[0]
}

/** Keys that rows have as labels, those of most rows first. */
export function commonLabels<T>(target: FilterTarget<T>, rows: readonly T[], most = 8): string[] {
  const { labels } = target
  if (!labels) return []
  return [...labelKeys(rows.slice(0, sampleRows), labels)]
    .sort(([a, times], [b, others]) => others - times || (a < b ? -1 : 1))
    .slice(0, most)
    .map(([key]) => key)
}
