import { readFile, stat } from 'node:fs/promises'
import type { AccessFault } from './cluster-access.ts'

const MAX_BYTES = 4 * 2 ** 20

/** Kubeconfigs of this machine by path, read again when the file changes. Bounded by the paths that connections name. */
export class LocalKubeconfigs {
  readonly #known = new Map<string, { readonly stamp: string; readonly text: string }>()

  async read(path: string): Promise<{ readonly text: string } | { readonly fault: AccessFault }> {
    try {
      const { mtimeMs, size, ino } = await stat(path)
      if (size > MAX_BYTES) return unreadable(`the kubeconfig ${path} is larger than ${MAX_BYTES / 2 ** 20} MiB`)
      const stamp = `${mtimeMs} ${size} ${ino}`
      const known = this.#known.get(path)
      if (known?.stamp === stamp) return known
      const text = await readFile(path, 'utf8')
      if (this.#known.size >= 1000) this.#known.clear()
      this.#known.set(path, { stamp, text })
      return { text }
    } catch (error) {
      const code = error instanceof Error && 'code' in error ? String(error.code) : String(error)
      return unreadable(`the kubeconfig ${path} cannot be read (${code}); check that it exists and is readable`)
    }
  }
}

const unreadable = (message: string) => ({ fault: { code: 'kubeconfig_unreadable', message } })
