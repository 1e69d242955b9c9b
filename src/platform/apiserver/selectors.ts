import { ApiError } from './status.ts'
import type { ApiObject } from './types.ts'

export type Predicate = (object: ApiObject) => boolean

const all: Predicate = () => true

type Requirement = (labels: Readonly<Record<string, string>>) => boolean

const TOKEN = /\s*(!=|==|=|!|,|\(|\)|[^\s,()=!]+)/y

function tokens(text: string): string[] {
  const found: string[] = []
  TOKEN.lastIndex = 0
  while (TOKEN.lastIndex < text.length) {
    const at = TOKEN.lastIndex
    const match = TOKEN.exec(text)
    if (!match) {
      if (text.slice(at).trim() === '') break
      throw new ApiError(
        'BadRequest',
        `unable to parse requirement: unexpected ${JSON.stringify(text.slice(at, at + 10))}`,
      )
    }
    found.push(match[1] ?? '')
  }
  return found
}

const OPERATORS = new Set(['=', '==', '!=', '!', ',', '(', ')'])
const KEY = /^([a-z0-9]([-a-z0-9.]*[a-z0-9])?\/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/i
const VALUE = /^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$/

/**
 * Reads a label selector: `a=b`, `a==b`, `a!=b`, `a in (b,c)`, `a notin (b,c)`, `a`, `!a`, `a>1`, `a<1`, joined by commas.
 * @throws ApiError BadRequest where it cannot be read.
 */
export function parseLabelSelector(text: string): Predicate {
  if (text.trim() === '') return all
  const spaced = text.replace(/[<>]/g, ' $& ')
  const words = tokens(spaced)
  const requirements: Requirement[] = []
  let at = 0
  const fail = (expected: string): never => {
    throw new ApiError('BadRequest', `unable to parse requirement: found '${words[at] ?? ''}', expected: ${expected}`)
  }
  const readKey = (): string => {
    const key = words[at]
    if (key === undefined || OPERATORS.has(key) || !KEY.test(key)) return fail('identifier')
    at++
    return key
  }
  const readValue = (): string => {
    const word = words[at]
    if (word === undefined || word === ',') return ''
    if (OPERATORS.has(word) || !VALUE.test(word)) return fail('identifier')
    at++
    return word
  }
  const readValues = (): Set<string> => {
    if (words[at] !== '(') fail("'('")
    at++
    const values = new Set<string>()
    for (;;) {
      const word = words[at]
      if (word === undefined) fail("')'")
      if (word === ')') {
        if (words[at - 1] === ',') values.add('')
        break
      }
      if (word === ',') {
        if (words[at - 1] === '(' || words[at - 1] === ',') values.add('')
        at++
        continue
      }
      values.add(readValue())
      if (words[at] !== ',' && words[at] !== ')') fail("',' or ')'")
    }
    at++
    if (values.size === 0) values.add('')
    return values
  }
  for (;;) {
    requirements.push(readRequirement())
    if (at >= words.length) break
    if (words[at] !== ',') fail("',' or 'end of string'")
    at++
  }
  return (object) => {
    const labels = object.metadata.labels ?? {}
    return requirements.every((requirement) => requirement(labels))
  }

  function readRequirement(): Requirement {
    if (words[at] === '!') {
      at++
      const key = readKey()
      return (labels) => !(key in labels)
    }
    const key = readKey()
    const operator = words[at]
    if (operator === undefined || operator === ',') return (labels) => key in labels
    at++
    switch (operator) {
      case '=':
      case '==': {
        const value = readValue()
        return (labels) => labels[key] === value
      }
      case '!=': {
        const value = readValue()
        return (labels) => labels[key] !== value
      }
      case 'in': {
        const values = readValues()
        return (labels) => key in labels && values.has(labels[key] ?? '')
      }
      case 'notin': {
        const values = readValues()
        return (labels) => !(key in labels) || !values.has(labels[key] ?? '')
      }
      case '>':
      case '<': {
        const limit = Number(readValue())
        if (!Number.isInteger(limit)) fail('an integer')
        return (labels) => {
          const value = labels[key] === undefined || labels[key] === '' ? Number.NaN : Number(labels[key])
          return operator === '>' ? value > limit : value < limit
        }
      }
      default:
        at--
        return fail('in, notin, =, ==, !=, gt, lt')
    }
  }
}

/** Reads one field of an object as selectors compare it. */
export type FieldReader = (object: ApiObject) => string
export type FieldReaders = Readonly<Record<string, FieldReader>>

const everyKind: FieldReaders = {
  'metadata.name': (object) => object.metadata.name,
  'metadata.namespace': (object) => object.metadata.namespace ?? '',
}

/** The name a field selector asks for, when it asks for exactly one: a list can then be a look-up. */
export interface FieldSelector {
  readonly matches: Predicate
  readonly name: string | undefined
}

function splitTerms(text: string): string[] {
  const terms: string[] = []
  let term = ''
  for (let at = 0; at < text.length; at++) {
    const char = text[at] ?? ''
    if (char === '\\' && at + 1 < text.length) term += char + (text[++at] ?? '')
    else if (char === ',') {
      terms.push(term)
      term = ''
    } else term += char
  }
  terms.push(term)
  return terms.filter((each) => each !== '')
}

function unknownField(field: string, readers: FieldReaders): string {
  return Object.keys(readers).length > 0
    ? `field label not supported: ${field}`
    : `Unable to find selectable field: "${field}" is not a known field selector: only "metadata.name", "metadata.namespace"`
}

const unescaped = (text: string): string => text.replace(/\\([\\,=])/g, '$1')

interface FieldTerm {
  readonly field: string
  readonly operator: string
  readonly value: string
}

/** @throws ApiError BadRequest where it cannot be read */
const fieldTerms = (text: string): FieldTerm[] =>
  splitTerms(text).map((term) => {
    const match = /^([^=!]+)(!=|==|=)(.*)$/s.exec(term)
    if (!match) throw new ApiError('BadRequest', `invalid selector: '${text}'; can't understand '${term}'`)
    const [, field = '', operator = '', raw = ''] = match
    return { field, operator, value: unescaped(raw) }
  })

/**
 * The one name that everything a field selector matches has. Rights are decided by it, so it is read as the selector itself is.
 * @returns undefined where there is none, or the selector cannot be read
 */
export function nameSelected(text: string): string | undefined {
  try {
    return fieldTerms(text).find(({ field, operator }) => field === 'metadata.name' && operator !== '!=')?.value
  } catch {
    return undefined // who may list at all hears why
  }
}

/**
 * Reads a field selector: `a=b`, `a==b`, `a!=b`, joined by commas; `\` escapes.
 * @throws ApiError BadRequest where it cannot be read or the resource has no such field.
 */
export function parseFieldSelector(text: string, readers: FieldReaders): FieldSelector {
  let name: string | undefined
  const tests = fieldTerms(text).map(({ field, operator, value }): Predicate => {
    const read = everyKind[field] ?? readers[field]
    if (!read) throw new ApiError('BadRequest', unknownField(field, readers))
    if (operator === '!=') return (object) => read(object) !== value
    if (field === 'metadata.name') name = value
    return (object) => read(object) === value
  })
  return { matches: tests.length === 0 ? all : (object) => tests.every((test) => test(object)), name }
}
