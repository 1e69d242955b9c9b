import type { ReactNode } from 'react'
import { HealthMark } from '../../components/health.tsx'
import { Flash } from '../../components/text.tsx'
import type { NodeView } from '../../contract.ts'
import type { Need } from '../../model/cluster.ts'

export const amountsOf = (node: NodeView, what: 'cpuCores' | 'memoryBytes') => ({
  capacity: node.capacity[what],
  allocatable: node.allocatable[what],
  requested: node.requested?.[what] ?? null,
  used: node.used?.[what] ?? null,
})

const readyNeed: Readonly<Record<NodeView['ready'], Need>> = {
  notReady: 'unhealthy',
  unknown: 'unknown',
  ready: 'healthy',
}
export const readyWord = { notReady: 'Not ready', unknown: 'Unknown', ready: 'Ready' }

/** The usual ones; a cluster may have others. */
export const pressureTypes = ['MemoryPressure', 'DiskPressure', 'PIDPressure', 'NetworkUnavailable']

export const pressures = ({ conditions }: NodeView): string[] =>
  conditions.filter(({ type, status }) => type !== 'Ready' && status === 'True').map(({ type }) => type)

export function NodeReady({ node }: { node: NodeView }): ReactNode {
  return (
    <Flash value={node.ready}>
      <HealthMark need={readyNeed[node.ready]} word={readyWord[node.ready]} />
      {node.unschedulable && (
        <span className="tag" data-tip="The scheduler places no new pods here">
          cordoned
        </span>
      )}
      {pressures(node).map((type) => (
        <span className="tag is-warning" key={type}>
          {type}
        </span>
      ))}
    </Flash>
  )
}
