import { type JsonValue, sameJson } from '#model'
import { LARGEST, varintSize, zigzag } from './bytes.ts'
import {
  type Codec,
  type Decoding,
  type Encoding,
  type Kind,
  kinds,
  readColumn,
  writeColumn,
  wrongKind,
} from './column.ts'
import { WireError } from './errors.ts'

export function booleanCodec(nullable: boolean): Codec {
  return {
    nullable,
    blank: nullable ? null : false,
    equal: Object.is,
    key: (value) => (value ? 't' : 'f'),
    write(values, { to }) {
      to.bits(values as boolean[])
      return kinds.bits
    },
    read(kind, count, { from }) {
      if (kind !== kinds.bits) throw wrongKind(kind)
      return from.bits(count)
    },
  }
}

/** How integers stand for numbers: divided by 10 to the power 0…9, or times 1024. */
const TIMES_1024 = 10
const SCALE = 0x0f
/** Each integer is the difference to the one before it. */
const DIFFERENCES = 0x10
const powers = Array.from({ length: TIMES_1024 }, (_, exponent) => 10 ** exponent)

export function numberCodec(nullable: boolean, isInteger: boolean): Codec {
  return {
    nullable,
    blank: nullable ? null : 0,
    equal: Object.is,
    key: (value) => (Object.is(value, -0) ? '-0;' : `${value};`),
    write: (values, into) => writeNumbers(values as number[], into),
    read(kind, count, { from }) {
      if (kind !== kinds.doubles && kind !== kinds.integers) throw wrongKind(kind)
      const scale = kind === kinds.integers ? from.u8() : 0
      const numbers = kind === kinds.doubles ? from.f64s(count) : readIntegers(scale, count, from)
      if (isInteger && (kind === kinds.doubles || isFraction(scale)))
        for (const number of numbers) if (!Number.isInteger(number)) throw new WireError('a number is no whole one')
      return numbers
    },
  }
}

const isFraction = (scale: number) => (scale & SCALE) > 0 && (scale & SCALE) < TIMES_1024

function readIntegers(scale: number, count: number, from: Decoding['from']): number[] {
  const exponent = scale & SCALE
  if (exponent > TIMES_1024 || scale > (SCALE | DIFFERENCES)) throw new WireError(`the scale ${scale} is unknown`)
  // Each takes at least a byte.
  if (count > from.left) throw new WireError('the body ends too early')
  const numbers: number[] = new Array(count)
  let before = 0
  for (let i = 0; i < count; i++) {
    let integer = from.integer()
    if (scale & DIFFERENCES) {
      integer += before
      if (Math.abs(integer) > LARGEST) throw new WireError('a whole number is too large')
      before = integer
    }
    numbers[i] = exponent === 0 ? integer : exponent === TIMES_1024 ? integer * 1024 : integer / powers[exponent]!
  }
  return numbers
}

function writeNumbers(numbers: readonly number[], { to }: Encoding) {
  for (const number of numbers) if (!Number.isFinite(number)) throw new WireError(`${number} is no number to send`)
  const scaled = scaledIntegers(numbers)
  const plain = scaled ? bytesOf(scaled.integers) : Number.POSITIVE_INFINITY
  const differences = scaled && scaled.integers.length > 1 ? differencesOf(scaled.integers) : undefined
  const steps = differences ? bytesOf(differences) : Number.POSITIVE_INFINITY
  if (!scaled || Math.min(plain, steps) + 1 > numbers.length * 8) {
    for (const number of numbers) to.f64(number)
    return kinds.doubles
  }
  const isShorter = differences !== undefined && steps < plain
  to.u8(scaled.scale | (isShorter ? DIFFERENCES : 0))
  for (const integer of isShorter ? differences : scaled.integers) to.varint(zigzag(integer))
  return kinds.integers
}

interface Scaled {
  readonly scale: number
  readonly integers: readonly number[]
}

/** Integers that stand for these very numbers; undefined where there are none. */
function scaledIntegers(numbers: readonly number[]): Scaled | undefined {
  let exponent = 0
  for (const number of numbers) {
    // No integer stands for it.
    if (Object.is(number, -0)) return undefined
    while (exponent < TIMES_1024 && !Object.is(Math.round(number * powers[exponent]!) / powers[exponent]!, number))
      exponent++
    if (exponent === TIMES_1024) return undefined
  }
  const power = powers[exponent]!
  const integers = numbers.map((number) => Math.round(number * power))
  // What was exact with a smaller power is so with a larger one, unless it became too large for that.
  const isExact = integers.every((integer, i) => Math.abs(integer) <= LARGEST && integer / power === numbers[i])
  const isBinary = exponent === 0 && integers.some((integer) => integer !== 0) && integers.every((n) => n % 1024 === 0)
  if (isBinary && integers.every((integer) => Math.abs(integer / 1024) <= LARGEST))
    return { scale: TIMES_1024, integers: integers.map((integer) => integer / 1024) }
  return isExact ? { scale: exponent, integers } : undefined
}

/** undefined where a difference is larger than an integer here may be */
function differencesOf(integers: readonly number[]): readonly number[] | undefined {
  const differences = integers.map((integer, i) => integer - (integers[i - 1] ?? 0))
  return differences.every((difference) => Math.abs(difference) <= LARGEST) ? differences : undefined
}

const bytesOf = (integers: readonly number[]) =>
  integers.reduce((size, integer) => size + varintSize(zigzag(integer)), 0)

/** @param words the only texts there are; a newer one is read as `unknown` where that is one of them */
export function textCodec(nullable: boolean, words: readonly string[] | undefined): Codec {
  const allowed = words && new Set(words)
  const other = allowed?.has('unknown') ? 'unknown' : nullable ? null : undefined
  return {
    nullable,
    blank: nullable ? null : allowed ? (other ?? words?.[0]) : '',
    equal: Object.is,
    key: textKey,
    write: (values, into) => writeTexts(values as string[], into),
    read(kind, count, out) {
      const texts = readTextColumn(kind, count, out)
      return allowed ? texts.map((text) => (allowed.has(text) ? text : orRefuse(other, text))) : texts
    },
  }
}

export const textKey = (value: unknown) => `${(value as string).length}:${value}`

function orRefuse(other: string | null | undefined, text: string): string | null {
  if (other === undefined)
    throw new WireError(`${JSON.stringify(text.slice(0, 40))} is not among the words of its column`)
  return other
}

/** What has no shape we know travels as its JSON. */
export function jsonCodec(): Codec {
  const key = (value: unknown) => textKey(JSON.stringify(value))
  return {
    // Whatever it is, it may be null.
    nullable: true,
    blank: null,
    equal: (a, b) => JSON.stringify(a) === JSON.stringify(b),
    key,
    write: (values, into) =>
      writeTexts(
        values.map((value) => JSON.stringify(value)),
        into,
      ),
    read: (kind, count, out) => readTextColumn(kind, count, out).map(parsed),
  }
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch (cause) {
    throw new WireError('a value is no JSON', { cause })
  }
}

/**
 * Any scalar: values of one sort as a column of that sort, else which of them are texts, which of the others numbers, and a
 * column of each sort.
 */
export function scalarCodec(): Codec {
  const sorts: Record<string, Codec> = {
    boolean: booleanCodec(false),
    number: numberCodec(false, false),
    string: textCodec(false, undefined),
  }
  const codecOf = (sort: string): Codec => {
    const codec = sorts[sort]
    if (!codec) throw new WireError(`a value of ${sort} is no scalar to send`)
    return codec
  }
  const bySort: Readonly<Record<number, Codec>> = {
    [kinds.bits]: codecOf('boolean'),
    [kinds.integers]: codecOf('number'),
    [kinds.doubles]: codecOf('number'),
    [kinds.texts]: codecOf('string'),
  }
  return {
    nullable: true,
    blank: null,
    equal: Object.is,
    key: (value) => codecOf(typeof value).key(value),
    write(values, into): Kind {
      const sort = typeof values[0]
      if (values.every((value) => typeof value === sort)) return codecOf(sort).write(values, into)
      const rest = values.filter((value) => typeof value !== 'string')
      into.to.bits(values.map((value) => typeof value === 'string'))
      into.to.bits(rest.map((value) => typeof value === 'number'))
      for (const one of MIXED) {
        const some = values.filter((value) => typeof value === one)
        if (some.length > 0) writeColumn(codecOf(one), some, into)
      }
      return kinds.mixed
    },
    read(kind, count, out) {
      const only = bySort[kind]
      if (only) return only.read(kind, count, out)
      if (kind !== kinds.mixed) throw wrongKind(kind)
      return readMixed(count, codecOf, out)
    },
  }
}

const MIXED = ['string', 'number', 'boolean'] as const

function readMixed(count: number, codecOf: (sort: string) => Codec, out: Decoding): unknown[] {
  const isText = out.from.bits(count)
  const isNumber = out.from.bits(isText.filter((is) => !is).length)
  let other = 0
  const sorts = isText.map((is): string => (is ? 'string' : isNumber[other++] ? 'number' : 'boolean'))
  const columns = new Map(
    MIXED.map((sort) => {
      const some = sorts.filter((one) => one === sort).length
      return [sort as string, (some === 0 ? [] : readColumn(codecOf(sort), false, some, out)).values()]
    }),
  )
  return sorts.map((sort) => columns.get(sort)?.next().value)
}

/**
 * Any JSON: scalars as `scalarCodec` writes them; where a list or an object is among them, every value as its JSON. Peers of
 * former builds refuse the latter: only kinds that they do not know have such values.
 */
export function valueCodec(): Codec {
  const [scalar, json] = [scalarCodec(), jsonCodec()]
  const isScalar = (value: unknown) => typeof value !== 'object'
  return {
    nullable: true,
    blank: null,
    equal: (a, b) => sameJson(a as JsonValue, b as JsonValue),
    key: (value) => (isScalar(value) ? scalar : json).key(value),
    write(values, into) {
      if (values.every(isScalar)) return scalar.write(values, into)
      json.write(values, into)
      return kinds.json
    },
    read: (kind, count, out) =>
      kind === kinds.json ? json.read(kinds.texts, count, out) : scalar.read(kind, count, out),
  }
}

/** Places in the table of texts. 0 is the next that this column is the first to use, else the place plus one. */
function writeTexts(texts: readonly string[], into: Encoding) {
  let next = into.texts.size
  into.to.varint(next)
  for (const text of texts) {
    const place = into.texts.place(text)
    into.to.varint(place === next ? 0 : place + 1)
    if (place === next) next++
  }
  return kinds.texts
}

function readTextColumn(kind: number, count: number, { from, texts }: Decoding): string[] {
  if (kind !== kinds.texts) throw wrongKind(kind)
  let next = from.varint()
  if (count > from.left) throw new WireError('the body ends too early')
  const column: string[] = new Array(count)
  for (let i = 0; i < count; i++) {
    const code = from.varint()
    const text = texts[code === 0 ? next++ : code - 1]
    if (text === undefined) throw new WireError('a text is not in the table')
    column[i] = text
  }
  return column
}
