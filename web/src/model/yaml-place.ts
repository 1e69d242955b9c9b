import { isMap, isScalar, isSeq, type ParsedNode, parseDocument } from 'yaml'

/*
 * Where in a YAML text something stands, so that a finding about `spec.computed[0].expression` can be shown in its place.
 * The hub judges the text; here nothing is refused. What cannot be followed has no place, or that of what is around it.
 */

/** UTF-16 offsets in the text; `to` exclusive. */
export interface Span {
  readonly from: number
  readonly to: number
}

let last: { readonly text: string; readonly root: ParsedNode | null } | undefined

// No declaration is nested like this, and what is takes a parser long to read.
const tooDeep = /(?:[[{]\s*(?:\w+:\s*)?){60}|(?:[-?]\s+){60}/

/** The first document of a text; null where it is empty or nested without end. Findings of one text are placed in a row. */
function rootOf(text: string): ParsedNode | null {
  if (last?.text !== text) last = { text, root: tooDeep.test(text) ? null : parsed(text) }
  return last.root
}

function parsed(text: string): ParsedNode | null {
  const options = { uniqueKeys: false, strict: false, logLevel: 'silent', prettyErrors: false } as const
  const { contents } = parseDocument(text, options)
  return isNothing(contents) ? null : contents
}

const isNothing = (node: ParsedNode | null | undefined): node is null | undefined =>
  !node || (isScalar(node) && node.range[0] === node.range[1])

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

interface Found extends Place {
  /** null: a key without a value */
  readonly node: ParsedNode | null
}

/** Where a path leads to in a text. */
export function placeOf(text: string, path: string): Place | null {
  const found = find(text, path)
  return found && { from: found.from, to: found.to, isExact: found.isExact, key: found.key }
}

function find(text: string, path: string): Found | null {
  const root = rootOf(text)
  if (!root) return null
  let node: ParsedNode | null = root
  let nearest: Found = { ...firstOf(root), isExact: false, key: null, node: root }
  for (const step of pathSteps(path)) {
    const next = childOf(node, step)
    if (!next) return nearest
    node = next.value
    nearest = { ...(next.key ?? firstOf(next.value)), isExact: false, key: next.key, node }
  }
  const span = node && !isMap(node) && !isSeq(node) ? spanOf(node) : (nearest.key ?? nearest)
  return { ...nearest, from: span.from, to: span.to, isExact: true }
}

type Child =
  | { readonly key: Span; readonly value: ParsedNode | null }
  | { readonly key: null; readonly value: ParsedNode }

function childOf(node: ParsedNode | null, step: string | number): Child | undefined {
  if (typeof step === 'number') {
    const item = isSeq<ParsedNode>(node) ? node.items[step] : undefined
    return isNothing(item) ? undefined : { key: null, value: item }
  }
  if (!isMap<ParsedNode, ParsedNode | null>(node)) return undefined
  // Of two equal keys the last one counts.
  const pair = node.items.findLast(({ key }) => isScalar(key) && String(key.value) === step)
  return pair && { key: spanOf(pair.key), value: isNothing(pair.value) ? null : pair.value }
}

const spanOf = ({ range: [from, to] }: ParsedNode): Span => ({ from, to })

/** Of a collection the first thing in it: a mark over the whole text helps nobody. */
function firstOf(node: ParsedNode): Span {
  const [first] = isMap<ParsedNode>(node) || isSeq<ParsedNode>(node) ? node.items : []
  if (!first) return spanOf(node)
  return 'key' in first && !('range' in first) ? spanOf(first.key) : firstOf(first as ParsedNode)
}

/** The value that a path leads to, as text; '' where there is none. */
export function textAt(text: string, path: string): string {
  const found = find(text, path)
  if (!found?.isExact || !isScalar(found.node)) return ''
  return typeof found.node.value === 'string' ? found.node.value : (found.node.source ?? '')
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

const unquoted = (text: string, span: Span): string =>
  unitsOf(text, span)
    .map(({ value }) => value)
    .join('')

interface Finding {
  readonly path: string
  readonly at: { readonly text: string; readonly from: number; readonly to: number } | null
}

/** Where a finding is about: a piece of the value at its path, the value, or what is nearest to it. */
export function findingSpan(text: string, { path, at }: Finding): Span | null {
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
