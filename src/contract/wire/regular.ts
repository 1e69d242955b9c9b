import { type DescField, type DescMessage, ScalarType } from '@bufbuild/protobuf'
import { Reader } from './bytes.ts'
import { WireError } from './errors.ts'

const VARINT = 0
const FIXED64 = 1
const SIZED = 2
const FIXED32 = 5

/**
 * Whether every known field has the wire type it is declared with, and nothing reaches beyond what holds it. Of such bytes a
 * decoder reads the same whatever stands before and behind them.
 */
export function isRegular(schema: DescMessage, bytes: Uint8Array): boolean {
  try {
    return walk(shapeOf(schema), new Reader(bytes))
  } catch (error) {
    if (error instanceof WireError) return false
    throw error
  }
}

interface Shape {
  readonly wireTypes: ReadonlyMap<number, number>
  readonly inner: ReadonlyMap<number, Shape>
}

function walk({ wireTypes, inner }: Shape, from: Reader): boolean {
  while (from.left > 0) {
    const tag = from.varint()
    if (tag < 8 || tag > 0xffffffff) return false
    const field = tag >>> 3
    const wireType = tag & 7
    if ((wireTypes.get(field) ?? wireType) !== wireType) return false
    if (wireType === VARINT) skipVarint(from)
    else if (wireType === FIXED64) from.take(8)
    else if (wireType === FIXED32) from.take(4)
    else if (wireType !== SIZED) return false
    else if (!walkSized(inner.get(field), from)) return false
  }
  return true
}

function walkSized(shape: Shape | undefined, from: Reader): boolean {
  const size = from.varint()
  const start = from.take(size)
  if (!shape) return true
  const outer = from.end
  from.at = start
  from.end = start + size
  const regular = walk(shape, from)
  from.end = outer
  return regular
}

/** A negative int32 is written in ten bytes. */
function skipVarint(from: Reader): void {
  for (let i = 0; i < 10; i++) if (from.u8() < 0x80) return
  throw new WireError('a whole number is too long')
}

const shapes = new Map<string, Shape>()

function shapeOf(schema: DescMessage): Shape {
  let shape = shapes.get(schema.typeName)
  if (!shape) {
    const wireTypes = new Map<number, number>()
    const inner = new Map<number, Shape>()
    shape = { wireTypes, inner }
    shapes.set(schema.typeName, shape)
    for (const field of schema.fields) {
      wireTypes.set(field.number, wireTypeOf(field))
      const within = innerOf(field)
      if (within) inner.set(field.number, within)
    }
  }
  return shape
}

/** Lists of numbers may be written in two ways: none of them is regular. */
function wireTypeOf(field: DescField): number {
  if (field.fieldKind === 'scalar') return scalarWireType(field.scalar)
  if (field.fieldKind === 'enum') return VARINT
  if (field.fieldKind !== 'list' || field.listKind === 'message') return SIZED
  return field.listKind === 'scalar' && scalarWireType(field.scalar) === SIZED ? SIZED : Number.NaN
}

function scalarWireType(type: ScalarType): number {
  switch (type) {
    case ScalarType.STRING:
    case ScalarType.BYTES:
      return SIZED
    case ScalarType.DOUBLE:
    case ScalarType.FIXED64:
    case ScalarType.SFIXED64:
      return FIXED64
    case ScalarType.FLOAT:
    case ScalarType.FIXED32:
    case ScalarType.SFIXED32:
      return FIXED32
    default:
      return VARINT
  }
}

function innerOf(field: DescField): Shape | undefined {
  if (field.fieldKind === 'map') {
    const value = field.mapKind === 'scalar' ? scalarWireType(field.scalar) : field.mapKind === 'enum' ? VARINT : SIZED
    const inner = new Map(field.mapKind === 'message' ? [[2, shapeOf(field.message)] as const] : [])
    return {
      wireTypes: new Map([
        [1, scalarWireType(field.mapKey)],
        [2, value],
      ]),
      inner,
    }
  }
  return field.message ? shapeOf(field.message) : undefined
}
