// The boundaries of docs/architecture.md: layers look down, modules import along this table and through index.ts only.
const modules = {
  contract: { model: [], path: [], kinds: ['path'], wire: [], http: [] },
  platform: {
    runtime: [],
    outbound: [],
    authority: ['runtime'],
    kube: ['runtime', 'outbound'],
    processes: ['runtime'],
    nats: ['outbound'],
    redis: ['runtime'],
    controller: ['runtime', 'kube'],
    sealing: ['runtime'],
    apiserver: ['kinds', 'path', 'runtime', 'sealing', 'authority'],
    simulator: ['runtime', 'kube', 'apiserver'],
    webhooks: ['kinds', 'runtime', 'kube'],
  },
  pipeline: {
    collect: ['runtime', 'kube'],
    expression: [],
    metricsource: ['kinds', 'path', 'runtime', 'kube', 'collect', 'expression'],
    extract: ['kinds', 'path'],
    sinks: ['kinds', 'runtime', 'outbound', 'nats', 'extract'],
    inventory: ['kinds', 'runtime', 'kube', 'controller', 'collect', 'extract', 'sinks', 'outbound'],
    resources: ['kube', 'collect', 'metricsource', 'registry'],
    catalog: ['runtime', 'redis', 'metricsource', 'resources'],
    registry: ['runtime', 'outbound', 'redis'],
    state: ['runtime', 'redis'],
    events: ['runtime', 'state'],
    attention: ['runtime', 'redis'],
    history: ['runtime', 'state'],
    agent: ['runtime', 'wire', 'kube', 'collect', 'metricsource', 'resources'],
    ingest: ['wire', 'runtime', 'processes', 'state', 'history', 'events'],
    access: ['kinds', 'runtime', 'redis', 'kube', 'controller'],
    audit: ['runtime', 'redis'],
    publish: ['runtime', 'outbound', 'nats', 'state', 'monitor'],
    identity: ['runtime', 'outbound', 'kube', 'access'],
    monitor: ['runtime', 'attention', 'state', 'access'],
    api: [
      ...['http', 'runtime', 'state', 'history', 'events', 'access', 'identity', 'audit'],
      ...['expression', 'metricsource', 'resources', 'catalog', 'registry', 'kinds', 'attention'],
    ],
  },
  control: {
    certificates: ['authority', 'kube', 'controller', 'runtime'],
    credentials: ['kinds', 'kube'],
    connections: [
      ...['credentials', 'kinds', 'kube', 'controller', 'runtime'],
      ...['collect', 'metricsource', 'catalog', 'ingest', 'state', 'attention', 'authority'],
    ],
    joining: ['connections', 'kinds', 'certificates', 'authority', 'kube', 'controller', 'runtime', 'ingest', 'audit'],
    metricsources: ['kinds', 'kube', 'controller', 'runtime', 'metricsource', 'catalog', 'ingest', 'state', 'events'],
    registration: ['certificates', 'authority', 'kinds', 'kube', 'controller', 'runtime', 'state', 'events'],
    registries: ['credentials', 'kinds', 'kube', 'outbound', 'controller', 'runtime', 'registry', 'events'],
  },
}
const layerOf = Object.fromEntries(
  Object.entries(modules).flatMap(([layer, names]) => Object.keys(names).map((name) => [name, layer])),
)
const folder = (name) => `^src/${layerOf[name]}/${name}/`
const tests = '\\.test\\.tsx?$|/test(ing)?/|/behaviour/'

/**
 * What may not import what, each as regular expressions of paths from the root; `$1` in `to` is the first group of `from`. An import is
 * forbidden where it is all that a rule says.
 */
export const forbidden = [
  {
    name: 'no-tests-in-the-product',
    from: { path: '^(src|web/src)/', pathNot: tests },
    to: { path: tests },
  },
  {
    name: 'apps-on-top',
    from: { path: '^src/(contract|platform|pipeline|control)/', pathNot: tests },
    to: { path: '^src/apps/' },
  },
  {
    name: 'contract-is-pure',
    from: { path: '^src/contract/', pathNot: tests },
    to: { isCore: true },
  },
  {
    name: 'web-sees-the-contract-only',
    from: { path: '^web/src/' },
    to: { path: '^src/', pathNot: '^src/contract/(model|http)/' },
  },
  {
    name: 'shell-does-not-import-history',
    from: { path: '^web/src/shell/', pathNot: tests },
    to: { path: '^web/src/history/' },
  },
  {
    name: 'pages-do-not-import-pages',
    from: { path: '^web/src/pages/([^/]+)/', pathNot: tests },
    to: { path: '^web/src/pages/', pathNot: '^web/src/pages/$1/' },
  },
  {
    name: 'what-pages-share-knows-no-page',
    from: { path: '^web/src/(components|model|live|history|search)/', pathNot: tests },
    to: { path: '^web/src/pages/' },
  },
  { name: 'no-unresolvable', from: { path: '^src/' }, to: { isMissing: true } },
]
for (const [name, may] of Object.entries(Object.assign({}, ...Object.values(modules)))) {
  const allowed = [name, ...(name === 'model' ? [] : ['model']), ...may].map(folder)
  forbidden.push({
    name: `${name}-imports-along-the-table`,
    from: { path: folder(name), pathNot: tests },
    to: { path: '^src/', pathNot: allowed },
  })
  forbidden.push({
    name: `${name}-is-entered-by-its-index`,
    from: { path: '^(src|web/src)/', pathNot: [folder(name), tests] },
    to: { path: folder(name), pathNot: [`${folder(name)}index\\.ts$`, tests] },
  })
}
// A driver library stands behind one file, or behind one module that is about it.
const drivers = {
  ioredis: '^src/platform/redis/',
  '@marcbachmann/cel-js': '^src/pipeline/extract/cel/',
  re2js: '^src/pipeline/(access|metricsource|extract)/|^src/platform/apiserver/schema/pattern\\.ts$',
  jose: '^src/pipeline/(identity|monitor)/',
  'openid-client': '^src/pipeline/identity/',
  lmdb: '^src/platform/apiserver/',
  '@peculiar/x509': '^src/platform/authority/',
  undici: '^src/platform/kube/|^src/pipeline/registry/',
  '@aws-sdk/client-s3': '^src/pipeline/sinks/s3/',
  '@nats-io/jetstream': '^src/pipeline/(publish|sinks/nats)/',
  '@nats-io/transport-node': '^src/platform/nats/|^src/pipeline/(publish|sinks/nats)/',
  kafkajs: '^src/pipeline/sinks/kafka/',
  '@grpc/grpc-js': '^src/pipeline/(agent|ingest)/',
  '@duckdb/node-api': '^src/pipeline/history/',
  '@bufbuild/protobuf': '^src/contract/wire/|^src/platform/apiserver/protobuf/',
  pg: '^src/pipeline/sinks/postgres/',
  fastify: '^src/pipeline/api/|^src/apps/hub/',
}
for (const [library, home] of Object.entries(drivers)) {
  forbidden.push({
    name: `${library}-has-one-home`,
    from: { path: '^src/', pathNot: [home, tests] },
    to: { path: `^node_modules/${library}(/|$)` },
  })
}
