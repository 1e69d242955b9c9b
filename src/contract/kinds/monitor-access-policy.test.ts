import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { createKubeClient, customResourceDefinitions, isKubeError, type KubeClient, type KubeObject } from '#kube'
import { noRealApiServer, type RealApiServer, startRealApiServer } from '../../../test/real-apiserver.ts'
import type { StructuralSchema } from './crd-schema.ts'
import { InvalidObjectError } from './kind.ts'
import { monitorAccessPolicy } from './monitor-access-policy.ts'

const base = { identity: { subjects: {} }, access: { effect: 'Allow' }, scope: { clusters: {} } }
const withRule = (rule: object) => ({ ...base, scope: { clusters: { rules: [{ selector: {}, ...rule }] } } })
const withResource = (resource: object) => withRule({ resources: [{ type: 'nodes', ...resource }] })

const good: readonly (readonly [string, object])[] = [
  ['the shortest', base],
  [
    'a team that sees its own clusters',
    {
      identity: { subjects: { groups: ['developers', 'system:authenticated'] }, priority: 100 },
      access: { effect: 'Allow', enabled: true },
      scope: {
        clusters: {
          default: 'none',
          rules: [
            {
              selector: { matchPattern: '^dev-.*', matchNames: ['shared'], matchLabels: { env: 'dev' } },
              permissions: { view: true, viewMetrics: false },
            },
          ],
        },
      },
    },
  ],
  [
    'every field',
    {
      identity: {
        subjects: {
          users: ['ann', 'ann@example.com', 'system:admin'],
          groups: ['g'],
          serviceAccounts: [{ name: 'bot', namespace: 'ci' }],
        },
        priority: 10_000,
      },
      access: { effect: 'Deny', enabled: false },
      scope: {
        clusters: {
          default: 'allow',
          rules: [
            {
              selector: { matchNames: ['prod-*'] },
              permissions: { view: true, viewMetrics: true },
              resources: [
                {
                  type: 'virtualmachines',
                  visibility: 'filtered',
                  filters: {
                    names: { allowed: ['app-*'], denied: ['*-tmp'] },
                    namespaces: { allowed: ['a'], denied: [] },
                    labels: { 'app.kubernetes.io/name': 'shop', empty: '' },
                    fields: { 'spec.size': { allowed: ['1*'], denied: ['100'] } },
                  },
                  aggregations: { include: ['total'], exclude: ['cost'] },
                },
                { type: 'nodes', visibility: 'none' },
              ],
            },
          ],
        },
      },
      lifecycle: { validity: { notBefore: '2026-01-01T00:00:00Z', notAfter: '2027-01-01T00:00:00+02:00' } },
    },
  ],
  ['empty objects and lists', { ...withRule({ permissions: {}, resources: [] }), lifecycle: { validity: {} } }],
  ['a resource with empty filters', withResource({ filters: { names: {}, labels: {}, fields: {} }, aggregations: {} })],
  ['a default that denies', { ...base, scope: { clusters: { default: 'deny' } } }],
  ['a pattern of 256 characters, whatever their bytes', withRule({ selector: { matchPattern: 'ü'.repeat(256) } })],
  ['times that only the compiler refuses', { ...base, lifecycle: { validity: { notAfter: 'soon' } } }],
  ['a pattern that only the compiler refuses', withRule({ selector: { matchPattern: '[invalid' } })],
]

const bad: readonly (readonly [string, unknown, RegExp])[] = [
  ['no spec', undefined, /^spec is missing$/],
  ['nothing in it', {}, /spec\.identity is missing\nspec\.access is missing\nspec\.scope is missing/],
  ['no subjects', { ...base, identity: {} }, /spec\.identity\.subjects is missing/],
  ['no effect', { ...base, access: {} }, /spec\.access\.effect is missing/],
  ['another effect', { ...base, access: { effect: 'allow' } }, /spec\.access\.effect must be one of "Allow", "Deny"/],
  ['no clusters', { ...base, scope: {} }, /spec\.scope\.clusters is missing/],
  ['a priority of 0', { ...base, identity: { subjects: {}, priority: 0 } }, /spec\.identity\.priority must be >= 1/],
  ['a priority of 10001', { ...base, identity: { subjects: {}, priority: 10_001 } }, /priority must be <= 10000/],
  ['half a priority', { ...base, identity: { subjects: {}, priority: 1.5 } }, /priority must be integer/],
  ['one user without list', { ...base, identity: { subjects: { users: 'ann' } } }, /subjects\.users must be array/],
  [
    'a service account in one text',
    { ...base, identity: { subjects: { serviceAccounts: ['ci:bot'] } } },
    /serviceAccounts\[0\] must be object/,
  ],
  [
    'a service account without name',
    { ...base, identity: { subjects: { serviceAccounts: [{ namespace: 'ci' }] } } },
    /serviceAccounts\[0\]\.name is missing/,
  ],
  ['an unknown default', { ...base, scope: { clusters: { default: 'all' } } }, /clusters\.default must be one of/],
  ['a rule without selector', { ...base, scope: { clusters: { rules: [{}] } } }, /rules\[0\]\.selector is missing/],
  [
    'a pattern of 257 characters',
    withRule({ selector: { matchPattern: 'ü'.repeat(257) } }),
    /rules\[0\]\.selector\.matchPattern must not have more than 256/,
  ],
  ['labels that are no text', withRule({ selector: { matchLabels: { env: 1 } } }), /matchLabels\.env must be string/],
  ['a permission in words', withRule({ permissions: { view: 'yes' } }), /permissions\.view must be boolean/],
  ['a resource without type', withRule({ resources: [{ visibility: 'none' }] }), /resources\[0\]\.type is missing/],
  ['an empty type', withResource({ type: '' }), /resources\[0\]\.type must not have fewer than 1/],
  [
    'an unknown visibility',
    withResource({ visibility: 'some' }),
    /visibility must be one of "all", "none", "filtered"/,
  ],
  ['filters as a list', withResource({ filters: { names: ['a*'] } }), /filters\.names must be object/],
  ['a field as a list', withResource({ filters: { fields: { size: ['1'] } } }), /filters\.fields\.size must be object/],
]

const anObject = (name: string, spec: unknown): KubeObject => ({
  apiVersion: monitorAccessPolicy.apiVersion,
  kind: monitorAccessPolicy.kind,
  metadata: { name, namespace: 'default' },
  ...(spec === undefined ? {} : { spec }),
})

/** Every field of a schema with its path, as `kubectl explain --recursive` would walk. */
function fieldsOf(schema: StructuralSchema, path: string): (readonly [string, StructuralSchema])[] {
  const inner = [
    ...Object.entries(schema.properties ?? {}).map(([name, field]) => [`${path}.${name}`, field] as const),
    ...(schema.items ? [[`${path}[]`, schema.items] as const] : []),
    ...(schema.additionalProperties ? [[`${path}.*`, schema.additionalProperties] as const] : []),
  ]
  return inner.flatMap(([at, field]) => [[at, field] as const, ...fieldsOf(field, at)])
}

describe('MonitorAccessPolicy', () => {
  it.each(good)('takes %s', (_, spec) => expect(monitorAccessPolicy.faults(anObject('p', spec))).toEqual([]))

  it.each(bad)('refuses %s, naming field and fault', (_, spec, fault) => {
    const faults = monitorAccessPolicy.faults(anObject('p', spec))
    expect(faults.map(({ path, message }) => `${path} ${message}`).join('\n')).toMatch(fault)
    expect(() => monitorAccessPolicy.parse(anObject('p', spec))).toThrow(InvalidObjectError)
  })

  it('fills the documented defaults in and changes nothing of what was given', () => {
    const spec = {
      ...withResource({}),
      identity: { subjects: { serviceAccounts: [{ name: 'bot' }] } },
    }
    const object = anObject('p', spec)
    expect(monitorAccessPolicy.parse(object).spec).toEqual({
      identity: { subjects: { serviceAccounts: [{ name: 'bot', namespace: 'default' }] }, priority: 100 },
      access: { effect: 'Allow', enabled: true },
      scope: {
        clusters: { default: 'none', rules: [{ selector: {}, resources: [{ type: 'nodes', visibility: 'all' }] }] },
      },
    })
    expect(object.spec).toEqual(spec)
  })

  it('has the documented names and columns', () => {
    const crd = monitorAccessPolicy.crd().spec as {
      names: { plural: string; shortNames: string[] }
      versions: { additionalPrinterColumns: { name: string; priority?: number }[] }[]
    }
    expect(crd.names).toMatchObject({ plural: 'monitoraccesspolicies', shortNames: ['map', 'policy'] })
    const columns = crd.versions[0]?.additionalPrinterColumns ?? []
    expect(columns.filter(({ priority }) => !priority).map(({ name }) => name)).toEqual([
      'State',
      'Effect',
      'Priority',
      'Users',
      'Age',
    ])
  })

  it('explains every field', () => {
    const [version] = monitorAccessPolicy.crd().spec.versions as { schema: { openAPIV3Schema: StructuralSchema } }[]
    const { spec = {}, status = {} } = version?.schema.openAPIV3Schema.properties ?? {}
    const silent = [...fieldsOf(spec, 'spec'), ...fieldsOf(status, 'status')]
      .filter(([path, { description }]) => !description && !/(\[\]|\.\*)$/.test(path))
      .map(([path]) => path)
    expect(silent).toEqual([])
  })
})

const missing = noRealApiServer()
describe.skipIf(missing !== undefined && process.env.CI_REQUIRE_ALL !== '1')(
  `MonitorAccessPolicy on a real kube-apiserver${missing ? ` (skipped: ${missing})` : ''}`,
  () => {
    let server: RealApiServer | undefined
    let kube: KubeClient
    const resource = {
      group: monitorAccessPolicy.group,
      version: monitorAccessPolicy.version,
      plural: monitorAccessPolicy.plural,
      kind: monitorAccessPolicy.kind,
      namespaced: true,
    }

    beforeAll(async () => {
      server = await startRealApiServer()
      if (!server) return
      kube = createKubeClient(server.access)
      await kube.create(customResourceDefinitions, monitorAccessPolicy.crd() as unknown as KubeObject)
      await vi.waitFor(async () => {
        expect(await conditionsOfCrd()).toEqual(expect.arrayContaining(['Established True', 'NamesAccepted True']))
        await kube.listAll(resource)
      }, 20_000)
    })
    afterAll(async () => {
      await kube?.[Symbol.asyncDispose]()
      await server?.stop()
    })

    async function conditionsOfCrd(): Promise<string[]> {
      const crd = await kube.get(customResourceDefinitions, { name: monitorAccessPolicy.crd().metadata.name })
      const { conditions = [] } = (crd?.status ?? {}) as { conditions?: { type: string; status: string }[] }
      return conditions.map(({ type, status }) => `${type} ${status}`)
    }

    it('is structural: the server has no complaint about the definition', async () => {
      expect(await conditionsOfCrd()).not.toContain('NonStructuralSchema True')
    })

    it.each(good.map(([what, spec], i) => [what, spec, `good-${i}`] as const))(
      'takes %s, as we do',
      async (_, spec, name) => {
        const created = (await kube.create(resource, anObject(name, spec))) as KubeObject
        expect(created.spec).toEqual(monitorAccessPolicy.parse(anObject(name, spec)).spec)
      },
    )

    it.each(bad.map(([what, spec], i) => [what, spec, `bad-${i}`] as const))(
      'refuses %s, as we do',
      async (_, spec, name) => {
        const end = await kube.create(resource, anObject(name, spec)).then(
          () => 'taken',
          (error: unknown) => error,
        )
        expect(isKubeError(end, 'invalid'), String(end)).toBe(true)
      },
    )

    it('leaves nulls out, so that they mean what absence means', async () => {
      const spec = { ...withRule({ permissions: null, resources: null }), lifecycle: null }
      const created = (await kube.create(resource, anObject('nulls', spec))) as KubeObject
      expect(created.spec).toEqual(monitorAccessPolicy.parse(anObject('nulls', withRule({}))).spec)
    })

    it('keeps a status written to its subresource, conditions and warnings included', async () => {
      await kube.create(resource, anObject('with-status', base))
      const condition = {
        type: 'Ready',
        status: 'True',
        reason: 'Compiled',
        message: '',
        lastTransitionTime: '2026-01-01T00:00:00Z',
        observedGeneration: 1,
      }
      const status = {
        state: 'Active',
        message: 'Policy is active',
        compiledAt: '2026-01-01T00:00:00Z',
        hash: '0123456789abcdef',
        affectedUsers: 1,
        affectedGroups: 2,
        affectedServiceAccounts: 3,
        customResourceTypes: 4,
        customResourceWarnings: ['spec.scope.clusters.rules: without rules the policy does nothing'],
        observedGeneration: 1,
        generationInForce: 1,
        conditions: [condition],
      }
      const key = { name: 'with-status', namespace: 'default' }
      await kube.patch(resource, key, { status }, { kind: 'merge', subresource: 'status' })
      expect(((await kube.get(resource, key)) as KubeObject).status).toEqual({ evaluationCount: 0, ...status })
    })
  },
)
