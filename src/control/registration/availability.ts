import { type AgentFacts, type ClusterState, HUB_RESTARTED, HUB_STARTED, minutes, patienceMs, seconds } from '#model'

/** What is said of a condition; absent: it stays as it is. */
export interface Said {
  readonly status: 'True' | 'False' | 'Unknown'
  readonly reason: string
  readonly message: string
}

/** What is to be said now, and in how many ms to look again; undefined: when something moves. */
export interface Verdict {
  readonly said: Said | undefined
  readonly againMs: number | undefined
}

/** Heartbeat of a member, ms; 0 and less count as the default. */
export const leaseMs = (leaseDurationSeconds: number | undefined): number =>
  seconds(leaseDurationSeconds !== undefined && leaseDurationSeconds > 0 ? leaseDurationSeconds : 60)

/** How many heartbeats may be missing. */
const GRACE = 5
export const graceMs = (leaseDurationSeconds: number | undefined): number => GRACE * leaseMs(leaseDurationSeconds)

/** What the hub saw of the lease of an agent that renews it itself. */
export interface LeaseSeen {
  /** when the hub saw it renewed, ms, by the same clock as `now` */
  readonly seenAt: number
}

/**
 * Judges a member by its lease. It is renewed when the hub sees that it was: whatever the member's clock shows. Only the
 * agent says that a member is available; the hub says when nobody says so any more, once.
 */
export function judgeLease(inputs: {
  /** undefined: there is none */
  readonly lease: LeaseSeen | undefined
  readonly isDeleting: boolean
  /** it has no rights to renew it by */
  readonly isRevoked: boolean
  readonly graceMs: number
  /** the condition Available as stored */
  readonly stored: Said['status'] | undefined
  readonly now: number
}): Verdict {
  const { lease, isDeleting, isRevoked, graceMs, stored, now } = inputs
  // Of one of which nothing was ever said there is nothing to end.
  if (isRevoked) return { said: stored === undefined || stored === 'Unknown' ? undefined : revoked, againMs: undefined }
  if (!lease) return { said: isDeleting && stored !== 'Unknown' ? stopped : undefined, againMs: undefined }
  const leftMs = Math.max(0, lease.seenAt) + graceMs - now
  if (leftMs > 0) return { said: undefined, againMs: Math.min(leftMs, graceMs) }
  return { said: stored === 'Unknown' ? undefined : stopped, againMs: undefined }
}

const stopped: Said = {
  status: 'Unknown',
  reason: 'ManagedClusterLeaseUpdateStopped',
  message: 'The agent of the cluster stopped renewing its lease.',
}

const revoked: Said = {
  ...stopped,
  message: 'The cluster was revoked: its agent has no right to renew its lease.',
}

/** Of the agent on our stream, by the hub's clock. */
export type StreamSign = Pick<AgentFacts, 'connected' | 'since' | 'reason'>

/** So soon after a start most agents are back, and nothing is said of those that are not yet. */
const SAY_AWAITED_MS = seconds(5)

/**
 * Judges a member by the stream of our agent, in whose name the hub writes: available while it speaks and its API server
 * answers it, unknown once it is lost, and as it was while it is waited for because the hub itself was away.
 * @param api what the agent last said of the member's own API server; undefined: nothing yet
 */
export function judgeStream(inputs: {
  /** undefined: the hub knows of no agent */
  readonly sign: StreamSign | undefined
  readonly api: ApiAnswer | undefined
  readonly stored: Said['status'] | undefined
  /** how long it may be away, ms; default as all say it */
  readonly lostAfterMs?: number
  /** how long the hub has watched without a break, ms: what it did not watch is no silence. Default: for ever */
  readonly watchedMs?: number
  /** how long the hub has seen it away, by a clock that is not set, ms. Default: since now */
  readonly awayMs?: number
  readonly now: number
}): Verdict {
  const { sign, api, stored, now } = inputs
  const { watchedMs = Number.POSITIVE_INFINITY, awayMs = 0 } = inputs
  const lost = (why: string): Verdict => ({
    said: stored === 'Unknown' ? undefined : { status: 'Unknown', reason: 'ManagedClusterStreamLost', message: why },
    againMs: undefined,
  })
  // Before the first one came nothing is said.
  if (!sign)
    return stored === undefined ? { said: undefined, againMs: undefined } : lost('No agent of the cluster is known.')
  if (sign.connected) return { said: api && ofApi(api), againMs: undefined }
  const { lostAfterMs = patienceMs(sign) } = inputs
  // A clock that was set back must not keep a dead member alive.
  const leftMs = Math.min(
    lostAfterMs - Math.min(awayMs, watchedMs),
    Math.max(sign.since + lostAfterMs - now, lostAfterMs - watchedMs),
  )
  if (leftMs <= 0) return lost(`The agent of the cluster is away${sign.reason ? `: ${lostReason(sign)}` : ''}.`)
  if (sign.reason !== HUB_STARTED || stored !== 'True') return { said: undefined, againMs: leftMs }
  const sayInMs = SAY_AWAITED_MS - awayMs
  return sayInMs > 0 ? { said: undefined, againMs: Math.min(leftMs, sayInMs) } : { said: awaited, againMs: leftMs }
}

/** That it waited is over for the hub as well, which is about to say so. */
const lostReason = ({ reason }: StreamSign): string => (reason === HUB_STARTED ? HUB_RESTARTED : reason)

/** Reason of a member whose agent is waited for, as the hub was away. */
export const AWAITED = 'ManagedClusterAgentAwaited'

const awaited: Said = {
  status: 'True',
  reason: AWAITED,
  message: 'Managed cluster was available when the hub stopped; its agent is waited for since the hub is there again.',
}

export type ApiAnswer = { readonly answers: true } | { readonly answers: false; readonly why: string }

/** Why a round fails where nothing answers that can be believed; one that may not read, or is told to wait, was answered. */
const NO_ANSWER: ReadonlySet<string> = new Set([
  'kube_unreachable',
  'kube_timeout',
  'kube_tls',
  'kube_server',
  'kube_protocol',
])

/** Whether the API server of a member answered its agent, by the last round. What was read before stays where a round fails as a whole. */
export function apiAnswerOf(state: ClusterState): ApiAnswer | undefined {
  const { checkedAt, lastSyncAt, reasons } = state.status
  const [first] = checkedAt === lastSyncAt ? [] : reasons
  if (first && NO_ANSWER.has(first.code)) return { answers: false, why: first.message }
  const outcomes = Object.values(state.parts)
  if (outcomes.length === 0) return undefined
  const away = outcomes.filter(({ outcome }) => outcome === 'unreachable')
  if (away.length < outcomes.length) return { answers: true }
  return { answers: false, why: away[0]?.message ?? '' }
}

const ofApi = (api: ApiAnswer): Said =>
  api.answers
    ? { status: 'True', reason: 'ManagedClusterAvailable', message: 'Managed cluster is available' }
    : {
        status: 'False',
        reason: 'ManagedClusterKubeAPIServerUnavailable',
        message: `The API server of the cluster does not answer its agent${api.why ? `: ${api.why}` : ''}`,
      }

/** Judges the clock of a member: how far it was from ours when it last spoke. @param offsetMs theirs minus ours */
export function judgeClock(offsetMs: number, graceMs: number): Said {
  if (Math.abs(offsetMs) < graceMs)
    return {
      status: 'True',
      reason: 'ManagedClusterClockSynced',
      message: 'The clock of the managed cluster is synced with the hub.',
    }
  // Rounded, so that a clock that drifts does not write a status with every look.
  const minutesOff = Math.round(Math.abs(offsetMs) / minutes(1))
  return {
    status: 'False',
    reason: 'ManagedClusterClockOutOfSync',
    message: `The clock of the managed cluster is about ${minutesOff} minutes ${offsetMs > 0 ? 'ahead of' : 'behind'} that of the hub; set it by NTP.`,
  }
}
