import { readInstant, readQuantity, readTextEntry } from './facts.ts'
import { ProtoReader } from './protobuf.ts'
import type { KubeObject } from './types.ts'

/**
 * How a field is read: `text`; `word`, a text that many objects share; `int`; `count`, an int whose 0 the JSON leaves out; `bool`;
 * `time`, as ms since the Unix epoch where JSON has text; maps of texts and of quantities; a message; or a list of one of these.
 */
export type FieldType = ScalarType | 'words' | 'quantities' | Message | readonly [Message | 'text']
type ScalarType = 'text' | 'word' | 'int' | 'count' | 'bool' | 'time'

interface Field {
  readonly name: string
  readonly type: ScalarType | 'words' | 'quantities' | Message
  readonly isList: boolean
  /** wire type its values have */
  readonly wire: number
}

/** The fields of a message that somebody wants, by number. */
export interface Message {
  readonly fields: readonly (Field | undefined)[]
}

/**
 * Declares which fields of a message are read: name in the JSON → number and type, as in the generated.proto files of k8s.io/api.
 * All others are stepped over.
 */
export function message(wanted: Readonly<Record<string, readonly [number: number, type: FieldType]>>): Message {
  const fields: (Field | undefined)[] = []
  for (const [name, [number, given]] of Object.entries(wanted)) {
    const isList = Array.isArray(given)
    const type = (isList ? given[0] : given) as Field['type'] // a list holds one type
    const isVarint = type === 'int' || type === 'count' || type === 'bool'
    fields[number] = { name, type, isList, wire: isVarint ? 0 : 2 }
  }
  // No holes: a lookup in an array with holes goes through the prototypes.
  return { fields: Array.from(fields) }
}

/**
 * Reads objects of a kind as the JSON would have them, of the wanted fields alone. What is empty is left out, as the JSON leaves
 * out most of it; times are numbers.
 */
export function projected(kind: Message): (bytes: Uint8Array) => KubeObject {
  return (bytes) => {
    const object = readMessage(new ProtoReader(bytes), kind)
    object.metadata ??= {}
    return object as KubeObject // every kind has its metadata read, and a name there
  }
}

function readMessage(reader: ProtoReader, { fields }: Message): Record<string, unknown> {
  const object: Record<string, unknown> = {}
  for (let tag = reader.tag(); tag !== 0; tag = reader.tag()) {
    const field = fields[tag >>> 3]
    if (field === undefined || field.wire !== (tag & 7)) reader.skip(tag)
    else if (field.isList) {
      const list = object[field.name] as unknown[] | undefined
      const value = field.type === 'text' ? reader.string() : readNested(reader, field.type as Message)
      if (list === undefined) object[field.name] = [value]
      else list.push(value)
    } else readField(reader, field, object)
  }
  return object
}

const LENGTH_DELIMITED = 2
const NOTHING: Record<string, unknown> = Object.freeze({})

function readNested(reader: ProtoReader, kind: Message): Record<string, unknown> {
  if (kind.fields.length === 0) {
    reader.skip(LENGTH_DELIMITED)
    return NOTHING
  }
  const outer = reader.enter()
  const object = readMessage(reader, kind)
  reader.leave(outer)
  return object
}

function readField(reader: ProtoReader, { name, type }: Field, object: Record<string, unknown>): void {
  switch (type) {
    case 'text':
    case 'word': {
      const text = type === 'word' ? reader.shared() : reader.string()
      if (text !== '') object[name] = text
      return
    }
    case 'int':
      object[name] = reader.int64()
      return
    case 'count': {
      const count = reader.int64()
      if (count !== 0) object[name] = count
      return
    }
    case 'bool':
      object[name] = reader.bool()
      return
    case 'time': {
      const at = readInstant(reader)
      if (at !== null) object[name] = at
      return
    }
    case 'words': {
      const [key, value] = readTextEntry(reader)
      mapAt(object, name)[key] = value
      return
    }
    case 'quantities': {
      const [key, value] = readQuantityEntry(reader)
      mapAt(object, name)[key] = value
      return
    }
    default:
      object[name] = readNested(reader, type)
  }
}

function mapAt(object: Record<string, unknown>, name: string): Record<string, string> {
  const known = object[name] as Record<string, string> | undefined
  if (known !== undefined) return known
  const made: Record<string, string> = {}
  object[name] = made
  return made
}

function readQuantityEntry(reader: ProtoReader): [string, string] {
  const outer = reader.enter()
  let key = ''
  let amount = ''
  for (let tag = reader.tag(); tag !== 0; tag = reader.tag()) {
    if (tag === 10) key = reader.shared()
    else if (tag === 18) amount = readQuantity(reader)
    else reader.skip(tag)
  }
  reader.leave(outer)
  return [key, amount]
}

/** metav1.ObjectMeta, as rows need it. */
export const objectMeta = message({
  name: [1, 'text'],
  namespace: [3, 'word'],
  generation: [7, 'count'],
  creationTimestamp: [8, 'time'],
  deletionTimestamp: [9, 'time'],
  labels: [11, 'words'],
  ownerReferences: [13, [message({ kind: [1, 'word'], name: [3, 'word'], controller: [6, 'bool'] })]],
})
