import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { missingOriginal, type Original, startOriginal } from '../apply/real-server.ts'
import type { FieldFault, Schema } from '../types.ts'
import { applyDefaults, builtInSchemas, checkStructural, componentOf, prune, validate } from './index.ts'

const text: Schema = { type: 'string' }
const spec: Schema = {
  type: 'object',
  required: ['must'],
  properties: {
    must: text,
    short: { type: 'string', minLength: 2, maxLength: 4, pattern: '^[a-z]*$' },
    even: { type: 'integer', minimum: 1, maximum: 10, multipleOf: 2 },
    between: { type: 'number', minimum: 1, exclusiveMinimum: true, maximum: 3, exclusiveMaximum: true },
    choice: { type: 'string', enum: ['a', 'b'] },
    list: { type: 'array', minItems: 1, maxItems: 2, items: text },
    set: { type: 'array', 'x-kubernetes-list-type': 'set', items: text },
    items: {
      type: 'array',
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['name', 'protocol'],
      items: {
        type: 'object',
        required: ['name'],
        properties: { name: text, protocol: { type: 'string', default: 'TCP' }, value: { type: 'integer' } },
      },
    },
    map: { type: 'object', minProperties: 1, maxProperties: 2, additionalProperties: { type: 'integer' } },
    port: { 'x-kubernetes-int-or-string': true },
    any: { type: 'object', properties: { a: text, b: text }, anyOf: [{ required: ['a'] }, { required: ['b'] }] },
    one: { type: 'object', properties: { a: text, b: text }, oneOf: [{ required: ['a'] }, { required: ['b'] }] },
    all: { type: 'string', allOf: [{ minLength: 2 }, { maxLength: 3 }] },
    not: { type: 'string', not: { enum: ['bad'] } },
    filled: { type: 'object', default: {}, properties: { five: { type: 'integer', default: 5 } } },
    maybe: { type: 'string', nullable: true },
    flag: { type: 'boolean' },
    open: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true, properties: { known: text } },
    date: { type: 'string', format: 'date' },
    time: { type: 'string', format: 'date-time' },
    duration: { type: 'string', format: 'duration' },
    byte: { type: 'string', format: 'byte' },
    ipv4: { type: 'string', format: 'ipv4' },
    ipv6: { type: 'string', format: 'ipv6' },
    cidr: { type: 'string', format: 'cidr' },
    uuid: { type: 'string', format: 'uuid' },
    hostname: { type: 'string', format: 'hostname' },
    email: { type: 'string', format: 'email' },
    uri: { type: 'string', format: 'uri' },
    mac: { type: 'string', format: 'mac' },
    hexcolor: { type: 'string', format: 'hexcolor' },
  },
}
const schema: Schema = { type: 'object', required: ['spec'], properties: { spec } }

const FORMATTED: Readonly<Record<string, readonly string[]>> = {
  date: ['2026-02-28', '2026-02-30', '26-1-1', ''],
  time: ['2026-02-28T10:00:00Z', '2026-02-28T10:00:00.123+02:00', '2026-02-28 10:00:00', '2026-02-28T25:00:00Z', 'now'],
  duration: ['1h30m', '5s', '1.5h', '3 days', '', 'x', '5'],
  byte: ['aGk=', 'aGk', '%%', ''],
  ipv4: ['1.2.3.4', '1.2.3', '256.1.1.1', '::1'],
  ipv6: ['::1', 'fe80::1', '1.2.3.4', ':::', '2001:db8:0:0:0:0:0:1'],
  cidr: ['10.0.0.0/8', '10.0.0.0', 'fd00::/64', '10.0.0.0/33'],
  uuid: ['8c4b0a9e-7c1f-4f55-9f4d-2f9f9d1a0001', 'x', '8c4b0a9e7c1f4f559f4d2f9f9d1a0001'],
  hostname: ['a.example.com', '-a', 'a_b', ''],
  email: ['a@example.com', 'a', '@b'],
  uri: ['https://example.com/x', '/path', '::', 'a b'],
  mac: ['00:11:22:33:44:55', '00:11'],
  hexcolor: ['#fff', '#12', 'abcdef'],
}

const word = fc.constantFrom('', 'a', 'ab', 'abc', 'abcdef', 'A1', 'bad', 'TCP')
const anything = fc.oneof(
  word,
  fc.constantFrom<unknown>(0, 1, 2, 3, 11, 1.5, -1, true, false),
  fc.array(fc.oneof(word, fc.constantFrom<unknown>(1, true)), { maxLength: 3 }),
  fc.dictionary(
    fc.constantFrom('a', 'b', 'c', 'five', 'known', 'more'),
    fc.oneof(word, fc.constantFrom<unknown>(1, 2)),
    {
      maxKeys: 3,
    },
  ),
  fc.array(
    fc.record(
      {
        name: fc.constantFrom('a', 'b'),
        protocol: fc.constantFrom('TCP', 'UDP'),
        value: fc.constantFrom<unknown>(1, 'x'),
      },
      { requiredKeys: [] },
    ),
    { maxLength: 3 },
  ),
)

const specs = fc
  .tuple(
    fc.dictionary(
      fc.constantFrom(...Object.keys(spec.properties ?? {}).filter((name) => !(name in FORMATTED)), 'unknown'),
      anything,
      {
        minKeys: 1,
        maxKeys: 4,
      },
    ),
    fc
      .constantFrom(...Object.keys(FORMATTED))
      .chain((name) => fc.constantFrom(...(FORMATTED[name] ?? [])).map((value) => ({ [name]: value }))),
    fc.boolean(),
  )
  .map(
    ([fields, formatted, complete]): Record<string, unknown> => ({
      ...formatted,
      ...fields,
      ...(complete ? { must: 'm' } : {}),
    }),
  )

const inOrder = (faults: readonly FieldFault[]): string[] =>
  faults.map(({ reason, path, message }) => `${reason} ${path}: ${message}`).sort()

const causesOf = (body: Record<string, unknown>): string[] => {
  const causes = (body.details as { causes?: { reason: string; field: string; message: string }[] } | undefined)?.causes
  return (causes ?? []).map(({ reason, field, message }) => `${reason} ${field}: ${message}`).sort()
}

const definition = (plural: string, kind: string, openAPIV3Schema: unknown) => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `${plural}.x.io` },
  spec: {
    group: 'x.io',
    scope: 'Namespaced',
    names: { plural, kind },
    versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema } }],
  },
})
const DEFINITIONS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
const SAMPLES = '/apis/x.io/v1/namespaces/default/samples?dryRun=All'

const child = (a: Schema): Schema => ({ type: 'object', properties: { a } })
const STRUCTURES: readonly Schema[] = [
  child(text),
  { type: 'string' },
  {},
  child({}),
  child({ type: 'array' }),
  child({ type: 'array', items: {} }),
  child({ type: 'object', properties: { x: text }, additionalProperties: text }),
  child({ $ref: '#/x' }),
  child({ type: 'array', items: text, uniqueItems: true }),
  child({ type: 'array', items: text, 'x-kubernetes-list-type': 'map' }),
  child({ type: 'array', items: child(text), 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['a'] }),
  child({ type: 'array', items: child(text), 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['b'] }),
  child({ type: 'array', items: child(text), 'x-kubernetes-list-type': 'set' }),
  child({ type: 'array', items: text, 'x-kubernetes-list-type': 'set' }),
  child({ type: 'string', default: 1 }),
  child({ type: 'object', default: { z: 1 } }),
  child({ type: 'string', default: 'x' }),
  child({ type: 'string', anyOf: [{ type: 'string' }] }),
  child({ type: 'string', allOf: [{ default: 'x', description: 'd', nullable: true }] }),
  child({ 'x-kubernetes-int-or-string': true, anyOf: [{ type: 'integer' }, { type: 'string' }] }),
  child({ type: 'string', pattern: '([' }),
  child({ type: 'foo' }),
  child({ type: 'string', 'x-kubernetes-embedded-resource': true }),
  child({ type: 'object', 'x-kubernetes-embedded-resource': true, 'x-kubernetes-preserve-unknown-fields': true }),
  { type: 'object', properties: { metadata: { type: 'object', properties: { labels: { type: 'object' } } } } },
  {
    type: 'object',
    properties: { metadata: { type: 'object', properties: { name: { type: 'string', maxLength: 5 } } } },
  },
  child({ type: 'string', 'x-kubernetes-list-type': 'set' }),
  child({ 'x-kubernetes-preserve-unknown-fields': true }),
  child({ type: 'object', additionalProperties: { type: 'array', items: { type: 'object', properties: { b: {} } } } }),
]

/** A schema of the original's OpenAPI document. */
type Published = Schema & { readonly allOf?: Published[] }

describe.skipIf(missingOriginal())(`schemas beside a real kube-apiserver (${missingOriginal() ?? 'found'})`, () => {
  let server: Original
  beforeAll(async () => {
    server = await startOriginal()
    await server.call('POST', DEFINITIONS, definition('samples', 'Sample', schema))
    await vi.waitFor(async () => expect((await server.call('GET', SAMPLES)).code).toBe(200), { timeout: 80_000 })
  })
  afterAll(() => server?.stop())

  it('finds the same faults in any object, in the same words, and stores the same', async () => {
    await fc.assert(
      fc.asyncProperty(specs, async (fields) => {
        const object = { apiVersion: 'x.io/v1', kind: 'Sample', metadata: { name: 'a' }, spec: fields }
        const { code, body } = await server.call('POST', SAMPLES, object)
        const stored = applyDefaults(schema, prune(schema, object).value)
        const faults = validate(schema, stored)
        expect(inOrder(faults)).toEqual(causesOf(body))
        if (code < 300) expect(stored.spec).toEqual(body.spec)
      }),
      { numRuns: 400, seed: 11 },
    )
  })

  it('accepts and refuses the same schemas in a definition, at the same fields', async () => {
    for (const structure of STRUCTURES) {
      const { body } = await server.call('POST', `${DEFINITIONS}?dryRun=All`, definition('others', 'Other', structure))
      const causes = (body.details as { causes?: { reason: string; field: string }[] } | undefined)?.causes ?? []
      const theirs = causes.map(
        ({ reason, field }) =>
          `${reason} ${field.replace(/^spec\.(versions\[0\]\.schema|validation)\.openAPIV3Schema\.?/, '')}`,
      )
      const mine = checkStructural(structure).map(({ reason, path }) => `${reason} ${path}`)
      expect([...new Set(mine)].sort(), JSON.stringify(structure)).toEqual([...new Set(theirs)].sort())
    }
  })

  it('knows the fields of built-in kinds, and how their lists and maps are told apart', async () => {
    const components: Record<string, Published> = {}
    for (const path of [
      'api/v1',
      'apis/apps/v1',
      'apis/batch/v1',
      'apis/networking.k8s.io/v1',
      'apis/storage.k8s.io/v1',
      'apis/coordination.k8s.io/v1',
      'apis/certificates.k8s.io/v1',
      'apis/events.k8s.io/v1',
      'apis/rbac.authorization.k8s.io/v1',
      'apis/apiextensions.k8s.io/v1',
      'apis/autoscaling/v2',
      'apis/policy/v1',
      'apis/discovery.k8s.io/v1',
      'apis/scheduling.k8s.io/v1',
      'apis/node.k8s.io/v1',
      'apis/admissionregistration.k8s.io/v1',
      'apis/flowcontrol.apiserver.k8s.io/v1',
      'apis/apiregistration.k8s.io/v1',
    ]) {
      const { body } = await server.call('GET', `/openapi/v3/${path}`)
      Object.assign(components, (body as { components: { schemas: object } }).components.schemas)
    }
    const resolve = (published: Published | undefined): Published => {
      const ref = published?.$ref ?? published?.allOf?.[0]?.$ref
      return ref ? resolve(components[ref.slice('#/components/schemas/'.length)]) : (published ?? {})
    }
    const differences: string[] = []
    const compare = (mine: Schema, field: Published, path: string): void => {
      const theirs = resolve(field)
      for (const name of [
        'x-kubernetes-list-type',
        'x-kubernetes-map-type',
        'x-kubernetes-patch-strategy',
        'x-kubernetes-patch-merge-key',
      ] as const) {
        const said = field[name] ?? theirs[name]
        if (mine[name] !== said) differences.push(`${path}: ${name} is ${mine[name]}, not ${said}`)
      }
      const keys = (field['x-kubernetes-list-map-keys'] ?? []).join()
      if ((mine['x-kubernetes-list-map-keys'] ?? []).join() !== keys) differences.push(`${path}: keys are not ${keys}`)
      if (mine.type && theirs.type && mine.type !== theirs.type) differences.push(`${path}: is no ${theirs.type}`)
      if (mine.format !== theirs.format && theirs.format !== 'byte' && mine.type)
        differences.push(`${path}: format is not ${theirs.format}`)
      const enums = [...(mine.enum ?? [])].sort().join()
      if (mine.enum && theirs.enum && enums !== [...theirs.enum].sort().join())
        differences.push(`${path}: may be ${theirs.enum}`)
      for (const [name, property] of Object.entries(mine.properties ?? {})) {
        const published = theirs.properties?.[name]
        if (published) compare(property, published, `${path}.${name}`)
        else differences.push(`${path}.${name}: is unknown there`)
      }
      if (mine.properties && !mine['x-kubernetes-preserve-unknown-fields'])
        for (const name of Object.keys(theirs.properties ?? {}))
          if (!mine.properties[name]) differences.push(`${path}.${name}: is unknown here`)
      if (mine.items && theirs.items) compare(mine.items, theirs.items, `${path}[]`)
      if (typeof mine.additionalProperties === 'object' && typeof theirs.additionalProperties === 'object')
        compare(mine.additionalProperties, theirs.additionalProperties, `${path}{}`)
    }
    for (const [id, mine] of Object.entries(builtInSchemas)) {
      const name = componentOf(mine) ?? ''
      expect(components, id).toHaveProperty([name])
      compare(mine, components[name] as Published, id)
    }
    expect(differences).toEqual([])
  })
})
