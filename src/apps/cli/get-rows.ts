import type { Client, ClusterView } from '#http'
import { parseLabelSelector } from '#model'
import { age } from './format.ts'
import { namesOf, type Row, worstFirst } from './get-columns.ts'
import { NotFoundError } from './not-found.ts'
import { type Noun, nouns, wordMeant } from './words.ts'

/** Events of one cluster that are printed at most: the newest. */
const MAX_EVENTS = 200

export interface Wish {
  readonly noun: Noun
  /** empty: all */
  readonly names: readonly string[]
  /** empty: all */
  readonly clusters: readonly string[]
  /** only clusters in this set */
  readonly set?: string
  /** only what stands in this namespace */
  readonly namespace?: string
  /** only what has these labels, as kubectl writes it */
  readonly selector?: string
}

export interface Found {
  readonly rows: readonly Row[]
  /** what is missing or old, for people */
  readonly notes: readonly string[]
}

/**
 * Rows, worst first.
 * @throws ApiProblem where the hub refuses or cannot be reached
 * @throws NotFoundError for a cluster or a name that is not there
 */
export async function rowsOf(client: Client, { noun, names, clusters, ...filters }: Wish, now: number): Promise<Found> {
  const { all, chosen } = await clustersAsked(client, clusters)
  const { rows, notes } = await load(client, noun, chosen, clusters.length > 0)
  requireAll(
    nouns[noun],
    names,
    rows.flatMap((row) => namesOf(noun, row)),
  )
  const named = namedRows(noun, chosenRows(noun, rows, filters), names)
  const empty = named.length === 0 ? [emptyNote(noun, { all, chosen })] : []
  const seen = noun === 'clusters' || noun === 'agents' ? (named as readonly ClusterView[]) : chosen
  return { rows: worstFirst(noun, named), notes: [...empty, ...notes, ...staleNotes(seen, now)] }
}

/** Of clusters that are known already, the rows that are meant: clusters, or their agents. */
export function rowsAmong(
  clusters: Iterable<ClusterView>,
  { noun, names, clusters: asked, ...filters }: Wish & { readonly noun: 'clusters' | 'agents' },
): readonly Row[] {
  const chosen = [...clusters].filter(({ name }) => asked.length === 0 || asked.includes(name))
  const rows = noun === 'agents' ? chosen.filter(hasAgent) : chosen
  return worstFirst(noun, namedRows(noun, chosenRows(noun, rows, filters), names))
}

const hasAgent = ({ agent, mode }: ClusterView): boolean => agent !== null || mode === 'push'

/** @param names none: all of them */
const namedRows = (noun: Noun, rows: readonly Row[], names: readonly string[]): readonly Row[] =>
  names.length === 0 ? rows : rows.filter((row) => namesOf(noun, row).some((name) => names.includes(name)))

/**
 * Names of the clusters that are meant, of a set as well.
 * @throws NotFoundError where none is in both; ApiProblem `set_not_found`
 */
export async function clustersMeant(
  client: Client,
  { clusters, set }: Pick<Wish, 'clusters' | 'set'>,
): Promise<readonly string[]> {
  if (set === undefined) return clusters
  const inSet = (await client.clusterSet(set)).clusters
  const meant = clusters.length === 0 ? inSet : clusters.filter((name) => inSet.includes(name))
  if (meant.length > 0) return meant
  throw new NotFoundError(
    inSet.length === 0
      ? `set ${set} has no cluster`
      : `set ${set} has ${inSet.slice(0, 12).join(', ')}: none that -c names`,
  )
}

export interface Asked {
  readonly all: readonly ClusterView[]
  readonly chosen: readonly ClusterView[]
}

/** @param names none: all clusters. @throws NotFoundError for one that is not there */
export async function clustersAsked(client: Client, names: readonly string[]): Promise<Asked> {
  const all = await collect(client.all((cursor) => client.clusters({ limit: 1000, ...(cursor && { cursor }) })))
  requireAll(
    'cluster',
    names,
    all.map(({ name }) => name),
  )
  return { all, chosen: names.length === 0 ? all : all.filter(({ name }) => names.includes(name)) }
}

/** @throws NotFoundError where rows of the noun have no namespace, or no labels */
function chosenRows(
  noun: Noun,
  rows: readonly Row[],
  { namespace, selector }: Pick<Wish, 'namespace' | 'selector'>,
): readonly Row[] {
  const has = (field: string) => rows.length === 0 || rows.some((row) => field in row)
  if (namespace !== undefined && !has('namespace'))
    throw new NotFoundError(`${noun} stand in no namespace: leave out -n`)
  if (selector !== undefined && !has('labels')) throw new NotFoundError(`of ${noun} no labels are kept: leave out -l`)
  const chooses = selector === undefined ? () => true : parseLabelSelector(selector)
  if (typeof chooses === 'string') throw new NotFoundError(chooses)
  return rows.filter(
    (row) =>
      (namespace === undefined || ('namespace' in row && row.namespace === namespace)) &&
      chooses('labels' in row ? (row.labels ?? {}) : {}),
  )
}

async function load(client: Client, noun: Noun, clusters: readonly ClusterView[], isNarrowed: boolean): Promise<Found> {
  const names = new Set(clusters.map(({ name }) => name))
  switch (noun) {
    case 'clusters':
      return { rows: clusters, notes: [] }
    case 'agents':
      return { rows: clusters.filter(hasAgent), notes: [] }
    case 'types': {
      const { items } = await client.types()
      const rows = items.map((type) => ({
        ...type,
        // What stands on no cluster is there where all of them are asked for.
        clusters: type.clusters.filter(({ cluster }) => names.has(cluster) || (cluster === '' && !isNarrowed)),
      }))
      return { rows: rows.filter((type) => type.clusters.length > 0), notes: [] }
    }
    case 'events': {
      const pages = await Promise.all([...names].map((name) => client.events(name, { limit: MAX_EVENTS })))
      return { rows: pages.flatMap(({ items }) => items), notes: [] }
    }
  }
}

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = []
  for await (const item of items) all.push(item)
  return all
}

/** @throws NotFoundError */
export function requireAll(what: string, asked: readonly string[], known: readonly string[]): void {
  const missing = asked.filter((name) => !known.includes(name))
  const [first] = missing
  if (first === undefined) return
  const near = wordMeant(first, known)
  const few = [...new Set(known)].sort()
  const hint =
    near !== undefined
      ? `did you mean ${near}?`
      : few.length === 0
        ? 'the hub has none that you may see'
        : `there are ${few.slice(0, 12).join(', ')}${few.length > 12 ? ` and ${few.length - 12} more` : ''}`
  throw new NotFoundError(`no ${what} named ${missing.join(', ')}; ${hint}`)
}

export function emptyNote(noun: string, { all, chosen }: Asked): string {
  if (all.length === 0) return 'the hub knows no cluster yet, or none that you may see'
  const where = chosen.length === all.length ? 'in the fleet' : `in ${chosen.map(({ name }) => name).join(', ')}`
  return `no ${noun} ${where} that you may see`
}

export const staleNotes = (clusters: readonly ClusterView[], now: number) =>
  clusters
    .filter(({ stale }) => stale)
    .map(({ name, lastSyncAt, message }) =>
      lastSyncAt === null
        ? `${name}: never read: ${message}`
        : `${name}: as of ${age(now - lastSyncAt)} ago: ${message}`,
    )
