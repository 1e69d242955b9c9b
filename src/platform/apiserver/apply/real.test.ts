import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { all } from '../../../../test/properties.ts'
import { applyDefaults, builtInSchema, prune } from '../schema/index.ts'
import { isMap } from '../schema/json.ts'
import type { ApiObject, Schema } from '../types.ts'
import { ApplyConflictError, applyConfiguration, trackUpdate } from './index.ts'
import { missingOriginal, type Original, startOriginal } from './real-server.ts'

/** One write, described so that it can be made here and at a real server. */
type Step =
  | {
      readonly do: 'apply'
      readonly manager: string
      readonly force: boolean
      readonly config: Fields
      readonly status: boolean
    }
  | { readonly do: 'update'; readonly manager: string; readonly fields: Fields; readonly status: boolean }
type Fields = Record<string, unknown>

interface Kind {
  readonly apiVersion: string
  readonly kind: string
  readonly path: string
  readonly schema: Schema
  /** whether steps may go through the status subresource */
  readonly status: boolean
  /** what every configuration must say to be valid */
  readonly always: Fields
  readonly fields: fc.Arbitrary<Fields>
  readonly statusFields?: fc.Arbitrary<Fields>
}

const some = <T>(fields: Record<string, fc.Arbitrary<T>>): fc.Arbitrary<Fields> =>
  fc.record(fields, { requiredKeys: [] })
/** Built-in kinds are Go structs there: what is empty or zero is as good as absent. */
const filled = <T>(fields: Record<string, fc.Arbitrary<T>>): fc.Arbitrary<Fields> =>
  some(fields).filter((value) => Object.keys(value).length > 0)
const word = fc.constantFrom('one', 'two')
const metadata = some<unknown>({
  labels: some({ a: word, b: word }),
  annotations: some({ a: word, 'x.io/b': word }),
  finalizers: fc.uniqueArray(fc.constantFrom('x.io/a', 'x.io/b', 'x.io/c'), { maxLength: 2 }),
})

const configMap: Kind = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  path: '/api/v1/namespaces/default/configmaps',
  schema: builtInSchema('', 'v1', 'ConfigMap') as Schema,
  status: false,
  always: {},
  fields: some<unknown>({ metadata, data: filled({ a: word, b: word, c: word }) }),
}

const container = (name: string) =>
  fc.record(
    {
      name: fc.constant(name),
      image: word,
      imagePullPolicy: fc.constant('Always'),
      env: fc.uniqueArray(fc.record({ name: fc.constantFrom('A', 'B', 'C'), value: word }), {
        selector: (env) => env.name,
        minLength: 1,
        maxLength: 3,
      }),
      ports: fc.uniqueArray(fc.record({ containerPort: fc.constantFrom(80, 81) }), {
        selector: (port) => port.containerPort,
        minLength: 1,
        maxLength: 2,
      }),
      args: fc.array(word, { minLength: 1, maxLength: 2 }),
      resources: fc.record({ limits: filled({ cpu: fc.constantFrom('1', '2'), memory: fc.constant('1Gi') }) }),
    },
    { requiredKeys: ['name', 'image', 'imagePullPolicy'] },
  )

const deployment: Kind = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  path: '/apis/apps/v1/namespaces/default/deployments',
  schema: builtInSchema('apps', 'v1', 'Deployment') as Schema,
  status: false,
  always: { spec: { selector: { matchLabels: { app: 'x' } } } },
  fields: fc
    .record({
      metadata,
      spec: some<unknown>({
        replicas: fc.constantFrom(1, 2, 3),
        paused: fc.constant(true),
        minReadySeconds: fc.constantFrom(1, 2),
      }),
      containers: fc.oneof(
        fc.tuple(container('web')),
        fc.tuple(container('web'), container('side')),
        fc.tuple(container('side'), container('web')),
      ),
      pod: some<unknown>({
        tolerations: fc.array(fc.record({ key: word, operator: fc.constant('Exists') }), {
          minLength: 1,
          maxLength: 2,
        }),
        nodeSelector: filled({ a: word, b: word }),
        hostNetwork: fc.constant(true),
      }),
    })
    .map(({ metadata, spec, containers, pod }) => ({
      metadata,
      spec: { ...spec, template: { metadata: { labels: { app: 'x' } }, spec: { containers, ...pod } } },
    })),
}

const text: Schema = { type: 'string' }
const thingSchema: Schema = {
  type: 'object',
  properties: {
    spec: {
      type: 'object',
      properties: {
        text,
        number: { type: 'integer', default: 7 },
        list: { type: 'array', items: text },
        set: { type: 'array', items: text, 'x-kubernetes-list-type': 'set' },
        items: {
          type: 'array',
          'x-kubernetes-list-type': 'map',
          'x-kubernetes-list-map-keys': ['name', 'protocol'],
          items: {
            type: 'object',
            required: ['name'],
            properties: {
              name: text,
              protocol: { type: 'string', default: 'TCP' },
              value: text,
              tags: { type: 'array', items: text },
            },
          },
        },
        map: { type: 'object', additionalProperties: text },
        whole: { type: 'object', additionalProperties: text, 'x-kubernetes-map-type': 'atomic' },
        open: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
        port: { 'x-kubernetes-int-or-string': true },
        inner: { type: 'object', properties: { a: text, b: { type: 'object', properties: { c: text } } } },
      },
    },
    status: {
      type: 'object',
      properties: {
        phase: text,
        conditions: {
          type: 'array',
          'x-kubernetes-list-type': 'map',
          'x-kubernetes-list-map-keys': ['type'],
          items: { type: 'object', required: ['type'], properties: { type: text, status: text } },
        },
      },
    },
  },
}

const words = fc.uniqueArray(fc.constantFrom('a', 'b', 'c', 'd'), { maxLength: 4 })
const thing: Kind = {
  apiVersion: 'x.io/v1',
  kind: 'Thing',
  path: '/apis/x.io/v1/namespaces/default/things',
  schema: thingSchema,
  status: true,
  always: {},
  fields: some<unknown>({
    metadata,
    spec: some<unknown>({
      text: word,
      number: fc.constantFrom(1, 2),
      list: words,
      set: words,
      items: fc.uniqueArray(
        fc.record(
          { name: fc.constantFrom('a', 'b', 'c'), protocol: fc.constantFrom('TCP', 'UDP'), value: word, tags: words },
          { requiredKeys: ['name'] },
        ),
        { selector: (item) => `${item.name}/${item.protocol ?? 'TCP'}`, maxLength: 4 },
      ),
      map: some({ a: word, b: word }),
      whole: some({ a: word, b: word }),
      open: some<unknown>({ a: word, list: words, deep: some<unknown>({ b: word, c: some({ d: word }) }) }),
      port: fc.constantFrom<unknown>(80, 'http'),
      inner: some<unknown>({ a: word, b: some({ c: word }) }),
    }),
  }),
  statusFields: some<unknown>({
    status: some<unknown>({
      phase: word,
      conditions: fc.uniqueArray(fc.record({ type: fc.constantFrom('A', 'B'), status: word }), {
        selector: (one) => one.type,
        maxLength: 2,
      }),
    }),
  }),
}

function stepsOf(kind: Kind): fc.Arbitrary<Step[]> {
  const step = (status: boolean, fields: fc.Arbitrary<Fields>): fc.Arbitrary<Step> =>
    fc.oneof(
      {
        weight: 3,
        arbitrary: fc.record({
          do: fc.constant('apply' as const),
          manager: fc.constantFrom('red', 'green', 'blue'),
          force: fc.boolean(),
          config: fields,
          status: fc.constant(status),
        }),
      },
      {
        weight: 1,
        arbitrary: fc.record({
          do: fc.constant('update' as const),
          manager: fc.constantFrom('red', 'editor'),
          fields,
          status: fc.constant(status),
        }),
      },
    )
  const main = step(false, kind.fields)
  const any = kind.statusFields
    ? fc.oneof({ weight: 4, arbitrary: main }, { weight: 1, arbitrary: step(true, kind.statusFields) })
    : main
  return fc.array(any, { minLength: 3, maxLength: 9 })
}

const union = (a: unknown, b: unknown): unknown => {
  if (!isMap(a) || !isMap(b)) return b === undefined ? a : b
  const result = { ...a }
  for (const [name, value] of Object.entries(b)) result[name] = union(result[name], value)
  return result
}

const whole = (kind: Kind, name: string, fields: Fields, always: boolean): ApiObject =>
  union(
    { apiVersion: kind.apiVersion, kind: kind.kind, metadata: { name, namespace: 'default' } },
    always ? union(kind.always, fields) : fields,
  ) as ApiObject

/** What a PUT sends: identity and owners of the live object, everything else as the step says. */
function replacement(kind: Kind, live: ApiObject, step: Step & { do: 'update' }): ApiObject {
  if (step.status) return { ...live, ...step.fields }
  const wanted = whole(kind, live.metadata.name, step.fields, true)
  const { uid, resourceVersion, creationTimestamp, managedFields, generation } = live.metadata
  const own = Object.fromEntries(
    Object.entries({ uid, resourceVersion, creationTimestamp, managedFields, generation }).filter(
      ([, value]) => value !== undefined,
    ),
  )
  return { ...wanted, ...('status' in live ? { status: live.status } : {}), metadata: { ...wanted.metadata, ...own } }
}

type Outcome = { readonly object: ApiObject } | { readonly conflicts: string[] } | { readonly invalid: true }

function here(kind: Kind, live: ApiObject | undefined, name: string, step: Step): Outcome {
  const common = {
    schema: kind.schema,
    now: '2026-01-01T00:00:00Z',
    status: kind.status || kind.kind === 'Deployment',
    ...(step.status ? { subresource: 'status' } : {}),
  }
  const stored = (object: ApiObject) => applyDefaults(kind.schema, prune(kind.schema, object).value)
  const kept = (object: ApiObject): ApiObject => {
    if (!live) return object
    if (!step.status) return object
    // A write to the status changes the status, and who owns what.
    const { status: _, ...rest } = live
    const { managedFields: __, ...metadata } = live.metadata
    const owners = object.metadata.managedFields ? { managedFields: object.metadata.managedFields } : {}
    return {
      ...rest,
      ...('status' in object ? { status: object.status } : {}),
      metadata: { ...metadata, ...owners },
    } as ApiObject
  }
  if (step.do === 'update') {
    if (!live) throw new Error('nothing to update')
    const after = stored(replacement(kind, live, step))
    return {
      object: kept({
        ...after,
        metadata: {
          ...after.metadata,
          managedFields: trackUpdate({ ...common, before: live, after, manager: step.manager }),
        },
      }),
    }
  }
  try {
    const config = whole(kind, name, step.config, !step.status)
    return {
      object: kept(stored(applyConfiguration({ ...common, live, config, manager: step.manager, force: step.force }))),
    }
  } catch (error) {
    if (!(error instanceof ApplyConflictError)) throw error
    return { conflicts: error.conflicts.map(({ manager, path }) => `${manager} ${path}`).sort() }
  }
}

async function there(
  server: Original,
  kind: Kind,
  live: ApiObject | undefined,
  name: string,
  step: Step,
): Promise<Outcome> {
  const at = `${kind.path}/${name}${step.status ? '/status' : ''}`
  const manager = `fieldManager=${step.manager}`
  const answer =
    step.do === 'apply'
      ? await server.call(
          'PATCH',
          `${at}?${manager}&force=${step.force}`,
          whole(kind, name, step.config, !step.status),
          'application/apply-patch+yaml',
        )
      : await server.call('PUT', `${at}?${manager}`, replacement(kind, live as ApiObject, step))
  if (answer.code === 409) {
    const causes = (answer.body.details as { causes: { message: string; field: string }[] }).causes
    return { conflicts: causes.map(({ message, field }) => `${message.replace('conflict with ', '')} ${field}`).sort() }
  }
  // What an apply leaves over may lack a required field: a matter of validation, which comes after.
  if (answer.code === 422) return { invalid: true }
  if (answer.code >= 300) throw new Error(`${step.do} was answered with ${answer.code}: ${JSON.stringify(answer.body)}`)
  return { object: answer.body as unknown as ApiObject }
}

/** What both must agree on: all but times, the server's own fields, and what is empty. */
function comparable(outcome: Outcome): unknown {
  if (!('object' in outcome)) return outcome
  const {
    uid: _,
    resourceVersion: __,
    creationTimestamp: ___,
    generation: ____,
    managedFields = [],
    ...metadata
  } = outcome.object.metadata
  const managers = managedFields
    .map(({ time: _, ...entry }) => entry)
    .sort((a, b) =>
      JSON.stringify([a.manager, a.operation, a.subresource]) < JSON.stringify([b.manager, b.operation, b.subresource])
        ? -1
        : 1,
    )
  const object = JSON.parse(
    JSON.stringify({ ...outcome.object, metadata }, (_, value) =>
      value !== null && typeof value === 'object' && Object.keys(value).length === 0 ? undefined : value,
    ),
  )
  return { object, managers }
}

describe.skipIf(missingOriginal())(`apply beside a real kube-apiserver (${missingOriginal() ?? 'found'})`, () => {
  let server: Original
  beforeAll(async () => {
    server = await startOriginal()
    const definition = {
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: 'things.x.io' },
      spec: {
        group: 'x.io',
        scope: 'Namespaced',
        names: { plural: 'things', kind: 'Thing' },
        versions: [
          {
            name: 'v1',
            served: true,
            storage: true,
            subresources: { status: {} },
            schema: { openAPIV3Schema: thingSchema },
          },
        ],
      },
    }
    await server.call('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', definition)
    // The kind is served, and its schema known to server-side apply, a moment after the definition is accepted.
    await vi.waitFor(
      async () => {
        const probe = { apiVersion: 'x.io/v1', kind: 'Thing', metadata: { name: 'probe' }, spec: { set: ['a'] } }
        const at = `${thing.path}/probe?fieldManager=p&force=true`
        const { body } = await server.call('PATCH', at, probe, 'application/apply-patch+yaml')
        expect(JSON.stringify(body)).toContain('v:')
      },
      { timeout: 80_000, interval: 100 },
    )
  })
  afterAll(() => server?.stop())

  it.each([
    [configMap, 30],
    [thing, 60],
    [deployment, 30],
  ] as const)('agrees on object, owners and conflicts after each of any writes ($kind)', async (kind, runs) => {
    let count = 0
    await fc.assert(
      fc.asyncProperty(stepsOf(kind), async (steps) => {
        const name = `n${kind.kind.toLowerCase()}${count++}`
        let [mine, theirs]: [ApiObject | undefined, ApiObject | undefined] = [undefined, undefined]
        for (const step of steps) {
          if (!theirs && (step.do === 'update' || step.status)) continue
          const expected = await there(server, kind, theirs, name, step)
          if ('invalid' in expected) continue
          const outcome = here(kind, mine, name, step)
          expect(comparable(outcome), JSON.stringify(step)).toEqual(comparable(expected))
          if ('object' in expected) theirs = expected.object
          if ('object' in outcome) mine = outcome.object
        }
      }),
      all({ numRuns: runs, seed: 7 }),
    )
  })
})
