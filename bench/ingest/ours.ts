import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { openEvents } from '#events'
import { openHistory } from '#history'
import { AgentFronts, AgentServer, type AgentServerOptions, Ingester, type Verdict } from '#ingest'
import { SegmentLog } from '#runtime'
import { RedisStateStore } from '#state'
import { clusterName, connectionOf } from '../baseline/fleet.ts'
import { serveBencher } from './process.ts'

/* The hub's ingest as `up` and `manager` put it together: stream, log, state in Redis, history in DuckDB. */

const options = JSON.parse(process.argv[2] ?? '{}') as {
  readonly directory: string
  readonly redisPort: number
  readonly streams: number
  readonly certFile: string
  readonly keyFile: string
  readonly history?: 'none'
  /** that carry streams; absent: this one does */
  readonly processes?: number
}
const { directory, redisPort, streams, certFile, keyFile } = options
const log = await SegmentLog.open({ directory: join(directory, 'log') })
const state = await RedisStateStore.open({ connection: { host: '127.0.0.1', port: redisPort } })
const history =
  options.history === 'none' ? undefined : await openHistory({ kind: 'duckdb', directory: join(directory, 'history') })
const events = openEvents({ kind: 'in-process' })
const ingester = await Ingester.open({ log, state, events, ...(history && { history }) })

const digest = (token: string) => createHash('sha256').update(token).digest('hex')
const credentials = new Map<string, Verdict>()
for (let index = 0; index < streams; index++) {
  const cluster = clusterName(index)
  await ingester.connect(cluster, connectionOf(index))
  credentials.set(digest(`token-${index}`), { peer: { cluster, method: 'token', credential: String(index) } })
}
const serving: AgentServerOptions = {
  host: '127.0.0.1',
  port: 0,
  tls: { certFile, keyFile },
  ingester,
  verifier: {
    verify: ({ token = '' }) => credentials.get(digest(token)) ?? { refused: 'unknown' },
    stillValid: () => true,
    onChange: () => () => undefined,
  },
  plans: { planOf: () => undefined, onChange: () => () => undefined },
  limits: { messagesPerSecond: 1e6, bytesPerSecond: 1e9 },
}
const program = {
  exec: fileURLToPath(new URL('front.ts', import.meta.url)),
  args: [],
  execArgv: ['--import', 'tsx'],
}
const server = await (options.processes
  ? AgentFronts.start({ ...serving, processes: options.processes, program })
  : AgentServer.start(serving))
serveBencher(server.address.port, async () => {
  await ingester.flushed()
  await state.flush()
  await ingester.historyFlushed()
})
