import type { ApiObject } from '../types.ts'
import { catalogue, messageOf } from './catalogue.ts'
import { type OnUnknownNumber, readMessage } from './decode.ts'
import { type OnUnknown, writeMessage } from './encode.ts'
import { ProtobufError, UnencodableFieldError } from './errors.ts'
import { Reader } from './reader.ts'
import type { Message } from './table.ts'
import { BackwardWriter } from './writer.ts'

const MAGIC = Buffer.from('k8s\0', 'latin1')
const CONTENT_TYPE = 'application/vnd.kubernetes.protobuf'

/** One for all: nothing waits while a message is written. */
const writer = new BackwardWriter()

/** Messages of objects that are served again and again; stored objects never change. */
const kept = new WeakMap<object, Buffer>()

interface EncodeOptions {
  /** `skip` leaves out what has no place, as the original API does; default `throw` */
  readonly unknown?: OnUnknown
}

/** Whether objects of this kind have a table. */
export const canEncode = (apiVersion: string, kind: string): boolean => messageOf(apiVersion, kind) !== undefined

/** The message of one object, without the envelope that names its kind. */
function messageBytes(id: string, object: object, unknown: OnUnknown): Buffer {
  const known = kept.get(object)
  if (known) return known
  try {
    const bytes = written(id, object, 'throw')
    kept.set(object, bytes)
    return bytes
  } catch (error) {
    if (unknown === 'throw' || !(error instanceof UnencodableFieldError)) throw error
    return written(id, object, unknown)
  }
}

function written(id: string, object: object, unknown: OnUnknown): Buffer {
  const { apiVersion: _, kind: __, ...fields } = object as Readonly<Record<string, unknown>>
  try {
    writeMessage(writer, catalogue.get(id), fields, unknown)
    return writer.take()
  } finally {
    writer.clear()
  }
}

/**
 * A message of tables of somebody else, without an envelope. What has no place is left out.
 * @throws UnencodableFieldError for a value of another type than its field has.
 */
export function encodeMessage(message: Message, value: Readonly<Record<string, unknown>>): Buffer {
  try {
    writeMessage(writer, message, value, 'skip')
    return writer.take()
  } finally {
    writer.clear()
  }
}

/**
 * Reads what `encodeMessage` writes.
 * @throws ProtobufError
 */
export const decodeMessage = (message: Message, bytes: Buffer, unknown: OnUnknownNumber = 'skip'): object =>
  readMessage(new Reader(bytes), message, unknown)

/** The head and the tail of runtime.Unknown around the message of an object. */
function enveloped(apiVersion: string, kind: string, length: number): [head: Buffer, tail: Buffer] {
  for (const [number, text] of [
    [2, kind],
    [1, apiVersion],
  ] as const) {
    const mark = writer.written
    writer.text(text)
    writer.head(number, mark)
  }
  writer.head(1, 0)
  const type = writer.take()
  writer.varint(length)
  writer.tag(2, 2)
  const head = writer.take()
  // contentEncoding and contentType, both empty, as the original writes them
  return [Buffer.concat([MAGIC, type, head]), Buffer.from([0x1a, 0, 0x22, 0])]
}

function idOf(apiVersion: string, kind: string): string {
  const id = messageOf(apiVersion, kind)
  if (id === undefined) throw new UnencodableFieldError('kind')
  return id
}

/**
 * One object in its envelope.
 * @throws UnencodableFieldError for a kind without a table, and for a field no table knows.
 */
export function encodeObject(
  object: Readonly<Record<string, unknown>> & { readonly apiVersion: string; readonly kind: string },
  { unknown = 'throw' }: EncodeOptions = {},
): Buffer {
  const { apiVersion, kind } = object
  const bytes = messageBytes(idOf(apiVersion, kind), object, unknown)
  const [head, tail] = enveloped(apiVersion, kind, bytes.length)
  return Buffer.concat([head, bytes, tail])
}

/**
 * A list in its envelope; `kind` is that of the items. What was encoded once is not encoded again.
 * @throws UnencodableFieldError for a kind without a table, and for a field no table knows.
 */
export function encodeList(
  apiVersion: string,
  kind: string,
  items: readonly object[],
  metadata: object,
  { unknown = 'throw' }: EncodeOptions = {},
): Buffer {
  const id = idOf(apiVersion, kind)
  const parts: Buffer[] = [listMetadata(metadata)]
  for (const item of items) {
    const bytes = messageBytes(id, item, unknown)
    writer.varint(bytes.length)
    writer.tag(2, 2)
    parts.push(writer.take(), bytes)
  }
  const length = parts.reduce((sum, part) => sum + part.length, 0)
  const [head, tail] = enveloped(apiVersion, `${kind}List`, length)
  return Buffer.concat([head, ...parts, tail])
}

function listMetadata(metadata: object): Buffer {
  try {
    writeMessage(writer, catalogue.get('meta.ListMeta'), metadata as Record<string, unknown>, 'skip')
    writer.head(1, 0)
    return writer.take()
  } finally {
    writer.clear()
  }
}

/**
 * One frame of a watch: its length in 4 bytes, then the event.
 * @param object an encoded object in its envelope
 */
export function encodeWatchEvent(type: string, object: Uint8Array): Buffer {
  writer.raw(object)
  writer.head(1, 0)
  writer.head(2, 0)
  const mark = writer.written
  writer.text(type)
  writer.head(1, mark)
  const event = writer.take()
  const length = Buffer.alloc(4)
  length.writeUInt32BE(event.length)
  return Buffer.concat([length, event])
}

/**
 * The object in an envelope, with apiVersion and kind, as JSON has it.
 * @throws ProtobufError where the bytes are no envelope, or no message of a kind we have a table for.
 */
export function decodeObject(bytes: Uint8Array, { unknown = 'skip' }: { unknown?: OnUnknownNumber } = {}): ApiObject {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  if (!buffer.subarray(0, 4).equals(MAGIC))
    throw new ProtobufError('the bytes do not begin as protobuf of Kubernetes does')
  const { apiVersion, kind, raw } = readEnvelope(new Reader(buffer, 4))
  const id = messageOf(apiVersion, kind)
  if (id !== undefined) {
    const object = readMessage(raw, catalogue.get(id), unknown)
    return { kind, apiVersion, ...object } as unknown as ApiObject
  }
  const item = kind.endsWith('List') ? messageOf(apiVersion, kind.slice(0, -4)) : undefined
  if (item === undefined) throw new ProtobufError(`there is no protobuf form of the kind ${kind} in ${apiVersion}`)
  return { kind, apiVersion, ...readList(raw, item, unknown) } as unknown as ApiObject
}

function readEnvelope(reader: Reader): { apiVersion: string; kind: string; raw: Reader } {
  let apiVersion = ''
  let kind = ''
  let raw = new Reader(Buffer.alloc(0))
  while (!reader.done) {
    const tag = reader.varint()
    if (tag === 10) {
      for (const type = reader.nested(); !type.done; ) {
        const part = type.varint()
        if (part === 10) apiVersion = type.nested().text()
        else if (part === 18) kind = type.nested().text()
        else type.skip(part & 7)
      }
    } else if (tag === 18) raw = reader.nested()
    else if (tag === 26 || tag === 34) {
      const text = reader.nested().text()
      if (text !== '' && !(tag === 34 && text.startsWith(CONTENT_TYPE)))
        throw new ProtobufError(`the content of the envelope is ${text.slice(0, 80)}, not protobuf`)
    } else reader.skip(tag & 7)
  }
  return { apiVersion, kind, raw }
}

function readList(reader: Reader, item: string, unknown: OnUnknownNumber): object {
  const message = catalogue.get(item)
  const items: object[] = []
  let metadata: object = {}
  while (!reader.done) {
    const tag = reader.varint()
    if (tag === 10) metadata = readMessage(reader.nested(), catalogue.get('meta.ListMeta'), unknown)
    else if (tag === 18) items.push(readMessage(reader.nested(), message, unknown))
    else reader.skip(tag & 7)
  }
  return { metadata, items }
}
