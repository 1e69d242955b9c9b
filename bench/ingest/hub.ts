import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { openEvents } from '#events'
import { openHistory } from '#history'
import { AgentServer, Ingester, type Verdict } from '#ingest'
import { type OwnerPlace, owns } from '#model'
import { openLog } from '#runtime'
import { RedisStateStore } from '#state'
import { clusterName, connectionOf } from '../baseline/fleet.ts'

export interface HubOptions {
  readonly directory: string
  readonly redisPort: number
  readonly streams: number
  readonly certFile: string
  readonly keyFile: string
  readonly history?: 'none'
  /** processes that share the clusters; absent: one */
  readonly owners?: number
}

/** The hub's ingest as `up` and `manager` put it together: streams, log, state in Redis, history in DuckDB. */
export async function openHub(options: HubOptions, place: OwnerPlace, port: number) {
  const { redisPort, streams, certFile, keyFile } = options
  const directory = place.of === 1 ? options.directory : join(options.directory, String(place.index))
  const log = await openLog({ directory: join(directory, 'log') })
  const connection = { host: '127.0.0.1', port: redisPort }
  const state = await RedisStateStore.open({ connection, logId: log.id, owner: place })
  const history =
    options.history === 'none'
      ? undefined
      : await openHistory({ kind: 'duckdb', directory: join(directory, 'history') })
  const events = openEvents({ kind: 'in-process' })
  const ingester = await Ingester.open({ log, state, events, ...(history && { history }) })

  const digest = (token: string) => createHash('sha256').update(token).digest('hex')
  const credentials = new Map<string, Verdict>()
  for (let index = 0; index < streams; index++) {
    const cluster = clusterName(index)
    if (owns(place, cluster)) await ingester.connect(cluster, connectionOf(index))
    credentials.set(digest(`token-${index}`), { peer: { cluster, method: 'token', credential: String(index) } })
  }
  const server = await AgentServer.start({
    host: '127.0.0.1',
    port,
    tls: { certFile, keyFile },
    ingester,
    verifier: {
      verify: ({ token = '' }) => credentials.get(digest(token)) ?? { refused: 'unknown' },
      stillValid: () => true,
      onChange: () => () => undefined,
    },
    plans: { planOf: () => undefined, onChange: () => () => undefined },
    limits: { messagesPerSecond: 1e6, bytesPerSecond: 1e9 },
    ...(place.of > 1 && { others: { place, directory: options.directory } }),
  })
  return {
    port: server.address.port,
    /** Ends when everything acknowledged is where it belongs. */
    async settle() {
      await ingester.flushed()
      await state.flush()
      await ingester.flushed('history')
    },
  }
}
