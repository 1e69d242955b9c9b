import { openEvents } from '#events'
import { openHistory } from '#history'
import { AgentServer, Ingester } from '#ingest'
import {
  type ConnectionFacts,
  type OwnerPlace,
  owns,
  type Plan,
  parseClusterName,
  soleOwner,
  systemClock,
} from '#model'
import type { RedisConnection } from '#redis'
import { type Logger, openLog } from '#runtime'
import { openState } from '#state'
import { redisConnection } from '../../src/apps/hub/redis.ts'

export type Stores =
  | { readonly kind: 'embedded'; readonly directory: string }
  | { readonly kind: 'servers'; readonly redisPort: number; readonly victoria: string }

export interface HubOptions {
  readonly folders: { readonly log: string; readonly history: string }
  readonly port: number
  readonly clusters: readonly string[]
  readonly intervalMs: number
  readonly stores: Stores
  /** it owns a part of the clusters; the others are reached in this directory */
  readonly others?: { readonly place: OwnerPlace; readonly directory: string }
  readonly logger: Logger
}

/** What the state holds of a cluster: when it was read, and the number. */
export interface Known {
  readonly cluster: string
  readonly at: number
  readonly value: number
}

/** The real parts of a hub that receives agents, without a control plane. */
export interface Hub extends AsyncDisposable {
  readonly port: number
  /** Resolves when everything that the agents hold by now is in state and in history. */
  drained(say: (...words: (string | number)[]) => void): Promise<readonly Known[]>
}

export const redisOn = (port: number): RedisConnection =>
  redisConnection({ host: '127.0.0.1', port, db: 0, tls: false })

export async function openHub({ folders, port, clusters, stores, others, logger, ...rest }: HubOptions): Promise<Hub> {
  const { intervalMs } = rest
  const place = others?.place ?? soleOwner
  const own = clusters.filter((cluster) => owns(place, cluster))
  const log = await openLog({ directory: folders.log, segmentBytes: 512 * 1024, retainBytes: 2 ** 20 })
  const state = await openState(
    stores.kind === 'embedded'
      ? { kind: 'embedded', directory: stores.directory, logger }
      : {
          kind: 'redis',
          connection: redisOn(stores.redisPort),
          logId: log.id,
          owner: place,
          ttlMs: 600_000,
          retentionMs: 3_600_000,
          logger,
        },
  )
  const history = await openHistory(
    stores.kind === 'embedded'
      ? { kind: 'duckdb', directory: folders.history, logger }
      : { kind: 'victoria', endpoint: stores.victoria, directory: folders.history, logger },
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
  for (const cluster of own) await ingester.connect(parseClusterName(cluster), facts)
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
    ...(others && { others }),
    logger,
  })
  return {
    port: server.address.port,
    async drained(say) {
      const asked = systemClock.now()
      // What agents keep from now on is none of it: they never stop.
      const waiting = () =>
        own.filter((cluster) => {
          const agent = server.agents.facts(parseClusterName(cluster))
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
      // Nobody pushes where there is no cluster: history has nothing then, and no place in this log.
      while (own.length > 0 && history.position() < newest) await systemClock.sleep(100)
      return own.map((cluster) => {
        const known = state.cluster(cluster)
        const value = known?.parts.node?.items.get('n1')?.requested?.cpuCores ?? -1
        return { cluster, at: known?.status.checkedAt ?? 0, value }
      })
    },
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]()
      await ingester[Symbol.asyncDispose]()
      await history[Symbol.asyncDispose]()
      await state[Symbol.asyncDispose]()
      await log[Symbol.asyncDispose]()
    },
  }
}
