/** Values by row. A list is one. */
export interface Values<T> extends Iterable<T> {
  readonly length: number
  /** @param row from 0, below the length */
  at(row: number): T | undefined
}

/** So few texts are kept as they are. */
const MIN_JOINED = 32
/** Longer ones are kept as they are: one that is read of them would keep all alive. */
const MAX_JOINED_CHARACTERS = 64 * 1024
const END = '\n'

/**
 * Texts of one chunk as one text, which is read where it is asked for: a million names are two thousand objects for what collects
 * garbage. A text that was read keeps the whole alive.
 */
export class JoinedTexts<T extends string | null = string> implements Values<T> {
  /** each text with a line break behind it; of null nothing at all */
  readonly text: string
  /** where in the text each begins; and the end */
  readonly starts: Uint16Array | Uint32Array

  constructor(text: string, starts: Uint16Array | Uint32Array) {
    this.text = text
    this.starts = starts
  }

  get length(): number {
    return this.starts.length - 1
  }

  at(row: number): T | undefined {
    const [from, to] = [this.starts[row] as number, this.starts[row + 1] as number]
    // What was joined is of the type that comes out.
    return (from === to ? null : this.text.slice(from, to - 1)) as T
  }

  /** Of memory, about. */
  get bytes(): number {
    return 250 + this.text.length + this.starts.byteLength
  }

  equals(other: JoinedTexts<T>): boolean {
    const { starts, text } = this
    if (text !== other.text || starts.length !== other.starts.length) return false
    // With a line break in a text others may be joined alike.
    for (let row = 0; row < starts.length; row++) if (starts[row] !== other.starts[row]) return false
    return true
  }

  *[Symbol.iterator](): Generator<T> {
    for (let row = 0; row < this.length; row++) yield this.at(row) as T
  }
}

/** The same values as one text where they are texts, or null, and many but not large. */
export function joinedTexts<T>(values: readonly T[]): Values<T> {
  const { length } = values
  if (length < MIN_JOINED) return values
  let characters = 0
  for (const value of values) {
    if (typeof value === 'string') characters += value.length + 1
    else if (value !== null) return values
  }
  if (characters > MAX_JOINED_CHARACTERS) return values
  const starts = characters < 2 ** 16 ? new Uint16Array(length + 1) : new Uint32Array(length + 1)
  const texts: string[] = []
  let at = 0
  for (let row = 0; row < length; row++) {
    const value = values[row]
    if (typeof value === 'string') {
      texts.push(value)
      at += value.length + 1
    }
    starts[row + 1] = at
  }
  // They were looked at above: all are texts, or null.
  return new JoinedTexts(texts.join(END) + (texts.length > 0 ? END : ''), starts) as unknown as Values<T>
}
