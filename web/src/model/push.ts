import { type AgentView, awaitedUntil, type ClusterView, rivalryOf } from '../contract.ts'
import { type Need, needOf } from './cluster.ts'
import { formatBytes, formatCount, formatSpan, plural } from './format.ts'

export interface PushNote {
  readonly code: 'two-agents' | 'silent' | 'late' | 'catching-up' | 'lost' | 'clock' | 'plaintext' | 'original'
  readonly word: string
  /** for a row */
  readonly short: string
  /** the whole of it */
  readonly text: string
  readonly isWarning: boolean
}

export interface PushStatus {
  /** how the facts really come where that is not as declared: `agent away: pulled by the hub`; else '' */
  readonly instead: string
  /** the same for a row */
  readonly short: string
  /** in a sentence */
  readonly text: string
  /** worst first */
  readonly notes: readonly PushNote[]
}

/** How far a clock may be off before it is worth a word: times are corrected for it. */
const clockSlackMs = 1000

/** How the facts of a cluster come, and what is wrong with that. `now` is the hub's time. */
export function pushStatus(cluster: ClusterView, now: number): PushStatus {
  const { agent } = cluster
  return { ...wayOf(cluster, now), notes: agent === null ? [] : notesOf(cluster, agent, now) }
}

/** A backlog that a person should know of, and not one of a minute or two. */
const bigBacklog = { batches: 100, ageMs: 15 * 60_000 }

export interface AgentTrouble {
  readonly code: 'two-agents' | 'away' | 'silent' | 'catching-up' | 'lost' | 'plaintext'
  readonly short: string
  readonly text: string
}

/**
 * What a person should know of the agent of a cluster, worst first, even where the cluster is healthy because the hub reads it.
 * @param lostBatches how many it declared lost within the last hour
 */
export function agentTroubles(cluster: ClusterView, now: number, lostBatches = 0): AgentTrouble[] {
  const { agent, mode } = cluster
  const { short, text, notes } = pushStatus(cluster, now)
  const troubles: AgentTrouble[] = []
  if (mode === 'push' && !agent?.connected && !isWaitedFor(cluster, now)) troubles.push({ code: 'away', short, text })
  for (const { code, short, text } of notes) {
    if (code === 'two-agents' && agent) troubles.push({ code, short, text: `${stopOne}: ${agent.reason}` })
    if (code === 'silent' || code === 'plaintext') troubles.push({ code, short, text })
    if (code === 'catching-up' && agent?.connected && isBigBacklog(agent, now)) troubles.push({ code, short, text })
  }
  if (lostBatches > 0) {
    const lost = `${plural(lostBatches, 'batch', 'batches')} lost`
    troubles.push({ code: 'lost', short: lost, text: `${lost} within the last hour: the charts show where` })
  }
  return troubles.sort((a, b) => troubleOrder.indexOf(a.code) - troubleOrder.indexOf(b.code))
}

/** Its agent is away because the hub was, or has just come, and is about to deliver. */
export const isWaitedFor = ({ agent }: Pick<ClusterView, 'agent'>, now: number): boolean =>
  agent !== null && now < awaitedUntil(agent)

/** What of a cluster a person must hear: that it was not read while the hub was away is none of that. */
export function troubleOf(cluster: ClusterView, now: number): Need {
  const need = needOf(cluster, now)
  return need === 'stale' && isWaitedFor(cluster, now) ? 'healthy' : need
}

/** The next step before who they are: it is what a line has room for. */
const stopOne = 'stop one of its two agents; where one is not yours, revoke the member or change its token'

/** A second agent may show a stolen key. */
const troubleOrder: readonly AgentTrouble['code'][] = [
  'two-agents',
  'away',
  'silent',
  'lost',
  'catching-up',
  'plaintext',
]

/** 0 needs a person most. */
export const severityOfTrouble = (troubles: readonly AgentTrouble[] = []): number =>
  troubles[0] ? troubleOrder.indexOf(troubles[0].code) : troubleOrder.length

const isBigBacklog = ({ bufferedBatches, oldestBufferedAt }: AgentView, now: number): boolean =>
  bufferedBatches >= bigBacklog.batches || (oldestBufferedAt !== null && now - oldestBufferedAt >= bigBacklog.ageMs)

function wayOf({ mode, source, agent, lastSyncAt, intervalMs }: ClusterView, now: number): Omit<PushStatus, 'notes'> {
  const every = `every ${formatSpan(intervalMs)}`
  if (mode === 'pull') {
    if (agent?.connected && source === 'push')
      return {
        instead: 'pushed by an agent',
        short: 'an agent pushes',
        text: 'Declared as pull, yet an agent pushes the facts',
      }
    return { instead: '', short: '', text: `The hub reads this cluster ${every}` }
  }
  const byHub = lastSyncAt !== null && source === 'pull'
  const until = byHub ? `; until then the hub reads it ${every}` : ''
  if (agent === null)
    return {
      instead: byHub ? 'no agent yet: pulled by the hub' : 'no agent yet',
      short: 'no agent yet',
      text: `An agent is to push the facts; none has connected yet${until}`,
    }
  if (agent.connected)
    return byHub
      ? {
          instead: 'agent is back: pulled by the hub until it has sent',
          short: 'agent is back',
          text: `The agent is connected and its first batch awaited${until}`,
        }
      : { instead: '', short: '', text: `An agent beside the cluster pushes the facts ${every}` }
  if (!byHub && now < awaitedUntil(agent))
    return {
      instead: 'waiting for its agent',
      short: 'agent awaited',
      text: 'The hub was away a moment ago and waits for the agent; all that is shown is as last read',
    }
  return byHub
    ? {
        instead: 'agent away: pulled by the hub',
        short: 'agent away',
        text: `The agent is away${because(agent)}; the hub reads the cluster itself`,
      }
    : {
        instead: 'agent away',
        short: 'agent away',
        text: `The agent is away${because(agent)}, and nobody else reads this cluster`,
      }
}

const because = ({ reason }: AgentView): string => (reason === '' ? '' : ` (${reason})`)

function notesOf(cluster: ClusterView, agent: AgentView, now: number): PushNote[] {
  const rivalry = rivalryOf(agent)
  const notes: (PushNote | null)[] = [
    rivalry === '' ? null : note('two-agents', 'two agents', { text: rivalry }),
    silence(cluster, agent, now),
    lateness(cluster, agent),
    buffer(cluster, agent, now),
    agent.lostBatches > 0
      ? note('lost', `${plural(agent.lostBatches, 'batch', 'batches')} lost`, {
          short: `${formatCount(agent.lostBatches)} lost`,
          text: `The agent declared ${plural(agent.lostBatches, 'batch', 'batches')} lost: the charts show where`,
        })
      : null,
    clock(agent),
    agent.connected && !agent.tls
      ? note('plaintext', 'not encrypted', {
          text: 'The stream of this agent is not encrypted: whoever is on the way can read it, and its token',
        })
      : null,
    agent.protocol === 'original'
      ? note('original', 'no buffer', {
          text: 'A collector of the original: it keeps nothing while it is cut off, so an outage leaves a hole',
          isWarning: false,
        })
      : null,
  ]
  return notes.filter((each) => each !== null)
}

const note = (
  code: PushNote['code'],
  word: string,
  { text, short = word, isWarning = true }: { text: string; short?: string; isWarning?: boolean },
): PushNote => ({ code, word, short, text, isWarning })

function silence(cluster: ClusterView, agent: AgentView, now: number): PushNote | null {
  const silentMs = now - heardAt(cluster, agent)
  if (!agent.connected || silentMs <= cluster.staleAfterMs) return null
  return note('silent', `silent for ${formatSpan(silentMs)}`, {
    text: `The stream is open, but nothing came through it for ${formatSpan(silentMs)}`,
  })
}

function lateness(cluster: ClusterView, { connected }: AgentView): PushNote | null {
  const lag = lagOf(cluster)
  if (!connected || lag === null || lag <= 2 * cluster.intervalMs) return null
  return note('late', `${formatLag(lag)} late`, {
    text: `The newest facts arrived ${formatLag(lag)} after they were read`,
  })
}

/** A batch or two on their way are no backlog. */
function buffer({ intervalMs }: ClusterView, agent: AgentView, now: number): PushNote | null {
  const { bufferedBatches: batches, oldestBufferedAt: oldest, connected } = agent
  const ageMs = oldest === null ? 0 : now - oldest
  if (batches === 0 || (batches <= 3 && ageMs <= 3 * intervalMs)) return null
  const what = `${plural(batches, 'batch', 'batches')}${oldest === null ? '' : `, from ${formatSpan(ageMs)} ago`}`
  return connected
    ? note('catching-up', `catching up: ${what}`, {
        short: `catching up: ${formatCount(batches)}`,
        text: `Catching up: ${what} (${formatBytes(agent.bufferedBytes)}) still wait in the buffer of the agent; live facts go first`,
        isWarning: false,
      })
    : note('catching-up', `${what} buffered`, {
        short: `${formatCount(batches)} buffered`,
        text: `${what} waited in the buffer of the agent when it was last heard; they come when it is back`,
        isWarning: false,
      })
}

function clock({ clockOffsetMs }: AgentView): PushNote | null {
  const off = Math.abs(clockOffsetMs)
  if (off < clockSlackMs) return null
  const by = `${formatLag(off)} ${clockOffsetMs > 0 ? 'ahead' : 'behind'}`
  return note('clock', `clock ${by}`, { text: `The clock of the agent is ${by}; times are corrected for it` })
}

/** When anything came from the agent last: a batch says as much as a heartbeat. */
export function heardAt({ parts }: ClusterView, { heartbeatAt }: AgentView): number {
  const pushed = Object.values(parts).flatMap(({ freshness }) =>
    freshness?.source === 'push' ? [freshness.receivedAt] : [],
  )
  return Math.max(heartbeatAt, ...pushed)
}

/** From reading to arrival of the newest facts, ms; null where nothing was read yet. */
export function lagOf({ parts }: ClusterView): number | null {
  let newest: { observedAt: number; receivedAt: number } | null = null
  for (const { freshness } of Object.values(parts)) {
    if (freshness && freshness.receivedAt > (newest?.receivedAt ?? Number.NEGATIVE_INFINITY)) newest = freshness
  }
  return newest && Math.max(0, newest.receivedAt - newest.observedAt)
}

/** Short times to a tenth of a second. */
export const formatLag = (ms: number): string => (ms < 10_000 ? `${(ms / 1000).toFixed(1)} s` : formatSpan(ms))
