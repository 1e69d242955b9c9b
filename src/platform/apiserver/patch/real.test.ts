import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { missingOriginal, type Original, startOriginal } from '../apply/real-server.ts'
import { applyDefaults, builtInSchema, prune } from '../schema/index.ts'
import { isMap } from '../schema/json.ts'
import type { ApiObject, Schema } from '../types.ts'
import { applyJsonPatch, applyMergePatch, applyStrategicPatch, PatchError } from './index.ts'

const schema = builtInSchema('apps', 'v1', 'Deployment') as Schema
const PATH = '/apis/apps/v1/namespaces/default/deployments'

const word = fc.constantFrom('one', 'two')
const maybe = <T>(value: fc.Arbitrary<T>): fc.Arbitrary<T | null> => fc.option(value, { freq: 5 })
const some = (fields: Record<string, fc.Arbitrary<unknown>>): fc.Arbitrary<Record<string, unknown>> =>
  fc.record(fields, { requiredKeys: [] })
const unique = <T extends object>(items: fc.Arbitrary<T>, key: keyof T, minLength = 1) =>
  fc.uniqueArray(items, { selector: (item) => item[key], minLength, maxLength: 3 })

const envItem = fc.record({ name: fc.constantFrom('A', 'B', 'C', 'D'), value: word })
const mountItem = fc.record({ name: fc.constant('v'), mountPath: fc.constantFrom('/a', '/b', '/c') })

const deployment = fc
  .record({
    labels: fc.dictionary(fc.constantFrom('a', 'b', 'c'), word),
    finalizers: fc.uniqueArray(fc.constantFrom('x.io/a', 'x.io/b', 'x.io/c')),
    containers: fc.shuffledSubarray(['web', 'side', 'log'], { minLength: 1 }).chain((names) =>
      fc.tuple(
        ...names.map((name) =>
          fc.record({
            name: fc.constant(name),
            image: word,
            env: unique(envItem, 'name'),
            volumeMounts: unique(mountItem, 'mountPath'),
            args: fc.array(word, { minLength: 1, maxLength: 2 }),
          }),
        ),
      ),
    ),
    tolerations: fc.array(fc.record({ key: word, operator: fc.constant('Exists') }), { minLength: 1, maxLength: 2 }),
  })
  .map(({ labels, finalizers, containers, tolerations }) => ({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { labels, ...(finalizers.length > 0 ? { finalizers } : {}) },
    spec: {
      selector: { matchLabels: { app: 'x' } },
      template: {
        metadata: { labels: { app: 'x' } },
        spec: { containers, tolerations, volumes: [{ name: 'v', emptyDir: {} }] },
      },
    },
  }))

const deleted = <T extends object>(item: fc.Arbitrary<T>): fc.Arbitrary<object> =>
  fc
    .tuple(item, fc.integer({ min: 0, max: 4 }))
    .map(([item, dice]) => (dice === 0 ? { ...item, $patch: 'delete' } : item))

const order = (names: readonly string[], key?: string) =>
  fc
    .shuffledSubarray([...names], { minLength: 1 })
    .map((order) => (key ? order.map((name) => ({ [key]: name })) : order))

const containerPatch = fc.record(
  {
    name: fc.constantFrom('web', 'side', 'log', 'new'),
    image: word,
    env: fc.uniqueArray(deleted(fc.record({ name: fc.constantFrom('A', 'B', 'C', 'D'), value: maybe(word) })), {
      selector: (item) => (item as { name: string }).name,
      maxLength: 3,
    }),
    volumeMounts: unique(mountItem, 'mountPath'),
    args: fc.array(word, { minLength: 1, maxLength: 2 }),
    resources: some({ limits: some({ cpu: fc.constant('1'), memory: fc.constant('1Gi') }) }),
    $patch: fc.constantFrom('delete', 'merge'),
  },
  { requiredKeys: ['name', 'image'] },
)

const patches = some({
  metadata: some({
    labels: some({ a: maybe(word), b: maybe(word), d: maybe(word) }),
    finalizers: fc.uniqueArray(fc.constantFrom('x.io/b', 'x.io/d'), { maxLength: 2 }),
    '$deleteFromPrimitiveList/finalizers': fc.uniqueArray(fc.constantFrom('x.io/a', 'x.io/c'), { minLength: 1 }),
  }),
  spec: some({
    replicas: maybe(fc.constantFrom(2, 3)),
    strategy: fc.constantFrom<object>(
      { type: 'Recreate', $retainKeys: ['type'] },
      { rollingUpdate: { maxSurge: 1 } },
      { type: 'Recreate', rollingUpdate: null },
      { $patch: 'replace', type: 'Recreate' },
    ),
    template: fc.record({
      spec: some({
        containers: fc.uniqueArray(containerPatch, { selector: ({ name }) => name, minLength: 1, maxLength: 3 }),
        '$setElementOrder/containers': order(['web', 'side', 'log', 'new'], 'name'),
        tolerations: fc.array(fc.record({ key: word, operator: fc.constant('Exists') }), {
          minLength: 1,
          maxLength: 2,
        }),
        nodeSelector: some({ a: word }),
        volumes: fc.constantFrom<object[]>(
          [{ name: 'v', $retainKeys: ['name', 'hostPath'], hostPath: { path: '/x', type: '' } }],
          [{ name: 'w', emptyDir: {} }],
        ),
      }),
    }),
  }),
})

/** Without what differs between any two objects, and what is empty: a Go struct does not tell that from absent. */
function comparable(object: ApiObject): unknown {
  const {
    uid: _,
    resourceVersion: __,
    creationTimestamp: ___,
    generation: ____,
    managedFields: _____,
    name: ______,
    ...metadata
  } = object.metadata
  return withoutEmpty({ metadata, spec: object.spec })
}

function withoutEmpty(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutEmpty)
  if (!isMap(value)) return value
  const kept = Object.entries(value)
    .filter(([name]) => name !== 'imagePullPolicy')
    .map(([name, item]) => [name, withoutEmpty(item)] as const)
    .filter(([, item]) => item !== undefined && !(typeof item === 'object' && Object.keys(item ?? {}).length === 0))
  return Object.fromEntries(kept)
}

/**
 * Two accidents of the original that are no promises: within an item that is new it takes directives for data, and where
 * one patch deletes and adds items its list of live items is overwritten while it still orders by it.
 */
function isAccident(live: ApiObject, patch: unknown): boolean {
  interface Item {
    readonly name: string
    readonly env?: readonly object[]
  }
  interface Containers {
    readonly spec?: { readonly template?: { readonly spec?: { readonly containers?: readonly Item[] } } }
  }
  const containers = (object: unknown) => (object as Containers).spec?.template?.spec?.containers ?? []
  const isDirective = (item: object) => '$patch' in item
  const known = new Set(containers(live).map(({ name }) => name))
  const added = containers(patch).filter((item) => !known.has(item.name) && !isDirective(item))
  return added.some(({ env }) => env?.some(isDirective)) || (added.length > 0 && containers(patch).some(isDirective))
}

describe.skipIf(missingOriginal())(`patches beside a real kube-apiserver (${missingOriginal() ?? 'found'})`, () => {
  let server: Original
  beforeAll(async () => {
    server = await startOriginal()
  })
  afterAll(() => server?.stop())

  const stored = (object: unknown): ApiObject => applyDefaults(schema, prune(schema, object as ApiObject).value)
  const attempt = (patch: () => unknown): ApiObject | PatchError => {
    try {
      return stored(patch())
    } catch (error) {
      if (error instanceof PatchError) return error
      throw error
    }
  }
  let count = 0
  const create = async (object: { metadata: object }): Promise<ApiObject> => {
    const named = { ...object, metadata: { ...object.metadata, name: `d${count++}` } }
    const { code, body } = await server.call('POST', PATH, named)
    if (code !== 201) throw new Error(JSON.stringify(body))
    return body as unknown as ApiObject
  }

  async function agrees(live: ApiObject, patch: unknown, type: string, mine: ApiObject | PatchError): Promise<void> {
    const { code, body } = await server.call(
      'PATCH',
      `${PATH}/${live.metadata.name}?dryRun=All`,
      patch,
      `application/${type}+json`,
    )
    // What is patched right may still be no valid Deployment: not the matter here.
    if (code === 422 && body.reason === 'Invalid' && (body.details as { causes?: object[] })?.causes) return
    if (code >= 300) expect(mine, `${JSON.stringify(patch)} was refused: ${body.message}`).toBeInstanceOf(PatchError)
    // The original copies what is not there as a null; we keep to RFC 6902.
    else if (mine instanceof PatchError && mine.message.startsWith('copy')) return
    else if (mine instanceof PatchError)
      throw new Error(`${JSON.stringify(patch)} was refused here only: ${mine.message}`)
    else expect(comparable(mine), JSON.stringify(patch)).toEqual(comparable(body as unknown as ApiObject))
  }

  it('gives the same object for any strategic merge patch', async () => {
    await fc.assert(
      fc.asyncProperty(deployment, fc.array(patches, { minLength: 1, maxLength: 8 }), async (object, each) => {
        const live = await create(object)
        for (const patch of each.filter((patch) => !isAccident(live, patch)))
          await agrees(
            live,
            patch,
            'strategic-merge-patch',
            attempt(() => applyStrategicPatch(live, patch, schema)),
          )
      }),
      { numRuns: 60, seed: 3 },
    )
  })

  it('gives the same object for any merge patch', async () => {
    const merge = some({
      metadata: some({ labels: maybe(some({ a: maybe(word), d: maybe(word) })) }),
      spec: some({
        replicas: maybe(fc.constant(3)),
        strategy: maybe(fc.constant({ type: 'Recreate', rollingUpdate: null })),
      }),
    })
    await fc.assert(
      fc.asyncProperty(deployment, fc.array(merge, { minLength: 1, maxLength: 5 }), async (object, each) => {
        const live = await create(object)
        for (const patch of each)
          await agrees(
            live,
            patch,
            'merge-patch',
            attempt(() => applyMergePatch(live, patch)),
          )
      }),
      { numRuns: 20, seed: 4 },
    )
  })

  it('gives the same object for any JSON patch, and refuses the same', async () => {
    const path = fc.constantFrom(
      '/metadata/labels/a',
      '/metadata/labels/x',
      '/metadata/annotations',
      '/spec/replicas',
      '/spec/template/spec/tolerations/0',
      '/spec/template/spec/tolerations/-',
      '/spec/template/spec/tolerations/9',
      '/spec/template/spec/containers/0/args/1',
      '/nowhere/at/all',
    )
    const operation = fc.oneof(
      fc.record({
        op: fc.constant('add'),
        path: fc.constantFrom('/metadata/labels/z', '/metadata/labels/a'),
        value: word,
      }),
      fc.record({
        op: fc.constant('add'),
        path: fc.constantFrom(
          '/spec/template/spec/tolerations/-',
          '/spec/template/spec/tolerations/0',
          '/spec/template/spec/tolerations/5',
        ),
        value: fc.constant({ key: 'new', operator: 'Exists' }),
      }),
      fc.record({ op: fc.constant('remove'), path }),
      fc.record({
        op: fc.constant('replace'),
        path: fc.constantFrom('/spec/replicas', '/spec/nope'),
        value: fc.constantFrom(2, 3),
      }),
      fc.record({
        op: fc.constant('test'),
        path: fc.constantFrom('/spec/replicas', '/metadata/labels/a'),
        value: fc.constantFrom<unknown>(1, 2, 'one'),
      }),
      fc.record({
        op: fc.constant('copy'),
        from: fc.constantFrom('/metadata/labels/a', '/metadata/labels/b'),
        path: fc.constant('/metadata/labels/c'),
      }),
      fc.record({
        op: fc.constant('move'),
        from: fc.constantFrom('/metadata/labels/a', '/spec/template/spec/tolerations/0'),
        path: fc.constantFrom('/metadata/labels/c', '/spec/template/spec/tolerations/-'),
      }),
    )
    await fc.assert(
      fc.asyncProperty(
        deployment,
        fc.array(fc.array(operation, { minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 6 }),
        async (object, each) => {
          const live = await create(object)
          for (const patch of each)
            await agrees(
              live,
              patch,
              'json-patch',
              attempt(() => applyJsonPatch(live, patch)),
            )
        },
      ),
      { numRuns: 40, seed: 5 },
    )
  })
})
