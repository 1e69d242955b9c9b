import { invariant, type SnapshotType, snapshotSchemas, snapshotTypes } from '#model'
import type { Codec } from './column.ts'
import { ColumnLayout, objectCodec } from './column-layout.ts'
import { listCodec, recordCodec } from './nested.ts'
import { booleanCodec, jsonCodec, numberCodec, textCodec } from './scalars.ts'
import { type Schema, type Shape, shapeOf } from './shape.ts'

export function codecOf(shape: Shape): Codec {
  const { nullable } = shape
  switch (shape.kind) {
    case 'boolean':
      return booleanCodec(nullable)
    case 'number':
      return numberCodec(nullable, shape.isInteger)
    case 'text':
      return textCodec(nullable, shape.words)
    case 'list':
      return listCodec(nullable, codecOf(shape.items))
    case 'record':
      return recordCodec(nullable, codecOf(shape.values))
    case 'object':
      return objectCodec(nullable, new ColumnLayout(shape.properties, codecOf))
    case 'json':
      return jsonCodec()
  }
}

/** The table of any schema of an object. */
export function layoutOf(schema: Schema): ColumnLayout {
  const shape = shapeOf(schema)
  invariant(shape.kind === 'object', 'rows are objects with properties')
  return new ColumnLayout(shape.properties, codecOf)
}

const made = new Map<SnapshotType, ColumnLayout>()

/** The table of a type of snapshot, made when it is first needed; undefined: a newer writer knows it, we do not. */
export function snapshotLayout(
  type: string,
): { readonly type: SnapshotType; readonly layout: ColumnLayout } | undefined {
  const known = snapshotTypes.find((one) => one === type)
  if (!known) return undefined
  let layout = made.get(known)
  if (!layout) {
    // A TypeBox schema is a JSON Schema; Schema names the part of it that is read here.
    layout = layoutOf(snapshotSchemas[known] as Schema)
    made.set(known, layout)
  }
  return { type: known, layout }
}
