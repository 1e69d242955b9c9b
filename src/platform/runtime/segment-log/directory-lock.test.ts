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
