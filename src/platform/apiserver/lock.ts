import { linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { FleetError } from '#model'

/** A data directory belongs to one process at a time. */
export class DirectoryInUseError extends FleetError {
  override readonly name = 'DirectoryInUseError'
  readonly code = 'directory_in_use'
  readonly retryable = true
  readonly dir: string
  readonly pid: number

  constructor(dir: string, pid: number) {
    super(`${dir} is in use by process ${pid}: stop it, or give this one a data directory of its own`)
    this.dir = dir
    this.pid = pid
  }
}

/** When a process started, in ticks since boot; undefined where the system does not tell. Tells a reused pid apart. */
function startedAt(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]
  } catch {
    return undefined // no /proc here, or no such process
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

const heldHere = new Set<string>()

/**
 * Takes the directory for this process until the returned function is called. A lock whose process is gone is taken over.
 * @throws DirectoryInUseError where a living process holds it.
 */
export function lockDirectory(dir: string): () => void {
  const path = join(resolve(dir), 'lock')
  const mine = join(resolve(dir), `lock.${process.pid}`)
  if (heldHere.has(path)) throw new DirectoryInUseError(dir, process.pid)
  writeFileSync(mine, JSON.stringify({ pid: process.pid, started: startedAt(process.pid) }), { mode: 0o600 })
  try {
    for (let attempt = 0; ; attempt++) {
      try {
        // A link appears with its content: nobody can read a lock that is half written.
        linkSync(mine, path)
        break
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
        const holder = readHolder(path)
        if (holder && holder.pid !== process.pid && isAlive(holder.pid) && holder.started === startedAt(holder.pid))
          throw new DirectoryInUseError(dir, holder.pid)
        if (attempt >= 3) throw new DirectoryInUseError(dir, holder?.pid ?? 0)
        rmSync(path, { force: true })
      }
    }
  } finally {
    rmSync(mine, { force: true })
  }
  heldHere.add(path)
  return () => {
    if (!heldHere.delete(path)) return
    rmSync(path, { force: true })
  }
}

function readHolder(path: string): { pid: number; started?: string } | undefined {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as { pid: number; started?: string }
  } catch {
    return undefined // gone in between, or damaged: either way nobody's
  }
}
