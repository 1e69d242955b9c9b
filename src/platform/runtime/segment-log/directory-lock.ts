import { randomUUID } from 'node:crypto'
import { type FileHandle, link, mkdir, open, readFile, rename, rm, stat, utimes } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { crc32c } from './crc32c.ts'
import { DirectoryLockedError, isDiskFull, LogFullError } from './errors.ts'

const REFRESH_MS = 2_000
/** Who was killed a moment ago still ends: whoever starts at once waits for it so long, and no longer. */
const ENDS_WITHIN_MS = 3_000
const LOOK_MS = 50
/** A holder on another host cannot be asked; it is gone when it refreshed nothing for this long. */
const FOREIGN_DEAD_AFTER_MS = 15_000

interface Holder {
  readonly token: string
  readonly pid: number
  /** start time of the process in the kernel's words; tells a reused pid apart. Empty where unknown. */
  readonly started: string
  readonly host: string
}

/**
 * Keeps a directory for this process. Node has no file locks of the kernel, so the lock is a file that names its holder:
 * one of a process that no longer runs is taken over at once, also after `kill -9` and where the pid was given away again. One that
 * is harmed names nobody: it is taken over once it was refreshed by nobody for a while.
 * @param startsFull on a full disk it holds by its place alone, until there is room to say whose it is. Without it such a disk is an error.
 * @throws DirectoryLockedError while another living process holds it
 */
export async function lockDirectory(directory: string, startsFull = false): Promise<AsyncDisposable> {
  await mkdir(directory, { recursive: true })
  const path = join(directory, 'lock')
  const me: Holder = {
    token: randomUUID(),
    pid: process.pid,
    started: await startOf(process.pid),
    host: hostname(),
  }
  const mine = join(directory, `lock.${me.token}`)
  const file = await open(mine, 'w')
  let isSaid = false
  try {
    isSaid = await said(file, me, startsFull)
    for (let attempt = 0; ; attempt++) {
      if (await linked(mine, path)) break
      const text = await readFile(path, 'utf8').catch(missingAsUndefined)
      if (text === undefined) continue
      const holder = parseHolder(text)
      if (attempt > 50 || (await staysAlive(path, holder))) throw new DirectoryLockedError(directory, describe(holder))
      await takeAway(path, text, mine)
    }
    // The one that was taken away may have left room for ours.
    if (!isSaid) isSaid = await said(file, me, startsFull)
  } catch (error) {
    await file.close()
    if (!isDiskFull(error)) throw error
    throw new LogFullError(directory, 'no space left on the disk; make room there and start again', { cause: error })
  } finally {
    await rm(mine, { force: true })
  }
  // A refresh that fails (disk full) only ages the lock for other hosts; here the pid tells.
  const refresh = async () => {
    await utimes(path, new Date(), new Date()).catch(() => undefined)
    if (!isSaid) isSaid = await said(file, me, true).catch(() => true)
  }
  let refreshing: Promise<void> = Promise.resolve()
  const timer = setInterval(() => {
    refreshing = refreshing.then(refresh)
  }, REFRESH_MS)
  timer.unref()
  return {
    async [Symbol.asyncDispose]() {
      clearInterval(timer)
      await refreshing
      await file.close()
      const text = await readFile(path, 'utf8').catch(missingAsUndefined)
      if (text !== undefined && parseHolder(text)?.token === me.token) await rm(path, { force: true })
    },
  }
}

/** @returns false: the disk has no room for it */
async function said(file: FileHandle, me: Holder, mayBeFull: boolean): Promise<boolean> {
  try {
    const text = lockText(me)
    const { bytesWritten } = await file.write(text, 0)
    return bytesWritten === Buffer.byteLength(text)
  } catch (error) {
    if (!mayBeFull || !isDiskFull(error)) throw error
    return false
  }
}

async function linked(from: string, to: string): Promise<boolean> {
  try {
    await link(from, to)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

// Two starters may both see a dead lock: who moves it away checks that it moved the dead one, and else gives it back.
async function takeAway(path: string, deadText: string, mine: string): Promise<void> {
  const aside = `${mine}.dead`
  try {
    await rename(path, aside)
  } catch (error) {
    missingAsUndefined(error)
    return
  }
  const moved = await readFile(aside, 'utf8')
  if (moved !== deadText) await linked(aside, path)
  await rm(aside, { force: true })
}

async function staysAlive(path: string, holder: Holder | undefined): Promise<boolean> {
  if (!(await isAlive(path, holder))) return false
  if (holder?.host !== hostname() || holder.pid === process.pid) return true
  const until = performance.now() + ENDS_WITHIN_MS
  while (performance.now() < until) {
    await wait(LOOK_MS)
    if (!(await isAlive(path, holder))) return false
  }
  return true
}

async function isAlive(path: string, holder: Holder | undefined): Promise<boolean> {
  if (!holder) return await isRefreshed(path)
  if (holder.host !== hostname()) {
    if (Date.now() - (await touchedAt(path)) < FOREIGN_DEAD_AFTER_MS) return true
    // The clocks of two hosts may differ: the file must also stand still while we look.
    return await isRefreshed(path)
  }
  try {
    process.kill(holder.pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
  return holder.started === '' || holder.started === (await startOf(holder.pid))
}

async function isRefreshed(path: string): Promise<boolean> {
  const before = await touchedAt(path)
  await wait(REFRESH_MS * 2)
  return (await touchedAt(path)) !== before
}

const touchedAt = (path: string) =>
  stat(path).then(
    (stats) => stats.mtimeMs,
    () => 0,
  )

const ENDED = 'ended'

/** Boot and start time of a process; empty where the system has no /proc. */
async function startOf(pid: number): Promise<string> {
  try {
    const [boot, line] = await Promise.all([
      readFile('/proc/sys/kernel/random/boot_id', 'utf8'),
      readFile(`/proc/${pid}/stat`, 'utf8'),
    ])
    // The second field is the name in brackets and may hold spaces; the start time is the 22nd.
    const fields = line.slice(line.lastIndexOf(')') + 2).split(' ')
    // One that ended, and that its parent has not asked for yet, holds nothing.
    if (fields[0] === 'Z' || fields[0] === 'X') return ENDED
    return `${boot.trim()}/${fields[19] ?? ''}`
  } catch {
    return '' // no /proc here: only the pid tells
  }
}

const checksum = (holder: Holder): string => crc32c(Buffer.from(JSON.stringify(holder))).toString(16)

const lockText = (holder: Holder): string => JSON.stringify({ ...holder, sum: checksum(holder) })

/** @returns undefined where it was cut off while it was written, or harmed since */
function parseHolder(text: string): Holder | undefined {
  try {
    const { token, pid, started, host, sum } = JSON.parse(text) as Partial<Holder & { sum: string }>
    if (typeof token !== 'string' || typeof pid !== 'number' || typeof started !== 'string' || !host) return undefined
    const holder = { token, pid, started, host }
    // Locks of former versions carry no checksum.
    return sum === undefined || sum === checksum(holder) ? holder : undefined
  } catch {
    return undefined
  }
}

const describe = (holder: Holder | undefined) =>
  holder ? `process ${holder.pid} on ${holder.host}` : 'an unknown process'

function missingAsUndefined(error: unknown): undefined {
  if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
  throw error
}
