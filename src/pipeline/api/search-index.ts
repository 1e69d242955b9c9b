import type { SearchHit } from '#http'
import { type Chunk, type ClusterState, type Health, hasPartsOf, isNearIn, type NodeSnapshot, sizeOf } from '#model'
import { Best } from './best.ts'
import { ChunkMemo, isKept } from './chunk-memo.ts'
import { nameFinder, shortestOf } from './name-index.ts'
import { allRows, both, countOf, either, noRows, type RowSet, rowsOf, setOfColumn } from './row-set.ts'
import type { Steps } from './turns.ts'
import { byText, type VisibleCluster } from './views.ts'
import type { VisibleType } from './visible-types.ts'

interface Entry {
  readonly text: string
  readonly hit: SearchHit
}

/** The searchable names of one cluster; `all` holds them at once, to pass over whole clusters in one look. */
interface ClusterIndex {
  readonly all: string
  /** its names, by which what is on it is found as well */
  readonly place: string
  readonly entries: readonly Entry[]
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
 * it, anywhere; where nothing has them, names a slip or two away. The index of a cluster lives as long as that state of the cluster, so a change rebuilds one cluster only.
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
    best.add({ hit, rank: slack * 100 + rankOf(hit, words) })
  }
  for (const cluster of clusters) {
    const { all, place, entries } = cluster.memo('search', () => indexOf(cluster))
    if (!words.every((word) => all.includes(word))) continue
    const elsewhere = words.filter((word) => !place.includes(word))
    for (const { text, hit } of entries) {
      if (elsewhere.every((word) => text.includes(word)) && words.some((word) => text.includes(word))) found(hit)
    }
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
  const indexes = clusters.map((cluster) => cluster.memo('search', () => indexOf(cluster)).entries)
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

/** Rows of a chunk that were found. */
interface FoundRows {
  readonly chunk: Chunk
  readonly rows: RowSet
  /** none of them is better than this; null: nothing is known of them */
  readonly bound: { readonly rank: number; readonly name: string } | null
}

/** The same of a table, the best first. */
interface FoundTable {
  readonly parts: readonly FoundRows[]
  readonly total: number
}

/** Some hundred words over a hundred tables. */
const memo = new ChunkMemo(16 * 2 ** 20)
const bytesOfFound = ({ parts }: FoundTable): number => 100 + 200 * parts.length

/**
 * Names and namespaces of rows: hits are made of the tables, and of these of the chunks, that may have the best, and the others only counted.
 * What was found in a table is kept as long as it is the very same.
 * @returns how many there are
 */
function* searchTypes(types: Iterable<VisibleType>, words: readonly string[], best: Best<Ranked>): Steps<number> {
  const finders = new Map(words.map((word) => [word, wordFinder(word)]))
  const found: { readonly type: VisibleType; readonly parts: readonly FoundRows[] }[] = []
  let [left, total] = [maxSearchedRows, 0]
  for (const type of types) {
    const { rows: table, cluster, source, name, seenBy } = type
    if (table.size === 0 || table.size > left) continue
    left -= table.size
    const title = name.toLowerCase()
    const place = placeOf(cluster)
    const own = words.filter((word) => !title.includes(word) && !place.includes(word))
    const isTitled = words.some((word) => title.includes(word))
    const make = () => foundIn(type, { words, own, isTitled, finders })
    const question = JSON.stringify([source.id, seenBy, words, own, isTitled])
    const one = isKept(table) ? yield* memo.answers(question, bytesOfFound).steps(table, make) : yield* make()
    total += one.total
    if (one.total > 0) found.push({ type, parts: one.parts })
  }
  found.sort((a, b) => compareBounds(a.parts[0]?.bound ?? null, b.parts[0]?.bound ?? null))
  for (const { type, parts } of found) {
    for (const { chunk, rows, bound } of parts) {
      if (best.bound && bound && isWorse(bound, best.bound)) break
      for (const row of rowsOf(rows, sizeOf(chunk))) {
        const hit = hitOf(type, chunk, row)
        best.add({ hit, rank: rankOf(hit, words) })
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
  readonly finders: ReadonlyMap<string, WordFinder>
}

function* foundIn(type: VisibleType, { words, own, isTitled, finders }: AskedOfTable): Steps<FoundTable> {
  const { rows: table, source } = type
  const parts: FoundRows[] = []
  let total = 0
  for (let i = 0; i < table.chunks.length; i++) {
    const chunk = table.chunks[i] as Chunk // below their number
    const size = sizeOf(chunk)
    const having = (word: string): RowSet => finders.get(word)?.rows(chunk) ?? noRows
    let rows: RowSet = allRows
    for (const word of own) rows = both(rows, having(word), size)
    if (own.length === 0 && !isTitled) rows = words.reduce((set, word) => either(set, having(word), size), noRows)
    if (rows !== noRows) rows = both(rows, type.seenIn(i), size)
    yield
    if (rows === noRows) continue
    total += countOf(rows, size)
    // What a row is called may be less than its key.
    parts.push({ chunk, rows, bound: source.targets.length === 1 ? boundOf(chunk, words, finders) : null })
  }
  return { parts: parts.sort((a, b) => compareBounds(a.bound, b.bound)), total }
}

type WordFinder = ReturnType<typeof wordFinder>

function wordFinder(word: string) {
  const named = nameFinder(word)
  return {
    named: ({ keys }: Chunk) => named(keys),
    /** with the word in name or namespace */
    rows: ({ keys }: Chunk): RowSet => {
      const size = keys.names.length
      const inNamespace = setOfColumn(keys.namespaces, size, (namespace) => namespace.toLowerCase().includes(word))
      return either(named(keys).rows, inNamespace, size)
    },
  }
}

function boundOf(chunk: Chunk, words: readonly string[], finders: ReadonlyMap<string, WordFinder>): FoundRows['bound'] {
  let [rank, best] = [0, -1]
  for (const word of words) {
    const found = finders.get(word)?.named(chunk)
    rank += found?.rank ?? 0
    best = found?.best ?? -1
  }
  const row = words.length === 1 && best >= 0 ? best : shortestOf(chunk.keys)
  return { rank, name: chunk.keys.names.at(row) ?? '' }
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

function hitOf({ cluster, source, name: type }: VisibleType, { keys }: Chunk, row: number): SearchHit {
  const namespace = keys.namespaces.at(row)
  return {
    kind: 'custom',
    cluster: cluster.name,
    name: source.rowName(keys.names.at(row) as string),
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

function rankOf(hit: SearchHit, words: readonly string[]): number {
  const name = hit.name.toLowerCase()
  return words.reduce((sum, word) => sum + rankOfWord(name, word), 0)
}

function rankOfWord(name: string, word: string): number {
  const at = name.indexOf(word)
  if (at < 0) return 4 // in the detail only
  if (at === 0) return name.length === word.length ? 0 : 1
  return /[a-z0-9]/.test(name[at - 1] ?? '') ? 3 : 2
}

function indexOf({ state, visible, status }: VisibleCluster): ClusterIndex {
  const cluster: string = state.name
  const entries = [
    entry({ kind: 'cluster', cluster, name: cluster, detail: clusterDetail(state), health: status.health }),
  ]
  for (const { name, ready, roles } of visible('node')) {
    entries.push(entry({ kind: 'node', cluster, name, detail: roles.join(', '), health: nodeHealth[ready] }))
  }
  for (const { displayName, csv, status, namespace } of visible('operator')) {
    const health: Health = status === 'Succeeded' ? 'healthy' : status === 'Failed' ? 'unhealthy' : 'unknown'
    entries.push(
      entry({ kind: 'operator', cluster, name: displayName || csv, detail: `${csv} in ${namespace}`, health }),
    )
  }
  for (const { name, phase } of visible('namespace')) {
    entries.push(
      entry({ kind: 'namespace', cluster, name, detail: phase, health: phase === 'Active' ? 'healthy' : 'unknown' }),
    )
  }
  const place = placeOf(state)
  return { all: [place, ...entries.map(({ text }) => text)].join('\n'), place, entries }
}

const placeOf = ({ name, connection }: ClusterState): string => `${name} ${connection?.displayName ?? ''}`.toLowerCase()

const entry = (hit: SearchHit): Entry => ({ text: `${hit.name} ${hit.detail}`.toLowerCase(), hit })

function clusterDetail({ connection, name }: ClusterState): string {
  const labels = Object.entries(connection?.labels ?? {}).map(([key, value]) => `${key}=${value}`)
  return [connection?.displayName !== name ? connection?.displayName : '', ...labels].filter(Boolean).join(' ')
}
