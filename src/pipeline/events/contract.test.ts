import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Change, type ChangeStep, parseClusterName } from '#model'
import { InProcessEventBus } from './in-process.ts'
import { openEvents, type StepSource } from './open.ts'
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
    const listeners = new Set<(steps: readonly ChangeStep[]) => void>()
    let count = 0
    const source: StepSource = {
      onSteps: (listener) => {
        listeners.add(listener)
        return () => listeners.delete(listener)
      },
    }
    const bus = openEvents({ kind: 'follow', source, capacity })
    return {
      bus,
      tell: async (told) => {
        count++
        for (const listener of listeners) listener([{ id: `store-${count}`, changes: told }])
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

  it('gives a subscriber everything after it came, by the id of its step', async () => {
    await tell(changes(0, 3))
    const { head, reset } = bus.subscribe(listener)
    expect({ head, reset }).toEqual({ head: bus.head(), reset: false })
    await tell(changes(3, 2))
    await tell([])
    await tell(changes(5, 1))
    expect(times(seen)).toEqual([3, 4, 5])
    const [one, two, three] = seen.map(({ id }) => id)
    expect(one).toBe(two)
    expect(three).not.toBe(two)
    expect(bus.head()).toBe(three)
  })

  it('gives who comes back what it missed, once', async () => {
    const first = bus.subscribe(listener)
    await tell(changes(0, 2))
    const last = seen[1]?.id as string
    await tell(changes(2, 2))
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
    const empty = bus.head()
    await tell(changes(0, 3))
    const first = bus.head()
    for (let at = 3; at < 14; at++) await tell(changes(at, 1))
    for (const after of [empty, first, 'other-3', `${first}0000`, '', '-']) {
      const { reset, head } = bus.subscribe(() => {}, after)
      expect({ after, reset, head }).toEqual({ after, reset: true, head: bus.head() })
    }
    const fourth = first.replace(/1$/, '2')
    expect(bus.subscribe(listener, fourth).reset).toBe(false)
    await settled()
    expect(times(seen)).toEqual([4, 5, 6, 7, 8, 9, 10, 11, 12, 13])
  })

  it('misses nothing for who follows, however much comes at once', async () => {
    bus.subscribe(listener)
    await tell(changes(0, 35))
    expect(times(seen)).toEqual(Array.from({ length: 35 }, (_, i) => i))
    const head = bus.head()
    await tell(changes(35, 1))
    bus.subscribe(listener, head)
    await settled()
    expect(times(seen).slice(35)).toEqual([35, 35])
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

describe('a bus over a source that knows the past', () => {
  const open = () => {
    let tell: (steps: readonly ChangeStep[]) => void = () => {}
    const source: StepSource = {
      onSteps: (listener) => {
        tell = listener
        return () => {}
      },
    }
    return { bus: openEvents({ kind: 'follow', source }), tell: (steps: readonly ChangeStep[]) => tell(steps) }
  }

  it('gives it to who comes back, and tells no news of it', async () => {
    const { bus, tell } = open()
    const seen: NumberedChange[] = []
    bus.subscribe((events) => seen.push(...events))
    tell([
      { id: 'a', changes: changes(0, 1), isPast: true },
      { id: 'b', changes: changes(1, 2), isPast: true },
      { id: 'c', changes: [], isPast: true },
    ])
    expect([seen, bus.head()]).toEqual([[], 'c'])
    const missed: NumberedChange[] = []
    expect(bus.subscribe((events) => missed.push(...events), 'a').reset).toBe(false)
    await settled()
    expect(missed.map(({ id, change }) => [id, change.at])).toEqual([
      ['b', 1],
      ['b', 2],
    ])
    tell([{ id: 'd', changes: changes(3, 1) }])
    expect(times(seen)).toEqual([3])
    expect(times(missed)).toEqual([1, 2, 3])
  })

  it('gives several steps that came at once as one group, of which each can be resumed at', async () => {
    const { bus, tell } = open()
    const groups: string[][] = []
    bus.subscribe((events) => groups.push(events.map(({ id }) => id)))
    tell([
      { id: 'a', changes: changes(0, 1) },
      { id: 'b', changes: changes(1, 1) },
    ])
    expect(groups).toEqual([['a', 'b']])
    const missed: NumberedChange[] = []
    bus.subscribe((events) => missed.push(...events), 'a')
    await settled()
    expect(times(missed)).toEqual([1])
  })
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
