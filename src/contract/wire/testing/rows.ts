import fc from 'fast-check'
import { type RowsPart, type ScalarValue, Table, type TableRow } from '#model'
import { names, texts } from './arbitrary.ts'

const scalars: fc.Arbitrary<ScalarValue> = fc.oneof(
  texts,
  fc.integer(),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => value + 0),
  fc.boolean(),
  fc.constant(null),
)
/** A column mostly holds values of one sort. */
const columns: fc.Arbitrary<readonly ScalarValue[]> = fc.oneof(
  fc.array(scalars, { minLength: 12, maxLength: 12 }),
  fc.array(fc.integer({ min: 0, max: 9 }), { minLength: 12, maxLength: 12 }),
  fc.array(texts, { minLength: 12, maxLength: 12 }),
  fc.array(fc.boolean(), { minLength: 12, maxLength: 12 }),
  fc.array(fc.option(fc.integer()), { minLength: 12, maxLength: 12 }),
)
const keys = fc.tuple(
  fc.constantFrom('', 'a', 'b', 'kube-system', 'ü'),
  fc.oneof(
    fc.constantFrom('x', 'y', 'z', '__proto__'),
    fc.string({ minLength: 1, maxLength: 3 }).map((name) => name.replaceAll('/', '-')),
  ),
)
const labels = fc.array(fc.tuple(names, texts), { maxLength: 3 }).map((all) => Object.fromEntries(all))

/** Rows of any fields, of these where given. */
export const customRows = (fields?: readonly string[]): fc.Arbitrary<Table> =>
  fc
    .record({
      fields: fields ? fc.constant(fields) : fc.uniqueArray(names, { maxLength: 4 }),
      keys: fc.uniqueArray(keys, { maxLength: 12, selector: ([space, name]) => `${space}/${name}` }),
      labels: fc.array(labels, { minLength: 3, maxLength: 3 }),
      columns: fc.array(columns, { minLength: 4, maxLength: 4 }),
    })
    .map(({ fields, keys, labels, columns }) => {
      const rows = keys.map(
        ([namespace, name], row): TableRow => ({
          namespace,
          name,
          labels: labels[row % 3] ?? {},
          values: Object.fromEntries(fields.map((field, i) => [field, columns[i % 4]?.[row] ?? null])),
        }),
      )
      return Table.of(fields, rows)
    })

const counts = fc.nat()
const facts = {
  hash: fc.constantFrom('0123456789abcdef', 'fedcba9876543210', ''),
  durationMs: counts,
  truncated: fc.boolean(),
  aggregations: fc
    .array(
      fc.tuple(
        names,
        fc.oneof(
          scalars,
          fc.array(fc.tuple(names, scalars), { maxLength: 3 }).map((all) => Object.fromEntries(all)),
        ),
      ),
      { maxLength: 4 },
    )
    .map((all) => Object.fromEntries(all)),
  errors: fc.array(
    fc.record({
      namespace: texts,
      outcome: fc.constantFrom('absent' as const, 'forbidden' as const, 'unreachable' as const),
      code: texts,
      message: texts,
    }),
    { maxLength: 3 },
  ),
  errorCount: counts,
  reports: fc.array(fc.record({ field: texts, missing: counts, malformed: counts, example: texts }), { maxLength: 3 }),
}

export const rowsPart = (source: string, fields?: readonly string[]): fc.Arbitrary<RowsPart> =>
  fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({
        source: fc.constant(source),
        outcome: fc.constant('complete' as const),
        rows: customRows(fields),
        ...facts,
      }),
    },
    fc.record({
      source: fc.constant(source),
      hash: facts.hash,
      durationMs: counts,
      outcome: fc.constantFrom('absent' as const, 'forbidden' as const, 'unreachable' as const),
      code: texts,
      message: texts,
    }),
  )

/** Parts of some of three sources. */
export const rowsParts = (fields?: readonly string[]): fc.Arbitrary<readonly RowsPart[]> =>
  fc
    .tuple(...['team/a', 'team/b', 'ops/c'].map((source) => fc.option(rowsPart(source, fields), { nil: undefined })))
    .map((parts) => parts.filter((part) => part !== undefined))

/** What vitest can compare: equal tables may have other chunks. */
export const plain = (value: unknown): unknown => {
  if (value instanceof Table) return { rows: value.toColumns() }
  if (value instanceof Map) return [...value].map(([key, one]) => [key, plain(one)])
  if (Array.isArray(value)) return value.map(plain)
  if (typeof value !== 'object' || value === null) return value
  // Of properties the order is nobody's promise, and one may be called __proto__.
  return Object.entries(value)
    .map(([key, one]) => [key, plain(one)] as const)
    .sort(([a], [b]) => (a < b ? -1 : 1))
}
