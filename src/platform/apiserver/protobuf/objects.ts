import type { BinaryReader } from '@bufbuild/protobuf/wire'
import type { ApiObject } from '../types.ts'
import { catalogue, messageOf } from './catalogue.ts'
import { isDone, nested, type OnUnknownNumber, reading, readMessage } from './decode.ts'
import { type OnUnknown, writeMessage } from './encode.ts'
import { ProtobufError, UnencodableFieldError } from './errors.ts'
import type { Message } from './table.ts'
import { BackwardWriter } from './writer.ts'

const MAGIC = Buffer.from('k8s\0', 'latin1')
const TAIL = Buffer.from([0x1a, 0, 0x22, 0])
const CONTENT_TYPE = 'application/vnd.kubernetes.protobuf'

/** One for all: nothing waits while a message is written. */
const writer = new BackwardWriter()

/**
 * Messages of objects that are served again and again; stored objects never change. They are kept when they are written for the
 * second time: what is read once would fill the memory with bytes that nobody asks for.
 */
const kept = new WeakMap<object, Buffer | 'once'>()

interface EncodeOptions {
  /** `skip` leaves out what has no place, as the original API does; default `throw` */
  readonly unknown?: OnUnknown
}

/** Whether objects of this kind have a table. */
export const canEncode = (apiVersion: string, kind: string): boolean => messageOf(apiVersion, kind) !== undefined

/** Writes the message of one object, without the envelope that names its kind. */
function writeObject(id: string, object: object, unknown: OnUnknown): void {
  const known = kept.get(object)
  if (known !== undefined && known !== 'once') {
    writer.raw(known)
    return
  }
  const mark = writer.written
  const { apiVersion: _, kind: __, ...fields } = object as Readonly<Record<string, unknown>>
  try {
    writeMessage(writer, catalogue.get(id), fields, 'throw')
    kept.set(object, known ? writer.since(mark) : 'once')
  } catch (error) {
    if (unknown === 'throw' || !(error instanceof UnencodableFieldError)) throw error
    writer.backTo(mark)
    writeMessage(writer, catalogue.get(id), fields, unknown)
  }
}

/** What is written, as bytes of its own; the writer is empty afterwards, whatever happens. */
function written(write: () => void): Buffer {
  try {
    write()
    return writer.since(0)
  } finally {
    writer.backTo(0)
  }
}

/**
 * A message of tables of somebody else, without an envelope. What has no place is left out.
 * @throws UnencodableFieldError for a value of another type than its field has.
 */
export const encodeMessage = (message: Message, value: Readonly<Record<string, unknown>>): Buffer =>
  written(() => writeMessage(writer, message, value, 'skip'))

/**
 * Reads what `encodeMessage` writes.
 * @throws ProtobufError
 */
export const decodeMessage = (message: Message, bytes: Buffer, unknown: OnUnknownNumber = 'skip'): object =>
  reading(bytes, (reader) => readMessage(reader, message, unknown))

/** What `write` writes, in runtime.Unknown: an envelope that names the kind. */
function enveloped(apiVersion: string, kind: string, write: () => void): Buffer {
  return written(() => {
    // contentEncoding and contentType, both empty, as the original writes them
    writer.raw(TAIL)
    const message = writer.written
    write()
    writer.head(2, message)
    const type = writer.written
    for (const [number, text] of [
      [2, kind],
      [1, apiVersion],
    ] as const) {
      const mark = writer.written
      writer.text(text)
      writer.head(number, mark)
    }
    writer.head(1, type)
    writer.raw(MAGIC)
  })
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
  const id = idOf(apiVersion, kind)
  return enveloped(apiVersion, kind, () => writeObject(id, object, unknown))
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
  return enveloped(apiVersion, `${kind}List`, () => {
    for (let at = items.length - 1; at >= 0; at--) {
      const mark = writer.written
      writeObject(id, items[at] as object, unknown) // `at` is within the items
      writer.head(2, mark)
    }
    const mark = writer.written
    writeMessage(writer, catalogue.get('meta.ListMeta'), metadata as Record<string, unknown>, 'skip')
    writer.head(1, mark)
  })
}

/**
 * One frame of a watch: its length in 4 bytes, then the event.
 * @param object an encoded object in its envelope
 */
export function encodeWatchEvent(type: string, object: Uint8Array): Buffer {
  const event = written(() => {
    writer.raw(object)
    writer.head(1, 0)
    writer.head(2, 0)
    const mark = writer.written
    writer.text(type)
    writer.head(1, mark)
  })
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
  return reading(buffer.subarray(4), (reader) => readObject(reader, unknown))
}

function readObject(reader: BinaryReader, unknown: OnUnknownNumber): ApiObject {
  const { apiVersion, kind, raw } = readEnvelope(reader)
  const id = messageOf(apiVersion, kind)
  if (id !== undefined) {
    const object = raw ? readMessage(raw, catalogue.get(id), unknown) : {}
    return { kind, apiVersion, ...object } as unknown as ApiObject
  }
  const item = kind.endsWith('List') ? messageOf(apiVersion, kind.slice(0, -4)) : undefined
  if (item === undefined) throw new ProtobufError(`there is no protobuf form of the kind ${kind} in ${apiVersion}`)
  const list = raw ? readList(raw, item, unknown) : { metadata: {}, items: [] }
  return { kind, apiVersion, ...list } as unknown as ApiObject
}

interface Envelope {
  readonly apiVersion: string
  readonly kind: string
  readonly raw: BinaryReader | undefined
}

function readEnvelope(reader: BinaryReader): Envelope {
  const texts = new Map<number, string>()
  let raw: BinaryReader | undefined
  while (!isDone(reader)) {
    const [number, wire] = reader.tag()
    if (wire !== 2) reader.skip(wire, number)
    else if (number === 1) readTexts(nested(reader), texts)
    else if (number === 2) raw = nested(reader)
    else {
      const text = reader.string()
      if (text !== '' && (number === 3 || (number === 4 && !text.startsWith(CONTENT_TYPE))))
        throw new ProtobufError(`the content of the envelope is ${text.slice(0, 80)}, not protobuf`)
    }
  }
  return { apiVersion: texts.get(1) ?? '', kind: texts.get(2) ?? '', raw }
}

function readTexts(reader: BinaryReader, into: Map<number, string>): void {
  while (!isDone(reader)) {
    const [number, wire] = reader.tag()
    if (wire === 2) into.set(number, reader.string())
    else reader.skip(wire, number)
  }
}

function readList(reader: BinaryReader, item: string, unknown: OnUnknownNumber): object {
  const message = catalogue.get(item)
  const items: object[] = []
  let metadata: object = {}
  while (!isDone(reader)) {
    const [number, wire] = reader.tag()
    if (number === 1 && wire === 2) metadata = readMessage(nested(reader), catalogue.get('meta.ListMeta'), unknown)
    else if (number === 2 && wire === 2) items.push(readMessage(nested(reader), message, unknown))
    else reader.skip(wire, number)
  }
  return { metadata, items }
}
