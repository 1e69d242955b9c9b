import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Change, parseClusterName } from '#model'
import { InProcessEventBus } from './in-process.ts'
import { type ChangeSource, openEvents } from './open.ts'
import type { EventBus, NumberedChange } from './types.ts'

const west = parseClusterName('west')
const aChange = (at: number): Change => ({ kind: 'cluster', cluster: west, op: 'put', at })
const changes = (from: number, count: number) => Array.from({ length: count }, (_, i) => aChange(from + i))
const times = (events: readonly NumberedChange[]) => events.map(({ change }) => change.at)
const settled = () => new Promise((resolve) => setImmediate(resolve))

interface Opened {
  readonly bus: EventBus
  tell(changes: readonly Change[]): Promise<void>
}

const drivers: Record<string, (capacity: number) => Opened> = {
  'in-process': (capacity) => {
    const bus = openEvents({ kind: 'in-process', capacity })
    return { bus, tell: (told) => bus.publish(told) }
  },
  follow: (capacity) => {
    const listeners = new Set<(told: readonly Change[]) => void>()
    const source: ChangeSource = {
      onChanges: (listener) => {
        listeners.add(listener)
        return () => listeners.delete(listener)
      },
    }
    const bus = openEvents({ kind: 'follow', source, capacity })
    return {
      bus,
      tell: async (told) => {
        for (const listener of listeners) listener(told)
      },
    }
  },
}

describe.each(Object.entries(drivers))('EventBus %s', (_, open) => {
  let bus: EventBus
  let tell: Opened['tell']
  let seen: NumberedChange[]
  const listener = (events: readonly NumberedChange[]) => void seen.push(...events)
  beforeEach(() => {
    seen = []
    ;({ bus, tell } = open(10))
  })
  afterEach(async () => bus[Symbol.asyncDispose]())

  it('gives a subscriber everything after it came, numbered without a hole', async () => {
    await tell(changes(0, 3))
    const { head, reset } = bus.subscribe(listener)
    expect({ head, reset }).toEqual({ head: bus.head(), reset: false })
    await tell(changes(3, 2))
    await tell([])
    await tell(changes(5, 1))
    expect(times(seen)).toEqual([3, 4, 5])
    const numbers = seen.map(({ id }) => Number(id.split('-')[1]))
    expect(numbers).toEqual([4, 5, 6])
    expect(bus.head()).toBe(seen.at(-1)?.id)
  })

  it('gives who comes back what it missed, once', async () => {
    const first = bus.subscribe(listener)
    await tell(changes(0, 4))
    const last = seen[1]?.id as string
    await first[Symbol.asyncDispose]()
    seen = []
    const again = bus.subscribe(listener, last)
    expect(again.reset).toBe(false)
    expect(seen).toEqual([]) // not before the caller has the subscription in hand
    await settled()
    await tell(changes(4, 1))
    expect(times(seen)).toEqual([2, 3, 4])
  })

  it('delivers what was missed before what is new', async () => {
    const first = bus.subscribe(() => {})
    const { head } = first
    await tell(changes(0, 2))
    bus.subscribe(listener, head)
    await tell(changes(2, 1))
    await settled()
    expect(times(seen)).toEqual([0, 1, 2])
  })

  it('asks for a new snapshot when what was missed is gone, or the id is of another process', async () => {
    await tell(changes(0, 3))
    const third = bus.head()
    await tell(changes(3, 11))
    const oldest = third.replace(/\d+$/, '4')
    for (const after of [
      third,
      'other-3',
      third.replace(/-\d+$/, '-99'),
      third.replace(/-\d+$/, '-x'),
      '',
      '-',
      `${third}0000`,
    ]) {
      const { reset, head } = bus.subscribe(() => {}, after)
      expect({ after, reset, head }).toEqual({ after, reset: true, head: bus.head() })
    }
    expect(bus.subscribe(listener, oldest).reset).toBe(false)
    await settled()
    expect(times(seen)).toEqual([4, 5, 6, 7, 8, 9, 10, 11, 12, 13])
  })

  it('misses nothing for who follows, however much comes at once', async () => {
    bus.subscribe(listener)
    await tell(changes(0, 35))
    expect(times(seen)).toEqual(Array.from({ length: 35 }, (_, i) => i))
  })

  it('stops calling when the subscription has ended', async () => {
    const subscription = bus.subscribe(listener)
    await subscription[Symbol.asyncDispose]()
    await tell(changes(0, 1))
    expect(seen).toEqual([])
  })

  it('never skips nor repeats, whatever the order of publishing and coming back', () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(fc.oneof(fc.integer({ min: 1, max: 4 }), fc.constant('back' as const)), { maxLength: 20 }),
        async (steps) => {
          const { bus: own, tell: tellOwn } = open(1000)
          const got: NumberedChange[] = []
          let subscription = own.subscribe((events) => void got.push(...events))
          const start = subscription.head
          let at = 0
          for (const step of steps) {
            if (step === 'back') {
              await subscription[Symbol.asyncDispose]()
              await tellOwn(changes(at, 1))
              at++
              subscription = own.subscribe((events) => void got.push(...events), got.at(-1)?.id ?? start)
            } else {
              await tellOwn(changes(at, step))
              at += step
            }
          }
          await settled()
          expect(times(got)).toEqual(Array.from({ length: at }, (_, i) => i))
          await own[Symbol.asyncDispose]()
        },
      ),
      { numRuns: 50 },
    ))
})

describe('InProcessEventBus', () => {
  it('ends the subscription of a listener that throws, and serves the others', async () => {
    const errors: unknown[] = []
    await using bus = new InProcessEventBus({ onListenerError: (error) => errors.push(error) })
    const seen: NumberedChange[] = []
    bus.subscribe(() => {
      throw new Error('mine')
    })
    bus.subscribe((events) => seen.push(...events))
    await bus.publish(changes(0, 1))
    await bus.publish(changes(1, 1))
    expect(errors).toHaveLength(1)
    expect(times(seen)).toEqual([0, 1])
  })

  it('begins a new generation with every process', () => {
    expect(new InProcessEventBus().head()).not.toBe(new InProcessEventBus().head())
  })
})
