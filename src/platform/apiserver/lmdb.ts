import { existsSync } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { ObjectsLostError } from './journal-errors.ts'
import type { ApiObject } from './types.ts'

const FILE = 'objects.mdb'

interface Taken {
  readonly resourceVersion: number
  readonly objects: readonly (readonly [key: string, object: ApiObject])[]
  /** they are kept in the journal now: the file goes, with what its free pages hold */
  done(): Promise<void>
}

/**
 * What a version before the journal kept in an LMDB file, once. The file has another name while it is read: a damaged one can end
 * the process, and must not do so at every start.
 * @returns undefined where there is none
 * @throws ObjectsLostError where it cannot be read
 */
export async function takeLmdb(dir: string, acceptLoss: boolean): Promise<Taken | undefined> {
  const [from, reading] = [join(dir, FILE), join(dir, `${FILE}.reading`)]
  if (existsSync(reading)) {
    if (!acceptLoss) throw new ObjectsLostError(dir, 'all', 0)
    await rename(reading, join(dir, `${FILE}.damaged`))
  }
  if (!existsSync(from)) return undefined
  await rename(from, reading)
  try {
    const { open } = await import('lmdb')
    const database = open<string, string>({ path: reading, encoding: 'string', noSubdir: true, readOnly: true })
    const resourceVersion = Number(database.get('resourceVersion') ?? '0')
    const objects = [...database.getRange({ start: 'o/', end: 'o0' })].map(
      ({ key, value }) => [key.slice(2), JSON.parse(value) as ApiObject] as const,
    )
    await database.close()
    // It can be read: whoever is killed before its objects are in the journal takes it again.
    await rename(reading, from)
    const done = async () => {
      for (const path of [from, `${reading}-lock`, `${from}-lock`]) await rm(path, { force: true })
    }
    return { resourceVersion, objects, done }
  } catch {
    throw new ObjectsLostError(dir, 'all', 0)
  }
}
