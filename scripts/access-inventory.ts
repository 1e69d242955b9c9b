// Who may reach what: every route, stream, RPC, listener and command with the rule that is declared for it. Whatever has
// none is a fault, and `npm run check` fails on faults.
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import type { Command } from 'commander'
import { MemoryPolicies, openAccess } from '#access'
import { apiServer, type RegisteredRoute } from '#api'
import { InProcessEventBus } from '#events'
import { type RouteContract, routes } from '#http'
import { openIdentity } from '#identity'
import { systemClock } from '#model'
import { Metrics, silentLogger } from '#runtime'
import type { StateReader } from '#state'
import { type Actions, program } from '../src/apps/cli/commands.ts'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')

const meaning: Readonly<Record<RouteContract['access'], string>> = {
  public: 'anybody; tells nothing of the fleet',
  authenticated: 'whoever is signed in, about themselves',
  filtered: 'whoever is signed in, as far as policies show them the fleet',
  administrator: 'administrators',
}

/** By `service/method`. */
const rpcRules: Readonly<Record<string, string>> = {
  'clusterpulse.collector.v1.CollectorService/Connect':
    'agents: the credential sent first (connection token, service account token or client certificate) is verified and belongs to one cluster; what is pushed counts for that cluster alone, and what comes back is its own plan. A stream that asks to join shows a join token or a certificate of before, is told how its request stands, and can become nothing else',
}

/** By the file that opens it. */
const listenerRules: Readonly<Record<string, string>> = {
  'src/pipeline/api/server.ts': 'the routes above, and the files of the page, which hold nothing of the fleet',
  'src/pipeline/api/stream-socket.ts': 'WebSockets of the server above: each is a request of a route above first',
  'src/pipeline/ingest/relay/relay.ts':
    'streams that arrived at another process of the hub: a unix socket in a folder of this user alone; who speaks is proved anew',
  'src/pipeline/ingest/stream/listener.ts': 'the remote procedure calls above',
  'src/platform/apiserver/listen.ts':
    "objects of a single-process hub: bearer tokens of its own kubeconfig (readable by the owner only) under Kubernetes' roles; loopback unless configured",
  'src/platform/simulator/faults.ts':
    'simulated members: passes requests on to their own API, for tests and demonstrations',
  'src/platform/simulator/registry.ts': 'a simulated registry without images, on loopback, for demonstrations',
  'src/platform/webhooks/server.ts':
    'webhooks of a hub on Kubernetes: anybody may ask whether a write may be, and learns what a rule says to it; nothing is written. No role of the program opens it yet',
  'src/pipeline/monitor/http/server.ts':
    "Cluster Monitor's interface: /healthz to anybody; everything else to tokens signed with the shared secret (HS256), each of which stands for generated policies: administrators all, others the namespaces they own, and nodes for administrators alone. Off unless configured; `cluster-monitor` serves nothing else",
  'src/pipeline/inventory/api/server.ts':
    'the inventory of one agent: bearer tokens that its cluster knows (TokenReview), who may get or list kollectinventories or kollecttargets where they ask (SubjectAccessReview); whoever reaches the port where INVENTORY_AUTH_MODE is disabled, on loopback unless configured. Off unless configured',
  'src/apps/hub/probes.ts': 'the manager: /healthz, /readyz and /metrics, without anything of the fleet but counts',
  'src/apps/agent/probes.ts': 'an agent: /healthz, /readyz and /metrics of itself',
}

const owner = 'whoever may read the files and listen on the ports given'
const caller = 'asks a hub over HTTP as whoever calls it: the routes above decide'
const offline = 'works on the files given; asks nobody'

/** By the words of the command. */
const commandRules: Readonly<Record<string, string>> = {
  up: `${owner}; without a sign-in method the page is on loopback only`,
  manager: `${owner}, with the rights of its account on the hub's Kubernetes`,
  api: `${owner}; refuses to start where nobody would have to sign in`,
  'cluster-monitor': `${owner}, with the rights of its account on the cluster; who asks it shows a token`,
  get: caller,
  top: caller,
  agent: `${owner}, with the rights of its account on the member`,
  connect: "needs a kubeconfig of the hub's objects that may create secrets and read where agents reach the hub",
  join: 'needs a join token for one cluster, which the first key spends; until somebody on the hub says yes it is told what is waited for, and nothing else',
  accept: "needs a kubeconfig of the hub's objects that may approve certificate requests and accept managed clusters",
  deny: "needs a kubeconfig of the hub's objects that may approve certificate requests and accept managed clusters",
  revoke: "needs a kubeconfig of the hub's objects that may write secrets and accept managed clusters",
  detach: "needs a kubeconfig of the hub's objects that may delete managed clusters",
  'bootstrap-kubeconfig':
    "needs a kubeconfig of the hub's objects that may write roles and request tokens of service accounts",
  'access explain': `${caller}; with -f: ${offline}`,
  'access test': offline,
  'audit verify': offline,
  'audit show': 'whoever may read the audit file, or the Redis of the hub',
  unseal: 'whoever may read the file and has the key it is sealed with',
  'metricsource eval': `${offline}; with --kubeconfig: asks that cluster as whoever the file says`,
  'metricsource test': offline,
  expression: offline,
  crds: 'prints what everybody may know',
  init: 'reads one object of a cluster with the kubeconfig given, and writes files into a folder that is empty',
  validate: 'works on the files given; asks nobody',
  collect: 'reads clusters with the credentials of the kubeconfig; writes to none',
  'inventory-role': 'reads objects of inventory of one cluster with the credentials of the kubeconfig; writes nothing',
  simulate: `${owner}; serves simulated members only`,
  completion: 'prints what everybody may know',
  complete: 'asks a hub for the names of clusters as whoever calls it: the routes above decide',
  probe: 'asks one address whether it answers',
}

/** All that can be reached, as the code has it. */
export interface Reachable {
  readonly contracts: readonly RouteContract[]
  readonly registered: readonly RegisteredRoute[]
  /** `service/method` */
  readonly rpcs: readonly string[]
  /** files that open a port */
  readonly listeners: readonly string[]
  readonly commands: readonly string[]
}

/** What is reachable without a rule, declared without being there, or served under another rule than declared. */
export function inventoryFaults({ contracts, registered, rpcs, listeners, commands }: Reachable): string[] {
  const faults: string[] = []
  const declared = new Map(contracts.map((route) => [`${route.method} ${route.url}`, route.access]))
  const served = new Map(
    registered.filter(({ method }) => method !== 'HEAD').map((route) => [`${route.method} ${route.url}`, route.access]),
  )
  for (const [route, access] of served) {
    // Documented routes answer with a slash at the end, too.
    const rule = declared.get(route) ?? declared.get(route.replace(/\/$/, ''))
    if (rule === undefined) faults.push(`route ${route} is served and in no contract`)
    else if (rule !== access) faults.push(`route ${route} is served to ${access} and declared for ${rule}`)
  }
  for (const route of declared.keys())
    if (!served.has(route)) faults.push(`route ${route} is in a contract and not served`)
  faults.push(...differences('remote procedure call', rpcs, rpcRules))
  faults.push(...differences('listener', listeners, listenerRules))
  faults.push(...differences('command', commands, commandRules))
  return faults
}

function differences(what: string, found: readonly string[], rules: Readonly<Record<string, string>>): string[] {
  return [
    ...found.filter((name) => !Object.hasOwn(rules, name)).map((name) => `${what} ${name} has no declared rule`),
    ...Object.keys(rules)
      .filter((name) => !found.includes(name))
      .map((name) => `${what} ${name} has a rule and is not there`),
  ]
}

/** Reads the code: builds the server without listening, loads the services, looks for listeners, asks the command line. */
export async function reachable(): Promise<Reachable> {
  return {
    contracts: routes,
    registered: await registeredRoutes(),
    rpcs: await rpcsOf('src/contract/wire/generated'),
    listeners: listenersIn('src'),
    commands: leaves(program(new Proxy({}, { get: () => () => Promise.resolve() }) as Actions, '')),
  }
}

/** The reference page and what is wrong. */
export async function accessInventory(): Promise<{ readonly text: string; readonly faults: readonly string[] }> {
  const found = await reachable()
  return { text: page(found), faults: inventoryFaults(found) }
}

async function registeredRoutes(): Promise<readonly RegisteredRoute[]> {
  const metrics = new Metrics({}, { processMetrics: false })
  const state: StateReader = {
    availability: () => ({ state: 'loading' }),
    version: () => 0,
    clusters: () => [],
    cluster: () => undefined,
    alerts: () => [],
  }
  const common = { clock: systemClock, logger: silentLogger, metrics }
  const ways = { localAdministrator: {} }
  await using identity = await openIdentity({ config: ways, ...common })
  await using events = new InProcessEventBus({ capacity: 1 })
  const administrators = { users: [], groups: [] }
  const access = openAccess({ source: new MemoryPolicies(), semantics: 'strict', administrators, clock: systemClock })
  const config = { host: '127.0.0.1', port: 0, identity: ways }
  await using server = apiServer({ state, events, identity, access, config, version: '', ...common })
  await server.app.ready()
  return server.registered()
}

interface Service {
  readonly kind: 'service'
  readonly typeName: string
  readonly methods: readonly { readonly name: string }[]
}
const isService = (value: unknown): value is Service =>
  typeof value === 'object' && value !== null && (value as Partial<Service>).kind === 'service'

async function rpcsOf(folder: string): Promise<readonly string[]> {
  const modules: object[] = []
  for (const file of filesIn(folder).filter((name) => name.endsWith('_pb.ts')))
    modules.push((await import(pathToFileURL(join(root, file)).href)) as object)
  return modules
    .flatMap((module) => Object.values(module).filter(isService))
    .flatMap(({ typeName, methods }) => methods.map(({ name }) => `${typeName}/${name}`))
}

const listens = /\b(createServer|createSecureServer|createTlsServer|fastify|WebSocketServer)\(|\.listen\(/
const isTest = /\.test\.ts$|\/(test|testing)\//

function listenersIn(folder: string): readonly string[] {
  return filesIn(folder).filter(
    (file) => file.endsWith('.ts') && !isTest.test(file) && listens.test(readFileSync(join(root, file), 'utf8')),
  )
}

const filesIn = (folder: string): string[] =>
  readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(root, join(entry.parentPath, entry.name)))
    .sort()

const leaves = (command: Command): string[] =>
  command.commands.flatMap((one) =>
    one.commands.length > 0 ? leaves(one).map((rest) => `${one.name()} ${rest}`) : [one.name()],
  )

const cell = (text: string): string => text.replaceAll('|', '\\|')
const table = (heads: readonly string[], rows: readonly (readonly string[])[]): string =>
  [
    `| ${heads.join(' | ')} |`,
    `|${'---|'.repeat(heads.length)}`,
    ...rows.map((row) => `| ${row.map(cell).join(' | ')} |`),
  ].join('\n')

function page({ contracts, rpcs, listeners, commands }: Reachable): string {
  const routeRows = contracts
    .toSorted((a, b) => (a.url < b.url ? -1 : a.url > b.url ? 1 : 0))
    .map(({ method, url, access, contentType }) => [
      `\`${method} ${url}\``,
      access,
      contentType === 'text/event-stream' ? 'a stream: what it shows is decided anew when policies change' : '',
    ])
  const rules = (names: readonly string[], from: Readonly<Record<string, string>>) =>
    names.map((name) => [`\`${name}\``, from[name] ?? 'NONE'])
  return `<!-- Generated by \`npm run generate\`; do not edit. -->

# Who may reach what

Every way into ClusterPulse with its rule. A route, stream, remote procedure call, listener or command without one fails the
build, and so does a rule for what is not there.

${table(
  ['Rule of a route', 'For'],
  Object.entries(meaning).map(([rule, text]) => [`\`${rule}\``, text]),
)}

A POST that changes something and that a browser could send by itself (a cookie, ours or a proxy's) needs our own origin and
the header \`X-ClusterPulse-Request: 1\`. For \`auth/logout\` and \`auth/cache/clear\`, which pages of others post as well, the
browser's own word does in place of that header: \`Sec-Fetch-Site: same-origin\`, or our own \`Origin\`. Who looks through another's eyes may only read.

## Routes

${table(['Route', 'Rule', ''], routeRows)}

## Remote procedure calls

${table(['Call', 'Rule'], rules(rpcs, rpcRules))}

## Listeners

${table(['Opened in', 'Serves'], rules(listeners, listenerRules))}

## Commands

${table(['Command', 'Rule'], rules(commands, commandRules))}
`
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { text, faults } = await accessInventory()
  if (process.argv.includes('--print')) console.log(text)
  for (const fault of faults) console.error(fault)
  process.exitCode = faults.length > 0 ? 1 : 0
}
