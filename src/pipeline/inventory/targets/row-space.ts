import type { Row } from '#extract'

/** Of a row besides its attributes, bytes: its key, and its places in lists and maps. */
const ROW_BYTES = 400
/** Of a value besides its letters. */
const VALUE_BYTES = 16

/** What a row takes of memory, bytes, about. */
export function bytesOfRow({ attributes }: Row): number {
  let bytes = ROW_BYTES
  const left: unknown[] = [attributes]
  while (left.length > 0) {
    const value = left.pop()
    bytes += VALUE_BYTES
    if (typeof value === 'string') bytes += value.length
    else if (Array.isArray(value)) for (const one of value) left.push(one)
    else if (typeof value === 'object' && value !== null)
      for (const [key, one] of Object.entries(value)) {
        bytes += key.length
        left.push(one)
      }
  }
  return bytes
}

/** Memory for rows, and for what has none: `kept` while they stand, `arriving` while a list is read. Each has the whole of it. */
export class RowSpace {
  /** why something has no row */
  readonly noRoom: string
  readonly #maxBytes: number
  #kept = 0
  #arriving = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
    this.noRoom = `the targets of its namespace have more rows than the ${maxBytes} bytes that they may take of the agent's memory (MAX_ROW_BYTES): let profiles take less of each object, choose fewer, or raise it; it is looked at again within ten minutes`
  }

  get keptBytes(): number {
    return this.#kept
  }

  /** @param bytes more than before; fewer always fit. @returns false: there is no room, and nothing was taken */
  keep(bytes: number): boolean {
    if (bytes > 0 && this.#kept + bytes > this.#maxBytes) return false
    this.#kept += bytes
    return true
  }

  /** The same for what is read, until `arrived`. */
  arrive(bytes: number): boolean {
    if (this.#arriving + bytes > this.#maxBytes) return false
    this.#arriving += bytes
    return true
  }

  arrived(bytes: number): void {
    this.#arriving -= bytes
  }
}

/** That of every namespace; targets of the cluster ('') are those of whoever runs the agent, and have no bound. */
export class RowSpaces {
  readonly #maxBytes: number
  readonly #of = new Map<string, RowSpace>()

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  of(namespace: string): RowSpace {
    const known = this.#of.get(namespace) ?? new RowSpace(namespace === '' ? Number.MAX_SAFE_INTEGER : this.#maxBytes)
    this.#of.set(namespace, known)
    return known
  }
}
