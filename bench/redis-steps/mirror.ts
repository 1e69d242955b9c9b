import { type ClusterName, parseClusterName } from '../../src/contract/model/index.ts'
import { ClusterReader } from '../../src/pipeline/state/cluster-reader.ts'
import { RedisMirror } from '../../src/pipeline/state/mirror.ts'
import { StoredRows } from '../../src/pipeline/state/stored-rows.ts'
import { redisClient } from '../../src/platform/redis/index.ts'
import { silentLogger } from '../../src/platform/runtime/index.ts'

/*
 * One `api` process of the bench, as far as the mirror: says when it had each version, and what CPU it used; or what reading the
 * cluster as a whole costs, as mirrors did with each change before the change carried its rows.
 */
const [port = 0] = process.argv.slice(2).map(Number)
const connection = { host: '127.0.0.1', port }
const name: ClusterName = parseClusterName('west')
const mirror = new RedisMirror({ connection })
const cpuMs = () => {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}
mirror.onSteps(() => {
  const cluster = mirror.cluster(name)
  process.send?.({ sequence: cluster?.sequence ?? 0, at: Number(process.hrtime.bigint()) / 1e6 })
})

async function readWhole(times: number): Promise<number> {
  const redis = redisClient(connection, () => undefined)
  await redis.connect()
  const reader = new ClusterReader(redis, new StoredRows(), silentLogger)
  let known = reader.state(name, (await reader.hashes([name])).get(name) ?? {}, undefined)
  const before = cpuMs()
  for (let i = 0; i < times; i++) known = reader.state(name, (await reader.hashes([name])).get(name) ?? {}, known)
  const spent = (cpuMs() - before) / times
  redis.disconnect()
  return spent
}

process.on('message', async (asked: { readonly whole?: number }) => {
  if (asked.whole !== undefined) process.send?.({ wholeMs: await readWhole(asked.whole) })
  else process.send?.({ cpuMs: cpuMs() })
})
process.on('disconnect', () => process.exit(0))
