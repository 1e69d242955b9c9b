import { open, rename } from 'node:fs/promises'
import { dirname } from 'node:path'

/**
 * Replaces a file as a whole, for its owner's eyes only: after a crash there is the old content or the new one, never half, and
 * once it resolves the new one.
 * @param suffix of the file beside it that is written first
 */
export async function replaceFile(path: string, content: string | Uint8Array, suffix = '.new'): Promise<void> {
  const file = await open(`${path}${suffix}`, 'w', 0o600)
  try {
    await file.writeFile(content)
    await file.sync()
  } finally {
    await file.close()
  }
  await rename(`${path}${suffix}`, path)
  const directory = await open(dirname(path), 'r')
  try {
    await directory.sync()
  } finally {
    await directory.close()
  }
}
