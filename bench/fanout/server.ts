/*
 * A hub's API over one cluster of which a node changes once a second; asked by its parent, it tells its memory and CPU.
 *
 *   node server.ts DIRECTORY NODES
 */
import { apiServer } from '#api'
import { openEvents } from '#events'
import { systemClock } from '#model'
import { Metrics, silentLogger } from '#runtime'
import { EmbeddedStateStore, type StateRecord } from '#state'
import { localAdministrator } from '../../test/local-administrator.ts'
import { batchOf, clusterName, connectionOf, serveBench } from '../baseline/fleet.ts'

const [directory = '', nodes = '10'] = process.argv.slice(2)
const administrator = await localAdministrator()
const state = await EmbeddedStateStore.open({ directory })
const events = openEvents({ kind: 'in-process' })
let position = 0
let sequence = 0
const apply = async (...records: StateRecord[]): Promise<void> => {
  position += records.length
  await events.publish(await state.apply(records, position))
}
const nextBatch = (): StateRecord => {
  const now = Date.now()
  sequence += 1
  return { kind: 'batch', batch: batchOf(0, Number(nodes), sequence, now), receivedAt: now }
}
const connection = { kind: 'connection', cluster: clusterName(0), connection: connectionOf(0), at: Date.now() } as const
await apply(connection, nextBatch())

const everyone = { perSecond: 1e9, burst: 1e9 }
const server = apiServer({
  state,
  events,
  ...administrator,
  config: {
    host: '127.0.0.1',
    port: 0,
    maxStreams: 100_000,
    maxConnections: 100_000,
    streamOpens: everyone,
    ...administrator.config,
  },
  logger: silentLogger,
  clock: systemClock,
  version: 'bench',
  metrics: new Metrics(),
})
serveBench(`${await server.start()}/api/v1/stream?clusters=false&rows=nodes`, 1, () => apply(nextBatch()))
