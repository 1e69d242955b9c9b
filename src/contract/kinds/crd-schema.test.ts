import { Ajv } from 'ajv'
import fc from 'fast-check'
import { type TSchema, Type } from 'typebox'
import { Compile } from 'typebox/compile'
import { describe, expect, it } from 'vitest'
import { all } from '../../../test/properties.ts'
import { type StructuralSchema, toStructural } from './crd-schema.ts'

describe('toStructural', () => {
  it.each<[string, TSchema, StructuralSchema]>([
    ['a constant as an enum of one', Type.Literal('pull'), { type: 'string', enum: ['pull'] }],
    [
      'a union of constants as an enum',
      Type.Union([Type.Literal('a'), Type.Literal('b')], { default: 'a' }),
      { default: 'a', type: 'string', enum: ['a', 'b'] },
    ],
    [
      '"or null" as nullable',
      Type.Union([Type.String({ maxLength: 3 }), Type.Null()]),
      { nullable: true, type: 'string', maxLength: 3 },
    ],
    [
      'a nullable enum with null among its values',
      Type.Union([Type.Literal('a'), Type.Literal('b'), Type.Null()]),
      { nullable: true, type: 'string', enum: ['a', 'b', null] },
    ],
    [
      'a record as free keys',
      Type.Record(Type.String(), Type.Integer()),
      { type: 'object', additionalProperties: { type: 'integer' } },
    ],
    ['an open value as preserved', Type.Unknown(), { 'x-kubernetes-preserve-unknown-fields': true }],
    ['whole number or text', Type.Union([Type.Integer(), Type.String()]), { 'x-kubernetes-int-or-string': true }],
    [
      'an exclusive bound as a flag',
      Type.Number({ exclusiveMinimum: 0, maximum: 1 }),
      { type: 'number', minimum: 0, exclusiveMinimum: true, maximum: 1 },
    ],
    [
      'an object without what only we understand',
      Type.Object({ a: Type.String({ faultMessage: 'no', $id: 'x' }), b: Type.Optional(Type.Boolean()) }),
      { type: 'object', properties: { a: { type: 'string' }, b: { type: 'boolean' } }, required: ['a'] },
    ],
    [
      'list extensions as they are',
      Type.Array(Type.String(), { 'x-kubernetes-list-type': 'set', maxItems: 3 }),
      { 'x-kubernetes-list-type': 'set', type: 'array', items: { type: 'string' }, maxItems: 3 },
    ],
  ])('writes %s', (_, schema, expected) => expect(toStructural(schema)).toEqual(expected))

  it.each<[string, TSchema]>([
    ['a union of objects', Type.Union([Type.Object({ a: Type.String() }), Type.Object({ b: Type.String() })])],
    ['a union of two types', Type.Union([Type.Boolean(), Type.String()])],
    ['constants of two types', Type.Union([Type.Literal('a'), Type.Literal(1)])],
    ['an intersection', Type.Intersect([Type.Object({ a: Type.String() }), Type.Object({ b: Type.String() })])],
    ['a tuple', Type.Tuple([Type.String(), Type.Integer()])],
    ['null alone', Type.Null()],
    ['a reference', Type.Ref('Node')],
    ['a list of distinct values by JSON Schema', Type.Array(Type.String(), { uniqueItems: true })],
    ['a refusal of unknown fields', Type.Object({ a: Type.String() }, { additionalProperties: false })],
    ['named fields beside free keys', Type.Object({ a: Type.String() }, { additionalProperties: Type.String() })],
    ['restricted keys', Type.Record(Type.String({ pattern: '^[a-z]+$' }), Type.String())],
    ['a pattern that RE2 does not have', Type.String({ pattern: '^(?!x)a' })],
    ['a keyword it does not know', Type.String({ contentEncoding: 'base64' })],
  ])('refuses %s, naming the place', (_, schema) =>
    expect(() => toStructural(Type.Object({ inner: schema }), '.spec')).toThrow(/^\.spec\.inner: /),
  )

  const schemas = fc.letrec<{ any: TSchema }>((tie) => ({
    any: fc.oneof(
      { maxDepth: 3, withCrossShrink: true },
      fc.constant(Type.Boolean()),
      fc
        .record({ minLength: fc.nat(2), maxLength: fc.integer({ min: 2, max: 4 }) })
        .map((bounds) => Type.String(bounds)),
      fc.integer({ min: -3, max: 3 }).map((minimum) => Type.Integer({ minimum })),
      fc.constant(Type.Number({ exclusiveMinimum: 0, maximum: 2 })),
      fc
        .uniqueArray(fc.constantFrom('a', 'b', 'c'), { minLength: 1 })
        .map((values) => Type.Union(values.map((value) => Type.Literal(value)))),
      fc.constant(Type.Union([Type.Integer(), Type.String()])),
      fc.constant(Type.Unknown()),
      tie('any')
        .filter((schema) => !isOpen(schema))
        .map((schema) => Type.Union([schema, Type.Null()])),
      tie('any').map((schema) => Type.Array(schema, { maxItems: 2 })),
      tie('any').map((schema) => Type.Record(Type.String(), schema)),
      fc
        .record({ x: tie('any'), y: tie('any').map((schema) => Type.Optional(schema)) })
        .map((fields) => Type.Object(fields)),
    ),
  })).any
  const values = fc.letrec<{ any: unknown }>((tie) => ({
    any: fc.oneof(
      { maxDepth: 3 },
      fc.constantFrom(null, true, 'a', 'b', '', 'abc', 'abcde', 0, 1, -2, 1.5, 3),
      fc.array(tie('any'), { maxLength: 3 }),
      fc.dictionary(fc.constantFrom('x', 'y', 'z'), tie('any'), { maxKeys: 3 }),
    ),
  })).any

  it('accepts and refuses exactly what the validator does, and types every node', () => {
    const ajv = new Ajv({ strict: false, allowUnionTypes: true })
    let accepted = 0
    fc.assert(
      fc.property(schemas, fc.array(values, { minLength: 5, maxLength: 20 }), (schema, candidates) => {
        const structural = toStructural(schema)
        expectStructural(structural)
        const ours = Compile(schema)
        const theirs = ajv.compile(asDraft7(structural))
        for (const value of candidates) {
          const verdict = ours.Check(value)
          if (verdict) accepted++
          expect(theirs(value), JSON.stringify({ schema, structural, value })).toBe(verdict)
        }
      }),
      all({ numRuns: 150 }),
    )
    expect(accepted).toBeGreaterThan(50)
  })
})

/** Already nullable, or free: "or null" would add nothing that a schema of ours writes. */
function isOpen(schema: TSchema): boolean {
  const { anyOf, type } = schema as { anyOf?: { type?: string }[]; type?: string }
  return anyOf
    ? anyOf.some((branch) => branch.type === 'null') || !anyOf.every((branch) => 'const' in branch)
    : type === undefined
}

function expectStructural(node: StructuralSchema): void {
  const isFree = node['x-kubernetes-preserve-unknown-fields'] === true || node['x-kubernetes-int-or-string'] === true
  expect(node.type !== undefined || isFree, JSON.stringify(node)).toBe(true)
  expect(node.properties && node.additionalProperties).toBeFalsy()
  for (const child of [...Object.values(node.properties ?? {}), node.additionalProperties, node.items]) {
    if (child) expectStructural(child)
  }
}

/** The dialect of Kubernetes in terms of JSON Schema, so that another validator can judge it. */
function asDraft7(node: StructuralSchema): object {
  const { nullable, exclusiveMinimum, exclusiveMaximum, properties, additionalProperties, items, ...rest } = node
  const result: Record<string, unknown> = { ...rest }
  if (exclusiveMinimum) {
    result.exclusiveMinimum = rest.minimum
    delete result.minimum
  }
  if (exclusiveMaximum) {
    result.exclusiveMaximum = rest.maximum
    delete result.maximum
  }
  if (node['x-kubernetes-int-or-string']) result.type = ['integer', 'string']
  if (properties)
    result.properties = Object.fromEntries(Object.entries(properties).map(([name, field]) => [name, asDraft7(field)]))
  if (additionalProperties) result.additionalProperties = asDraft7(additionalProperties)
  if (items) result.items = asDraft7(items)
  return nullable ? { anyOf: [result, { type: 'null' }] } : result
}
