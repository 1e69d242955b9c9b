import { seconds } from './clock.ts'

/** The agent beside a cluster, as the hub sees it. Times by the hub's clock, ms since the Unix epoch. */
export interface AgentFacts {
  readonly connected: boolean
  /** since when it is so */
  readonly since: number
  /** why the stream ended, for people; while it lives, who else speaks for the cluster: '' where nobody does */
  readonly reason: string
  readonly version: string
  /** `original`: a collector of the original, which buffers nothing; else the version of the wire */
  readonly protocol: 'original' | number
  /** the last message of any sort */
  readonly heartbeatAt: number
  /** batches and bytes in its buffer that await an ack, as it last said */
  readonly bufferedBatches: number
  readonly bufferedBytes: number
  /** collection time of the oldest of them; null where none waits */
  readonly oldestBufferedAt: number | null
  /** batches it declared lost since its buffer was made */
  readonly lostBatches: number
  /** its clock minus ours, ms */
  readonly clockOffsetMs: number
  /** the stream is encrypted, and how it proved who it is */
  readonly tls: boolean
  readonly method: 'token' | 'certificate' | 'connection-token'
  /** version of the plan it works by; '' where it has none */
  readonly plan: string
  /** what it reads with every round though it could be followed, and why, for people; absent: nothing */
  readonly polled?: readonly string[]
  /** rises with every stream of the cluster; the newest wins */
  readonly epoch: number
  /** which process of the hub has the stream's session, and the cluster's log and state; absent: there is one alone */
  readonly process?: string
}

/** Reason of a cluster for which two agents speak. */
export const TWO_AGENTS = 'TwoAgents'

/** Who speaks for the cluster beside the agent that is served, what becomes of the two, and what a person does; '': nobody. */
export const rivalryOf = ({ connected, reason }: Pick<AgentFacts, 'connected' | 'reason'>): string =>
  connected && reason !== '' ? `${reason}: ${RIVALS}` : ''
const RIVALS =
  'the newer stream is served, the other is made to wait; stop one of them; where one is not yours, revoke the member or change its token'

/** Why a stream ended that the hub did not end, such as for a new certificate. */
export const AGENT_ENDED = 'the agent ended the stream'
/** Why streams ended that the hub ended as it stopped; true as long as the agent is away, also once the hub is there again. */
export const HUB_STOPPED = 'the hub stopped, and the agent has not come back since'
/** The hub is there again, and gives the agent time to come back. */
export const HUB_STARTED = 'the hub was started, and waits for the agent'
/** The same, once that time is over. */
export const HUB_RESTARTED = 'the hub was restarted, and the agent has not come back since'

/** Away for longer, an agent is lost: who noticed and wrote it has said so within 15 s. A restart of an agent takes less. */
export const AGENT_LOST_MS = seconds(10)
/** So long agents have to come back to a hub that was away itself: they try once a minute at least. With a write it is 75 s. */
export const AGENTS_RETURN_MS = seconds(70)

/** Of one that is away: what the hub knows of is an absence of its own. */
export const isHubsAbsence = ({ reason }: Pick<AgentFacts, 'reason'>): boolean =>
  reason === HUB_STOPPED || reason === HUB_STARTED

/** How long it may be away, from `since` on, before it is lost, ms. */
export const patienceMs = (agent: Pick<AgentFacts, 'reason'>): number =>
  isHubsAbsence(agent) ? AGENTS_RETURN_MS : AGENT_LOST_MS

/**
 * Until when nobody needs to do anything though nothing was heard of it: it is away because the hub was, or came a moment ago and is
 * about to deliver. In the past where it is neither.
 */
export const awaitedUntil = (agent: Pick<AgentFacts, 'connected' | 'reason' | 'since'>): number =>
  agent.since + (agent.connected ? AGENT_LOST_MS : isHubsAbsence(agent) ? AGENTS_RETURN_MS : 0)

/** First and last of a run of sequences, both included. */
export type SequenceRange = readonly [first: number, last: number]

/** Why the buffer of an agent does not have what it once had. */
export const bufferCauses = ['thinned', 'dropped', 'damaged'] as const
/** Why an agent lost batches of its own buffer. */
export type BufferCause = (typeof bufferCauses)[number]
/**
 * Why history has nothing of a cluster: the hub, which reads it itself, did not run; its disk, or its log within its bound, had no room;
 * the cluster could not be read; rounds left nothing for another reason; or, of an agent, the hub once had it and its folder was put back;
 * or the agent did not run, and nobody else read the cluster; or nothing came from there, and what an agent still delivers of that time
 * takes the place of it.
 */
export const holeCauses = [
  'hub_down',
  'disk_full',
  'log_full',
  'unreachable',
  'not_kept',
  'restored',
  'agent_down',
  'not_received',
] as const
/** Why the history of a cluster has a hole. */
export type HoleCause = (typeof holeCauses)[number]

/** Batches that will never come: thinned or dropped because the buffer was full, or damaged in it. */
export interface Loss {
  readonly origin: string
  /** of the declaration itself, in the same numbering as batches */
  readonly sequence: number
  readonly lost: readonly SequenceRange[]
  /** collection times of the first and the last of them, ms */
  readonly from: number
  readonly to: number
  readonly cause: BufferCause | HoleCause
  /** how many batches */
  readonly count: number
  /** where thinned: one batch was kept per this time, ms; else 0 */
  readonly keptEveryMs: number
}

/** What is to be collected from one cluster, and how often. Equal versions mean equal plans. */
export interface Plan {
  readonly version: string
  readonly intervalMs: number
  readonly timeoutMs: number
  readonly operatorScanIntervalMs: number
  /** compiled MetricSources, as documented in Redis */
  readonly sources: readonly unknown[]
  /** kinds of rows that are compiled in, by name; those an agent does not know are passed over. Absent: none */
  readonly resources?: readonly string[]
  /** time between two readings of what nodes and pods use, where `resources` names them, ms; absent: intervalMs */
  readonly refreshMs?: number
  /** how kubelets are asked for disks; an agent that does not know the word asks none. Absent: not at all */
  readonly kubelets?: string
}
