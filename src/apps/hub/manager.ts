import { hostname } from 'node:os'
import { RedisPolicies } from '#access'
import type { Looks } from '#attention'
import { type AuditTrail, openAudit } from '#audit'
import { RedisCatalog } from '#catalog'
import { LeaderElection } from '#controller'
import { createKubeClient, type KubeClient } from '#kube'
import { systemClock } from '#model'
import { isChild } from '#processes'
import { RedisRegistries } from '#registry'
import { countBuild, keepPrivate, Metrics, type Part, silentLogger } from '#runtime'
import { RedisStateStore } from '#state'
import type { ManagerConfig } from './config.ts'
import { type Division, dividedAmong } from './division.ts'
import { claimDataFolder, heldFolder, redisFormatPart } from './format.ts'
import { historyOf } from './history.ts'
import { hubAccess } from './hub-access.ts'
import { type ControllerName, createHubControllers, type HubControllersOptions } from './hub-controllers.ts'
import { joinsOnKubernetes, keptIn, publishedAuthorities, recordedBy } from './joins.ts'
import { sayJudged } from './judged-members.ts'
import { reviewsOfMembers } from './member-audit.ts'
import { signOnKubernetes } from './member-authority.ts'
import { memberMetrics, refusalsCounted } from './member-metrics.ts'
import { ownerProcess } from './owner-process.ts'
import { createOwnerSupervisor } from './owner-supervisor.ts'
import { probesPart } from './probes.ts'
import { redisConnection } from './redis.ts'
import { HUB_CLIENT, type HubLogger, part, type RoleOptions, roleLogger, runUntilSignal } from './run.ts'
import { sharedLooks } from './shared-looks.ts'
import { createSingleProcessHub } from './single-process-hub.ts'
import { managerTurn } from './turn.ts'
import { hubWebhooks } from './webhooks.ts'

const LEASES = {
  connections: 'cluster-controller.clusterpulse.io',
  access: 'policy-controller.clusterpulse.io',
  registries: 'registry-controller.clusterpulse.io',
} as const satisfies Record<ControllerName, string>

/** What runs the fleet, in this process or in several. */
interface Fleet {
  readonly parts: readonly Part[]
  /** by name: why it is not ready */
  readonly readiness: Readonly<Record<string, () => string | undefined>>
  metricsText(): Promise<string>
}

interface ControlledFleet {
  readonly config: ManagerConfig
  readonly version: string
  readonly division: ReturnType<typeof divisionOf>
  readonly common: HubControllersOptions
  readonly trail: () => AuditTrail
  readonly logger: HubLogger
  readonly metrics: Metrics
}

/** The collecting half of a hub on Kubernetes: reads ClusterConnections and their clusters, writes Redis and statuses. */
export async function manager({ config, warnings, version }: RoleOptions<ManagerConfig>): Promise<void> {
  if (isChild()) return ownerProcess({ config, warnings, version })
  const logger = roleLogger(config.logLevel, 'manager', version, warnings)
  await keepPrivate(config.dataDir)
  // Refused before anything else; looked at again, and written, by who leads, as another one may have led meanwhile.
  const form = { program: version, hasObjects: false }
  await claimDataFolder(config.dataDir, { ...form, logger: silentLogger })
  const claimFolder = async () => (await claimDataFolder(config.dataDir, { ...form, logger }))()
  const metrics = new Metrics({ role: 'manager' })
  countBuild(metrics, version)
  const access = await hubAccess(config.kubeconfig)
  const { namespace } = config

  const hub = part<KubeClient>('hub', () => Promise.resolve(createKubeClient(access, HUB_CLIENT)))
  const identity = `${hostname()}_${process.pid}`
  const opened = (name: string) => ({
    connection: redisConnection(config.redis),
    clock: systemClock,
    logger: logger.child({ part: name }),
  })
  const policies = part<RedisPolicies>('policies', () => RedisPolicies.open(opened('policies')))
  const catalog = part<RedisCatalog>('catalog', () => RedisCatalog.open(opened('catalog')))
  const registries = part<RedisRegistries>('registries-store', () => RedisRegistries.open(opened('registries')))
  const audit = part<AuditTrail>('audit', () =>
    openAudit({
      // Nothing else here is written down: a hub without members need not be able to.
      config: config.members || config.webhooks ? config.audit : { level: config.audit.level },
      redis: redisConnection(config.redis),
      logger: logger.child({ part: 'audit' }),
      metrics,
    }),
  )
  const published = publishedAuthorities(hub.get, namespace, logger)
  const common: HubControllersOptions = {
    namespace,
    hub: hub.get,
    policies: policies.get,
    catalog: catalog.get,
    registries: registries.get,
    collection: config.collection,
    members: config.members && { ...config.members, authorities: published.authorities },
    trail: audit.get,
    ...(config.members &&
      config.ingester.enabled && {
        signing: (signal: AbortSignal) =>
          signOnKubernetes(
            { config: config.memberCa, hub: hub.get, namespace, trail: audit.get, metrics, logger },
            signal,
          ),
      }),
    judging: (signal) => sayJudged(redisConnection(config.redis), logger, signal),
    ...(config.leaderElection && {
      election: (name: ControllerName) =>
        new LeaderElection({ kube: hub.get(), namespace, name: LEASES[name], identity, logger }),
    }),
    metrics,
    logger,
  }
  const answers =
    config.webhooks &&
    hubWebhooks({
      ...{ config: config.webhooks, hub: hub.get, namespace, logger },
      onWrite: reviewsOfMembers(audit.get),
      onRefused: refusalsCounted(metrics),
    })
  const division = divisionOf(config, version, claimFolder)
  const governed: ControlledFleet = { config, version, division, common, trail: audit.get, logger, metrics }
  const fleet = config.processes > 1 ? inSeveral(governed) : inOne(governed)
  const turn = managerTurn({
    connection: redisConnection(config.redis),
    dataDir: config.dataDir,
    logger,
    onLost(reason) {
      logger.error({}, `${reason}; this one ends`)
      process.kill(process.pid, 'SIGTERM')
    },
  })
  const probes = probesPart({
    metricsAddress: config.metricsAddress,
    healthAddress: config.healthAddress,
    page: fleet.metricsText,
    metrics,
    logger,
    // Who waits is as ready as a candidate without the lease is.
    readiness: Object.fromEntries(
      Object.entries({ ...fleet.readiness, ...(answers && { webhooks: answers.fault }) }).map(([name, check]) => [
        name,
        () => (turn.waitsFor() ? undefined : check()),
      ]),
    ),
    version,
  })
  const format = redisFormatPart(redisConnection(config.redis), version, logger)
  const before = config.leaderElection
    ? [probes, format]
    : [probes, part('folder', (signal) => heldFolder(config.dataDir, signal)), format, turn.part]
  await runUntilSignal(
    [
      ...before,
      audit,
      hub,
      ...(config.members ? [published] : []),
      ...(answers ? [answers.part] : []),
      policies,
      catalog,
      registries,
      ...fleet.parts,
    ],
    logger,
    () => {
      logger.info({ hub: access.server, namespace, identity, processes: config.processes }, 'manager runs')
    },
  )
}

/** This process owns every cluster. */
function inOne({ config, version, division: wanted, common, trail, logger, metrics }: ControlledFleet): Fleet {
  let division: Division | undefined
  const divided: Part = {
    name: 'division',
    async start(signal) {
      division = await dividedAmong({
        ...wanted,
        logger: logger.child({ part: 'division' }),
        signal,
      })
    },
    stop: () => Promise.resolve(),
  }
  const folders = () => {
    const [first] = division?.owners ?? []
    if (!first) throw new Error('the folders are not known yet')
    return first
  }
  const attention = part<Looks>('attention', () => Promise.resolve(sharedLooks(redisConnection(config.redis), logger)))
  const collect = createSingleProcessHub({
    ...common,
    before: [divided, attention],
    dataDir: config.dataDir,
    logDirectory: () => folders().log,
    collection: config.collection,
    attention: attention.get,
    openState: (logId) =>
      RedisStateStore.open({
        connection: redisConnection(config.redis),
        logId,
        waits: true,
        program: version,
        ttlMs: config.collection.snapshotTtlMs,
        retentionMs: config.collection.seriesRetentionMs,
        lists: config.resourceLists,
        logger: logger.child({ part: 'state' }),
      }),
    version,
    ingester: config.ingester,
    ...(config.members && {
      joins: joinsOnKubernetes({
        ...{ hub: common.hub, namespace: config.namespace, record: recordedBy(keptIn(trail)), logger },
      }),
    }),
    logMaxBytes: config.logMaxBytes,
    publish: config.publish,
    ...historyOf(config.history, { directory: () => folders().history, logger }),
    allowLocalKubeconfig: false,
  })
  memberMetrics(metrics, () =>
    collect.isLeading() && collect.leaderFault() === undefined ? collect.state().clusters() : undefined,
  )
  const ofLeader = (check: () => string | undefined) => () =>
    collect.isLeading() && collect.leaderFault() === undefined ? check() : undefined
  return {
    parts: collect.parts,
    readiness: {
      leading: () => collect.leaderFault(),
      redis: ofLeader(() => {
        const availability = collect.state().availability()
        return availability.state === 'unavailable' ? availability.reason : undefined
      }),
      log: ofLeader(() => collect.logFault()),
      agents: ofLeader(() => collect.receiverFault()),
      objects: ofLeader(() => (collect.manager().isSynced ? undefined : 'the objects of the hub are not read yet')),
    },
    metricsText: () => metrics.registry.metrics(),
  }
}

/** Others own the clusters: this process starts them while it leads, and rules what is about no single cluster. */
function inSeveral({ division, common, trail, logger, metrics }: ControlledFleet): Fleet {
  const controllers = createHubControllers(common)
  const shares = createOwnerSupervisor({
    division,
    ...(common.election && { election: common.election }),
    ofFleet: (fleet, signal) => controllers.ofFleet(fleet, signal),
    trail,
    metrics,
    logger,
  })
  return {
    parts: [...controllers.parts, ...shares.parts],
    readiness: { redis: () => shares.redisFault(), owners: () => shares.fault() },
    metricsText: () => shares.metricsText(),
  }
}

const divisionOf = (
  { dataDir, processes, redis, history, logMaxBytes }: ManagerConfig,
  version: string,
  claimFolder: () => Promise<void>,
) => ({
  version,
  claimFolder,
  dataDir,
  of: processes,
  redis: redisConnection(redis),
  withHistory: history.kind === 'victoria',
  logMaxBytes,
})
