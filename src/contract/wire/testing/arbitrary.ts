import fc from 'fast-check'
import {
  type Batch,
  type BatchView,
  type Part,
  parseClusterName,
  type SnapshotType,
  snapshotSchemas,
  snapshotTypes,
} from '#model'
import type { BodyHead } from '../body.ts'
import { type Shape, shapeOf } from '../shape.ts'

/** Anything the schema of a shape allows, with a taste for what is hard to carry. */
export function anyOf(shape: Shape): fc.Arbitrary<unknown> {
  const value = knownValue(shape)
  return shape.nullable ? fc.option(value, { nil: null, freq: 4 }) : value
}

function knownValue(shape: Shape): fc.Arbitrary<unknown> {
  switch (shape.kind) {
    case 'boolean':
      return fc.boolean()
    case 'number':
      return shape.isInteger ? integers : numbers
    case 'text':
      return shape.words ? fc.constantFrom(...shape.words) : texts
    case 'list':
      return fc.array(anyOf(shape.items), { maxLength: 4 })
    case 'record':
      return fc
        .array(fc.tuple(names, anyOf(shape.values)), { maxLength: 4 })
        .map((entries) => Object.fromEntries(entries))
    case 'object':
      return fc.record(Object.fromEntries(shape.properties.map((property) => [property.name, anyOf(property.shape)])), {
        requiredKeys: shape.properties.filter(({ optional }) => !optional).map(({ name }) => name),
        noNullPrototype: true,
      })
    case 'json':
      return fc.jsonValue({ maxDepth: 3 })
  }
}

export const names = fc.oneof(
  { weight: 5, arbitrary: fc.constantFrom('a', 'app', 'kubernetes.io/hostname', 'zone') },
  fc.constantFrom('__proto__', 'constructor', '', 'toString', '0', '-1'),
  fc.string({ unit: 'binary', maxLength: 8 }),
)
export const texts = fc.oneof(
  { weight: 5, arbitrary: fc.constantFrom('', 'True', 'worker', 'node-1', 'v1.33.2') },
  fc.string({ unit: 'grapheme', maxLength: 12 }),
  fc.string({ unit: 'binary', maxLength: 12 }),
  fc.constantFrom('\ufeffbom', '\ud800', 'x\udc00', 'ein ü', '\0', '🚀'),
)
const integers = fc.oneof(
  fc.integer({ min: 0, max: 200 }),
  fc.maxSafeInteger(),
  fc.constantFrom(0, -0, 2 ** 52, 2 ** 53, -(2 ** 52), 1e300, 1_760_000_000_000, Number.MAX_VALUE, 17_179_869_184),
)
const numbers = fc.oneof(
  integers,
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.integer({ min: 0, max: 64_000 }).map((milli) => milli / 1000),
  fc.constantFrom(0.1 + 0.2, 5e-324, 1e-9, 123_456_789e-9, -0.5, 1 / 3),
)

export function itemsOf(type: SnapshotType, maxLength = 6): fc.Arbitrary<readonly { readonly name: string }[]> {
  // The schema of a snapshot makes snapshots.
  return fc.array(anyOf(shapeOf(snapshotSchemas[type] as never)), { maxLength }) as never
}

function partOf(type: SnapshotType): fc.Arbitrary<Part> {
  const head = { type: fc.constant(type), collector: texts, durationMs: numbers }
  return fc.oneof(
    { weight: 3, arbitrary: fc.record({ ...head, outcome: fc.constant('complete' as const), items: itemsOf(type) }) },
    fc.record({
      ...head,
      outcome: fc.constantFrom('absent' as const, 'forbidden' as const, 'unreachable' as const),
      code: texts,
      message: texts,
    }),
  ) as fc.Arbitrary<unknown> as fc.Arbitrary<Part>
}

export const batches: fc.Arbitrary<Batch> = fc
  .record({
    sequence: fc.nat(),
    collectedAt: fc.nat(),
    durationMs: numbers,
    parts: fc.array(fc.constantFrom(...snapshotTypes).chain(partOf), { maxLength: 8 }),
    failure: fc.option(fc.record({ code: texts, message: texts }), { nil: undefined, freq: 3 }),
  })
  .map(({ failure, ...batch }) => ({
    ...batch,
    cluster: parseClusterName('west'),
    origin: 'a1',
    source: 'push',
    ...(failure && { failure }),
  }))

export const headOf = ({ cluster, origin, sequence, collectedAt }: Batch): BodyHead => ({
  cluster,
  ...(origin !== undefined && { origin }),
  sequence,
  collectedAt,
})

/** A batch that differs from another in some rows, some columns, some parts. */
export function following(batch: Batch, view: BatchView): fc.Arbitrary<Batch> {
  const parts = batch.parts.map((part) =>
    part.outcome !== 'complete'
      ? fc.constant(part)
      : fc
          .tuple(
            fc.array(fc.constantFrom('keep', 'keep', 'keep', 'drop', 'change'), {
              minLength: part.items.length,
              maxLength: part.items.length,
            }),
            itemsOf(part.type, 3),
            itemsOf(part.type, 3),
            fc.nat(),
          )
          .map(([fates, others, added, pick]) => {
            const items = part.items.flatMap((item, i) => {
              if (fates[i] === 'drop') return []
              const other = others[i % Math.max(1, others.length)]
              if (fates[i] !== 'change' || !other) return [i % 2 ? item : structuredClone(item)]
              const keys = Object.keys(other).filter((key) => key !== 'name')
              const key = keys[pick % keys.length]!
              return [{ ...item, [key]: (other as Record<string, unknown>)[key] }]
            })
            return { ...part, items: [...items, ...added] } as unknown as Part
          }),
  )
  return fc.tuple(...parts).map((parts) => ({ ...batch, sequence: batch.sequence + 1, parts, ...(view && {}) }))
}
