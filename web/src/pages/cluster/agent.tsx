import type { ReactNode } from 'react'
import { Jointed } from '../../components/name.tsx'
import { ModeMark, Warned } from '../../components/push.tsx'
import { Age, Missing } from '../../components/text.tsx'
import { type AgentView, type ClusterView, rivalryOf } from '../../contract.ts'
import { useAtTime } from '../../live/hooks.ts'
import { formatBytes, formatCount, plural } from '../../model/format.ts'
import { formatLag, heardAt, lagOf, type PushNote, pushStatus } from '../../model/push.ts'

const codes: readonly PushNote['code'][] = [
  ...(['two-agents', 'silent', 'late', 'catching-up'] as const),
  ...(['lost', 'clock', 'plaintext', 'original'] as const),
]

/** How the facts of this cluster come, for its heading: mode, who sends, how late, and what is wrong. */
export function PushStatusLine({ cluster }: { cluster: ClusterView }): ReactNode {
  const instead = useAtTime((now) => pushStatus(cluster, now).instead)
  const text = useAtTime((now) => pushStatus(cluster, now).text)
  const { agent } = cluster
  const lag = lagOf(cluster)
  return (
    <>
      <span className="mode-status" data-tip={text}>
        <ModeMark mode={cluster.mode} odd={instead !== ''} />
        {instead && (
          <span className="short">
            <Warned />
            {instead}
          </span>
        )}
      </span>
      {agent && (
        <span className="as-of">
          {agent.version && `agent ${agent.version} `}
          {agent.connected ? 'connected ' : 'away '}
          <ForSince />
          <Age at={agent.since} focusable />
          {agent.connected && lag !== null && ` · ${formatLag(lag)} lag`}
        </span>
      )}
      {codes.map((code) => (
        <NoteTag key={code} cluster={cluster} code={code} />
      ))}
    </>
  )
}

/** One note while it is true; its words count on with the time. */
function NoteTag({ cluster, code }: { cluster: ClusterView; code: PushNote['code'] }): ReactNode {
  const find = (now: number) => pushStatus(cluster, now).notes.find((note) => note.code === code)
  const word = useAtTime((now) => find(now)?.word ?? null)
  const text = useAtTime((now) => find(now)?.text ?? '')
  const warns = useAtTime((now) => find(now)?.isWarning ?? false)
  if (word === null) return null
  return (
    <span className={warns ? 'tag is-warning' : 'tag'} data-tip={text}>
      {warns && <Warned />}
      {word}
    </span>
  )
}

/** Before an age: on paper, where it is a date, another word. */
const ForSince = (): ReactNode => (
  <>
    <span className="on-screen">for </span>
    <span className="on-paper">since </span>
  </>
)

/** Everything the hub knows of the agent beside a cluster. */
export function AgentPanel({ cluster }: { cluster: ClusterView }): ReactNode {
  const text = useAtTime((now) => pushStatus(cluster, now).text)
  const { agent } = cluster
  if (agent === null && cluster.mode === 'pull') return null
  return (
    <section className="panel" aria-labelledby="agent">
      <h2 id="agent">Agent</h2>
      <p className="fine">{text}.</p>
      {agent && <Facts agent={agent} heard={heardAt(cluster, agent)} lag={lagOf(cluster)} />}
    </section>
  )
}

function Facts({ agent, heard, lag }: { agent: AgentView; heard: number; lag: number | null }): ReactNode {
  const then = agent.connected ? '' : ' when last heard'
  const lines: readonly (readonly [name: string, value: ReactNode])[] = [
    [
      'Stream',
      <>
        {agent.connected ? 'connected ' : 'away '}
        <ForSince />
        <Age at={agent.since} focusable />
        {agent.reason && (
          <span className="sub">
            <Jointed text={rivalryOf(agent) || agent.reason} />
          </span>
        )}
      </>,
    ],
    ['Version', agent.version || <Missing why="the agent has not told it" focusable />],
    ['Protocol', agent.protocol === 'original' ? 'of the original collector' : `version ${agent.protocol}`],
    ['Last message', <Age key="heard" at={heard} suffix=" ago" focusable />],
    ['Lag', lag === null ? <Missing key="lag" why="nothing was read yet" focusable /> : formatLag(lag) + then],
    ['Buffer', <Buffered key="buffer" agent={agent} then={then} />],
    ['Lost', agent.lostBatches === 0 ? 'none' : plural(agent.lostBatches, 'batch', 'batches')],
    ['Clock', clockText(agent.clockOffsetMs)],
    ['Encryption', <Encryption key="tls" tls={agent.tls} />],
  ]
  return (
    <dl className="pairs">
      {lines.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  )
}

function Encryption({ tls }: { tls: boolean }): ReactNode {
  if (tls) return 'TLS'
  return (
    <span className="short">
      <Warned />
      none: plaintext
    </span>
  )
}

/** @param then says of what an agent that is away last told that it is of the past */
function Buffered({ agent, then }: { agent: AgentView; then: string }): ReactNode {
  if (agent.protocol === 'original') return 'it has none'
  if (agent.bufferedBatches === 0) return then === '' ? 'empty: all has arrived' : `empty${then}`
  return (
    <>
      {formatCount(agent.bufferedBatches)} {agent.bufferedBatches === 1 ? 'batch' : 'batches'},{' '}
      {formatBytes(agent.bufferedBytes)}
      {then}
      {agent.oldestBufferedAt !== null && (
        <span className="sub">
          the oldest from <Age at={agent.oldestBufferedAt} suffix=" ago" focusable />
        </span>
      )}
    </>
  )
}

const clockText = (offsetMs: number): string =>
  Math.abs(offsetMs) < 50 ? "as the hub's" : `${formatLag(Math.abs(offsetMs))} ${offsetMs > 0 ? 'ahead' : 'behind'}`
