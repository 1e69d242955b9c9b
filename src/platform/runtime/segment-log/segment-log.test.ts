import { mkdtemp, readdir, readFile, rename, rm, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { crc32c } from './crc32c.ts'
import { type Disk, nodeDisk } from './disk.ts'
import { DirectoryLockedError, LogFullError, LogWriteError, RecordTooLargeError } from './errors.ts'
import { RECORD_HEADER_BYTES, SEGMENT_HEADER_BYTES } from './record.ts'
import { type LogDamage, SegmentLog, type SegmentLogOptions } from './segment-log.ts'

let directory: string
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'segment-log-'))
})
afterEach(() => rm(directory, { recursive: true, force: true }))

const open = (options: Partial<SegmentLogOptions> = {}) => SegmentLog.open({ directory, ...options })
const bytesOf = (text: string) => Buffer.from(text)

async function contents(log: SegmentLog, from = 0): Promise<[number, string][]> {
  const all: [number, string][] = []
  for await (const { index, payload } of log.read(from)) all.push([index, payload.toString()])
  return all
}
const segments = async () => (await readdir(directory)).filter((name) => name.endsWith('.segment')).sort()

describe('crc32c', () => {
  it('gives the check values of RFC 3720', () => {
    expect(crc32c(Buffer.alloc(32))).toBe(0x8a9136aa)
    expect(crc32c(Buffer.alloc(32, 0xff))).toBe(0x62a8ab43)
    expect(crc32c(Buffer.from(Array.from({ length: 32 }, (_, i) => i)))).toBe(0x46dd794e)
    expect(crc32c(Buffer.from('123456789'))).toBe(0xe3069283)
  })

  it('gives the same in pieces as in one go', () =>
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 100 }), fc.nat(100), (bytes, cut) => {
        const at = Math.min(cut, bytes.length)
        expect(crc32c(bytes, crc32c(bytes, 0, 0, at), at)).toBe(crc32c(bytes))
      }),
    ))
})

describe('SegmentLog', () => {
  it('gives back what was appended, in order, also after it was opened again', async () => {
    {
      await using log = await open()
      expect(await Promise.all(['a', '', 'c'].map((text) => log.append(bytesOf(text))))).toEqual([0, 1, 2])
      expect(await contents(log)).toEqual([
        [0, 'a'],
        [1, ''],
        [2, 'c'],
      ])
    }
    await using log = await open()
    expect(log.lastIndex()).toBe(2)
    expect(await log.append(bytesOf('d'))).toBe(3)
    expect(await contents(log, 2)).toEqual([
      [2, 'c'],
      [3, 'd'],
    ])
  })

  it('lets many appends share one sync', async () => {
    await using log = await open()
    await Promise.all(Array.from({ length: 500 }, (_, i) => log.append(bytesOf(`record ${i}`))))
    expect(log.stats().appendedRecords).toBe(500)
    expect(log.stats().syncs).toBeLessThan(10)
  })

  it('tells of synced records in the order of their indices', async () => {
    await using log = await open({ maxQueuedBytes: 300 })
    const told: number[] = []
    const note = (index: number) => told.push(index)
    // Some are refused and asked again, which puts their promises out of step.
    const append = (i: number) =>
      log.append(Buffer.alloc(20), note).catch(() => (i % 2 ? log.append(Buffer.alloc(1), note) : undefined))
    await Promise.allSettled(Array.from({ length: 60 }, (_, i) => append(i)))
    expect(told.length).toBeGreaterThan(15)
    expect(told).toEqual(told.toSorted((a, b) => a - b))
    expect(told).toEqual((await contents(log)).map(([index]) => index))
  })

  it('resolves an append only after its bytes were synced', async () => {
    const steps: string[] = []
    const disk = watchedDisk({ onSync: () => void steps.push('sync') })
    await using log = await open({ disk })
    steps.length = 0
    await log.append(bytesOf('a')).then(() => steps.push('acknowledged'))
    expect(steps.at(-1)).toBe('acknowledged')
    expect(steps.at(-2)).toBe('sync')
  })

  it('begins a new segment when one is full, and reads over all of them', async () => {
    await using log = await open({ segmentBytes: 200 })
    for (let i = 0; i < 20; i++) await log.append(bytesOf(`record number ${i}`))
    expect((await segments()).length).toBeGreaterThan(3)
    expect((await contents(log)).map(([index]) => index)).toEqual(Array.from({ length: 20 }, (_, i) => i))
    expect((await contents(log, 13))[0]).toEqual([13, 'record number 13'])
  })

  it('deletes only whole segments that every consumer has passed', async () => {
    await using log = await open({ segmentBytes: 200, retainBytes: 0 })
    log.checkpoint('state')
    log.checkpoint('history')
    for (let i = 0; i < 20; i++) await log.append(bytesOf(`record number ${i}`))
    const before = (await segments()).length
    await log.setCheckpoint('state', 19)
    expect((await segments()).length).toBe(before)
    await log.setCheckpoint('history', 10)
    expect((await segments()).length).toBeLessThan(before)
    expect((await contents(log, 11)).length).toBe(9)
    await log.setCheckpoint('history', 19)
    expect((await segments()).length).toBe(1)
  })

  it('says that all records are gone where only checkpoints are left, and gives no index again', async () => {
    {
      await using log = await open()
      for (let n = 0; n < 5; n++) await log.append(bytesOf('x'))
      await log.setCheckpoint('state', 4)
    }
    for (const name of await segments()) await rm(join(directory, name))
    const damage: LogDamage[] = []
    {
      await using log = await open({ onDamage: (place) => damage.push(place) })
      expect(damage).toEqual([{ kind: 'damaged', segment: '*.segment', offset: 0, bytes: 0, index: 4 }])
      expect(await log.append(bytesOf('y'))).toBe(5)
    }
    damage.length = 0
    await using again = await open({ onDamage: (place) => damage.push(place) })
    expect([again.lastIndex(), damage]).toEqual([5, []])
  })

  it('names the file that says which log it is, where that is missing', async () => {
    {
      await using log = await open()
      await log.append(bytesOf('x'))
    }
    await rm(join(directory, 'id'))
    const damage: LogDamage[] = []
    await using log = await open({ onDamage: (place) => damage.push(place) })
    expect(damage).toMatchObject([{ kind: 'damaged', segment: 'id' }])
    expect(await contents(log)).toEqual([[0, 'x']])
  })

  it('says nothing of a log that was begun at an index, and has no record yet', async () => {
    {
      await using log = await open()
      await log.keep('ledger', 'what was before')
      await log.setCheckpoint('ledger', 58)
    }
    const damage: LogDamage[] = []
    await using log = await open({ onDamage: (place) => damage.push(place) })
    expect(damage).toEqual([])
    expect(await log.append(bytesOf('y'))).toBe(59)
  })

  it('keeps checkpoints over a restart, and never lets one go back', async () => {
    {
      await using log = await open()
      expect(log.checkpoint('state')).toBe(-1)
      await log.append(bytesOf('a'))
      await log.setCheckpoint('state', 7)
      await log.setCheckpoint('state', 3)
    }
    await using log = await open()
    expect(log.checkpoint('state')).toBe(7)
    // A record below the checkpoint would never be read by that consumer.
    expect(await log.append(bytesOf('b'))).toBe(8)
  })

  it('refuses at its hard bound what it cannot hold, says so, and takes again when there is room', async () => {
    await using log = await open({ segmentBytes: 400, maxBytes: 2000, retainBytes: 0, maxRecordBytes: 400 })
    log.checkpoint('state')
    const failure = await (async () => {
      for (;;) await log.append(Buffer.alloc(100))
    })().catch((error: unknown) => error)
    expect(failure).toBeInstanceOf(LogFullError)
    expect(log.stats().refusedRecords).toBe(1)
    const held = (await contents(log)).length
    expect(held).toBe(log.stats().appendedRecords)
    await log.setCheckpoint('state', log.lastIndex())
    await expect(log.append(Buffer.alloc(100))).resolves.toBeGreaterThan(held - 1)
  })

  it('drops the oldest instead, where it was told to, and counts them', async () => {
    await using log = await open({ segmentBytes: 400, maxBytes: 2000, whenFull: 'drop-oldest' })
    log.checkpoint('uplink')
    for (let i = 0; i < 100; i++) await log.append(Buffer.alloc(100))
    const kept = await contents(log)
    expect(kept.at(-1)?.[0]).toBe(99)
    expect(log.stats().droppedRecords).toBe(100 - kept.length)
    expect(log.stats().bytes).toBeLessThanOrEqual(2000)
  })

  it('refuses a record above its maximum', async () => {
    await using log = await open({ maxRecordBytes: 10 })
    await expect(log.append(Buffer.alloc(11))).rejects.toBeInstanceOf(RecordTooLargeError)
  })

  it('refuses when too many bytes wait for the disk', async () => {
    await using log = await open({ maxQueuedBytes: 100 })
    const results = await Promise.allSettled(Array.from({ length: 10 }, () => log.append(Buffer.alloc(40))))
    expect(results.filter(({ status }) => status === 'fulfilled').length).toBe(2)
    expect(results.find((result) => result.status === 'rejected')?.reason).toBeInstanceOf(LogFullError)
  })

  it('refuses a directory that is in use, and gives it free at the end', async () => {
    {
      await using _log = await open()
      await expect(open()).rejects.toBeInstanceOf(DirectoryLockedError)
    }
    await using _log = await open()
  })

  it('takes over from a process that is gone, also when its pid was given away again', async () => {
    const host = (await import('node:os')).hostname()
    for (const pid of [2 ** 22 - 1, process.pid, 1]) {
      await writeFile(join(directory, 'lock'), JSON.stringify({ token: 't', pid, started: 'boot/0', host }))
      await using _log = await open()
    }
    await writeFile(join(directory, 'lock'), '{"tok')
    await using _log = await open()
  })

  it('starts above a position it has never seen', async () => {
    await using log = await open()
    log.advance(500)
    expect(await log.append(bytesOf('a'))).toBe(500)
    expect(await contents(log, 0)).toEqual([[500, 'a']])
  })

  it('begins a segment when asked, so that nothing of what was passed is left', async () => {
    {
      await using log = await open({ retainBytes: 0, retainMs: 0 })
      log.checkpoint('state')
      await log.beginSegment()
      for (const text of ['a', 'b']) await log.append(bytesOf(text))
      await Promise.all([log.append(bytesOf('c')), log.beginSegment()])
      await log.beginSegment()
      await log.append(bytesOf('d'))
      await log.setCheckpoint('state', 2)
      expect(await segments()).toEqual(['0000000000000003.segment'])
      expect(await contents(log)).toEqual([[3, 'd']])
    }
    await using log = await open()
    expect(await log.append(bytesOf('e'))).toBe(4)
    expect((await contents(log)).map(([, text]) => text)).toEqual(['d', 'e'])
  })

  it('takes nothing more within a second after its folder was moved away, and goes on when it is back', async () => {
    let now = 0
    const clock = { now: () => now, sleep: () => Promise.resolve() }
    const elsewhere = `${directory}-elsewhere`
    await using log = await open({ clock })
    await log.append(bytesOf('a'))
    await rename(directory, elsewhere)
    now += 1_000
    await expect(log.append(bytesOf('b'))).rejects.toThrow(/were moved or deleted while it runs; put the folder back/)
    await expect(log.append(bytesOf('b'))).rejects.toBeInstanceOf(LogWriteError)
    await rename(elsewhere, directory)
    await log.append(bytesOf('c'))
    expect((await contents(log)).map(([, text]) => text)).toEqual(['a', 'c'])
  })

  it('stops reading when asked', async () => {
    await using log = await open()
    await log.append(bytesOf('a'))
    await expect(log.read(0, AbortSignal.abort()).next()).rejects.toThrow()
  })
})

describe('a disk that fails', () => {
  it('answers a full disk with a typed error, acknowledges nothing half, and heals by itself', async () => {
    const disk = watchedDisk()
    await using log = await open({ disk })
    await log.append(bytesOf('before'))
    disk.free = 10
    await expect(log.append(Buffer.alloc(1000))).rejects.toBeInstanceOf(LogFullError)
    await expect(log.append(Buffer.alloc(1000))).rejects.toBeInstanceOf(LogFullError)
    await expect(log.setCheckpoint('state', 0)).rejects.toBeInstanceOf(LogFullError)
    disk.free = Number.POSITIVE_INFINITY
    await log.append(bytesOf('after'))
    expect((await contents(log)).map(([, text]) => text)).toEqual(['before', 'after'])
  })

  it('makes its own room on a full disk from what every consumer has passed', async () => {
    const disk = watchedDisk()
    await using log = await open({ disk, segmentBytes: 200 })
    log.checkpoint('state')
    for (let i = 0; i < 20; i++) await log.append(bytesOf(`record number ${i}`))
    disk.free = 10
    await expect(log.append(Buffer.alloc(100))).rejects.toBeInstanceOf(LogFullError)
    disk.remove = async (path) => {
      await nodeDisk.remove(path)
      if (path.endsWith('.segment')) disk.free += 100
    }
    await log.setCheckpoint('state', 19)
    await expect(log.append(Buffer.alloc(100))).resolves.toBeGreaterThan(19)
  })

  it('never trusts a file again whose sync failed', async () => {
    const disk = watchedDisk()
    {
      await using log = await open({ disk })
      await log.append(bytesOf('before'))
      disk.failSync = true
      await expect(log.append(bytesOf('lost'))).rejects.toBeInstanceOf(LogWriteError)
      disk.failSync = false
      await log.append(bytesOf('after'))
      expect((await segments()).length).toBe(2)
    }
    await using log = await open()
    expect((await contents(log)).map(([, text]) => text)).toEqual(['before', 'after'])
  })
})

describe('damaged files', () => {
  async function filled(count: number, options: Partial<SegmentLogOptions> = {}) {
    await using log = await open(options)
    for (let i = 0; i < count; i++) await log.append(bytesOf(`record ${i}`))
  }
  const recordBytes = RECORD_HEADER_BYTES + 'record 0'.length

  it('skips a damaged record in the middle, says where, and serves those after it', async () => {
    await filled(5)
    const [name] = await segments()
    const bytes = await readFile(join(directory, name as string))
    const offset = SEGMENT_HEADER_BYTES + 2 * recordBytes
    bytes[offset + RECORD_HEADER_BYTES + 3]! ^= 1
    await writeFile(join(directory, name as string), bytes)
    const damage: LogDamage[] = []
    await using log = await open({ onDamage: (place) => damage.push(place) })
    expect((await contents(log)).map(([index]) => index)).toEqual([0, 1, 3, 4])
    expect(damage).toEqual([{ kind: 'damaged', segment: name, offset, bytes: recordBytes, index: 2 }])
    expect(log.stats().damagedBytes).toBe(recordBytes)
  })

  it('finds the next record by its marker when a header is damaged', async () => {
    await filled(5)
    const [name] = await segments()
    const bytes = await readFile(join(directory, name as string))
    bytes[SEGMENT_HEADER_BYTES + 2 * recordBytes + 5]! ^= 0xff // the length
    await writeFile(join(directory, name as string), bytes)
    await using log = await open()
    expect((await contents(log)).map(([index]) => index)).toEqual([0, 1, 3, 4])
  })

  it('never serves a record that lies inside the payload of a damaged one', async () => {
    await filled(1)
    const inner = (await readFile(join(directory, (await segments())[0] as string))).subarray(SEGMENT_HEADER_BYTES)
    await rm(directory, { recursive: true })
    {
      await using log = await open()
      await log.append(bytesOf('first'))
      await log.append(Buffer.concat([inner, inner]))
    }
    const path = join(directory, (await segments())[0] as string)
    const bytes = await readFile(path)
    bytes[SEGMENT_HEADER_BYTES + RECORD_HEADER_BYTES + 5 + 4]! ^= 1
    await writeFile(path, bytes)
    await using log = await open()
    expect(await contents(log)).toEqual([[0, 'first']])
  })

  it('drops a segment that was cut off while it was made', async () => {
    await filled(3)
    await writeFile(join(directory, '0000000000000003.segment'), Buffer.alloc(7))
    await using log = await open()
    expect(await log.append(bytesOf('next'))).toBe(3)
  })

  it('sets a segment without a readable header aside and never gives its numbers again', async () => {
    await filled(5)
    const [name] = await segments()
    const bytes = await readFile(join(directory, name as string))
    bytes[9]! ^= 1
    await writeFile(join(directory, name as string), bytes)
    const damage: LogDamage[] = []
    await using log = await open({ onDamage: (place) => damage.push(place) })
    expect(damage).toHaveLength(1)
    expect(await log.append(bytesOf('next'))).toBeGreaterThan(4)
    expect(await readdir(directory)).toContain(`${name}.damaged`)
  })

  it('serves every whole record after any cut, and goes on above them', () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(fc.string({ maxLength: 60 }), { minLength: 1, maxLength: 12 }),
        fc.nat(1000),
        async (texts, cutAt) => {
          await rm(directory, { recursive: true, force: true })
          {
            await using log = await open()
            for (const text of texts) await log.append(bytesOf(text))
          }
          const path = join(directory, (await segments())[0] as string)
          const cut = Math.min(cutAt, (await readFile(path)).length)
          await truncate(path, cut)
          let whole = 0
          for (let end = SEGMENT_HEADER_BYTES; whole < texts.length; whole++) {
            end += RECORD_HEADER_BYTES + bytesOf(texts[whole] as string).length
            if (end > cut) break
          }
          await using log = await open()
          expect((await contents(log)).map(([, text]) => text)).toEqual(texts.slice(0, whole))
          const index = await log.append(bytesOf('next'))
          expect(index).toBeGreaterThanOrEqual(whole)
          expect((await contents(log)).at(-1)).toEqual([index, 'next'])
        },
      ),
      { numRuns: 60 },
    ))

  it('loses at most the records that random damage touches, and never invents one', () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(fc.string({ minLength: 1, maxLength: 60 }), { minLength: 2, maxLength: 10 }),
        fc.array(fc.record({ at: fc.nat(1000), mask: fc.integer({ min: 1, max: 255 }) }), { maxLength: 3 }),
        async (texts, flips) => {
          await rm(directory, { recursive: true, force: true })
          {
            await using log = await open()
            for (const text of texts) await log.append(bytesOf(text))
          }
          const path = join(directory, (await segments())[0] as string)
          const bytes = await readFile(path)
          const touched = new Set<number>()
          for (const { at, mask } of flips) {
            const place = SEGMENT_HEADER_BYTES + (at % (bytes.length - SEGMENT_HEADER_BYTES))
            bytes[place]! ^= mask
            let end = SEGMENT_HEADER_BYTES
            const ends = texts.map((text) => {
              end += RECORD_HEADER_BYTES + bytesOf(text).length
              return end
            })
            touched.add(ends.findIndex((recordEnd) => recordEnd > place))
          }
          await writeFile(path, bytes)
          await using log = await open()
          const served = await contents(log)
          for (const [index, text] of served) expect(text).toBe(texts[index])
          const indices = new Set(served.map(([index]) => index))
          for (const index of texts.keys()) if (!touched.has(index)) expect(indices).toContain(index)
        },
      ),
      { numRuns: 60 },
    ))
})

/** The real disk, with little room or a broken sync when a test says so. */
function watchedDisk({ onSync = () => {} } = {}) {
  const disk = { ...nodeDisk, free: Number.POSITIVE_INFINITY, failSync: false } satisfies Disk & Record<string, unknown>
  disk.open = async (path) => {
    const file = await nodeDisk.open(path)
    return {
      ...file,
      write: async (bytes, position) => {
        if (bytes.length > disk.free) {
          // As a disk does it: a part fits, the rest does not.
          await file.write(bytes.subarray(0, disk.free), position)
          throw Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' })
        }
        await file.write(bytes, position)
      },
      sync: async () => {
        if (disk.failSync) throw Object.assign(new Error('EIO: i/o error'), { code: 'EIO' })
        await file.sync()
        onSync()
      },
    }
  }
  return disk
}
