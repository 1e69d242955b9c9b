import type { ManagedCluster } from './objects.ts'
import { TRANSPORT } from './words.ts'

/** Who speaks for a member: our agent on its stream, or an agent that is a client of the hub's API. */
export type Transport = 'stream' | 'api'

/** What is written of it; else our agent, where the cluster is monitored by us already. */
export function transportOf({ metadata: { annotations } }: ManagedCluster, isMonitored: boolean): Transport {
  const written = annotations?.[TRANSPORT]
  if (written === 'stream' || written === 'api') return written
  return isMonitored ? 'stream' : 'api'
}
