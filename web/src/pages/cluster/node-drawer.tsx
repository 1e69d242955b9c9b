import type { ReactNode } from 'react'
import { Dialog } from '../../components/dialog.tsx'
import { LoadMeter } from '../../components/meter.tsx'
import { Name } from '../../components/name.tsx'
import { Empty, Skeleton } from '../../components/states.tsx'
import { Age, Missing, NotShown } from '../../components/text.tsx'
import type { ClusterView, NodeView } from '../../contract.ts'
import { useLive } from '../../live/hooks.ts'
import { clusterName } from '../../model/cluster.ts'
import { whyNotRead } from '../../model/current.ts'
import { formatBytes, formatCores, formatCount } from '../../model/format.ts'
import { Link, whyPath } from '../../router.tsx'
import { History } from './history.tsx'
import { amountsOf, NodeReady } from './node-status.tsx'

interface DrawerProps {
  readonly cluster: ClusterView
  readonly name: string
  readonly node: NodeView | undefined
  readonly stale: boolean
  /** further nodes are still coming: it may be among them */
  readonly isComing: boolean
  readonly onClose: () => void
}

/** Everything that is known of one node, beside the list it stands in. */
export function NodeDrawer({ cluster, name, node, stale, isComing, onClose }: DrawerProps): ReactNode {
  return (
    <Dialog
      title={<Name text={name} className="mono" />}
      onClose={onClose}
      className={`drawer${stale ? ' is-stale' : ''}`}
    >
      {node ? (
        <Facts cluster={cluster} node={node} />
      ) : isComing ? (
        <Skeleton label={`Loading ${name}`} />
      ) : (
        <Empty title="This node is not there">
          <p>
            {clusterName(cluster)} has no node {name} that you may see. It may have been removed since this link was
            made.
          </p>
          <Link to={whyPath({ cluster: cluster.name, type: 'nodes', name })} className="button">
            Why do I not see it?
          </Link>
        </Empty>
      )}
    </Dialog>
  )
}

function Facts({ cluster, node }: { cluster: ClusterView; node: NodeView }): ReactNode {
  const partAt = useLive((live) => live.fleet.rows.get(`${node.cluster}/node`)?.part?.freshness?.observedAt ?? 0)
  return (
    <>
      <p className="drawer-lead">
        <NodeReady node={node} />
        {node.roles.map((role) => (
          <span className="tag" key={role}>
            {role}
          </span>
        ))}
        <span className="as-of">
          as of <Age at={Math.max(partAt, node.freshness.observedAt)} suffix=" ago" focusable />
        </span>
      </p>
      <div className="drawer-meters">
        <div>
          <h3>CPU</h3>
          <LoadMeter what="CPU" amounts={amountsOf(node, 'cpuCores')} wide hidden={cluster.filtered} />
        </div>
        <div>
          <h3>Memory</h3>
          <LoadMeter what="Memory" amounts={amountsOf(node, 'memoryBytes')} wide hidden={cluster.filtered} />
        </div>
      </div>
      <section>
        <h3>Resources</h3>
        <Resources node={node} filtered={cluster.filtered} />
      </section>
      <section>
        <h3>Pods</h3>
        <Pods node={node} cluster={cluster} />
      </section>
      <section className="drawer-history">
        <h3>History</h3>
        <History cluster={cluster} node={node.name} compact />
      </section>
      <section>
        <h3>Conditions</h3>
        <Conditions node={node} />
      </section>
      {node.taints.length > 0 && (
        <section>
          <h3>Taints</h3>
          <ul className="tags">
            {node.taints.map(({ key, value, effect }) => (
              <li className="tag mono" key={`${key} ${effect}`}>
                {key}
                {value && `=${value}`}:{effect}
              </li>
            ))}
          </ul>
        </section>
      )}
      <section>
        <h3>System</h3>
        <Pairs
          pairs={{
            Kubelet: node.kubeletVersion,
            OS: node.osImage,
            Kernel: node.kernelVersion,
            Runtime: node.containerRuntime,
            Architecture: node.architecture,
            Hostname: node.hostname,
            'Internal address': node.internalIp,
            'External address': node.externalIp,
            Images: formatCount(node.imagesCount),
            'Volumes attached': formatCount(node.volumesAttached),
          }}
        />
        {node.createdAt !== null && (
          <p className="fine">
            Created <Age at={node.createdAt} suffix=" ago" focusable />
          </p>
        )}
      </section>
      <section>
        <h3>Labels</h3>
        <Pairs pairs={node.labels} none="no labels" mono />
      </section>
      <section>
        <h3>Annotations</h3>
        <Pairs pairs={node.annotations} none="no annotations" mono />
      </section>
    </>
  )
}

function Resources({ node, filtered }: { node: NodeView; filtered: boolean }): ReactNode {
  const amount = (value: number | null | undefined, say: (value: number) => string, why: string) =>
    value === null || value === undefined ? <Missing why={why} focusable /> : say(value)
  const untold = 'the node did not tell it'
  const unmeasured = 'metrics.k8s.io is not served or did not measure it'
  const unread = 'the pods of this cluster could not be read'
  const lines = [
    { name: 'CPU', key: 'cpuCores', say: formatCores },
    { name: 'Memory', key: 'memoryBytes', say: formatBytes },
    { name: 'Storage', key: 'storageBytes', say: formatBytes },
    { name: 'Pods', key: 'pods', say: formatCount },
  ] as const
  return (
    <table className="facts">
      <thead>
        <tr>
          <th scope="col">Resource</th>
          <th scope="col">Capacity</th>
          <th scope="col">Allocatable</th>
          <th scope="col">Requested</th>
          <th scope="col">Used</th>
        </tr>
      </thead>
      <tbody>
        {lines.map(({ name, key, say }) => (
          <tr key={key}>
            <th scope="row">{name}</th>
            <td>{amount(node.capacity[key], say, untold)}</td>
            <td>{amount(node.allocatable[key], say, untold)}</td>
            <td>
              {key === 'cpuCores' || key === 'memoryBytes' ? (
                node.requested === null && filtered ? (
                  <NotShown what="what its pods ask for" focusable />
                ) : (
                  amount(node.requested?.[key], say, unread)
                )
              ) : (
                <Missing why="not summed for this resource" />
              )}
            </td>
            <td>
              {key === 'cpuCores' || key === 'memoryBytes' ? (
                node.used === null && filtered ? (
                  <NotShown what="its use, if it is measured" focusable />
                ) : (
                  amount(node.used?.[key], say, unmeasured)
                )
              ) : key === 'pods' ? (
                node.pods === null && filtered ? (
                  <NotShown what="pods" focusable />
                ) : (
                  amount(node.pods?.total, say, unread)
                )
              ) : (
                <Missing why="not measured" />
              )}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

function Pods({ node: { pods }, cluster }: { node: NodeView; cluster: ClusterView }): ReactNode {
  if (pods === null && !cluster.filtered)
    return (
      <p className="fine">
        <Missing why="pods were not read" focusable /> {whyNotRead(cluster, 'podSummary')}
      </p>
    )
  if (pods === null)
    return (
      <p className="fine">
        <NotShown what="pods" focusable /> You do not see all pods of this cluster, so none are counted here.
      </p>
    )
  const phases = ['running', 'pending', 'failed', 'succeeded', 'unknown'] as const
  return (
    <dl className="phases">
      {phases.map((phase) => (
        <div key={phase} className={pods[phase] > 0 && (phase === 'failed' || phase === 'unknown') ? 'short' : ''}>
          <dt>{phase}</dt>
          <dd>{formatCount(pods[phase])}</dd>
        </div>
      ))}
    </dl>
  )
}

/** Ready is good when True, every other condition is good when False. */
const isGood = ({ type, status }: NodeView['conditions'][number]) =>
  type === 'Ready' ? status === 'True' : status === 'False'

function Conditions({ node }: { node: NodeView }): ReactNode {
  if (node.conditions.length === 0) return <p className="fine">The node reports no condition.</p>
  return (
    <table className="facts">
      <thead>
        <tr>
          <th scope="col">Condition</th>
          <th scope="col">Status</th>
          <th scope="col">Since</th>
          <th scope="col">Why</th>
        </tr>
      </thead>
      <tbody>
        {node.conditions.map((condition) => (
          <tr key={condition.type} className={isGood(condition) ? '' : 'bad'}>
            <th scope="row">{condition.type}</th>
            <td>
              {isGood(condition) ? '' : '▲ '}
              {condition.status}
            </td>
            <td>
              {condition.lastTransitionAt === null ? (
                <Missing why="no date given" />
              ) : (
                <Age at={condition.lastTransitionAt} focusable />
              )}
            </td>
            <td>
              {condition.reason}
              {condition.message && <span className="sub">{condition.message}</span>}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

export function Pairs({
  pairs,
  none = 'nothing known',
  mono = false,
}: {
  pairs: Readonly<Record<string, string>>
  none?: string
  mono?: boolean
}): ReactNode {
  const entries = Object.entries(pairs)
  if (entries.length === 0) return <p className="fine">{none}</p>
  return (
    <dl className={`pairs${mono ? ' mono' : ''}`}>
      {entries.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value === '' ? mono ? '""' : <Missing why="not told" focusable /> : value}</dd>
        </div>
      ))}
    </dl>
  )
}
