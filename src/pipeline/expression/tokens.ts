import { type BinaryOperator, LEVELS, type Place, type UnaryOperator } from './ast.ts'
import type { Problems } from './problems.ts'
import type { Value } from './types.ts'

export type Token = Place &
  (
    | { readonly type: 'literal'; readonly value: Value }
    | { readonly type: 'name'; readonly name: string }
    | { readonly type: 'operator'; readonly operator: BinaryOperator | UnaryOperator }
    | { readonly type: '(' | ')' | ',' | 'end' }
  )

const SPACE = /[ \t\r\n]+/y
const NUMBER = /\d[\d.]*/y
const NAME = /[\p{L}_][\p{L}\p{M}\p{Nd}_]*/uy
const OPERATOR = /[=!<>]=|&&|\|\||\?\?|[-+*/%<>!]/y
const HEX = /[0-9a-fA-F]{4}/y
const KEYWORDS: ReadonlyMap<string, boolean | null> = new Map([
  ['true', true],
  ['false', false],
  ['null', null],
  ['nil', null],
])
const ESCAPES: Readonly<Record<string, string>> = { '\\': '\\', '"': '"', "'": "'", n: '\n', t: '\t' }

/** What was probably meant by a character that means nothing. */
const MEANT: Readonly<Record<string, string>> = {
  '=': '==',
  '&': '&&',
  '|': '||',
  '?': 'if(condition, then, else)',
  '“': '"',
  '”': '"',
  '„': '"',
  '‘': "'",
  '’': "'",
  '`': '"',
  '×': '*',
  '÷': '/',
  '−': '-',
  '–': '-',
  '≤': '<=',
  '≥': '>=',
  '≠': '!=',
}

/** Reads the whole text; characters and texts that cannot be read are reported, all of them. Linear. */
export function tokenize(text: string, problems: Problems): Token[] {
  const tokens: Token[] = []
  let at = 0
  const take = (pattern: RegExp): string | undefined => {
    pattern.lastIndex = at
    const found = pattern.exec(text)?.[0]
    if (found !== undefined) at += found.length
    return found
  }
  while (at < text.length) {
    if (take(SPACE) !== undefined) continue
    const from = at
    const character = text[at]!
    if (character === '"' || character === "'") {
      const { value, end } = readText(text, from, problems)
      at = end
      tokens.push({ type: 'literal', value, from, to: at })
    } else if (character === '(' || character === ')' || character === ',') {
      at++
      tokens.push({ type: character, from, to: at })
    } else {
      const token =
        numberToken(take(NUMBER), from, problems) ?? nameToken(take(NAME), from) ?? operatorToken(take(OPERATOR), from)
      if (token) tokens.push(token)
      else at = unknownCharacter(text, from, problems)
    }
  }
  tokens.push({ type: 'end', from: text.length, to: text.length })
  return tokens
}

function numberToken(digits: string | undefined, from: number, problems: Problems): Token | undefined {
  if (digits === undefined) return undefined
  const place = { from, to: from + digits.length }
  const value = digits.indexOf('.') === digits.lastIndexOf('.') ? Number(digits) : Number.NaN
  if (Number.isFinite(value)) return { type: 'literal', value, ...place }
  const why = Number.isNaN(value) ? 'it has more than one point' : 'it is too large'
  problems.error('bad_number', place, `${shorten(digits)} is no number: ${why}`)
  return { type: 'literal', value: 0, ...place }
}

function nameToken(name: string | undefined, from: number): Token | undefined {
  if (name === undefined) return undefined
  const place = { from, to: from + name.length }
  const keyword = name.length <= 5 ? KEYWORDS.get(name.toLowerCase()) : undefined
  return keyword === undefined ? { type: 'name', name, ...place } : { type: 'literal', value: keyword, ...place }
}

function operatorToken(operator: string | undefined, from: number): Token | undefined {
  if (operator === undefined || !isOperator(operator)) return undefined
  return { type: 'operator', operator, from, to: from + operator.length }
}

const isOperator = (text: string): text is BinaryOperator | UnaryOperator => text === '!' || Object.hasOwn(LEVELS, text)

function unknownCharacter(text: string, from: number, problems: Problems): number {
  const character = String.fromCodePoint(text.codePointAt(from)!)
  const to = from + character.length
  const message =
    character === '.'
      ? 'a point belongs only between the digits of a number; names have no parts'
      : `${named(character)} means nothing here`
  const suggestion = character === '.' && /\d/.test(text[to] ?? '') ? '0.' : MEANT[character]
  problems.error('unknown_character', { from, to }, message, suggestion)
  return to
}

/** Invisible characters by number: they are the ones nobody finds. */
function named(character: string): string {
  if (/^[\p{L}\p{N}\p{P}\p{S}]$/u.test(character)) return `the character ${character}`
  return `the character U+${character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}`
}

const shorten = (text: string) => (text.length > 40 ? `${text.slice(0, 40)}…` : text)

/** From the opening quote on; `end` is behind the closing one. */
function readText(text: string, from: number, problems: Problems): { readonly value: string; readonly end: number } {
  const quote = text[from]
  const parts: string[] = []
  let plain = from + 1
  let at = plain
  for (; at < text.length; ) {
    const character = text[at]
    if (character === quote) {
      parts.push(text.slice(plain, at))
      return { value: parts.join(''), end: at + 1 }
    }
    if (character !== '\\' || at + 1 >= text.length) {
      at++
      continue
    }
    parts.push(text.slice(plain, at))
    const { value, end } = readEscape(text, at, problems)
    parts.push(value)
    at = end
    plain = end
  }
  problems.error('unterminated_text', { from, to: text.length }, `this text has no closing ${quote}`)
  return { value: '', end: text.length }
}

/** What stands for something else only by mistake stays as written: older manifests rely on it. */
function readEscape(text: string, from: number, problems: Problems): { readonly value: string; readonly end: number } {
  const next = String.fromCodePoint(text.codePointAt(from + 1)!)
  const plain = Object.hasOwn(ESCAPES, next) ? ESCAPES[next] : undefined
  if (plain !== undefined) return { value: plain, end: from + 2 }
  if (next === 'u') return readUnicode(text, from, problems)
  const to = from + 1 + next.length
  problems.warning('unknown_escape', { from, to }, 'this is no escape: the backslash stays in the text', `\\\\${next}`)
  return { value: text.slice(from, to), end: to }
}

function readUnicode(text: string, from: number, problems: Problems): { readonly value: string; readonly end: number } {
  const first = hexAt(text, from)
  if (first === undefined) {
    problems.error('bad_escape', { from, to: from + 2 }, '\\u takes four hexadecimal digits', '\\\\u')
    return { value: '', end: from + 2 }
  }
  const to = from + 6
  if (first < 0xd800 || first > 0xdfff) return { value: String.fromCharCode(first), end: to }
  const second = first < 0xdc00 ? hexAt(text, to) : undefined
  if (second !== undefined && second >= 0xdc00 && second <= 0xdfff) {
    return { value: String.fromCharCode(first, second), end: to + 6 }
  }
  problems.error('bad_escape', { from, to }, 'this is half of a character: both halves must follow each other')
  return { value: '', end: to }
}

function hexAt(text: string, at: number): number | undefined {
  if (text[at] !== '\\' || text[at + 1] !== 'u') return undefined
  HEX.lastIndex = at + 2
  const digits = HEX.exec(text)?.[0]
  return digits === undefined ? undefined : Number.parseInt(digits, 16)
}
