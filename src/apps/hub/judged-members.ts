import { seconds, steadyClock, systemClock } from '#model'
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
  heldMs: seconds(20),
  /** a mark that is missed for so long is no slow round any more */
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
  { everyMs, patienceMs } = TIMES,
): { readonly part: Part; readonly judgement: Judgement } {
  // How long ago it was is measured however the clock of this machine is set.
  const now = () => ({ at: systemClock.now(), steady: steadyClock.now() })
  let heard = now()
  const part = inBackground(
    'members-judged',
    async (signal) => {
      await using marks = marksOn(connection)
      while (!signal.aborted) {
        // Where Redis does not answer nobody is known to judge: the manager needs it for that.
        if (await marks.has(KEY).catch(() => false)) heard = now()
        await systemClock.sleep(everyMs, signal).catch(() => undefined)
      }
    },
    logger,
  )
  return {
    part,
    judgement: { absentSince: () => (steadyClock.now() - heard.steady > patienceMs ? heard.at : undefined) },
  }
}
