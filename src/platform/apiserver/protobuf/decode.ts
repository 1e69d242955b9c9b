import { BinaryReader, type WireType } from '@bufbuild/protobuf/wire'
import { ProtobufError } from './errors.ts'
import { formatInstant, isZero } from './scalars.ts'
import type { Field, Message, ScalarKind } from './table.ts'

/** What to do with a field number no table knows: newer clients know more fields. */
export type OnUnknownNumber = 'throw' | 'skip'

type Json = Record<string, unknown>

const isVarint = (kind: Field['kind']): kind is 'bool' | 'int32' | 'int64' =>
  kind === 'bool' || kind === 'int32' || kind === 'int64'

const wireOf = (kind: Field['kind']): 0 | 1 | 2 => (isVarint(kind) ? 0 : kind === 'double' ? 1 : 2)

/** What has a length, to be read on its own. */
export const nested = (reader: BinaryReader): BinaryReader => new BinaryReader(reader.bytes())

export const isDone = ({ pos, len }: BinaryReader): boolean => pos >= len

/**
 * Reads bytes by this function.
 * @throws ProtobufError for whatever is wrong with them
 */
export function reading<T>(bytes: Uint8Array, read: (reader: BinaryReader) => T): T {
  try {
    return read(new BinaryReader(bytes))
  } catch (cause) {
    if (cause instanceof ProtobufError) throw cause
    throw new ProtobufError('the message ends too early, or is no protobuf', { cause })
  }
}

/** Reads a message into JSON. */
export function readMessage(reader: BinaryReader, message: Message, unknown: OnUnknownNumber, into: Json = {}): Json {
  while (!isDone(reader)) {
    const [number, wire] = reader.tag()
    const field = message.byNumber.get(number)
    if (!field) {
      if (unknown === 'throw') throw new ProtobufError(`${message.id} has no field of the number ${number}`)
      reader.skip(wire, number)
    } else readField(reader, field, wire, unknown, into)
  }
  return into
}

function readField(reader: BinaryReader, field: Field, wire: WireType, unknown: OnUnknownNumber, into: Json): void {
  const { name, kind, shape } = field
  const packed = wire === 2 && shape === 'many' && isVarint(kind)
  if (!packed && wire !== (shape === 'map' ? 2 : wireOf(kind)))
    throw new ProtobufError(`the field ${name} is not written as its kind is`)
  switch (shape) {
    case 'inline':
      readMessage(nested(reader), kind as Message, unknown, into)
      return
    case 'many': {
      const list = own(into, name, () => []) as unknown[]
      if (packed) for (const inner = nested(reader); !isDone(inner); ) list.push(readValue(inner, kind, unknown))
      else list.push(readValue(reader, kind, unknown))
      return
    }
    case 'map':
      readEntry(nested(reader), field, unknown, own(into, name, () => ({})) as Json)
      return
    default:
      readOne(reader, field, unknown, into)
  }
}

/** Names come from the sender: `__proto__` must be a name like any other. */
function put(into: Json, name: string, value: unknown): void {
  if (name === '__proto__')
    Object.defineProperty(into, name, { value, enumerable: true, writable: true, configurable: true })
  else into[name] = value
}

function own(into: Json, name: string, make: () => unknown): unknown {
  if (!Object.hasOwn(into, name)) into[name] = make()
  return into[name]
}

function readOne(reader: BinaryReader, { name, kind, keepsZero }: Field, unknown: OnUnknownNumber, into: Json): void {
  if (typeof kind === 'object') {
    readMessage(nested(reader), kind, unknown, own(into, name, () => ({})) as Json)
    return
  }
  const value = readValue(reader, kind, unknown)
  if (value === undefined || (!keepsZero && kind !== 'intOrString' && kind !== 'quantity' && isZero(kind, value)))
    delete into[name]
  else into[name] = value
}

function readEntry(reader: BinaryReader, { kind }: Field, unknown: OnUnknownNumber, into: Json): void {
  let key = ''
  let value: unknown
  while (!isDone(reader)) {
    const [number, wire] = reader.tag()
    if (number === 1 && wire === 2) key = reader.string()
    else if (number === 2 && wire === wireOf(kind)) value = readValue(reader, kind, unknown)
    else reader.skip(wire, number)
  }
  put(into, key, value ?? (isVarint(kind) ? 0 : typeof kind === 'object' ? {} : ''))
}

function readValue(reader: BinaryReader, kind: Field['kind'], unknown: OnUnknownNumber): unknown {
  if (typeof kind === 'object') return readMessage(nested(reader), kind, unknown)
  switch (kind) {
    case 'bool':
      return reader.bool()
    case 'int32':
      return reader.int32()
    case 'int64':
      return Number(reader.int64())
    case 'double':
      return reader.double()
    case 'string':
      return reader.string()
    case 'bytes':
      return Buffer.from(reader.bytes()).toString('base64')
    default:
      return readContent(nested(reader), kind)
  }
}

/** Small messages whose JSON is one value: their fields by number. */
function parts(reader: BinaryReader): Map<number, number | string> {
  const found = new Map<number, number | string>()
  while (!isDone(reader)) {
    const [number, wire] = reader.tag()
    if (wire === 0) found.set(number, Number(reader.int64()))
    else if (wire === 2) found.set(number, reader.string())
    else reader.skip(wire, number)
  }
  return found
}

type ContentKind = Exclude<ScalarKind, 'bool' | 'int32' | 'int64' | 'double' | 'string' | 'bytes'>

function readContent(reader: BinaryReader, kind: ContentKind): unknown {
  switch (kind) {
    case 'quantity':
      return parts(reader).get(1) ?? '0'
    case 'time':
    case 'microtime':
      return readInstant(reader, kind)
    case 'intOrString': {
      const found = parts(reader)
      return found.get(1) === 1 ? (found.get(3) ?? '') : (found.get(2) ?? 0)
    }
    case 'raw':
    case 'fields':
      return readJson(parts(reader).get(1))
    case 'strings': {
      const texts: string[] = []
      while (!isDone(reader)) {
        const [number, wire] = reader.tag()
        if (number === 1 && wire === 2) texts.push(reader.string())
        else reader.skip(wire, number)
      }
      return texts
    }
  }
}

function readInstant(reader: BinaryReader, kind: 'time' | 'microtime'): string | undefined {
  const found = parts(reader)
  const seconds = Number(found.get(1) ?? 0)
  const nanos = Number(found.get(2) ?? 0)
  // Nothing tells an unset time from the first second of 1970; the API takes it as unset.
  if (seconds === 0 && nanos === 0) return undefined
  const text = formatInstant({ seconds, nanos }, kind === 'microtime')
  if (text === undefined) throw new ProtobufError('a time in the message is beyond the calendar')
  return text
}

function readJson(text: number | string | undefined): unknown {
  if (text === undefined || text === '') return undefined
  try {
    return JSON.parse(String(text))
  } catch (error) {
    throw new ProtobufError('JSON within the message cannot be read', { cause: error })
  }
}
