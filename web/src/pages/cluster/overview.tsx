import { IconExternalLink } from '@tabler/icons-react'
import { type ReactNode, useCallback, useMemo } from 'react'
import { HealthMark, HeartbeatStrip, heartbeatText } from '../../components/health.tsx'
import { LoadMeter, loadText } from '../../components/meter.tsx'
import { Jointed } from '../../components/name.tsx'
import { Kept } from '../../components/past.tsx'
import { Age, Cause, Missing, NotShown } from '../../components/text.tsx'
import { type ClusterView, type PartView, type RowType, unfinishedPods } from '../../contract.ts'
import { newestFirst } from '../../live/fleet.ts'
import { useAtTime, useHub, useLive } from '../../live/hooks.ts'
import { useAnswer } from '../../live/use-answer.ts'
import { isHidden, isServed, type Need, unverifiedText } from '../../model/cluster.ts'
import {
  hasFailed,
  isCurrent,
  isCurrentPart,
  type PartType,
  pastText,
  readAt,
  whyNotRead,
} from '../../model/current.ts'
import { eventLine } from '../../model/events.ts'
import { formatBytes, formatCores, formatCount, formatSpan } from '../../model/format.ts'
import { partTexts, type ReadType } from '../../model/part-texts.ts'
import { type ClusterTab, clusterPath, Link } from '../../router.tsx'
import { AgentPanel } from './agent.tsx'
import { PartFailures } from './part.tsx'

export function OverviewTab({ cluster }: { cluster: ClusterView }): ReactNode {
  return (
    <div className="overview">
      <StatusPanel cluster={cluster} />
      <Capacity cluster={cluster} title="CPU" />
      <Capacity cluster={cluster} title="Memory" />
      <Counts cluster={cluster} />
      <Identity cluster={cluster} />
      <div className="stack is-wide">
        <Latest cluster={cluster} />
        <AgentPanel cluster={cluster} />
        <Reading cluster={cluster} />
      </div>
    </div>
  )
}

function StatusPanel({ cluster }: { cluster: ClusterView }): ReactNode {
  // What is not heard any more may not be so since.
  const heardAt = useLive(({ waitingSince }) => waitingSince)
  const beats = useAtTime((now) => heartbeatText(cluster, heardAt === null ? now : Math.min(now, heardAt)))
  return (
    <section className="panel is-wide" aria-labelledby="status">
      <h2 id="status">How it is</h2>
      {cluster.reasons.length > 0 ? (
        <ul className="reasons">
          {cluster.reasons.map(({ code, message }) => (
            <li key={`${code} ${message}`}>
              <Cause message={message} /> <code>{code}</code>
            </li>
          ))}
        </ul>
      ) : (
        <p>
          <Cause message={cluster.message} />
        </p>
      )}
      <div className="beats">
        <HeartbeatStrip heartbeats={cluster.heartbeats} filtered={cluster.filtered} />
        <p className="fine">{beats}</p>
      </div>
    </section>
  )
}

function Capacity({ cluster, title }: { cluster: ClusterView; title: 'CPU' | 'Memory' }): ReactNode {
  const amounts = title === 'CPU' ? cluster.cpuCores : cluster.memoryBytes
  const say = title === 'CPU' ? formatCores : formatBytes
  const lines = [
    ['Used', amounts.used, 'metrics.k8s.io is not served or did not answer', 'its use, if it is measured'],
    ['Requested', amounts.requested, `pods: ${whyNotRead(cluster, 'podSummary')}`, 'what its pods ask for'],
    ['Allocatable', amounts.allocatable, 'nodes were never read', 'its nodes'],
    ['Capacity', amounts.capacity, 'nodes were never read', 'its nodes'],
  ] as const
  const hidden = isHidden(cluster, 'node')
  const current = useAtTime((now) => isCurrent(cluster, 'node', now))
  const at = readAt(cluster, 'node')
  return (
    <section className={current ? 'panel' : 'panel past'} aria-label={title}>
      <h2>{title}</h2>
      <LoadMeter what={title} amounts={amounts} wide hidden={hidden} />
      <dl className="pairs">
        {lines.map(([name, value, why, what]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>
              {value !== null ? (
                say(value)
              ) : hidden ? (
                <NotShown what={what} focusable />
              ) : (
                <Missing why={why} focusable />
              )}
            </dd>
          </div>
        ))}
      </dl>
      <p className="vh">{loadText(title, amounts, hidden)}</p>
      {!current && at !== null && (
        <p className="fine">
          as of <Age at={at} suffix=" ago" focusable />
        </p>
      )}
    </section>
  )
}

function deploymentsText({ total, ready }: NonNullable<ClusterView['deployments']>): string {
  return ready === null ? formatCount(total) : `${formatCount(ready)} of ${formatCount(total)} ready`
}

/** Completed pods are no part of those that ought to run, as on the fleet page. */
const podsText = (pods: NonNullable<ClusterView['pods']>): string =>
  [
    `${formatCount(pods.running)} running of ${formatCount(unfinishedPods(pods))}`,
    ...(pods.succeeded > 0 ? [`${formatCount(pods.succeeded)} completed`] : []),
  ].join(', ')

function Counts({ cluster }: { cluster: ClusterView }): ReactNode {
  const { nodes, pods, namespaces, deployments, operators, clusterOperators } = cluster
  const lines: {
    name: string
    /** null: no page shows it */
    tab: ClusterTab | null
    text: string | null
    rest: string | null
    type: RowType
    /** where the number comes from, if that is not what may be hidden */
    from?: PartType
  }[] = [
    {
      name: 'Nodes',
      tab: 'nodes',
      type: 'node',
      text: nodes && `${formatCount(nodes.ready)} of ${formatCount(nodes.total)} ready`,
      rest: nodes && told([[nodes.unschedulable, 'cordoned']]),
    },
    {
      name: 'Pods',
      tab: null,
      type: 'node',
      from: 'podSummary',
      text: pods && podsText(pods),
      rest:
        pods &&
        told([
          [pods.pending, 'pending'],
          [pods.failed, 'failed'],
          [pods.unknown, 'unknown'],
        ]),
    },
    {
      name: 'Namespaces',
      tab: 'namespaces',
      type: 'namespace',
      text: namespaces === null ? null : formatCount(namespaces),
      rest: null,
    },
    {
      name: 'Deployments',
      tab: 'deployments',
      type: 'deployment',
      text: deployments && deploymentsText(deployments),
      rest: null,
    },
    {
      name: 'Operators',
      tab: 'operators',
      type: 'operator',
      text: operators && formatCount(operators.total),
      rest: operators && told([[operators.failing, 'failed']]),
    },
    {
      name: 'Cluster operators',
      tab: 'cluster-operators',
      type: 'clusterOperator',
      text: clusterOperators && formatCount(clusterOperators.total),
      rest:
        clusterOperators &&
        told([
          [clusterOperators.degraded, 'degraded'],
          [clusterOperators.unavailable, 'not available'],
        ]),
    },
  ]
  const isThere = ({ type }: { type: RowType }) =>
    (type !== 'operator' && type !== 'clusterOperator') || isServed(cluster, type)
  return (
    <section className="panel" aria-labelledby="contents">
      <h2 id="contents">What runs</h2>
      <dl className="pairs">
        {lines.filter(isThere).map(({ name, tab, type, from = type, text, rest }) => (
          <div key={name}>
            <dt>{tab === null ? name : <Link to={clusterPath(cluster.name, tab)}>{name}</Link>}</dt>
            <dd>
              {text === null ? (
                isHidden(cluster, type) ? (
                  <NotShown what={name.toLowerCase()} focusable />
                ) : (
                  <Missing why={from === type ? whyNot(cluster, type) : whyNotRead(cluster, from)} focusable />
                )
              ) : (
                <Kept cluster={cluster} type={from}>
                  {text}
                  {rest && <span className="short"> · {rest}</span>}
                  <KeptAge cluster={cluster} type={from} />
                </Kept>
              )}
            </dd>
          </div>
        ))}
      </dl>
    </section>
  )
}

/** Beside a number that is of the past: of when it is. */
function KeptAge({ cluster, type }: { cluster: ClusterView; type: PartType }): ReactNode {
  const isPast = useAtTime((now) => pastText(cluster, type, now) !== '')
  const at = readAt(cluster, type)
  if (!isPast || at === null) return null
  return (
    <>
      {' '}
      · as of <Age at={at} suffix=" ago" />
    </>
  )
}

const whyNot = (cluster: ClusterView, type: RowType): string =>
  cluster.parts[type]?.outcome === 'absent'
    ? `this cluster does not serve ${partTexts[type].served}`
    : whyNotRead(cluster, type)

/** Only what there is some of. */
const told = (counts: readonly (readonly [count: number, word: string])[]): string | null =>
  counts
    .filter(([count]) => count > 0)
    .map(([count, word]) => `${formatCount(count)} ${word}`)
    .join(', ') || null

function Identity({ cluster }: { cluster: ClusterView }): ReactNode {
  const { facts } = cluster
  const why = 'the cluster has not told it'
  const read = (fact: string | null | undefined) =>
    fact && (
      <Kept cluster={cluster} type="cluster">
        <Jointed text={fact} />
      </Kept>
    )
  const lines: (readonly [string, ReactNode, string?])[] = [
    ['Distribution', read(facts?.distribution === 'openshift' ? 'OpenShift' : facts && 'Kubernetes')],
    ['Version', read(facts?.version)],
    ['Update available', read(facts?.updateVersion), 'none is offered, or the cluster does not say'],
    ['Platform', read(facts?.platform)],
    // Only OpenShift has these.
    ...(facts?.distribution === 'openshift'
      ? ([
          ['Channel', read(facts.channel)],
          ['Cluster id', facts.clusterId],
        ] as const)
      : []),
    ['API', cluster.endpoint || facts?.apiUrl],
    // One process alone needs no name.
    ...(cluster.owner === undefined ? [] : [['Owner process', cluster.owner] as const]),
  ]
  return (
    <section className="panel" aria-labelledby="identity">
      <h2 id="identity">What it is</h2>
      <dl className="pairs">
        {lines.map(([name, value, reason]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd className="mono">
              {typeof value === 'string' ? (
                <Jointed text={value} />
              ) : (
                value || <Missing why={reason ?? why} focusable />
              )}
            </dd>
          </div>
        ))}
        <div>
          <dt>Console</dt>
          <dd>
            {isWeb(facts?.consoleUrl) ? (
              <a href={facts?.consoleUrl ?? ''} target="_blank" rel="noreferrer">
                open <IconExternalLink size={13} aria-hidden="true" />
                <span className="vh">the console of {cluster.name} in a new tab</span>
              </a>
            ) : (
              <Missing why="the cluster names no console" focusable />
            )}
          </dd>
        </div>
      </dl>
      {Object.keys(cluster.labels).length > 0 && (
        <ul className="tags" aria-label="Labels">
          {Object.entries(cluster.labels).map(([key, value]) => (
            <li key={key}>
              <Link className="tag mono" to={`/?q=${encodeURIComponent(`${key}=${value}`)}`}>
                <Jointed text={`${key}=${value}`} />
              </Link>
            </li>
          ))}
        </ul>
      )}
    </section>
  )
}

/** An address from a cluster is shown as a link only when a browser cannot run it. */
const isWeb = (url: string | null | undefined): boolean => /^https?:\/\//i.test(url ?? '')

const rowTypes: readonly RowType[] = ['node', 'namespace', 'deployment', 'operator', 'clusterOperator']
/** Pods have a line of their own where they are read apart from the nodes, and not like them. */
const readTypes = (cluster: ClusterView): readonly ReadType[] => {
  const pods = cluster.parts.podSummary
  return !pods || pods.outcome === cluster.parts.node?.outcome ? rowTypes : ['node', 'podSummary', ...rowTypes.slice(1)]
}
const outcomeWord = { complete: 'read', absent: 'not served', forbidden: 'forbidden', unreachable: 'not readable' }
const outcomeNeed = { complete: 'healthy', absent: 'unknown', forbidden: 'degraded', unreachable: 'unhealthy' } as const

/** How one type is read: by its own last read, unless the round it is due in does not get that far. */
function readingOf(cluster: ClusterView, part: PartView | undefined, now: number): { need: Need; word: string } {
  if (!part) return { need: 'unknown', word: 'not yet' }
  if (part.outcome !== 'complete' || isCurrentPart(cluster, part, now))
    return { need: outcomeNeed[part.outcome], word: outcomeWord[part.outcome] }
  return { need: 'stale', word: 'not read since' }
}

function Reading({ cluster }: { cluster: ClusterView }): ReactNode {
  const types = readTypes(cluster)
  const failed = types.flatMap((type) => {
    const part = cluster.parts[type]
    // What fails the cluster as a whole is said above, once.
    const isSaid = cluster.reasons.some(({ code }) => code === part?.code)
    return part && !isSaid && (part.outcome === 'forbidden' || part.outcome === 'unreachable') ? [{ type, part }] : []
  })
  return (
    <section className="panel" aria-labelledby="reading">
      <h2 id="reading">How it is read</h2>
      <p className="fine">
        {cluster.source === 'pull' ? 'By the hub' : 'By an agent beside the cluster'}, every{' '}
        {formatSpan(cluster.intervalMs)}.{' '}
        {cluster.checkedAt === null ? (
          'No round has ended yet.'
        ) : (
          <>
            Last round <Age at={cluster.checkedAt} suffix=" ago" focusable />
            {hasFailed(cluster) ? <b className="short">; it did not read the cluster.</b> : '.'}
          </>
        )}
        {cluster.insecureSkipTlsVerify && <b className="short"> {unverifiedText(cluster)}</b>}
      </p>
      <ul className="outcomes">
        {types.map((type) => (
          <ReadingLine key={type} cluster={cluster} type={type} />
        ))}
      </ul>
      <Polled said={cluster.polled ?? []} />
      <PartFailures failed={failed} />
    </section>
  )
}

/** What is seen only with each round, and why. */
function Polled({ said }: { said: readonly string[] }): ReactNode {
  if (said.length === 0) return null
  return (
    <>
      <p className="fine">Read with every round, and not watched in between:</p>
      <ul className="fine">
        {said.map((one) => (
          <li key={one}>{one}</li>
        ))}
      </ul>
    </>
  )
}

function ReadingLine({ cluster, type }: { cluster: ClusterView; type: ReadType }): ReactNode {
  const part = cluster.parts[type]
  const need = useAtTime((now) => readingOf(cluster, part, now).need)
  const word = useAtTime((now) => readingOf(cluster, part, now).word)
  return (
    <li>
      <HealthMark need={need} bare word="" />
      <span>{partTexts[type].noun}</span>
      <span className="fine">
        {word}
        {part?.freshness && (
          <>
            {' '}
            · as of <Age at={part.freshness.observedAt} suffix=" ago" />
          </>
        )}
        {type === 'operator' && part?.freshness && cluster.operatorIntervalMs > cluster.intervalMs && (
          <>, every {formatSpan(cluster.operatorIntervalMs)}</>
        )}
      </span>
    </li>
  )
}

function Latest({ cluster }: { cluster: ClusterView }): ReactNode {
  const { client } = useHub()
  const { name } = cluster
  const ask = useCallback((signal: AbortSignal) => client.events(name, { limit: 30 }, signal), [client, name])
  const [answer, again] = useAnswer(ask)
  const heard = useLive((live) => live.fleet.events)
  const lines = useMemo(() => {
    const told = answer.state === 'here' ? answer.value.items : []
    const mine = heard.filter((event) => event.cluster === name)
    return newestFirst(mine, told)
      .filter(({ type }) => type !== 'cluster.reconciled')
      .slice(0, 6)
      .map(eventLine)
  }, [heard, answer, name])
  return (
    <section className="panel changes" aria-labelledby="latest">
      <h2 id="latest">Latest events</h2>
      {answer.state === 'failed' && (
        <p className="fine">
          They could not be loaded: {answer.problem.message}{' '}
          <button type="button" className="text-button" onClick={again}>
            Retry
          </button>
        </p>
      )}
      {lines.length === 0 && answer.state === 'here' && <p className="calm">Nothing has happened so far.</p>}
      <ol>
        {lines.map((line) => (
          <li key={line.key}>
            <Age at={line.at} />
            <HealthMark need={line.need} bare word="" />
            <span {...(line.detail !== '' && { 'data-tip': line.detail, tabIndex: 0 })}>
              <Jointed text={line.text} />
            </span>
          </li>
        ))}
      </ol>
      <p>
        <Link to={clusterPath(name, 'events')}>All events</Link>
      </p>
    </section>
  )
}
