/*
 * Where in a YAML text something stands, so that a finding about `spec.computed[0].expression` can be shown in its place.
 * It reads what people write in declarations: block and flow collections, quoted, plain and block scalars, comments, JSON.
 * The hub judges the text; here nothing is refused. What cannot be followed has no place, or that of what is around it.
 */

/** UTF-16 offsets in the text; `to` exclusive. */
export interface Span {
  readonly from: number
  readonly to: number
}

export interface YamlNode extends Span {
  /** of a mapping */
  readonly entries: readonly { readonly key: string; readonly keySpan: Span; readonly value: YamlNode | null }[]
  /** of a sequence */
  readonly items: readonly (YamlNode | null)[]
}

interface Line extends Span {
  readonly indent: number
  /** neither blank nor only a comment */
  readonly says: boolean
}

const mostDepth = 60
const tooDeep = Symbol('too deep')

/** The first document of a text; null where there is none that can be followed. */
export function readYaml(text: string): YamlNode | null {
  try {
    return new Reader(text).document()
  } catch (cause) {
    if (cause === tooDeep) return null
    throw cause
  }
}

class Reader {
  readonly #text: string
  readonly #lines: readonly Line[]
  #depth = 0

  constructor(text: string) {
    this.#text = text
    this.#lines = linesOf(text)
  }

  document(): YamlNode | null {
    let first = this.#next(0)
    while (first >= 0 && /^(---|%)/.test(this.#textOf(first))) {
      const after = this.#textOf(first).slice(3).trim()
      if (after !== '' && this.#textOf(first).startsWith('---')) break
      first = this.#next(first + 1)
    }
    if (first < 0 || this.#ends(first)) return null
    return this.#block(first, this.#line(first).indent, -1)[0]
  }

  /** What begins at this column of this line; and the first line after it. */
  #block(line: number, column: number, parent: number): [node: YamlNode, next: number] {
    if (++this.#depth > mostDepth) throw tooDeep
    try {
      const rest = this.#textOf(line).slice(column)
      if (/^-(\s|$)/.test(rest)) return this.#sequence(line, column)
      if (/^[|>]/.test(rest)) return this.#blockScalar(line, column, parent)
      if (keyIn(rest)) return this.#mapping(line, column)
      return this.#inline(line, column, parent)
    } finally {
      this.#depth--
    }
  }

  #sequence(first: number, column: number): [YamlNode, number] {
    const items: (YamlNode | null)[] = []
    const from = this.#line(first).from + column
    let to = from + 1
    let line = first
    while (line >= 0 && !this.#ends(line)) {
      const text = this.#textOf(line)
      const isHere = line === first || this.#line(line).indent === column
      if (!isHere || !/^-(\s|$)/.test(text.slice(column))) break
      const [item, next] = this.#after(line, column + 1, column, false)
      items.push(item)
      to = item?.to ?? this.#line(line).from + column + 1
      line = next
    }
    return [{ from, to, entries: [], items }, line]
  }

  #mapping(first: number, column: number): [YamlNode, number] {
    const entries: { key: string; keySpan: Span; value: YamlNode | null }[] = []
    const from = this.#line(first).from + column
    let to = from
    let line = first
    while (line >= 0 && !this.#ends(line)) {
      if (line !== first && this.#line(line).indent !== column) break
      const found = keyIn(this.#textOf(line).slice(column))
      if (!found) break
      const start = this.#line(line).from + column
      const keySpan = { from: start, to: start + found.written }
      const [value, next] = this.#after(line, column + found.colon + 1, column, true)
      entries.push({ key: found.key, keySpan, value })
      to = value?.to ?? start + found.colon + 1
      line = next
    }
    return [{ from, to, entries, items: [] }, line]
  }

  /** What stands behind a dash or a colon: on the same line, or below and further in. */
  #after(line: number, column: number, parent: number, isValue: boolean): [YamlNode | null, number] {
    const text = this.#textOf(line)
    const gap = /^\s*(?:[&!]\S*\s+)*/.exec(text.slice(column))?.[0].length ?? 0
    const at = column + gap
    const rest = text.slice(at)
    if (rest !== '' && !rest.startsWith('#')) {
      if (isValue && !/^[|>]/.test(rest)) return this.#inline(line, at, parent)
      return this.#block(line, at, parent)
    }
    const below = this.#next(line + 1)
    if (below < 0 || this.#ends(below)) return [null, below]
    const { indent } = this.#line(below)
    // A sequence may stand right below the key it belongs to.
    const isOwn =
      indent > parent || (isValue && indent === parent && /^-(\s|$)/.test(this.#textOf(below).slice(indent)))
    return isOwn ? this.#block(below, indent, parent) : [null, below]
  }

  #inline(line: number, column: number, parent: number): [YamlNode, number] {
    const from = this.#line(line).from + column
    const sign = this.#text[from]
    if (sign === '{' || sign === '[') {
      const node = this.#flow(from)
      return [node, this.#next(this.#lineAt(node.to) + 1)]
    }
    if (sign === '"' || sign === "'") {
      const to = quotedEnd(this.#text, from)
      return [leaf(from, to), this.#next(this.#lineAt(to) + 1)]
    }
    let to = from + plainLength(this.#textOf(line).slice(column))
    let next = line + 1
    // A plain text goes on in lines that stand further in.
    while (
      next < this.#lines.length &&
      this.#line(next).says &&
      this.#line(next).indent > parent &&
      !this.#ends(next)
    ) {
      const { from: start, indent } = this.#line(next)
      to = start + indent + plainLength(this.#textOf(next).slice(indent))
      next++
    }
    return [leaf(from, to), this.#next(next)]
  }

  #blockScalar(line: number, column: number, parent: number): [YamlNode, number] {
    const from = this.#line(line).from + column
    let to = this.#line(line).to
    let next = line + 1
    for (; next < this.#lines.length; next++) {
      const each = this.#line(next)
      const isBlank = this.#textOf(next).trim() === ''
      if (!isBlank && each.indent <= parent) break
      if (!isBlank) to = each.to
    }
    return [leaf(from, to), this.#next(next)]
  }

  #flow(from: number): YamlNode {
    if (++this.#depth > mostDepth) throw tooDeep
    try {
      const isMap = this.#text[from] === '{'
      const entries: { key: string; keySpan: Span; value: YamlNode | null }[] = []
      const items: (YamlNode | null)[] = []
      let at = this.#skip(from + 1)
      while (at < this.#text.length && !'}]'.includes(this.#text[at] ?? '')) {
        if (this.#text[at] === ',') {
          at = this.#skip(at + 1)
          continue
        }
        const first = this.#flowItem(at)
        at = this.#skip(first.to)
        if (this.#text[at] !== ':') {
          if (isMap) entries.push({ key: unquoted(this.#text, first), keySpan: first, value: null })
          else items.push(first)
          if (first.to === first.from) at++ // something odd: go on behind it
          continue
        }
        at = this.#skip(at + 1)
        const isNone = at >= this.#text.length || ',}]'.includes(this.#text[at] ?? '')
        const value = isNone ? null : this.#flowItem(at)
        at = this.#skip(value?.to ?? at)
        const entry = { key: unquoted(this.#text, first), keySpan: first, value }
        if (isMap) entries.push(entry)
        else items.push({ from: first.from, to: value?.to ?? first.to, entries: [entry], items: [] })
      }
      return { from, to: Math.min(at + 1, this.#text.length), entries, items }
    } finally {
      this.#depth--
    }
  }

  #flowItem(from: number): YamlNode {
    const sign = this.#text[from]
    if (sign === '{' || sign === '[') return this.#flow(from)
    if (sign === '"' || sign === "'") return leaf(from, quotedEnd(this.#text, from))
    const end = /,|[[\]{}]|:(?=[\s,[\]{}]|$)|\s#|\n/.exec(this.#text.slice(from, from + 20_000))
    const to = from + (end?.index ?? this.#text.length - from)
    return leaf(from, from + this.#text.slice(from, to).trimEnd().length)
  }

  /** Over spaces, line ends and comments of a flow collection. */
  #skip(from: number): number {
    let at = from
    for (;;) {
      while (/\s/.test(this.#text[at] ?? '')) at++
      if (this.#text[at] !== '#') return at
      const end = this.#text.indexOf('\n', at)
      at = end < 0 ? this.#text.length : end
    }
  }

  #line(place: number): Line {
    return this.#lines[place] ?? { from: this.#text.length, to: this.#text.length, indent: 0, says: false }
  }

  #textOf(place: number): string {
    const { from, to } = this.#line(place)
    return this.#text.slice(from, to)
  }

  /** The next line that says something; -1 where there is none. */
  #next(place: number): number {
    if (place < 0) return -1
    for (let line = place; line < this.#lines.length; line++) if (this.#line(line).says) return line
    return -1
  }

  #ends(place: number): boolean {
    return /^(---|\.\.\.)(\s|$)/.test(this.#textOf(place))
  }

  #lineAt(offset: number): number {
    let [low, high] = [0, this.#lines.length - 1]
    while (low < high) {
      const middle = (low + high + 1) >> 1
      if (this.#line(middle).from <= offset) low = middle
      else high = middle - 1
    }
    return low
  }
}

const leaf = (from: number, to: number): YamlNode => ({ from, to, entries: [], items: [] })

function linesOf(text: string): Line[] {
  const lines: Line[] = []
  let from = 0
  while (from <= text.length) {
    const end = text.indexOf('\n', from)
    const to = end < 0 ? text.length : end
    const line = text.slice(from, to)
    const indent = /^ */.exec(line)?.[0].length ?? 0
    const rest = line.slice(indent).trim()
    lines.push({ from, to: text[to - 1] === '\r' ? to - 1 : to, indent, says: rest !== '' && !rest.startsWith('#') })
    if (end < 0) break
    from = end + 1
  }
  return lines
}

/** The key that a line begins with: what it is, how long it is written, where its colon is. */
function keyIn(text: string): { key: string; written: number; colon: number } | null {
  const sign = text[0]
  if (sign === '"' || sign === "'") {
    const written = quotedEnd(text, 0)
    const colon = written + (/^\s*/.exec(text.slice(written))?.[0].length ?? 0)
    return /^:(\s|$)/.test(text.slice(colon)) ? { key: unquoted(text, { from: 0, to: written }), written, colon } : null
  }
  if (sign === undefined || '{[#&*!|>%@`'.includes(sign)) return null
  const colon = /:(?=\s|$)/.exec(text)?.index ?? -1
  const comment = /\s#/.exec(text)?.index ?? -1
  if (colon < 0 || (comment >= 0 && comment < colon)) return null
  const key = text.slice(0, colon).trimEnd()
  return { key, written: key.length, colon }
}

function plainLength(text: string): number {
  const comment = /\s#/.exec(text)?.index
  return (comment === undefined ? text : text.slice(0, comment)).trimEnd().length
}

/** Behind the closing quote; the end of the text where there is none. */
function quotedEnd(text: string, from: number): number {
  const quote = text[from]
  for (let at = from + 1; at < text.length; at++) {
    if (text[at] === '\\' && quote === '"') at++
    else if (text[at] === quote) {
      if (quote === "'" && text[at + 1] === "'") at++
      else return at + 1
    }
  }
  return text.length
}

/** Each unit of a scalar's value, and where it is written. */
function unitsOf(text: string, { from, to }: Span): { value: string; at: number; length: number }[] {
  const quote = text[from]
  const isQuoted = quote === '"' || quote === "'"
  const units: { value: string; at: number; length: number }[] = []
  const end = isQuoted ? to - 1 : to
  for (let at = isQuoted ? from + 1 : from; at < end; ) {
    const two = text.slice(at, at + 2)
    const escaped = quote === '"' ? /^\\(?:x[\da-f]{2}|u[\da-f]{4}|U[\da-f]{8}|.)/i.exec(text.slice(at, at + 10)) : null
    const length = escaped ? escaped[0].length : quote === "'" && two === "''" ? 2 : 1
    units.push({ value: escaped ? escapedValue(escaped[0]) : (text[at] ?? ''), at, length })
    at += length
  }
  return units
}

const escapes: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r', '0': '\0', e: '\u001b' }
function escapedValue(written: string): string {
  if (written.length > 2) return String.fromCodePoint(Number.parseInt(written.slice(2), 16) % 0x110000)
  const sign = written[1] ?? ''
  return escapes[sign] ?? sign
}

export const unquoted = (text: string, span: Span): string =>
  unitsOf(text, span)
    .map(({ value }) => value)
    .join('')

const segment = /\[(\d+)\]|\["((?:[^"\\]|\\.)*)"\]|\.?([^.[\]]+)/gy

/** The steps of a path as findings write it: `spec.fields[2]["odd.key"]`. */
export function pathSteps(path: string): (string | number)[] {
  const steps: (string | number)[] = []
  segment.lastIndex = 0
  for (let match = segment.exec(path); match; match = segment.exec(path)) {
    const [, index, quoted, key] = match
    steps.push(
      index !== undefined
        ? Number(index)
        : (key ?? unquoted(`"${quoted}"`, { from: 0, to: (quoted ?? '').length + 2 })),
    )
  }
  return steps
}

export interface Place extends Span {
  /** what the path names is there; else this is the nearest thing around it */
  readonly isExact: boolean
  /** the key that names it, where it has one */
  readonly key: Span | null
}

/** Where a path leads to in a text. */
export function placeOf(text: string, path: string): Place | null {
  const root = readYaml(text)
  if (!root) return null
  let node: YamlNode | null = root
  let nearest: Place = { ...firstOf(root), isExact: false, key: null }
  for (const step of pathSteps(path)) {
    if (!node) return nearest
    if (typeof step === 'number') {
      const item: YamlNode | null | undefined = node.items[step]
      if (!item) return nearest
      node = item
      nearest = { ...firstOf(item), isExact: false, key: null }
      continue
    }
    const entry: YamlNode['entries'][number] | undefined = node.entries.findLast(({ key }) => key === step)
    if (!entry) return nearest
    nearest = { ...entry.keySpan, isExact: false, key: entry.keySpan }
    node = entry.value
  }
  if (!node) return { ...nearest, isExact: nearest.key !== null }
  const isCollection = node.entries.length > 0 || node.items.length > 0
  const span = isCollection ? (nearest.key ?? firstOf(node)) : { from: node.from, to: node.to }
  return { from: span.from, to: span.to, isExact: true, key: nearest.key }
}

/** Of a collection the first thing in it: nobody is helped by a mark over the whole text. */
function firstOf(node: YamlNode): Span {
  const [entry] = node.entries
  const [item] = node.items
  if (entry) return entry.keySpan
  return item ? firstOf(item) : { from: node.from, to: node.to }
}

/** The value that a path leads to, as text; '' where there is none. */
export function textAt(text: string, path: string): string {
  const place = placeOf(text, path)
  return place?.isExact && (place.key === null || place.from !== place.key.from) ? unquoted(text, place) : ''
}

interface Found {
  readonly path: string
  readonly at: { readonly text: string; readonly from: number; readonly to: number } | null
}

/** Where a finding is about: a piece of the value at its path, the value, or what is nearest to it. */
export function findingSpan(text: string, { path, at }: Found): Span | null {
  const place = placeOf(text, path)
  if (!place) return null
  if (!at || !place.isExact) return { from: place.from, to: place.to }
  const units = unitsOf(text, place)
  const value = units.map((unit) => unit.value).join('')
  const start = value === at.text ? 0 : value.indexOf(at.text)
  if (start >= 0) {
    const [first, last] = [units[start + at.from], units[start + Math.max(at.from, at.to - 1)]]
    if (first && last) return { from: first.at, to: last.at + last.length }
    // Behind the last letter: something is missing there.
    return { from: Math.max(place.from, place.to - 1), to: place.to }
  }
  // Folded or of several lines: the piece itself may still be found.
  const piece = at.text.slice(at.from, at.to)
  const inside = piece === '' ? -1 : text.slice(place.from, place.to).indexOf(piece)
  return inside < 0
    ? { from: place.from, to: place.to }
    : { from: place.from + inside, to: place.from + inside + piece.length }
}

/** As people count: from 1. */
export function lineColumn(text: string, offset: number): { line: number; column: number } {
  const before = text.slice(0, offset)
  return { line: before.split('\n').length, column: offset - before.lastIndexOf('\n') }
}
