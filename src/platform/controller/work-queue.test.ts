import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { ObjectKey } from '#kube'
import { ManualClock, settle } from './testing/manual-clock.ts'
import { againAfter, done, type Outcome } from './types.ts'
import { keyText, WorkQueue } from './work-queue.ts'

const key = (name: string): ObjectKey => ({ name, namespace: 'fleet' })

/** Work that ends when told to, and what was seen of it. */
function aWorkshop(concurrency: number, perNamespace = concurrency) {
  const clock = new ManualClock()
  const started: string[] = []
  const failures: { readonly name: string; readonly waitMs: number }[] = []
  const open = new Map<string, { finish: (outcome: Outcome) => void; fail: (error: Error) => void }>()
  const queue = new WorkQueue({
    ...{ concurrency, perNamespace },
    clock,
    random: () => 1,
    onFailure: ({ name }, _, waitMs) => failures.push({ name, waitMs }),
    work: ({ name }, signal) => {
      if (open.has(name)) throw new Error(`${name} runs twice at once`)
      started.push(name)
      return new Promise<Outcome>((resolve, reject) => {
        const run = {
          finish: (outcome: Outcome) => open.delete(name) && resolve(outcome),
          fail: (error: Error) => open.delete(name) && reject(error),
        }
        open.set(name, run)
        signal.addEventListener('abort', () => open.get(name) === run && run.fail(signal.reason as Error), {
          once: true,
        })
      })
    },
  })
  return { clock, queue, started, failures, open }
}

describe('WorkQueue', () => {
  it('lets namespaces take turns, and none of them all workers', async () => {
    const { queue, started, open } = aWorkshop(3, 2)
    for (const name of ['a1', 'a2', 'a3', 'a4', 'a5']) queue.add({ name, namespace: 'a' })
    expect(started).toEqual(['a1', 'a2'])
    for (const name of ['b1', 'b2']) queue.add({ name, namespace: 'b' })
    queue.add({ name: 'c1' })
    expect([started.slice(2), queue.depth]).toEqual([['b1'], 5])
    for (const name of ['a1', 'a2', 'b1', 'a3', 'b2', 'c1', 'a4']) {
      open.get(name)?.finish(done)
      await settle()
    }
    expect(started.slice(3)).toEqual(['a3', 'b2', 'c1', 'a4', 'a5'])
    expect(queue.depth).toBe(0)
    await queue.stop()
  })

  it('works once on a key that was asked for many times', async () => {
    const { queue, started, open } = aWorkshop(1)
    queue.add(key('busy'))
    for (let i = 0; i < 5; i++) queue.add(key('west'))
    expect(queue.depth).toBe(1)
    open.get('busy')?.finish(done)
    await settle()
    open.get('west')?.finish(done)
    await settle()
    expect(started).toEqual(['busy', 'west'])
    await queue.stop()
  })

  it('works once more on a key that was asked for while it ran', async () => {
    const { queue, started, open } = aWorkshop(4)
    queue.add(key('west'))
    queue.add(key('west'))
    queue.add(key('west'))
    expect(started).toEqual(['west'])
    open.get('west')?.finish(done)
    await settle()
    expect(started).toEqual(['west', 'west'])
    open.get('west')?.finish(done)
    await settle()
    expect(started).toHaveLength(2)
    await queue.stop()
  })

  it('never works on more keys at once than it may', async () => {
    const { queue, started, open } = aWorkshop(2)
    for (const name of ['a', 'b', 'c']) queue.add(key(name))
    expect(started).toEqual(['a', 'b'])
    open.get('a')?.finish(done)
    await settle()
    expect(started).toEqual(['a', 'b', 'c'])
    await queue.stop()
  })

  it('comes back after the time a run asked for', async () => {
    const { clock, queue, started, open } = aWorkshop(1)
    queue.add(key('west'))
    open.get('west')?.finish(againAfter(30_000))
    await clock.advance(29_999)
    expect(started).toHaveLength(1)
    await clock.advance(1)
    expect(started).toHaveLength(2)
    await queue.stop()
  })

  it('forgets a pending delay when the key runs before, so that runs never multiply', async () => {
    const { clock, queue, started, open } = aWorkshop(1)
    queue.add(key('west'))
    open.get('west')?.finish(againAfter(30_000))
    await clock.advance(10_000)
    queue.add(key('west'))
    open.get('west')?.finish(againAfter(30_000))
    await clock.advance(25_000)
    expect(started).toHaveLength(2)
    await clock.advance(5_000)
    expect(started).toHaveLength(3)
    await queue.stop()
  })

  it('waits longer after each failure, up to five minutes, and not at all after a success', async () => {
    const { clock, queue, failures, open } = aWorkshop(1)
    queue.add(key('west'))
    for (let i = 0; i < 20; i++) {
      open.get('west')?.fail(new Error('down'))
      await clock.advance(300_000)
    }
    expect(failures.slice(0, 4).map(({ waitMs }) => waitMs)).toEqual([5, 10, 20, 40])
    expect(failures.at(-1)?.waitMs).toBe(300_000)
    open.get('west')?.finish(againAfter(1))
    await clock.advance(1)
    open.get('west')?.fail(new Error('down'))
    await settle()
    expect(failures.at(-1)?.waitMs).toBe(5)
    await queue.stop()
  })

  it('keeps a failing key to its back-off although it is asked for while it runs', async () => {
    const { clock, queue, started, open } = aWorkshop(1)
    queue.add(key('west'))
    queue.add(key('west'))
    open.get('west')?.fail(new Error('down'))
    await settle()
    expect(started).toHaveLength(1)
    await clock.advance(5)
    expect(started).toHaveLength(2)
    await queue.stop()
  })

  it('aborts what runs when it stops, and starts nothing afterwards', async () => {
    const { clock, queue, started, open } = aWorkshop(1)
    queue.add(key('a'))
    queue.add(key('b'))
    queue.addAfter(key('c'), 10)
    await queue.stop()
    expect(open.size).toBe(0)
    queue.add(key('d'))
    await clock.advance(1000)
    expect(started).toEqual(['a'])
    expect(clock.sleepers).toBe(0)
  })

  it('tells keys with and without a namespace apart', () => {
    expect(keyText({ name: 'west' })).not.toBe(keyText({ name: 'west', namespace: 'fleet' }))
  })

  it('handles every asked key, never twice at once and never above its bound, whatever happens in what order', async () => {
    const names = ['a', 'b', 'c', 'd'] as const
    const step = fc.oneof(
      fc.record({ do: fc.constant('add' as const), name: fc.constantFrom(...names) }),
      fc.record({
        do: fc.constant('addAfter' as const),
        name: fc.constantFrom(...names),
        ms: fc.integer({ min: 0, max: 50 }),
      }),
      fc.record({ do: fc.constant('advance' as const), ms: fc.integer({ min: 0, max: 60 }) }),
      fc.record({ do: fc.constant('finish' as const), name: fc.constantFrom(...names), again: fc.boolean() }),
      fc.record({ do: fc.constant('fail' as const), name: fc.constantFrom(...names) }),
    )
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 3 }),
        fc.array(step, { maxLength: 40 }),
        async (concurrency, steps) => {
          const { clock, queue, started, open } = aWorkshop(concurrency)
          const owed = new Set<string>() // asked for, and not begun since
          let seen = 0
          const look = () => {
            for (const name of started.slice(seen)) owed.delete(name)
            seen = started.length
            expect(open.size).toBeLessThanOrEqual(concurrency)
            expect(queue.running).toBe(open.size)
          }
          for (const action of steps) {
            if (action.do === 'add') {
              owed.add(action.name)
              queue.add(key(action.name))
            } else if (action.do === 'addAfter') queue.addAfter(key(action.name), action.ms)
            else if (action.do === 'advance') await clock.advance(action.ms)
            else if (action.do === 'finish') open.get(action.name)?.finish(action.again ? againAfter(7) : done)
            else open.get(action.name)?.fail(new Error('down'))
            await settle()
            look()
          }
          for (let round = 0; round < 20 && (owed.size > 0 || open.size > 0); round++) {
            for (const { finish } of [...open.values()]) finish(done)
            await clock.advance(10_000)
            look()
          }
          expect([...owed]).toEqual([])
          await queue.stop()
        },
      ),
      { numRuns: 60 },
    )
  })
})
