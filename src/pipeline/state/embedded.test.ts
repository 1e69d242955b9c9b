import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { open } from 'lmdb'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { DirectoryLockedError } from '#runtime'
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

  it('leaves out what it cannot read and keeps the rest', async () => {
    {
      await using store = await EmbeddedStateStore.open({ directory })
      await store.apply([connected(west), connected(east), round(1, 'n1')], 2)
    }
    const database = open<string, [string, string]>({
      path: `${directory}/state.mdb`,
      encoding: 'string',
      noSubdir: true,
    })
    await database.remove(['west', 'part:node'])
    await database.close()
    await using store = await EmbeddedStateStore.open({ directory })
    expect(store.clusters().map(({ name }) => name)).toEqual(['east'])
    await store.apply([connected(west), round(2, 'n2')], 4)
    expect([...(store.cluster('west')?.parts.node?.items.keys() ?? [])]).toEqual(['n2'])
  })
})
