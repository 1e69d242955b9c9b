import { type AgentFacts, rivalryOf, seconds, TWO_AGENTS } from '#model'

/*
 *  Who reads a cluster in push mode (the hub receives agents):
 *
 *             first accepted batch of a live stream
 *   ┌──────────────────────────────────────────────────┐
 *   ▼                                                  │
 *  agent ──stream gone, or no batch for 3 intervals──▶ wait ──grace over──▶ hub (pull, and deploy)
 *
 *  An agent that has just come sends at once: a reading of the hub that is younger than an interval is good until then, and one
 *  more would only be newer than the agent's first. Without any agent ever, the hub reads at once. Where the hub has no way to the
 *  cluster, nobody reads it: that is said of the cluster itself when the grace is over, until an agent is back whose last batch is
 *  not old, or delivers. In pull mode, or where no agents are received, it is always the hub.
 */

export interface CollectorInputs {
  readonly mode: 'pull' | 'push'
  /** the hub receives agents at all */
  readonly receivesAgents: boolean
  /** the connection says how the hub may ask the cluster itself */
  readonly isReachable: boolean
  /** a batch of the living stream was accepted */
  readonly isDelivering: boolean
  readonly facts: AgentFacts | undefined
  /** when a batch of the living stream was last seen to arrive; undefined where that is not known yet */
  readonly lastBatchAt: number | undefined
  /** when the newest batch was collected that read the cluster; undefined where none did */
  readonly lastReadAt: number | undefined
  /** an agent delivered for this cluster before, now or in a former life of the hub */
  readonly hadAgent: boolean
  /** why it was away when this life of the hub began; '': it was not, or for the hub's sake */
  readonly formerAbsence: string
  /** why an agent that is away would be refused, and what helps; '': it would not */
  readonly refusal: string
  /** since when no agent delivers, as far as the hub was there to see; undefined while one does */
  readonly awaySince: number | undefined
  /** how long the agent may be away before it is lost, ms */
  readonly patienceMs: number
  /** the hub reads the cluster already, for want of an agent */
  readonly isPulling: boolean
  /** when the hub last began to read it and could; undefined where it did not */
  readonly pulledAt: number | undefined
  readonly intervalMs: number
  /** other connections whose collectors show the same token: none of them can be let in by it */
  readonly tokenSharedWith: readonly string[]
  /** ms since the Unix epoch, as all times here */
  readonly now: number
}

export interface CollectorCondition {
  readonly status: 'True' | 'False' | 'Unknown'
  readonly reason: string
  readonly message: string
}

export interface CollectorChoice {
  /** `hub`: pull now. `agent`: it delivers. `wait`: it may be back in a moment. `none`: the hub has no way of its own. */
  readonly by: 'hub' | 'agent' | 'wait' | 'none'
  /** try to bring the agent (back) to the member */
  readonly deploy: boolean
  /** of the agent; undefined: there is nothing to say of one */
  readonly condition: CollectorCondition | undefined
  /** why no agent delivers, without what follows from it; '' where one does or none is wanted */
  readonly absence: string
  /** say of the cluster itself that it cannot be read */
  readonly isLost: boolean
  /** an agent is back, and what it read last still holds */
  readonly isBack: boolean
  /** look again no later than this, ms */
  readonly againMs: number
}

/** After this many intervals without a batch an agent counts as silent, and what it read before as old. */
const SILENT_INTERVALS = 3
/** With what it takes to notice and to write, people see within 15 s that an agent is away. */
const MAX_GRACE_MS = seconds(10)

/**
 * How long a stream may be away before the hub reads by itself: two intervals, at most 10 s. A restart of the agent or of the hub
 * takes less; a longer hole would be seen on the page.
 */
export const graceMs = (intervalMs: number): number => Math.min(2 * intervalMs, MAX_GRACE_MS)

/** Decides who reads the cluster now. */
export function chooseCollector(inputs: CollectorInputs): CollectorChoice {
  const { mode, receivesAgents, isReachable, intervalMs, now } = inputs
  const base = { deploy: false, isLost: false, isBack: false, againMs: intervalMs, absence: '' }
  if (mode === 'pull') return { ...base, by: 'hub', condition: undefined }
  if (!receivesAgents) {
    const condition = notReceiving(isReachable)
    return { ...base, by: isReachable ? 'hub' : 'none', isLost: !isReachable, condition, absence: NOT_RECEIVING }
  }
  const silent = isSilent(inputs)
  if (inputs.isDelivering && !silent) return { ...base, by: 'agent', condition: delivering(inputs.facts) }

  const why = absence(inputs, silent)
  const awayMs = silent ? Number.POSITIVE_INFINITY : now - (inputs.awaySince ?? now)
  const absent = { ...base, absence: why('').message }
  // Where the hub has no way of its own, there is nothing to begin until the agent is lost.
  const waitsMs = isReachable || inputs.facts?.connected ? graceMs(intervalMs) : inputs.patienceMs
  const leftMs = inputs.hadAgent && !inputs.isPulling ? waitsMs - awayMs : 0
  if (leftMs > 0) return { ...absent, by: 'wait', condition: why(''), againMs: Math.min(leftMs, intervalMs) }
  if (isReachable) {
    const readMs = now - (inputs.pulledAt ?? Number.NEGATIVE_INFINITY)
    if (inputs.facts?.connected && !silent && readMs >= 0 && readMs < intervalMs)
      return { ...absent, by: 'wait', condition: why(MEANWHILE), againMs: intervalMs - readMs }
    const deploy = silent || !inputs.facts?.connected
    return { ...absent, by: 'hub', deploy, condition: why(MEANWHILE) }
  }
  const { lastReadAt, hadAgent } = inputs
  const isBack = !silent && inputs.facts?.connected === true && lastReadAt !== undefined && !isOld(lastReadAt, inputs)
  const patienceMs = inputs.facts?.connected ? SILENT_INTERVALS * intervalMs : inputs.patienceMs
  // One that is there is waited for since it came, however long the hub waited for it.
  const waitedMs = inputs.facts?.connected ? Math.min(now - inputs.facts.since, awayMs) : awayMs
  const isLost = silent || (hadAgent && !isBack && waitedMs >= patienceMs)
  const next = 'the hub has no way to this cluster: run "clusterpulse connect" and, there, what it prints'
  return { ...absent, by: 'none', isLost, isBack, condition: why(hadAgent ? '' : `; ${next}`) }
}

/** The stream lives and brings nothing. */
function isSilent({ isDelivering, lastBatchAt, intervalMs, now }: CollectorInputs): boolean {
  return isDelivering && lastBatchAt !== undefined && isOld(lastBatchAt, { intervalMs, now })
}

const isOld = (at: number, { intervalMs, now }: Pick<CollectorInputs, 'intervalMs' | 'now'>) =>
  now - at > SILENT_INTERVALS * intervalMs

const MEANWHILE = '; the hub collects by itself meanwhile'
const NOT_RECEIVING = 'this hub receives no agents'

function notReceiving(isReachable: boolean): CollectorCondition {
  const meanwhile = isReachable ? '; it collects by itself meanwhile' : ', and has no way to the cluster itself'
  return { status: 'False', reason: 'NoAgent', message: `${NOT_RECEIVING}${meanwhile}` }
}

function delivering(facts: AgentFacts | undefined): CollectorCondition {
  const version = facts?.version ? ` ${facts.version}` : ''
  // Whole seconds: what moves by less is not worth another status.
  const offBy = Math.trunc((facts?.clockOffsetMs ?? 0) / 1000)
  const clock =
    offBy === 0
      ? ''
      : `; its clock is ${Math.abs(offBy)} s ${offBy > 0 ? 'ahead' : 'behind'}, and times are corrected for it`
  const message = `the agent${version} is connected and its batches are accepted${clock}`
  const rivalry = facts ? rivalryOf(facts) : ''
  if (rivalry === '') return { status: 'True', reason: 'Delivering', message }
  return { status: 'True', reason: TWO_AGENTS, message: `${message}; ${rivalry}` }
}

/** Why no agent delivers; what follows from that is added. */
function absence(
  { facts, hadAgent, formerAbsence, refusal, tokenSharedWith }: CollectorInputs,
  silent: boolean,
): (then: string) => CollectorCondition {
  const said = (reason: string, message: string) => (then: string) => ({
    status: 'False' as const,
    reason,
    message: `${message}${then}`,
  })
  if (silent) return said('AgentSilent', 'the agent is connected and has sent no batch for more than three intervals')
  if (facts?.connected) {
    const why = said('AwaitingFirstBatch', 'the agent is connected; its first batch is awaited')
    return (then) => ({ ...why(then), status: 'Unknown' })
  }
  // Our own agents show a token that is made for their connection alone.
  const isOwnAgent = facts !== undefined && facts.method !== 'connection-token'
  if (tokenSharedWith.length > 0 && !isOwnAgent) return said('TokenShared', sharing(tokenSharedWith))
  if (refusal !== '') return said('AgentAway', `the agent is away: ${refusal}`)
  if (facts) return said('AgentAway', `the agent is away${facts.reason ? `: ${facts.reason}` : ''}`)
  const before = formerAbsence === '' ? '' : `, and was away before: ${formerAbsence}`
  if (hadAgent) return said('AgentAway', `the agent has not connected to this hub since it started${before}`)
  return said('NoAgent', 'no agent has connected')
}

/** Connections named in a sentence; the rest is counted. */
const NAMED = 3

function sharing(others: readonly string[]): string {
  const more = others.length > NAMED ? ` and ${others.length - NAMED} more` : ''
  return (
    `connections share one token (with ${others.slice(0, NAMED).join(', ')}${more}): nothing tells which of them a collector speaks ` +
    'for that shows it, so it is let in for none; give each connection a Secret with a token of its own'
  )
}
