/** Bytes that are no DER, or not the DER that was expected there. */
export class DerError extends Error {
  override readonly name = 'DerError'
}

/** One element of DER (X.690): its tag, what is in it, and all its bytes. */
export interface DerElement {
  readonly tag: number
  readonly content: Buffer
  readonly whole: Buffer
}

/** Tags of X.509, as they stand in the bytes. */
export const TAG = {
  boolean: 0x01,
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  oid: 0x06,
  utf8: 0x0c,
  printable: 0x13,
  teletex: 0x14,
  ia5: 0x16,
  bmp: 0x1e,
  utcTime: 0x17,
  generalizedTime: 0x18,
  sequence: 0x30,
  set: 0x31,
  /** [0], constructed */
  zero: 0xa0,
  /** [3], constructed */
  three: 0xa3,
} as const

/** The elements that stand one behind the other; nothing may be left over. Lengths are definite and as short as they can be. */
export function elementsOf(bytes: Buffer): DerElement[] {
  const elements: DerElement[] = []
  for (let at = 0; at < bytes.length; ) {
    const element = elementAt(bytes, at)
    elements.push(element)
    at += element.whole.length
  }
  return elements
}

/** The one element there is. @throws DerError where there are more or fewer, or of another tag */
export function only(bytes: Buffer, tag: number): DerElement {
  const [element, ...more] = elementsOf(bytes)
  if (!element || more.length > 0) throw new DerError('one element was expected')
  return expectTag(element, tag)
}

/** @throws DerError where it is absent or of another tag */
export function expectTag(element: DerElement | undefined, tag: number): DerElement {
  if (element?.tag !== tag)
    throw new DerError(`an element of tag 0x${tag.toString(16)} was expected, not ${described(element)}`)
  return element
}

const described = (element: DerElement | undefined): string => (element ? `0x${element.tag.toString(16)}` : 'none')

function elementAt(bytes: Buffer, at: number): DerElement {
  const tag = bytes[at] ?? 0
  if ((tag & 0x1f) === 0x1f) throw new DerError('tags of more than one byte are not used here')
  const { length, start } = lengthAt(bytes, at + 1)
  if (start + length > bytes.length) throw new DerError('an element is longer than what holds it')
  return { tag, content: bytes.subarray(start, start + length), whole: bytes.subarray(at, start + length) }
}

function lengthAt(bytes: Buffer, at: number): { length: number; start: number } {
  const first = bytes[at]
  if (first === undefined) throw new DerError('the length of an element is missing')
  if (first < 0x80) return { length: first, start: at + 1 }
  const count = first & 0x7f
  if (count === 0 || count > 4 || at + count >= bytes.length) throw new DerError('the length of an element is wrong')
  const length = bytes.readUIntBE(at + 1, count)
  if (length < 0x80 || length < 2 ** (8 * (count - 1))) throw new DerError('a length is written longer than it need be')
  return { length, start: at + 1 + count }
}

/** One element to be written: its tag, its length as short as it can be, and what is in it. */
export function element(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(parts)
  const { length } = content
  if (length < 0x80) return Buffer.concat([Buffer.of(tag, length), content])
  const bytes: number[] = []
  for (let rest = length; rest > 0; rest = Math.floor(rest / 256)) bytes.unshift(rest % 256)
  return Buffer.concat([Buffer.of(tag, 0x80 | bytes.length, ...bytes), content])
}

/** `2.5.4.3` of the content of an object identifier. */
export function oidText(content: Buffer): string {
  const parts: number[] = []
  let value = 0
  let isBegun = false
  for (const byte of content) {
    if (!isBegun && byte === 0x80) throw new DerError('an object identifier is padded')
    isBegun = true
    value = value * 128 + (byte & 0x7f)
    if (value > Number.MAX_SAFE_INTEGER) throw new DerError('an object identifier is too large')
    if (byte & 0x80) continue
    parts.push(value)
    value = 0
    isBegun = false
  }
  const [first] = parts
  if (first === undefined || isBegun) throw new DerError('an object identifier is cut off')
  const root = Math.min(2, Math.floor(first / 40))
  return [root, first - root * 40, ...parts.slice(1)].join('.')
}

/** The bits of a bit string that is made of whole bytes. */
export function wholeBytes({ content }: DerElement): Buffer {
  if (content[0] !== 0) throw new DerError('a bit string is not made of whole bytes')
  return content.subarray(1)
}

/** The text of a string of any of the types that names are written in. */
export function stringOf({ tag, content }: DerElement): string {
  switch (tag) {
    case TAG.utf8:
      return utf8(content)
    case TAG.printable:
    case TAG.ia5:
      if (content.some((byte) => byte >= 0x80)) throw new DerError('a text holds letters that its type does not have')
      return content.toString('latin1')
    case TAG.teletex:
      return content.toString('latin1')
    case TAG.bmp:
      if (content.length % 2 !== 0) throw new DerError('a text is cut off')
      return Buffer.from(content).swap16().toString('utf16le')
    default:
      throw new DerError(`a text of type 0x${tag.toString(16)} is not read`)
  }
}

function utf8(content: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(content)
  } catch (error) {
    throw new DerError('a text is not UTF-8', { cause: error })
  }
}
