import { type Reader, Writer } from './bytes.ts'
import { WireError } from './errors.ts'
import { readTexts, TextTable } from './texts.ts'

/*
 * What a body may cost whoever reads it. Rows and elements are charged before anything is made for them, so that a few bytes
 * cannot ask for many objects; a writer whose body says more than it weighs adds zeros at its end.
 */
const FREE_OF_CHARGE = 65_536
const PER_BYTE = 4
/** Whatever its size: the rows of the largest table with 16 fields, or a third of a million snapshots. */
const MOST = 12_000_000
/** Of one row of a table, whatever its columns: both ends must charge alike, and they may know different columns. */
export const ROW_COST = 32
/** Of one element of a list or a record. */
export const ELEMENT_COST = 2

/** A body being written. Its texts are known only at the end, hence in front of what is written here. */
export class Encoding {
  readonly to = new Writer()
  readonly texts = new TextTable()
  /** the reader knows a base of rows by the sum over them */
  readonly rowSums: boolean
  #cost = 0

  constructor(rowSums = false) {
    this.rowSums = rowSums
  }

  charge(cost: number): void {
    this.#cost += cost
    if (this.#cost > MOST) throw new WireError('the batch holds more than a body may')
  }

  text(text: string): void {
    this.to.varint(this.texts.place(text))
  }

  /** zeros that a body of this length needs at its end */
  padding(length: number): number {
    return Math.max(0, Math.ceil((this.#cost - FREE_OF_CHARGE) / PER_BYTE) - length)
  }
}

/** A body being read. */
export class Decoding {
  readonly from: Reader
  readonly texts: readonly string[]
  #budget: number

  constructor(from: Reader) {
    this.from = from
    this.#budget = Math.min(MOST, FREE_OF_CHARGE + PER_BYTE * from.bytes.length)
    this.texts = readTexts(from)
  }

  charge(cost: number): void {
    this.#budget -= cost
    if (this.#budget < 0) throw new WireError('the body describes more than its size allows')
  }

  text(): string {
    return this.at(this.from.varint())
  }

  at(place: number): string {
    const text = this.texts[place]
    if (text === undefined) throw new WireError('a text is not in the table')
    return text
  }
}

/** How values of one shape become bytes and come back. `null` and absence are dealt with by writeColumn and readColumn. */
export interface Codec {
  readonly nullable: boolean
  /** stands where a column is missing: an older writer did not know it */
  readonly blank: unknown
  equal(a: unknown, b: unknown): boolean
  /** equal keys: equal values */
  key(value: unknown): string
  /** @param values at least one, none of them null */
  write(values: readonly unknown[], into: Encoding): Kind
  /** @param count at least one, and already charged for */
  read(kind: number, count: number, out: Decoding): unknown[]
}

/** How the values of a column are written. */
export const kinds = {
  empty: 0,
  bits: 1,
  integers: 2,
  doubles: 3,
  texts: 4,
  lists: 5,
  records: 6,
  rows: 7,
  mixed: 8,
  json: 9,
} as const
export type Kind = (typeof kinds)[keyof typeof kinds]

/** Bits beside the kind: some values are absent, some are null, those that are neither are all the same. */
const ABSENT = 0x20
const NULLS = 0x40
const SAME = 0x80
const KIND = 0x1f

export function writeColumn(codec: Codec, values: readonly unknown[], into: Encoding): void {
  const { to } = into
  const start = to.length
  to.u8(kinds.empty)
  let flags = 0
  let rest = values
  if (rest.includes(undefined)) {
    flags |= ABSENT
    to.bits(rest.map((value) => value !== undefined))
    rest = rest.filter((value) => value !== undefined)
  }
  const known = rest.includes(null) ? rest.filter((value) => value !== null) : rest
  if (known.length > 0 && known.length < rest.length) {
    flags |= NULLS
    to.bits(rest.map((value) => value !== null))
  }
  let kind: Kind = kinds.empty
  if (known.length > 0) {
    const [first] = known
    const isSame = known.length > 1 && known.every((value) => codec.equal(first, value))
    if (isSame) flags |= SAME
    kind = codec.write(isSame ? [first] : known, into)
  }
  to.bytes[start] = kind | flags
}

/** @throws WireError */
export function readColumn(codec: Codec, optional: boolean, count: number, out: Decoding): unknown[] {
  const byte = out.from.u8()
  const isPresent = byte & ABSENT ? out.from.bits(count) : undefined
  if (isPresent && !optional) throw new WireError('a value is missing')
  const present = isPresent ? countOf(isPresent) : count
  const values = presentValues(codec, byte, present, out)
  return isPresent ? spread(isPresent, values, undefined) : values
}

function presentValues(codec: Codec, byte: number, count: number, out: Decoding): unknown[] {
  const kind = byte & KIND
  if (kind === kinds.empty) {
    if (count > 0 && !codec.nullable) throw new WireError('a value is null')
    return new Array(count).fill(null)
  }
  const isKnown = byte & NULLS ? out.from.bits(count) : undefined
  if (isKnown && !codec.nullable) throw new WireError('a value is null')
  const known = isKnown ? countOf(isKnown) : count
  const values = known === 0 ? [] : knownValues(codec, byte, known, out)
  return isKnown ? spread(isKnown, values, null) : values
}

function knownValues(codec: Codec, byte: number, count: number, out: Decoding): unknown[] {
  if ((byte & SAME) === 0) return codec.read(byte & KIND, count, out)
  return new Array(count).fill(codec.read(byte & KIND, 1, out)[0])
}

function countOf(bits: readonly boolean[]): number {
  let count = 0
  for (const bit of bits) if (bit) count++
  return count
}

function spread(bits: readonly boolean[], values: readonly unknown[], gap: null | undefined): unknown[] {
  let next = 0
  return bits.map((bit) => (bit ? values[next++] : gap))
}

export function wrongKind(kind: number): WireError {
  return new WireError(`a column is of kind ${kind}, which its name does not allow`)
}
