/*
 * Cluster Monitor's interface over one cluster whose usage is read once a second; asked by its parent, it tells its memory and CPU.
 *
 *   node monitor-server.ts DIRECTORY TENANTS PODS
 */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { systemClock } from '#model'
import { Monitor } from '#monitor'
import { Metrics, silentLogger } from '#runtime'
import { monitored } from '../../src/pipeline/monitor/testing/monitored.ts'
import { config, GivenState } from '../../src/pipeline/monitor/testing/serving.ts'
import { aNode } from '../../src/pipeline/state/test/fleet-words.ts'
import { serveBench } from '../baseline/fleet.ts'

const [tenants = 1, pods = 2] = process.argv.slice(3).map(Number)
const nodes = Array.from({ length: 10 }, (_, at) => aNode(`n${at}`))
const owned = Array.from({ length: tenants * pods }, (_, at) => ({
  namespace: `compute-${String(Math.floor(at / pods)).padStart(6, '0')}-0001`,
  name: `container-${at % pods}`,
  node: `n${at % nodes.length}`,
}))
const usage = Object.fromEntries(nodes.map(({ name }) => [name, {}]))
// What is measured anew is as much each time: its time is what readers look for.
const measured = (at: number) => monitored({ nodes, usage, pods: owned, at })
// As in the store, all else stays the very same: labels of the connection decide what policies say of it.
const { parts, connection } = measured(Date.now())
const state = new GivenState([measured(Date.now())])
const monitor = await Monitor.open({
  // History keeps its first rows alone: it grows with time and pods, and is no reader's.
  config: config({ refreshMs: 1000, maxConnections: 100_000, historyMaxBytes: 2 ** 14 }),
  ...{ state, logger: silentLogger, clock: systemClock },
  metrics: new Metrics(),
})
// The next read is made before its time comes: that is no work of the monitor.
let next = measured(Date.now())
const reading = () => {
  const at = Date.now()
  const tables = [...next.tables].map(([source, rows]) => {
    const freshness = { observedAt: at, receivedAt: at, source: 'pull' as const }
    return [source, { ...rows, freshness }] as const
  })
  state.set({ ...next, parts, connection, tables: new Map(tables) })
}
// What nobody holds any more is no client's: V8 would let it lie for as long as the machine has room.
setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void
process.on('message', () => {
  collect()
  collect() // which ends what the first does beside us
})
serveBench(`${monitor.url}/sse/health`, 1, async () => {
  reading()
  setTimeout(() => {
    next = measured(Date.now())
  }, 500)
})
