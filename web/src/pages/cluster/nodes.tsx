import { type ReactNode, useMemo } from 'react'
import { Pods } from '../../components/counts.tsx'
import { LoadMeter } from '../../components/meter.tsx'
import { type Column, ResourceTable } from '../../components/resource-table.tsx'
import { RowLink } from '../../components/row-link.tsx'
import { Missing } from '../../components/text.tsx'
import type { ClusterView, NodeView } from '../../contract.ts'
import { useNow } from '../../live/hooks.ts'
import { loadOf } from '../../model/cluster.ts'
import { createdExports, loadExports, podExports } from '../../model/export-columns.ts'
import { formatSpan } from '../../model/format.ts'
import { clusterPath, navigate, usePlace } from '../../router.tsx'
import { NodeDrawer } from './node-drawer.tsx'
import { amountsOf, NodeReady, pressures, pressureTypes, readyWord } from './node-status.tsx'
import { noneOf, PartGate } from './part.tsx'

const readyOrder = { notReady: 0, unknown: 1, ready: 2 }
function nodeColumns(now: number, filtered: boolean): readonly Column<NodeView>[] {
  return [
    {
      id: 'name',
      header: 'Node',
      value: ({ name }) => name,
      cell: (node) => <RowLink to={clusterPath(node.cluster, 'nodes', node.name)}>{node.name}</RowLink>,
    },
    {
      id: 'status',
      header: 'Status',
      width: 190,
      value: (node) => readyWord[node.ready],
      order: ({ ready }) => readyOrder[ready],
      exports: [
        { id: 'status', header: 'Status', value: ({ ready }) => readyWord[ready] },
        { id: 'cordoned', header: 'Cordoned', value: ({ unschedulable }) => unschedulable },
        { id: 'pressure', header: 'Pressure', value: pressures },
      ],
      cell: (node) => <NodeReady node={node} />,
    },
    { id: 'roles', header: 'Roles', width: 150, value: ({ roles }) => roles },
    {
      id: 'cpu',
      header: 'CPU',
      width: 132,
      kind: 'percent',
      descendingFirst: true,
      value: (node) => loadOf(amountsOf(node, 'cpuCores'))?.ratio ?? null,
      exports: loadExports('cpu', 'CPU', (node) => amountsOf(node, 'cpuCores')),
      cell: (node) => <LoadMeter what="CPU" amounts={amountsOf(node, 'cpuCores')} hidden={filtered} />,
    },
    {
      id: 'memory',
      header: 'Memory',
      width: 132,
      kind: 'percent',
      descendingFirst: true,
      value: (node) => loadOf(amountsOf(node, 'memoryBytes'))?.ratio ?? null,
      exports: loadExports('memory', 'Memory', (node) => amountsOf(node, 'memoryBytes')),
      cell: (node) => <LoadMeter what="Memory" amounts={amountsOf(node, 'memoryBytes')} hidden={filtered} />,
    },
    {
      id: 'pods',
      header: 'Pods',
      width: 96,
      align: 'end',
      kind: 'number',
      descendingFirst: true,
      value: ({ pods }) => pods?.total ?? null,
      exports: podExports,
      cell: ({ pods }) => <Pods pods={pods} hidden={filtered} />,
    },
    {
      id: 'version',
      header: 'Kubelet',
      width: 120,
      kind: 'version',
      value: ({ kubeletVersion }) => kubeletVersion || null,
      cell: ({ kubeletVersion }) =>
        kubeletVersion ? <span className="mono">{kubeletVersion}</span> : <Missing why="the node did not tell it" />,
    },
    {
      id: 'age',
      header: 'Age',
      width: 78,
      align: 'end',
      kind: 'time',
      descendingFirst: true,
      value: ({ createdAt }) => createdAt,
      exports: createdExports,
      cell: ({ createdAt }) =>
        createdAt === null ? <Missing why="no date of creation" /> : formatSpan(now - createdAt),
    },
    {
      id: 'taints',
      header: 'Taints',
      width: 180,
      extra: true,
      value: ({ taints }) => taints.map(({ key, effect }) => `${key}:${effect}`),
    },
    { id: 'arch', header: 'Architecture', width: 110, extra: true, value: ({ architecture }) => architecture },
    { id: 'os', header: 'OS', width: 220, extra: true, value: ({ osImage }) => osImage },
    { id: 'ip', header: 'Address', width: 130, extra: true, value: ({ internalIp }) => internalIp || null },
  ]
}

const fields = {
  ready: { kind: 'text' as const, read: ({ ready }: NodeView) => ready, values: ['ready', 'notReady', 'unknown'] },
  role: { kind: 'text' as const, read: ({ roles }: NodeView) => roles },
  pressure: { kind: 'text' as const, read: (node: NodeView) => pressures(node), values: pressureTypes },
  cordoned: { kind: 'text' as const, read: ({ unschedulable }: NodeView) => unschedulable, values: ['yes', 'no'] },
}
const labelsOf = ({ labels }: NodeView) => labels
const nameOf = ({ name }: NodeView) => name
const wordsOf = ({ name, roles }: NodeView) => `${name} ${roles.join(' ')}`

export function NodesTab({ cluster, node }: { cluster: ClusterView; node: string | null }): ReactNode {
  const now = useNow(60_000)
  const { query } = usePlace()
  const columns = useMemo(() => nodeColumns(now, cluster.filtered), [now, cluster.filtered])
  return (
    <PartGate<NodeView> cluster={cluster} type="node">
      {({ rows, stale, note, total, exports }) => (
        <>
          <ResourceTable
            caption={`Nodes of ${cluster.name}`}
            id="nodes"
            noun={rows.size === 1 ? 'node' : 'nodes'}
            rows={rows}
            columns={columns}
            fields={fields}
            labels={labelsOf}
            words={wordsOf}
            rowKey={nameOf}
            sort="status"
            example="ready:* cpu>80 role:* *=*"
            empty={noneOf('nodes', cluster, 'nodes')}
            dim={() => stale}
            note={note}
            alsoExported={exports}
            total={total}
          />
          {node !== null && (
            <NodeDrawer
              cluster={cluster}
              name={node}
              node={rows.get(node)}
              stale={stale}
              isComing={total !== undefined}
              onClose={() => navigate(`${clusterPath(cluster.name, 'nodes')}${query && `?${query}`}`)}
            />
          )}
        </>
      )}
    </PartGate>
  )
}
