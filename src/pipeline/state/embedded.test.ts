import { existsSync } from 'node:fs'
import { mkdtemp, readdir, readFile, rm, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { DirectoryLockedError, silentLogger } from '#runtime'
import { EmbeddedStateStore } from './embedded.ts'
import { aBatch, aNode, batchRecord, complete, connected, east, west } from './test/fleet-words.ts'
import { eventually } from './test/redis-server.ts'

let directory: string
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'embedded-'))
})
afterEach(() => rm(directory, { recursive: true, force: true }))

const round = (sequence: number, ...nodes: string[]) =>
  batchRecord(aBatch(west, sequence, [complete('node', ...nodes.map((name) => aNode(name)))]))

describe('EmbeddedStateStore', () => {
  it('refuses a directory that another hub works in', async () => {
    await using _store = await EmbeddedStateStore.open({ directory })
    await expect(EmbeddedStateStore.open({ directory })).rejects.toBeInstanceOf(DirectoryLockedError)
  })

  it('tells as its position only what is on disk', async () => {
    await using store = await EmbeddedStateStore.open({ directory, writeBehindMs: 600_000 })
    await store.apply([connected(west), round(1, 'n1')], 1)
    expect(store.cluster('west')?.sequence).toBe(1)
    expect(store.position()).toBe(-1)
    await store.flush()
    expect(store.position()).toBe(1)
  })

  it('writes by itself a moment later', async () => {
    await using store = await EmbeddedStateStore.open({ directory, writeBehindMs: 1 })
    await store.apply([connected(west)], 0)
    await eventually('it is on disk', () => store.position() === 0)
    await store.apply([round(1, 'n1')], 1)
    await eventually('the next is on disk', () => store.position() === 1)
  })

  it('waits for the disk when too much is not yet written', async () => {
    await using store = await EmbeddedStateStore.open({ directory, writeBehindMs: 600_000, maxUnwritten: 3 })
    for (let n = 1; n <= 3; n++) await store.apply([round(n, 'n1')], n)
    expect(store.position()).toBe(-1)
    await store.apply([round(4, 'n1')], 4)
    expect(store.position()).toBe(3)
  })

  it('leaves no part of a removed cluster to one that takes its name', async () => {
    {
      await using store = await EmbeddedStateStore.open({ directory })
      await store.apply([connected(west), round(1, 'n1')], 1)
      await store.flush()
      await store.apply([{ kind: 'removed', cluster: west, at: 5 }, connected(west)], 3)
    }
    await using store = await EmbeddedStateStore.open({ directory })
    expect(store.cluster('west')?.parts).toEqual({})
  })

  it('keeps everything when its journal is written anew, and no former moment', async () => {
    const names = Array.from({ length: 400 }, (_, i) => `node-${i}-${'x'.repeat(400)}`)
    {
      await using store = await EmbeddedStateStore.open({ directory, writeBehindMs: 600_000 })
      await store.apply([connected(west), connected(east)], 2)
      for (let n = 1; n <= 40; n++) {
        await store.apply([round(n, ...names.slice(0, 360 + n))], n + 2)
        await store.flush()
      }
    }
    const sizes = await Promise.all((await segments()).map(async (file) => (await readFile(file)).length))
    expect(sizes.reduce((sum, bytes) => sum + bytes, 0)).toBeLessThan(24 * 2 ** 20)
    await using store = await EmbeddedStateStore.open({ directory })
    expect(store.position()).toBe(42)
    expect(store.clusters().map(({ name }) => name)).toEqual(['east', 'west'])
    expect(store.cluster('west')?.parts.node?.items.size).toBe(400)
  })

  const segments = async () =>
    (await readdir(directory))
      .filter((name) => name.endsWith('.segment'))
      .sort()
      .map((name) => join(directory, name))

  describe('with a damaged file', () => {
    const moments = 20
    const nodesAt = (position: number) => Array.from({ length: position }, (_, i) => `n${i + 1}`)
    beforeEach(async () => {
      await using store = await EmbeddedStateStore.open({ directory, writeBehindMs: 600_000 })
      await store.apply([connected(west)], 0)
      for (let n = 1; n <= moments; n++) {
        await store.apply([round(n, ...nodesAt(n))], n)
        await store.flush()
      }
    })
    afterEach(() => rm(`${directory}.damaged`, { recursive: true, force: true }))

    const harms: Record<string, (bytes: Buffer, at: number) => Buffer> = {
      'a flipped bit': (bytes, at) => Buffer.from(bytes.map((byte, i) => (i === at ? byte ^ 4 : byte))),
      'a cut': (bytes, at) => bytes.subarray(0, at),
      'a hole of zeros': (bytes, at) => Buffer.from(bytes).fill(0, at, at + 200),
      'other bytes': (bytes, at) => Buffer.from(bytes).fill('{"changes":[]}', at, at + 50),
    }
    for (const [what, harm] of Object.entries(harms))
      it(`serves a moment that was, or nothing: ${what}`, async () => {
        const [file] = await segments()
        const whole = await readFile(file as string)
        for (let i = 0; i < 40; i++) {
          // What came after the harm before stands in a segment of its own.
          for (const one of await segments()) await rm(one)
          await writeFile(file as string, harm(whole, Math.floor((whole.length * i) / 40)))
          await using store = await EmbeddedStateStore.open({ directory })
          const position = store.position()
          expect([...(store.cluster('west')?.parts.node?.items.keys() ?? [])].sort()).toEqual(nodesAt(position).sort())
          expect(position).toBeLessThanOrEqual(moments)
          await store.apply([connected(west), round(100, 'n1')], 100)
          await store.flush()
          expect(store.position()).toBe(100)
        }
      })

    it('puts it aside, says so, and takes what comes', async () => {
      const [file] = await segments()
      const whole = await readFile(file as string)
      whole.writeUInt8((whole[100] ?? 0) ^ 1, 100)
      await writeFile(file as string, whole)
      const errors: unknown[] = []
      const logger = { ...silentLogger, error: (_: unknown, text: string) => errors.push(text) } as typeof silentLogger
      {
        await using store = await EmbeddedStateStore.open({ directory, logger })
        expect(store.position()).toBe(-1)
        await store.apply([connected(east)], 30)
      }
      expect(errors).toEqual([expect.stringContaining('state is damaged')])
      expect(existsSync(`${directory}.damaged`)).toBe(true)
      await using store = await EmbeddedStateStore.open({ directory })
      expect(store.clusters().map(({ name }) => name)).toEqual(['east'])
    })

    it('forgets only the newest moments where the end is missing', async () => {
      const [file] = await segments()
      await truncate(file as string, (await readFile(file as string)).length - 10)
      await using store = await EmbeddedStateStore.open({ directory })
      expect(store.position()).toBe(moments - 1)
    })
  })
})
