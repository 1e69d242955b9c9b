import type { SearchHit } from '#http'
import { type Chunk, type ClusterState, type Health, hasPartsOf, isNearIn, type Keys, type NodeSnapshot } from '#model'
import type { Steps } from '#runtime'
import { Best } from './best.ts'
import { ChunkMemo, isKept } from './chunk-memo.ts'
import { nameFinder, shortestOf } from './name-index.ts'
import { allRows, both, countOf, either, noRows, type RowSet, rowsOf, setOfColumn } from './row-set.ts'
import { byText, type VisibleCluster } from './views.ts'
import type { VisibleType } from './visible-types.ts'

interface Entry {
  readonly text: string
  readonly hit: SearchHit
}

/** Searchable names; `all` holds them at once, to pass over all of them in one look. */
interface Entries {
  readonly all: string
  readonly entries: readonly Entry[]
}

/** The searchable names of one cluster: its own, and of each type what is on it. */
interface ClusterIndex {
  /** its names, by which what is on it is found as well */
  readonly place: string
  readonly lists: readonly Entries[]
}

const kinds: Readonly<Record<SearchHit['kind'], number>> = { cluster: 0, node: 1, operator: 2, namespace: 3, custom: 4 }

/** Rows of types that one search looks at; a type on a cluster that does not fit in is passed over. */
export const maxSearchedRows = 5_000_000

/** Names that one search compares letter by letter, where nothing has them as they are typed: clusters first. */
export const maxNearNames = 10_000

interface Ranked {
  readonly hit: SearchHit
  readonly rank: number
}
const nodeHealth: Readonly<Record<NodeSnapshot['ready'], Health>> = {
  ready: 'healthy',
  notReady: 'unhealthy',
  unknown: 'unknown',
}

/**
 * Every word must occur in the name, the detail or a name of the cluster, and one of them in the first two; best first: the name itself, its beginning, the beginning of a word in
 * it, anywhere; where nothing has them, names a slip or two away. The index of a cluster is made of lists that stay while what they are of does.
 * @param types what is seen of types; that is no matter of the cluster's view, so it comes beside it
 * @returns the best `limit` hits, and how many there are in all
 */
export function* searchFleet(
  clusters: readonly VisibleCluster[],
  types: Iterable<VisibleType>,
  text: string,
  limit: number,
): Steps<{ items: SearchHit[]; total: number }> {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean).slice(0, 10)
  if (words.length === 0) return { items: [], total: 0 }
  const best = new Best<Ranked>(limit, compareRanked)
  let total = 0
  const found = (hit: SearchHit, slack = 0): void => {
    total += 1
    best.add({ hit, rank: slack * 100 + rankOf(hit.name, words) })
  }
  for (const cluster of clusters) {
    const { place, lists } = cluster.memo('search', () => indexOf(cluster))
    const elsewhere = words.filter((word) => !place.includes(word))
    const areIn = (text: string): boolean =>
      elsewhere.every((word) => text.includes(word)) && words.some((word) => text.includes(word))
    for (const { all, entries } of lists)
      if (areIn(all)) for (const { text, hit } of entries) if (areIn(text)) found(hit)
    yield
  }
  total += yield* searchTypes(types, words, best)
  if (total === 0) searchNear(clusters, words, found)
  return { items: best.sorted().map(({ hit }) => hit), total }
}

/** What was probably meant: every word is in the text, in it part by part, or a slip or two away from a name in it. */
function searchNear(
  clusters: readonly VisibleCluster[],
  words: readonly string[],
  found: (hit: SearchHit, slack: number) => void,
): void {
  let left = maxNearNames
  const look = ({ text, hit }: Entry): void => {
    if (left-- <= 0) return
    let slack = 0
    for (const word of words) {
      const own = slackOf(word, text)
      if (own === undefined) return
      slack += own
    }
    found(hit, slack)
  }
  const indexes = clusters.map((cluster) => {
    const { lists } = cluster.memo('search', () => indexOf(cluster))
    return lists.flatMap(({ entries }) => entries)
  })
  for (const [own] of indexes) if (own) look(own)
  for (const [, ...entries] of indexes) {
    if (left <= 0) return
    entries.forEach(look)
  }
}

/** 0: the word is in the text; more where it was meant otherwise; undefined: it was not meant. */
function slackOf(word: string, text: string): number | undefined {
  if (text.includes(word)) return 0
  if (hasPartsOf(word, text)) return 1
  return isNearIn(word, text) ? 2 : undefined
}

/** Rows of a chunk that were found, whoever may see them. */
interface FoundRows {
  /** number of the chunk */
  readonly at: number
  readonly keys: Keys
  readonly rows: RowSet
  /** none of them is better than this; null: nothing is known of them */
  readonly bound: { readonly rank: number; readonly name: string } | null
}

/** The same of a table, the best first. */
type FoundTable = readonly FoundRows[]

/** Some dozen words that most rows have, over a hundred tables; thousands of those that few have. */
const memo = new ChunkMemo(32 * 2 ** 20)
const bytesOfFound = (parts: FoundTable): number =>
  parts.reduce((sum, { rows }) => sum + 150 + (rows.length === 0 ? 0 : 240 + rows.byteLength), 100)

/** Letters typed between two questions: they are asked when the fingers rest. */
const MAX_TYPED_AT_ONCE = 4

/** The same words while the last of them was still typed, the longest first. */
function beginningsOf(words: readonly string[]): string[][] {
  const last = words.at(-1) ?? ''
  const count = Math.min(MAX_TYPED_AT_ONCE, last.length - 1)
  return Array.from({ length: count }, (_, i) => [...words.slice(0, -1), last.slice(0, -1 - i)])
}

/**
 * Names and namespaces of rows: hits are made of the tables, and of these of the chunks, that may have the best, and the others only counted.
 * What was found in a table is kept while its names are the very same, whatever becomes of the values.
 * @returns how many there are
 */
function* searchTypes(types: Iterable<VisibleType>, words: readonly string[], best: Best<Ranked>): Steps<number> {
  const finders = words.map(wordFinder)
  const beginnings = beginningsOf(words)
  const found: { readonly type: VisibleType; readonly parts: FoundTable }[] = []
  let [left, total] = [maxSearchedRows, 0]
  for (const type of types) {
    const { named: table, cluster, name } = type
    if (table.size === 0 || table.size > left) continue
    left -= table.size
    const asked = askedOf(words, name.toLowerCase(), placeOf(cluster))
    const make = (among?: FoundTable) => foundIn(type, asked, finders, among)
    const parts = seenOf(type, isKept(table) ? yield* keptOf(type, asked, beginnings, make) : yield* make())
    for (const { keys, rows } of parts) total += countOf(rows, keys.names.length)
    if (parts.length > 0) found.push({ type, parts })
  }
  found.sort((a, b) => compareBounds(a.parts[0]?.bound ?? null, b.parts[0]?.bound ?? null))
  for (const { type, parts } of found) {
    for (const { keys, rows, bound } of parts) {
      if (best.bound && bound && isWorse(bound, best.bound)) break
      for (const row of rowsOf(rows, keys.names.length)) {
        const name = type.source.rowName(keys.names.at(row) as string)
        const rank = rankOf(name, words)
        if (best.bound && isWorse({ rank, name }, best.bound)) continue
        best.add({ hit: hitOf(type, keys, row, name), rank })
      }
      yield
    }
  }
  return total
}

interface AskedOfTable {
  readonly words: readonly string[]
  /** words that neither the type nor the cluster has */
  readonly own: readonly string[]
  readonly isTitled: boolean
}

/** @param title name of the type, in lower case; @param place names of the cluster */
function askedOf(words: readonly string[], title: string, place: string): AskedOfTable {
  const own = words.filter((word) => !title.includes(word) && !place.includes(word))
  return { words, own, isTitled: words.some((word) => title.includes(word)) }
}

/** What is known of a table, or is found in it: where beginnings of the words are known, among what has these. */
function* keptOf(
  { source, name, cluster, named }: VisibleType,
  asked: AskedOfTable,
  beginnings: readonly (readonly string[])[],
  make: (among?: FoundTable) => Steps<FoundTable>,
): Steps<FoundTable> {
  const answersTo = ({ words, own, isTitled }: AskedOfTable) =>
    memo.answers(JSON.stringify([source.id, source.hash, words, own, isTitled]), bytesOfFound)
  return yield* answersTo(asked).steps(named.keys, () => {
    // Who types has mostly asked for the words without the last letters.
    const [title, place] = [name.toLowerCase(), placeOf(cluster)]
    for (const beginning of beginnings) {
      const known = answersTo(askedOf(beginning, title, place)).known(named.keys)
      if (known) return make(known)
    }
    return make()
  })
}

/** Chunks that are searched before others have their turn. */
const CHUNKS_AT_ONCE = 8

/** @param among only these rows are looked at */
function* foundIn(
  { named: table, source }: VisibleType,
  asked: AskedOfTable,
  finders: readonly WordFinder[],
  among?: FoundTable,
): Steps<FoundTable> {
  const isRanked = source.targets.length === 1
  const parts: FoundRows[] = []
  const count = (among ?? table.chunks).length
  for (let i = 0; i < count; i++) {
    const part = among?.[i]
    const { keys } = part ?? (table.chunks[i] as Chunk) // below their number
    if (i % CHUNKS_AT_ONCE === CHUNKS_AT_ONCE - 1) yield
    const { rows, rank, best } = rowsWith(keys, part?.rows ?? allRows, asked, finders)
    if (rows === noRows) continue
    // What a row is called may be less than its key.
    parts.push({ at: part?.at ?? i, keys, rows, bound: isRanked ? { rank, name: keys.names.at(best) ?? '' } : null })
  }
  return parts.sort((a, b) => compareBounds(a.bound, b.bound))
}

/** Of what was found that which may be seen, in the same order. */
function seenOf(type: VisibleType, parts: FoundTable): FoundTable {
  const left: FoundRows[] = []
  for (const part of parts) {
    const seen = type.seenIn(part.at)
    const rows = both(part.rows, seen, part.keys.names.length)
    if (rows === part.rows) left.push(part)
    else if (rows !== noRows) left.push({ ...part, rows })
  }
  return left
}

/** @returns the rows; none has a better rank, nor at this rank a better name than the row `best` */
function rowsWith(
  keys: Keys,
  among: RowSet,
  { words, own, isTitled }: AskedOfTable,
  finders: readonly WordFinder[],
): { readonly rows: RowSet; readonly rank: number; readonly best: number } {
  const size = keys.names.length
  let all = among
  let some = noRows
  let rank = 0
  let best = -1
  for (let i = 0; i < words.length && all !== noRows; i++) {
    const finder = finders[i] as WordFinder // one of each word
    const named = finder.named(keys, all)
    rank += named.rank
    best = named.best
    if (own.length > 0 ? !own.includes(words[i] as string) : isTitled) continue
    const having = either(named.rows, setOfColumn(keys.namespaces, size, finder.isInNamespace), size)
    if (own.length > 0) all = both(all, having, size)
    else some = either(some, having, size)
  }
  const rows = own.length > 0 || isTitled ? all : both(all, some, size)
  return { rows, rank, best: words.length === 1 && best >= 0 ? best : shortestOf(keys) }
}

type WordFinder = ReturnType<typeof wordFinder>

function wordFinder(word: string) {
  const namespaces = new Map<string, boolean>()
  const isInNamespace = (namespace: string): boolean => {
    const known = namespaces.get(namespace)
    if (known !== undefined) return known
    const isIn = namespace.toLowerCase().includes(word)
    namespaces.set(namespace, isIn)
    return isIn
  }
  return { named: nameFinder(word), isInNamespace }
}

const compareNames = (left: string, right: string): number => left.length - right.length || byText(left, right)

function compareBounds(left: FoundRows['bound'], right: FoundRows['bound']): number {
  if (!left || !right) return left ? 1 : right ? -1 : 0
  return left.rank - right.rank || compareNames(left.name, right.name)
}

/** Whether nothing with this bound can be better. */
function isWorse({ rank, name }: NonNullable<FoundRows['bound']>, { rank: worst, hit }: Ranked): boolean {
  if (rank !== worst) return rank > worst
  return hit.kind !== 'custom' || compareNames(name, hit.name) > 0
}

function hitOf({ cluster, name: type }: VisibleType, { namespaces }: Keys, row: number, name: string): SearchHit {
  const namespace = namespaces.at(row)
  return {
    kind: 'custom',
    cluster: cluster.name,
    name,
    detail: namespace === '' ? type : `${type} in ${namespace}`,
    health: 'unknown',
    type,
    namespace,
  }
}

const compareRanked = (left: Ranked, right: Ranked): number =>
  left.rank - right.rank || compareHits(left.hit, right.hit)

function compareHits(left: SearchHit, right: SearchHit): number {
  return (
    kinds[left.kind] - kinds[right.kind] ||
    left.name.length - right.name.length ||
    byText(left.name, right.name) ||
    byText(left.cluster, right.cluster) ||
    byText(left.detail, right.detail)
  )
}

function rankOf(name: string, words: readonly string[]): number {
  const lower = name.toLowerCase()
  return words.reduce((sum, word) => sum + rankOfWord(lower, word), 0)
}

function rankOfWord(name: string, word: string): number {
  const at = name.indexOf(word)
  if (at < 0) return 4 // in the detail only
  if (at === 0) return name.length === word.length ? 0 : 1
  return /[a-z0-9]/.test(name[at - 1] ?? '') ? 3 : 2
}

function indexOf({ state, visible, status }: VisibleCluster): ClusterIndex {
  const cluster: string = state.name
  const own = entry({ kind: 'cluster', cluster, name: cluster, detail: clusterDetail(state), health: status.health })
  const place = placeOf(state)
  const lists = [
    { all: `${place}\n${own.text}`, entries: [own] },
    entriesOf(visible('node'), ({ name, ready, roles }) => {
      return { kind: 'node', cluster, name, detail: roles.join(', '), health: nodeHealth[ready] }
    }),
    entriesOf(visible('operator'), ({ displayName, csv, status, namespace }) => {
      const health: Health = status === 'Succeeded' ? 'healthy' : status === 'Failed' ? 'unhealthy' : 'unknown'
      return { kind: 'operator', cluster, name: displayName || csv, detail: `${csv} in ${namespace}`, health }
    }),
    entriesOf(visible('namespace'), ({ name, phase }) => {
      return { kind: 'namespace', cluster, name, detail: phase, health: phase === 'Active' ? 'healthy' : 'unknown' }
    }),
  ]
  return { place, lists }
}

/** Of snapshots of a cluster, which stay the same list while others of it change. */
const knownEntries = new WeakMap<readonly unknown[], Entries>()

function entriesOf<T>(snapshots: readonly T[], hitOf: (snapshot: T) => SearchHit): Entries {
  const known = knownEntries.get(snapshots)
  if (known) return known
  const entries = snapshots.map((snapshot) => entry(hitOf(snapshot)))
  const made = { all: entries.map(({ text }) => text).join('\n'), entries }
  knownEntries.set(snapshots, made)
  return made
}

const placeOf = ({ name, connection }: ClusterState): string => `${name} ${connection?.displayName ?? ''}`.toLowerCase()

const entry = (hit: SearchHit): Entry => ({ text: `${hit.name} ${hit.detail}`.toLowerCase(), hit })

function clusterDetail({ connection, name }: ClusterState): string {
  const labels = Object.entries(connection?.labels ?? {}).map(([key, value]) => `${key}=${value}`)
  return [connection?.displayName !== name ? connection?.displayName : '', ...labels].filter(Boolean).join(' ')
}
