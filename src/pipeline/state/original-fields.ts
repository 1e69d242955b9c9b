/*
 * What is read out of a document that somebody else wrote: a field that is missing or of another type is what a reader of the
 * original takes it for, empty or not known, and never throws.
 */
export type Fields = Readonly<Record<string, unknown>>

/** Longer texts are cut: a name or message of the fleet is never as long. */
const MAX_TEXT = 16_384

/** The object that a text holds; undefined where it holds something else. */
export function objectOf(text: string): Fields | undefined {
  const value = parsed(text)
  return isFields(value) ? value : undefined
}

/** The objects of the list that a text holds, and how many of its entries are none; undefined where it is no list. */
export function listOf(text: string): { readonly entries: readonly Fields[]; readonly odd: number } | undefined {
  const value = parsed(text)
  if (!Array.isArray(value)) return undefined
  const entries = value.filter(isFields)
  return { entries, odd: value.length - entries.length }
}

export function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined // the caller says that it cannot be read
  }
}

export const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

export const fieldsOf = (value: unknown): Fields => (isFields(value) ? value : {})

/** Own fields only: a document may lack one that every object has. */
const own = (fields: Fields, name: string): unknown => (Object.hasOwn(fields, name) ? fields[name] : undefined)

export function textIn(fields: Fields, name: string): string {
  const value = own(fields, name)
  return typeof value === 'string' ? value.slice(0, MAX_TEXT) : ''
}

/** null: it is not said, or an empty text */
export const saidIn = (fields: Fields, name: string): string | null => textIn(fields, name) || null

/** undefined: it is no name. With U+FFFD it was no UTF-8, and would be compared with policies as something it is not. */
export function nameIn(fields: Fields, name: string): string | undefined {
  const value = own(fields, name)
  return typeof value === 'string' && value !== '' && value.length <= 512 && !value.includes('\ufffd')
    ? value
    : undefined
}

export const flagIn = (fields: Fields, name: string): boolean => own(fields, name) === true

/** A finite number from 0 on, else 0. */
export function countIn(fields: Fields, name: string): number {
  const value = own(fields, name)
  return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : 0
}

export const wholeIn = (fields: Fields, name: string): number => Math.floor(countIn(fields, name))

/** No node has a capacity of 0: that is what the original writes where it could not read it. */
export const amountIn = (fields: Fields, name: string): number | null => countIn(fields, name) || null

/** ms since the Unix epoch; null where it is no time, or the original's word for none */
export function timeIn(fields: Fields, name: string): number | null {
  const at = Date.parse(textIn(fields, name))
  return Number.isNaN(at) || at < 0 ? null : at
}

export function textsIn(fields: Fields, name: string): string[] {
  const value = own(fields, name)
  return Array.isArray(value) ? value.filter((one): one is string => typeof one === 'string') : []
}

export function listIn(fields: Fields, name: string): readonly Fields[] {
  const value = own(fields, name)
  return Array.isArray(value) ? value.filter(isFields) : []
}

/** A map of texts; what is none is left out. */
export function mapIn(fields: Fields, name: string): Readonly<Record<string, string>> {
  const entries = Object.entries(fieldsOf(own(fields, name)))
  return Object.fromEntries(entries.filter((entry): entry is [string, string] => typeof entry[1] === 'string'))
}
