import { UnencodableFieldError } from './errors.ts'
import { parseInstant } from './scalars.ts'
import type { Field, Message, ScalarKind } from './table.ts'
import type { BackwardWriter } from './writer.ts'

/** What to do with a field no table knows. */
export type OnUnknown = 'throw' | 'skip'

type Json = Readonly<Record<string, unknown>>

const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value)

/**
 * Writes the message without a head. `null` is left out, as the API's own encoder does.
 * @throws UnencodableFieldError
 */
export function writeMessage(
  writer: BackwardWriter,
  message: Message,
  value: Json,
  unknown: OnUnknown,
  path = '',
): void {
  const found = writeFields(writer, message, value, unknown, path)
  if (unknown === 'skip') return
  let given = 0
  for (const name in value) if (value[name] !== undefined && value[name] !== null) given++
  if (given === found) return
  for (const name in value)
    if (value[name] !== undefined && value[name] !== null && !message.names.has(name))
      throw new UnencodableFieldError(path + name)
}

/** @returns how many fields of the value had a place. */
function writeFields(writer: BackwardWriter, message: Message, value: Json, unknown: OnUnknown, path: string): number {
  let found = 0
  for (const field of message.fields) {
    if (field.shape === 'inline') {
      const mark = writer.written
      found += writeFields(writer, field.kind as Message, value, unknown, path)
      writer.head(field.number, mark)
      continue
    }
    const own = value[field.name]
    if (own === undefined || own === null) continue
    found++
    writeField(writer, field, own, unknown, path + field.name)
  }
  return found
}

function writeField(writer: BackwardWriter, field: Field, value: unknown, unknown: OnUnknown, path: string): void {
  switch (field.shape) {
    case 'many':
      if (!Array.isArray(value)) throw new UnencodableFieldError(path)
      for (let at = value.length - 1; at >= 0; at--) writeValue(writer, field, field.number, value[at], unknown, path)
      return
    case 'map': {
      if (!isObject(value)) throw new UnencodableFieldError(path)
      const names = Object.keys(value).sort()
      for (let at = names.length - 1; at >= 0; at--) {
        const name = names[at] ?? ''
        const mark = writer.written
        writeValue(writer, field, 2, value[name], unknown, path)
        const key = writer.written
        writer.text(name)
        writer.head(1, key)
        writer.head(field.number, mark)
      }
      return
    }
    default:
      writeValue(writer, field, field.number, value, unknown, path)
  }
}

function writeValue(
  writer: BackwardWriter,
  { kind }: Field,
  number: number,
  value: unknown,
  unknown: OnUnknown,
  path: string,
): void {
  if (kind === 'bool' || kind === 'int32' || kind === 'int64') {
    writer.varint(integerOf(kind, value, path))
    writer.tag(number, 0)
    return
  }
  if (kind === 'double') {
    if (typeof value !== 'number') throw new UnencodableFieldError(path)
    writer.double(value)
    writer.tag(number, 1)
    return
  }
  const mark = writer.written
  if (typeof kind === 'object') {
    if (!isObject(value)) throw new UnencodableFieldError(path)
    writeMessage(writer, kind, value, unknown, `${path}.`)
  } else writeContent(writer, kind, value, path)
  writer.head(number, mark)
}

function integerOf(kind: 'bool' | 'int32' | 'int64', value: unknown, path: string): number {
  if (kind === 'bool' && typeof value === 'boolean') return value ? 1 : 0
  const fits = kind === 'int32' ? (value as number) === ((value as number) | 0) : Number.isSafeInteger(value)
  if (kind === 'bool' || typeof value !== 'number' || !fits) throw new UnencodableFieldError(path)
  return value
}

function textOf(value: unknown, path: string): string {
  if (typeof value !== 'string') throw new UnencodableFieldError(path)
  return value
}

function writeText(writer: BackwardWriter, number: number, text: string): void {
  const mark = writer.written
  writer.text(text)
  writer.head(number, mark)
}

function writeContent(
  writer: BackwardWriter,
  kind: Exclude<ScalarKind, 'bool' | 'int32' | 'int64' | 'double'>,
  value: unknown,
  path: string,
): void {
  switch (kind) {
    case 'string':
      writer.text(textOf(value, path))
      break
    case 'bytes':
      writer.raw(Buffer.from(textOf(value, path), 'base64'))
      break
    case 'quantity':
      writeText(writer, 1, typeof value === 'number' ? String(value) : textOf(value, path))
      break
    case 'time':
    case 'microtime':
      writeInstant(writer, kind, value, path)
      break
    case 'intOrString':
      writeIntOrString(writer, value, path)
      break
    case 'raw':
    case 'fields':
      writeText(writer, 1, JSON.stringify(value))
      break
    case 'strings':
      if (!Array.isArray(value)) throw new UnencodableFieldError(path)
      for (let at = value.length - 1; at >= 0; at--) writeText(writer, 1, textOf(value[at], path))
  }
}

function writeInstant(writer: BackwardWriter, kind: 'time' | 'microtime', value: unknown, path: string): void {
  const instant = parseInstant(value)
  if (!instant) throw new UnencodableFieldError(path)
  writer.varint(kind === 'microtime' ? instant.nanos : 0)
  writer.tag(2, 0)
  writer.varint(instant.seconds)
  writer.tag(1, 0)
}

function writeIntOrString(writer: BackwardWriter, value: unknown, path: string): void {
  const isText = typeof value === 'string'
  writeText(writer, 3, isText ? value : '')
  writer.varint(isText ? 0 : integerOf('int32', value, path))
  writer.tag(2, 0)
  writer.varint(isText ? 1 : 0)
  writer.tag(1, 0)
}
