import { nearest } from '../contract.ts'
import { compareVersions } from './versions.ts'

/*
 *   filter = term (space term)*
 *   term   = ["-"] ( field op value ("," value)* | word )
 *   field  = name | '"' name with spaces '"'
 *   op     = ":" | "=" | "!=" | "~" | "<" | "<=" | ">" | ">="
 *   word   = text found anywhere in what the row is called; "in quotes" keeps spaces and signs
 *
 * A field that no column has is a label. `none` as a value asks for rows where the value is not known.
 */
export type Operator = ':' | '!=' | '~' | '<' | '<=' | '>' | '>='

export type Term =
  | { readonly kind: 'word'; readonly not: boolean; readonly text: string; readonly source: string }
  | {
      readonly kind: 'field'
      readonly not: boolean
      readonly field: string
      readonly op: Operator
      readonly values: readonly string[]
      readonly source: string
    }

export type Value = string | number | boolean | null | readonly string[]
/** `time`: a moment in ms since the epoch, asked for by its age */
export type FieldKind = 'text' | 'number' | 'percent' | 'bytes' | 'version' | 'time'

export interface Field<T> {
  readonly kind: FieldKind
  readonly read: (row: T) => Value
  /** all that it can say, where that is known: what no row says today is no mistake */
  readonly values?: readonly string[]
}

export interface FilterTarget<T> {
  readonly fields: Readonly<Record<string, Field<T>>>
  readonly labels?: (row: T) => Readonly<Record<string, string>>
  /** what a bare word is looked for in */
  readonly words: (row: T) => string
}

export interface Filter<T> {
  readonly test: (row: T) => boolean
  /** sentences on what could not be understood; such a term matches nothing */
  readonly faults: readonly string[]
}

const TERM = /^(?:"([^"]+)"|([A-Za-z][\w./-]*?))(!=|<=|>=|:|=|~|<|>)(.*)$/s
const SIGN = /^-?(!=|<=|>=|=|<|>)/

/** Splits at spaces outside quotes; the quotes stay for `parseTerm`. */
export function splitTerms(text: string): string[] {
  return text.match(/(?:"[^"]*"?|[^\s"])+/g) ?? []
}

export function parseFilter(text: string): Term[] {
  return splitTerms(text).flatMap((source) => parseTerm(source) ?? [])
}

function parseTerm(source: string): Term | undefined {
  const not = source.startsWith('-') && source.length > 1
  const body = not ? source.slice(1) : source
  const match = TERM.exec(body)
  if (!match) {
    const word = unquote(body).toLowerCase()
    return word === '' ? undefined : { kind: 'word', not, text: word, source }
  }
  const [, quoted = '', bare = '', op = ':', rest = ''] = match
  const field = bare || quoted.trim()
  const values = (rest.match(/(?:"[^"]*"?|[^,"])+/g) ?? []).map(unquote).filter((value) => value !== '')
  return { kind: 'field', not, field, op: (op === '=' ? ':' : op) as Operator, values, source } // TERM names the rest
}

const unquote = (text: string): string => text.replaceAll('"', '')

/** Why a word is none: it begins with a sign, as where spaces stand around one. undefined: it is a word */
export const wordFault = ({ source }: Term): string | undefined =>
  SIGN.test(source) ? `${source} has no column before it: write a term without spaces, as name!=web` : undefined

/** A term as it is written by hand, such as a chip or a link would add. */
export function termText(field: string, op: Operator, value: string): string {
  return `${/\s/.test(field) ? `"${field}"` : field}${op}${/[\s,"]/.test(value) ? `"${value.replaceAll('"', '')}"` : value}`
}

/** @param now ms since the epoch: what ages are counted from */
export function compileFilter<T>(text: string, target: FilterTarget<T>, now = Date.now()): Filter<T> {
  const faults: string[] = []
  const tests = parseFilter(text).map((term) => compileTerm(term, target, { faults, now }))
  return { test: (row) => tests.every((test) => test(row)), faults }
}

/** What a column or field is called in a filter. */
export const fieldOf = <T>({ fields }: Pick<FilterTarget<T>, 'fields'>, name: string): Field<T> | undefined =>
  Object.hasOwn(fields, name)
    ? fields[name]
    : Object.hasOwn(fields, name.toLowerCase())
      ? fields[name.toLowerCase()]
      : undefined

type Test<T> = (row: T) => boolean
const nothing = () => false

interface Compiling {
  readonly faults: string[]
  readonly now: number
}

function compileTerm<T>(term: Term, target: FilterTarget<T>, compiling: Compiling): Test<T> {
  const test = positive(term, target, compiling)
  // What cannot be understood matches nothing, negated or not.
  return term.not && test !== nothing ? (row) => !test(row) : test
}

function positive<T>(term: Term, target: FilterTarget<T>, compiling: Compiling): Test<T> {
  const { fields, labels, words } = target
  if (term.kind === 'word') {
    const why = wordFault(term)
    return why === undefined ? (row) => words(row).toLowerCase().includes(term.text) : fault(compiling, why)
  }
  if (term.values.length === 0) return fault(compiling, `${term.source} lacks a value`)
  const known = fieldOf(target, term.field)
  if (!known && !labels) {
    const meant = nearest(term.field, Object.keys(fields))
    return fault(compiling, `${term.field} is no column here${meant === undefined ? '' : `; did you mean ${meant}?`}`)
  }
  const read = known?.read ?? ((row: T): Value => labels?.(row)[term.field] ?? null)
  const tests = term.values.map((value) => compileValue(known?.kind ?? 'text', term, value, compiling))
  if (tests.includes(nothing)) return nothing
  if (term.op === '!=') return (row) => tests.every((test) => test(read(row)))
  return (row) => tests.some((test) => test(read(row)))
}

function compileValue(
  kind: FieldKind,
  { op, source }: Extract<Term, { kind: 'field' }>,
  wanted: string,
  compiling: Compiling,
): (value: Value) => boolean {
  const low = wanted.toLowerCase()
  if (low === 'none' && (op === ':' || op === '!=')) {
    return (value) => (value === null || value === '') === (op === ':')
  }
  if (op === '~') return (value) => texts(value).some((text) => text.includes(low))
  if (kind === 'text') {
    if (op === ':') return (value) => texts(value).includes(low)
    if (op === '!=') return (value) => value !== null && !texts(value).includes(low)
    return (value) => texts(value).some((text) => holds(op, text < low ? -1 : text > low ? 1 : 0))
  }
  if (kind === 'version') {
    if (compareVersions(wanted, wanted) === undefined) return fault(compiling, `${source}: ${wanted} is no version`)
    return (value) => holds(op, typeof value === 'string' ? compareVersions(value, wanted) : undefined)
  }
  const amount = parseAmount(kind, wanted)
  if (amount === undefined) return fault(compiling, `${source}: ${wanted} is no ${amountWord[kind]}`)
  const shown = shownAs(kind, compiling.now)
  return (value) => holds(op, typeof value === 'number' ? Math.sign(shown(value) - amount) : undefined)
}

/** A percentage is compared as it is shown, a moment by its age. */
function shownAs(kind: FieldKind, now: number): (value: number) => number {
  if (kind === 'percent') return (value) => Math.round(value * 100)
  return kind === 'time' ? (value) => now - value : (value) => value
}

function fault({ faults }: Compiling, sentence: string): () => boolean {
  faults.push(sentence)
  return nothing
}

const amountWord = { number: 'number', percent: 'percentage', bytes: 'amount of bytes', time: 'span such as 5m or 3d' }

/** A value that is not known is neither more nor less than anything, nor different from it. */
function holds(op: Operator, sign: number | undefined): boolean {
  if (sign === undefined || Number.isNaN(sign)) return false
  if (op === ':') return sign === 0
  if (op === '!=') return sign !== 0
  if (op === '<') return sign < 0
  if (op === '<=') return sign <= 0
  return op === '>' ? sign > 0 : sign >= 0
}

const texts = (value: Value): readonly string[] => {
  if (value === null) return []
  if (typeof value === 'object') return value.map((one) => one.toLowerCase())
  return [String(typeof value === 'boolean' ? (value ? 'yes' : 'no') : value).toLowerCase()]
}

const spans: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }
const sizes: Readonly<Record<string, number>> = {
  '': 1,
  ki: 2 ** 10,
  mi: 2 ** 20,
  gi: 2 ** 30,
  ti: 2 ** 40,
  pi: 2 ** 50,
}

function parseAmount(kind: 'number' | 'percent' | 'bytes' | 'time', text: string): number | undefined {
  const match = /^(-?\d+(?:\.\d+)?)\s*([a-z%]*)$/i.exec(text)
  if (!match?.[1]) return undefined
  const [digits, unit] = [Number(match[1]), (match[2] ?? '').toLowerCase()]
  if (kind === 'percent') return unit === '' || unit === '%' ? digits : undefined
  if (kind === 'number') return unit === '' ? digits : undefined
  const scale = kind === 'time' ? spans[unit] : sizes[unit]
  return scale === undefined ? undefined : digits * scale
}
