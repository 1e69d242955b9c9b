import { days, seconds, steadyClock, systemClock } from '#model'
import { type RedisConnection, RedisMarks } from '#redis'
import type { Judgement } from '#registration'
import type { Part } from '#runtime'
import { type HubLogger, inBackground } from './run.ts'

/*
 * Whether members are judged, told between the processes of a hub by a mark in Redis: whoever shows them may not call one available
 * on the word of a manager that is gone.
 */

const KEY = 'judged'
const TIMES = {
  everyMs: seconds(5),
  /** far longer than it counts: what is left of it tells when it was set, also to a process that starts later */
  heldMs: days(30),
  /** one that was set so long ago was set by a manager that is gone, and not late */
  patienceMs: seconds(20),
}

const marksOn = (connection: RedisConnection): RedisMarks =>
  new RedisMarks({ connection, prefix: 'clusterpulse:members:', channel: 'clusterpulse:members' })

/** Says that this process judges members, until the signal aborts. */
export async function sayJudged(
  connection: RedisConnection,
  logger: HubLogger,
  signal: AbortSignal,
  { everyMs, heldMs } = TIMES,
): Promise<void> {
  await using marks = marksOn(connection)
  while (!signal.aborted) {
    await marks.set(KEY, heldMs).catch((err: unknown) => {
      logger.debug({ err }, 'that members are judged could not be said')
    })
    await systemClock.sleep(everyMs, signal).catch(() => undefined)
  }
}

/** Hears whether some process of the hub judges members. */
export function hearJudged(
  connection: RedisConnection,
  logger: HubLogger,
  { everyMs, heldMs, patienceMs } = TIMES,
): { readonly part: Part; readonly judgement: Judgement } {
  // How long ago it was is measured however the clock of this machine is set.
  const before = (ms: number) => ({ at: systemClock.now() - ms, steady: steadyClock.now() - ms })
  let judged = before(0)
  let isKnown = false
  const part = inBackground(
    'members-judged',
    async (signal) => {
      await using marks = marksOn(connection)
      while (!signal.aborted) {
        const leftMs = await marks.leftMs(KEY).catch(() => 'unanswered' as const)
        if (typeof leftMs === 'number') judged = before(Math.max(0, heldMs - leftMs))
        // Where Redis does not answer nobody is known to judge, as the manager needs it for that; at the start it is only not asked yet.
        isKnown ||= leftMs !== 'unanswered' || steadyClock.now() - judged.steady > patienceMs
        await systemClock.sleep(isKnown ? everyMs : Math.min(everyMs, 200), signal).catch(() => undefined)
      }
    },
    logger,
  )
  return {
    part,
    judgement: {
      isKnown: () => isKnown,
      absentSince: () => (steadyClock.now() - judged.steady > patienceMs ? judged.at : undefined),
    },
  }
}
