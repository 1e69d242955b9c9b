import { Looks } from '#attention'
import { type RedisConnection, RedisMarks } from '#redis'
import type { HubLogger } from './run.ts'

/** Who looks at what clusters use, told between the processes of a hub by marks of half a minute in Redis. Closing it closes them. */
export function sharedLooks(connection: RedisConnection, logger: HubLogger): Looks {
  const marks = new RedisMarks({ connection, prefix: 'clusterpulse:attention:', channel: 'clusterpulse:attention' })
  return new Looks({ marks, logger: logger.child({ part: 'attention' }) })
}
