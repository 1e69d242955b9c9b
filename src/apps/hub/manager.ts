import { hostname } from 'node:os'
import { join } from 'node:path'
import { RedisPolicies } from '#access'
import { RedisCatalog } from '#catalog'
import { LeaderElection } from '#controller'
import { isFront, runFront } from '#ingest'
import { createKubeClient, type KubeClient } from '#kube'
import { systemClock } from '#model'
import { RedisRegistries } from '#registry'
import { keepHeapTight, Metrics, type Part } from '#runtime'
import { RedisStateStore } from '#state'
import { type ControllerName, collecting } from './collecting.ts'
import type { ManagerConfig } from './config.ts'
import { historyOf } from './history.ts'
import { hubAccess } from './hub-access.ts'
import { probesPart } from './probes.ts'
import { redisConnection } from './redis.ts'
import { HUB_CLIENT, part, type RoleOptions, roleLogger, runUntilSignal } from './run.ts'

const LEASES = {
  connections: 'cluster-controller.clusterpulse.io',
  access: 'policy-controller.clusterpulse.io',
  registries: 'registry-controller.clusterpulse.io',
} as const satisfies Record<ControllerName, string>

/** The collecting half of a hub on Kubernetes: reads ClusterConnections and their clusters, writes Redis and statuses. */
export async function manager({ config, warnings, version }: RoleOptions<ManagerConfig>): Promise<void> {
  const logger = roleLogger(config.logLevel, 'manager', version, isFront() ? [] : warnings)
  if (isFront()) {
    keepHeapTight()
    await runFront({ logger })
    process.exit(0)
  }
  const metrics = new Metrics({ role: 'manager' })
  const access = await hubAccess(config.kubeconfig)

  const hub = part<KubeClient>('hub', () => Promise.resolve(createKubeClient(access, HUB_CLIENT)))
  const identity = `${hostname()}_${process.pid}`
  const policies = part<RedisPolicies>('policies', () =>
    RedisPolicies.open({
      connection: redisConnection(config.redis),
      clock: systemClock,
      logger: logger.child({ part: 'policies' }),
    }),
  )
  const catalog = part<RedisCatalog>('catalog', () =>
    RedisCatalog.open({
      connection: redisConnection(config.redis),
      clock: systemClock,
      logger: logger.child({ part: 'catalog' }),
    }),
  )
  const registries = part<RedisRegistries>('registries-store', () =>
    RedisRegistries.open({
      connection: redisConnection(config.redis),
      clock: systemClock,
      logger: logger.child({ part: 'registries' }),
    }),
  )
  const collect = collecting({
    catalog: catalog.get,
    registries: registries.get,
    dataDir: config.dataDir,
    policies: policies.get,
    namespace: config.namespace,
    collection: config.collection,
    hub: hub.get,
    openState: (logId) =>
      RedisStateStore.open({
        connection: redisConnection(config.redis),
        logId,
        ttlMs: config.collection.snapshotTtlMs,
        retentionMs: config.collection.seriesRetentionMs,
        logger: logger.child({ part: 'state' }),
      }),
    ...(config.leaderElection && {
      election: (name: ControllerName) =>
        new LeaderElection({ kube: hub.get(), namespace: config.namespace, name: LEASES[name], identity, logger }),
    }),
    version,
    ingester: config.ingester,
    logMaxBytes: config.logMaxBytes,
    ...historyOf(config.history, { directory: join(config.dataDir, 'history'), logger }),
    allowLocalKubeconfig: false,
    metrics,
    logger,
  })
  const probes = probesPart({
    metricsAddress: config.metricsAddress,
    healthAddress: config.healthAddress,
    metrics,
    readiness: {
      redis: () => {
        const availability = collect.state().availability()
        return availability.state === 'unavailable' ? availability.reason : undefined
      },
      log: () => collect.logFault(),
      agents: () => collect.receivingFault(),
      objects: () => (collect.manager().isSynced ? undefined : 'the objects of the hub are not read yet'),
    },
  })
  const parts: readonly Part[] = [probes, hub, policies, catalog, registries, ...collect.parts]
  await runUntilSignal(parts, logger, () => {
    logger.info({ hub: access.server, namespace: config.namespace, identity }, 'manager runs')
  })
}
