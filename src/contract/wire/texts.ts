import type { Reader, Writer } from './bytes.ts'
import { WireError } from './errors.ts'

const UTF8 = 0
const UTF16 = 1

/** Texts are decoded together and then cut, up to this many bytes: each keeps the whole run in memory as long as it lives. */
const RUN_BYTES = 64 * 1024
const MOST_TEXTS = 2_000_000

const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Every text of a body, once; elsewhere its place in the table stands for it. */
export class TextTable {
  readonly #places = new Map<string, number>()

  get size(): number {
    return this.#places.size
  }

  place(text: string): number {
    const known = this.#places.get(text)
    if (known !== undefined) return known
    if (this.#places.size === MOST_TEXTS) throw new WireError('the batch has too many texts for a body')
    this.#places.set(text, this.#places.size)
    return this.#places.size - 1
  }

  write(to: Writer): void {
    const texts = [...this.#places.keys()]
    const joined = texts.join('')
    const utf8 = encoder.encode(joined)
    // Half a surrogate pair is no character, has no UTF-8, and would come back as another.
    const isUtf8 = utf8.length === joined.length || texts.every((text) => decoder.decode(encoder.encode(text)) === text)
    to.u8(isUtf8 ? UTF8 : UTF16)
    to.varint(texts.length)
    if (!isUtf8) {
      for (const text of texts) to.varint(text.length)
      for (let i = 0; i < joined.length; i++) {
        const unit = joined.charCodeAt(i)
        to.u8(unit & 0xff)
        to.u8(unit >> 8)
      }
      return
    }
    const isAscii = utf8.length === joined.length
    for (const text of texts) to.varint(isAscii ? text.length : encoder.encode(text).length)
    to.raw(utf8)
  }
}

/** @throws WireError */
export function readTexts(from: Reader): readonly string[] {
  const encoding = from.u8()
  if (encoding > UTF16) throw new WireError(`the encoding ${encoding} of texts is unknown`)
  const count = from.varint()
  if (count > MOST_TEXTS) throw new WireError('the body has too many texts')
  if (count > from.left) throw new WireError('the body ends too early')
  const ends: number[] = new Array(count)
  let end = 0
  for (let i = 0; i < count; i++) {
    end += from.varint()
    ends[i] = end
  }
  return encoding === UTF8 ? utf8Texts(from, ends, end) : utf16Texts(from, ends, end)
}

function utf8Texts(from: Reader, ends: readonly number[], size: number): readonly string[] {
  const start = from.take(size)
  const blob = from.bytes.subarray(start, start + size)
  const texts: string[] = new Array(ends.length)
  for (let first = 0; first < ends.length; ) {
    const begin = first === 0 ? 0 : ends[first - 1]!
    let after = first + 1
    while (after < ends.length && ends[after]! - begin <= RUN_BYTES) after++
    cutRun(texts, first, after, begin, ends, blob)
    first = after
  }
  return texts
}

function cutRun(
  texts: string[],
  first: number,
  after: number,
  begin: number,
  ends: readonly number[],
  blob: Uint8Array,
): void {
  const run = blob.subarray(begin, ends[after - 1]!)
  const text = decoded(run)
  // As many units as bytes: the run is ASCII, and a place in one is a place in the other.
  const isAscii = text.length === run.length
  let start = 0
  for (let i = first; i < after; i++) {
    const end = ends[i]! - begin
    texts[i] = isAscii ? text.slice(start, end) : decoded(run.subarray(start, end))
    start = end
  }
}

function utf16Texts(from: Reader, ends: readonly number[], units: number): readonly string[] {
  const start = from.take(units * 2)
  let next = 0
  return ends.map((end) => {
    let text = ''
    for (; next < end; next++) {
      const at = start + next * 2
      text += String.fromCharCode(from.bytes[at]! | (from.bytes[at + 1]! << 8))
    }
    return text
  })
}

function decoded(bytes: Uint8Array): string {
  try {
    return decoder.decode(bytes)
  } catch (cause) {
    throw new WireError('a text is no UTF-8', { cause })
  }
}
