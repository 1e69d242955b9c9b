import { apiServer } from '#api'
import { openEvents } from '#events'
import { systemClock } from '#model'
import { Metrics, silentLogger } from '#runtime'
import { EmbeddedStateStore, type StateRecord } from '#state'
import { localAdministrator } from '../../test/local-administrator.ts'
import { batchOf, clusterName, connectionOf, serveBench } from './fleet.ts'

const administrator = await localAdministrator()

const [clusters = 1000, nodes = 10, batchesPerSecond = 33] = process.argv.slice(2, 5).map(Number)
const directory = `${process.argv[5]}/state-${process.pid}`
const state = await EmbeddedStateStore.open({ directory })
const events = openEvents({ kind: 'in-process' })

let position = 0
const apply = async (...records: StateRecord[]): Promise<void> => {
  position += records.length
  await events.publish(await state.apply(records, position))
}
const sequences = new Array<number>(clusters).fill(0)
const nextBatch = (index: number): StateRecord => {
  sequences[index] = (sequences[index] ?? 0) + 1
  const now = Date.now()
  return { kind: 'batch', batch: batchOf(index, nodes, sequences[index], now), receivedAt: now }
}
for (let index = 0; index < clusters; index++) {
  const cluster = clusterName(index)
  await apply({ kind: 'connection', cluster, connection: connectionOf(index), at: Date.now() }, nextBatch(index))
}

const server = apiServer({
  state,
  events,
  ...administrator,
  config: { host: '127.0.0.1', port: 0, ...administrator.config },
  logger: silentLogger,
  clock: systemClock,
  version: 'bench',
  metrics: new Metrics(),
})
let turn = 0
serveBench(`${await server.start()}/api/v1/clusters`, batchesPerSecond, () => apply(nextBatch(turn++ % clusters)))
