import { join } from 'node:path'
import { FleetError, type StoredFormat, StoreUnavailableError, seconds, systemClock } from '#model'
import type { RedisConnection } from '#redis'
import { claimFormat, DirectoryLockedError, type Logger, lockDirectory, type Part, retryForever } from '#runtime'
import { checkRedisFormat } from '#state'

/**
 * The form of a hub's data folder as a whole. Raise `format` with a change that another version sees, `readableFrom` where one
 * that does not know it would misread what is there; both with a line in docs/guide/upgrade.md.
 */
const DATA = { format: 3, readableFrom: 3 }
/** With embedded objects: they are sealed from 4 on, and a program that does not know it would take them for lost. */
const DATA_WITH_OBJECTS = { format: 4, readableFrom: 4 }

/**
 * Before anything in the folder is opened.
 * @returns writes our form, once the folder is this process's
 * @throws StoredFormatError
 */
export function claimDataFolder(
  directory: string,
  { program, logger, hasObjects }: { readonly program: string; readonly logger: Logger; readonly hasObjects: boolean },
): Promise<() => Promise<void>> {
  const ours: StoredFormat = { ...(hasObjects ? DATA_WITH_OBJECTS : DATA), program }
  return claimFormat(directory, { what: 'data folder', ours, logger })
}

/** One that was killed has its folder a moment longer than it lived. */
const ENDING_MS = seconds(5)

/**
 * The data folder of a manager without a lease: a second one in the same folder ends here, before it asks Redis, the hub's API or
 * a member for anything.
 * @throws DirectoryLockedError
 */
export function heldFolder(directory: string, signal: AbortSignal): Promise<AsyncDisposable> {
  const until = systemClock.now() + ENDING_MS
  return retryForever(() => lockDirectory(join(directory, 'manager')), {
    ...{ clock: systemClock, signal, fromMs: 100, toMs: 500 },
    retry: (error) => error instanceof DirectoryLockedError && systemClock.now() < until,
  })
}

/**
 * The first part of a manager: it refuses the start before anything is written into a Redis of a later form. While Redis is
 * away nobody knows; whoever leads asks again.
 */
export const redisFormatPart = (connection: RedisConnection, program: string, logger: Logger): Part => ({
  name: 'format',
  start: () =>
    checkRedisFormat(connection, program).catch((error: unknown) => {
      if (!(error instanceof StoreUnavailableError)) throw FleetError.from(error)
      logger.warn({ reason: error.reason }, 'the format of what is in Redis is not known yet')
    }),
  stop: () => Promise.resolve(),
})
