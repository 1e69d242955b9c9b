import { readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { MAX_FILE_BYTES } from './process.ts'

/** Of folders beside the caches, for what lives as long as a call. */
export const ACCESS_SUFFIX = '.access'

/** Of all caches of one folder, bytes: a volume of 2 GiB has room for those that are being filled besides. */
const MAX_ALL_BYTES = 2 ** 30

/**
 * Caches of repositories in one folder: nothing in them is of value, so those that were not used for longest go where they have too much
 * together, and one that has too much for itself goes at once. They are kept over restarts, and after their sink is gone.
 */
export class GitCaches {
  readonly #folder: string
  readonly #maxBytes: number
  /** of each, bytes; the one that was used last is the last */
  readonly #sizes = new Map<string, number>()
  readonly #inUse = new Map<string, number>()
  #found: Promise<void> | undefined

  constructor(folder: string, maxBytes = MAX_ALL_BYTES) {
    this.#folder = folder
    this.#maxBytes = maxBytes
  }

  /** Runs what uses a cache, by the name of its folder. */
  async using<T>(name: string, action: () => Promise<T>): Promise<T> {
    this.#inUse.set(name, (this.#inUse.get(name) ?? 0) + 1)
    try {
      this.#found ??= this.#find()
      await this.#found
      return await action()
    } finally {
      const users = (this.#inUse.get(name) ?? 1) - 1
      if (users > 0) this.#inUse.set(name, users)
      else {
        this.#inUse.delete(name)
        await this.#bound(name)
      }
    }
  }

  /** What an earlier process left; keys that it was killed over go at once. */
  async #find(): Promise<void> {
    for (const name of await readdir(this.#folder).catch(() => []))
      if (name.endsWith(ACCESS_SUFFIX))
        await rm(join(this.#folder, name), { recursive: true, force: true }).catch(() => undefined)
      else this.#sizes.set(name, await bytesOf(join(this.#folder, name)))
  }

  async #bound(used: string): Promise<void> {
    this.#sizes.delete(used)
    this.#sizes.set(used, await bytesOf(join(this.#folder, used)))
    let all = [...this.#sizes.values()].reduce((sum, bytes) => sum + bytes, 0)
    for (const [name, bytes] of this.#sizes) {
      const isTooLarge = name === used && bytes > MAX_FILE_BYTES
      if ((all <= this.#maxBytes && !isTooLarge) || this.#inUse.has(name)) continue
      this.#sizes.delete(name)
      all -= bytes
      // What stands there belongs to nobody's call: it is tried again after the next one.
      await rm(join(this.#folder, name), { recursive: true, force: true }).catch(() => undefined)
    }
  }
}

/** Of all files below, bytes; what goes meanwhile counts nothing. */
async function bytesOf(folder: string): Promise<number> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => [])
  let bytes = 0
  for (const entry of entries)
    if (entry.isFile()) bytes += (await stat(join(entry.parentPath, entry.name)).catch(() => undefined))?.size ?? 0
  return bytes
}
