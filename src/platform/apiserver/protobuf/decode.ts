import { ProtobufError } from './errors.ts'
import type { Reader } from './reader.ts'
import { formatInstant, isZero } from './scalars.ts'
import type { Field, Message, ScalarKind } from './table.ts'

/** What to do with a field number no table knows: newer clients know more fields. */
export type OnUnknownNumber = 'throw' | 'skip'

type Json = Record<string, unknown>

const isVarint = (kind: Field['kind']): kind is 'bool' | 'int32' | 'int64' =>
  kind === 'bool' || kind === 'int32' || kind === 'int64'

const wireOf = (kind: Field['kind']): 0 | 1 | 2 => (isVarint(kind) ? 0 : kind === 'double' ? 1 : 2)

/**
 * Reads a message into JSON.
 * @throws ProtobufError
 */
export function readMessage(reader: Reader, message: Message, unknown: OnUnknownNumber, into: Json = {}): Json {
  while (!reader.done) {
    const tag = reader.varint()
    const wire = tag & 7
    const field = message.byNumber.get(tag >>> 3)
    if (!field) {
      if (unknown === 'throw') throw new ProtobufError(`${message.id} has no field of the number ${tag >>> 3}`)
      reader.skip(wire)
    } else readField(reader, field, wire, unknown, into)
  }
  return into
}

function readField(reader: Reader, field: Field, wire: number, unknown: OnUnknownNumber, into: Json): void {
  const { name, kind, shape } = field
  const packed = wire === 2 && shape === 'many' && isVarint(kind)
  if (!packed && wire !== (shape === 'map' ? 2 : wireOf(kind)))
    throw new ProtobufError(`the field ${name} is not written as its kind is`)
  switch (shape) {
    case 'inline':
      readMessage(reader.nested(), kind as Message, unknown, into)
      return
    case 'many': {
      const list = own(into, name, () => []) as unknown[]
      if (packed) for (const inner = reader.nested(); !inner.done; ) list.push(readValue(inner, kind, unknown))
      else list.push(readValue(reader, kind, unknown))
      return
    }
    case 'map':
      readEntry(reader.nested(), field, unknown, own(into, name, () => ({})) as Json)
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

function readOne(reader: Reader, { name, kind, keepsZero }: Field, unknown: OnUnknownNumber, into: Json): void {
  if (typeof kind === 'object') {
    readMessage(reader.nested(), kind, unknown, own(into, name, () => ({})) as Json)
    return
  }
  const value = readValue(reader, kind, unknown)
  if (value === undefined || (!keepsZero && kind !== 'intOrString' && kind !== 'quantity' && isZero(kind, value)))
    delete into[name]
  else into[name] = value
}

function readEntry(reader: Reader, { kind }: Field, unknown: OnUnknownNumber, into: Json): void {
  let key = ''
  let value: unknown
  while (!reader.done) {
    const tag = reader.varint()
    if (tag === 10) key = reader.nested().text()
    else if (tag >>> 3 === 2 && (tag & 7) === wireOf(kind)) value = readValue(reader, kind, unknown)
    else reader.skip(tag & 7)
  }
  put(into, key, value ?? (isVarint(kind) ? 0 : typeof kind === 'object' ? {} : ''))
}

function readValue(reader: Reader, kind: Field['kind'], unknown: OnUnknownNumber): unknown {
  if (typeof kind === 'object') return readMessage(reader.nested(), kind, unknown)
  if (isVarint(kind)) {
    const value = reader.varint()
    return kind === 'bool' ? value !== 0 : kind === 'int32' ? value | 0 : value
  }
  if (kind === 'double') return reader.double()
  return readContent(reader.nested(), kind)
}

/** Small messages whose JSON is one value: their fields by number. */
function parts(reader: Reader): Map<number, number | string> {
  const found = new Map<number, number | string>()
  while (!reader.done) {
    const tag = reader.varint()
    if ((tag & 7) === 0) found.set(tag >>> 3, reader.varint())
    else if ((tag & 7) === 2) found.set(tag >>> 3, reader.nested().text())
    else reader.skip(tag & 7)
  }
  return found
}

function readContent(reader: Reader, kind: Exclude<ScalarKind, 'bool' | 'int32' | 'int64' | 'double'>): unknown {
  switch (kind) {
    case 'string':
      return reader.text()
    case 'bytes':
      return reader.rest().toString('base64')
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
      while (!reader.done) {
        const tag = reader.varint()
        if (tag === 10) texts.push(reader.nested().text())
        else reader.skip(tag & 7)
      }
      return texts
    }
  }
}

function readInstant(reader: Reader, kind: 'time' | 'microtime'): string | undefined {
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
