import { applyRows, type HeldRows, noRows, type RowsMessage, type RowsStreamQuery } from '../contract.ts'

/** Rows of one query, as the stream tells them. What is held is changed in place: `revision` says that it was. */
export interface LiveRows {
  readonly held: HeldRows
  /** rises with each state that is told whole */
  readonly revision: number
}

/** Names rows outside of a query of which is wanted to be told as well, by `rowKey`; what matters most comes first. */
export type RowsBesides = () => readonly string[]

interface Followed {
  readonly query: RowsStreamQuery
  readonly besides: Set<RowsBesides>
  /** of these, the ones that the open stream was asked for */
  also: readonly string[]
  /** the open stream has begun with its rows */
  hasBegun: boolean
  readonly held: HeldRows
  readonly listeners: Set<(rows: LiveRows) => void>
  revision: number
  isMoved: boolean
}

/** A stream takes no more of them. */
const mostAlso = 100
/** Of all queries together as an address has them: proxies take one of 8 KB at most. */
const mostLength = 7800

/** The queries of rows that somebody shows, and what the stream has told of each. */
export class RowQueries {
  readonly #followed = new Map<string, Followed>()
  /** what the open stream carries, by the numbers it uses */
  #carried: readonly string[] = []

  /** @returns the end of it; whether nobody follows the query any more */
  follow(query: RowsStreamQuery, listener: (rows: LiveRows) => void, besides?: RowsBesides): () => boolean {
    const key = JSON.stringify(query)
    const known = this.#followed.get(key)
    const one = known ?? {
      ...{ query, held: noRows(), listeners: new Set(), revision: 0, isMoved: false },
      ...{ besides: new Set(), also: [], hasBegun: false },
    }
    this.#followed.set(key, one)
    one.listeners.add(listener)
    if (besides) one.besides.add(besides)
    if (known?.held.isWhole) listener(known)
    return () => {
      one.listeners.delete(listener)
      if (besides) one.besides.delete(besides)
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
    const all = [...this.#followed.values()]
    this.#carried = [...this.#followed.keys()]
    const also = alsoOf(all)
    return all.map((one, at) => {
      one.also = also[at] ?? []
      one.hasBegun = false
      return one.also.length > 0 ? { ...one.query, also: one.also } : one.query
    })
  }

  /** Rows besides are shown of which the open stream, where it begins anew or is resumed by itself, would not tell. */
  get isBesidesMissing(): boolean {
    const all = [...this.#followed.values()]
    return alsoOf(all).some((keys, at) => keys.some((key) => !all[at]?.also.includes(key)))
  }

  /** @returns whether the rows begin a second time on the open stream: what it told of rows besides is forgotten */
  take(message: RowsMessage): boolean {
    const one = this.#followed.get(this.#carried[message.query] ?? '')
    if (!one) return false
    const isBeginning = message.kind === 'rows' && message.from === 0
    const isAgain = isBeginning && one.hasBegun
    one.hasBegun ||= isBeginning
    applyRows(one.held, message)
    one.isMoved = true
    return isAgain
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

/** Of each query as many rows besides as can be asked for. */
function alsoOf(all: readonly Followed[]): readonly (readonly string[])[] {
  const lengthOf = ({ query }: Followed) => encodeURIComponent(JSON.stringify(query)).length
  let left = mostLength - all.reduce((sum, one) => sum + lengthOf(one), 0)
  return all.map(({ query, besides }) => {
    const some: string[] = []
    if (query.limit === undefined) return some
    for (const key of new Set([...besides].flatMap((keys) => keys()))) {
      // Within the value of a value.
      left -= encodeURIComponent(encodeURIComponent(key)).length + '%26also%3D'.length
      if (some.length === mostAlso || left < 0) break
      some.push(key)
    }
    return some
  })
}
