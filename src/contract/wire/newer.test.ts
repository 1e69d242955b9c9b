import fc from 'fast-check'
import { type TSchema, Type } from 'typebox'
import { describe, expect, it } from 'vitest'
import { type Batch, parseClusterName } from '#model'
import { decodeBody, encodeBody } from './body.ts'
import { Reader, Writer } from './bytes.ts'
import { Decoding, Encoding } from './column.ts'
import { layoutOf } from './column-layouts.ts'
import { type Schema, shapeOf } from './shape.ts'
import { anyOf } from './testing/arbitrary.ts'
import { viewOf } from './view.ts'

/** Rows as one version writes them and another reads them. */
function across(writer: TSchema, reader: TSchema, rows: readonly object[]): object[] {
  const into = new Encoding()
  layoutOf(writer as Schema).write(rows, into)
  const bytes = new Writer()
  into.texts.write(bytes)
  bytes.raw(into.to.done())
  return layoutOf(reader as Schema).read(rows.length, new Decoding(new Reader(bytes.done())))
}

const older = Type.Object({ name: Type.String(), state: Type.Union([Type.Literal('on'), Type.Literal('unknown')]) })
const newer = Type.Object({
  name: Type.String(),
  state: Type.Union([Type.Literal('on'), Type.Literal('paused'), Type.Literal('unknown')]),
  cores: Type.Number(),
  limit: Type.Union([Type.Number(), Type.Null()]),
  note: Type.Optional(Type.String()),
  tags: Type.Array(Type.String()),
  seen: Type.Object({ at: Type.Integer(), by: Type.Record(Type.String(), Type.Number()) }),
})
const row = { name: 'a', state: 'on', cores: 1.5, limit: null, tags: ['x'], seen: { at: 5, by: { me: -0 } } }

/** Schemas nobody has thought of yet. */
const { schema: anySchema } = fc.letrec<{ schema: TSchema; object: TSchema }>((tie) => ({
  schema: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.constantFrom<TSchema>(
      Type.String(),
      Type.Number(),
      Type.Integer(),
      Type.Boolean(),
      Type.Union([Type.Literal('a'), Type.Literal('b')]),
      Type.Union([Type.Number(), Type.Null()]),
    ),
    tie('object'),
    tie('schema').map((items) => Type.Array(items)),
    tie('schema').map((values) => Type.Record(Type.String(), values)),
    tie('schema').map((one) => Type.Union([one, Type.Null()])),
  ),
  object: fc
    .array(fc.tuple(fc.constantFrom('a', 'b', 'c', 'length', 'name'), tie('schema'), fc.boolean()), {
      maxLength: 4,
    })
    .map((all) =>
      Type.Object(Object.fromEntries(all.map(([name, one, may]) => [name, may ? Type.Optional(one) : one]))),
    ),
}))
const anyTable = fc
  .uniqueArray(fc.tuple(fc.constantFrom('p', 'q', 'r', 's'), anySchema), { maxLength: 4, selector: ([name]) => name })
  .chain((columns) => {
    const schema = Type.Object(Object.fromEntries(columns))
    return fc.record({
      schema: fc.constant(schema),
      known: fc.subarray(columns.map(([name]) => name)),
      rows: fc.array(anyOf(shapeOf(schema as Schema)), { maxLength: 6 }) as fc.Arbitrary<Record<string, unknown>[]>,
    })
  })

describe('rows of any schema', () => {
  it('come back as they were, and as far as the reader knows them', () => {
    fc.assert(
      fc.property(anyTable, ({ schema, known, rows }) => {
        expect(across(schema, schema, rows)).toEqual(rows)
        const less = Type.Object(Object.fromEntries(known.map((name) => [name, schema.properties[name]!])))
        const seen = rows.map((row) => Object.fromEntries(known.map((name) => [name, row[name]])))
        expect(across(schema, less, rows)).toEqual(seen)
      }),
      { numRuns: 300 },
    )
  })
})

describe('a column', () => {
  it('is passed over by a reader that does not know it', () => {
    expect(across(newer, older, [row, { ...row, name: 'b', note: 'n' }])).toEqual([
      { name: 'a', state: 'on' },
      { name: 'b', state: 'on' },
    ])
  })

  it('of an object that may be null by now keeps its name: what was always there is read by older and newer alike', () => {
    const pods = Type.Object({ total: Type.Integer(), running: Type.Integer() })
    const older = Type.Object({ name: Type.String(), pods })
    const newer = Type.Object({ name: Type.String(), pods: Type.Union([pods, Type.Null()], { flat: true }) })
    const known = [{ name: 'a', pods: { total: 2, running: 1 } }]
    const unread = [...known, { name: 'b', pods: null }]
    expect(across(newer, older, known)).toEqual(known)
    expect(across(older, newer, known)).toEqual(known)
    expect(across(newer, newer, unread)).toEqual(unread)
    expect(across(newer, newer, unread.slice(1))).toEqual(unread.slice(1))
    expect(() => across(newer, older, unread)).toThrow('a value is null')
  })

  it('that the writer did not know is null where it may be, absent where it may be, else empty', () => {
    expect(across(older, newer, [{ name: 'a', state: 'on' }])).toStrictEqual([
      { name: 'a', state: 'on', cores: 0, limit: null, tags: [], seen: { at: 0, by: {} } },
    ])
  })

  it('with a word that is newer than the reader is unknown', () => {
    expect(across(newer, older, [{ ...row, state: 'paused' }])).toEqual([{ name: 'a', state: 'unknown' }])
  })

  it('keeps what is absent apart from what is null, whatever else is in it', () => {
    const schema = Type.Object({ name: Type.String(), at: Type.Optional(Type.Union([Type.Integer(), Type.Null()])) })
    const rows = [{ name: 'a' }, { name: 'b', at: null }, { name: 'c', at: 7 }, { name: 'd' }]
    expect(across(schema, schema, rows)).toStrictEqual(rows)
    expect(across(schema, schema, rows.slice(0, 2))).toStrictEqual(rows.slice(0, 2))
    expect(across(schema, schema, rows.slice(0, 1))).toStrictEqual(rows.slice(0, 1))
  })

  it('keeps -0 apart from 0, in rows, lists and maps', () => {
    const schema = Type.Object({
      one: Type.Number(),
      list: Type.Array(Type.Number()),
      map: Type.Record(Type.String(), Type.Number()),
      any: Type.Unknown(),
    })
    const rows = [
      { one: 0, list: [0], map: { a: 0 }, any: { x: [1] } },
      { one: -0, list: [-0], map: { a: -0 }, any: null },
      { one: -0, list: [-0, 0], map: { a: -0, b: 1 }, any: 'text' },
    ]
    const [first, second, third] = across(schema, schema, rows)
    expect([first, second, third]).toStrictEqual(rows)
  })

  it('holds numbers of every size in the fewest exact bytes', () => {
    const schema = Type.Object({ value: Type.Number() })
    const size = (values: readonly number[]) => {
      const into = new Encoding()
      layoutOf(schema as Schema).write(
        values.map((value) => ({ value })),
        into,
      )
      return into.to.length
    }
    const cores = Array.from({ length: 100 }, (_, i) => i / 4)
    const thirds = Array.from({ length: 100 }, (_, i) => i / 3)
    const memory = Array.from({ length: 100 }, (_, i) => 2 ** 34 + i * 4096)
    for (const values of [cores, thirds, memory])
      expect(
        across(
          schema,
          schema,
          values.map((value) => ({ value })),
        ),
      ).toEqual(values.map((value) => ({ value })))
    expect(size(cores)).toBeLessThan(220)
    expect(size(memory)).toBeLessThan(220)
    expect(size(thirds)).toBeLessThan(830)
  })
})

const batch: Batch = {
  cluster: parseClusterName('west'),
  origin: 'a',
  sequence: 4,
  source: 'push',
  collectedAt: 10,
  durationMs: 3,
  parts: [
    {
      type: 'namespace',
      collector: 'namespaces',
      durationMs: 1,
      outcome: 'complete',
      items: [{ name: 'team', phase: 'Active', createdAt: 5, labels: {} }],
    },
    { type: 'operator', collector: 'operators', durationMs: 1, outcome: 'forbidden', code: 'forbidden', message: 'no' },
  ],
}
const head = { cluster: batch.cluster, origin: 'a', sequence: 4, collectedAt: 10 }

/** The same body with one text of the table changed: what a newer writer might have said. */
function saying(body: Uint8Array, was: string, is: string): Uint8Array {
  const text = Buffer.from(body).toString('latin1')
  expect(text.split(was).length).toBe(2)
  return Uint8Array.from(Buffer.from(text.replace(was, is), 'latin1'))
}

describe('a body of a newer writer', () => {
  it('is read without the types we do not know', () => {
    const { batch: decoded, view } = decodeBody(
      saying(encodeBody(batch), 'namespacenamespaces', 'gpugpugpunamespaces'),
      head,
    )
    expect(decoded.parts.map(({ type }) => type)).toEqual(['operator'])
    expect(view).toEqual({})
  })

  it('is read without the columns we do not know, which then are empty', () => {
    const { batch: decoded } = decodeBody(saying(encodeBody(batch), 'phase', 'later'), head)
    expect(decoded.parts[0]).toMatchObject({ items: [{ name: 'team', phase: '', createdAt: 5 }] })
  })

  it('changes nothing where only unknown columns changed', () => {
    const view = viewOf(batch)
    const after = structuredClone(batch)
    Object.assign((after.parts[0] as unknown as { items: object[] }).items[0]!, { phase: 'Terminating' })
    const decoded = decodeBody(saying(encodeBody(after, view), 'phase', 'later'), head, view)
    expect(decoded.view.namespace).toBe(view.namespace)
  })

  it('is refused when its format is another', () => {
    const body = encodeBody(batch)
    body[0] = 2
    expect(() => decodeBody(body, head)).toThrow(/format 2/)
  })
})

describe('a difference to something else', () => {
  const code = (decode: () => unknown) => {
    try {
      decode()
    } catch (error) {
      return (error as { code: string }).code
    }
    return 'none'
  }

  it('asks for a complete body instead: no base, other names, other types', () => {
    const body = encodeBody(batch, viewOf(batch))
    const other = structuredClone(batch)
    Object.assign((other.parts[0] as unknown as { items: object[] }).items[0]!, { name: 'taem' })
    expect(code(() => decodeBody(body, head))).toBe('base_mismatch')
    expect(code(() => decodeBody(body, head, {}))).toBe('base_mismatch')
    expect(code(() => decodeBody(body, head, viewOf(other)))).toBe('base_mismatch')
    expect(code(() => decodeBody(body, head, viewOf(batch)))).toBe('none')
  })

  it('does not matter to a batch in which nothing is a number: NaN is refused at the source', () => {
    expect(code(() => encodeBody({ ...batch, durationMs: Number.NaN }))).toBe('malformed_message')
    expect(code(() => encodeBody({ ...batch, durationMs: Number.POSITIVE_INFINITY }))).toBe('malformed_message')
  })
})

describe('a quiet cluster', () => {
  it('costs less than a kilobyte, and the hub keeps every object', () => {
    const items = Array.from({ length: 2_000 }, (_, i) => ({
      name: `team-${i}`,
      phase: 'Active',
      createdAt: i,
      labels: {},
    }))
    const large = { ...batch, parts: [{ ...batch.parts[0], items } as (typeof batch.parts)[number], batch.parts[1]!] }
    const view = decodeBody(encodeBody(large), head).view
    const body = encodeBody(structuredClone(large), viewOf(large))
    expect(body.length).toBeLessThan(120)
    const next = decodeBody(body, head, view)
    expect(next.view.namespace).toBe(view.namespace)
    expect(next.batch.parts[0]).toEqual({
      ...batch.parts[0],
      items: undefined,
      outcome: 'changed',
      put: [],
      removed: [],
    })
  })
  it('pays for the columns that moved, and shares the rest', () => {
    const items = Array.from({ length: 500 }, (_, i) => ({
      name: `team/app-${i}`,
      namespace: 'team',
      replicas: 2,
      ready: 2,
      available: 2,
      updated: 2,
    }))
    const part = { type: 'deployment', collector: 'd', durationMs: 1, outcome: 'complete' } as const
    const before: Batch = { ...batch, parts: [{ ...part, items }] }
    const after: Batch = {
      ...batch,
      parts: [{ ...part, items: items.map((one, i) => (i % 10 ? one : { ...one, ready: 1 })) }],
    }
    const view = decodeBody(encodeBody(before), head).view
    const body = encodeBody(after, viewOf(before))
    const next = decodeBody(body, head, view).view
    expect(body.length).toBeLessThan(150)
    expect(next).toEqual(viewOf(after))
    expect(next.deployment?.get('team/app-1')).toBe(view.deployment?.get('team/app-1'))
    expect(next.deployment?.get('team/app-10')).toMatchObject({ ready: 1, replicas: 2 })
  })
})
