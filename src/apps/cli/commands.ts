import { Argument, Command, CommanderError, InvalidArgumentError, Option } from 'commander'
import type { ClusterMonitorFlags } from '#hub'
import type { ExplainOptions } from './access.ts'
import type { TestOptions } from './access-test.ts'
import { type CollectFormat, type CollectLevel, collectFormats, collectLevels } from './collect-words.ts'
import type { SourceTestOptions } from './metricsource-test.ts'
import { type SinkWord, sinkWords } from './sink-words.ts'
import { type TopSort, type TopWord, topSorts, topWords } from './top-words.ts'
import {
  type Noun,
  nounOf,
  nounWords,
  type OtherKind,
  type OutputFormat,
  outputFormats,
  type Shell,
  shells,
} from './words.ts'

/** What each command does, handed in by main.ts: every one is loaded only when it is called. */
export interface Actions {
  up(options: UpOptions): Promise<void>
  manager(options: ManagerOptions): Promise<void>
  api(options: ApiOptions): Promise<void>
  clusterMonitor(options: ClusterMonitorFlags): Promise<void>
  get(noun: Noun | OtherKind, names: readonly string[], options: GetOptions): Promise<void>
  top(what: TopWord, options: TopOptions): Promise<void>
  completion(shell: Shell): Promise<void>
  complete(words: readonly string[]): Promise<void>
  agent(options: AgentOptions): Promise<void>
  connect(cluster: string, options: ConnectOptions): Promise<void>
  join(token: string | undefined, options: JoinOptions): Promise<void>
  accept(cluster: string, options: MembershipOptions): Promise<void>
  deny(cluster: string, options: MembershipOptions): Promise<void>
  revoke(cluster: string, options: MembershipOptions): Promise<void>
  detach(cluster: string, options: MembershipOptions): Promise<void>
  bootstrapKubeconfig(options: BootstrapOptions): Promise<void>
  crds(options: { readonly ocm?: true; readonly kollect?: true }): Promise<void>
  simulate(options: SimulateOptions): Promise<void>
  validate(paths: readonly string[], options: ValidateFlags): Promise<void>
  collect(options: CollectFlags): Promise<void>
  inventoryRole(options: InventoryRoleFlags): Promise<void>
  init(folder: string, options: InitFlags): Promise<void>
  probe(url: string): Promise<void>
  explainAccess(options: ExplainOptions): Promise<void>
  testAccess(options: TestOptions): Promise<void>
  verifyAudit(file: string, options: { readonly expect?: string }): Promise<void>
  showAudit(file: string | undefined, options: ShowAuditOptions): Promise<void>
  unseal(file: string, options: { readonly dataDir?: string }): Promise<void>
  evaluateSource(options: EvalSourceOptions): Promise<void>
  testSource(options: SourceTestOptions): Promise<void>
  expression(text: string | undefined, options: ExpressionOptions): Promise<void>
}

export interface ShowAuditOptions {
  readonly member?: string
  readonly user?: string
  readonly last: number
  readonly output: 'table' | 'wide' | 'json'
}

export interface UpOptions {
  readonly kubeconfig?: string
  readonly context?: readonly string[]
  readonly demo?: boolean
  readonly acceptLoss?: boolean
  readonly seed?: number
  readonly dataDir?: string
  readonly host?: string
  readonly port?: string
  readonly controlPlanePort?: string
  readonly ingesterHost?: string
  readonly ingesterPort?: string
  readonly ingesterAdvertise?: string
  readonly readOnlyMembers?: boolean
}
export interface ManagerOptions {
  readonly namespace?: string
  readonly leaderElect?: boolean
  readonly metricsBindAddress?: string
  readonly healthProbeBindAddress?: string
  readonly kubeconfig?: string
  readonly dataDir?: string
}
export interface ApiOptions {
  readonly host?: string
  readonly port?: string
}
export interface GetOptions {
  readonly cluster: readonly string[]
  readonly namespace?: string
  readonly selector?: string
  readonly set?: string
  readonly output: OutputFormat
  readonly server: string
  readonly watch?: boolean
}
export interface TopOptions extends GetOptions {
  readonly sort: TopSort
  readonly limit: number
}
export interface AgentOptions {
  readonly cluster?: string
  readonly ingester?: string
  readonly kubeconfig?: string
  readonly context?: string
  readonly bufferDir?: string
}
export interface ConnectOptions {
  readonly kubeconfig?: string
  readonly namespace?: string
  readonly address?: string
  readonly image?: string
  readonly output: 'command' | 'docker' | 'podman' | 'manifest'
  readonly bufferSize?: string
  readonly openshift?: boolean
  readonly revoke?: boolean
  readonly accept?: boolean
  readonly rights: string
  readonly bearerToken?: boolean
  readonly ttl: number
}
export interface JoinOptions {
  readonly rights?: string
  readonly kubeconfig?: string
  readonly context?: string
  readonly bufferDir?: string
}
export interface MembershipOptions {
  readonly kubeconfig?: string
  readonly namespace?: string
  readonly request?: string
}
export interface BootstrapOptions {
  readonly kubeconfig?: string
  readonly server?: string
  readonly ttl: number
}
export interface EvalSourceOptions {
  readonly file: readonly string[]
  readonly objects?: readonly string[]
  readonly kubeconfig?: string
  readonly context?: string
  readonly limit: number
  readonly at?: string
  readonly output: 'table' | 'json'
}
export interface ExpressionOptions {
  readonly context: string
  readonly at?: string
  readonly functions?: boolean
}
export interface InitFlags {
  readonly kubeconfig?: string
  readonly context?: string
  readonly kind?: string
  readonly namespace?: string
  readonly cluster?: string
  readonly sink?: SinkWord
  readonly name?: string
  readonly endpoint?: string
  readonly yes?: boolean
}
export interface InventoryRoleFlags {
  readonly config?: readonly string[]
  readonly kubeconfig?: string
  readonly context?: string
  readonly account: string
  readonly httpApi?: boolean
  readonly tenant?: readonly string[]
}

export interface CollectFlags {
  readonly config?: readonly string[]
  readonly kubeconfig?: string
  readonly context?: readonly string[]
  readonly namespace?: string
  readonly output: string
  readonly format: CollectFormat
  readonly dryRun?: true
  readonly logLevel: CollectLevel
}
export interface ValidateFlags {
  readonly namespace: string
  readonly semantics: string
  readonly output: 'text' | 'json'
}
export interface SimulateOptions {
  readonly clusters: number
  readonly nodes: number
  readonly pods: number
  readonly seed: number
  readonly kubeconfigOut: string
  readonly port: number
}

const count =
  (min: number, max: number) =>
  (text: string): number => {
    const value = Number(text)
    if (!/^\d+$/.test(text) || value < min || value > max) {
      throw new InvalidArgumentError(`it must be a whole number from ${min} to ${max}.`)
    }
    return value
  }

/** What is none of the nouns, the hub may know. */
const whatToGet = (text: string): Noun | OtherKind => nounOf(text) ?? { kind: text }

const commas = (text: string, all: readonly string[] = []): readonly string[] => [
  ...all,
  ...text
    .split(',')
    .map((item) => item.trim())
    .filter(Boolean),
]

export const DEFAULT_SERVER = 'http://127.0.0.1:8080'

const server = (): Option =>
  new Option('--server <url>', 'address of the hub').env('CLUSTERPULSE_SERVER').default(DEFAULT_SERVER)

const hours = (count: number): number => count * 3_600_000

/** A life of ten minutes to a day, ms. */
const life = (what: string): Option =>
  new Option('--ttl <duration>', `life ${what}, 10m to 24h`).argParser((text: string): number => {
    const [, amount, unit] = /^(\d{1,4})(m|h)$/.exec(text) ?? []
    const ms = Number(amount) * (unit === 'h' ? hours(1) : 60_000)
    if (ms >= 600_000 && ms <= hours(24)) return ms
    throw new InvalidArgumentError('it must be a duration from 10m to 24h, such as 30m or 8h.')
  })

/** What the agent may change on its member. */
const rights = (): Option =>
  new Option(
    '--rights <which>',
    'what the agent may have changed on the cluster: observe (nothing), namespaced:NAMESPACE,…, or full (AGENT_RIGHTS)',
  )

const gather = (value: string, all: readonly string[] = []): readonly string[] => [...all, value]

/** Where 1 says that a part was done: a mistake in the flags ends with 2. */
const asNothingDone = ({ exitCode, code, message }: CommanderError): never => {
  throw new CommanderError(exitCode === 0 ? 0 : 2, code, message)
}

/** The command line. Pure: parsing it is main.ts's affair. */
export function program(actions: Actions, version: string): Command {
  const cli = new Command('clusterpulse')
    .description('One fleet platform for Kubernetes: many clusters, one hub, one truthful picture.')
    .version(version, '-V, --version', 'print the version')
    .showHelpAfterError('(clusterpulse --help tells more)')
    .addHelpText(
      'after',
      '\nSettings come from flags, then from environment variables: see docs/reference/settings.md. Commands that ask a hub show the\nbearer token in CLUSTERPULSE_TOKEN, where the hub asks who calls.',
    )

  cli
    .command('up')
    .description(
      'the whole hub in one process with embedded stores: collects, serves the page, the API and a Kubernetes-compatible API for its objects',
    )
    .option(
      '--kubeconfig <file>',
      'read the clusters of this kubeconfig (default: $KUBECONFIG, then ~/.kube/config; without one the clusters of the data folder, and in a new one the simulated fleet)',
    )
    .option('--context <names...>', 'only these contexts')
    .option('--demo', 'a simulated fleet of six clusters that lives, whatever kubeconfig there is')
    .addOption(new Option('--seed <n>', 'seed of the simulated fleet').argParser(count(0, 2 ** 31)))
    .option('--data-dir <folder>', 'folder of stores, log and kubeconfig (DATA_DIR; ./data)')
    .option(
      '--accept-loss',
      'start although stored objects were lost (access policies may be missing or old among what is left)',
    )
    .option('--host <address>', 'address of the page and the API (API_HOST; 127.0.0.1)')
    .option('--port <n>', 'port of the page and the API (API_PORT; 8080)')
    .option('--control-plane-port <n>', 'port of the embedded Kubernetes API (CONTROL_PLANE_PORT; 8443)')
    .option('--ingester-host <address>', 'address agents are received on (INGESTER_HOST; 127.0.0.1)')
    .option('--ingester-port <n>', 'port agents are received on (INGESTER_PORT; 9443)')
    .option('--ingester-advertise <host:port>', 'where agents reach this hub from elsewhere (INGESTER_ADVERTISE)')
    .option(
      '--read-only-members',
      'change nothing on members, such as their agents: for the drill of a backup (READ_ONLY_MEMBERS)',
    )
    .action((options: UpOptions) => actions.up(options))

  cli
    .command('manager')
    .description(
      'the collecting half of a hub on Kubernetes: reads ClusterConnections and their clusters, writes Redis and statuses',
    )
    .option('--namespace <name>', 'namespace whose objects are watched (NAMESPACE; clusterpulse)')
    .option('--leader-elect', 'work only while holding the lease (LEADER_ELECT)')
    .option('--metrics-bind-address <address>', 'address of /metrics (METRICS_BIND_ADDRESS; :8082, in a pod :8080)')
    .option(
      '--health-probe-bind-address <address>',
      'address of /healthz and /readyz (HEALTH_PROBE_BIND_ADDRESS; :8081)',
    )
    .option('--kubeconfig <file>', 'of the hub cluster (KUBECONFIG; default: the in-cluster account)')
    .option('--data-dir <folder>', "folder of the hub's log (DATA_DIR; ./data/manager)")
    .action((options: ManagerOptions) => actions.manager(options))

  cli
    .command('api')
    .description('the answering half of a hub on Kubernetes: mirrors Redis, serves the page and the API')
    .option('--host <address>', 'address to serve on (API_HOST; 0.0.0.0, which needs a trusted proxy)')
    .option('--port <n>', 'port to serve on (API_PORT; 8080)')
    .action((options: ApiOptions) => actions.api(options))

  cli
    .command('cluster-monitor')
    .description(
      "Cluster Monitor's interface over one cluster, in one process: a drop-in with the flags of the original",
    )
    .option('--addr <address>', 'address to serve on (default: :8080)')
    .option('--refresh <duration>', 'time between two reads of what nodes and pods use (default: 5s)')
    .option('--api-server <url>', "address of the cluster's API, with the credentials of the pod")
    .option('--log-service <address>', 'taken, and said once that logs are not shipped yet')
    .option('--log-source <name>', 'name of the source of shipped logs (default: cluster-monitor)')
    .option('--nats <url>', 'NATS server (default: nats://nats:4222)')
    .option('--kubeconfig <file>', 'of the cluster, instead of the account of the pod')
    .option('--context <name>', 'context of the kubeconfig (default: its current one)')
    .addHelpText(
      'after',
      '\nThe first six flags may be written with one dash, as the original has them: -addr :8080. The secret of tokens comes from' +
        '\nJWT_SECRET; further settings begin with MONITOR_.',
    )
    .action((options: ClusterMonitorFlags) => actions.clusterMonitor(options))

  cli
    .command('get')
    .description('print what a running hub knows')
    .argument(
      '<what>',
      `${nounWords.slice(0, nounWords.length / 2).join(', ')}, or a type that a MetricSource declares; the singular and short names will do`,
      whatToGet,
    )
    .argument('[names...]', 'only those of these names')
    .option('-c, --cluster <name>', 'only this cluster; may be given again', gather, [])
    .option('--set <name>', 'only clusters in this set (ManagedClusterSet)')
    .option('-n, --namespace <name>', 'only what stands in this namespace')
    .option('-l, --selector <labels>', 'only what has these labels: app=web,env in (prod,stage),!beta')
    .addOption(new Option('-o, --output <format>', 'how to print').choices([...outputFormats]).default('table'))
    .option('-w, --watch', 'go on, and print each row again when it changes')
    .addOption(server())
    .addHelpText(
      'after',
      '\nWorst first. AS-OF is the age of what the hub knows, AGE that of the thing itself. JSON and YAML name fields in snake_case and' +
        '\ntimes in RFC 3339. Exit status: 0; 1 on a mistake or a refusal; 3 where no hub answers.' +
        '\n\nWhere several processes of the hub share the fleet, the one that owns a cluster, its stream, its log and its state,' +
        '\nstands in the column OWNER of `get clusters -o wide` and in the column PROCESS of `get agents`.',
    )
    .action((what: Noun | OtherKind, names: readonly string[], options: GetOptions) =>
      actions.get(what, names, options),
    )

  cli
    .command('top')
    .description('print what uses most: nodes or pods of one cluster, or of all')
    .addArgument(new Argument('<what>', 'of what').choices([...topWords]))
    .option('-c, --cluster <name>', 'only this cluster; may be given again', gather, [])
    .option('--set <name>', 'only clusters in this set (ManagedClusterSet)')
    .option('-n, --namespace <name>', 'only pods of this namespace')
    .option('-l, --selector <labels>', 'only what has these labels: app=web,env in (prod,stage),!beta')
    .addOption(new Option('--sort <by>', 'by what').choices([...topSorts]).default('cpu'))
    .addOption(new Option('--limit <n>', 'how many; 0 prints all').argParser(count(0, 1_000_000)).default(100))
    .addOption(new Option('-o, --output <format>', 'how to print').choices([...outputFormats]).default('table'))
    .option('-w, --watch', 'go on, and print each row again when it changes')
    .addOption(server())
    .addHelpText(
      'after',
      '\nAS-OF is the age of the measurements. They are read every 5 seconds while somebody looks (USAGE_REFRESH), and else with the' +
        '\nrounds of the cluster. `-` stands for what is not known: disks are known where kubelets are asked (KUBELET_STATS).' +
        '\nExit status: 0; 1 on a mistake or a refusal; 3 where no hub answers.',
    )
    .action((what: TopWord, options: TopOptions) => actions.top(what, options))

  cli
    .command('completion')
    .description(
      'print what makes the Tab key know commands, options, and the clusters of the hub: source <(clusterpulse completion bash)',
    )
    .addArgument(new Argument('<shell>', 'of which shell').choices([...shells]))
    .action((shell: Shell) => actions.completion(shell))

  cli
    .command('agent')
    .description(
      'collects beside a cluster and pushes to a hub; keeps everything on disk until the hub has it on disk. Where the cluster has the kinds of inventory (kollect.dev) it collects that too, with a hub or without',
    )
    .option('--cluster <name>', 'name of the cluster on the hub, and in sinks (CLUSTER_NAME)')
    .option(
      '--ingester <address>',
      'host:port of the hub (INGESTER_ADDRESS); without one, and without a token, inventory alone',
    )
    .option('--kubeconfig <file>', 'of the cluster (KUBECONFIG; default: the in-cluster account)')
    .option('--context <name>', 'context of the kubeconfig (default: its current one)')
    .option('--buffer-dir <folder>', 'where batches wait for the hub (BUFFER_DIR; ./data/agent)')
    .addHelpText(
      'after',
      '\nThe token comes from COLLECTOR_TOKEN or COLLECTOR_TOKEN_FILE; `clusterpulse connect` prints all of it.',
    )
    .action((options: AgentOptions) => actions.agent(options))

  cli
    .command('connect')
    .description(
      'make a join token for a cluster that the hub need not reach, and print the one command or manifest to run there: it asks with a key of its own to become a member, and is one when somebody accepts it',
    )
    .argument('<cluster>', 'name the cluster has or gets on the hub')
    .option(
      '--kubeconfig <file>',
      "of the hub's objects (default: ./data/kubeconfig of `clusterpulse up`, then KUBECONFIG)",
    )
    .option('--namespace <name>', "the hub's namespace (NAMESPACE; clusterpulse)")
    .option(
      '--address <host:port>',
      'where the agent reaches the hub; several of one hub with commas (default: what the hub says of itself)',
    )
    .option('--image <image>', 'image with its tag, for a container or the manifest (default: what the hub deploys)')
    .option(
      '--buffer-size <size>',
      "volume the manifest claims for the agent's buffer, 0 for none (default: as the hub deploys)",
    )
    .option('--openshift', 'the manifest is for OpenShift, which assigns users and groups itself')
    .addOption(
      new Option(
        '-o, --output <what>',
        'a shell command (with node and this package), one that runs the image in a container, or YAML for kubectl apply',
      )
        .choices(['command', 'docker', 'podman', 'manifest'])
        .default('command'),
    )
    .option('--accept', 'accept it now: the first key that shows the token is a member without a second look')
    .addOption(rights().default('observe'))
    .addOption(life('of the join token').default(hours(1), '1h'))
    .option(
      '--bearer-token',
      'print a bearer token instead, with which an agent is monitored and no member: for a hub without TLS, and agents of before',
    )
    .option('--revoke', 'revoke every bearer token of this cluster instead: their streams end at once')
    .action((cluster: string, options: ConnectOptions) => actions.connect(cluster, options))

  cli
    .command('join')
    .description(
      'become a member of a hub and its agent from then on: asks with a key that stays here, waits until somebody accepts it there, and delivers; begun again it goes on where it was',
    )
    .argument('[token]', 'as `connect NAME` printed it on the hub (JOIN_TOKEN); not needed once it was shown')
    .option('--kubeconfig <file>', 'the cluster to read (KUBECONFIG; ~/.kube/config; in a pod its own cluster)')
    .option('--context <name>', 'context of the kubeconfig (KUBECONTEXT)')
    .option('--buffer-dir <folder>', 'folder of the buffer, the key and the certificate (BUFFER_DIR; ./data/agent)')
    .addOption(rights())
    .action((token: string | undefined, options: JoinOptions) => actions.join(token, options))

  const member = (name: string, description: string) =>
    cli
      .command(name)
      .description(description)
      .argument('<cluster>', 'name of the cluster')
      .option('--kubeconfig <file>', "of the hub's objects (default: that of a hub in DATA_DIR, then KUBECONFIG)")
      .option('-n, --namespace <name>', "the hub's namespace (NAMESPACE; clusterpulse)")
      .addHelpText(
        'after',
        '\ndeny: it pauses, and `accept` brings it back. revoke: its keys count no more, as after a theft; it joins anew with a new token.' +
          '\ndetach: it leaves; what the hub brought there is cleaned up in order first. None of them takes the agent off the cluster.',
      )
  const several =
    'of several machines that ask to be this cluster, the one that is meant: the name of its request, or the key it says'
  member('accept', 'take a cluster as a member: approves its certificate request and sets hubAcceptsClient')
    .option('--request <name>', several)
    .action((cluster: string, options: MembershipOptions) => actions.accept(cluster, options))
  member('deny', 'turn down what a cluster asks, and end its membership until it is accepted again')
    .option('--request <name>', `${several}; the cluster's membership stays as it is`)
    .action((cluster: string, options: MembershipOptions) => actions.deny(cluster, options))
  member(
    'revoke',
    'end a membership for good: its stream ends, no certificate or token of it counts any more, also where it is accepted anew',
  ).action((cluster: string, options: MembershipOptions) => actions.revoke(cluster, options))
  member(
    'detach',
    'take a member off the hub, as `kubectl delete managedcluster` does: its add-ons and works are cleaned up in order, then it loses its rights; it may join anew, with a new token',
  ).action((cluster: string, options: MembershipOptions) => actions.detach(cluster, options))

  cli
    .command('bootstrap-kubeconfig')
    .description(
      "print the kubeconfig with which OCM's own registration agent asks to join; it accepts nobody and changes no member",
    )
    .option('--kubeconfig <file>', "of the hub's objects (default: that of a hub in DATA_DIR, then KUBECONFIG)")
    .option('--server <url>', "address of the hub's API as members reach it (default: as in the kubeconfig)")
    .addOption(life('of its token').default(hours(1), '1h'))
    .action((options: BootstrapOptions) => actions.bootstrapKubeconfig(options))

  const semantics = () =>
    new Option('--semantics <which>', 'strict, or as the original answered (RBAC_SEMANTICS)')
      .choices(['strict', 'original'])
      .env('RBAC_SEMANTICS')
      .default('strict')
  const access = cli.command('access').description('who may see what: explain a decision, test policies')
  access
    .command('explain')
    .description(
      'why somebody sees something, or does not: the deciding policy and rule, what was passed over and why. Asks the hub, or works from files alone (-f)',
    )
    .option(
      '--as <user>',
      'name of the user (default: whoever asks the hub); system:serviceaccount:<namespace>:<name> too',
    )
    .option('--email <address>', 'verified email address of the user')
    .option('--groups <names>', 'comma list; may be given again', commas, [])
    .option('-c, --cluster <name>', 'the cluster; without it every cluster')
    .option('--labels <pairs>', 'labels of the cluster, key=value, where no file tells them', commas, [])
    .addOption(new Option('--action <action>', 'what is asked for').choices(['view', 'view_metrics']).default('view'))
    .option('--type <type>', 'nodes, operators, namespaces, pods, alerts, events, or what a MetricSource collects')
    .option('--name <name>', 'one item of that type')
    .option('--namespace <name>', 'of the item')
    .option('-f, --file <file>', 'policies (and ClusterConnections) in YAML or JSON, - for standard input', gather, [])
    .option('--at <time>', 'as if it were then, such as 2026-12-24T18:00:00Z (with -f)')
    .addOption(semantics())
    .addOption(new Option('-o, --output <format>', 'how to print').choices(['text', 'json']).default('text'))
    .addOption(server())
    .action(({ file, ...options }: Omit<ExplainOptions, 'files'> & { file: readonly string[] }) =>
      actions.explainAccess({ ...options, files: file }),
    )
  access
    .command('test')
    .description('hold policies against a file of expectations, for a pull request; exit status 1 where one is not met')
    .requiredOption('-f, --file <file>', 'policies (and ClusterConnections) in YAML or JSON', gather)
    .requiredOption('--cases <file>', 'who is expected to see what; the guide shows the form')
    .addOption(semantics())
    .addOption(new Option('-o, --output <format>', 'how to print').choices(['text', 'json']).default('text'))
    .action(({ file, ...options }: Omit<TestOptions, 'files'> & { file: readonly string[] }) =>
      actions.testAccess({ ...options, files: file }),
    )

  const audit = cli.command('audit').description('the trail of who asked for what')
  audit
    .command('verify')
    .description(
      'follow the hash chain of an audit file and its older parts to its signed head; exit status 1 where it breaks or nothing shows its end',
    )
    .argument('<file>', 'the file being written (AUDIT_FILE); with AUDIT_KEY set where the chain is keyed')
    .option(
      '--expect <seq:hash>',
      'a line noted elsewhere, as an earlier verify printed it: it must be there, unchanged',
    )
    .action((file: string, options: { expect?: string }) => actions.verifyAudit(file, options))

  audit
    .command('show')
    .description('who did what, oldest first: of the audit file, or of the Redis stream that api and manager write')
    .argument('[file]', 'the file being written; default: AUDIT_FILE, else the stream AUDIT_REDIS_STREAM')
    .option('--member <name>', 'what is about this member')
    .option('--user <name>', 'what this user did, or was refused')
    .addOption(new Option('--last <count>', 'so many, the newest').argParser(count(1, 100_000)).default(50))
    .addOption(new Option('-o, --output <format>', 'how to print').choices(['table', 'wide', 'json']).default('table'))
    .action((file: string | undefined, options: ShowAuditOptions) => actions.showAudit(file, options))

  cli
    .command('unseal')
    .description(
      'print a file of a data folder that was put aside and sealed (*.sealed), as it was; with the keys of the hub: ENCRYPTION_KEY, or that of the folder',
    )
    .argument('<file>', 'the file')
    .option('--data-dir <folder>', 'the folder whose key opens it (DATA_DIR; ./data)')
    .action((file: string, options: { dataDir?: string }) => actions.unseal(file, options))

  const source = cli.command('metricsource').description('declare what else to collect: try MetricSources, test them')
  source
    .command('eval')
    .description(
      'compile MetricSources, name each mistake with its place, and show the rows and aggregations they give of objects in files (--objects) or of a cluster (--kubeconfig); nothing is stored',
    )
    .requiredOption('-f, --file <file>', 'MetricSources in YAML or JSON, - for standard input', gather)
    .option(
      '--objects <file>',
      'objects in YAML or JSON, such as `kubectl get pvc -A -o yaml` prints; may be given again',
      gather,
    )
    .option('--kubeconfig <file>', 'read this cluster instead, once')
    .option('--context <name>', 'context of the kubeconfig (default: its current one)')
    .addOption(new Option('--limit <n>', 'rows printed at most').argParser(count(0, 1_000_000)).default(100))
    .option('--at <time>', 'as if it were then, for now() and age(), such as 2026-12-24T18:00:00Z')
    .addOption(new Option('-o, --output <format>', 'how to print').choices(['table', 'json']).default('table'))
    .action((options: EvalSourceOptions) => actions.evaluateSource(options))
  source
    .command('test')
    .description(
      'hold MetricSources against a file of objects and expected rows and aggregations, for a pull request; exit status 1 where one is not met',
    )
    .requiredOption('-f, --file <file>', 'MetricSources in YAML or JSON', gather)
    .requiredOption('--cases <file>', 'objects and what is expected of them; the guide shows the form')
    .addOption(new Option('-o, --output <format>', 'how to print').choices(['text', 'json']).default('text'))
    .action(({ file, ...options }: Omit<SourceTestOptions, 'files'> & { file: readonly string[] }) =>
      actions.testSource({ ...options, files: file }),
    )

  cli
    .command('expression')
    .description('evaluate one expression of the language of computed fields')
    .argument('[text]', "such as 'round((used / capacity) * 100, 2)'")
    .option('--context <values>', 'names and their values as JSON or YAML, or @file', '{}')
    .option('--at <time>', 'as if it were then, for now() and age()')
    .option('--functions', 'list the functions instead')
    .action((text: string | undefined, options: ExpressionOptions) => actions.expression(text, options))

  cli
    .command('crds')
    .description('print the CustomResourceDefinitions: clusterpulse crds | kubectl apply -f -')
    .option('--ocm', 'those of Open Cluster Management, for a hub on Kubernetes that does not run it')
    .option('--kollect', 'those of inventory (kollect.dev), for any cluster')
    .action((options) => actions.crds(options))

  cli
    .command('init')
    .exitOverride(asNothingDone)
    .description(
      'write a starting set of manifests of inventory (kollect.dev): asks which kind, of which namespace, and where its rows shall go, and looks into the cluster for values worth taking',
    )
    .argument('[folder]', 'where to; it must be empty, or not there', './collect-config')
    .option('--kubeconfig <file>', 'of the cluster (default: $KUBECONFIG, then ~/.kube/config, where there is one)')
    .option('--context <name>', 'context of the kubeconfig (default: its current one)')
    .option('--kind <kind>', 'kind of the objects: Deployment, or Certificate.v1.cert-manager.io')
    .option('-n, --namespace <name>', 'namespace of the objects, and of the manifests')
    .option(
      '--cluster <name>',
      'name in the sink, whichever agent writes (default: none, so that the manifests fit every cluster: each agent writes under its CLUSTER_NAME)',
    )
    .addOption(new Option('--sink <type>', 'where the rows go').choices([...sinkWords]))
    .option(
      '--name <name>',
      'of the sink; its Secret and the inventory are called by it (default: the type of the sink)',
    )
    .option('--endpoint <address>', 'address of the sink; of postgres the connection string')
    .option('-y, --yes', 'ask nothing: what no option says is as usual')
    .addHelpText('after', '\nExit status: 0; 2 where nothing was written.')
    .action((folder: string, options: InitFlags) => actions.init(folder, options))

  cli
    .command('validate')
    .exitOverride(asNothingDone)
    .description(
      'judge manifests of inventory (kollect.dev) as admission does, without a cluster: every fault with its file, document and path',
    )
    .argument('<paths...>', 'files, folders with all that is in them, - for standard input')
    .option('-n, --namespace <name>', 'namespace of objects that name none', 'default')
    .addOption(
      new Option('--semantics <which>', 'strict, or as Kollect took them (KOLLECT_SEMANTICS)')
        .choices(['strict', 'original'])
        .env('KOLLECT_SEMANTICS')
        .default('strict'),
    )
    .addOption(new Option('-o, --output <format>', 'how to print').choices(['text', 'json']).default('text'))
    .addHelpText(
      'after',
      '\nExit status: 0 where all of it can be used; 1 where an object names another that is not among the manifests, as far as some of\nthat kind are; 2 where something cannot be used, or there is nothing to judge.',
    )
    .action((paths: readonly string[], options: ValidateFlags) => actions.validate(paths, options))

  cli
    .command('collect')
    .exitOverride(asNothingDone)
    .description(
      'collect inventory (kollect.dev) once, from one cluster or many, into a file: rows as the profiles and targets say that a folder or each cluster itself holds',
    )
    .option(
      '--config <path>',
      'file or folder of profiles and targets (default: those of each cluster); repeat for several',
      gather,
    )
    .option('--kubeconfig <file>', 'of the clusters (default: $KUBECONFIG, then ~/.kube/config)')
    .option(
      '--context <name>',
      "context, or a glob such as 'prod-*' (default: the current one); repeat for several",
      gather,
    )
    .option('-n, --namespace <name>', 'only this namespace; with --config also that of manifests that name none')
    .option('-o, --output <path>', 'file, folder with a file for each cluster, or - for standard output', '-')
    .addOption(
      new Option('--format <which>', 'rows one by one, or an envelope for each cluster (json)')
        .choices([...collectFormats])
        .default('ndjson'),
    )
    .option('--dry-run', 'collect, and write nothing')
    .addOption(
      new Option('--log-level <which>', 'what is told on standard error').choices([...collectLevels]).default('info'),
    )
    .addHelpText(
      'after',
      '\nExit status: 0 where all was collected; 1 where some targets or objects failed and others did not; 2 where the manifests cannot\nbe used, a cluster was not reached, or nothing was collected in it. Of several clusters the worst counts.',
    )
    .action((options: CollectFlags) => actions.collect(options))

  cli
    .command('inventory-role')
    .description(
      'print the least that the agent of a cluster must be allowed for the targets and sinks of inventory there, as roles and bindings: clusterpulse inventory-role | kubectl apply -f -',
    )
    .option(
      '--config <path>',
      'file or folder of profiles, targets and sinks (default: those of the cluster); repeat for several',
      gather,
    )
    .option('--kubeconfig <file>', 'of the cluster (default: $KUBECONFIG, then ~/.kube/config)')
    .option('--context <name>', 'context of the kubeconfig (default: its current one)')
    .option('--account <namespace/name>', 'account of the agent', 'clusterpulse-agent/clusterpulse-agent')
    .option('--http-api', 'the agent serves its inventory (INVENTORY_HTTP_ENABLED), to whom the cluster lets')
    .option(
      '--tenant <namespace>',
      'the agent runs in tenant mode (TENANT_MODE) for this namespace: all it needs, and only there; repeat for several',
      gather,
    )
    .action((options: InventoryRoleFlags) => actions.inventoryRole(options))

  cli
    .command('simulate')
    .description('serve simulated member clusters until stopped, and write a kubeconfig for them')
    .addOption(new Option('--clusters <n>', 'how many clusters').argParser(count(1, 5000)).default(3))
    .addOption(new Option('--nodes <n>', 'nodes of each').argParser(count(1, 10_000)).default(5))
    .addOption(new Option('--pods <n>', 'pods of each').argParser(count(0, 200_000)).default(80))
    .addOption(new Option('--seed <n>', 'equal seeds make equal clusters').argParser(count(0, 2 ** 31)).default(1))
    .requiredOption('--kubeconfig-out <file>', 'where to write the kubeconfig')
    .addOption(new Option('--port <n>', 'port to serve on; 0 takes a free one').argParser(count(0, 65535)).default(0))
    .action((options: SimulateOptions) => actions.simulate(options))

  cli
    .command('complete', { hidden: true })
    .description('what may stand where the cursor is, one a line (for the scripts of `completion`)')
    .argument('[words...]')
    .action((words: readonly string[]) => actions.complete(words))

  cli
    .command('probe', { hidden: true })
    .description('ask an address once: exit status 0 where it answers with success (for containers without a shell)')
    .argument('<url>')
    .action((url: string) => actions.probe(url))

  return cli
}

/** The reference page of the commands, from their own help. */
export function commandReference(): string {
  const none = () => Promise.resolve()
  const cli = program(
    {
      up: none,
      manager: none,
      api: none,
      clusterMonitor: none,
      get: none,
      top: none,
      completion: none,
      complete: none,
      agent: none,
      connect: none,
      join: none,
      accept: none,
      deny: none,
      revoke: none,
      detach: none,
      bootstrapKubeconfig: none,
      crds: none,
      simulate: none,
      validate: none,
      collect: none,
      inventoryRole: none,
      init: none,
      probe: none,
      explainAccess: none,
      testAccess: none,
      verifyAudit: none,
      showAudit: none,
      unseal: none,
      evaluateSource: none,
      testSource: none,
      expression: none,
    },
    '',
  )
  const pages = [cli, ...cli.commands.flatMap((command) => [command, ...command.commands])].filter(
    (command) => command.name() !== 'probe' && command.name() !== 'complete',
  )
  const titleOf = (command: Command): string =>
    command.parent ? `${titleOf(command.parent)} ${command.name()}` : command.name()
  const help = (command: Command) => {
    command.configureHelp({ helpWidth: 110 })
    return `## ${titleOf(command)}\n\n\`\`\`text\n${command.helpInformation().trimEnd()}\n\`\`\`\n`
  }
  return `# Commands\n\n${pages.map(help).join('\n')}`
}
