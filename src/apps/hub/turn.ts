import { hostname } from 'node:os'
import { resolve } from 'node:path'
import { type Clock, FleetError, seconds, systemClock } from '#model'
import type { RedisConnection } from '#redis'
import type { Part } from '#runtime'
import { leaveTurn, takeTurn } from '#state'
import type { HubLogger } from './run.ts'

export interface TurnOptions {
  readonly connection: RedisConnection
  readonly dataDir: string
  readonly logger: HubLogger
  /** another manager has the turn now, although this one worked: it must end */
  readonly onLost: (reason: string) => void
  /** how long a turn holds without a word, ms; default 15 s */
  readonly holdMs?: number
  readonly clock?: Clock
}

export interface Turn {
  readonly part: Part
  /** the manager whose end this one awaits; undefined: none */
  waitsFor(): string | undefined
}

const WARN_EVERY_MS = seconds(30)

/**
 * Two managers that were started without a lease, each with a data folder of its own, must not write into one Redis in turns: the
 * second waits until the first has ended, and says for whom. A manager that starts again in the folder it had goes on at once. One
 * that finds no Redis at its start does not wait, as nobody can write; one that waits goes on waiting while Redis is away.
 */
export function managerTurn({ connection, dataDir, logger, onLost, ...options }: TurnOptions): Turn {
  const { holdMs = seconds(15), clock = systemClock } = options
  const holder = `${hostname()}, data folder ${resolve(dataDir)}`
  const stop = new AbortController()
  let waitsFor: string | undefined
  let keeping: Promise<void> | undefined

  /** @returns who has it instead; undefined where this manager has; `known` while Redis is away */
  const other = async (known?: string): Promise<string | undefined> => {
    try {
      const whose = await takeTurn(connection, holder, holdMs)
      return whose === holder ? undefined : whose
    } catch (error) {
      logger.debug({ err: FleetError.from(error) }, 'whose turn it is in Redis is not known')
      return known
    }
  }
  const rest = (ms: number, signal: AbortSignal) => clock.sleep(ms, signal).catch(() => undefined)
  const keep = async (): Promise<void> => {
    while (!stop.signal.aborted) {
      await rest(holdMs / 3, stop.signal)
      const whose = stop.signal.aborted ? undefined : await other()
      if (whose !== undefined) return onLost(sentence(whose))
    }
  }
  const wait = async (signal: AbortSignal): Promise<void> => {
    let saidAt = Number.NEGATIVE_INFINITY
    for (;;) {
      waitsFor = await other(waitsFor)
      if (waitsFor === undefined) return
      if (clock.now() - saidAt >= WARN_EVERY_MS) {
        saidAt = clock.now()
        logger.warn({}, `${sentence(waitsFor)}; this one waits`)
      }
      await rest(holdMs / 10, signal)
      signal.throwIfAborted()
    }
  }
  const part: Part = {
    name: 'turn',
    async start(signal) {
      // Nothing is open yet that would have to be closed.
      const end = () => process.exit(0)
      const signals = ['SIGTERM', 'SIGINT'] as const
      for (const name of signals) process.on(name, end)
      try {
        await wait(signal)
      } finally {
        for (const name of signals) process.off(name, end)
      }
      keeping = keep()
    },
    async stop() {
      stop.abort()
      await keeping
      await leaveTurn(connection, holder).catch(() => undefined) // it ends by itself
    },
  }
  return { part, waitsFor: () => waitsFor }
}

const sentence = (whose: string): string =>
  `another manager works on this Redis (on ${whose}): stop one of them, or start both with LEADER_ELECT=true`
