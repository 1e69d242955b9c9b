import type { SyntaxNode, SyntaxNodeRef } from '@lezer/common'
import { parser } from '@prometheus-io/lezer-promql'
import { FleetError, invariant, metricPrefix, scopeLabel } from '#model'

/** The text is no PromQL that we let through; `position` counts characters from 0. */
export class QueryRefusedError extends FleetError {
  override readonly name = 'QueryRefusedError'
  readonly code = 'query_refused'
  readonly retryable = false
  readonly position: number

  constructor(reason: string, query: string, position: number) {
    const before = query.slice(0, position)
    const line = before.split('\n').length
    const column = position - before.lastIndexOf('\n')
    super(`${reason} at line ${line}, column ${column}`)
    this.position = position
  }
}

/** Longer texts are refused unread. */
export const maxQueryLength = 8192
/** VictoriaMetrics takes 16 KiB by default. */
const maxNarrowedLength = 16_000

/** Of the names in a matcher, written one after the other. */
const maxPlainLength = 1000

const clusterLabel = 'cluster'
// A number may stand apart from its sign.
const token = /^(?:[-+]\s+)?[\x21-\x7e]+$/
const punctuation = new Set('(){}[],:')

/** The matcher that lets only these clusters through: never one without the label. At least one name. */
export const clusterMatcher = (clusters: readonly string[]): string => matcherOf(clusterLabel, clusters)

function matcherOf(label: string, names: readonly string[]): string {
  invariant(names.length > 0, `an empty alternation would match series without a ${label}`)
  invariant(!names.includes(''), `an empty name would match series without a ${label}`)
  const plain = names.map(literal).join('|')
  // Backends look plain alternatives up, so a few stay plain; a fleet would not fit into a query.
  return `${label}=~${JSON.stringify(plain.length <= maxPlainLength ? plain : alternatives(names))}`
}

/** Whose series of one aggregation a caller may read. At least one of each. */
export interface AggregationRights {
  readonly clusters: readonly string[]
  readonly sources: readonly string[]
}

/**
 * Asked of each selector that names an aggregation.
 * @param source which one the selector names besides, if it names exactly one
 * @returns undefined: nobody's, as if there were none
 */
export type RightsOf = (aggregation: string, source: string | undefined) => AggregationRights | undefined

const customPrefix = metricPrefix.custom
const sourceLabel = scopeLabel.custom ?? 'source'
const nothing = `${sourceLabel}!~".*"`
const noAggregation = `__name__!~"${customPrefix}.*"`

const literal = (text: string): string => text.replace(/[^A-Za-z0-9_]/g, '\\$&')

/** A regular expression for exactly these texts, with common ends and beginnings written once. */
function alternatives(texts: readonly string[]): string {
  const end = commonEnd(texts)
  const rests = new Map<string, string[]>()
  for (const text of new Set(texts.map((text) => text.slice(0, text.length - end.length)))) {
    const after = rests.get(text.charAt(0)) ?? []
    rests.set(text.charAt(0), after)
    after.push(text.slice(1))
  }
  const isWhole = !rests.delete('')
  const branches = [...rests].map(([first, after]) => literal(first) + restOf(after))
  if (branches.length === 0) return literal(end)
  const [only = ''] = branches
  if (branches.length === 1 && isWhole) return only + literal(end)
  const isClass = branches.every((branch) => branch.length === 1)
  return `${isClass ? `[${branches.join('')}]` : `(?:${branches.join('|')})`}${isWhole ? '' : '?'}${literal(end)}`
}

const restOf = ([first = '', ...more]: readonly string[]): string =>
  more.length === 0 ? literal(first) : alternatives([first, ...more])

function commonEnd([first = '', ...more]: readonly string[]): string {
  let length = first.length
  for (const text of more) while (!text.endsWith(first.slice(first.length - length))) length -= 1
  return first.slice(first.length - length)
}

interface Leaf {
  readonly from: number
  readonly to: number
  readonly text: string
}

/**
 * Narrows PromQL to some clusters: every selector, wherever it stands, gets one more matcher, which is ANDed to its own.
 *
 *   text → syntax tree → refuse what is no plain PromQL → write the tree's tokens anew, each selector with the matcher → check
 *
 * Nothing of the caller's layout reaches the backend: no comment, one kind of string, one space between tokens. So no text can
 * mean one thing to this parser and another to the backend's.
 *
 * Aggregations of MetricSources are a matter of their type: a selector that names one is narrowed to the sources and clusters
 * of which the caller may have it, and one that names no metric finds none of them.
 * @param clusters names that the caller may see; at least one
 * @throws QueryRefusedError for anything else than PromQL: MetricsQL's own syntax, quoted label names, info()
 */
export function narrowQuery(query: string, clusters: readonly string[], rightsOf: RightsOf = () => undefined): string {
  const matcher = clusterMatcher(clusters)
  return narrow(query, clusters.length, (selector) => {
    if (selector.metric === undefined) return [matcher, noAggregation]
    if (!selector.metric.startsWith(customPrefix)) return [matcher]
    const rights = rightsOf(selector.metric.slice(customPrefix.length), selector.source)
    return rights ? [clusterMatcher(rights.clusters), matcherOf(sourceLabel, rights.sources)] : [matcher, nothing]
  })
}

/** Aggregations of one source that a caller may have on the same clusters. At least one of each. */
export interface ListedAggregations {
  readonly source: string
  readonly names: readonly string[]
  readonly clusters: readonly string[]
}

/**
 * Narrows one selector for a list of series, which may tell what there is: one that names no metric exactly finds, beside all
 * else, the aggregations listed here.
 * @returns selectors that together mean it
 * @throws QueryRefusedError also where the text is no single selector
 */
export function narrowSelector(
  text: string,
  clusters: readonly string[],
  rightsOf: RightsOf,
  listed: readonly ListedAggregations[],
): readonly string[] {
  const narrowed = narrowQuery(text, clusters, rightsOf)
  const [tree, ...more] = childrenOf(parser.parse(text).topNode)
  if (tree?.name !== 'VectorSelector' || more.length > 0)
    throw new QueryRefusedError('match[] takes one series selector, such as up or {cluster="a"}; refused', text, 0)
  if (selectorOf({ node: tree, from: tree.from, to: tree.to }, text).metric !== undefined) return [narrowed]
  const ofAggregations = listed.map(({ source, names, clusters: shown }) =>
    narrow(text, shown.length, () => [
      clusterMatcher(shown),
      matcherOf(sourceLabel, [source]),
      matcherOf(
        '__name__',
        names.map((name) => customPrefix + name),
      ),
    ]),
  )
  return [narrowed, ...ofAggregations]
}

function narrow(query: string, clusterCount: number, matchersOf: (selector: Selector) => readonly string[]): string {
  if (query.length > maxQueryLength)
    throw new QueryRefusedError(`a query has at most ${maxQueryLength} characters`, '', 0)
  const reading = readQuery(query, matchersOf)
  const narrowed = writeQuery(query, reading)
  if (narrowed.length > maxNarrowedLength)
    throw new QueryRefusedError(
      `with the names of ${clusterCount} clusters the query is ${narrowed.length} characters, more than ${maxNarrowedLength}: use fewer selectors; refused`,
      '',
      0,
    )
  const checked = selectorsOf(narrowed)
  const meant = reading.matchers
  invariant(
    checked?.length === meant.length &&
      checked.every((found, at) => meant[at]?.every((matcher, place) => found[place]?.replaceAll(' ', '') === matcher)),
    'every selector of a narrowed query carries its matchers',
  )
  return narrowed
}

/** What a selector names exactly. */
interface Selector {
  readonly metric: string | undefined
  readonly source: string | undefined
}

function selectorOf({ node, from, to }: Pick<SyntaxNodeRef, 'node' | 'from' | 'to'>, query: string): Selector {
  const braces = node.getChild('LabelMatchers')
  const named = query.slice(from, braces?.from ?? to).trim()
  const equal = (label: string): string | undefined => {
    for (const matcher of braces?.getChildren('UnquotedLabelMatcher') ?? []) {
      const [name, text] = [matcher.getChild('LabelName'), matcher.getChild('StringLiteral')]
      if (!name || !text || query.slice(name.from, name.to) !== label) continue
      if (query.slice(name.to, text.from).trim() === '=') return stringOf(query, text.from, text.to)
    }
    return undefined
  }
  return { metric: named === '' ? equal('__name__') : named, source: equal(sourceLabel) }
}

const stringOf = (query: string, from: number, to: number): string =>
  JSON.parse(
    plainString(query.slice(from, to), (reason) => {
      throw new QueryRefusedError(reason, query, from)
    }),
  ) as string

/** What a query consists of: its tokens, what is skipped between them, and where the matcher goes. */
interface Reading {
  readonly leaves: Leaf[]
  /** end of each comment, by its beginning */
  readonly comments: Map<number, number>
  readonly inserts: Map<number, string>
  /** of each selector, in their order */
  readonly matchers: (readonly string[])[]
}

function readQuery(query: string, matchersOf: (selector: Selector) => readonly string[]): Reading {
  const reading: Reading = { leaves: [], comments: new Map(), inserts: new Map(), matchers: [] }
  parser.parse(query).iterate({
    enter: (node) => {
      const foreign = foreignTo(node, query.slice(node.from, node.to))
      if (foreign !== undefined) throw new QueryRefusedError(foreign, query, node.from)
      if (node.name === 'VectorSelector') {
        const matchers = matchersOf(selectorOf(node, query))
        const [at, text] = insertOf(node, matchers.join(' , '))
        reading.inserts.set(at, text)
        reading.matchers.push(matchers)
      }
      if (node.name === 'LineComment') reading.comments.set(node.from, node.to)
      else if (isLeaf(node)) reading.leaves.push(leafOf(node, query))
    },
  })
  return reading
}

/** Why a node is no part of a query that we let through; undefined where it is. */
function foreignTo({ name, type, node }: SyntaxNodeRef, text: string): string | undefined {
  if (type.isError) return `this is no PromQL${near(text)}`
  if (name === 'QuotedLabelName') return 'quoted label names are not taken'
  if (name === 'Info') return 'info() reads series that its arguments do not name: it is not taken'
  const isForeignLabel = name === 'LabelName' && text.startsWith('__') && text !== '__name__'
  return isForeignLabel && node.parent?.name !== 'GroupingLabels' ? `label ${text} is not taken` : undefined
}

function insertOf({ node, to }: SyntaxNodeRef, matcher: string): readonly [at: number, text: string] {
  const braces = node.getChild('LabelMatchers')
  if (!braces) return [to, `{ ${matcher} }`]
  return [braces.from + 1, braces.getChild('UnquotedLabelMatcher') ? `${matcher} ,` : matcher]
}

/** Between these and their punctuation there may be nothing. */
const hollow = new Set(['PromQL', 'LabelMatchers', 'GroupingLabels', 'FunctionCallBody'])
const isLeaf = ({ name, node }: SyntaxNodeRef): boolean => node.firstChild === null && !hollow.has(name)

function leafOf({ name, from, to }: SyntaxNodeRef, query: string): Leaf {
  const text = query.slice(from, to)
  const refuse = (reason: string): never => {
    throw new QueryRefusedError(reason, query, from)
  }
  if (name === 'StringLiteral') return { from, to, text: plainString(text, refuse) }
  if (!token.test(text)) return refuse(`this cannot be read${near(text)}`)
  return { from, to, text: text.replace(/\s+/g, '') }
}

const near = (text: string): string => (text.trim() === '' ? '' : ` (${JSON.stringify(text.slice(0, 40))})`)

/** Tokens and the punctuation between them, with single spaces; what is skipped in between is left out. */
function writeQuery(query: string, { leaves, comments, inserts }: Reading): string {
  const words: string[] = []
  let at = 0
  const insert = (): void => {
    const text = inserts.get(at)
    if (text !== undefined) words.push(text)
  }
  const gapUntil = (end: number): void => {
    while (at < end) {
      insert()
      const commentEnd = comments.get(at)
      const char = query.charAt(at)
      if (commentEnd !== undefined) at = commentEnd - 1
      else if (punctuation.has(char)) words.push(char)
      else if (char.trim() !== '')
        throw new QueryRefusedError(`this cannot be read (${JSON.stringify(char)})`, query, at)
      at += 1
    }
  }
  for (const { from, to, text } of leaves) {
    gapUntil(from)
    insert()
    words.push(text)
    at = to
  }
  gapUntil(query.length)
  insert()
  return words.join(' ')
}

/** The matchers of each selector; undefined where the text has a fault. */
function selectorsOf(query: string): readonly (readonly string[])[] | undefined {
  const found: (readonly string[])[] = []
  let faulty = false
  parser.parse(query).iterate({
    enter: ({ name, type, node }) => {
      if (type.isError) faulty = true
      if (name !== 'VectorSelector') return
      const matchers = node.getChild('LabelMatchers')?.getChildren('UnquotedLabelMatcher') ?? []
      found.push(matchers.map(({ from, to }) => query.slice(from, to)))
    },
  })
  return faulty ? undefined : found
}

const escapes: Readonly<Record<string, string>> = {
  a: '\x07',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
  '\\': '\\',
  "'": "'",
  '"': '"',
}

/**
 * A string of any of the three quotes as one in double quotes. Backends disagree on where a raw string with a backslash
 * ends; on this form they do not.
 */
function plainString(text: string, refuse: (reason: string) => never): string {
  const quote = text.charAt(0)
  if (text.length < 2 || !text.endsWith(quote)) return refuse('a string does not end')
  const inner = text.slice(1, -1)
  const value = quote === '`' ? inner : unescaped(inner, refuse)
  if (/\p{Surrogate}/u.test(value)) return refuse('a string is not valid Unicode')
  // Escaped like JSON, except for what Go's strings do not know; both know \u.
  return JSON.stringify(value).replace(/[\x7f-\x9f\u2028\u2029\ufeff]/g, unicode)
}

const unicode = (char: string): string => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`

function unescaped(text: string, refuse: (reason: string) => never): string {
  return text.replace(
    /\\(x[0-9a-fA-F]{2}|[0-7]{3}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[\s\S])|\\$/g,
    (_whole, meant: string | undefined) => {
      if (meant === undefined) return refuse('a string does not end')
      const plain = escapes[meant]
      if (plain !== undefined) return plain
      const code = meant.length === 1 ? Number.NaN : codeOf(meant)
      if (!Number.isInteger(code) || code > 0x10ffff) return refuse('a string has an escape that means nothing')
      // \x and octal are bytes: above ASCII they would be pieces of UTF-8.
      if (code > 0x7f && /^[x0-7]/.test(meant)) return refuse('a string has bytes that are no text')
      return String.fromCodePoint(code)
    },
  )
}

const codeOf = (meant: string): number =>
  /^[xuU]/.test(meant) ? Number.parseInt(meant.slice(1), 16) : Number.parseInt(meant, 8)

export type ResultType = 'scalar' | 'string' | 'vector' | 'matrix'

/** What a query evaluates to, which backends do not always say: to VictoriaMetrics a scalar is a vector of one. */
export function resultTypeOf(query: string): ResultType {
  const [expression] = childrenOf(parser.parse(query).topNode)
  invariant(expression, 'a query that was narrowed has an expression')
  return typeOf(expression, query)
}

const scalarFunctions = new Set(['time', 'scalar', 'pi'])

function typeOf(node: SyntaxNode, query: string): ResultType {
  const children = childrenOf(node)
  const [first, last] = [children[0], children.at(-1)]
  switch (node.name) {
    case 'NumberDurationLiteral':
      return 'scalar'
    case 'StringLiteral':
      return 'string'
    case 'MatrixSelector':
    case 'SubqueryExpr':
      return 'matrix'
    case 'FunctionCall': {
      const called = node.getChild('FunctionIdentifier')
      return called && scalarFunctions.has(query.slice(called.from, called.to)) ? 'scalar' : 'vector'
    }
    case 'ParenExpr':
    case 'OffsetExpr':
    case 'StepInvariantExpr':
      return first ? typeOf(first, query) : 'vector'
    case 'UnaryExpr':
      return last ? typeOf(last, query) : 'vector'
    case 'BinaryExpr':
      return [first, last].every((operand) => operand && typeOf(operand, query) === 'scalar') ? 'scalar' : 'vector'

    default:
      return 'vector'
  }
}

function childrenOf(node: SyntaxNode): readonly SyntaxNode[] {
  const children: SyntaxNode[] = []
  for (let child = node.firstChild; child; child = child.nextSibling)
    if (child.name !== 'LineComment') children.push(child)
  return children
}

/** The text of a query that is a string. */
export function textOf(query: string): string {
  let text = ''
  parser.parse(query).iterate({
    enter: ({ name, from, to }) => {
      if (name === 'StringLiteral') text = stringOf(query, from, to)
    },
  })
  return text
}
