import { openEvents } from '#events'
import { Metrics } from '#runtime'
import { RedisMirror } from '#state'
import type { ApiConfig } from './config.ts'
import { historyReader } from './history.ts'
import { redisConnection } from './redis.ts'
import { part, type RoleOptions, roleLogger, runUntilSignal } from './run.ts'
import { servePart } from './serve.ts'

/** The answering half of a hub on Kubernetes: a mirror of Redis in memory, the page and the API. Scales freely. */
export async function api({ config, warnings, version }: RoleOptions<ApiConfig>): Promise<void> {
  const logger = roleLogger(config.logLevel, 'api', version, warnings)
  const metrics = new Metrics({ role: 'api' })
  // Redis may come later: until then data routes answer 503 and say so.
  const mirror = part('mirror', () =>
    Promise.resolve(
      new RedisMirror({ connection: redisConnection(config.redis), logger: logger.child({ part: 'mirror' }) }),
    ),
  )
  const events = part('events', () => Promise.resolve(openEvents({ kind: 'follow', source: mirror.get() })))
  const { readHistory } = historyReader(config.history, logger)
  const history = readHistory && part('history', readHistory)
  const serve = servePart({
    web: config.web,
    state: mirror.get,
    events: events.get,
    history: () => history?.get(),
    metrics,
    logger,
    version,
  })
  await runUntilSignal([mirror, events, ...(history ? [history] : []), serve], logger, () => {
    process.stdout.write(
      `ClusterPulse api on ${serve.address()}, mirroring Redis at ${config.redis.host}:${config.redis.port}\n`,
    )
  })
}
