import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { smallDisk } from '../../../../test/small-disk.ts'
import { lockDirectory } from './directory-lock.ts'

const disk = smallDisk(1)
const noDisk = typeof disk === 'string' ? ` (not run: ${disk})` : ''

describe.skipIf(noDisk !== '')(`a lock on a full disk${noDisk}`, () => {
  it('is refused with the folder and what to do, and is had when there is room', async () => {
    if (typeof disk === 'string') return
    try {
      const directory = join(disk.path, 'data')
      disk.fill()
      await expect(lockDirectory(directory)).rejects.toMatchObject({
        code: 'log_full',
        message: `the log in ${directory} is full: no space left on the disk; make room there and start again`,
      })
      disk.empty()
      await using _lock = await lockDirectory(directory)
    } finally {
      disk.unmount()
    }
  })
})

describe.concurrent('a lock that was harmed', () => {
  const inFolder = async (use: (directory: string, path: string) => Promise<void>) => {
    const directory = mkdtempSync(join(tmpdir(), 'lock-'))
    try {
      await use(directory, join(directory, 'lock'))
    } finally {
      rmSync(directory, { recursive: true })
    }
  }
  /** What a process leaves that was killed. */
  const leftBehind = async (directory: string, path: string): Promise<string> => {
    const lock = await lockDirectory(directory)
    const text = readFileSync(path, 'utf8')
    await lock[Symbol.asyncDispose]()
    const { pid } = spawnSync(process.execPath, ['-e', ''])
    return text.replace(`"pid":${process.pid}`, `"pid":${pid}`)
  }

  it.each([
    ['the name of its host', (text: string) => text.replace('"host"', '"hosu"')],
    ['its host', (text: string) => text.replace(`"${hostname()}"`, `"${hostname()}~"`)],
    [
      'its process',
      (text: string) => text.replace(/"pid":\d+/, `"pid":${process.pid}`).replace(/"started":"[^"]*"/, '"started":""'),
    ],
    ['its end', (text: string) => text.slice(0, -9)],
  ])('in %s keeps nobody out who comes after its holder', async (_, harm) =>
    inFolder(async (directory, path) => {
      writeFileSync(path, harm(await leftBehind(directory, path)))
      await using _lock = await lockDirectory(directory)
    }),
  )

  /** As a process on this machine leaves it. */
  const heldBy = (path: string, pid: number, started: string) =>
    writeFileSync(path, JSON.stringify({ token: 'other', pid, started, host: hostname() }))

  it('is had by who comes while its holder ends', () =>
    inFolder(async (directory, path) => {
      const holder = spawn('sleep', ['60'])
      heldBy(path, holder.pid ?? 0, '')
      const locked = lockDirectory(directory)
      await new Promise((resolve) => setTimeout(resolve, 200))
      holder.kill('SIGKILL')
      await using _lock = await locked
    }))

  const withoutProc = !existsSync('/proc/self/stat')
  it.skipIf(withoutProc)('is had where its holder ended, and its parent never asked for it', () =>
    inFolder(async (directory, path) => {
      const parent = spawn('sh', ['-c', 'sleep 0 & echo $!; exec sleep 60'])
      const [said] = (await once(parent.stdout, 'data')) as [Buffer]
      const pid = Number(said.toString())
      const fields = () => readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
      await expect.poll(() => fields()[0]).toBe('Z')
      const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
      heldBy(path, pid, `${boot}/${fields()[19]}`)
      await using _lock = await lockDirectory(directory)
      parent.kill('SIGKILL')
    }),
  )

  it('still keeps others out while its holder lives', () =>
    inFolder(async (directory, path) => {
      await using _lock = await lockDirectory(directory)
      writeFileSync(path, readFileSync(path, 'utf8').replace('"pid"', '"pie"'))
      await expect(lockDirectory(directory)).rejects.toMatchObject({ code: 'directory_locked' })
    }))
})
