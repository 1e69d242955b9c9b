import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
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
  ])('in %s keeps nobody out who comes after its holder', { timeout: 20_000 }, async (_, harm) =>
    inFolder(async (directory, path) => {
      writeFileSync(path, harm(await leftBehind(directory, path)))
      await using _lock = await lockDirectory(directory)
    }),
  )

  it('still keeps others out while its holder lives', { timeout: 20_000 }, () =>
    inFolder(async (directory, path) => {
      await using _lock = await lockDirectory(directory)
      writeFileSync(path, readFileSync(path, 'utf8').replace('"pid"', '"pie"'))
      await expect(lockDirectory(directory)).rejects.toMatchObject({ code: 'directory_locked' })
    }),
  )
})
