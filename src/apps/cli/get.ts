import { ApiProblem, type Client, type ClusterView, createClient, type StoreView, storeText } from '#http'
import { systemClock } from '#model'
import { apiForm, rowForm } from './api-form.ts'
import { type Column, print, tableLines } from './format.ts'
import { columnsOf, namesOf, type Row } from './get-columns.ts'
import { type KindRow, kindColumns, rowsOfKind } from './get-kinds.ts'
import { clustersMeant, rowsOf, type Wish } from './get-rows.ts'
import { type Followed, followKind, followNoun } from './get-stream.ts'
import { topColumn, topColumns, topNotes } from './top.ts'
import type { TopSort, TopWord } from './top-words.ts'
import type { Noun, OtherKind, OutputFormat } from './words.ts'

/** What `top` shows of a kind. */
export interface Top {
  readonly what: TopWord
  readonly sort: TopSort
  /** 0: all */
  readonly count: number
}

export interface GetOptions extends Omit<Wish, 'noun'> {
  readonly noun: Noun | OtherKind
  readonly server: string
  readonly output: OutputFormat
  /** what uses most first, with what it uses */
  readonly top?: Top
  /** bearer token, for a hub that asks who calls */
  readonly token?: string
}

/** A client of the hub at this address, as the bearer of the token. @param onWarning told what limits the truth of its answers */
export const clientOf = (server: string, token: string | undefined, onWarning?: (text: string) => void): Client =>
  createClient({
    ...{ baseUrl: server, ...(onWarning && { onWarning }) },
    ...(token && { headers: { authorization: `Bearer ${token}` } }),
  })

/** What a command prints on standard output, and notes beside it for standard error. */
export interface Printed {
  readonly text: string
  readonly notes: readonly string[]
}

/** Rows of one sort, with how they are printed and told apart. */
interface Listing {
  readonly rows: readonly never[]
  readonly notes: readonly string[]
  readonly columns: readonly Column<never>[]
  readonly documentOf: (row: never) => unknown
  /** of one thing at one place; an event is another thing each time */
  readonly idOf: (row: never) => string
  /** old ones leave the list, which is no news */
  readonly isLog: boolean
  /** the same as a stream tells it */
  readonly followed: { readonly list: Followed<unknown>; readonly listingOf: (rows: readonly unknown[]) => Listing }
}

async function listing(client: Client, { noun, top, ...asked }: GetOptions, now: number): Promise<Listing> {
  if (typeof noun === 'string') {
    const wish = { ...asked, clusters: await clustersMeant(client, asked) }
    const { rows, notes } = await rowsOf(client, { noun, ...wish }, now)
    const types = noun === 'types' ? rows.flatMap((row) => namesOf(noun, row)) : []
    return listingOf(followNoun(client, { noun, ...wish }, types), noun, { rows, notes }, now)
  }
  const most = top && { by: topColumn[top.sort], count: top.count }
  const {
    kind,
    rows,
    on,
    notes,
    asked: streamed,
  } = await rowsOfKind(client, { ...asked, ...noun, ...(most && { most }) }, now)
  const list = followKind(streamed, asked.names)
  const of = (rows: readonly KindRow[], at: number): Listing => ({
    rows: rows as readonly never[], // the functions beside them are of the same rows
    notes: top ? [...notes, ...topNotes(top.what, on)] : notes,
    columns: top ? topColumns(top.what, at) : kindColumns(kind, at),
    documentOf: (row) => rowForm(row, kind),
    idOf: ({ cluster, id }: KindRow) => JSON.stringify([cluster, id]),
    // What uses less than others by now leaves the list.
    isLog: top !== undefined,
    followed: { list, listingOf: (rows) => of(rows as readonly KindRow[], Date.now()) },
  })
  return of(rows, now)
}

function listingOf(
  list: Followed<Row>,
  noun: Noun,
  { rows, notes }: { rows: readonly Row[]; notes: readonly string[] },
  now: number,
): Listing {
  return {
    rows: rows as readonly never[], // the functions beside them are of the same rows
    notes,
    columns: columnsOf(noun, now) as readonly Column<never>[],
    documentOf: (row: Row) => apiForm(noun === 'agents' ? agentOf(row as ClusterView) : row),
    idOf: (row: Row) =>
      JSON.stringify([
        'cluster' in row ? row.cluster : '',
        namesOf(noun, row)[0],
        noun === 'events' && 'at' in row && row.at,
      ]),
    isLog: noun === 'events',
    followed: {
      list,
      listingOf: (rows) => listingOf(list, noun, { rows: rows as readonly Row[], notes: [] }, Date.now()),
    },
  }
}

const agentOf = ({ name, mode, source, owner, agent }: ClusterView) => ({
  ...{ name, mode, source },
  ...(owner !== undefined && { owner }),
  agent,
})

/** @throws ApiProblem where the hub refuses or cannot be reached; NotFoundError */
export async function get(options: GetOptions, now = Date.now()): Promise<Printed> {
  const { server, output, token } = options
  const warnings = new Set<string>()
  const client = clientOf(server, token, (text) => warnings.add(text))
  const { rows, columns, documentOf, ...listed } = await listing(client, options, now)
  const notes = [...warnings, ...listed.notes]
  if (isForPrograms(output)) return { text: print(output, [], rows.map(documentOf)), notes }
  return { text: rows.length === 0 ? '' : print(output, columns, rows), notes }
}

const isForPrograms = (output: OutputFormat): output is 'json' | 'yaml' => output === 'json' || output === 'yaml'

/** Between two looks, and after a look that failed. */
const LOOK_EVERY_MS = 2_000

export interface Watching {
  readonly out: (text: string) => void
  readonly note: (text: string) => void
  readonly signal: AbortSignal
  readonly everyMs?: number
}

/**
 * Prints what is there, then each row again when it changes, until the signal: as the hub's stream tells it, or, of more rows than
 * a stream carries, by looking again. A hub that does not answer for a while is waited for.
 * @throws what `get` throws, as long as nothing was ever seen
 */
export async function watch(options: GetOptions, watching: Watching): Promise<void> {
  const { out, note, signal, everyMs = LOOK_EVERY_MS } = watching
  const store = new StoreNotes(note)
  const client = clientOf(options.server, options.token, (text) => store.warned(text))
  const shown = new Map<string, string>()
  const widths: number[] = []
  const tell = (found: Listing, withHeader: boolean): void => {
    show(found, changed(found, shown), { output: options.output, widths, out, withHeader })
    for (const gone of forgotten(found, shown)) note(`${gone} is gone`)
  }
  const first = await listing(client, options, Date.now())
  for (const text of first.notes) note(text)
  tell(first, true)
  const unread = new UnreadNotes(note, first.notes)
  const away = new Away(note)
  await follow(client, first.followed, { signal, away, store, unread, tell: (found) => tell(found, false) })
  while (!signal.aborted) {
    await systemClock.sleep(everyMs, signal)
    if (signal.aborted) return
    try {
      tell(await listing(client, options, Date.now()), false)
      away.end()
    } catch (error) {
      passOver(error, away)
    }
  }
}

/** Says once that the hub is away, and once that it is back. */
class Away {
  readonly #note: (text: string) => void
  #isAway = false

  constructor(note: (text: string) => void) {
    this.#note = note
  }

  begin({ message }: ApiProblem): void {
    if (!this.#isAway) this.#note(`${message}; waiting for it`)
    this.#isAway = true
  }

  end(): void {
    if (this.#isAway) this.#note('the hub answers again')
    this.#isAway = false
  }
}

/** Says once that the hub does not know its fleet or hears nothing new, and once that it does again. */
class StoreNotes {
  readonly #note: (text: string) => void
  #said: string | undefined

  constructor(note: (text: string) => void) {
    this.#note = note
  }

  warned(text: string): void {
    if (text !== this.#said) this.#note(text)
    this.#said = text
  }

  is(store: StoreView): void {
    const text = storeText(store)
    if (text !== undefined) this.warned(text)
    else if (this.#said !== undefined) this.#note('the hub hears everything again')
    this.#said = text
  }
}

/** Says once that rows of a cluster, or of the fleet, are not known any more, and once that they are again. */
class UnreadNotes {
  readonly #note: (text: string) => void
  #said: ReadonlyMap<string, string> = new Map()
  /** said with the list that came first */
  #first: ReadonlySet<string>

  constructor(note: (text: string) => void, first: readonly string[]) {
    this.#note = note
    this.#first = new Set(first)
  }

  are(unread: ReadonlyMap<string, string>): void {
    for (const [cluster, text] of unread)
      if (text !== this.#said.get(cluster) && !this.#first.has(text)) this.#note(text)
    for (const cluster of this.#said.keys())
      if (!unread.has(cluster)) this.#note(`${cluster && `${cluster}: `}what is shown is of now again`)
    this.#said = new Map(unread)
    this.#first = new Set()
  }
}

interface Following {
  readonly signal: AbortSignal
  readonly away: Away
  readonly store: StoreNotes
  readonly unread: UnreadNotes
  readonly tell: (found: Listing) => void
}

/** A list moment by moment; ends where a stream cannot carry it. */
async function follow(client: Client, followed: Listing['followed'], following: Following): Promise<void> {
  while (!following.signal.aborted) if ((await followOnce(client, followed, following)) === 'ended') return
}

async function followOnce(
  client: Client,
  { list, listingOf }: Listing['followed'],
  { signal, away, store, unread, tell }: Following,
): Promise<'ended' | 'anew' | undefined> {
  const { query } = list
  let isMoved = false
  for await (const message of client.stream(query, signal, (problem) => away.begin(problem))) {
    away.end()
    if (message.kind === 'store') store.is(message)
    const verdict = list.take(message)
    if (typeof verdict === 'string') return verdict
    isMoved ||= verdict
    // Where clusters alone are told, each message is a state.
    const isState = query.rows === undefined || message.kind === 'synced'
    if (isState && list.unread) unread.are(list.unread())
    if (!isState || !isMoved) continue
    isMoved = false
    try {
      tell(listingOf(await list.rows()))
    } catch (error) {
      passOver(error, away)
      isMoved = true
    }
    if (list.leastMs > 0) await systemClock.sleep(list.leastMs, signal)
  }
}

/** Says that the hub is away, where that is all there is. @throws what is another fault */
function passOver(error: unknown, away: Away): void {
  if (!(error instanceof ApiProblem) || (error.status !== 0 && error.status < 500)) throw error
  away.begin(error)
}

const AGES = new Set(['AS-OF', 'AGE', 'HEARTBEAT', 'SINCE', 'OLDEST'])

/** Rows that are new, or say something else than when they were last shown: what only ages is no change. */
function changed({ rows, columns, idOf }: Listing, shown: Map<string, string>): readonly never[] {
  const kept = columns.filter(({ header }) => !AGES.has(header))
  return rows.filter((row) => {
    const [id, text] = [idOf(row), JSON.stringify(kept.map(({ value, lasting = value }) => lasting(row)))]
    const isNew = shown.get(id) !== text
    shown.set(id, text)
    return isNew
  })
}

function forgotten({ rows, idOf, isLog }: Listing, shown: Map<string, string>): readonly string[] {
  const there = new Set(rows.map(idOf))
  const gone = [...shown.keys()].filter((id) => !there.has(id))
  for (const id of gone) shown.delete(id)
  return isLog ? [] : gone.map((id) => (JSON.parse(id) as string[]).filter(Boolean).join('/'))
}

function show(
  { columns, documentOf }: Listing,
  rows: readonly never[],
  {
    output,
    widths,
    out,
    withHeader,
  }: {
    readonly output: OutputFormat
    readonly widths: number[]
    readonly out: (text: string) => void
    readonly withHeader: boolean
  },
): void {
  if (isForPrograms(output)) {
    for (const document of rows.map(documentOf))
      out(output === 'json' ? print('json', [], document, 0) : `---\n${print('yaml', [], document)}`)
    return
  }
  const some = columns.filter(({ isWide }) => output === 'wide' || !isWide)
  for (const line of tableLines(some, rows, widths).slice(withHeader ? 0 : 1)) out(line)
}
