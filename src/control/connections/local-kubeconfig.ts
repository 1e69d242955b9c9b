import { readFile, stat } from 'node:fs/promises'
import { type Kubeconfig, mergeKubeconfigs } from '#kube'
import type { AccessFault } from './cluster-access.ts'

const MAX_BYTES = 16 * 2 ** 20
const MAX_FILES = 100

type Reading = { readonly config: Kubeconfig } | { readonly fault: AccessFault }

/**
 * Kubeconfigs of this machine by path, read again when the file changes. A file of a thousand contexts is parsed once, not
 * once per cluster and round.
 */
export class LocalKubeconfigs {
  readonly #known = new Map<string, { readonly stamp: string; readonly reading: Promise<Reading> }>()

  async read(path: string): Promise<Reading> {
    try {
      const { mtimeMs, size, ino } = await stat(path)
      if (size > MAX_BYTES) return unreadable(`the kubeconfig ${path} is larger than ${MAX_BYTES / 2 ** 20} MiB`)
      const stamp = `${mtimeMs} ${size} ${ino}`
      const known = this.#known.get(path)
      if (known?.stamp === stamp) return await known.reading
      if (this.#known.size >= MAX_FILES) this.#known.clear()
      const reading = parse(path)
      this.#known.set(path, { stamp, reading })
      return await reading
    } catch (error) {
      this.#known.delete(path)
      const code = error instanceof Error && 'code' in error ? String(error.code) : String(error)
      return unreadable(`the kubeconfig ${path} cannot be read (${code}); check that it exists and is readable`)
    }
  }
}

async function parse(path: string): Promise<Reading> {
  const text = await readFile(path, 'utf8')
  try {
    return { config: mergeKubeconfigs([{ path, text }]) }
  } catch (error) {
    const message = `the kubeconfig cannot be used: ${error instanceof Error ? error.message : String(error)}`
    return { fault: { code: 'kubeconfig_malformed', message } }
  }
}

const unreadable = (message: string) => ({ fault: { code: 'kubeconfig_unreadable', message } })
