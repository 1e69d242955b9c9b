import { setMaxListeners } from 'node:events'
import { AGENT_ENDED, type AgentFacts, type Clock, type ClusterName, FleetError, seconds } from '#model'
import type { Logger } from '#runtime'
import type { StreamIngester } from './ingest-port.ts'

interface Entry {
  reported: AgentFacts | undefined
  reportedAt: number
  next: AgentFacts | undefined
  /** which process of the cluster `next` is of */
  process: string
  /** it went, and another process came: no return of the same */
  went: AgentFacts | undefined
  /** ends the wait for its return */
  waiting: AbortController | undefined
  running: Promise<void> | undefined
}

/** A clock that moves by less against ours did not move. */
const OFFSET_MOVES_MS = 1_000
/** With nothing else to tell, that it lives is told every so many intervals. */
const QUIET_INTERVALS = 4
const RETRY_MS = 1_000
const CATCHING_UP_MS = 5_000
/** One that ends its stream and is back by then, as for a new certificate, was not away. */
const RETURN_MS = seconds(5)
/** So long agents have to come back to a hub that stood still itself. */
const PAUSE_RETURN_MS = seconds(15)

export interface FactsReportOptions {
  readonly ingester: Pick<StreamIngester, 'agent' | 'knows'>
  readonly clock: Clock
  readonly logger: Logger
  readonly everyMs: number
  /** this process stood still until then, by `clock` */
  readonly resumedAt: () => number
}

/**
 * Brings the facts of agents to the ingester: at once when one comes or goes, else seldom, and not when nothing moved. That one went is told
 * once it is not back by itself.
 */
export class FactsReport implements AsyncDisposable {
  readonly #options: FactsReportOptions
  readonly #entries = new Map<ClusterName, Entry>()
  readonly #stop = new AbortController()
  #isStopping = false

  constructor(options: FactsReportOptions) {
    this.#options = options
    // While the log takes nothing, every agent that came or went waits for the end of this: as many as there are clusters.
    setMaxListeners(0, this.#stop.signal)
  }

  /**
   * @param how.now it came, went or delivers for the first time
   * @param how.process which of the processes that speak for the cluster it is
   */
  tell(
    cluster: ClusterName,
    facts: AgentFacts,
    { now, process }: { readonly now: boolean; readonly process: string },
  ): void {
    const entry = this.#entries.get(cluster) ?? newEntry()
    this.#entries.set(cluster, entry)
    if (!now && !this.#isDue(entry, facts)) return
    if (entry.waiting && entry.process !== process) entry.went = entry.next
    entry.next = facts
    entry.process = process
    entry.waiting?.abort()
    entry.running ??= this.#run(cluster, entry).finally(() => {
      entry.running = undefined
      if (entry.reported?.connected === false && !entry.next) this.#entries.delete(cluster)
    })
  }

  /** What is told already goes out, as far as it does so soon; nothing more is taken. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isStopping = true
    for (const { waiting } of this.#entries.values()) waiting?.abort()
    const running = Promise.allSettled([...this.#entries.values()].map((entry) => entry.running))
    await Promise.race([running, this.#options.clock.sleep(RETRY_MS, this.#stop.signal)])
    this.#stop.abort()
    await running
  }

  #isDue({ reported, reportedAt, next }: Entry, facts: AgentFacts): boolean {
    if (next || !reported) return true
    const passed = this.#options.clock.now() - reportedAt
    // Our clock was set back: what was told by it then is of the future now.
    if (passed < 0) return true
    // A backlog that shrinks is watched by people; that it is gone is told at once.
    if (reported.bufferedBatches > 0 && facts.bufferedBatches === 0) return true
    const isCatchingUp = reported.bufferedBatches > 0 && facts.bufferedBatches !== reported.bufferedBatches
    if (passed < (isCatchingUp ? Math.min(CATCHING_UP_MS, this.#options.everyMs) : this.#options.everyMs)) return false
    return passed >= QUIET_INTERVALS * this.#options.everyMs || moved(reported, facts)
  }

  /** Resolves at once for one that is there, or went for another reason. */
  async #awaitReturn(entry: Entry, { connected, reason, since }: AgentFacts): Promise<void> {
    if (connected || this.#isStopping) return
    const { clock, resumedAt } = this.#options
    const ends = [...(reason === AGENT_ENDED ? [since + RETURN_MS] : []), resumedAt() + PAUSE_RETURN_MS]
    const waitMs = Math.min(Math.max(...ends) - clock.now(), PAUSE_RETURN_MS)
    if (waitMs <= 0) return
    entry.waiting = new AbortController()
    await clock.sleep(waitMs, entry.waiting.signal)
    entry.waiting = undefined
  }

  async #run(cluster: ClusterName, entry: Entry): Promise<void> {
    const { ingester, clock, logger } = this.#options
    const { signal } = this.#stop
    for (let facts = entry.next; facts && !signal.aborted; facts = entry.next) {
      await this.#awaitReturn(entry, facts)
      const { went } = entry
      if (went) facts = went
      else if (entry.next === facts) entry.next = undefined
      else continue
      entry.went = undefined
      try {
        if (!ingester.knows(cluster)) return
        await ingester.agent(cluster, facts)
        entry.reported = facts
        entry.reportedAt = clock.now()
      } catch (error) {
        const { retryable, message } = FleetError.from(error)
        logger.debug({ cluster, error: message }, 'the facts of an agent could not be kept')
        if (!retryable) return
        entry.next ??= facts
        await clock.sleep(RETRY_MS, signal)
      }
    }
  }
}

const newEntry = (): Entry => ({
  ...{ reported: undefined, reportedAt: 0, next: undefined, process: '' },
  ...{ went: undefined, waiting: undefined, running: undefined },
})

function moved(reported: AgentFacts, facts: AgentFacts): boolean {
  const still: AgentFacts = {
    ...facts,
    heartbeatAt: reported.heartbeatAt,
    clockOffsetMs:
      Math.abs(facts.clockOffsetMs - reported.clockOffsetMs) < OFFSET_MOVES_MS
        ? reported.clockOffsetMs
        : facts.clockOffsetMs,
  }
  return (Object.keys(still) as (keyof AgentFacts)[]).some((key) => still[key] !== reported[key])
}
