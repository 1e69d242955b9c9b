import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Schema } from '../types.ts'
import { fitsFormat } from './formats.ts'
import { applyDefaults, builtInSchema, builtInSchemas, checkStructural, prune, validate } from './index.ts'

const text: Schema = { type: 'string' }
const of = (spec: Schema): Schema => ({ type: 'object', properties: { spec } })
const object = (spec: unknown) => ({ apiVersion: 'v1', kind: 'X', metadata: { name: 'x' }, spec })
const messages = (schema: Schema, spec: unknown) =>
  validate(of(schema), object(spec)).map(({ path, message }) => `${path}: ${message}`)

describe('validate', () => {
  it.each<[Schema, unknown, string]>([
    [text, 1, 'spec: Invalid value: "integer": spec in body must be of type string: "integer"'],
    [{ type: 'integer' }, 1.5, 'spec: Invalid value: "number": spec in body must be of type integer: "number"'],
    [{ type: 'string', enum: ['a', 'b'] }, 'c', 'spec: Unsupported value: "c": supported values: "a", "b"'],
    [{ type: 'integer', minimum: 1 }, 0, 'spec: Invalid value: 0: spec in body should be greater than or equal to 1'],
    [
      { type: 'number', maximum: 1, exclusiveMaximum: true },
      1,
      'spec: Invalid value: 1: spec in body should be less than 1',
    ],
    [{ type: 'string', maxLength: 2 }, 'abc', 'spec: Too long: may not be more than 2 bytes'],
    [{ type: 'string', pattern: '^a' }, 'b', 'spec: Invalid value: "b": spec in body should match \'^a\''],
    [{ type: 'array', maxItems: 1, items: text }, ['a', 'b'], 'spec: Too many: 2: must have at most 1 items'],
    [{ type: 'array', items: text, 'x-kubernetes-list-type': 'set' }, ['a', 'a'], 'spec[1]: Duplicate value: "a"'],
    [{ type: 'object', required: ['a'] }, {}, 'spec.a: Required value'],
    [
      { type: 'object', additionalProperties: { type: 'integer' } },
      { a: 'x' },
      'spec.a: Invalid value: "string": spec.a in body must be of type integer: "string"',
    ],
    [
      { type: 'string', format: 'date-time' },
      'x',
      'spec: Invalid value: "x": spec in body must be of type date-time: "x"',
    ],
    [
      { type: 'string', not: { enum: ['a'] } },
      'a',
      '<nil>: Invalid value: "": "spec" must not validate the schema (not)',
    ],
    [text, null, 'spec: Invalid value: "null": spec in body must be of type string: "null"'],
  ])('%j refuses %j', (schema, value, message) => expect(messages(schema, value)).toEqual([message]))

  it('accepts a null where the schema says so, and numbers and texts for int-or-string', () => {
    expect(messages({ type: 'string', nullable: true }, null)).toEqual([])
    expect(messages({ 'x-kubernetes-int-or-string': true }, 80)).toEqual([])
    expect(messages({ 'x-kubernetes-int-or-string': true }, '80%')).toEqual([])
  })
  it('counts characters, not code units', () => expect(messages({ type: 'string', maxLength: 1 }, '😀')).toEqual([]))
  it('looks at the metadata of any kind', () => {
    const bad = { ...object(1), metadata: { name: 1, labels: { a: 2 }, finalizers: 'x' } }
    expect(validate({ type: 'object' }, bad).map(({ path }) => path)).toEqual([
      'metadata.name',
      'metadata.labels.a',
      'metadata.finalizers',
    ])
  })
  it('demands identity of an embedded object', () => {
    const embedded: Schema = {
      type: 'object',
      'x-kubernetes-embedded-resource': true,
      'x-kubernetes-preserve-unknown-fields': true,
    }
    expect(messages(embedded, { kind: '' })).toEqual([
      'spec.apiVersion: Required value',
      'spec.kind: Invalid value: "": must not be empty',
    ])
  })
  it('stops after a hundred faults', () => {
    expect(validate(of({ type: 'array', items: text }), object(Array(5000).fill(1)))).toHaveLength(100)
  })
  it('refuses a number that a built-in field cannot hold', () => {
    const deployment = builtInSchema('apps', 'v1', 'Deployment') as Schema
    const spec = { replicas: 2 ** 31, selector: {}, template: { spec: { containers: [] } } }
    expect(validate(deployment, object(spec)).map(({ path }) => path)).toEqual(['spec.replicas'])
  })
})

describe('fitsFormat', () => {
  it.each([
    ['ipv4', '10.0.0.1', '10.0.0'],
    ['ipv6', '2001:db8::1', '2001::db8::1'],
    ['ipv6', '::ffff:10.0.0.1', '1:2'],
    ['cidr', '10.0.0.0/8', '10.0.0.0/40'],
    ['date', '2024-02-29', '2023-02-29'],
    ['date-time', '2026-01-01T00:00:00.5Z', '2026-01-01'],
    ['duration', '1h30m', 'soon'],
    ['byte', 'aGk=', 'aGk'],
    ['hostname', 'a.b', '-a'],
    ['uri', 'https://a/b', 'a b'],
  ])('%s: %s fits and %s does not', (format, good, bad) => {
    expect([fitsFormat(format, good), fitsFormat(format, bad)]).toEqual([true, false])
  })
  it('lets every text pass for a format nobody checks', () => expect(fitsFormat('int32', 'x')).toBe(true))
})

describe('prune', () => {
  const schema = of({
    type: 'object',
    properties: {
      known: text,
      open: {
        type: 'object',
        'x-kubernetes-preserve-unknown-fields': true,
        properties: { inner: { type: 'object', properties: { a: text } } },
      },
      list: { type: 'array', items: { type: 'object', properties: { a: text } } },
    },
  })
  it('names what it drops by its path, in order', () => {
    const { value, unknown } = prune(schema, {
      ...object({ known: 'a', zebra: 1, list: [{ a: 'x', b: 1 }], open: { any: 1, inner: { a: 'x', b: 1 } } }),
      metadata: { name: 'x', mood: 'fine' },
      extra: true,
    })
    expect(unknown).toEqual(['extra', 'metadata.mood', 'spec.list[0].b', 'spec.open.inner.b', 'spec.zebra'])
    expect(value).toEqual(object({ known: 'a', list: [{ a: 'x' }], open: { any: 1, inner: { a: 'x' } } }))
  })
  it('gives back the very same object where all is known', () => {
    const whole = object({ known: 'a', list: [{ a: 'x' }] })
    expect(prune(schema, whole).value).toBe(whole)
  })
  it('finds nothing more in what it has pruned', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.constantFrom('known', 'open', 'list', 'inner', 'a'), fc.jsonValue()), (spec) => {
        const { value } = prune(schema, object(spec))
        expect(prune(schema, value)).toEqual({ value, unknown: [] })
      }),
    )
  })
})

describe('applyDefaults', () => {
  const schema = of({
    type: 'object',
    default: {},
    properties: {
      five: { type: 'integer', default: 5 },
      inner: { type: 'object', default: {}, properties: { list: { type: 'array', items: text, default: ['a'] } } },
      items: { type: 'array', items: { type: 'object', properties: { on: { type: 'boolean', default: true } } } },
      plain: text,
    },
  })
  it('fills in what is not said, in depth', () => {
    const filled = { five: 5, inner: { list: ['a'] } }
    expect(applyDefaults(schema, { ...object({}), spec: undefined }).spec).toEqual(filled)
    expect(applyDefaults(schema, object({ items: [{}, { on: false }] })).spec).toEqual({
      ...filled,
      items: [{ on: true }, { on: false }],
    })
  })
  it('takes a null for nothing where a null cannot be meant', () => {
    expect(applyDefaults(schema, object({ five: null, plain: null, inner: { list: [] } })).spec).toEqual({
      five: 5,
      inner: { list: [] },
    })
  })
  it('leaves the object and the defaults alone', () => {
    const given = Object.freeze(object(Object.freeze({})))
    const filled = applyDefaults(schema, given) as unknown as { spec: { inner: { list: string[] } } }
    filled.spec.inner.list.push('b')
    expect(applyDefaults(schema, given)).toEqual(object({ five: 5, inner: { list: ['a'] } }))
  })
  it('changes nothing the second time, and then returns the same object', () => {
    const once = applyDefaults(schema, object({ items: [{}] }))
    expect(applyDefaults(schema, once)).toBe(once)
  })
})

describe('checkStructural', () => {
  it('accepts a schema that may stand in a definition', () => {
    expect(checkStructural(of({ type: 'object', properties: { a: text, b: { type: 'array', items: text } } }))).toEqual(
      [],
    )
  })
  it('finds keywords of the wrong type, however the rest looks', () => {
    const bad = of({
      type: 'object',
      required: 'a',
      properties: { a: { type: 'string', enum: 'x', pattern: 5 } },
    } as unknown as Schema)
    expect(checkStructural(bad).map(({ path }) => path)).toEqual([
      'properties[spec].required',
      'properties[spec].properties[a].enum',
      'properties[spec].properties[a].pattern',
    ])
  })
  it('never throws on any JSON', () => {
    fc.assert(fc.property(fc.jsonValue(), (schema) => void checkStructural(schema as Schema)))
  })
})

describe('builtInSchemas', () => {
  it.each(Object.keys(builtInSchemas))('%s says of every field what it means', (id) => {
    const undescribed: string[] = []
    const walk = (schema: Schema, path: string): void => {
      for (const [name, property] of Object.entries(schema.properties ?? {})) {
        if (!property.description) undescribed.push(`${path}.${name}`)
        walk(property, `${path}.${name}`)
      }
      if (schema.items) walk(schema.items, `${path}[]`)
    }
    walk(builtInSchemas[id] as Schema, id)
    expect(undescribed).toEqual([])
  })
})
