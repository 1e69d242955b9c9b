import { BodyBuffer, type BodySink } from './http.ts'

const [QUOTE, BACKSLASH, COMMA] = [0x22, 0x5c, 0x2c]
const [BRACKET, BRACKET_END, BRACE, BRACE_END] = [0x5b, 0x5d, 0x7b, 0x7d]
const ITEMS = 'items'
/** Of the list itself, and of its items. */
const [IN_LIST, IN_ITEMS] = [1, 2]

/**
 * Reads a list of JSON while it comes: each object of its `items` is read when its last byte is there. Holds one object and
 * what stands around the items; what it takes for an object, a parser must take as well.
 */
export class JsonListDecoder<T> implements BodySink {
  readonly #readItem: (bytes: Buffer) => T
  readonly #items: T[] = []
  /** the list without its items */
  readonly #around = new BodyBuffer()
  /** the beginning of an item that is not all there */
  readonly #begun = new BodyBuffer()
  #depth = 0
  #isText = false
  #isEscaped = false
  #isInItems = false
  /** since the last item */
  #commas = 0
  /** the last text of the list itself, as far as it matters */
  #word = ''
  #isBroken = false
  #error: unknown

  /** @param readItem its errors are thrown by `end` */
  constructor(readItem: (bytes: Buffer) => T) {
    this.#readItem = readItem
  }

  push(chunk: Buffer): void {
    if (this.#error !== undefined || this.#isBroken) return
    try {
      this.#scan(chunk)
    } catch (error) {
      this.#error = error
    }
  }

  /**
   * What stands around the items, as JSON, and the items.
   * @returns undefined where it is no JSON
   * @throws what reading an item threw
   */
  end(): { readonly around: Buffer; readonly items: readonly T[] } | undefined {
    if (this.#error !== undefined) throw this.#error
    return this.#isBroken || this.#isInItems ? undefined : { around: this.#around.bytes, items: this.#items }
  }

  #scan(chunk: Buffer): void {
    let from = 0
    for (let at = 0; at < chunk.length; at++) {
      const byte = chunk[at] as number
      if (this.#isText) this.#readText(byte)
      else if (byte === QUOTE) {
        this.#isText = true
        if (this.#depth === IN_LIST) this.#word = ''
        this.#isBroken ||= this.#isBetween
      } else if (byte === BRACE || byte === BRACKET) {
        if (this.#isBetween) {
          this.#begin(byte)
          from = at
        }
        this.#depth++
        if (byte === BRACKET && this.#depth === IN_ITEMS && this.#word === ITEMS) {
          this.#around.push(chunk.subarray(from, at + 1))
          this.#isInItems = true
          this.#word = ''
        }
      } else if (byte === BRACE_END || byte === BRACKET_END) {
        this.#depth--
        if (this.#isBetween) this.#take(chunk.subarray(from, at + 1))
        else if (this.#isInItems && this.#depth < IN_ITEMS) {
          this.#isInItems = false
          this.#isBroken ||= this.#commas > 0
          from = at
        }
      } else if (this.#isBetween) {
        if (byte === COMMA) this.#commas++
        else this.#isBroken ||= byte > 0x20
      }
    }
    if (!this.#isInItems) this.#around.push(chunk.subarray(from))
    else if (!this.#isBetween) this.#begun.push(chunk.subarray(from))
  }

  #readText(byte: number): void {
    if (this.#isEscaped) this.#isEscaped = false
    else if (byte === BACKSLASH) this.#isEscaped = true
    else if (byte === QUOTE) this.#isText = false
    else if (this.#depth === IN_LIST && this.#word.length <= ITEMS.length) this.#word += String.fromCharCode(byte)
  }

  /** Among the items, and in none of them. */
  get #isBetween(): boolean {
    return this.#isInItems && this.#depth === IN_ITEMS
  }

  #begin(byte: number): void {
    this.#isBroken ||= byte !== BRACE || this.#commas !== (this.#items.length > 0 ? 1 : 0)
    this.#commas = 0
  }

  #take(end: Buffer): void {
    if (this.#isBroken) return
    this.#begun.push(end)
    this.#items.push(this.#readItem(this.#begun.bytes))
    this.#begun.release()
  }
}
