import { parseClusterName } from '#model'
import { Agent } from '../agent.ts'
import { grpcTransport } from '../grpc.ts'
import { aliveClient, countingCollector } from './small-cluster.ts'

// An agent that is killed from outside: collects every 10 ms, and each batch says which run and which round it is of.
const [directory = '', port = '', run = ''] = process.argv.slice(2)
const counting = countingCollector()
const token = () => Promise.resolve('secret')
await Agent.open({
  cluster: parseClusterName('west'),
  version: '1.2.3',
  directory,
  plan: { intervalMs: 10 },
  token,
  kube: aliveClient,
  collectors: [
    {
      ...counting,
      open(context) {
        const { take, parts } = counting.open(context)
        const marked = (collected: ReturnType<typeof parts>) => {
          const read = 'namespace' in collected ? collected.namespace : undefined
          if (!read || 'refused' in read) return collected
          return { namespace: read.map((one) => ({ ...one, labels: { ...one.labels, run } })) }
        }
        return { take, parts: (now) => marked(parts(now)) }
      },
    },
  ],
  transport: grpcTransport({ address: `127.0.0.1:${port}`, token }),
  random: () => 0.01,
})
process.stdout.write('ready\n')
