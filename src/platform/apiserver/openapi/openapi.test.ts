import { request } from 'node:https'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { noRealApiServer, type RealApiServer, startRealApiServer } from '../../../../test/real-apiserver.ts'
import { builtInResources } from '../built-in.ts'
import { resourcesOf } from '../crd.ts'
import { decodeMessage, MessageCatalogue } from '../protobuf/index.ts'
import { aServer, listening } from '../test/server.ts'
import type { ServedResource } from '../types.ts'
import { openapiV2, openapiV2Protobuf, openapiV3, openapiV3Index } from './index.ts'
import { openapiTables } from './v2-tables.ts'

type Json = Record<string, unknown>

const definition = (properties: Json) => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'widgets.stable.example.com' },
  spec: {
    group: 'stable.example.com',
    scope: 'Namespaced',
    names: { plural: 'widgets', singular: 'widget', kind: 'Widget', listKind: 'WidgetList' },
    versions: [
      {
        name: 'v1beta1',
        served: true,
        storage: true,
        subresources: { status: {}, scale: { specReplicasPath: '.spec.size', statusReplicasPath: '.status.size' } },
        schema: { openAPIV3Schema: { type: 'object', properties } },
      },
    ],
  },
})

const custom = resourcesOf(
  definition({
    spec: {
      type: 'object',
      properties: {
        size: { type: 'integer', minimum: 0, maximum: 1.5 },
        port: { 'x-kubernetes-int-or-string': true, anyOf: [{ type: 'integer' }, { type: 'string' }] },
        maybe: { type: 'string', nullable: true },
        open: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
      },
    },
  }) as never,
)
const resources: readonly ServedResource[] = [...builtInResources(), ...custom]

/** Every reference in a document. */
function referencesIn(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(referencesIn)
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, each]) =>
    name === '$ref' && typeof each === 'string' ? [each] : referencesIn(each),
  )
}

const at = (document: unknown, ...path: string[]): Json =>
  path.reduce<unknown>((value, name) => (value as Json | undefined)?.[name], document) as Json

const versions = [
  ...new Map(resources.map(({ group, version }) => [`${group}/${version}`, { group, version }])).values(),
]

describe('openapiV3', () => {
  it.each(versions)('refers only to what the document of $group/$version has', ({ group, version }) => {
    const document = openapiV3(group, version, resources)
    const known = Object.keys(at(document, 'components', 'schemas')).map((name) => `#/components/schemas/${name}`)
    expect([...new Set(referencesIn(document))].filter((ref) => !known.includes(ref))).toEqual([])
  })

  it.each(versions)('names every operation of $group/$version once', ({ group, version }) => {
    const paths = Object.values(at(openapiV3(group, version, resources), 'paths')) as Json[]
    const ids = paths.flatMap((path) => Object.values(path).map((operation) => (operation as Json).operationId))
    const named = ids.filter((id) => id !== undefined)
    expect(new Set(named).size).toBe(named.length)
  })

  it('has nothing for a version nobody serves', () => {
    expect(openapiV3('nobody.example', 'v1', resources)).toBeUndefined()
  })

  it('tells which patches a kind takes', () => {
    const patchesOf = (group: string, version: string, path: string) =>
      Object.keys(at(openapiV3(group, version, resources), 'paths', path, 'patch', 'requestBody', 'content'))
    const strategic = 'application/strategic-merge-patch+json'
    expect(patchesOf('', 'v1', '/api/v1/namespaces/{namespace}/pods/{name}')).toContain(strategic)
    const widget = '/apis/stable.example.com/v1beta1/namespaces/{namespace}/widgets/{name}'
    expect(patchesOf('stable.example.com', 'v1beta1', widget)).not.toContain(strategic)
  })

  it('names custom kinds after their group and gives them what every object has', () => {
    const schemas = at(openapiV3('stable.example.com', 'v1beta1', resources), 'components', 'schemas')
    const widget = at(schemas, 'com.example.stable.v1beta1.Widget')
    expect(widget['x-kubernetes-group-version-kind']).toEqual([
      { group: 'stable.example.com', kind: 'Widget', version: 'v1beta1' },
    ])
    expect(Object.keys(at(widget, 'properties')).sort()).toEqual(['apiVersion', 'kind', 'metadata', 'spec'])
    expect(schemas).toHaveProperty(['com.example.stable.v1beta1.WidgetList'])
  })
})

describe('openapiV3Index', () => {
  it('changes the hash of a version when its schemas change, and of no other', () => {
    const other = resourcesOf(definition({ spec: { type: 'object' } }) as never)
    const before = at(openapiV3Index(resources, '/clusters/east'), 'paths')
    const after = at(openapiV3Index([...builtInResources(), ...other], '/clusters/east'), 'paths')
    const changed = Object.keys(before).filter((path) => JSON.stringify(before[path]) !== JSON.stringify(after[path]))
    expect(changed).toEqual(['apis/stable.example.com/v1beta1'])
    expect(at(before, 'api/v1').serverRelativeURL).toMatch(
      /^\/clusters\/east\/openapi\/v3\/api\/v1\?hash=[0-9A-F]{64}$/,
    )
  })
})

describe('openapiV2', () => {
  const document = openapiV2(resources)

  it('refers only to what it has', () => {
    const known = Object.keys(at(document, 'definitions')).map((name) => `#/definitions/${name}`)
    expect([...new Set(referencesIn(document))].filter((ref) => !known.includes(ref))).toEqual([])
  })

  it('says no type where version 2 cannot say it', () => {
    const spec = at(document, 'definitions', 'com.example.stable.v1beta1.Widget', 'properties', 'spec', 'properties')
    expect(spec).toEqual({
      size: { type: 'integer', minimum: 0, maximum: 1.5 },
      port: {},
      maybe: {},
      open: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
    })
  })
})

describe('the documents over HTTPS', () => {
  it('are told by their hash to those who have them', async () => {
    const { client } = await listening(await aServer())
    const index = await client.ask('GET', '/openapi/v3')
    const address = index.body.paths['apis/apps/v1'].serverRelativeURL as string
    const document = await client.ask('GET', address)
    expect(document.body.components.schemas).toHaveProperty(['io.k8s.api.apps.v1.Deployment'])
    const etag = document.headers.get('etag') ?? ''
    expect(etag).toMatch(/^"[0-9A-F]{64}"$/)
    const binary = 'application/com.github.proto-openapi.spec.v2@v1.0+protobuf'
    expect((await client.ask('GET', '/openapi/v2', { accept: binary })).type).toMatch(/^application\/com\.github/)
    expect((await client.ask('GET', '/openapi/v2', { accept: 'text/html' })).code).toBe(406)
    expect((await client.ask('GET', '/openapi/v3/apis/nobody.example/v1')).code).toBe(404)
  })

  it('change when a definition comes and when it goes', async () => {
    const server = await aServer()
    const { client } = await listening(server)
    const paths = async () => Object.keys((await client.ask('GET', '/openapi/v3')).body.paths)
    expect(await paths()).not.toContain('apis/stable.example.com/v1beta1')
    await server.objects.create(definition({ spec: { type: 'object' } }))
    expect(await paths()).toContain('apis/stable.example.com/v1beta1')
  })
})

const document = new MessageCatalogue({ openapi: openapiTables }).get('openapi.Document')

/** The definitions and paths of a binary document by their names; YAML of values as the values they are. */
function readDocument(bytes: Buffer): { definitions: Json; paths: Json } {
  const read = decodeMessage(document, bytes) as {
    definitions: { additionalProperties: { name: string; value: Json }[] }
    paths: { path: { name: string; value: Json }[] }
  }
  const byName = (list: { name: string; value: Json }[]) =>
    Object.fromEntries(list.map(({ name, value }) => [name, plain(value)])) as Json
  return { definitions: byName(read.definitions.additionalProperties), paths: byName(read.paths.path) }
}

/** Orders what has no order, and reads values: theirs are YAML in block form. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) {
    const list = value.map(plain)
    const names = list.every((each) => typeof each === 'object' && each !== null && 'name' in each && 'value' in each)
    return names ? Object.fromEntries(list.map((each) => [(each as Json).name, (each as Json).value])) : list
  }
  if (typeof value !== 'object' || value === null) return value
  if ('yaml' in value) return parse(String(value.yaml))
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, plain(each)]))
}

const missing = process.env.CI_REQUIRE_ALL === '1' ? undefined : noRealApiServer()

describe.skipIf(missing)(`the binary form of version 2${missing ? ` (${missing})` : ''}`, () => {
  let real: RealApiServer | undefined
  beforeAll(async () => {
    real = await startRealApiServer()
  })
  afterAll(async () => {
    await real?.stop()
  })

  function ask(accept: string): Promise<Buffer> {
    const access = real?.access
    if (access?.credentials.kind !== 'token') throw new Error('no real server')
    const headers = { authorization: `Bearer ${access.credentials.token}`, accept }
    return new Promise((resolve, reject) => {
      const call = request(`${access.server}/openapi/v2`, { ca: access.ca, headers }, async (answer) => {
        const chunks: Buffer[] = []
        for await (const chunk of answer as AsyncIterable<Buffer>) chunks.push(chunk)
        resolve(Buffer.concat(chunks))
      })
      call.once('error', reject)
      call.end()
    })
  }

  it('says of the original document what the original binary says', async () => {
    const document = JSON.parse((await ask('application/json')).toString('utf8')) as Json
    const theirs = await ask('application/com.github.proto-openapi.spec.v2@v1.0+protobuf')
    // Security is a message we have no use for: nothing of ours says it.
    const { security: _, securityDefinitions: __, ...rest } = document
    const ours = readDocument(openapiV2Protobuf(rest))
    const original = readDocument(theirs)
    expect(Object.keys(original.definitions).length).toBeGreaterThan(500)
    expect(ours).toEqual(original)
  })
})
