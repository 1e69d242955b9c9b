import type { ReactNode } from 'react'
import type { ClusterView } from '../contract.ts'
import { useAtTime } from '../live/hooks.ts'
import { needOf } from '../model/cluster.ts'
import { HealthMark } from './health.tsx'
import { Flash } from './text.tsx'

/** The health of a cluster as it is now; flashes when it changes. */
export function ClusterHealth({ cluster }: { cluster: ClusterView }): ReactNode {
  const need = useAtTime((now) => needOf(cluster, now))
  return (
    <Flash value={need}>
      <HealthMark need={need} />
    </Flash>
  )
}
