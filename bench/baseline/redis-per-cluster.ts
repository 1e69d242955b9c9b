import { createServer } from 'node:http'
import { Redis } from 'ioredis'
import { clusterTotals, documentText, documentTime, metricsDocument, type NodeSnapshot, specDocument } from '#model'
import { batchOf, clusterName, connectionOf, nodeOf, serveBench } from './fleet.ts'

/* The list of clusters as the original makes it: several round trips per cluster, one after the other, at every request. */

const [clusters = 1000, nodes = 10, batchesPerSecond = 33, , port] = [
  ...process.argv.slice(2, 5).map(Number),
  0,
  Number(process.argv[5]),
]
const redis = new Redis({ host: '127.0.0.1', port: port ?? 6379 })
const writer = new Redis({ host: '127.0.0.1', port: port ?? 6379 })

async function write(index: number, round: number): Promise<void> {
  const key = `cluster:${clusterName(index)}`
  const now = Date.now()
  const items: NodeSnapshot[] = Array.from({ length: nodes }, (_, node) => nodeOf(node, round))
  const { parts } = batchOf(index, nodes, 1, now)
  const info = parts.find(({ type }) => type === 'cluster')
  await writer
    .pipeline()
    .sadd('clusters:all', clusterName(index))
    .set(`${key}:spec`, documentText(specDocument(connectionOf(index))))
    .set(`${key}:info`, documentText(info && 'items' in info ? info.items[0] : {}))
    .set(`${key}:metrics`, documentText(metricsDocument(clusterTotals({ nodes: items }), items, now)))
    .set(`${key}:status`, documentText({ health: 'healthy', message: 'ok', last_check: documentTime(now) }))
    .set(`${key}:operators`, '[]')
    .exec()
}
for (let index = 0; index < clusters; index++) await write(index, 0)

const read = async (key: string): Promise<unknown> => JSON.parse((await redis.get(key)) ?? '{}')

async function list(): Promise<string> {
  const names = (await redis.smembers('clusters:all')).sort()
  const items: unknown[] = []
  for (const name of names) {
    const spec = await read(`cluster:${name}:spec`)
    const info = await read(`cluster:${name}:info`)
    const metrics = await read(`cluster:${name}:metrics`)
    const status = await read(`cluster:${name}:status`)
    const operators = (await read(`cluster:${name}:operators`)) as unknown[]
    items.push({ name, accessible: true, spec, info, metrics, status, operator_count: operators.length })
  }
  return JSON.stringify(items)
}

const server = createServer((_request, response) => {
  list().then(
    (body) => {
      const bytes = Buffer.from(body)
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': bytes.length }).end(bytes)
    },
    (error: unknown) => response.writeHead(500).end(String(error)),
  )
})
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
const address = server.address()
let turn = 0
serveBench(
  `http://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}/api/v1/clusters`,
  batchesPerSecond,
  () => write(turn % clusters, turn++),
)
