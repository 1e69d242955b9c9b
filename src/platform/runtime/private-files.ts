import { chmod, readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'

/** of one folder; beyond it files keep the modes they have */
const MAX_FILES = 100_000
const OTHERS = 0o077

/**
 * Keeps a data folder to its owner: what this process makes from now on nobody else may read, and neither what is there already,
 * whatever the mode of the folder. Files of another owner stay as they are.
 */
export async function keepPrivate(directory: string): Promise<void> {
  process.umask(OTHERS)
  let seen = 0
  for (const entry of await readdir(directory, { recursive: true, withFileTypes: true }).catch(() => [])) {
    if (++seen > MAX_FILES) return
    if (!entry.isFile() && !entry.isDirectory()) continue
    const path = join(entry.parentPath, entry.name)
    try {
      const { mode } = await stat(path)
      if ((mode & OTHERS) !== 0) await chmod(path, mode & 0o7777 & ~OTHERS)
    } catch {
      // Removed meanwhile, or somebody else's.
    }
  }
}
