import { statfsSync } from 'node:fs'
import { join } from 'node:path'
import { open } from 'lmdb'
import { lockDirectory } from '#runtime'
import { ApiError } from './status.ts'
import type { ObjectStorage, StoredChange } from './storage.ts'
import type { ApiObject } from './types.ts'

const VERSION = 'resourceVersion'

/**
 * Objects in an LMDB file, as JSON under `o/group/plural/[namespace/]name`. A write is one transaction, synced to disk.
 * @throws DirectoryLockedError where another process has the directory open.
 */
export async function lmdbStorage(dir: string): Promise<ObjectStorage> {
  const lock = await lockDirectory(dir)
  try {
    return openDatabase(dir, lock)
  } catch (error) {
    await lock[Symbol.asyncDispose]()
    throw error
  }
}

function openDatabase(dir: string, lock: AsyncDisposable): ObjectStorage {
  const database = open<string, string>({ path: join(dir, 'objects.mdb'), encoding: 'string', noSubdir: true })
  // Synchronous, with its sync to disk: the driver's asynchronous commits end the process when the disk is full.
  const commit = (changes: readonly StoredChange[], resourceVersion: number): void => {
    database.transactionSync(() => {
      for (const { key, object } of changes) {
        if (object) database.putSync(`o/${key}`, JSON.stringify(object))
        else database.removeSync(`o/${key}`)
      }
      database.putSync(VERSION, String(resourceVersion))
    })
  }
  return {
    load: () => ({
      resourceVersion: Number(database.get(VERSION) ?? '0'),
      objects: database
        .getRange({ start: 'o/', end: 'o0' })
        .map(({ key, value }): [string, ApiObject] => [key.slice(2), JSON.parse(value) as ApiObject]),
    }),
    async write(changes, resourceVersion) {
      // One turn of the event loop, in which further writes gather to share the next sync.
      await new Promise(setImmediate)
      try {
        commit(changes, resourceVersion)
      } catch (error) {
        throw storageError(dir, error)
      }
    },
    async [Symbol.asyncDispose]() {
      await database.close()
      await lock[Symbol.asyncDispose]()
    },
  }
}

function storageError(dir: string, error: unknown): ApiError {
  const text = error instanceof Error ? error.message : String(error)
  const options = { cause: error }
  if (isFull(dir) || /no space|quota|file too large/i.test(text))
    return new ApiError(
      'InsufficientStorage',
      `the disk of ${dir} is full: nothing was written; free some space and repeat`,
      undefined,
      options,
    )
  return new ApiError('InternalError', `writing to ${dir} failed, nothing was written: ${text}`, undefined, options)
}

/** What a write of a few pages needs at least. */
const ROOM_BYTES = 256 * 1024

/** The driver calls every failed sync an input/output error: the file system says more. */
function isFull(dir: string): boolean {
  const { bavail, bsize } = statfsSync(dir)
  return bavail * bsize < ROOM_BYTES
}
