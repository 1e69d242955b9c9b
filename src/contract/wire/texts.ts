import type { Reader, Writer } from './bytes.ts'
import { WireError } from './errors.ts'

const UTF8 = 0
const UTF16 = 1

/** A table up to this size is decoded at once and cut: the parts of a larger one would keep all of it in memory. */
const CUT_UP_TO = 64 * 1024

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
  if (size <= CUT_UP_TO) {
    const all = decoded(blob)
    if (all.length === size) return cut(ends, (a, b) => all.slice(a, b))
  }
  return cut(ends, (a, b) => decoded(blob.subarray(a, b)))
}

function utf16Texts(from: Reader, ends: readonly number[], units: number): readonly string[] {
  const start = from.take(units * 2)
  return cut(ends, (a, b) => {
    let text = ''
    for (let i = a; i < b; i++) {
      const at = start + i * 2
      text += String.fromCharCode(from.bytes[at]! | (from.bytes[at + 1]! << 8))
    }
    return text
  })
}

function cut(ends: readonly number[], slice: (start: number, end: number) => string): readonly string[] {
  const texts: string[] = new Array(ends.length)
  let start = 0
  for (let i = 0; i < ends.length; i++) {
    const end = ends[i]!
    texts[i] = slice(start, end)
    start = end
  }
  return texts
}

function decoded(bytes: Uint8Array): string {
  try {
    return decoder.decode(bytes)
  } catch (cause) {
    throw new WireError('a text is no UTF-8', { cause })
  }
}
