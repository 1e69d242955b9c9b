import { type Clock, systemClock } from '#model'
import { RedisPolicies } from '../../../pipeline/access/policies-redis.ts'
import { LAYOUT as policyLayout } from '../../../pipeline/access/redis-layout.ts'
import { aDocument } from '../../../pipeline/access/testing/policies.ts'
import { RedisCatalog } from '../../../pipeline/catalog/index.ts'
import { LAYOUT as sourceLayout } from '../../../pipeline/catalog/redis-layout.ts'
import { aDefinition, readShallow } from '../../../pipeline/catalog/testing/definitions.ts'
import { RedisRegistries, type RegistryFacts } from '../../../pipeline/registry/index.ts'
import { LAYOUT as registryLayout } from '../../../pipeline/registry/redis-layout.ts'
import type { RedisConnection, SetLayout } from '../index.ts'

/** One document: its name, and which of several it is. */
export interface Item {
  readonly name: string
  readonly variant: number
}

/** A process that uses the set. */
export interface Member extends AsyncDisposable {
  resync(all: readonly Item[]): Promise<unknown>
  put(item: Item): Promise<void>
  remove(name: string): Promise<void>
  onLost(listener: () => void): () => void
  /** `<name> <variant>`, sorted; undefined: they are not available */
  read(): Promise<readonly string[] | undefined>
}

/** One use of replicated sets, as the product has it. */
export interface Use {
  readonly title: string
  readonly layout: SetLayout
  /** of its keys */
  readonly pattern: string
  readonly owns: RegExp
  /** keys under the pattern that are no part of the set */
  readonly besides: readonly string[]
  readonly member: (name: string) => string
  /** another text that reads well */
  readonly another: (text: string) => string
  open(options: { readonly connection: RedisConnection; readonly checkEveryMs: number }): Promise<Member>
  /** writes what `recorded.json` holds of it */
  writeRecorded(connection: RedisConnection): Promise<void>
}

const clock: Clock = { now: () => Date.UTC(2026, 0, 1), sleep: systemClock.sleep }
const sorted = (all: readonly Item[]) => all.map(({ name, variant }) => `${name} ${variant}`).sort()

const policyOf = ({ name, variant }: Item) =>
  aDocument(name, { priority: variant, effect: variant === 1 ? 'Deny' : 'Allow', users: [`u${variant}`] })
const policies: Use = {
  title: 'policies',
  layout: policyLayout,
  pattern: 'polic*',
  owns: /^polic/,
  besides: [],
  member: (name) => `policy:clusterpulse:${name}`,
  another: (text) => text.replace('Deny', 'Allow').replace('"priority":2', '"priority":3'),
  async open(options) {
    const store = await RedisPolicies.open(options)
    const status = { state: 'Active' }
    return {
      resync: (all) => store.resync(all.map((item) => ({ document: policyOf(item), status }))),
      put: (item) => store.put(policyOf(item), status),
      remove: (name) => store.remove(`clusterpulse/${name}`),
      onLost: (listener) => store.onLost(listener),
      read: () =>
        store.current().then(
          (now) =>
            sorted(now.policies.map(({ document: { policy_name: name, priority: variant } }) => ({ name, variant }))),
          () => undefined,
        ),
      [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
    }
  },
  async writeRecorded(connection) {
    await using store = await RedisPolicies.open({ connection, clock })
    const subjects = {
      users: ['ann', 'x:sorted', '<b>&'],
      groups: ['dev'],
      service_accounts: ['system:serviceaccount:ci:bot'],
    }
    const deny = aDocument('a', { effect: 'Deny', priority: 300, ...subjects, custom_resource_types: ['pvc'] })
    await store.resync([
      { document: deny, status: { state: 'Active', message: 'Policy is active' } },
      { document: aDocument('b', { enabled: false, users: ['bob'] }), status: { state: 'Inactive' } },
    ])
  },
}

const sources: Use = {
  title: 'MetricSources',
  layout: sourceLayout,
  pattern: 'metricsource*',
  owns: /^metricsource/,
  besides: [],
  member: (name) => `clusterpulse/${name}`,
  another: (text) => text.replace('"hash":"1"', '"hash":"3"').replace('configmaps', 'secrets'),
  async open(options) {
    const store = await RedisCatalog.open({ ...options, read: readShallow })
    const definitionOf = ({ name, variant }: Item) =>
      aDefinition(name, { typeName: `t${variant % 2}`, hash: String(variant) })
    return {
      resync: (all) => store.resync(all.map(definitionOf)),
      put: (item) => store.put(definitionOf(item)),
      remove: (name) => store.remove(`clusterpulse/${name}`),
      onLost: (listener) => store.onLost(listener),
      read: async () =>
        store.unavailable()
          ? undefined
          : sorted(store.sources().map(({ name, hash }) => ({ name, variant: Number(hash) }))),
      [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
    }
  },
  async writeRecorded(connection) {
    await using store = await RedisCatalog.open({ connection, clock, read: readShallow })
    await store.resync(['disks', 'volumes'].map((name) => aDefinition(name, { typeName: 'pvc' })))
  },
}

const harbor: RegistryFacts = {
  name: 'harbor',
  displayName: 'The harbor',
  endpoint: 'https://harbor.example',
  type: 'harbor',
  labels: { tier: 'gold' },
  insecure: false,
  skipTlsVerify: true,
  caPem: undefined,
  allowPrivateRedirects: false,
  credentialsRef: { name: 'the-secret', namespace: 'clusterpulse' },
  intervalMs: 60_000,
  timeoutMs: 10_000,
  checkCatalog: true,
  catalogPageSize: 100,
  healthCheckPaths: ['/health'],
}
const registries: Use = {
  title: 'registries',
  layout: registryLayout,
  pattern: 'registr*',
  owns: /^registr/,
  besides: ['registry:a:status', 'registry:b:meta', 'registry:b:metrics:latest', 'registry-events:a'],
  member: (name) => name,
  another: (text) => text.replace('https://1', 'https://2'),
  async open(options) {
    const store = await RedisRegistries.open(options)
    const factsOf = ({ name, variant }: Item) => ({ ...harbor, name, endpoint: `https://${variant}` })
    return {
      resync: (all) => store.resync(all.map(factsOf)),
      put: (item) => store.declare(factsOf(item)),
      remove: (name) => store.remove(name),
      onLost: (listener) => store.onLost(listener),
      read: async () =>
        store.unavailable()
          ? undefined
          : sorted(
              store.registries().map(({ facts: { name, endpoint } }) => ({ name, variant: Number(endpoint.slice(8)) })),
            ),
      [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
    }
  },
  async writeRecorded(connection) {
    await using store = await RedisRegistries.open({ connection, clock })
    const quay = {
      ...harbor,
      name: 'quay',
      displayName: 'quay',
      endpoint: 'https://quay.example',
      credentialsRef: undefined,
    }
    await store.resync([harbor, quay])
    await store.record('harbor', {
      ...{
        at: clock.now(),
        available: true,
        responseMs: 12,
        version: 'registry/2.0',
        features: { docker_v2_api: true },
      },
      ...{ repositoryCount: 2, isCatalogTruncated: false, repositories: ['a', 'b/c'], health: 'healthy' },
      ...{ message: 'Registry is healthy', code: '', error: '', warnings: [] },
    })
  },
}

export const uses: readonly Use[] = [policies, sources, registries]
