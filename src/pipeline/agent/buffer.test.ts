import { mkdtemp, open, readdir, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { missingFrom, type Ranges, rangesOf } from '#model'
import type { LogOptions } from '#runtime'
import { nodeDisk } from '../../platform/runtime/segment-log/disk.ts'
import { BatchBuffer, type BufferOptions } from './buffer.ts'
import type { BufferRecord } from './buffer-record.ts'
import { VirtualTime } from './testing/virtual-time.ts'

type Disk = NonNullable<LogOptions['disk']>

/** positions that are damaged, one per round; more on request, as each opens a buffer twice */
const ROUNDS = Number(process.env.DAMAGE_ROUNDS ?? 24)
const START = Date.UTC(2026, 10, 1)
let directory = ''
let time = new VirtualTime(START)

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'agent-buffer-'))
  time = new VirtualTime(START)
})
afterEach(() => rm(directory, { recursive: true, force: true }))

const opened = (options: Partial<BufferOptions> = {}) =>
  BatchBuffer.open({ directory, clock: time, monotonic: time.monotonic, ...options })

let salt = 1
/** bytes that say which batch they are, and do not compress */
function bodyOf(size: number): Uint8Array {
  const body = new Uint8Array(size)
  for (let i = 0; i < size; i++) {
    salt = (salt * 1103515245 + 12345) % 2147483648
    body[i] = salt >> 16
  }
  return body
}

async function add(buffer: BatchBuffer, size = 100): Promise<number> {
  const body = bodyOf(size)
  const stamp = time.monotonic.now()
  const { sequence } = await buffer.append({
    collectedAt: time.now(),
    stamp,
    body,
    bodyBytes: size,
    compression: 'none',
  })
  return sequence
}

const pass = (ms: number) => time.advance(ms, () => Promise.resolve())

/** Everything that awaits its ack, read from the disk. */
async function all(buffer: BatchBuffer): Promise<BufferRecord[]> {
  const found: BufferRecord[] = []
  const seen = new Set<number>()
  for (;;) {
    const record = await buffer.next((sequence) => seen.has(sequence))
    if (!record) return found
    seen.add(record.sequence)
    found.push(record)
  }
}

/** Each sequence that was given out: held, or covered by a declaration that is held. */
function accounted(records: readonly BufferRecord[]): Ranges {
  return rangesOf(
    records.flatMap((record) => [
      [record.sequence, record.sequence] as const,
      ...(record.kind === 'loss' ? record.loss.lost : []),
    ]),
  )
}

const sequences = (records: readonly BufferRecord[]) => records.map(({ sequence }) => sequence)

describe('the buffer', () => {
  it('keeps batches across restarts, with sequences that go on', async () => {
    let origin: string
    {
      await using buffer = await opened()
      origin = buffer.origin
      for (let i = 0; i < 5; i++) await add(buffer)
    }
    await using buffer = await opened()
    expect(buffer.origin).toBe(origin)
    expect(sequences(await all(buffer))).toEqual([1, 2, 3, 4, 5])
    expect(await add(buffer)).toBe(6)
  })

  it('forgets what is acknowledged in any order, also across restarts, and gives its disk free', async () => {
    {
      await using buffer = await opened({ maxBytes: 4 * 2 ** 20 })
      for (let i = 0; i < 40; i++) await add(buffer, 20_000)
      buffer.settle([
        [40, 40],
        [1, 30],
      ])
      await buffer.flush()
    }
    await using buffer = await opened({ maxBytes: 4 * 2 ** 20 })
    expect(sequences(await all(buffer))).toEqual([31, 32, 33, 34, 35, 36, 37, 38, 39])
    buffer.settle([[31, 39]])
    await buffer.flush()
    expect(await all(buffer)).toEqual([])
    const files = (await readdir(join(directory, 'recent'))).filter((name) => name.endsWith('.segment'))
    expect(files).toHaveLength(1)
    expect(await add(buffer)).toBe(41)
  })

  it('never gives out a number that the hub says it has', async () => {
    await using buffer = await opened()
    buffer.settle([[1, 70]])
    expect(await add(buffer)).toBe(71)
  })

  it('thins what is older than its age before it drops anything, and says exactly what went', async () => {
    await using buffer = await opened({ maxAgeMs: 3_600_000 })
    for (let i = 0; i < 4 * 120; i++) {
      await add(buffer, 50)
      await pass(30_000)
    }
    await buffer.flush()
    const records = await all(buffer)
    const losses = records.flatMap((record) => (record.kind === 'loss' ? [record.loss] : []))
    expect(losses.length).toBeGreaterThan(0)
    expect(new Set(losses.map(({ cause, keptEveryMs }) => `${cause} ${keptEveryMs}`))).toEqual(
      new Set(['thinned 300000']),
    )
    expect(accounted(records)).toEqual([[1, buffer.newest]])
    const batches = records.filter((record) => record.kind === 'batch')
    const old = batches.filter(({ collectedAt }) => collectedAt < time.now() - 3_700_000)
    const spans = new Set(old.map(({ collectedAt }) => Math.floor(collectedAt / 300_000)))
    expect(spans.size).toBe(old.length)
    expect(old.length).toBeGreaterThanOrEqual(35)
    const young = batches.filter(({ collectedAt }) => collectedAt > time.now() - 3_400_000)
    expect(young.length).toBeGreaterThanOrEqual(112)
    const lost = losses.reduce((sum, { count }) => sum + count, 0)
    expect(lost + batches.length).toBe(480)
    expect(buffer.stats().lostBatches).toBe(lost)
  })

  it('stays within its bytes, whatever comes, and accounts for every sequence', async () => {
    const maxBytes = 2 ** 20
    const size = async () => {
      let bytes = 0
      for (const log of ['recent', 'thinned'])
        for (const name of await readdir(join(directory, log)))
          if (name.endsWith('.segment')) bytes += (await stat(join(directory, log, name))).size
      return bytes
    }
    {
      await using buffer = await opened({ maxBytes })
      for (let i = 0; i < 600; i++) {
        await add(buffer, 8_000)
        await pass(30_000)
        if (i % 50 === 0) expect(await size()).toBeLessThanOrEqual(maxBytes)
      }
      const causes = (await all(buffer)).flatMap((record) => (record.kind === 'loss' ? [record.loss.cause] : []))
      expect(new Set(causes)).toEqual(new Set(['thinned', 'dropped']))
    }
    await using buffer = await opened({ maxBytes })
    const records = await all(buffer)
    expect(accounted(records)).toEqual([[1, buffer.newest]])
    expect(await size()).toBeLessThanOrEqual(maxBytes)
    const lost = records.reduce((sum, record) => sum + (record.kind === 'loss' ? record.loss.count : 0), 0)
    expect(lost + buffer.stats().batches).toBe(600)
  })

  it('is not thinned because the clock of the wall jumped', async () => {
    await using buffer = await opened({ maxAgeMs: 3_600_000 })
    for (let i = 0; i < 30; i++) await add(buffer)
    time.jump(5 * 365 * 24 * 3_600_000)
    await add(buffer)
    await buffer.flush()
    expect(sequences(await all(buffer))).toEqual(Array.from({ length: 31 }, (_, i) => i + 1))
  })

  it('never thins what is on its way to the hub', async () => {
    await using buffer = await opened({ maxAgeMs: 3_600_000 })
    buffer.inFlight = (sequence) => sequence === 3 || sequence === 4
    for (let i = 0; i < 300; i++) {
      await add(buffer, 50)
      await pass(30_000)
    }
    const held = sequences(await all(buffer))
    expect(held).toContain(3)
    expect(held).toContain(4)
  })

  it('declares a batch lost that the hub refuses for good', async () => {
    await using buffer = await opened()
    await add(buffer)
    await add(buffer)
    await buffer.refuse(1)
    const [second, loss] = await all(buffer)
    expect(second?.sequence).toBe(2)
    expect(loss).toMatchObject({ kind: 'loss', sequence: 3, loss: { lost: [[1, 1]], cause: 'damaged', count: 1 } })
  })
})

describe('a batch that is too large', () => {
  it('is declared lost at once, and nothing waits behind it', async () => {
    await using buffer = await opened({ maxBytes: 2 ** 20 })
    const large = await add(buffer, 2 ** 18)
    expect(buffer.has(large)).toBe(false)
    expect(await add(buffer)).toBe(3)
    expect(await all(buffer)).toMatchObject([
      { kind: 'loss', sequence: 2, loss: { lost: [[1, 1]], cause: 'dropped' } },
      { kind: 'batch', sequence: 3 },
    ])
    expect(buffer.stats().fault).toBeUndefined()
  })
})

describe('on a disk that is full', () => {
  let full = false
  const failing = (error: () => Error): Disk => ({
    ...nodeDisk,
    open: async (path) => {
      if (full) throw error()
      const file = await nodeDisk.open(path)
      return {
        ...file,
        write: async (bytes, position) => {
          if (full) throw error()
          await file.write(bytes, position)
        },
      }
    },
  })
  const noSpace = () => Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' })

  it('keeps batches in memory, tells so, and writes them when there is room again', async () => {
    full = false
    await using buffer = await opened({ disk: failing(noSpace) })
    await add(buffer)
    full = true
    await add(buffer)
    await add(buffer)
    expect(buffer.stats()).toMatchObject({ memoryBatches: 2, fault: expect.stringContaining('no space left') })
    expect(sequences(await all(buffer))).toEqual([1, 2, 3])
    full = false
    await buffer.flush()
    expect(buffer.stats()).toMatchObject({ memoryBatches: 0, fault: undefined, batches: 3 })
    await buffer[Symbol.asyncDispose]()
    await using again = await opened()
    expect(sequences(await all(again))).toEqual([1, 2, 3])
  })

  it('declares what memory cannot hold either, and the declaration survives', async () => {
    full = false
    const buffer = await opened({ disk: failing(noSpace), memoryBytes: 2_000 })
    await add(buffer)
    full = true
    for (let i = 0; i < 20; i++) await add(buffer, 300)
    const stats = buffer.stats()
    expect(stats.lostBatches).toBeGreaterThan(10)
    expect(stats.losses).toBe(1)
    full = false
    await buffer[Symbol.asyncDispose]()
    await using again = await opened()
    const records = await all(again)
    expect(accounted(records)).toEqual([[1, again.newest]])
    const losses = records.flatMap((record) => (record.kind === 'loss' ? [record.loss] : []))
    expect(losses).toMatchObject([{ cause: 'dropped', count: stats.lostBatches }])
  })

  it('finds what was lost with the process, because numbers are kept even there', async () => {
    full = false
    const buffer = await opened({ disk: failing(noSpace) })
    await add(buffer)
    full = true
    await add(buffer)
    await add(buffer)
    await buffer[Symbol.asyncDispose]() // as a kill would: nothing of memory can be written
    await using again = await opened()
    expect(await all(again)).toMatchObject([
      { kind: 'batch', sequence: 1 },
      { kind: 'loss', sequence: 4, loss: { lost: [[2, 3]], cause: 'damaged', count: 2 } },
    ])
  })
})

describe('after damage', () => {
  it('isolates flipped bits and zeroed pages anywhere: what they hit is declared, the rest is served', async () => {
    let random = 42
    const next = (below: number) => {
      random = (random * 1103515245 + 12345) % 2147483648
      return (random >> 8) % below
    }
    for (let round = 0; round < ROUNDS; round++) {
      await rm(directory, { recursive: true, force: true })
      const bodies = new Map<number, Uint8Array>()
      {
        await using buffer = await opened({ maxBytes: 2 ** 20 })
        for (let i = 0; i < 60; i++) {
          const body = bodyOf(2_000)
          const record = await buffer.append({
            collectedAt: time.now(),
            stamp: 0,
            body,
            bodyBytes: 2_000,
            compression: 'none',
          })
          bodies.set(record.sequence, body)
        }
        buffer.settle([[1, 7]])
      }
      const folder = join(directory, 'recent')
      const segments = (await readdir(folder)).filter((name) => name.endsWith('.segment'))
      const victim = join(folder, segments[next(segments.length)] ?? '')
      const { size } = await stat(victim)
      const file = await open(victim, 'r+')
      if (round % 2 === 0) {
        const at = next(size)
        const { buffer: byte } = await file.read(Buffer.alloc(1), 0, 1, at)
        await file.write(Buffer.from([(byte[0] ?? 0) ^ (1 << next(8))]), 0, 1, at)
      } else {
        const at = next(size)
        await file.write(Buffer.alloc(Math.min(4096, size - at)), 0, Math.min(4096, size - at), at)
      }
      await file.close()

      await using buffer = await opened({ maxBytes: 2 ** 20 })
      const records = await all(buffer)
      const where = `round ${round}`
      expect(missingFrom(accounted(records), [8, buffer.newest]), where).toEqual([])
      for (const record of records) {
        if (record.kind === 'loss') expect(record.loss.cause, where).toBe('damaged')
        else expect(Buffer.compare(record.body, bodies.get(record.sequence) ?? Buffer.alloc(0)), where).toBe(0)
      }
      // A page touches a few records; a header of a segment takes that segment with it.
      expect(await add(buffer), where).toBeGreaterThan(60)
    }
  }, 600_000)

  it('finds damage that came after it was opened', async () => {
    await using buffer = await opened()
    for (let i = 0; i < 20; i++) await add(buffer, 1_000)
    const folder = join(directory, 'recent')
    const [segment = ''] = (await readdir(folder)).filter((name) => name.endsWith('.segment'))
    const file = await open(join(folder, segment), 'r+')
    await file.write(Buffer.alloc(100), 0, 100, 5_000)
    await file.close()
    const records = await all(buffer)
    const losses = records.flatMap((record) => (record.kind === 'loss' ? [record.loss] : []))
    expect(losses).toMatchObject([{ cause: 'damaged', count: 1 }])
    expect(records.filter(({ kind }) => kind === 'batch')).toHaveLength(19)
    expect(accounted(records)).toEqual([[1, buffer.newest]])
  })
})
