import { type Clock, systemClock } from '#model'
import type { Logger } from './logger.ts'

/** A thing an app starts and stops. `start` resolves when others may rely on it; `stop` when nothing of it runs. */
export interface Part {
  readonly name: string
  start(signal: AbortSignal): Promise<void>
  stop(): Promise<void>
}

/** Parts of a process that were started in order. */
export interface RunningParts {
  /** Stops in reverse order, each within its share of the deadline; a part that does not end is named in the log. */
  stop(): Promise<void>
}

/**
 * Starts parts in order. When one fails, those already started are stopped in reverse and the failure is thrown.
 * @param deadlineMs how long one part may take to stop; default 10 s
 */
export async function startParts(
  parts: readonly Part[],
  { logger, deadlineMs = 10_000, clock = systemClock }: { logger: Logger; deadlineMs?: number; clock?: Clock },
): Promise<RunningParts> {
  const started: Part[] = []
  const abort = new AbortController()
  let stopping: Promise<void> | undefined

  const stopAll = async () => {
    abort.abort()
    for (const part of started.reverse()) {
      const timer = new AbortController()
      const late = clock.sleep(deadlineMs, timer.signal).then(() => 'late' as const)
      const end = await Promise.race([
        part.stop().then(
          () => 'stopped' as const,
          (error: unknown) => error,
        ),
        late,
      ])
      timer.abort()
      if (end === 'late')
        logger.error({ part: part.name, deadlineMs }, 'part did not stop in time; going on without it')
      else if (end !== 'stopped') logger.error({ part: part.name, err: end }, 'part failed to stop')
      else logger.debug({ part: part.name }, 'part stopped')
    }
  }
  const stop = () => {
    stopping ??= stopAll()
    return stopping
  }

  for (const part of parts) {
    try {
      await part.start(abort.signal)
      started.push(part)
      logger.debug({ part: part.name }, 'part started')
    } catch (error) {
      await part
        .stop()
        .catch((err: unknown) => logger.debug({ part: part.name, err }, 'half-started part failed to stop'))
      await stop()
      throw error
    }
  }
  return { stop }
}
