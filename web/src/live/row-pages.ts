import type { ApiProblem, RowsPageView, SourceView, TypeOnClusterView } from '../contract.ts'
import { mayKeep, problemOf } from './problem.ts'
import { RowList, type ShownRow } from './row-list.ts'

export type { ShownRow } from './row-list.ts'

export const firstPageSize = 200
/** The second page fills the first up to this. */
export const pageSize = 1000

/** One answer: rows of one cluster, or of many. */
export interface RowsPage {
  readonly items: readonly ShownRow[]
  readonly total: number
  readonly next: string | null
  /** null where no cluster has the type */
  readonly source: SourceView | null
  /** the clusters the rows are of, with how fresh each is */
  readonly on: readonly TypeOnClusterView[]
  /** of rows of one cluster: where others name them */
  readonly referredBy?: RowsPageView['referredBy']
}

export type Paged =
  | { readonly state: 'waiting' }
  | { readonly state: 'failed'; readonly problem: ApiProblem }
  | {
      readonly state: 'here'
      /** from the first on, without a hole */
      readonly rows: RowList
      /** the newest answer: what goes for all rows */
      readonly page: RowsPage
      readonly isWhole: boolean
      /** why the last look brought nothing new */
      readonly problem: ApiProblem | null
    }

interface RowPagesOptions {
  readonly ask: (page: { cursor?: string; limit: number }, signal: AbortSignal) => Promise<RowsPage>
  readonly onChange: (paged: Paged) => void
  /** of the first page; default `firstPageSize` */
  readonly firstSize?: number
  /** between two refreshes in turn, ms; default 1000 */
  readonly leastMs?: number
}

/**
 * Rows of one question, page after page as far as somebody looks. A refresh reads what is loaded anew and puts it in place at
 * once, so that nothing is shown twice or missing between two pages of different times.
 */
export class RowPages {
  readonly #options: RowPagesOptions
  readonly #asking = new AbortController()
  #pages: readonly RowsPage[] = []
  /** rows of these pages */
  #rows = { of: [] as readonly RowsPage[], list: RowList.empty }
  #shown: Paged = { state: 'waiting' }
  #wanted = 1
  #stale = true
  #running = false
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
    void this.#run()
  }

  /** Refreshes; later, where what is loaded takes long to read and was just read: at most a tenth of the time is spent on it. */
  refreshInTurn(): void {
    if (this.#turn !== undefined) return
    const { at, tookMs } = this.#renewed
    const waitMs = at + Math.max(tookMs * 9, this.#options.leastMs ?? 1000) - performance.now()
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
    if (this.#running || signal.aborted) return
    this.#running = true
    try {
      while (!signal.aborted) {
        // Whoever scrolls waits for nothing else.
        if (this.#lacks) this.#pages = await this.#read(this.#pages, this.#loaded + 1)
        else if (this.#stale) await this.#renew()
        else break
        if (!signal.aborted) this.#show()
      }
    } catch (cause) {
      if (!signal.aborted) this.#fail(problemOf(cause))
    } finally {
      this.#running = false
    }
  }

  async #renew(): Promise<void> {
    const began = performance.now()
    this.#stale = false
    const count = Math.max(this.#loaded, 1)
    const rows = RowList.builder()
    const pages = await this.#read([], count, { isOver: () => this.#lacks, onRows: rows.add })
    if (this.#lacks) this.#stale = true
    else {
      this.#pages = pages
      this.#rows = { of: pages, list: rows.build() }
    }
    this.#renewed = { at: performance.now(), tookMs: performance.now() - began }
  }

  /** These pages and further ones, until there are so many rows or something else is wanted. */
  async #read(
    before: readonly RowsPage[],
    count: number,
    { isOver = () => false, onRows }: { isOver?: () => boolean; onRows?: (rows: readonly ShownRow[]) => void } = {},
  ): Promise<readonly RowsPage[]> {
    const pages = [...before]
    let loaded = pages.reduce((sum, { items }) => sum + items.length, 0)
    let next = pages.at(-1)?.next
    while (loaded < count && next !== null && !isOver()) {
      const page = await this.#options.ask(
        {
          limit: pages.length === 0 ? (this.#options.firstSize ?? firstPageSize) : pageSize - (loaded % pageSize),
          ...(next !== undefined && { cursor: next }),
        },
        this.#asking.signal,
      )
      pages.push(page)
      onRows?.(page.items)
      loaded += page.items.length
      next = page.items.length === 0 ? null : page.next
    }
    return pages
  }

  /** More rows are wanted than are loaded, and there are more. */
  get #lacks(): boolean {
    return this.#pages.length > 0 && this.#loaded < this.#wanted && this.#next !== null
  }

  get #loaded(): number {
    return this.#pages.reduce((sum, { items }) => sum + items.length, 0)
  }

  get #next(): string | null {
    return this.#pages.at(-1)?.next ?? null
  }

  #show(): void {
    const [first, last] = [this.#pages[0], this.#pages.at(-1)]
    if (!first || !last) return
    // A row that moved between two answers comes with both; the later one is true, its first place stays.
    const { of, list } = this.#rows
    const isLonger = of.every((page, place) => page === this.#pages[place])
    const added = this.#pages.slice(isLonger ? of.length : 0).flatMap(({ items }) => items)
    const rows = isLonger && added.length === 0 ? list : (isLonger ? list : RowList.empty).with(added)
    this.#rows = { of: this.#pages, list: rows }
    this.#tell({ state: 'here', rows, page: last, isWhole: this.#next === null, problem: null })
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
