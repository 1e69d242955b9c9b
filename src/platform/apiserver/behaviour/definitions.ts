import { describe, expect, it } from 'vitest'
import { eventually, freshNamespace, namesOf, type Subject, uniqueName, type WatchedEvent } from './subject.ts'

/** A definition of a resource nobody else defines. */
function widgets(changes: { scope?: string; versions?: object[] } = {}) {
  const plural = uniqueName('widgets').replace(/-/g, '')
  const group = 'suite.example.io'
  const schema = {
    openAPIV3Schema: {
      type: 'object',
      properties: {
        spec: {
          type: 'object',
          required: ['size'],
          properties: {
            size: { type: 'integer', minimum: 1, maximum: 10 },
            color: { type: 'string', default: 'red', enum: ['red', 'blue'] },
            parts: { type: 'array', items: { type: 'object', properties: { name: { type: 'string' } } } },
          },
        },
        status: {
          type: 'object',
          properties: { phase: { type: 'string' }, since: { type: 'string', format: 'date-time' } },
        },
      },
    },
  }
  const versions = changes.versions ?? [
    {
      name: 'v1',
      served: true,
      storage: true,
      schema,
      subresources: { status: {} },
      additionalPrinterColumns: [
        { name: 'Size', type: 'integer', jsonPath: '.spec.size' },
        { name: 'Phase', type: 'string', jsonPath: '.status.phase' },
        { name: 'Color', type: 'string', jsonPath: '.spec.color', priority: 1 },
        { name: 'Since', type: 'date', jsonPath: '.status.since' },
      ],
    },
  ]
  return {
    plural,
    group,
    schema,
    body: {
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: `${plural}.${group}` },
      spec: {
        group,
        scope: changes.scope ?? 'Namespaced',
        names: { plural, kind: `Widget${plural.slice(7)}`, shortNames: [`w${plural.slice(7)}`] },
        versions,
      },
    },
  }
}

const CRDS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'

export function definitionBehaviour(subject: () => Subject): void {
  const ask: Subject['ask'] = (...args) => subject().ask(...args)
  const define = async (definition: ReturnType<typeof widgets>) => {
    const created = await ask('POST', CRDS, { body: definition.body })
    expect(created.code, JSON.stringify(created.body)).toBe(201)
    const isServed = (body: { status?: { conditions?: { type: string; status: string }[] } }) =>
      body.status?.conditions?.some(({ type, status }) => type === 'Established' && status === 'True') ?? false
    const established = await eventually(
      () => ask('GET', `${CRDS}/${definition.body.metadata.name}`),
      ({ body }) => isServed(body),
    )
    const versions = definition.body.spec.versions as { name: string; served: boolean }[]
    const version = versions.find(({ served }) => served)?.name ?? 'v1'
    const base = `/apis/${definition.group}/${version}`
    await eventually(
      () => ask('GET', `${base}/${definition.plural}`),
      ({ code }) => code === 200,
    )
    const namespace = await freshNamespace(subject())
    return { established: established.body, base, at: `${base}/namespaces/${namespace}/${definition.plural}` }
  }
  const widget = (definition: ReturnType<typeof widgets>, name: string, spec: object) => ({
    apiVersion: `${definition.group}/v1`,
    kind: definition.body.spec.names.kind,
    metadata: { name },
    spec,
  })

  describe('custom resources', { concurrent: true }, () => {
    it('are served once their definition is established, which names itself', async () => {
      const definition = widgets()
      const { established, at, base } = await define(definition)
      expect(established.status.conditions).toEqual(
        expect.arrayContaining([
          expect.objectContaining({ type: 'NamesAccepted', status: 'True', reason: 'NoConflicts' }),
          expect.objectContaining({ type: 'Established', status: 'True', reason: 'InitialNamesAccepted' }),
        ]),
      )
      const { kind } = definition.body.spec.names
      expect(established.status.acceptedNames).toMatchObject({
        plural: definition.plural,
        kind,
        listKind: `${kind}List`,
      })
      expect(established.status.storedVersions).toEqual(['v1'])
      const list = await ask('GET', at)
      expect(list.body).toMatchObject({ kind: `${kind}List`, apiVersion: `${definition.group}/v1`, items: [] })
      const { body: discovered } = await eventually(
        () => ask('GET', base),
        ({ body }) => JSON.stringify(body).includes(definition.plural),
      )
      const found = discovered.resources.find((resource: { name: string }) => resource.name === definition.plural)
      expect(found).toMatchObject({ namespaced: true, kind, shortNames: definition.body.spec.names.shortNames })
    })

    it('are not served under a kind that another definition of the group has', async () => {
      const definition = widgets()
      await define(definition)
      const { spec } = definition.body
      const plural = `other${definition.plural}`
      const names = { plural, singular: plural.slice(0, -1), kind: spec.names.kind }
      const name = `${plural}.${definition.group}`
      await ask('POST', CRDS, { body: { ...definition.body, metadata: { name }, spec: { ...spec, names } } })
      const { body } = await eventually(
        () => ask('GET', `${CRDS}/${name}`),
        ({ body }) => body.status?.conditions?.length === 2,
      )
      const { kind } = spec.names
      expect(body.status.conditions).toEqual(
        expect.arrayContaining([
          expect.objectContaining({
            ...{ type: 'NamesAccepted', status: 'False', reason: 'ListKindConflict' },
            message: `"${kind}List" is already in use`,
          }),
          expect.objectContaining({
            ...{ type: 'Established', status: 'False', reason: 'NotAccepted' },
            message: 'not all names are accepted',
          }),
        ]),
      )
      const version = (spec.versions as { name: string }[])[0]?.name
      expect((await ask('GET', `/apis/${definition.group}/${version}/${plural}`)).code).toBe(404)
    })

    it('get their defaults, lose fields nobody declared, and are checked', async () => {
      const definition = widgets()
      const { at } = await define(definition)
      const made = await ask('POST', at, { body: { ...widget(definition, 'a', { size: 2, other: 1 }), extra: 1 } })
      expect(made.code).toBe(201)
      expect(made.body.spec).toEqual({ size: 2, color: 'red' })
      expect(made.body.extra).toBeUndefined()
      expect(made.body.metadata.generation).toBe(1)
      expect(made.warnings.join()).toContain('unknown field \\"spec.other\\"')
      const strict = await ask('POST', at, {
        body: widget(definition, 'b', { size: 2, other: 1 }),
        query: { fieldValidation: 'Strict' },
      })
      expect(strict.code).toBe(400)
      expect(strict.body.message).toContain('strict decoding error: unknown field "spec.other"')
      const wrong = await ask('POST', at, { body: widget(definition, 'c', { size: 11, color: 'green' }) })
      expect(wrong.code).toBe(422)
      const fields = wrong.body.details.causes.map((cause: { field: string }) => cause.field)
      expect(fields.sort()).toEqual(['spec.color', 'spec.size'])
      const missing = await ask('POST', at, { body: widget(definition, 'd', {}) })
      expect(missing.body.details.causes).toEqual([
        expect.objectContaining({ reason: 'FieldValueRequired', field: 'spec.size' }),
      ])
      const typed = await ask('POST', at, { body: widget(definition, 'e', { size: 'big' }) })
      expect(typed.code).toBe(422)
      expect(typed.body.details.causes[0]).toMatchObject({ reason: 'FieldValueTypeInvalid', field: 'spec.size' })
    })

    it('keep status apart, and count generations', async () => {
      const definition = widgets()
      const { at } = await define(definition)
      const { body: made } = await ask('POST', at, {
        body: { ...widget(definition, 'a', { size: 1 }), status: { phase: 'Ready' } },
      })
      expect(made.status).toBeUndefined()
      const status = await ask('PUT', `${at}/a/status`, {
        body: { ...made, spec: { size: 9 }, status: { phase: 'Ready' } },
      })
      expect(status.body).toMatchObject({ spec: { size: 1 }, status: { phase: 'Ready' }, metadata: { generation: 1 } })
      const patched = await ask('PATCH', `${at}/a`, {
        body: { spec: { size: 3 }, status: { phase: 'Lost' } },
        type: 'application/merge-patch+json',
      })
      expect(patched.body).toMatchObject({ spec: { size: 3 }, status: { phase: 'Ready' }, metadata: { generation: 2 } })
      const statusPatch = await ask('PATCH', `${at}/a/status`, {
        body: { status: { phase: 'Gone' } },
        type: 'application/merge-patch+json',
      })
      expect(statusPatch.body).toMatchObject({ status: { phase: 'Gone' }, metadata: { generation: 2 } })
    })

    it('must say which version they replace, and know no strategic merge', async () => {
      const definition = widgets()
      const { at } = await define(definition)
      await ask('POST', at, { body: widget(definition, 'a', { size: 1 }) })
      const unversioned = await ask('PUT', `${at}/a`, { body: widget(definition, 'a', { size: 2 }) })
      expect(unversioned.code).toBe(422)
      expect(unversioned.body.details.causes[0].field).toBe('metadata.resourceVersion')
      const strategic = await ask('PATCH', `${at}/a`, {
        body: { spec: { size: 2 } },
        type: 'application/strategic-merge-patch+json',
      })
      expect(strategic.code).toBe(415)
    })

    it('are shown in the columns their definition declares', async () => {
      const definition = widgets()
      const { at } = await define(definition)
      const { body: made } = await ask('POST', at, { body: widget(definition, 'a', { size: 1 }) })
      await ask('PUT', `${at}/a/status`, {
        body: {
          ...made,
          status: { phase: 'Ready', since: new Date(Date.now() - 3 * 86_400_000 - 60_000).toISOString() },
        },
      })
      const { body: table } = await ask('GET', at, { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' })
      expect(table.columnDefinitions).toMatchObject([
        { name: 'Name', type: 'string', format: 'name', priority: 0 },
        { name: 'Size', type: 'integer', priority: 0 },
        { name: 'Phase', type: 'string', priority: 0 },
        { name: 'Color', type: 'string', priority: 1 },
        { name: 'Since', type: 'date', priority: 0 },
      ])
      expect(table.rows[0].cells).toEqual(['a', 1, 'Ready', 'red', '3d'])
    })

    it('are served in every version, stored in one', async () => {
      const { schema } = widgets()
      const versions = [
        { name: 'v1alpha1', served: true, storage: false, schema },
        { name: 'v1', served: true, storage: true, schema },
        { name: 'v0', served: false, storage: false, schema },
      ]
      const definition = widgets({ versions })
      const { at } = await define(definition)
      const created = await ask('POST', at, {
        body: { ...widget(definition, 'a', { size: 1 }), apiVersion: `${definition.group}/v1alpha1` },
      })
      expect(created.code, JSON.stringify(created.body)).toBe(201)
      const newer = await ask('GET', `${at.replace('/v1alpha1/', '/v1/')}/a`)
      expect(newer.body).toMatchObject({ apiVersion: `${definition.group}/v1`, spec: { size: 1 } })
      expect((await ask('GET', at.replace('/v1alpha1/', '/v0/'))).code).toBe(404)
      const { body: group } = await eventually(
        () => ask('GET', `/apis/${definition.group}`),
        ({ body }) => JSON.stringify(body).includes('v1alpha1'),
      )
      expect(group.versions.map((each: { version: string }) => each.version)).toEqual(['v1', 'v1alpha1'])
    })

    it('can be of the whole cluster', async () => {
      const definition = widgets({ scope: 'Cluster' })
      const { base } = await define(definition)
      const created = await ask('POST', `${base}/${definition.plural}`, { body: widget(definition, 'a', { size: 1 }) })
      expect(created.code).toBe(201)
      expect(created.body.metadata.namespace).toBeUndefined()
    })

    it('go with their definition', async () => {
      const definition = widgets()
      const { at } = await define(definition)
      await ask('POST', at, { body: widget(definition, 'a', { size: 1 }) })
      expect((await ask('DELETE', `${CRDS}/${definition.body.metadata.name}`)).code).toBe(200)
      await eventually(
        () => ask('GET', `${CRDS}/${definition.body.metadata.name}`),
        ({ code }) => code === 404,
      )
      await eventually(
        () => ask('GET', at),
        ({ code }) => code === 404,
      )
      const { at: again } = await define(definition)
      expect(namesOf(await ask('GET', again))).toEqual([])
    })

    it('are watched like any other, with all their versions of life', async () => {
      const definition = widgets()
      const { at } = await define(definition)
      const { body: list } = await ask('GET', at)
      const from = { resourceVersion: list.metadata.resourceVersion }
      // The original ends watches of a kind while it still settles its definition; every client then resumes.
      const lived = async (left: number): Promise<readonly WatchedEvent[]> => {
        await using watch = await subject().watch(at, from)
        return await watch.take(3).catch((error: unknown) => {
          if (left === 0) throw error
          return lived(left - 1)
        })
      }
      const live = async () => {
        const { body: made } = await ask('POST', at, { body: widget(definition, 'a', { size: 1 }) })
        await ask('PUT', `${at}/a/status`, { body: { ...made, status: { phase: 'Ready' } } })
        await ask('DELETE', `${at}/a`)
      }
      const [events] = await Promise.all([lived(3), live()])
      expect(events.map(({ type }) => type)).toEqual(['ADDED', 'MODIFIED', 'DELETED'])
      expect(events[1]?.object).toMatchObject({ kind: definition.body.spec.names.kind, status: { phase: 'Ready' } })
    })

    it('are applied server-side with their own lists', async () => {
      const definition = widgets()
      const { at } = await define(definition)
      const body = JSON.stringify(widget(definition, 'a', { size: 1, parts: [{ name: 'x' }] }))
      const type = 'application/apply-patch+yaml'
      const made = await ask('PATCH', `${at}/a`, { body, type, query: { fieldManager: 'suite' } })
      expect(made.code).toBe(201)
      expect(made.body.spec).toEqual({ size: 1, color: 'red', parts: [{ name: 'x' }] })
      expect(made.body.metadata.managedFields[0].fieldsV1).toEqual({ 'f:spec': { 'f:size': {}, 'f:parts': {} } })
    })
  })

  describe('definitions', () => {
    it.each([
      [
        'whose name is not plural.group',
        (body: ReturnType<typeof widgets>['body']) => ({ ...body, metadata: { name: 'other.suite.example.io' } }),
        'metadata.name',
      ],
      [
        'of no scope',
        (body: ReturnType<typeof widgets>['body']) => ({ ...body, spec: { ...body.spec, scope: 'Galaxy' } }),
        'spec.scope',
      ],
      [
        'without a storage version',
        (body: ReturnType<typeof widgets>['body']) => ({
          ...body,
          spec: { ...body.spec, versions: body.spec.versions.map((version) => ({ ...version, storage: false })) },
        }),
        'spec.versions',
      ],
    ])('%s are refused', async (_, change, field) => {
      const answer = await ask('POST', CRDS, { body: change(widgets().body) })
      expect(answer.code).toBe(422)
      expect(answer.body.details.causes.map((cause: { field: string }) => cause.field)).toContain(field)
    })

    it('without a structural schema are refused', async () => {
      const schema = {
        openAPIV3Schema: { type: 'object', properties: { spec: { properties: { a: { type: 'string' } } } } },
      }
      const answer = await ask('POST', CRDS, {
        body: widgets({ versions: [{ name: 'v1', served: true, storage: true, schema }] }).body,
      })
      expect(answer.code).toBe(422)
    })
  })
}
