import { invariant } from '#model'

/*
 * Paths: where in an object a value is. The original's form (dotted keys and [n]) and what kubectl's JSONPath adds to it.
 *
 *     path    = [ "{" ] [ "$" ] { step } [ "}" ]
 *     step    = "." key | ".." key | "[" inside "]"   ".." only where asked for; keys end at "." and "[", unless a backslash stands before them
 *     inside  = "*" | item { "," item } | [ n ] ":" [ n ] [ ":" n ] | "?" condition | "?(" condition ")"
 *     item    = whole number | 'key' | "key"
 *
 * Filters stand in filter-condition.ts.
 */

/** One step of a path. */
export type Segment =
  | { readonly kind: 'key'; readonly key: string }
  /** negative: from the end */
  | { readonly kind: 'index'; readonly index: number }
  /** all entries of a list, all values of an object */
  | { readonly kind: 'all' }
  /** the value and every list and object in it */
  | { readonly kind: 'descendants' }
  | {
      readonly kind: 'slice'
      readonly from: number | undefined
      readonly to: number | undefined
      readonly step: number
    }
  | { readonly kind: 'items'; readonly items: readonly (number | string)[] }
  | { readonly kind: 'filter'; readonly condition: Condition }

export type Comparison = '==' | '!=' | '<' | '<=' | '>' | '>='
export type Operand =
  | { readonly kind: 'literal'; readonly value: string | number | boolean | null }
  /** from the entry that is looked at */
  | { readonly kind: 'path'; readonly segments: readonly (KeySegment | IndexSegment)[] }
export type Condition =
  | { readonly kind: 'exists'; readonly operand: Operand }
  | { readonly kind: 'compare'; readonly operator: Comparison; readonly left: Operand; readonly right: Operand }
  | { readonly kind: 'not'; readonly of: Condition }
  | { readonly kind: 'and' | 'or'; readonly left: Condition; readonly right: Condition }

export type KeySegment = Extract<Segment, { kind: 'key' }>
export type IndexSegment = Extract<Segment, { kind: 'index' }>

export interface PathFault {
  readonly message: string
  /** UTF-16 offsets, `to` exclusive */
  readonly from: number
  readonly to: number
  readonly suggestion?: string
}

export interface ParsedPath {
  readonly segments: readonly Segment[]
  /** it leads to one place at most */
  readonly isSingle: boolean
  /** as the original wrote them into documents: keys as they are, the rest in brackets */
  readonly texts: readonly string[]
  /** empty keys (`a..b`) were left out, as the original did */
  readonly emptyKeyAt: number | undefined
}

export const MAX_SEGMENTS = 64
const MAX_LENGTH = 4096
const MAX_DEPTH = 32

export interface PathOptions {
  /** `..` leads to every depth, as in kubectl; without it the empty key is left out, as the original of MetricSources does */
  readonly descends?: boolean
}

/** Reads a path. Never throws. */
export function parsePath(
  text: string,
  options: PathOptions = {},
): { readonly path: ParsedPath; readonly fault?: never } | { readonly fault: PathFault; readonly path?: never } {
  try {
    return { path: new PathReader(text, options).path() }
  } catch (error) {
    if (error instanceof Fault) return { fault: error.fault }
    throw error
  }
}

/** Stops the reader; never leaves this file. */
class Fault extends Error {
  readonly fault: PathFault

  constructor(fault: PathFault) {
    super(fault.message)
    this.fault = fault
  }
}

const COMPARISONS: readonly Comparison[] = ['==', '!=', '<=', '>=', '<', '>']

class PathReader {
  readonly #text: string
  readonly #descends: boolean
  #at = 0
  #end: number

  constructor(text: string, { descends = false }: PathOptions) {
    this.#text = text
    this.#descends = descends
    this.#end = text.length
    if (text.length > MAX_LENGTH) this.#fail(`a path may have ${MAX_LENGTH} characters`, MAX_LENGTH, text.length)
  }

  path(): ParsedPath {
    this.#unwrap()
    const segments: Segment[] = []
    const texts: string[] = []
    let emptyKeyAt: number | undefined
    // `$ref` is a key; a `$` alone, or before a step, is the object.
    if (/^\$(?:[.[\s]|$)/.test(this.#text.slice(this.#at, Math.min(this.#end, this.#at + 2)))) this.#at++
    while (this.#at < this.#end) {
      const from = this.#at
      if (this.#peek() === '[') segments.push(this.#bracket())
      else {
        const dotted = this.#take('.')
        if (dotted && this.#peek() === '.') {
          if (this.#descends && this.#take('.')) {
            segments.push({ kind: 'descendants' })
            texts.push('..')
            continue
          }
          emptyKeyAt ??= from
        }
        if (this.#at >= this.#end || this.#peek() === '.' || this.#peek() === '[') continue
        segments.push(this.#key())
      }
      const last = segments.at(-1)
      texts.push(last?.kind === 'key' ? last.key : segmentText(this.#text.slice(from, this.#at)))
      if (segments.length > MAX_SEGMENTS) this.#fail(`a path may have ${MAX_SEGMENTS} steps`, from, this.#at)
    }
    const isSingle = segments.every(({ kind }) => kind === 'key' || kind === 'index')
    return { segments, isSingle, texts, emptyKeyAt }
  }

  /** Spaces around it, and the braces of kubectl's templates. */
  #unwrap(): void {
    this.#trimEnd()
    this.#spaces()
    if (this.#peek() !== '{') return
    if (this.#text[this.#end - 1] !== '}') this.#fail('"{" is not closed', this.#at, this.#at + 1)
    this.#at++
    this.#end--
    this.#spaces()
    this.#trimEnd()
  }

  /** A space behind a backslash is a letter of a key. */
  #trimEnd(): void {
    while (this.#end > this.#at && isSpace(this.#text[this.#end - 1])) {
      let slashes = 0
      while (this.#text[this.#end - 2 - slashes] === '\\') slashes++
      if (slashes % 2 === 1) return
      this.#end--
    }
  }

  #key(): Segment {
    const from = this.#at
    const { key, isEscaped } = this.#keyText('.[')
    if (key === '*' && !isEscaped) return { kind: 'all' }
    const brace = isEscaped ? -1 : key.search(/[{}]/)
    if (brace >= 0)
      this.#fail('a template of several parts cannot be read here, only one path', from + brace, from + brace + 1)
    return { kind: 'key', key }
  }

  #keyText(ends: string): { readonly key: string; readonly isEscaped: boolean } {
    let key = ''
    let isEscaped = false
    while (this.#at < this.#end) {
      const letter = this.#text[this.#at] ?? ''
      if (ends.includes(letter)) break
      if (letter !== '\\') {
        key += letter
        this.#at++
        continue
      }
      const next = this.#at + 1 < this.#end ? this.#text[this.#at + 1] : undefined
      if (next === undefined) this.#fail('nothing follows the backslash', this.#at, this.#at + 1)
      key += next
      isEscaped = true
      this.#at += 2
    }
    return { key, isEscaped }
  }

  #bracket(): Segment {
    const open = this.#at++
    this.#spaces()
    const segment = this.#inside(open)
    this.#spaces()
    if (!this.#take(']')) {
      if (this.#at >= this.#end) this.#fail('"[" is not closed', open, open + 1)
      this.#fail('expected "]"', this.#at, this.#at + 1)
    }
    return segment
  }

  #inside(open: number): Segment {
    const letter = this.#peek()
    if (letter === '*') {
      this.#at++
      return { kind: 'all' }
    }
    if (letter === '?') return this.#filter()
    const first = this.#item(open)
    this.#spaces()
    if (this.#peek() === ':' && typeof first !== 'string') return this.#slice(first)
    if (first === undefined) this.#unknownInside(open)
    const items = [first]
    while (this.#take(',')) {
      this.#spaces()
      const item = this.#item(open)
      if (item === undefined) this.#unknownInside(open)
      items.push(item)
      this.#spaces()
    }
    if (items.length > 1) return { kind: 'items', items }
    return typeof first === 'string' ? { kind: 'key', key: first } : { kind: 'index', index: first }
  }

  #item(open: number): number | string | undefined {
    const letter = this.#peek()
    if (letter === '"' || letter === "'") return this.#quoted()
    const match = /^[+-]?\d+/.exec(this.#text.slice(this.#at, Math.min(this.#end, this.#at + 20)))
    if (!match) return undefined
    this.#at += match[0].length
    const index = Number(match[0])
    if (!Number.isSafeInteger(index)) this.#fail('this index is too large', open + 1, this.#at)
    return index + 0
  }

  #slice(first: number | undefined): Segment {
    const bounds: (number | undefined)[] = [first]
    while (bounds.length < 3 && this.#take(':')) {
      this.#spaces()
      const bound = this.#item(this.#at)
      if (typeof bound === 'string') this.#fail('expected a whole number', this.#at - 1, this.#at)
      bounds.push(bound)
      this.#spaces()
    }
    const [from, to, step = 1] = bounds
    if (step < 1) this.#fail('the step of a slice must be 1 or more', this.#at - 1, this.#at)
    return { kind: 'slice', from, to, step }
  }

  #unknownInside(open: number): never {
    const close = this.#text.indexOf(']', this.#at)
    if (close < 0 || close >= this.#end) this.#fail('"[" is not closed', open, open + 1)
    const inside = this.#text.slice(open + 1, close).trim()
    if (inside === '') this.#fail('there is nothing between the brackets', open, close + 1)
    throw new Fault({
      message: 'expected an index, a quoted key, "*" or a filter between the brackets',
      from: open + 1,
      to: close,
      suggestion: `["${inside.replace(/["\\]/g, '\\$&')}"]`,
    })
  }

  #quoted(): string {
    const from = this.#at
    const quote = this.#text[this.#at++]
    let text = ''
    while (this.#at < this.#end) {
      const letter = this.#text[this.#at++] ?? ''
      if (letter === quote) return text
      if (letter === '\\' && this.#at < this.#end) text += this.#text[this.#at++]
      else text += letter
    }
    this.#fail('this quote is not closed', from, from + 1)
  }

  // ── filters ────────────────────────────────────────────────────────────────────────────────────────────────────────

  #filter(): Segment {
    this.#at++
    this.#spaces()
    return { kind: 'filter', condition: this.#or(0) }
  }

  #or(depth: number): Condition {
    let left = this.#and(depth)
    while (this.#takeWord('||')) left = { kind: 'or', left, right: this.#and(depth) }
    return left
  }

  #and(depth: number): Condition {
    let left = this.#not(depth)
    while (this.#takeWord('&&')) left = { kind: 'and', left, right: this.#not(depth) }
    return left
  }

  #not(depth: number): Condition {
    this.#spaces()
    if (depth > MAX_DEPTH) this.#fail(`conditions may be nested ${MAX_DEPTH} deep`, this.#at, this.#at + 1)
    if (this.#peek() === '!' && this.#text[this.#at + 1] !== '=') {
      this.#at++
      return { kind: 'not', of: this.#not(depth + 1) }
    }
    if (!this.#take('(')) return this.#comparison()
    const inner = this.#or(depth + 1)
    this.#spaces()
    if (!this.#take(')')) this.#fail('expected ")"', Math.min(this.#at, this.#end - 1), this.#at + 1)
    return inner
  }

  #comparison(): Condition {
    const from = this.#at
    const left = this.#operand()
    this.#spaces()
    const operator = COMPARISONS.find(
      (one) => this.#text.startsWith(one, this.#at) && this.#at + one.length <= this.#end,
    )
    if (operator === undefined) {
      if (this.#peek() === '=') this.#fail('"=" is no comparison', this.#at, this.#at + 1, '==')
      if (left.kind === 'literal') this.#fail('expected a comparison', from, this.#at)
      return { kind: 'exists', operand: left }
    }
    this.#at += operator.length
    this.#spaces()
    return { kind: 'compare', operator, left, right: this.#operand() }
  }

  #operand(): Operand {
    const from = this.#at
    const letter = this.#peek()
    if (letter === '@') return { kind: 'path', segments: this.#innerPath() }
    if (letter === '"' || letter === "'") return { kind: 'literal', value: this.#quoted() }
    const word = /^[\w.+-]+/.exec(this.#text.slice(this.#at, Math.min(this.#end, this.#at + 64)))?.[0] ?? ''
    this.#at += word.length
    if (word === 'true' || word === 'false') return { kind: 'literal', value: word === 'true' }
    if (word === 'null' || word === 'nil') return { kind: 'literal', value: null }
    if (/^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/.test(word) && Number.isFinite(Number(word))) {
      return { kind: 'literal', value: Number(word) }
    }
    const to = Math.max(from + 1, this.#at)
    if (word === '') this.#fail('expected "@", a text in quotes, a number, true, false or null', from, to)
    this.#fail('expected "@", a text in quotes, a number, true, false or null', from, to, JSON.stringify(word))
  }

  #innerPath(): readonly (KeySegment | IndexSegment)[] {
    this.#at++
    const segments: (KeySegment | IndexSegment)[] = []
    while (this.#peek() === '.' || this.#peek() === '[') {
      const from = this.#at
      const segment = this.#peek() === '[' ? this.#bracket() : this.#innerKey()
      if (segment.kind !== 'key' && segment.kind !== 'index') {
        this.#fail('within a filter only keys and indexes lead further', from, this.#at)
      }
      segments.push(segment)
      if (segments.length > MAX_SEGMENTS) this.#fail(`a path may have ${MAX_SEGMENTS} steps`, from, this.#at)
    }
    return segments
  }

  #innerKey(): Segment {
    const from = this.#at++
    const { key, isEscaped } = this.#keyText('.[]()=!<>&| \t\r\n,')
    if (key === '') this.#fail('expected a key after "."', from, from + 1)
    return key === '*' && !isEscaped ? { kind: 'all' } : { kind: 'key', key }
  }

  // ── letters ────────────────────────────────────────────────────────────────────────────────────────────────────────

  #peek(): string | undefined {
    return this.#at < this.#end ? this.#text[this.#at] : undefined
  }

  #take(letter: string): boolean {
    if (this.#peek() !== letter) return false
    this.#at++
    return true
  }

  #takeWord(word: string): boolean {
    this.#spaces()
    if (!this.#text.startsWith(word, this.#at) || this.#at + word.length > this.#end) return false
    this.#at += word.length
    return true
  }

  #spaces(): void {
    while (this.#at < this.#end && isSpace(this.#text[this.#at])) this.#at++
  }

  #fail(message: string, from: number, to: number, suggestion?: string): never {
    invariant(from <= to, 'a fault has a place')
    const place = { from: Math.min(from, this.#text.length), to: Math.min(to, this.#text.length) }
    throw new Fault({ message, ...place, ...(suggestion === undefined ? {} : { suggestion }) })
  }
}

const isSpace = (letter: string | undefined) => letter === ' ' || letter === '\t' || letter === '\n' || letter === '\r'
/** `.*` is written as `[*]`. */
const segmentText = (text: string) => (text.startsWith('[') ? text : `[${text.replace(/^\./, '')}]`)
