import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { open } from 'lmdb'
import { lockDirectory } from './lock.ts'
import { ApiError } from './status.ts'
import type { ObjectStorage } from './storage.ts'
import type { ApiObject } from './types.ts'

const META = 'resourceVersion'

/**
 * Objects in an LMDB file, as JSON under `o/group/plural/[namespace/]name`. A write is one transaction, synced to disk.
 * @throws DirectoryInUseError where another process has the directory open.
 */
export function lmdbStorage(dir: string): ObjectStorage {
  mkdirSync(dir, { recursive: true, mode: 0o700 })
  const unlock = lockDirectory(dir)
  try {
    const root = open<string, string>({
      path: join(dir, 'objects.mdb'),
      encoding: 'string',
      // Committed means synced: an answered write survives the end of the machine.
      overlappingSync: false,
      noSubdir: true,
    })
    return {
      load: () => ({
        resourceVersion: Number(root.get(META) ?? '0'),
        objects: root
          .getRange({ start: 'o/', end: 'o0' })
          .map(({ key, value }): [string, ApiObject] => [key.slice(2), JSON.parse(value) as ApiObject]),
      }),
      async write(changes, resourceVersion) {
        try {
          await root.transaction(() => {
            for (const { key, object } of changes) {
              if (object) root.putSync(`o/${key}`, JSON.stringify(object))
              else root.removeSync(`o/${key}`)
            }
            root.putSync(META, String(resourceVersion))
          })
        } catch (error) {
          throw storageError(dir, error)
        }
      },
      async [Symbol.asyncDispose]() {
        await root.close()
        unlock()
      },
    }
  } catch (error) {
    unlock()
    throw error
  }
}

function storageError(dir: string, error: unknown): ApiError {
  const text = error instanceof Error ? error.message : String(error)
  const full = /no space|ENOSPC|EDQUOT|quota|MAP_FULL|too large/i.test(text)
  return full
    ? new ApiError(
        'InsufficientStorage',
        `the disk of ${dir} is full: nothing was written; free some space and repeat`,
        undefined,
        { cause: error },
      )
    : new ApiError('InternalError', `writing to ${dir} failed, nothing was written: ${text}`, undefined, {
        cause: error,
      })
}
