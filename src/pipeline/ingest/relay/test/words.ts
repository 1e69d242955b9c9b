import { type Batch, type ClusterName, ownerOf, parseClusterName } from '#model'
import { aBatch, aNode, complete } from '../../../state/test/fleet-words.ts'
import type { StreamClient } from '../../stream/test/clients.ts'
import { hello, OwnAgent } from '../../stream/test/own-agent.ts'
import type { TestOwner } from './owners.ts'

export const batchOf = (cluster: ClusterName, sequence: number): Batch =>
  aBatch(cluster, sequence, [complete('node', aNode(`n${sequence}`), aNode('always'))], {
    source: 'push',
    collectedAt: Date.now(),
  })

/** An agent of ours at this owner's door, welcomed. */
export const connect = ({ server }: TestOwner, cluster: string, origin = `buffer-of-${cluster}`) =>
  OwnAgent.connect({ address: server.address, token: `${cluster}-token`, cluster, origin })

/** So many names that this owner has. */
export function namesOf(index: number, of: number, count: number): ClusterName[] {
  const names: ClusterName[] = []
  for (let i = 0; names.length < count; i++) if (ownerOf(`c${i}`, of) === index) names.push(parseClusterName(`c${i}`))
  return names
}

/** How a client that registers for a cluster is refused. */
export async function refusalOf(client: StreamClient, cluster: string, token?: string) {
  client.send(hello({ cluster, ...(token !== undefined && { token }) }))
  const { code, message } = await client.next('goodbye')
  const status = await client.ended()
  return { code, message, status: status.code, details: status.details }
}

export const metricOf = async ({ metrics }: TestOwner, name: string): Promise<number> => {
  const line = new RegExp(`^${name.replace(/[{}"]/g, '\\$&')} (\\d+)`, 'm').exec(await metrics.registry.metrics())
  return Number(line?.[1] ?? 0)
}
