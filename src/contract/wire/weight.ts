import type { DescMessage } from '@bufbuild/protobuf'
import { Reader } from './bytes.ts'
import { WireError } from './errors.ts'

/*
 * Two bytes of a message can ask for an object of forty fields. Before a large message is decoded, what it asks for is counted
 * in fields and must be in proportion to its size; every message that says something real is far below.
 */

/** Messages up to this size are decoded as they are: the worst of them asks for some 20 MiB. */
const SMALL = 64 * 1024
const FIELDS_PER_BYTE = 4

/** @throws WireError */
export function checkWeight(schema: DescMessage, bytes: Uint8Array): void {
  if (bytes.length <= SMALL) return
  const allowed = bytes.length * FIELDS_PER_BYTE
  weigh(schema, new Reader(bytes), { left: allowed })
}

const VARINT = 0
const FIXED64 = 1
const SIZED = 2
const FIXED32 = 5

function weigh(schema: DescMessage, from: Reader, budget: { left: number }): void {
  const fields = fieldsOf(schema)
  while (from.left > 0) {
    const tag = from.varint()
    const wireType = tag & 7
    if (wireType === VARINT) skipVarint(from)
    else if (wireType === FIXED64) from.take(8)
    else if (wireType === FIXED32) from.take(4)
    else if (wireType === SIZED) weighSized(fields.get(Math.floor(tag / 8)), from, budget)
    // Groups are of a time before this protocol.
    else throw new WireError('the bytes are no message of this protocol')
  }
}

/** A negative int32 is written in ten bytes. */
function skipVarint(from: Reader): void {
  for (let i = 0; i < 10; i++) if (from.u8() < 0x80) return
  throw new WireError('the bytes are no message of this protocol')
}

/** undefined: bytes, a text, or a field we do not know, which is passed over */
function weighSized(inner: Inner | undefined, from: Reader, budget: { left: number }): void {
  const size = from.varint()
  const end = from.take(size) + size
  if (!inner) return
  budget.left -= inner.weight
  if (budget.left < 0) throw new WireError('the message describes more than its size allows')
  if (!inner.message) return
  const outer = from.end
  from.at = end - size
  from.end = end
  weigh(inner.message, from, budget)
  from.end = outer
}

interface Inner {
  readonly weight: number
  readonly message?: DescMessage
}

const known = new Map<string, ReadonlyMap<number, Inner>>()

function fieldsOf(schema: DescMessage): ReadonlyMap<number, Inner> {
  let fields = known.get(schema.typeName)
  if (!fields) {
    fields = new Map(
      schema.fields.flatMap((field) => {
        const inner = innerOf(field)
        return inner ? [[field.number, inner] as const] : []
      }),
    )
    known.set(schema.typeName, fields)
  }
  return fields
}

function innerOf(field: DescMessage['fields'][number]): Inner | undefined {
  if (field.message) return { weight: field.message.fields.length + 4, message: field.message }
  if (field.fieldKind === 'map') return { weight: 6 }
  return field.fieldKind === 'list' ? { weight: 2 } : undefined
}
