import { KOLLECT_API_VERSION } from '#kinds'
import type { RowKey } from '#sinks'
import { type PackedRow, packedJson } from '../store/index.ts'
import { hasMore, MAX_LIMIT, pageOf } from './page.ts'
import type { Question } from './query.ts'
import { readResumeToken, resumeToken } from './resume-token.ts'
import { completeness, pageChecksum, summaryJson, timeText } from './summary.ts'
import type { InventoryView, RowsNow, SeenInventory } from './view.ts'

/** One event, its text in pieces. */
export type EventText = Iterable<string>

/** What a reader holds. */
interface Told {
  /** of the store: everything up to here */
  readonly sequence: number
  /** of the filter: where its inventories are counts */
  readonly mark: string
  readonly isComplete: boolean
}

export interface TellerOptions {
  readonly view: InventoryView
  readonly cluster: string
  readonly question: Question
}

/**
 * What one stream is told. It keeps where its reader is and nothing else: what is to be told is made when it can be, from the rows as they
 * are by then, so that a slow reader costs no memory and gets the newest state.
 *
 *   without deltas: a whole page whenever it differs from the last
 *   with deltas: all pages, then what differs; the pages anew where what differs is not known any more, or is too much
 */
export class Teller {
  readonly #options: TellerOptions
  #page: string | undefined
  #told: Told | undefined

  constructor(options: TellerOptions) {
    this.#options = options
    const { question, view } = options
    if (!question.deltas || question.resume === undefined) return
    const { filter, sequence: newest } = view.read(question.filter)
    const sequence = readResumeToken(question.resume, { epoch: view.epoch, mark: filter.mark })
    // Whether it was complete by then is not known: it is told again.
    if (sequence !== undefined && sequence <= newest) this.#told = { sequence, mark: filter.mark, isComplete: false }
  }

  /** The events that lead a reader to now; each is to be written before the next is asked for. */
  *news(): Generator<EventText> {
    const { deltas, filter } = this.#options.question
    const read = this.#options.view.read(filter)
    if (!deltas) yield* this.#wholePage(read)
    else if (this.#told?.mark !== read.filter.mark) yield* this.#allPages()
    else yield* this.#difference(read, this.#told)
  }

  *#wholePage(read: RowsNow): Generator<EventText> {
    const { question } = this.#options
    const page = pageOf(read.rows(), question.paging)
    if (page.total === 0 && read.waitsFor.length > 0 && this.#page === undefined) return // nothing is known yet
    const inventories = this.#inventories()
    const mark = JSON.stringify([pageChecksum(page), page.total, read.waitsFor.length, inventories?.map(exported)])
    if (mark === this.#page) return
    this.#page = mark
    yield this.#event('inventory', this.#id(read), this.#summary(read, page, inventories))
  }

  /** Page by page, each as it is by then: what changes between them follows as a difference from the beginning. */
  *#allPages(): Generator<EventText> {
    const { view, question } = this.#options
    const first = view.read(question.filter)
    this.#told = undefined
    let after: RowKey | undefined
    for (;;) {
      const read = view.read(question.filter)
      const page = pageOf(read.rows(), { limit: question.paging.limit, offset: 0, ...(after && { after }) })
      if (page.total === 0 && read.waitsFor.length > 0) return // nothing is known yet
      const isLast = !hasMore(page)
      const id = isLast ? this.#id(first) : undefined
      yield this.#event('inventory', id, this.#summary(read, page, this.#inventories()))
      if (isLast) {
        const { sequence, filter } = first
        this.#told = { sequence, mark: filter.mark, isComplete: read.waitsFor.length === 0 }
        return
      }
      after = page.items.at(-1)
    }
  }

  *#difference(read: RowsNow, told: Told): Generator<EventText> {
    const { view, question, cluster } = this.#options
    const departed = view.departedSince(told.sequence)
    const changed = changedRows(read, told.sequence)
    const put = changed.filter(({ isIn }) => isIn).map(({ row }) => row)
    const removed: RowKey[] = [
      ...(departed ?? []).filter(({ key }) => read.filter.hasKey(key)).map(({ key }) => key),
      // What does not match any more, though it is there.
      ...changed.filter(({ isIn }) => !isIn).map(({ row }) => row),
    ]
    if (!departed || put.length > MAX_LIMIT || removed.length > MAX_LIMIT) {
      yield* this.#allPages()
      return
    }
    const isComplete = read.waitsFor.length === 0
    this.#told = { sequence: read.sequence, mark: read.filter.mark, isComplete }
    if (put.length === 0 && removed.length === 0 && isComplete === told.isComplete) return
    const head = {
      schemaVersion: KOLLECT_API_VERSION,
      cluster,
      updatedAt: timeText(read.now),
      ...completeness(read, question.filter),
    }
    yield this.#event('delta', this.#id(read), deltaJson(head, put, removed))
  }

  #summary(read: RowsNow, page: ReturnType<typeof pageOf>, inventories: readonly SeenInventory[] | undefined) {
    const { cluster, question } = this.#options
    return summaryJson({ cluster, question, read, page, ...(inventories && { inventories }) })
  }

  #inventories(): readonly SeenInventory[] | undefined {
    const { view, question } = this.#options
    return view.named(question.filter)
  }

  #id({ sequence, filter }: RowsNow): string {
    return resumeToken({ epoch: this.#options.view.epoch, sequence, mark: filter.mark })
  }

  /** @param id undefined: who is cut off here holds a part only, and must not go on from an earlier id either */
  *#event(name: string, id: string | undefined, data: Iterable<string>): Generator<string> {
    yield `id: ${id ?? ''}\nevent: ${name}\ndata: `
    yield* data // JSON has no line breaks of its own
    yield '\n\n'
  }
}

const exported = ({ bindings }: SeenInventory) =>
  bindings?.map(({ name, state, lastExportAt }) => [name, state, lastExportAt])

/** Rows that came or changed, of those whose keys match, with whether they match. */
function changedRows(read: RowsNow, since: number): readonly { readonly row: PackedRow; readonly isIn: boolean }[] {
  const changed: { readonly row: PackedRow; readonly isIn: boolean }[] = []
  for (const row of read.rowsOfKeys())
    if (row.sequence > since) changed.push({ row, isIn: read.filter.hasContent(row) })
  return changed
}

function* deltaJson(head: object, put: readonly PackedRow[], removed: readonly RowKey[]): Generator<string> {
  yield `${JSON.stringify(head).slice(0, -1)},"put":[`
  for (const [at, row] of put.entries()) yield `${at > 0 ? ',' : ''}${packedJson(row)}`
  const keys = removed.map(({ targetNamespace, targetName, namespace, name, uid }) => ({
    ...{ targetNamespace, targetName, namespace, name, uid },
  }))
  yield `],"removed":${JSON.stringify(keys)}}`
}
