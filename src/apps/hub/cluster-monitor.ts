import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { MemoryPolicies } from '#access'
import { Looks } from '#attention'
import { MemoryCatalog } from '#catalog'
import { inClusterAccess, loadKubeconfig } from '#kube'
import { FleetError, systemClock } from '#model'
import { MemoryRegistries } from '#registry'
import { countBuild, keepPrivate, Metrics, type Part } from '#runtime'
import { EmbeddedStateStore } from '#state'
import type { ClusterMonitorConfig, ClusterMonitorFlags } from './cluster-monitor-config.ts'
import { type ControlPlane, openControlPlane } from './control-plane.ts'
import { DeclaredOnce } from './declared-once.ts'
import { claimDataFolder } from './format.ts'
import { declareMembers, kubeconfigMembers, type Member } from './members.ts'
import { monitorPart } from './monitor-listener.ts'
import { HUB_NAMESPACE } from './object-names.ts'
import { type HubLogger, part, type RoleOptions, roleLogger, runUntilSignal } from './run.ts'
import { createSingleProcessHub } from './single-process-hub.ts'

/** There is no cluster to monitor: says what it would take. */
export class NoClusterCredentialsError extends FleetError {
  override readonly name = 'NoClusterCredentialsError'
  readonly code = 'no_cluster_credentials'
  readonly retryable = false
}

export interface ClusterMonitorOptions extends RoleOptions<ClusterMonitorConfig> {
  readonly flags: ClusterMonitorFlags
}

/** Cluster Monitor's place in one process: the fleet of one, its interface at the original's paths, its state on disk. */
export async function clusterMonitor({ config, warnings, version, flags }: ClusterMonitorOptions): Promise<void> {
  const { dataDir, collection } = config
  const logger = roleLogger(config.logLevel, 'cluster-monitor', version, warnings)
  if (flags.logService)
    logger.warn(
      { logService: flags.logService },
      'logs are not shipped to -log-service yet: they are on standard error alone',
    )
  mkdirSync(dataDir, { recursive: true, mode: 0o700 })
  await keepPrivate(dataDir)
  const member = await memberOf(config, logger)
  const claimFolder = await claimDataFolder(dataDir, { program: version, logger, hasObjects: true })
  const metrics = new Metrics({ role: 'cluster-monitor' })
  countBuild(metrics, version)
  const controlPlane = part<ControlPlane>('control-plane', () =>
    openControlPlane({ dataDir, port: 0, version, acceptLoss: true, logger, metrics }),
  )
  const declare: Part = {
    name: 'member',
    start: () => {
      const { server } = controlPlane.get()
      return declareMembers(server, [member], { declared: DeclaredOnce.open(server, true), logger })
    },
    stop: () => Promise.resolve(),
  }
  const attention = part('attention', () => Promise.resolve(new Looks({ logger: logger.child({ part: 'attention' }) })))
  const policies = new MemoryPolicies()
  const catalog = new MemoryCatalog()
  const registries = part<MemoryRegistries>('registries-store', () =>
    MemoryRegistries.open({
      directory: join(dataDir, 'registries'),
      clock: systemClock,
      logger: logger.child({ part: 'registries' }),
    }),
  )
  const collect = createSingleProcessHub({
    dataDir,
    logDirectory: () => join(dataDir, 'log'),
    policies: () => policies,
    catalog: () => catalog,
    registries: registries.get,
    namespace: HUB_NAMESPACE,
    members: undefined,
    collection,
    attention: attention.get,
    hub: () => controlPlane.get().client,
    openState: () =>
      EmbeddedStateStore.open({ directory: join(dataDir, 'state'), logger: logger.child({ part: 'state' }) }),
    version,
    ingester: config.ingester,
    publish: config.publish,
    logMaxBytes: 64 * 2 ** 20,
    allowLocalKubeconfig: true,
    metrics,
    logger,
  })
  const monitor = monitorPart({
    config: config.monitor,
    tls: undefined,
    state: collect.state,
    attention: attention.get,
    historyDirectory: join(dataDir, 'monitor-history'),
    metrics,
    logger,
  })
  await runUntilSignal(
    [
      controlPlane,
      { name: 'format', start: claimFolder, stop: () => Promise.resolve() },
      attention,
      registries,
      declare,
      ...collect.parts,
      monitor.part,
    ],
    logger,
    () =>
      void process.stdout.write(`Cluster Monitor's interface is on ${monitor.address()}, over ${member.endpoint}\n`),
  )
}

/** The one cluster, under the name of the default one: of the kubeconfig that is named, else the one this pod runs in. */
async function memberOf(config: ClusterMonitorConfig, logger: HubLogger): Promise<Member> {
  const { kubeconfig, context, dataDir, apiServer, monitor } = config
  const path = kubeconfig ?? (await ownKubeconfig(dataDir, apiServer))
  const chosen = context ?? (await loadKubeconfig([path])).currentContext
  const { members } = await kubeconfigMembers([path], chosen ? [chosen] : [], logger)
  const [member] = members
  if (!member) throw new NoClusterCredentialsError(`${path} names no cluster; choose one with --context`)
  return { ...member, name: monitor.defaultCluster }
}

/** The service account of the pod as a kubeconfig: its token is read again whenever the kubelet renews it. */
async function ownKubeconfig(dataDir: string, apiServer: string | undefined): Promise<string> {
  const own = await inClusterAccess(apiServer === undefined ? {} : { server: apiServer })
  if (own?.access.credentials.kind !== 'tokenFile')
    throw new NoClusterCredentialsError(
      'there is no cluster to monitor: run in a pod with a service account, or name a kubeconfig with --kubeconfig',
    )
  const { server, ca, credentials } = own.access
  const name = 'in-cluster'
  const file = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name, cluster: { server, 'certificate-authority-data': Buffer.from(ca ?? '').toString('base64') } }],
    users: [{ name, user: { tokenFile: credentials.path } }],
    contexts: [{ name, context: { cluster: name, user: name } }],
    'current-context': name,
  }
  const path = join(dataDir, 'in-cluster.kubeconfig')
  writeFileSync(path, JSON.stringify(file), { mode: 0o600 })
  return path
}
