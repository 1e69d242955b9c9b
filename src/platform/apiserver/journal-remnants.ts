import { readdir, readFile, rm } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { replaceFile } from '#runtime'
import type { Sealer } from '#sealing'

const SEALED = '.sealed'
const PLACE = { kind: 'File', name: 'put aside' }

/** Of the LMDB file of a former version, all of whose objects are in the journal. */
const TAKEN = /^objects\.mdb\.imported$|^objects\.mdb.*-lock$/
/** Kept for people: what could not be read or was not asked for, and whole copies from before a loss was accepted. */
const ASIDE = /^objects\.mdb(\.reading|\.damaged)?$|^[ab]\/[^/]*\.segment\.damaged$|^lost-.*\.segment(\.damaged)?$/

/**
 * What lies beside the journal and may hold objects in the clear: what was taken over goes, what was put aside for people is
 * sealed as it is. @returns how many files
 */
export async function sealRemnants(dir: string, sealer: Sealer): Promise<number> {
  let count = 0
  for (const entry of await readdir(dir, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    const name = relative(dir, path)
    if (!entry.isFile() || name.endsWith(SEALED)) continue
    if (ASIDE.test(name)) await replaceFile(`${path}${SEALED}`, await sealer.seal(await readFile(path), PLACE))
    else if (!TAKEN.test(name)) continue
    await rm(path)
    count++
  }
  return count
}

/**
 * A file that was put aside, as it was.
 * @throws UnknownKeyError, SealBrokenError
 */
export const openRemnant = async (path: string, sealer: Sealer): Promise<Buffer> =>
  sealer.open(await readFile(path), PLACE)
