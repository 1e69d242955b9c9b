import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { openLog, silentLogger } from '#runtime'
import { smallDisk } from '../../../test/small-disk.ts'
import { systemMonotonic } from './boot.ts'
import { BatchBuffer } from './buffer.ts'
import { PlanFile } from './plan-file.ts'

const disk = smallDisk(4)
const why = typeof disk === 'string' ? disk : undefined

describe.skipIf(why !== undefined)(`a buffer on a full disk${why === undefined ? '' : ` (not run: ${why})`}`, () => {
  const small = disk as Exclude<typeof disk, string>
  const open = (name: string) => BatchBuffer.open({ directory: join(small.path, name), maxBytes: 2 ** 20 })
  const collected = (buffer: BatchBuffer, collectedAt: number) => {
    const body = Buffer.from(`batch of ${collectedAt}`)
    return buffer.append({
      collectedAt,
      stamp: systemMonotonic().now(),
      body,
      bodyBytes: body.length,
      compression: 'none',
    })
  }
  const waiting = async (buffer: BatchBuffer) => {
    const seen: number[] = []
    for (;;) {
      const record = await buffer.next((sequence) => seen.includes(sequence))
      if (!record) return seen
      seen.push(record.sequence)
    }
  }
  afterAll(() => small.unmount())

  it('is made there, goes on from memory, and is on disk under the same name once there is room', async () => {
    small.fill()
    const buffer = await open('new')
    for (const at of [1, 2, 3]) await collected(buffer, at)
    expect(buffer.stats()).toMatchObject({ batches: 3, memoryBatches: 3, fault: expect.stringMatching(/full|space/) })
    expect(await waiting(buffer)).toEqual([1, 2, 3])
    small.empty()
    await buffer.flush()
    expect(buffer.stats()).toMatchObject({ batches: 3, memoryBatches: 0, fault: undefined })
    await collected(buffer, 4)
    const { origin } = buffer
    await buffer[Symbol.asyncDispose]()
    await using again = await open('new')
    expect(again.origin).toBe(origin)
    expect(await waiting(again)).toEqual([1, 2, 3, 4])
  })

  it('is opened again there with all that it had, and keeps its numbering', async () => {
    const before = await open('old')
    for (const at of [1, 2]) await collected(before, at)
    const { origin } = before
    await before[Symbol.asyncDispose]()
    small.fill()
    const buffer = await open('old')
    expect(buffer.origin).toBe(origin)
    expect(await waiting(buffer)).toEqual([1, 2])
    buffer.settle([[1, 1]])
    await collected(buffer, 3)
    expect(await waiting(buffer)).toEqual([2, 3])
    small.empty()
    await buffer.flush()
    await buffer[Symbol.asyncDispose]()
    await using again = await open('old')
    expect(await waiting(again)).toEqual([2, 3])
  })

  it('keeps the plan of the hub once there is room', async () => {
    small.fill()
    const path = join(small.path, 'plan.json')
    const said: string[] = []
    const logger = { ...silentLogger, error: (_: unknown, text: string) => void said.push(text) }
    const file = new PlanFile(path, logger)
    const plan = { version: 'v1', intervalMs: 30_000, timeoutMs: 10_000, operatorScanIntervalMs: 300_000, sources: [] }
    await file.write(plan)
    await file.flush()
    expect(said).toHaveLength(1)
    small.empty()
    await file.flush()
    expect(await new PlanFile(path, silentLogger).read()).toMatchObject(plan)
  })

  it('says whose it is as soon as there is room', async () => {
    mkdirSync(join(small.path, 'held'))
    small.fill()
    const options = { directory: join(small.path, 'held'), startsFull: true }
    await using _log = await openLog(options)
    small.empty()
    const holder = () => readFileSync(join(options.directory, 'lock'), 'utf8')
    await expect.poll(holder, { timeout: 10_000 }).toContain(String(process.pid))
    await expect(openLog(options)).rejects.toMatchObject({ code: 'directory_locked' })
  })
})
