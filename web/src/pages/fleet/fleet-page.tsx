import { IconEyeOff, IconLayoutGrid, IconTable } from '@tabler/icons-react'
import { type ReactNode, useMemo, useRef } from 'react'
import { pastClass, SumAge } from '../../components/past.tsx'
import { ResourceTable, type TableView } from '../../components/resource-table.tsx'
import { EmptySet, insteadOfSet, SetChoice } from '../../components/set-choice.tsx'
import { Empty } from '../../components/states.tsx'
import { useMedia } from '../../components/use-media.ts'
import { usePrinting } from '../../components/use-printing.ts'
import { useStill } from '../../components/use-still.ts'
import type { ClusterView } from '../../contract.ts'
import { useClusters, useNow } from '../../live/hooks.ts'
import { isMeant, useClusterSet } from '../../live/use-cluster-set.ts'
import { needOf, needWord } from '../../model/cluster.ts'
import { isCurrent, oldestAt } from '../../model/current.ts'
import { formatCount, formatPercent, plural } from '../../model/format.ts'
import { groupingFault, groupings } from '../../model/grouping.ts'
import { sumLoad, sumNodes, sumPods } from '../../model/sums.ts'
import { releaseOf } from '../../model/versions.ts'
import { usePreference } from '../../preferences.ts'
import { accessPath, guidePath, Link, useQueryValue } from '../../router.tsx'
import { useSession } from '../../session.ts'
import { PageHeading } from '../../shell/page-heading.tsx'
import { Attention, RecentChanges } from './attention.tsx'
import { ClusterCards } from './cards.tsx'
import { fleetColumns, fleetFields, versionOf } from './columns.tsx'
import { countNeeds, Headline, NeedCounts } from './headline.tsx'
import { useLosses } from './use-losses.ts'

/** Each number of a row is as old as its own list: the row is as old as the oldest. */
const alsoExported = [{ id: 'oldestAsOf', header: 'Oldest number as of', kind: 'time' as const, value: oldestAt }]
const labelsOf = ({ labels }: ClusterView) => labels
const nameOf = ({ name }: ClusterView) => name
const wordsOf = ({ name, displayName, labels }: ClusterView) =>
  `${name} ${displayName} ${Object.values(labels).join(' ')}`

/** The columns of the fleet need more room than that, even without what gives way. */
const NARROWER_THAN_TABLE = '(max-width: 1015px)'

/** The fleet, or the clusters of the set that the address names. */
export function FleetPage(): ReactNode {
  const all = useClusters()
  const set = useClusterSet()
  const byName = useMemo(
    () => (set.state === 'all' ? all : new Map([...all].filter(([name]) => isMeant(set, name)))),
    [all, set],
  )
  const instead = insteadOfSet(set)
  if (all.size === 0) return <NoClusters />
  if (instead !== null || byName.size === 0)
    return (
      <>
        <PageHeading title="Fleet" after={<SetChoice />}>
          Fleet
        </PageHeading>
        {instead ?? (set.state === 'here' && <EmptySet name={set.name} />)}
      </>
    )
  return <Fleet byName={byName} set={set.state === 'here' ? set.name : ''} />
}

/** @param set '' for all clusters */
function Fleet({ byName, set }: { byName: ReadonlyMap<string, ClusterView>; set: string }): ReactNode {
  const clusters = useMemo(() => [...byName.values()], [byName])
  const now = useNow()
  const columns = useMemo(() => fleetColumns(now), [now])
  const fields = useMemo(() => fleetFields(now), [now])
  const [layout, setLayout] = usePreference('layout', 'table')
  const [grouping, setGrouping] = useQueryValue('group')
  const isNarrow = useMedia(NARROWER_THAN_TABLE)
  const subtotal = useMemo(() => (rows: readonly ClusterView[]) => <Subtotal clusters={rows} now={now} />, [now])
  const group = useMemo(() => {
    const of = groupOf(grouping, now)
    return of ? { of, subtotal } : undefined
  }, [grouping, now, subtotal])
  const keys = useMemo(() => [...new Set(clusters.flatMap(({ labels }) => Object.keys(labels)))].sort(), [clusters])
  const fault = groupingFault(grouping, keys)
  const isPrinting = usePrinting()
  // On paper there is one table, whatever its width.
  const asCards = (layout === 'cards' || isNarrow) && !isPrinting
  const cards = useMemo(
    () => (asCards ? (view: TableView<ClusterView>) => <ClusterCards {...view} subtotal={subtotal} /> : undefined),
    [asCards, subtotal],
  )

  const losses = useLosses(clusters)
  const panels = useRef<HTMLDivElement>(null)
  const below = useStill(panels)
  const needy = clusters.length - countNeeds(clusters, now).healthy
  const of = set === '' ? '' : ` in ${set}`
  const partial = clusters.filter(({ filtered }) => filtered).length
  return (
    <>
      <PageHeading title="Fleet" after={<NeedCounts clusters={clusters} now={now} />}>
        {needy === 0
          ? `All ${plural(clusters.length, 'cluster')}${of} healthy`
          : `${formatCount(needy)} of ${plural(clusters.length, 'cluster')}${of} ${needy === 1 ? 'needs' : 'need'} you`}
      </PageHeading>
      <Headline clusters={clusters} now={now} />
      <div className="panels" ref={panels}>
        <Attention clusters={clusters} losses={losses} now={now} />
        <RecentChanges clusters={clusters} losses={losses} now={now} />
      </div>
      <h2 className="vh">Clusters</h2>
      <div {...below}>
        <ResourceTable
          caption="Clusters of the fleet"
          id="clusters"
          noun={clusters.length === 1 ? 'cluster' : 'clusters'}
          rows={byName}
          columns={columns}
          fields={fields}
          labels={labelsOf}
          words={wordsOf}
          rowKey={nameOf}
          sort="needs"
          alsoExported={alsoExported}
          rowHeight={46}
          example="health:* *=* version:* cpu>80 name~*"
          empty={null}
          dim={(cluster) => !isCurrent(cluster, 'node', now)}
          group={group}
          instead={cards}
          note={
            <>
              {partial > 0 && <span className="as-of">you see a part of {formatCount(partial)} of them</span>}
              {fault && (
                <span className="short" role="status">
                  {fault.text}
                  {fault.meant !== null && (
                    <>
                      ; did you mean{' '}
                      <button type="button" className="text-button" onClick={() => setGrouping(fault.meant)}>
                        {fault.meant}
                      </button>
                      ?
                    </>
                  )}
                </span>
              )}
            </>
          }
          controls={
            <>
              <SetChoice />
              <GroupChoice labels={keys} value={fault ? '' : grouping} onChange={setGrouping} />
              {!isNarrow && (
                <fieldset className="switch" aria-label="Layout">
                  <button
                    type="button"
                    aria-pressed={!asCards}
                    onClick={() => setLayout('table')}
                    aria-label="Table"
                    data-tip="Table"
                  >
                    <IconTable size={16} aria-hidden="true" />
                  </button>
                  <button
                    type="button"
                    aria-pressed={asCards}
                    onClick={() => setLayout('cards')}
                    aria-label="Cards"
                    data-tip="Cards"
                  >
                    <IconLayoutGrid size={16} aria-hidden="true" />
                  </button>
                </fieldset>
              )}
            </>
          }
        />
      </div>
    </>
  )
}

/** Nothing is connected, which only an administrator can know; or nothing is for your eyes, with the way to the reason. */
function NoClusters(): ReactNode {
  const session = useSession()
  const administrator = session?.user?.administrator === true
  return (
    <>
      <PageHeading title="Fleet">No cluster to show</PageHeading>
      <Empty
        title={administrator ? 'No cluster is connected yet' : 'No cluster is shown to you'}
        {...(!administrator && { icon: <IconEyeOff size={30} aria-hidden="true" /> })}
      >
        {administrator ? <HowToConnect /> : <NoGrant />}
      </Empty>
    </>
  )
}

function NoGrant(): ReactNode {
  const user = useSession()?.user
  return (
    <>
      {user && (
        <p>
          You are known as <b>{user.username}</b>
          {user.groups.length > 0 ? ` in ${user.groups.join(', ')}` : ', in no group'}, and no policy shows you a
          cluster of this fleet. Ask whoever runs this hub for access. Clusters appear here by themselves.
        </p>
      )}
      <p className="state-ways">
        <Link to={accessPath('me')} className="button">
          What may I see?
        </Link>
        <Link to={accessPath('why')} className="button">
          Why do I not see a cluster?
        </Link>
      </p>
    </>
  )
}

const HowToConnect = (): ReactNode => (
  <>
    <p>Connect the clusters of a kubeconfig, read-only:</p>
    <pre>npx clusterpulse up --kubeconfig FILE</pre>
    <p>
      On a Kubernetes hub, create a Secret and a ClusterConnection; the{' '}
      <Link to={guidePath('kubernetes-hub')}>guide</Link> shows both. Clusters appear here by themselves.
    </p>
  </>
)

function GroupChoice({
  labels,
  value,
  onChange,
}: {
  labels: readonly string[]
  value: string
  onChange: (value: string | null) => void
}): ReactNode {
  return (
    <label className="select">
      <span>Group</span>
      <select value={value} onChange={(event) => onChange(event.target.value)}>
        <option value="">none</option>
        {groupings.map((word) => (
          <option key={word}>{word}</option>
        ))}
        {labels.map((key) => (
          <option key={key} value={`label:${key}`}>
            {key}
          </option>
        ))}
      </select>
    </label>
  )
}

function groupOf(grouping: string, now: number): ((cluster: ClusterView) => string) | undefined {
  if (grouping === 'health') return (cluster) => needWord[needOf(cluster, now)]
  if (grouping === 'version') return (cluster) => releaseOf(versionOf(cluster) ?? 'version not known')
  if (grouping === 'distribution') return ({ facts }) => facts?.distribution ?? 'distribution not known'
  if (grouping === 'platform') return ({ facts }) => facts?.platform ?? 'platform not known'
  const key = /^label:(.+)$/.exec(grouping)?.[1]
  return key === undefined ? undefined : ({ labels }) => labels[key] ?? `no ${key}`
}

/** Of a group, as the headline of the fleet: what was never read is no zero, and what is old says so. */
function Subtotal({ clusters, now }: { clusters: readonly ClusterView[]; now: number }): ReactNode {
  const nodes = sumNodes(clusters, now)
  const pods = sumPods(clusters, now)
  const cpu = sumLoad(clusters, 'cpuCores', now)
  if (nodes === null) return `${plural(clusters.length, 'cluster')} · nothing known of nodes`
  return (
    <span className={pastClass(nodes)}>
      {plural(clusters.length, 'cluster')} · {formatCount(nodes.part)}/{formatCount(nodes.all)} nodes ready
      {pods && ` · ${formatCount(pods.part)} pods running`}
      {cpu && ` · CPU ${formatPercent(cpu.load.ratio)} ${cpu.load.basis}`}
      {cpu && cpu.counted < clusters.length && ` in ${formatCount(cpu.counted)}`} · <SumAge basis={nodes} />
    </span>
  )
}
