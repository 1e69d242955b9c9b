import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { kollectKinds } from '../generate.ts'
import { goDurationMs, type KollectKnown, kollectFaults, refusedKollectKinds } from './index.ts'

const known: KollectKnown = { semantics: 'strict', maxExportBytes: 1_572_864 }
const original: KollectKnown = { ...known, semantics: 'original' }

const anObject = (kind: string, spec: unknown, metadata: object = {}) => ({
  apiVersion: 'kollect.dev/v1alpha1',
  kind,
  metadata: { name: 'a', namespace: 'team-a', ...metadata },
  spec,
})
const said = (kind: string, spec: unknown, by: KollectKnown = known, metadata: object = {}) =>
  kollectFaults(kind, anObject(kind, spec, metadata), by).map(({ path, message }) => `${path} ${message}`)
const places = (kind: string, spec: unknown, by: KollectKnown = known, metadata: object = {}) =>
  kollectFaults(kind, anObject(kind, spec, metadata), by).map(({ path }) => path)

const gvk = { group: 'apps', version: 'v1', kind: 'Deployment' }
const image = { name: 'image', path: '{.spec.image}' }
const git = { type: 'git', endpoint: 'https://git.example.com/a/b.git', git: {} }
const s3 = { type: 's3', endpoint: 's3://bucket/prefix' }
const postgres = { type: 'postgres', postgres: { databaseRef: { name: 'db' }, table: 'inventory' } }
const nats = { type: 'nats', endpoint: 'nats://nats:4222', nats: { subject: 'a.{cluster}' } }
const kafka = { type: 'kafka', kafka: { brokers: ['kafka:9092'], topic: 'inventory' } }
const selected = { namespaceSelector: { matchLabels: { team: 'a' } } }

type Case = readonly [what: string, spec: unknown, ...places: string[]]
const refuses = (kind: string, cases: readonly Case[]) =>
  describe(`a ${kind}`, () => {
    it.each(cases)('is refused for %s', (_, spec, ...expected) => expect(places(kind, spec)).toEqual(expected))
  })
const takes = (kind: string, cases: readonly (readonly [what: string, spec: unknown])[]) =>
  describe(`a ${kind}`, () => {
    it.each(cases)('may have %s', (_, spec) => expect(said(kind, spec)).toEqual([]))
  })

it('kinds of the cluster are refused where the agent has rights in namespaces only', () => {
  const tenant = { ...known, tenantMode: true }
  for (const kind of ['KollectClusterTarget', 'KollectClusterInventory', 'KollectClusterScope'])
    expect(said(kind, selected, tenant)).toEqual([expect.stringMatching(/^kind is of the cluster, .*TENANT_MODE/)])
  expect(said('KollectScope', {}, tenant)).toEqual([])
})

refuses('KollectProfile', [
  ['no kind', { targetGVK: {}, attributes: [image] }, 'spec.targetGVK.version', 'spec.targetGVK.kind'],
  [
    'a blank kind',
    { targetGVK: { version: ' ', kind: '' }, attributes: [image] },
    'spec.targetGVK.version',
    'spec.targetGVK.kind',
  ],
  ['no attributes', { targetGVK: gvk }, 'spec.attributes'],
  ['no attributes beside an export', { targetGVK: gvk, export: {} }, 'spec.attributes'],
  ['one name twice', { targetGVK: gvk, attributes: [image, image] }, 'spec.attributes[1].name'],
  [
    'a blank path',
    { targetGVK: gvk, attributes: [{ name: ' ', path: ' ' }] },
    'spec.attributes[0].name',
    'spec.attributes[0].path',
  ],
  [
    'an embedded object under the name of an attribute',
    { targetGVK: gvk, attributes: [{ ...image, name: 'resource' }], export: { mode: 'Resource' } },
    'spec.export.as',
  ],
  [
    'bad pointers and CEL that prunes',
    {
      targetGVK: gvk,
      export: { mode: 'Resource', prune: { jsonPointers: ['', 'a', '/a~2', '/ok~0~1'], cel: ['true'] } },
    },
    'spec.export.prune.jsonPointers[0]',
    'spec.export.prune.jsonPointers[1]',
    'spec.export.prune.jsonPointers[2]',
    'spec.export.prune.cel',
  ],
  [
    'series of attributes that are not there',
    {
      targetGVK: gvk,
      attributes: [image],
      metrics: [
        { name: 'm', path: 'replicas', labels: ['image', 'x'] },
        { name: 'm', path: 'image' },
      ],
    },
    'spec.metrics[0].path',
    'spec.metrics[0].labels[1]',
    'spec.metrics[1].name',
  ],
  [
    'six labels of a series',
    {
      targetGVK: gvk,
      attributes: 'abcdef'.split('').map((name) => ({ name, path: '{.a}' })),
      metrics: [{ name: 'm', path: 'a', labels: 'abcdef'.split('') }],
    },
    'spec.metrics[0].labels',
  ],
  [
    'data of Secrets',
    {
      targetGVK: { version: 'v1', kind: 'Secret' },
      attributes: [
        { name: 'x', path: '{.data.password}' },
        { name: 'y', path: '{.metadata.name}' },
      ],
    },
    'spec.attributes[0].path',
  ],
  ['whole Secrets', { targetGVK: { version: 'v1', kind: 'Secret' }, export: { mode: 'Resource' } }, 'spec.export.mode'],
  ['a field that is spelled wrong', { targetGvk: gvk, targetGVK: gvk, attributes: [image] }, 'spec.targetGvk'],
])

refuses('KollectTarget', [
  ['no profile', {}, 'spec.profileRef'],
  ['a profile of another namespace', { profileRef: 'other/deployments' }, 'spec.profileRef'],
  ['a mode that is none', { profileRef: 'a', watchMode: 'Some' }, 'spec.watchMode'],
  [
    'namespaces blank, twice or impossible',
    { profileRef: 'a', includedNamespaces: ['', 'a', 'a'], excludedNamespaces: ['A.b'] },
    'spec.includedNamespaces[0]',
    'spec.includedNamespaces[2]',
    'spec.excludedNamespaces[0]',
  ],
  [
    'selectors that mean nothing',
    {
      profileRef: 'a',
      labelSelector: {
        matchLabels: { 'a b': 'c', d: 'e f' },
        matchExpressions: [
          { key: 'a', operator: 'Is' },
          { key: 'a', operator: 'In' },
          { key: 'a', operator: 'Exists', values: ['b'] },
        ],
      },
    },
    'spec.labelSelector.matchLabels',
    'spec.labelSelector.matchLabels',
    'spec.labelSelector.matchExpressions[0].operator',
    'spec.labelSelector.matchExpressions[1].values',
    'spec.labelSelector.matchExpressions[2].values',
  ],
  [
    'a rule without a kind',
    { profileRef: 'a', resourceRules: [{ matchLabels: { a: 'b' } }] },
    'spec.resourceRules[0].gvk',
  ],
])

refuses('KollectClusterTarget', [
  ['no choice of namespaces', { profileRef: { name: 'a', namespace: 'b' } }, 'spec.namespaceSelector'],
  ['an empty choice', { profileRef: { name: 'a', namespace: 'b' }, namespaceSelector: {} }, 'spec.namespaceSelector'],
  ['a profile without namespace', { profileRef: { name: 'a' }, ...selected }, 'spec.profileRef.namespace'],
])

refuses('KollectInventory', [
  [
    'sinks that are no names',
    { databaseSinkRefs: ['a/b', 7, {}, { name: 'c', namespace: 'x' }, { name: 'd', every: '1s' }] },
    'spec.databaseSinkRefs[0]',
    'spec.databaseSinkRefs[1]',
    'spec.databaseSinkRefs[2].name',
    'spec.databaseSinkRefs[3].namespace',
    'spec.databaseSinkRefs[4].every',
  ],
  ['one sink twice, however it is written', { eventSinkRefs: ['a', { name: 'a' }] }, 'spec.eventSinkRefs[1].name'],
  [
    '21 sinks',
    {
      snapshotSinkRefs: Array.from({ length: 11 }, (_, at) => `a${at}`),
      eventSinkRefs: Array.from({ length: 10 }, (_, at) => `a${at}`),
    },
    'spec',
  ],
  [
    'times that are none',
    { exportMinInterval: '25h', snapshotWindow: 'often', databaseSinkRefs: [{ name: 'a', exportMinInterval: '-1s' }] },
    'spec.databaseSinkRefs[0].exportMinInterval',
    'spec.exportMinInterval',
    'spec.snapshotWindow',
  ],
  [
    'ceilings that are none',
    { maxExportBytes: 0, databaseSinkRefs: [{ name: 'a', maxExportBytes: 1_572_865 }] },
    'spec.databaseSinkRefs[0].maxExportBytes',
    'spec.maxExportBytes',
  ],
  ['a port of its own', { httpEndpoint: { enabled: true } }, 'spec.httpEndpoint'],
])
takes('KollectInventory', [
  ['the same name in two families', { databaseSinkRefs: ['a'], eventSinkRefs: ['a'] }],
  ['no sinks', {}],
  ['no repeats at all', { exportMinInterval: '0' }],
])

refuses('KollectClusterInventory', [
  ['no namespaces', { databaseSinkRefs: ['a'] }, 'spec.namespaceSelector'],
  [
    'one name of two namespaces',
    {
      ...selected,
      databaseSinkRefs: [
        { name: 'a', namespace: 'b' },
        { name: 'a', namespace: 'c' },
      ],
    },
    'spec.databaseSinkRefs[1].name',
  ],
  [
    'impossible names',
    { ...selected, targetRefs: ['a/b'], namespaces: ['x.y'], sinkNamespace: 'A' },
    'spec.targetRefs[0]',
    'spec.namespaces[0]',
    'spec.sinkNamespace',
  ],
  ['another way to put rows together', { ...selected, dedupe: 'first' }, 'spec.dedupe'],
])

refuses('KollectSnapshotSink', [
  ['no type', {}, 'spec.type'],
  ['Google by its own interface', { type: 'gcs', endpoint: 'gs://bucket' }, 'spec.type'],
  ['Azure', { type: 'azureblob' }, 'spec.type'],
  ['http', { type: 'http', http: { method: 'POST' } }, 'spec.type'],
  ['git without a place', { type: 'git' }, 'spec.endpoint'],
  ['a block of another type', { ...s3, git: {} }, 'spec.git'],
  ['files in a bucket', { ...s3, layout: { mode: 'split' } }, 'spec.layout'],
  [
    'parquet',
    { ...s3, serialization: { format: 'parquet' }, objectStore: { format: 'parquet' } },
    'spec.serialization.format',
    'spec.objectStore.format',
  ],
  ['compression', { ...git, serialization: { compression: 'gzip' } }, 'spec.serialization.compression'],
  [
    'merge requests',
    { ...git, type: 'gitlab', gitlab: { mergeRequest: { mode: 'merge_request' } } },
    'spec.gitlab.mergeRequest.mode',
  ],
  ['a forced push', { ...git, git: { pushPolicy: 'ForcePush' } }, 'spec.git.pushPolicy'],
  ['a key beside https', { ...git, git: { auth: { type: 'ssh' } } }, 'spec.git.auth.type'],
  [
    'a token beside ssh',
    { ...git, endpoint: 'git@git.example.com:a/b.git', git: { auth: { type: 'token' } } },
    'spec.git.auth.type',
  ],
  ['a password in its address', { ...git, endpoint: 'https://a:b@git.example.com/a.git' }, 'spec.endpoint'],
  ['a file', { ...git, endpoint: 'file:///var/git/a.git' }, 'spec.endpoint'],
  ['a bucket that is none', { ...s3, endpoint: 'https://s3.example.com/' }, 'spec.endpoint'],
  [
    'lines where one is needed',
    { ...git, git: { commitMessage: 'a\nb', commitTrailers: ['no trailer'], author: { name: 'a <b>' } } },
    'spec.git.commitMessage',
    'spec.git.commitTrailers[0]',
    'spec.git.author.name',
  ],
  [
    'a template of a row that names none',
    { ...git, layout: { mode: 'perResource', pathTemplate: '{name}{extension}', index: { pathTemplate: 'i' } } },
    'spec.layout.pathTemplate',
    'spec.layout.index.pathTemplate',
  ],
  [
    'a name that is made of a template',
    { ...git, provisioning: { naming: { template: 'x' } } },
    'spec.provisioning.naming',
  ],
  ['an option nobody knows', { ...git, options: { depth: '1' } }, 'spec.options.depth'],
])
takes('KollectSnapshotSink', [
  ['a remote by ssh', { ...git, endpoint: 'git@git.example.com:a/b.git', git: { auth: { type: 'ssh' } } }],
  ['a branch in its address', { ...git, endpoint: `${git.endpoint}#branch=inventory` }],
  ['gitlab without merge requests', { ...git, type: 'gitlab', gitlab: { mergeRequest: { mode: 'direct' } } }],
  ['git with nothing more', { type: 'git', endpoint: git.endpoint }],
  ['gitlab with nothing more', { type: 'gitlab', endpoint: git.endpoint }],
  ['a store elsewhere', { ...s3, endpoint: 'https://s3.example.com/bucket/prefix', objectStore: { format: 'json' } }],
  ['a bucket alone', { ...s3, endpoint: 'bucket/prefix' }],
  [
    'files by row',
    { ...git, layout: { mode: 'split', pathTemplate: 'clusters/{cluster}/{kind}/{sourceName}{extension}' } },
  ],
])

describe('a template of a document', () => {
  const problem = (pathTemplate: string) => said('KollectSnapshotSink', { ...git, pathTemplate })[0]
  it.each([
    ['', 'is empty'],
    ['/{namespace}/{name}', 'begin with'],
    ['../{namespace}/{name}', '".."'],
    ['a..b/{namespace}/{name}', '".."'],
    ['{namespace}\\{name}', '"/"'],
    ['.Git/hooks/{namespace}/{name}', 'own folder'],
    ['{Cluster}/{namespace}/{name}', 'has "{Cluster}": known are {cluster}'],
    ['{namespace}/{name', 'no partner'],
    ['clusters/{cluster}', 'without {namespace}, {name}'],
  ])('%j is refused', (template, words) => expect(problem(template)).toContain(words))
  it('may say cluster, namespace, name, generation and extension', () =>
    expect(problem('clusters/{cluster}/{namespace}/{name}-{generation}{extension}')).toBeUndefined())
})

describe('a remote of git', () => {
  const endpoint = (text: string) => places('KollectSnapshotSink', { ...git, endpoint: text })
  it.each(['ext::sh -c id', 'ssh://-oProxyCommand=id/a.git', '-oProxyCommand=id:a.git', 'https://-a/a.git'])(
    'cannot be %j, which git takes for more than an address',
    (text) => expect(endpoint(text)).toEqual(['spec.endpoint']),
  )
  it.each(['git@git.test:a.git', 'git.test:a.git', 'ssh://git@[2606:4700::1111]:2222/a.git'])('can be %j', (text) =>
    expect(endpoint(text)).toEqual([]),
  )
})

describe('a branch', () => {
  const branch = (name: string) => places('KollectSnapshotSink', { ...git, git: { branch: name } })
  it.each(['refs/heads/main', '-a', '.a', 'a..b', 'a@{1}', 'a b', 'a.', 'a.lock', 'a/', 'a//b', ''])(
    'cannot be %j',
    (name) => expect(branch(name)).toEqual(['spec.git.branch']),
  )
  it.each(['main', 'inventory/west', 'v1.2_x-y'])('can be %j', (name) => expect(branch(name)).toEqual([]))
})

refuses('KollectDatabaseSink', [
  ['BigQuery', { type: 'bigquery', bigquery: { project: 'p' } }, 'spec.type'],
  ['MongoDB', { type: 'mongodb' }, 'spec.type'],
  ['no block', { type: 'postgres' }, 'spec.postgres'],
  ['no connection string', { type: 'postgres', postgres: { table: 'a' } }, 'spec.postgres.databaseRef'],
  [
    'names that need quotes',
    { type: 'postgres', postgres: { databaseRef: { name: 'a' }, table: 'a; drop', schema: '1a' } },
    'spec.postgres.table',
    'spec.postgres.schema',
  ],
  ['paths', { ...postgres, pathTemplate: '{namespace}/{name}' }, 'spec.pathTemplate'],
  ['an identity that is empty', { ...postgres, cluster: '' }, 'spec.cluster'],
  ['an identity that is none', { ...postgres, cluster: 'West' }, 'spec.cluster'],
  ['an identity with two dots', { ...postgres, cluster: 'a..b' }, 'spec.cluster'],
  [
    'a password among its options',
    { ...postgres, options: { DB_Password: 'x', apiKey: 'y' } },
    'spec.options.DB_Password',
    'spec.options.apiKey',
  ],
  ['a time that is none', { ...postgres, options: { statement_timeout: 'soon' } }, 'spec.options.statement_timeout'],
  [
    'two authorities',
    { ...postgres, tls: { caBundle: btoa('-----BEGIN CERTIFICATE-----'), caSecretRef: { name: 'a' } } },
    'spec.tls.caBundle',
  ],
  ['an authority that is none', { ...postgres, tls: { caBundle: btoa('x') } }, 'spec.tls.caBundle'],
  ['rows as csv', { ...postgres, serialization: { format: 'csv' } }, 'spec.serialization.format'],
])
takes('KollectDatabaseSink', [
  ['a limit of statements', { ...postgres, options: { statement_timeout: '30s' } }],
  ['an identity with dots', { ...postgres, cluster: 'eu.west-1' }],
  [
    'a Secret of its own namespace, named',
    { ...postgres, postgres: { ...postgres.postgres, databaseRef: { name: 'a', namespace: 'team-a' } } },
  ],
])

refuses('KollectEventSink', [
  ['no block', { type: 'nats', endpoint: 'nats://a' }, 'spec.nats'],
  ['no server', { type: 'nats', nats: { subject: 'a' } }, 'spec.endpoint'],
  ['a subject for those who subscribe', { ...nats, nats: { subject: 'a.*' } }, 'spec.nats.subject'],
  ['a subject of the server', { ...nats, nats: { subject: '$JS.API.STREAM.DELETE.{name}' } }, 'spec.nats.subject'],
  ['a subject of answers', { ...nats, nats: { subject: '_INBOX.{cluster}' } }, 'spec.nats.subject'],
  ['a subject with a hole', { ...nats, nats: { subject: 'a..b' } }, 'spec.nats.subject'],
  ['a subject of something unknown', { ...nats, nats: { subject: 'a.{uid}' } }, 'spec.nats.subject'],
  ['an unknown way to sign in', { ...kafka, options: { sasl_mechanism: 'GSSAPI' } }, 'spec.options.sasl_mechanism'],
  ['no brokers', { type: 'kafka', kafka: { brokers: [], topic: 'a' } }, 'spec.kafka.brokers'],
  [
    'brokers that are none',
    { type: 'kafka', kafka: { brokers: ['http://a:1', 'a b'], topic: 'a/b' } },
    'spec.kafka.brokers[0]',
    'spec.kafka.brokers[1]',
    'spec.kafka.topic',
  ],
])
takes('KollectEventSink', [
  ['several servers', { ...nats, endpoint: 'nats://a:4222,b:4222' }],
  ['a way to sign in', { ...kafka, options: { sasl_mechanism: 'plain' } }],
  ['brokers with a scheme', { ...kafka, kafka: { brokers: ['ssl://kafka:9093', '[2001:db8::1]:9092'], topic: 'a' } }],
])

refuses('KollectScope', [
  [
    'lists with holes',
    { allowedNamespaces: [''], deniedNamespaces: ['a', 'a'], eventSinkRefs: ['a/b'] },
    'spec.allowedNamespaces[0]',
    'spec.deniedNamespaces[1]',
    'spec.eventSinkRefs[0]',
  ],
  [
    'a kind without a name, and a floor of days',
    { allowedGVKs: [{ version: 'v1', kind: ' ' }], minExportInterval: '48h' },
    'spec.allowedGVKs[0].kind',
    'spec.minExportInterval',
  ],
])
refuses('KollectConnectionTest', [
  ['no sink', { sinkRef: {} }, 'spec.sinkRef'],
  ['two sinks', { sinkRef: { databaseSinkRef: 'a', eventSinkRef: 'b' } }, 'spec.sinkRef'],
  ['a sink of another namespace', { sinkRef: { databaseSinkRef: 'a/b' } }, 'spec.sinkRef.databaseSinkRef'],
  [
    'a negative life',
    { sinkRef: { databaseSinkRef: 'a' }, ttlSecondsAfterFinished: -1 },
    'spec.ttlSecondsAfterFinished',
  ],
])

describe('semantics', () => {
  const foreign = (kind: string, spec: object) => [said(kind, spec), said(kind, spec, original)]
  const ref = { name: 'a', namespace: 'platform' }

  it.each([
    ['KollectDatabaseSink', { ...postgres, postgres: { ...postgres.postgres, databaseRef: ref } }],
    ['KollectDatabaseSink', { ...postgres, secretRef: ref }],
    ['KollectDatabaseSink', { ...postgres, tls: { caSecretRef: ref } }],
    ['KollectSnapshotSink', { ...git, git: { auth: { secretRef: ref } } }],
    ['KollectEventSink', { ...nats, nats: { ...nats.nats, secretRef: ref } }],
    ['KollectEventSink', { ...kafka, kafka: { ...kafka.kafka, secretRef: ref } }],
  ])(
    'a Secret of another namespace is refused with the next step, and taken as the original did: %s %j',
    (kind, spec) => {
      const [strict, lenient] = foreign(kind, spec)
      expect(strict).toEqual([
        expect.stringMatching(
          /\.namespace is "platform": .*own namespace "team-a" alone\. Copy the Secret there.*KOLLECT_SEMANTICS=original/,
        ),
      ])
      expect(lenient).toEqual([])
    },
  )

  it('of the original take what has no effect, and a forced push', () => {
    const spec = { ...git, options: { depth: '1' }, git: { pushPolicy: 'ForcePush' } }
    expect(said('KollectSnapshotSink', spec, original)).toEqual([])
    expect(said('KollectInventory', { httpEndpoint: { enabled: true } }, original)).toEqual([])
  })

  it('of the original take no type that is not built either', () => {
    expect(places('KollectDatabaseSink', { type: 'mongodb' }, original)).toEqual(['spec.type'])
    expect(places('KollectDatabaseSink', { ...postgres, options: { password: 'x' } }, original)).toEqual([
      'spec.options.password',
    ])
  })
})

describe('what is known besides the object', () => {
  it('is the floor of a scope: a shorter interval is refused where it is stated', () => {
    const scopes = [anObject('KollectScope', { minExportInterval: '1m' })]
    const spec = {
      exportMinInterval: '20s',
      databaseSinkRefs: [
        { name: 'a', exportMinInterval: '0s' },
        { name: 'b', exportMinInterval: '1m' },
      ],
    }
    expect(places('KollectInventory', spec, { ...known, scopes })).toEqual([
      'spec.databaseSinkRefs[0].exportMinInterval',
      'spec.exportMinInterval',
    ])
    expect(places('KollectInventory', {}, { ...known, scopes })).toEqual([])
    // What the API server filled in, nobody stated.
    expect(places('KollectInventory', { exportMinInterval: '30s' }, { ...known, scopes })).toEqual([])
  })

  it('is where nobody may send, and which paths compile', () => {
    const hostProblem = (host: string) => (host === '169.254.169.254' ? 'is refused' : undefined)
    const by = { ...known, hostProblem, pathProblem: () => 'does not compile', predicateProblem: () => 'is no CEL' }
    expect(
      places('KollectEventSink', { ...kafka, kafka: { brokers: ['a:1', '169.254.169.254:9092'], topic: 'a' } }, by),
    ).toEqual(['spec.kafka.brokers[1]'])
    expect(places('KollectProfile', { targetGVK: gvk, attributes: [image] }, by)).toEqual(['spec.attributes[0].path'])
    expect(places('KollectTarget', { profileRef: 'a', resourceRules: [{ gvk, matchPolicy: 'x' }] }, by)).toEqual([
      'spec.resourceRules[0].matchPolicy',
    ])
  })

  it('is not asked about expressions that are too long in all: compiling them would keep others waiting', () => {
    const never = () => {
      throw new Error('was compiled')
    }
    const by = { ...known, pathProblem: never, predicateProblem: never }
    const long = 'a'.repeat(16_000)
    const attributes = Array.from({ length: 5 }, (_, at) => ({ name: `a${at}`, path: long }))
    expect(places('KollectProfile', { targetGVK: gvk, attributes }, by)).toEqual(['spec.attributes'])
    const resourceRules = Array.from({ length: 5 }, () => ({ gvk, matchPolicy: long }))
    expect(places('KollectTarget', { profileRef: 'a', resourceRules }, by)).toEqual(['spec.resourceRules'])
  })

  it('is the namespace that kubectl would write it to', () => {
    const spec = { ...postgres, secretRef: { name: 'a', namespace: 'platform' } }
    const metadata = { namespace: undefined }
    expect(places('KollectDatabaseSink', spec, known, metadata)).toEqual([])
    expect(places('KollectDatabaseSink', spec, { ...known, namespace: 'team-a' }, metadata)).toEqual([
      'spec.secretRef.namespace',
    ])
  })
})

describe('annotations of a profile', () => {
  const secrets = { targetGVK: { version: 'v1', kind: 'Secret' } }
  it.each([
    ['allow-secret-extraction', { attributes: [{ name: 'a', path: '{.data.a}' }] }],
    ['allow-full-resource-export', { export: { mode: 'Resource' } }],
  ])('kollect.dev/%s opens what it names', (name, more) => {
    const annotated = (value: string) =>
      places('KollectProfile', { ...secrets, ...more }, known, { annotations: { [`kollect.dev/${name}`]: value } })
    expect(annotated('true')).toEqual([])
    expect(annotated('yes')).toHaveLength(1)
  })
})

describe('an object', () => {
  it('that is being deleted is never kept from going', () =>
    expect(said('KollectTarget', {}, known, { deletionTimestamp: '2026-11-26T12:00:00Z' })).toEqual([]))

  it('names every fault at once', () =>
    expect(places('KollectTarget', { profileRef: 'a/b', watchMode: 'x', includedNamespaces: [''], wrong: 1 })).toEqual([
      'spec.watchMode',
      'spec.wrong',
      'spec.profileRef',
      'spec.includedNamespaces[0]',
    ]))

  it.each(refusedKollectKinds.map(({ kind }) => kind))('of kind %s is refused with what to write instead', (kind) =>
    expect(said(kind, { type: 'postgres' })).toEqual([
      expect.stringMatching(
        /^kind is refused: sinks live in namespaces\. Write a Kollect(Snapshot|Database|Event)Sink into kollect-system/,
      ),
    ]),
  )

  it('of a kind that there is not is told so', () =>
    expect(said('KollectSink', {})).toEqual(['kind is "KollectSink", which kollect.dev/v1alpha1 does not have']))
})

describe('kollectFaults', () => {
  const kinds = kollectKinds.map(({ definition }) => definition)
  const words = [...new Set(JSON.stringify(kinds.map(({ spec }) => spec)).match(/"[a-zA-Z]+"(?=:\{)/g) ?? [])].map(
    (word) => word.slice(1, -1),
  )
  const values = fc.letrec<{ any: unknown }>((tie) => ({
    any: fc.oneof(
      { maxDepth: 6, depthSize: 'medium' },
      fc.constantFrom<unknown>(
        null,
        true,
        '',
        'a',
        'a/b',
        'https://',
        's3://',
        'git@a:b',
        '{',
        '..',
        'NaN',
        0,
        -1,
        1.5,
        1e300,
        'postgres',
        'git',
        's3',
        'nats',
        'kafka',
        'Resource',
        'In',
      ),
      fc.string({ maxLength: 20 }),
      fc.array(tie('any'), { maxLength: 4 }),
      fc.dictionary(fc.oneof(fc.constantFrom(...words), fc.string()), tie('any'), { maxKeys: 8 }),
    ),
  })).any

  it('never throws, whatever it is given, and says where and what', () =>
    fc.assert(
      fc.property(
        fc.constantFrom(...kinds.map(({ kind }) => kind), 'Pod'),
        values,
        values,
        values,
        (kind, spec, metadata, object) => {
          for (const given of [object, { metadata, spec }, { metadata: { name: 'a' }, spec }])
            for (const by of [known, original])
              for (const { path, message } of kollectFaults(kind, given, by)) {
                expect(path).not.toBe('')
                expect(message).not.toBe('')
              }
        },
      ),
      { numRuns: 500 },
    ))

  it('has nothing against the examples of the reference', () => {
    for (const { kind, example } of kinds) expect(kollectFaults(kind, example, known), kind).toEqual([])
  })

  it('says of a valid object with one field too many just that', () =>
    fc.assert(
      fc.property(
        fc.constantFrom(...kinds),
        fc.stringMatching(/^x[a-z]{6,12}$/),
        values,
        ({ kind, example }, name, value) => {
          const spec = { ...(example.spec as object), [name]: value }
          expect(kollectFaults(kind, { ...example, spec }, known).map(({ path }) => path)).toEqual([`spec.${name}`])
        },
      ),
    ))
})

describe('a Go duration', () => {
  it.each([
    ['30s', 30_000],
    ['1h30m', 5_400_000],
    ['1.5m', 90_000],
    ['.5s', 500],
    ['100ms', 100],
    ['0', 0],
    ['-1s', -1000],
    ['', undefined],
    ['30', undefined],
    ['1d', undefined],
    ['s', undefined],
    ['1h 30m', undefined],
  ])('%j is %j ms', (text, ms) => expect(goDurationMs(text)).toBe(ms))
})
