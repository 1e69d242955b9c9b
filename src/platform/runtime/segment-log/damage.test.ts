import { cp, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { all } from '../../../../test/properties.ts'
import { RECORD_HEADER_BYTES, SEGMENT_HEADER_BYTES } from './record.ts'
import { type LogDamage, SegmentLog, type SegmentLogOptions } from './segment-log.ts'

const PAGE = 4096
/** DAMAGE_POSITIONS=1000 for the long run. */
const POSITIONS = Number(process.env.DAMAGE_POSITIONS ?? 120)

interface Place {
  readonly index: number
  readonly segment: string
  readonly from: number
  readonly to: number
}

// The hub's log refuses when it is full, the buffer of an agent drops its oldest: the same files, the same promise.
describe.each(['refuse', 'drop-oldest'] as const)('a damaged disk under a log that is to %s', (whenFull) => {
  let root: string
  const payloads: Buffer[] = []
  const places: Place[] = []
  const files = new Map<string, Buffer>()
  const options = (directory: string, more: Partial<SegmentLogOptions> = {}): SegmentLogOptions => ({
    directory,
    segmentBytes: 40_000,
    whenFull,
    ...more,
  })

  beforeAll(async () => {
    root = await mkdtemp(join(tmpdir(), 'damage-'))
    const directory = join(root, 'good')
    {
      await using log = await SegmentLog.open(options(directory))
      // From a few bytes to more than a page; never zero, so that a zeroed page is another one.
      for (let i = 0; i < 40; i++) {
        payloads.push(Buffer.alloc([20, 300, 2500, 9000][i % 4] as number, 1 + i))
        await log.append(payloads[i] as Buffer)
      }
    }
    for (const name of (await readdir(directory)).filter((one) => one.endsWith('.segment')).sort()) {
      const bytes = await readFile(join(directory, name))
      files.set(name, bytes)
      for (let from = SEGMENT_HEADER_BYTES; from < bytes.length; ) {
        const to = from + RECORD_HEADER_BYTES + (payloads[places.length] as Buffer).length
        places.push({ index: places.length, segment: name, from, to })
        from = to
      }
    }
    expect(files.size).toBeGreaterThan(2)
    expect(places).toHaveLength(payloads.length)
  })
  afterAll(() => rm(root, { recursive: true, force: true }))

  const wholeBytes = () => [...files].flatMap(([name, bytes]) => [{ name, size: bytes.length }])

  it(`a bit flipped or a page zeroed at any of ${POSITIONS / 2} positions is found and reported, and the rest is served`, {
    timeout: 60_000 + POSITIONS * 50,
  }, async () => {
    const directory = join(root, 'bad')
    await cp(join(root, 'good'), directory, { recursive: true })
    const total = wholeBytes().reduce((sum, { size }) => sum + size, 0)
    await fc.assert(
      fc.asyncProperty(
        fc.nat(total - 1),
        fc.oneof(
          fc.nat(7).map((bit) => ({ kind: 'flip' as const, bit })),
          fc.constant({ kind: 'zero' as const }),
        ),
        async (at, how) => {
          let [offset, segment] = [at, '']
          for (const { name, size } of wholeBytes()) {
            segment = name
            if (offset < size) break
            offset -= size
          }
          const bytes = Buffer.from(files.get(segment) as Buffer)
          const start = how.kind === 'flip' ? offset : offset - (offset % PAGE)
          const end = how.kind === 'flip' ? offset + 1 : Math.min(start + PAGE, bytes.length)
          if (how.kind === 'flip') bytes[offset] = (bytes[offset] as number) ^ (1 << how.bit)
          else bytes.fill(0, start, end)
          await writeFile(join(directory, segment), bytes)

          const damage: LogDamage[] = []
          {
            await using log = await SegmentLog.open(options(directory, { onDamage: (place) => damage.push(place) }))
            const served = new Map<number, Buffer>()
            for await (const { index, payload } of log.read(0)) served.set(index, Buffer.from(payload))
            for (const [index, payload] of served) expect(payload.equals(payloads[index] as Buffer)).toBe(true)
            // A segment whose header is gone is set aside as a whole.
            const isHeader = start < SEGMENT_HEADER_BYTES
            for (const place of places) {
              const touched = place.segment === segment && (isHeader || (place.from < end && start < place.to))
              expect(served.has(place.index), `record ${place.index}`).toBe(!touched)
            }
            expect(damage.length).toBeGreaterThan(0)
            expect(damage.every((place) => place.segment === segment)).toBe(true)
            const stats = log.stats()
            expect(stats.damagedBytes + stats.tornBytes).toBeGreaterThan(0)
            // And it goes on above everything that ever was.
            const index = await log.append(Buffer.from('next'))
            expect(index).toBeGreaterThan(Math.max(-1, ...served.keys()))
          }
          // As it was: what the log made, cut or set aside goes.
          for (const name of await readdir(directory)) {
            if (name.includes('.segment') && !files.has(name)) await rm(join(directory, name))
          }
          for (const name of new Set([segment, [...files.keys()].at(-1) as string])) {
            await writeFile(join(directory, name), files.get(name) as Buffer)
          }
        },
      ),
      all({ numRuns: POSITIONS / 2 }),
    )
  })
})

describe('a damaged checkpoint', () => {
  let directory: string
  const file = () => join(directory, 'state.checkpoint')
  const reads = 7
  const last = 20

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'checkpoint-'))
    await using log = await SegmentLog.open({ directory })
    for (let i = 0; i <= last; i++) await log.append(Buffer.from(`record ${i}`))
    await log.setCheckpoint('state', reads)
  })
  afterAll(() => rm(directory, { recursive: true, force: true }))

  const opened = async () => {
    const damage: LogDamage[] = []
    await using log = await SegmentLog.open({ directory, onDamage: (place) => damage.push(place) })
    return { checkpoint: log.checkpoint('state'), last: log.lastIndex(), damage }
  }

  it('is never believed: a consumer reads again, and skips nothing', { timeout: 60_000 + POSITIONS * 50 }, async () => {
    const good = await readFile(file())
    const damaged = fc.oneof(
      fc.tuple(fc.nat(good.length - 1), fc.integer({ min: 1, max: 255 })).map(([at, bits]) => {
        const bytes = Buffer.from(good)
        bytes[at] = (bytes[at] as number) ^ bits
        return bytes
      }),
      fc.nat(good.length - 1).map((end) => good.subarray(0, end)),
      fc.maxSafeNat().map((index) => Buffer.from(good.toString().replace(/\d+/, String(index)))),
      fc.maxSafeNat().map((index) => Buffer.from(`{"index":${last + 1 + (index % 1e12)}}\n`)),
      fc.uint8Array({ maxLength: 64 }).map((bytes) => Buffer.from(bytes)),
    )
    await fc.assert(
      fc.asyncProperty(damaged, async (bytes) => {
        fc.pre(!bytes.equals(good))
        await writeFile(file(), bytes)
        const { checkpoint, last: end, damage } = await opened()
        const isOfFormerForm = /^\{"index":\d+\}\n$/.test(bytes.toString())
        expect(checkpoint).toBe(isOfFormerForm ? last : -1)
        expect(end).toBe(last)
        expect(damage).toMatchObject([{ kind: 'damaged', segment: 'state.checkpoint' }])
      }),
      all({ numRuns: POSITIONS }),
    )
    await writeFile(file(), good)
    expect(await opened()).toEqual({ checkpoint: reads, last, damage: [] })
  })

  it('of another log, or of another consumer, is not taken for its own', async () => {
    const elsewhere = await mkdtemp(join(tmpdir(), 'checkpoint-'))
    await cp(join(directory, 'state.checkpoint'), join(elsewhere, 'state.checkpoint'))
    await cp(join(directory, 'state.checkpoint'), join(directory, 'history.checkpoint'))
    {
      await using other = await SegmentLog.open({ directory: elsewhere })
      expect([other.checkpoint('state'), other.lastIndex()]).toEqual([-1, -1])
      await using log = await SegmentLog.open({ directory })
      expect([log.checkpoint('state'), log.checkpoint('history')]).toEqual([reads, -1])
    }
    await rm(elsewhere, { recursive: true, force: true })
    await rm(join(directory, 'history.checkpoint'))
  })

  it('of a build that wrote no checksum is believed as far as there are records', async () => {
    const good = await readFile(file())
    await writeFile(file(), '{"index":12}\n')
    expect(await opened()).toEqual({ checkpoint: 12, last, damage: [] })
    await writeFile(file(), good)
  })
})
