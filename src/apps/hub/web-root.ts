import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The built page: beside the bundle, or in the checkout when run from source. Undefined where it was not built. */
export function webRoot(): string | undefined {
  let folder = dirname(fileURLToPath(import.meta.url))
  for (let up = 0; up < 5; up++) {
    const candidate = join(folder, 'dist', 'web')
    if (existsSync(join(candidate, 'index.html'))) return candidate
    folder = dirname(folder)
  }
  return undefined
}
