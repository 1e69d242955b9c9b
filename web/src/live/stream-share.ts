/**
 * One stream for all tabs of a browser: a server may be asked for few connections at once by one browser, and a stream holds one
 * for good.
 *
 *   tab ──open(url), close──▶ worker ── what all of them ask for ──▶ one EventSource
 *   tab ◀── messages, the numbers of rows as its own address has them ──┘
 *
 * Each tab that comes has the stream opened anew, by whoever is signed in now, and all of them are given the picture again.
 */

/** What a tab tells the worker. */
export type FromTab =
  | { readonly op: 'open'; readonly id: string; readonly url: string; readonly lock: string }
  | { readonly op: 'close'; readonly id: string }

/** What the worker tells a tab. */
export type ToTab =
  | {
      readonly op: 'message'
      readonly id: string
      readonly kind: string
      readonly data: string
      readonly lastEventId: string
    }
  | { readonly op: 'error'; readonly id: string; readonly readyState: number }

export const streamKinds = [
  ...(['snapshot', 'change', 'rows', 'rowsChange', 'rowsEnd', 'synced'] as const),
  ...(['store', 'heartbeat', 'access', 'reset'] as const),
] as const

interface Reader {
  readonly url: URL
  readonly tell: (message: ToTab) => void
  /** the open stream was opened for it: what another one says, and what waited there, is none of its */
  isIn: boolean
}

interface ShareOptions {
  readonly openStream: (url: string) => EventSource
  /** what comes together is opened together, ms; default 10 */
  readonly gatherMs?: number
  /** the stream carries what nobody reads for so long at most, ms; default 60 s */
  readonly lingerMs?: number
}

/** The most that one address may ask for; further readers have a stream of their own. */
const MOST_CLUSTERS = 32
const MOST_ROWS = 16

/** The readers of one path of the hub, and the stream that is opened for them. */
export class StreamShare {
  readonly #options: ShareOptions
  readonly #readers = new Map<string, Reader>()
  #source: EventSource | undefined
  /** queries of rows in the order of the open stream */
  #rows: readonly string[] = []
  #gathering: ReturnType<typeof setTimeout> | undefined
  #lingering: ReturnType<typeof setTimeout> | undefined

  constructor(options: ShareOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#readers.size
  }

  /** One address can ask for all that is read, and for this. */
  hasRoomFor(url: string): boolean {
    const all = [...this.#readers.values()].map((reader) => reader.url)
    const clusters = new Set([...all, new URL(url)].flatMap((one) => one.searchParams.getAll('cluster')))
    const rows = new Set([...all, new URL(url)].flatMap((one) => one.searchParams.getAll('rows')))
    return clusters.size <= MOST_CLUSTERS && rows.size <= MOST_ROWS
  }

  has(id: string): boolean {
    return this.#readers.has(id)
  }

  add(id: string, url: string, tell: (message: ToTab) => void): void {
    this.#readers.set(id, { url: new URL(url), tell, isIn: false })
    clearTimeout(this.#lingering)
    this.#gathering ??= setTimeout(() => this.#open(), this.#options.gatherMs ?? 10)
  }

  remove(id: string): void {
    if (!this.#readers.delete(id)) return
    if (this.#readers.size > 0) {
      clearTimeout(this.#lingering)
      this.#lingering = setTimeout(() => this.#open(), this.#options.lingerMs ?? 60_000)
    } else this.#close()
  }

  #close(): void {
    this.#source?.close()
    this.#source = undefined
    clearTimeout(this.#gathering)
    clearTimeout(this.#lingering)
    this.#gathering = undefined
  }

  #open(): void {
    this.#close()
    const readers = [...this.#readers.values()]
    const urls = readers.map(({ url }) => url)
    const [first] = urls
    if (!first) return
    for (const reader of readers) reader.isIn = true
    const asked = new URL(first)
    asked.search = ''
    const both = (name: string) => [...new Set(urls.flatMap((url) => url.searchParams.getAll(name)))]
    this.#rows = both('rows')
    for (const name of ['cluster', 'type', 'rows'])
      for (const value of both(name)) asked.searchParams.append(name, value)
    // Who reads alone goes on where it stood.
    const last = urls.length === 1 ? first.searchParams.get('lastEventId') : null
    if (last) asked.searchParams.set('lastEventId', last)
    const source = this.#options.openStream(asked.href)
    this.#source = source
    for (const kind of streamKinds)
      source.addEventListener(kind, (event) => {
        if (source === this.#source) this.#hear(kind, event as MessageEvent<string>)
      })
    source.addEventListener('error', () => {
      if (source !== this.#source) return
      const { readyState } = source
      for (const [id, { tell, isIn }] of this.#readers) if (isIn) tell({ op: 'error', id, readyState })
    })
  }

  #hear(kind: (typeof streamKinds)[number], { data, lastEventId }: MessageEvent<string>): void {
    const isOfRows = kind === 'rows' || kind === 'rowsChange' || kind === 'rowsEnd'
    const query = isOfRows ? this.#rows[numberIn(data)] : undefined
    for (const [id, { url, tell, isIn }] of this.#readers) {
      if (!isIn) continue
      if (!isOfRows) tell({ op: 'message', id, kind, data, lastEventId })
      else if (query !== undefined) {
        const own = url.searchParams.getAll('rows').indexOf(query)
        if (own >= 0) tell({ op: 'message', id, kind, data: renumbered(data, own), lastEventId })
      }
    }
  }
}

/** The number stands at the beginning, before anything that somebody else wrote. */
const number = /^\{"query":(\d+)/
const numberIn = (data: string): number =>
  Number(number.exec(data)?.[1] ?? (JSON.parse(data) as { query: number }).query)
const renumbered = (data: string, own: number): string =>
  number.test(data)
    ? data.replace(number, `{"query":${own}`)
    : JSON.stringify({ ...(JSON.parse(data) as object), query: own })
