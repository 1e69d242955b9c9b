import { IconLock, IconPlugConnectedX, IconPuzzleOff } from '@tabler/icons-react'
import type { ReactNode } from 'react'
import { Empty, Skeleton } from '../../components/states.tsx'
import { Age } from '../../components/text.tsx'
import type { ClusterView, PartView, RowType, RowView } from '../../contract.ts'
import { useAtTime, useRows } from '../../live/hooks.ts'
import { isCurrentPart } from '../../model/current.ts'
import type { ExportColumn } from '../../model/export.ts'
import { partExports } from '../../model/export-columns.ts'
import { Link, whyPath } from '../../router.tsx'

interface PartText {
  /** plural, lower case */
  readonly noun: string
  /** what has to be there for the cluster to serve it */
  readonly served: string
  /** the rule that lets us read it */
  readonly grant: string
}

/** What is told of as read or not: types with rows, and the pods, of which there are sums alone. */
export type ReadType = RowType | 'podSummary'

export const partTexts: Readonly<Record<ReadType, PartText>> = {
  node: {
    noun: 'nodes',
    served: 'nodes',
    grant: 'apiGroups: [""]\nresources: ["nodes", "pods"]\nverbs: ["get", "list"]',
  },
  podSummary: { noun: 'pods', served: 'pods', grant: 'apiGroups: [""]\nresources: ["pods"]\nverbs: ["get", "list"]' },
  namespace: {
    noun: 'namespaces',
    served: 'namespaces',
    grant: 'apiGroups: [""]\nresources: ["namespaces"]\nverbs: ["get", "list"]',
  },
  deployment: {
    noun: 'deployments',
    served: 'deployments',
    grant: 'apiGroups: ["apps"]\nresources: ["deployments"]\nverbs: ["get", "list"]',
  },
  operator: {
    noun: 'operators',
    served: 'OLM (operators.coreos.com)',
    grant:
      'apiGroups: ["operators.coreos.com"]\nresources: ["subscriptions", "clusterserviceversions"]\nverbs: ["get", "list"]',
  },
  clusterOperator: {
    noun: 'cluster operators',
    served: 'ClusterOperators (config.openshift.io, OpenShift only)',
    grant: 'apiGroups: ["config.openshift.io"]\nresources: ["clusteroperators"]\nverbs: ["get", "list"]',
  },
}

export interface PartRows<T> {
  readonly rows: ReadonlyMap<string, T>
  /** the rows are of the past: when the hub last read them, if ever */
  readonly stale: boolean
  readonly note: ReactNode
  /** how many there are, while the others are still coming */
  readonly total: number | undefined
  /** what a file says of each row besides */
  readonly exports: readonly ExportColumn<unknown>[]
}

/** The rows of one type, or the reason why there are none: absent, forbidden, unreachable and empty are four answers. */
export function PartGate<T extends RowView>({
  cluster,
  type,
  children,
}: {
  cluster: ClusterView
  type: RowType
  children: (part: PartRows<T>) => ReactNode
}): ReactNode {
  const rows = useRows<T>(cluster.name, type)
  const part = rows?.part ?? cluster.parts[type] ?? null
  const readAt = part?.freshness?.observedAt ?? null
  const stale = useAtTime((now) => readAt !== null && !isCurrentPart(cluster, part, now))
  const text = partTexts[type]
  if (!rows) return <Skeleton label={`Loading ${text.noun}`} />
  if (part?.outcome === 'absent') {
    return (
      <Empty title={`This cluster does not serve ${text.served}`} icon={<IconPuzzleOff size={30} aria-hidden="true" />}>
        <p>Nothing is wrong: there is nothing of this kind to show. It appears here by itself once it is installed.</p>
      </Empty>
    )
  }
  const failed = part && part.outcome !== 'complete' ? <PartFailures failed={[{ part, type }]} /> : null
  if (!part || readAt === null) {
    return (
      failed ?? (
        <Empty title={`The ${text.noun} have not been read yet`}>
          <p>
            The first round of this cluster has not ended, or ended before it came to them. They appear here by
            themselves.
          </p>
        </Empty>
      )
    )
  }
  const note = (
    <span className={stale ? 'as-of short' : 'as-of'}>
      as of <Age at={readAt} suffix=" ago" focusable />
    </span>
  )
  return (
    <>
      {failed}
      {children({
        rows: rows.items,
        stale: stale || failed !== null,
        note,
        total: rows.arriving?.total,
        exports: partExports(cluster, readAt),
      })}
    </>
  )
}

interface FailedPart {
  readonly type: ReadType
  readonly part: PartView
}

/** One box per cause, however many parts it fails. */
export function PartFailures({ failed }: { failed: readonly FailedPart[] }): ReactNode {
  const causes = new Map<string, [FailedPart, ...FailedPart[]]>()
  for (const each of failed) {
    const { outcome, code, message } = each.part
    // One account lacks all the rights that are missing.
    const key = outcome === 'forbidden' ? outcome : `${code} ${message.replace(/^\S+ \S+: /, '')}`
    const others = causes.get(key)
    if (others) others.push(each)
    else causes.set(key, [each])
  }
  return [...causes].map(([key, parts]) => <PartFailure key={key} parts={parts} />)
}

function PartFailure({ parts }: { parts: readonly [FailedPart, ...FailedPart[]] }): ReactNode {
  const [{ part }] = parts
  const nouns = parts.map(({ type }) => partTexts[type].noun).join(', ')
  const kept = parts.some(({ part }) => part.freshness) ? ` What is shown was read before.` : ''
  if (part.outcome === 'forbidden') {
    return (
      <div className="notice is-degraded">
        <IconLock size={20} aria-hidden="true" />
        <div>
          <p>
            <b>ClusterPulse may not read the {nouns} of this cluster.</b>{' '}
            {[...new Set(parts.map(({ part }) => part.message))].join(' ')}
            {kept}
          </p>
          <p>Give its account a ClusterRole with {parts.length === 1 ? 'this rule' : 'these rules'}:</p>
          <pre>{parts.map(({ type }) => partTexts[type].grant).join('\n\n')}</pre>
        </div>
      </div>
    )
  }
  return (
    <div className="notice is-unhealthy">
      <IconPlugConnectedX size={20} aria-hidden="true" />
      <p>
        <b>The {nouns} could not be read.</b> {part.message} <code>{part.code}</code> tried{' '}
        <Age at={part.attemptedAt} suffix=" ago" focusable />; the next round tries again.{kept}
      </p>
    </div>
  )
}

/** Read, and none left. Who sees a part of the cluster is told the way to the reason. */
export const noneOf = (noun: string, { name, filtered }: ClusterView, type: string): ReactNode => (
  <Empty title={filtered ? `No ${noun} are shown to you` : `No ${noun} here`}>
    <p>They were read, and there are none that you may see.</p>
    {filtered && (
      <Link to={whyPath({ cluster: name, type })} className="button">
        Why?
      </Link>
    )}
  </Empty>
)
