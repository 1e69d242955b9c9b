import type { LeaderElection } from '#controller'
import { FleetError, seconds, systemClock } from '#model'
import { type Part, retryForever, startParts } from '#runtime'
import type { HubLogger } from './run.ts'

export interface LeaderOptions {
  readonly parts: readonly Part[]
  /** absent: the only candidate, and the parts are started as any others are */
  readonly election?: () => LeaderElection
  readonly logger: HubLogger
}

/** Parts that run only while this process leads. */
export interface Leader {
  readonly parts: readonly Part[]
  /** they run, or should */
  isLeading(): boolean
  /** why they do not, although this process leads; undefined where they do, or another one leads */
  fault(): string | undefined
}

/**
 * Parts that hold what one process at a time may hold. A candidate that waits opens nothing of it: what it had read by then
 * would be old when its turn comes.
 */
export function createLeader({ parts, election, logger }: LeaderOptions): Leader {
  if (!election) return { parts, isLeading: () => true, fault: () => undefined }
  const stop = new AbortController()
  let running: Promise<void> | undefined
  let leads = false
  let fault: string | undefined

  const lead = async (signal: AbortSignal): Promise<void> => {
    leads = true
    fault = 'it has just begun to lead'
    try {
      const started = await retryForever(
        () =>
          startParts(parts, { logger }).catch((error: unknown) => {
            fault = FleetError.from(error).message
            logger.error({ err: error }, 'this process leads, and cannot begin yet')
            throw error
          }),
        { clock: systemClock, signal, fromMs: seconds(1), toMs: seconds(15) },
      )
      fault = undefined
      await new Promise<void>((resolve) => {
        if (signal.aborted) resolve()
        else signal.addEventListener('abort', () => resolve(), { once: true })
      })
      await started.stop()
    } catch (error) {
      if (!signal.aborted) throw error
    } finally {
      leads = false
      fault = undefined
    }
  }
  const part: Part = {
    name: 'leading',
    start() {
      running = election().run(lead, stop.signal)
      return Promise.resolve()
    },
    async stop() {
      stop.abort()
      await running
    },
  }
  return { parts: [part], isLeading: () => leads, fault: () => fault }
}
