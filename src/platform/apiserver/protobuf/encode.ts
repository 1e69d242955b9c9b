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
 * @param path of the message in its object; each is empty or ends with a dot
 * @throws UnencodableFieldError
 */
export function writeMessage(
  writer: BackwardWriter,
  message: Message,
  value: Json,
  unknown: OnUnknown,
  path = '',
): void {
  const given = new GivenFields()
  for (const field of message.inline) given.add(field, value)
  for (const name in value) {
    const own = value[name]
    if (own === undefined || own === null) continue
    const field = message.byName.get(name)
    if (field === undefined) refuseUnknown(unknown, path + name)
    else if (field.shape !== 'inline') given.add(field, own)
  }
  given.write(writer, unknown, path)
}

function refuseUnknown(unknown: OnUnknown, path: string): void {
  if (unknown === 'throw') throw new UnencodableFieldError(path)
}

/**
 * What a value gives of its message, in descending order of number, as the last is written first. A message has many fields
 * and a value few: to look for each field in each value takes longer than to sort what is there.
 */
class GivenFields {
  readonly #fields: Field[] = []
  readonly #values: unknown[] = []

  add(field: Field, value: unknown): void {
    const fields = this.#fields
    const values = this.#values
    let at = fields.length
    for (; at > 0; at--) {
      const before = fields[at - 1] as Field // `at` is within the list
      if (before.number > field.number) break
      fields[at] = before
      values[at] = values[at - 1]
    }
    fields[at] = field
    values[at] = value
  }

  write(writer: BackwardWriter, unknown: OnUnknown, path: string): void {
    for (let at = 0; at < this.#fields.length; at++)
      writeField(writer, this.#fields[at] as Field, this.#values[at], unknown, path)
  }
}

/** Fields of frozen values as they were written: these never change, and may be part of many objects. */
const kept = new WeakMap<object, { readonly field: Field; readonly bytes: Buffer }>()

function writeField(writer: BackwardWriter, field: Field, value: unknown, unknown: OnUnknown, path: string): void {
  // Where fields may be skipped, the same value may be written in two ways.
  if (typeof value !== 'object' || value === null || unknown === 'skip' || !Object.isFrozen(value)) {
    writeAnew(writer, field, value, unknown, path)
    return
  }
  const known = kept.get(value)
  if (known?.field === field) {
    writer.raw(known.bytes)
    return
  }
  const mark = writer.written
  writeAnew(writer, field, value, unknown, path)
  kept.set(value, { field, bytes: writer.since(mark) })
}

function writeAnew(writer: BackwardWriter, field: Field, value: unknown, unknown: OnUnknown, path: string): void {
  switch (field.shape) {
    case 'inline':
      writeInline(writer, field, value as Json, unknown, path)
      return
    case 'many':
      if (!Array.isArray(value)) throw refused(field, path)
      for (let at = value.length - 1; at >= 0; at--) writeValue(writer, field, field.number, value[at], unknown, path)
      return
    case 'map':
      writeMap(writer, field, value, unknown, path)
      return
    default:
      writeValue(writer, field, field.number, value, unknown, path)
  }
}

/** A message whose fields are those of the value around it; it is written even where it says nothing. */
function writeInline(writer: BackwardWriter, field: Field, value: Json, unknown: OnUnknown, path: string): void {
  const mark = writer.written
  for (const inner of (field.kind as Message).fields) {
    const own = inner.shape === 'inline' ? value : value[inner.name]
    if (own !== undefined && own !== null) writeField(writer, inner, own, unknown, path)
  }
  writer.head(field.number, mark)
}

function writeMap(writer: BackwardWriter, field: Field, value: unknown, unknown: OnUnknown, path: string): void {
  if (!isObject(value)) throw refused(field, path)
  const names = Object.keys(value).sort()
  for (let at = names.length - 1; at >= 0; at--) {
    const name = names[at] ?? ''
    const mark = writer.written
    writeValue(writer, field, 2, value[name], unknown, path)
    writeText(writer, 1, name)
    writer.head(field.number, mark)
  }
}

function writeValue(
  writer: BackwardWriter,
  field: Field,
  number: number,
  value: unknown,
  unknown: OnUnknown,
  path: string,
): void {
  const { kind } = field
  if (kind === 'bool' || kind === 'int32' || kind === 'int64') {
    writer.varint(integerOf(kind, value) ?? fail(field, path))
    writer.tag(number, 0)
    return
  }
  if (kind === 'double') {
    if (typeof value !== 'number') throw refused(field, path)
    writer.double(value)
    writer.tag(number, 1)
    return
  }
  const mark = writer.written
  if (typeof kind === 'object') {
    if (!isObject(value)) throw refused(field, path)
    writeMessage(writer, kind, value, unknown, `${path}${field.name}.`)
  } else if (!writeContent(writer, kind, value)) throw refused(field, path)
  writer.head(number, mark)
}

const refused = ({ name }: Field, path: string) => new UnencodableFieldError(path + name)

function fail(field: Field, path: string): never {
  throw refused(field, path)
}

/** @returns undefined where the value is none of this kind */
function integerOf(kind: 'bool' | 'int32' | 'int64', value: unknown): number | undefined {
  if (kind === 'bool') return typeof value === 'boolean' ? Number(value) : undefined
  const fits = kind === 'int32' ? (value as number) === ((value as number) | 0) : Number.isSafeInteger(value)
  return typeof value === 'number' && fits ? value : undefined
}

function writeText(writer: BackwardWriter, number: number, text: string): void {
  const mark = writer.written
  writer.text(text)
  writer.head(number, mark)
}

/** @returns false where the value is none of this kind */
function writeContent(
  writer: BackwardWriter,
  kind: Exclude<ScalarKind, 'bool' | 'int32' | 'int64' | 'double'>,
  value: unknown,
): boolean {
  switch (kind) {
    case 'string':
      if (typeof value !== 'string') return false
      writer.text(value)
      return true
    case 'bytes':
      if (typeof value !== 'string') return false
      writer.raw(Buffer.from(value, 'base64'))
      return true
    case 'quantity':
      if (typeof value !== 'string' && typeof value !== 'number') return false
      writeText(writer, 1, String(value))
      return true
    case 'time':
    case 'microtime':
      return writeInstant(writer, kind, value)
    case 'intOrString':
      return writeIntOrString(writer, value)
    case 'raw':
    case 'fields':
      writeText(writer, 1, JSON.stringify(value))
      return true
    case 'strings':
      if (!Array.isArray(value) || !value.every((text) => typeof text === 'string')) return false
      for (let at = value.length - 1; at >= 0; at--) writeText(writer, 1, value[at] as string)
      return true
  }
}

function writeInstant(writer: BackwardWriter, kind: 'time' | 'microtime', value: unknown): boolean {
  const instant = parseInstant(value)
  if (!instant) return false
  writer.varint(kind === 'microtime' ? instant.nanos : 0)
  writer.tag(2, 0)
  writer.varint(instant.seconds)
  writer.tag(1, 0)
  return true
}

function writeIntOrString(writer: BackwardWriter, value: unknown): boolean {
  const number = typeof value === 'string' ? 0 : integerOf('int32', value)
  if (number === undefined) return false
  writeText(writer, 3, typeof value === 'string' ? value : '')
  writer.varint(number)
  writer.tag(2, 0)
  writer.varint(typeof value === 'string' ? 1 : 0)
  writer.tag(1, 0)
  return true
}
