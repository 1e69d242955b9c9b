import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ApiError } from './status.ts'
import { memoryStorage, type ObjectStorage } from './storage.ts'
import { type StoreEvent, VersionedStore } from './store.ts'
import type { ApiObject } from './types.ts'

const C = '/things'
const thing = (name: string, value = 0): ApiObject => ({ apiVersion: 'v1', kind: 'Thing', metadata: { name }, value })
const open = (maxHistory = 100, storage: ObjectStorage = memoryStorage()) =>
  new VersionedStore(storage, { maxHistory, onCommit: () => undefined })

describe('VersionedStore', () => {
  it('has done a write in memory when the call returns', async () => {
    const store = open()
    const written = store.transact((transaction) => transaction.put(C, 'a', thing('a')))
    expect(store.get(C, 'a')?.metadata.resourceVersion).toBe('1')
    await written
  })

  it('undoes all of a piece of work that throws, and nothing of the others', async () => {
    const store = open()
    const broken = store.transact((transaction) => {
      transaction.put(C, 'a', thing('a'))
      throw new Error('no')
    })
    await expect(broken).rejects.toThrow('no')
    await store.transact((transaction) => transaction.put(C, 'b', thing('b')))
    expect(store.list(C).map(({ metadata }) => metadata.name)).toEqual(['b'])
    expect(store.resourceVersion).toBe(1)
  })

  it('shows work its own changes and those before it in the same batch', async () => {
    let release: () => void = () => undefined
    const gate = new Promise<void>((resolve) => {
      release = resolve
    })
    const store = open(100, { ...memoryStorage(), write: () => gate })
    const first = store.transact((transaction) => transaction.put(C, 'first', thing('first')))
    const all = [1, 2, 3].map((n) =>
      store.transact((transaction) => {
        const value = ((transaction.get(C, 'n')?.value as number | undefined) ?? 0) + n
        transaction.put(C, 'n', thing('n', value))
        transaction.put(C, 'extra', thing('extra'))
        transaction.remove(C, 'extra')
        return transaction.list(C, '').map(({ metadata }) => metadata.name)
      }),
    )
    expect(store.get(C, 'first'), 'nothing is seen before it is written').toBeUndefined()
    release()
    await first
    expect(await Promise.all(all)).toEqual([
      ['first', 'n'],
      ['first', 'n'],
      ['first', 'n'],
    ])
    expect(store.get(C, 'n')?.value).toBe(6)
  })

  it('keeps nothing of a batch that could not be written, and goes on', async () => {
    let full = false
    const full507 = new ApiError('InsufficientStorage', 'full')
    const store = open(100, { ...memoryStorage(), write: async () => (full ? Promise.reject(full507) : undefined) })
    const seen: StoreEvent[] = []
    store.watch(C, 0, (event) => seen.push(event))
    await store.transact((transaction) => transaction.put(C, 'a', thing('a', 1)))
    full = true
    const failed = await Promise.allSettled(
      [2, 3].map((value) => store.transact((transaction) => transaction.put(C, 'a', thing('a', value)))),
    )
    expect(failed.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    expect(store.get(C, 'a')?.value).toBe(1)
    full = false
    await store.transact((transaction) => transaction.put(C, 'a', thing('a', 4)))
    expect(seen.map(({ object }) => object.value)).toEqual([1, 4])
  })

  it('runs what a listener writes after the change it heard of', async () => {
    const store = open()
    const order: string[] = []
    store.watch(C, 0, ({ object }) => {
      order.push(object.metadata.name)
      if (object.metadata.name === 'a') void store.transact((transaction) => transaction.put(C, 'c', thing('c')))
    })
    await store.transact((transaction) => {
      transaction.put(C, 'a', thing('a'))
      transaction.put(C, 'b', thing('b'))
    })
    expect(order).toEqual(['a', 'b', 'c'])
  })

  it('forgets the oldest changes beyond its window, per collection, and says so', async () => {
    const store = open(3)
    const put = (collection: string, value: number) =>
      store.transact((transaction) => transaction.put(collection, 'a', thing('a', value)))
    await put('/quiet', 0)
    for (let value = 0; value < 50; value++) await put(C, value)
    expect(store.watch(C, 10, () => undefined)).toBeUndefined()
    expect(store.entriesAt(C, '', 10)).toBeUndefined()
    const seen: unknown[] = []
    expect(store.watch(C, 48, ({ object }) => seen.push(object.value))).toBeDefined()
    expect(seen).toEqual([47, 48, 49])
    expect(
      store.watch('/quiet', 0, () => undefined),
      'a quiet collection keeps its own',
    ).toBeDefined()
  })

  it('tells what was at any version of its window', () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.constantFrom('a', 'b', 'n/c', 'n/d'), fc.option(fc.nat(9))), { maxLength: 40 }),
        async (steps) => {
          const store = open(1000)
          const states: [number, string][] = [[0, '[]']]
          const text = (entries: [string, ApiObject][] | undefined) =>
            JSON.stringify(entries?.map(([key, { value }]) => [key, value]))
          for (const [key, value] of steps) {
            const [namespace, name] = key.includes('/') ? key.split('/') : [undefined, key]
            await store.transact((transaction) => {
              if (value === null) return transaction.remove(C, key)
              const object = thing(name ?? '', value)
              if (namespace) object.metadata.namespace = namespace
              return transaction.put(C, key, object)
            })
            states.push([store.resourceVersion, text(store.entries(C)) ?? ''])
          }
          for (const [version, then] of states) expect(text(store.entriesAt(C, '', version))).toBe(then)
        },
      ),
      { numRuns: 50 },
    ))

  it('rebuilds its state from any version on by replaying the changes', () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.constantFrom('a', 'b', 'c'), fc.option(fc.nat(9))), { maxLength: 30 }),
        fc.nat(30),
        async (steps, at) => {
          const store = open(1000)
          const copy = new Map<string, unknown>()
          const follow = (): void => {
            for (const [key, { value }] of store.entries(C)) copy.set(key, value)
            store.watch(C, store.resourceVersion, ({ type, object }) => {
              if (type === 'DELETED') copy.delete(object.metadata.name)
              else copy.set(object.metadata.name, object.value)
            })
          }
          for (const [index, [key, value]] of steps.entries()) {
            if (index === at) follow()
            await store.transact((transaction) =>
              value === null ? transaction.remove(C, key) : transaction.put(C, key, thing(key, value)),
            )
          }
          if (at >= steps.length) follow()
          expect([...copy].sort()).toEqual(store.entries(C).map(([key, { value }]) => [key, value]))
        },
      ),
      { numRuns: 50 },
    ))
})
