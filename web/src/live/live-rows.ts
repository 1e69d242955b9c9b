import { applyRows, type HeldRows, noRows, type RowsMessage, type RowsStreamQuery } from '../contract.ts'

/** Rows of one query, as the stream tells them. What is held is changed in place: `revision` says that it was. */
export interface LiveRows {
  readonly held: HeldRows
  /** rises with each state that is told whole */
  readonly revision: number
}

interface Followed {
  readonly query: RowsStreamQuery
  readonly held: HeldRows
  readonly listeners: Set<(rows: LiveRows) => void>
  revision: number
  isMoved: boolean
}

/** The queries of rows that somebody shows, and what the stream has told of each. */
export class RowQueries {
  readonly #followed = new Map<string, Followed>()
  /** what the open stream carries, by the numbers it uses */
  #carried: readonly string[] = []

  /** @returns the end of it; whether nobody follows the query any more */
  follow(query: RowsStreamQuery, listener: (rows: LiveRows) => void): () => boolean {
    const key = JSON.stringify(query)
    const known = this.#followed.get(key)
    const one = known ?? { query, held: noRows(), listeners: new Set(), revision: 0, isMoved: false }
    this.#followed.set(key, one)
    one.listeners.add(listener)
    if (known?.held.isWhole) listener(known)
    return () => {
      one.listeners.delete(listener)
      if (one.listeners.size > 0 || this.#followed.get(key) !== one) return false
      this.#followed.delete(key)
      return true
    }
  }

  /** The stream does not carry what is followed. */
  get isMissing(): boolean {
    return [...this.#followed.keys()].some((key) => !this.#carried.includes(key))
  }

  /** It carries what nobody follows. */
  get isTooMuch(): boolean {
    return this.#carried.some((key) => !this.#followed.has(key))
  }

  /** The open stream carries some. */
  get isCarried(): boolean {
    return this.#carried.length > 0
  }

  /** A stream is opened with these. */
  carry(): readonly RowsStreamQuery[] {
    const all = [...this.#followed]
    this.#carried = all.map(([key]) => key)
    return all.map(([, { query }]) => query)
  }

  take(message: RowsMessage): void {
    const one = this.#followed.get(this.#carried[message.query] ?? '')
    if (!one) return
    applyRows(one.held, message)
    one.isMoved = true
  }

  /** What was told up to here is one state. */
  sync(): void {
    for (const one of this.#followed.values()) {
      if (!one.isMoved || !(one.held.isWhole || one.held.ended)) continue
      one.isMoved = false
      one.revision += 1
      for (const listener of one.listeners) listener(one)
    }
  }

  /** Nothing of what was told may be shown any more. */
  forget(): void {
    for (const one of this.#followed.values()) Object.assign(one.held, noRows())
  }
}
