import { RedisPolicies } from '#access'
import type { Looks } from '#attention'
import { RedisCatalog } from '#catalog'
import { openEvents } from '#events'
import { revocationsOver } from '#identity'
import { createKubeClient, type KubeClient } from '#kube'
import { systemClock } from '#model'
import { RedisMarks } from '#redis'
import { RedisRegistries } from '#registry'
import { countBuild, Metrics } from '#runtime'
import { OriginalState, RedisMirror, RedisNodeSeries } from '#state'
import type { Address, ApiConfig } from './config.ts'
import { historyReader } from './history.ts'
import { hubAccess } from './hub-access.ts'
import { publishedAuthorities } from './joins.ts'
import { hearJudged } from './judged-members.ts'
import { monitorPart } from './monitor-listener.ts'
import { metricsPart } from './probes.ts'
import { redisConnection } from './redis.ts'
import { HUB_CLIENT, part, type RoleOptions, roleLogger, runUntilSignal } from './run.ts'
import { serving } from './serve.ts'
import { servedMembers } from './served-members.ts'
import { sharedLooks } from './shared-looks.ts'

/** Said in the log, by the API and on every page, as long as it is so. */
const PROVISIONAL =
  'This hub reads what an original manager writes, and decides as the original did: nothing proves that clusters, objects and policies are complete. Start our manager on this Redis, then leave out STATE_SOURCE and RBAC_SEMANTICS (docs/guide/migrate.md).'

const ORIGINAL_ANSWERS =
  "RBAC_SEMANTICS=original: decisions are as the original's, over what our manager keeps in Redis. In front of an original manager STATE_SOURCE=original is needed besides (docs/guide/migrate.md)."

/** The answering half of a hub on Kubernetes: a mirror of Redis in memory, the page and the API. Scales freely. */
export async function api({ config, warnings, version }: RoleOptions<ApiConfig>): Promise<void> {
  const logger = roleLogger(config.logLevel, 'api', version, warnings)
  const metrics = new Metrics({ role: 'api' })
  countBuild(metrics, version)
  const scrape = (address: Address) =>
    metricsPart(address, 'API_METRICS_BIND_ADDRESS', { page: () => metrics.registry.metrics(), metrics, logger })
  // Redis may come later: until then data routes answer 503 and say so.
  const connection = redisConnection(config.redis)
  const isOriginal = config.stateSource === 'original'
  if (isOriginal) logger.warn({}, PROVISIONAL)
  else if (config.web.access.semantics === 'original') logger.warn({}, ORIGINAL_ANSWERS)
  const mirror = part<OriginalState | RedisMirror>('mirror', () => {
    const options = { connection, logger: logger.child({ part: 'mirror' }) }
    return Promise.resolve(isOriginal ? new OriginalState(options) : new RedisMirror({ ...options, program: version }))
  })
  const events = part('events', () => Promise.resolve(openEvents({ kind: 'follow', source: mirror.get() })))
  const { readHistory } = historyReader(config.history, logger)
  const history = readHistory && part('history', readHistory)
  const series = part('series', () => Promise.resolve(new RedisNodeSeries(connection)))
  const policies = part<RedisPolicies>('policies', () =>
    RedisPolicies.open({
      connection,
      takesUnsealed: isOriginal,
      clock: systemClock,
      logger: logger.child({ part: 'policies' }),
    }),
  )
  const catalog = part<RedisCatalog>('catalog', () =>
    RedisCatalog.open({
      connection,
      takesUnsealed: isOriginal,
      clock: systemClock,
      logger: logger.child({ part: 'catalog' }),
    }),
  )
  const registries = part<RedisRegistries>('registries', () =>
    RedisRegistries.open({
      connection,
      takesUnsealed: isOriginal,
      clock: systemClock,
      logger: logger.child({ part: 'registries' }),
    }),
  )
  const marks = part('sessions', () =>
    Promise.resolve(
      new RedisMarks({
        connection,
        prefix: 'session:',
        channel: 'session-ends',
        newsOf: (key) => key.replace(/^revoked:/, ''),
      }),
    ),
  )
  // Reviews tokens, reads groups and members: only then is there anything to ask of the hub's API.
  const hub =
    config.web.access.needsHub || config.members
      ? part<KubeClient>('hub', async () => createKubeClient(await hubAccess(config.kubeconfig), HUB_CLIENT))
      : undefined
  const published = config.members && hub ? publishedAuthorities(hub.get, config.namespace, logger) : undefined
  const judged = config.members ? hearJudged(connection, logger) : undefined
  const memberIndex =
    hub && published
      ? servedMembers({
          ...{ hub: hub.get, namespace: config.namespace, administratorsDecide: false, logger },
          authorities: published.authorities,
          ...(judged && { judgement: judged.judgement }),
        })
      : undefined
  const attention = part<Looks>('attention', () => Promise.resolve(sharedLooks(connection, logger)))
  const serve = serving({
    web: config.web,
    policies: policies.get,
    catalog: catalog.get,
    registries: registries.get,
    ...(memberIndex && { members: memberIndex.get }),
    attention: attention.get,
    revocations: () => revocationsOver(marks.get(), systemClock),
    redis: connection,
    ...(hub && { hub: hub.get }),
    state: mirror.get,
    events: events.get,
    history: () => history?.get(),
    series: series.get,
    metrics,
    logger,
    version,
    ...(isOriginal && { provisional: PROVISIONAL }),
  })
  const ticketNames =
    config.monitor &&
    part('stream-tickets', () =>
      Promise.resolve(new RedisMarks({ connection, prefix: 'clusterpulse:ticket:', channel: 'clusterpulse:tickets' })),
    )
  const monitor =
    config.monitor &&
    monitorPart({
      config: config.monitor,
      ...(ticketNames && { ticketNames: ticketNames.get }),
      tls: config.web.access.tls,
      state: mirror.get,
      ...(memberIndex && { members: memberIndex.get }),
      attention: attention.get,
      metrics,
      logger,
    })
  await runUntilSignal(
    [
      ...(config.metricsAddress ? [scrape(config.metricsAddress)] : []),
      mirror,
      events,
      ...(history ? [history] : []),
      series,
      policies,
      catalog,
      registries,
      marks,
      attention,
      ...(hub ? [hub] : []),
      ...(published ? [published] : []),
      ...(judged ? [judged.part] : []),
      ...(memberIndex ? memberIndex.parts : []),
      ...serve.parts,
      ...(ticketNames ? [ticketNames] : []),
      ...(monitor ? [monitor.part] : []),
    ],
    logger,
    () => {
      if (monitor) process.stdout.write(`Cluster Monitor's interface is on ${monitor.address()}\n`)
      process.stdout.write(
        `ClusterPulse api on ${serve.address()}, mirroring Redis at ${config.redis.host}:${config.redis.port}\n`,
      )
    },
  )
}
