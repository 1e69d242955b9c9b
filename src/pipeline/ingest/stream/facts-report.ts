import { setMaxListeners } from 'node:events'
import { type AgentFacts, type Clock, type ClusterName, FleetError } from '#model'
import type { Logger } from '#runtime'
import type { StreamIngester } from './ingest-port.ts'

interface Entry {
  reported: AgentFacts | undefined
  reportedAt: number
  next: AgentFacts | undefined
  running: Promise<void> | undefined
}

/** A clock that moves by less against ours did not move. */
const OFFSET_MOVES_MS = 1_000
/** With nothing else to tell, that it lives is told every so many intervals. */
const QUIET_INTERVALS = 4
const RETRY_MS = 1_000
const CATCHING_UP_MS = 5_000

export interface FactsReportOptions {
  readonly ingester: Pick<StreamIngester, 'agent' | 'knows'>
  readonly clock: Clock
  readonly logger: Logger
  readonly everyMs: number
}

/** Brings the facts of agents to the ingester: at once when one comes or goes, else seldom, and not when nothing moved. */
export class FactsReport implements AsyncDisposable {
  readonly #options: FactsReportOptions
  readonly #entries = new Map<ClusterName, Entry>()
  readonly #stop = new AbortController()

  constructor(options: FactsReportOptions) {
    this.#options = options
    // While the log takes nothing, every agent that came or went waits for the end of this: as many as there are clusters.
    setMaxListeners(0, this.#stop.signal)
  }

  tell(cluster: ClusterName, facts: AgentFacts, now: boolean): void {
    const entry = this.#entries.get(cluster) ?? {
      reported: undefined,
      reportedAt: 0,
      next: undefined,
      running: undefined,
    }
    this.#entries.set(cluster, entry)
    if (!now && !this.#isDue(entry, facts)) return
    entry.next = facts
    entry.running ??= this.#run(cluster, entry).finally(() => {
      entry.running = undefined
      if (entry.reported?.connected === false && !entry.next) this.#entries.delete(cluster)
    })
  }

  /** What is told already goes out, as far as it does so soon; nothing more is taken. */
  async [Symbol.asyncDispose](): Promise<void> {
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

  async #run(cluster: ClusterName, entry: Entry): Promise<void> {
    const { ingester, clock, logger } = this.#options
    const { signal } = this.#stop
    for (let facts = entry.next; facts && !signal.aborted; facts = entry.next) {
      entry.next = undefined
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
