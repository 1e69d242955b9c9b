import type { ApiProblem, RowsPageView, SourceView, TypeOnClusterView } from '../contract.ts'
import { countedColumns } from '../model/recount.ts'
import type { PackedRows } from './packed-row.ts'
import { mayKeep, problemOf } from './problem.ts'
import { RowList, type ShownRow } from './row-list.ts'

export type { ShownRow } from './row-list.ts'

export const firstPageSize = 200
/** The second page fills the first up to this. */
export const pageSize = 1000

/** What an answer says of its rows: of one cluster, or of many. */
export interface RowsPage {
  readonly total: number
  readonly next: string | null
  /** null where no cluster has the type */
  readonly source: SourceView | null
  /** the clusters the rows are of, with how fresh each is */
  readonly on: readonly TypeOnClusterView[]
  /** of rows of one cluster: where others name them */
  readonly referredBy?: RowsPageView['referredBy']
}

export interface RowsAnswer extends RowsPage {
  readonly items: readonly ShownRow[] | PackedRows
}

/** Where a page begins. */
export interface PageStart {
  /** so many rows stand in front of it */
  readonly at: number
  /** asks for it; undefined: the first */
  readonly cursor: string | undefined
}

export type Paged =
  | { readonly state: 'waiting' }
  | { readonly state: 'failed'; readonly problem: ApiProblem }
  | {
      readonly state: 'here'
      /** from the first on, without a hole */
      readonly rows: RowList
      /** of the pages that were read, and of the one behind them */
      readonly starts: readonly PageStart[]
      /** the newest answer: what goes for all rows */
      readonly page: RowsPage
      readonly isWhole: boolean
      /** when the look that brought them began, ms of `performance.now` */
      readonly readAt: number
      /** why the last look brought nothing new */
      readonly problem: ApiProblem | null
    }

interface RowPagesOptions {
  readonly ask: (page: { cursor?: string; limit: number }, signal: AbortSignal) => Promise<RowsAnswer>
  readonly onChange: (paged: Paged) => void
  /** of the first page; default `firstPageSize` */
  readonly firstSize?: number
  /** between two refreshes in turn, ms; default 1000 */
  readonly leastMs?: number
  /** the first so many rows are never packed; default `unpackedRows` */
  readonly unpacked?: number
}

/** The answers up to here. */
interface Read {
  readonly rows: RowList
  readonly readAt: number
  /** how many rows came, those of two answers twice: that is how far it was read */
  readonly count: number
  readonly page: RowsPage
  readonly starts: readonly PageStart[]
  readonly next: string | null
}

/** What takes long to read is read again so soon after it was read, ms. */
const longestMs = 10_000

const firstStart: readonly PageStart[] = [{ at: 0, cursor: undefined }]

/**
 * Rows of one question, page after page as far as somebody looks. A refresh reads what is loaded anew and puts it in place at
 * once, so that nothing is shown twice or missing between two pages of different times.
 */
export class RowPages {
  readonly #options: RowPagesOptions
  readonly #asking = new AbortController()
  #read: Read | null = null
  #shown: Paged = { state: 'waiting' }
  #wanted = 1
  #stale = true
  /** the look that is on its way */
  #look: AbortController | undefined
  /** since it began */
  #isAskedAgain = false
  /** the refresh that was asked for and waits for its turn */
  #turn: ReturnType<typeof setTimeout> | undefined
  #renewed = { at: Number.NEGATIVE_INFINITY, tookMs: 0 }

  constructor(options: RowPagesOptions) {
    this.#options = options
  }

  /** At least so many rows, as far as there are. */
  want(count: number): void {
    if (count <= this.#wanted) return
    this.#wanted = count
    void this.#run()
  }

  refresh(): void {
    this.#stale = true
    this.#isAskedAgain = true
    void this.#run()
  }

  /** The same, and does not wait for what is on its way: its connection may be dead. */
  again(): void {
    this.#look?.abort()
    this.refresh()
  }

  get isAsking(): boolean {
    return this.#look !== undefined
  }

  /**
   * Refreshes; later, where what is loaded takes long to read and was just read: a twentieth of the time is spent on it, and more where
   * it would be older than `longestMs` else.
   */
  refreshInTurn(): void {
    if (this.#turn !== undefined) return
    const { at, tookMs } = this.#renewed
    const waitMs = at + Math.max(Math.min(tookMs * 19, longestMs), this.#options.leastMs ?? 1000) - performance.now()
    if (waitMs <= 0) {
      this.refresh()
      return
    }
    this.#turn = setTimeout(() => {
      this.#turn = undefined
      this.refresh()
    }, waitMs)
  }

  end(): void {
    this.#asking.abort()
    clearTimeout(this.#turn)
  }

  async #run(): Promise<void> {
    const { signal } = this.#asking
    if (this.#look) return
    while (!signal.aborted && (this.#lacks || this.#stale)) {
      this.#look = new AbortController()
      this.#isAskedAgain = false
      try {
        // Whoever scrolls waits for nothing else.
        if (this.#lacks) this.#read = await this.#readOn()
        else await this.#renew()
        if (!signal.aborted) this.#show()
      } catch (cause) {
        // What was asked for again meanwhile is another look, which may be answered.
        if (this.#isAskedAgain) continue
        if (!signal.aborted) this.#fail(problemOf(cause))
        break
      }
    }
    this.#look = undefined
  }

  async #renew(): Promise<void> {
    const began = performance.now()
    this.#stale = false
    const read = await this.#readAnew(Math.max(this.#read?.count ?? 0, 1))
    if (this.#lacks) this.#stale = true
    else this.#read = read
    this.#renewed = { at: performance.now(), tookMs: performance.now() - began }
  }

  /** The pages again, until there are so many rows or something else is wanted. */
  async #readAnew(least: number): Promise<Read> {
    const readAt = performance.now()
    const first = await this.#ask(0)
    const { unpacked } = this.#options
    const rows = RowList.builder({
      counted: countedColumns(first.source),
      ...(unpacked !== undefined && { unpacked }),
      ...(this.#read && { before: this.#read.rows }),
    })
    let [answer, count, starts] = [first, 0, firstStart]
    for (;;) {
      const { items, ...page } = answer
      rows.add(items)
      count += items.length
      const next = items.length === 0 ? null : page.next
      if (next !== null) starts = [...starts, { at: count, cursor: next }]
      if (count >= least || next === null || this.#lacks)
        return { rows: rows.build(), readAt, count, page, starts, next }
      answer = await this.#ask(count, next)
    }
  }

  /** One page more. A row that moved between two answers comes with both; the later one is true, its first place stays. */
  async #readOn(): Promise<Read | null> {
    const before = this.#read
    if (before === null || before.next === null) return before
    const { items, ...page } = await this.#ask(before.count, before.next)
    const [count, next] = [before.count + items.length, items.length === 0 ? null : page.next]
    const starts = next === null ? before.starts : [...before.starts, { at: count, cursor: next }]
    return { ...before, rows: before.rows.with(items), count, page, starts, next }
  }

  /** The page behind so many rows. */
  #ask(count: number, cursor?: string): Promise<RowsAnswer> {
    const limit = cursor === undefined ? (this.#options.firstSize ?? firstPageSize) : pageSize - (count % pageSize)
    const { signal } = this.#asking
    const either = this.#look ? AbortSignal.any([signal, this.#look.signal]) : signal
    return this.#options.ask({ limit, ...(cursor !== undefined && { cursor }) }, either)
  }

  /** More rows are wanted than are loaded, and there are more. */
  get #lacks(): boolean {
    return this.#read !== null && this.#read.count < this.#wanted && this.#read.next !== null
  }

  #show(): void {
    if (!this.#read) return
    const { rows, page, starts, next, readAt } = this.#read
    this.#tell({ state: 'here', rows, starts, page, isWhole: next === null, readAt, problem: null })
  }

  #fail(problem: ApiProblem): void {
    if (this.#shown.state === 'here' && mayKeep(problem)) this.#tell({ ...this.#shown, problem })
    else this.#tell({ state: 'failed', problem })
  }

  #tell(shown: Paged): void {
    this.#shown = shown
    this.#options.onChange(shown)
  }
}
