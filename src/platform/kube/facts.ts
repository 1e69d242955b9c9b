import type { ProtoReader } from './protobuf.ts'
import type { KubeObject } from './types.ts'

/** Readers shared by the facts of pods, nodes, namespaces and deployments, in both encodings. */

export type Fields = Readonly<Record<string, unknown>>
const NONE: Fields = Object.freeze({})

export function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : NONE
}

export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

export function wholeOf(value: unknown): number {
  return typeof value === 'number' ? Math.trunc(value) : 0
}

/** A quantity is text as the server writes it; a bare number is legal in what people write. */
export function quantityOf(value: unknown): string {
  return typeof value === 'number' ? String(value) : textOf(value)
}

/** ms since the Unix epoch, of text or as protobuf gave it; null where there is none or it cannot be read. */
export function instantOf(value: unknown): number | null {
  if (typeof value === 'number') return value
  const ms = typeof value === 'string' ? Date.parse(value) : Number.NaN
  return Number.isNaN(ms) ? null : ms
}

export function textMapOf(value: unknown): Record<string, string> {
  const entries = Object.entries(fieldsOf(value)).filter(
    (entry): entry is [string, string] => typeof entry[1] === 'string',
  )
  return Object.fromEntries(entries)
}

export function metadataOf(object: KubeObject): Fields {
  return fieldsOf(object.metadata)
}

/** metav1.Time: an empty message is the zero time, which means "none". */
export function readInstant(reader: ProtoReader): number | null {
  const outer = reader.enter()
  const none = reader.pos === reader.end
  let seconds = 0
  let nanos = 0
  for (let tag = reader.tag(); tag !== 0; tag = reader.tag()) {
    if (tag === 8) seconds = reader.int64()
    else if (tag === 16) nanos = reader.int64()
    else reader.skip(tag)
  }
  reader.leave(outer)
  return none ? null : seconds * 1000 + Math.floor(nanos / 1e6)
}

/** resource.Quantity: a message with its text. */
export function readQuantity(reader: ProtoReader): string {
  const outer = reader.enter()
  let text = ''
  for (let tag = reader.tag(); tag !== 0; tag = reader.tag()) {
    if (tag === 10) text = reader.shared()
    else reader.skip(tag)
  }
  reader.leave(outer)
  return text
}

/** One entry of a map of text to text. */
export function readTextEntry(reader: ProtoReader): [string, string] {
  const outer = reader.enter()
  let key = ''
  let value = ''
  for (let tag = reader.tag(); tag !== 0; tag = reader.tag()) {
    if (tag === 10) key = reader.shared()
    else if (tag === 18) value = reader.shared()
    else reader.skip(tag)
  }
  reader.leave(outer)
  return [key, value]
}
