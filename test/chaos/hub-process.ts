import { writeSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { openEvents } from '#events'
import { openHistory } from '#history'
import { AgentServer, Ingester } from '#ingest'
import { type ConnectionFacts, type Plan, parseClusterName, systemClock } from '#model'
import { createLogger, SegmentLog } from '#runtime'
import { openState } from '#state'
import { redisConnection } from '../../src/apps/hub/redis.ts'

/** A hub that receives agents and is killed from outside: the real parts, without a control plane. */
export interface HubConfig {
  readonly directory: string
  readonly port: number
  readonly clusters: readonly string[]
  readonly intervalMs: number
  readonly stores:
    | { readonly kind: 'embedded' }
    | { readonly kind: 'servers'; readonly redisPort: number; readonly victoria: string }
}

const { directory, port, clusters, intervalMs, stores } = JSON.parse(process.argv[2] ?? '{}') as HubConfig
const say = (...words: (string | number)[]) => writeSync(1, `${words.join(' ')}\n`)
const logger = createLogger('error', { role: 'chaos-hub' })

const log = await SegmentLog.open({ directory: `${directory}/log`, segmentBytes: 512 * 1024, retainBytes: 2 ** 20 })
const state = await openState(
  stores.kind === 'embedded'
    ? { kind: 'embedded', directory: `${directory}/state`, logger }
    : {
        kind: 'redis',
        connection: redisConnection({ host: '127.0.0.1', port: stores.redisPort, db: 0, tls: false }),
        logId: log.id,
        ttlMs: 600_000,
        retentionMs: 3_600_000,
        logger,
      },
)
const history = await openHistory(
  stores.kind === 'embedded'
    ? { kind: 'duckdb', directory: `${directory}/history`, logger }
    : { kind: 'victoria', endpoint: stores.victoria, directory: `${directory}/history`, logger },
)
const ingester = await Ingester.open({ log, state, history, events: openEvents({ kind: 'in-process' }), logger })
const facts: ConnectionFacts = {
  displayName: '',
  endpoint: '',
  labels: {},
  mode: 'push',
  intervalMs,
  timeoutMs: 5_000,
  insecureSkipTlsVerify: false,
  credentialsRef: { name: '', namespace: '' },
}
for (const cluster of clusters) await ingester.connect(parseClusterName(cluster), facts)
const plan: Plan = { version: 'chaos', intervalMs, timeoutMs: 5_000, operatorScanIntervalMs: 60_000, sources: [] }
const server = await AgentServer.start({
  host: '127.0.0.1',
  port,
  tls: 'plaintext',
  verifier: {
    verify: ({ token }) =>
      token?.startsWith('token-')
        ? { peer: { cluster: parseClusterName(token.slice(6)), method: 'token', credential: token } }
        : { refused: 'unknown' },
    stillValid: () => true,
    onChange: () => () => undefined,
  },
  plans: { planOf: () => plan, onChange: () => () => undefined },
  ingester,
  logger,
})
say('ready', server.address.port)

// `drain`: says when everything every agent holds is in state and in history. `end`: stops in order.
for await (const line of createInterface({ input: process.stdin })) {
  if (line === 'drain') {
    const asked = systemClock.now()
    // What agents keep from now on is none of it: they never stop.
    const waiting = () =>
      clusters.filter((cluster) => {
        const agent = server.agents.facts(cluster)
        return !agent?.connected || (agent.bufferedBatches > 0 && (agent.oldestBufferedAt ?? 0) < asked)
      })
    for (let turn = 0; waiting().length > 0; turn++) {
      if (turn % 50 === 0) say('waiting', ...waiting())
      await systemClock.sleep(100)
    }
    say('flushing')
    await ingester.flushed()
    const newest = log.lastIndex()
    say('following', history.position(), newest)
    while (history.position() < newest) await systemClock.sleep(100)
    for (const cluster of clusters) {
      const known = state.cluster(cluster)
      say('state', cluster, known?.status.checkedAt ?? 0, known?.parts.node?.items.get('n1')?.requested.cpuCores ?? -1)
    }
    say('drained')
  }
  if (line === 'end') break
}
await server[Symbol.asyncDispose]()
await ingester[Symbol.asyncDispose]()
await history[Symbol.asyncDispose]()
await state[Symbol.asyncDispose]()
await log[Symbol.asyncDispose]()
say('ended')
process.exit(0)
