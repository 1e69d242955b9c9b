import { type BigIntStats, statSync } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Log } from '#runtime'

/** A directory as it was when it was opened: what is open in it goes on being written wherever it is moved to. */
export class Place {
  readonly #path: string
  readonly #identity: string | undefined

  constructor(path: string) {
    this.#path = path
    this.#identity = identityOf(path)
  }

  /** Whether its path still leads to it. */
  isThere(): boolean {
    return identityOf(this.#path) === this.#identity
  }
}

/** @returns undefined: nothing is there. What cannot be asked (no descriptor left, say) is no answer, and thrown. */
function identityOf(path: string): string | undefined {
  const found: BigIntStats | undefined = statSync(path, { bigint: true, throwIfNoEntry: false })
  return found && `${found.dev} ${found.ino}`
}

/** Files come and go between the looks; that it is so three times in a row means that some are missing. */
const LOOKS = 3

/** Whether the directory of a log has as many bytes as the log wrote: fewer where a file of it was taken away. */
export async function hasAllBytes(directory: string, log: Log): Promise<boolean> {
  for (let look = 0; look < LOOKS; look++) {
    const before = log.stats().bytes
    const found = await bytesIn(directory)
    if (found >= Math.min(before, log.stats().bytes)) return true
  }
  return false
}

async function bytesIn(directory: string): Promise<number> {
  const names = (await readdir(directory).catch(goneAs([]))).filter((name) => name.endsWith('.segment'))
  const sizes = names.map(async (name) => (await stat(join(directory, name)).catch(goneAs({ size: 0 }))).size)
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0)
}

const goneAs =
  <T>(instead: T) =>
  (error: NodeJS.ErrnoException): T => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return instead
    throw error
  }
