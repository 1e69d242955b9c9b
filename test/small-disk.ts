import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface SmallDisk {
  readonly path: string
  /** nothing more fits */
  fill(): void
  empty(): void
  unmount(): void
}

/** A disk of a few MiB; a text where this process may not mount one. */
export function smallDisk(mebibytes = 16): SmallDisk | string {
  const path = mkdtempSync(join(tmpdir(), 'small-disk-'))
  const isRoot = process.getuid?.() === 0
  const options = ['-t', 'tmpfs', '-o', `size=${mebibytes}m`, 'tmpfs', path]
  const mounting = isRoot ? spawnSync('mount', options) : undefined
  if (mounting?.status !== 0) {
    rmSync(path, { recursive: true })
    return mounting ? `mount says: ${mounting.stderr ?? mounting.error}` : 'only root can mount a small disk'
  }
  const ballast = join(path, 'ballast')
  return {
    path,
    fill() {
      const block = Buffer.alloc(4096)
      // Every page of it; what is left may hold nothing new.
      for (const piece of [2 ** 12, 2 ** 8, 1])
        for (let _n = 0; ; _n++) {
          try {
            writeFileSync(ballast, Buffer.alloc(block.length * piece), { flag: 'a' })
          } catch {
            break // full: that is what was wanted
          }
        }
    },
    empty: () => rmSync(ballast),
    unmount() {
      spawnSync('umount', ['-l', path])
      rmSync(path, { recursive: true, force: true })
    },
  }
}
