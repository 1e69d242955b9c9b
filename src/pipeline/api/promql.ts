import { parser } from '@prometheus-io/lezer-promql'
import { FleetError, invariant } from '#model'

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

const clusterLabel = 'cluster'
// A number may stand apart from its sign.
const token = /^(?:[-+]\s+)?[\x21-\x7e]+$/
const punctuation = new Set('(){}[],:')

/** The matcher that lets only these clusters through: never one without the label. At least one name. */
export function clusterMatcher(clusters: readonly string[]): string {
  invariant(clusters.length > 0, 'an empty alternation would match series without a cluster')
  const names = clusters.map((name) => {
    invariant(name !== '', 'an empty name would match series without a cluster')
    return name.replace(/[^A-Za-z0-9_]/g, '\\$&')
  })
  return `${clusterLabel}=~${JSON.stringify(names.join('|'))}`
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
 * @param clusters names that the caller may see; at least one
 * @throws QueryRefusedError for anything else than PromQL: MetricsQL's own syntax, quoted label names, info()
 */
export function narrowQuery(query: string, clusters: readonly string[]): string {
  if (query.length > maxQueryLength)
    throw new QueryRefusedError(`a query has at most ${maxQueryLength} characters`, '', 0)
  const matcher = clusterMatcher(clusters)
  const { leaves, inserts } = readQuery(query, matcher)
  const narrowed = writeQuery(query, leaves, inserts)
  if (narrowed.length > maxNarrowedLength)
    throw new QueryRefusedError(
      `with the names of ${clusters.length} clusters the query is ${narrowed.length} characters, more than ${maxNarrowedLength}: use fewer selectors; refused`,
      '',
      0,
    )
  const checked = selectorsOf(narrowed)
  invariant(
    checked?.length === inserts.size && checked.every((first) => first.replaceAll(' ', '') === matcher),
    'every selector of a narrowed query carries the matcher',
  )
  return narrowed
}

function readQuery(query: string, matcher: string): { leaves: Leaf[]; inserts: Map<number, string> } {
  const leaves: Leaf[] = []
  const inserts = new Map<number, string>()
  const refuse = (reason: string, position: number): never => {
    throw new QueryRefusedError(reason, query, position)
  }
  parser.parse(query).iterate({
    enter: ({ name, type, node, from, to }) => {
      const text = query.slice(from, to)
      if (type.isError) return refuse(`this is no PromQL${near(text)}`, from)
      if (name === 'LineComment') return false
      if (name === 'QuotedLabelName') return refuse('quoted label names are not taken', from)
      if (name === 'Info') return refuse('info() reads series that its arguments do not name: it is not taken', from)
      if (
        name === 'LabelName' &&
        text.startsWith('__') &&
        text !== '__name__' &&
        node.parent?.name !== 'GroupingLabels'
      )
        return refuse(`label ${text} is not taken`, from)
      if (name === 'VectorSelector') {
        const braces = node.getChild('LabelMatchers')
        if (!braces) inserts.set(to, `{ ${matcher} }`)
        else inserts.set(braces.from + 1, braces.getChild('UnquotedLabelMatcher') ? `${matcher} ,` : matcher)
        return true
      }
      if (node.firstChild) return true
      if (name === 'StringLiteral') leaves.push({ from, to, text: plainString(text, (why) => refuse(why, from)) })
      else if (name === 'LabelMatchers' || name === 'GroupingLabels' || name === 'FunctionCallBody') return true
      else if (token.test(text)) leaves.push({ from, to, text: text.replace(/\s+/g, '') })
      else refuse(`this cannot be read${near(text)}`, from)
      return false
    },
  })
  return { leaves, inserts }
}

const near = (text: string): string => (text.trim() === '' ? '' : ` (${JSON.stringify(text.slice(0, 40))})`)

/** Tokens and the punctuation between them, with single spaces; what is skipped in between is left out. */
function writeQuery(query: string, leaves: readonly Leaf[], inserts: ReadonlyMap<number, string>): string {
  const words: string[] = []
  const comments = commentsOf(query)
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

function commentsOf(query: string): ReadonlyMap<number, number> {
  const comments = new Map<number, number>()
  parser.parse(query).iterate({
    enter: ({ name, from, to }) => {
      if (name === 'LineComment') comments.set(from, to)
    },
  })
  return comments
}

/** The first matcher of each selector; undefined where the text has a fault. */
function selectorsOf(query: string): readonly string[] | undefined {
  const first: string[] = []
  let faulty = false
  parser.parse(query).iterate({
    enter: ({ name, type, node }) => {
      if (type.isError) faulty = true
      if (name !== 'VectorSelector') return
      const matcher = node.getChild('LabelMatchers')?.getChild('UnquotedLabelMatcher')
      first.push(matcher ? query.slice(matcher.from, matcher.to) : '')
    },
  })
  return faulty ? undefined : first
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
