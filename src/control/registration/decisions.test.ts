import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { CLUSTER_SET_LABEL } from '#kinds'
import type { KubeObject } from '#kube'
import { minutes, seconds } from '#model'
import { silentLogger } from '#runtime'
import { ManualClock } from '../../platform/controller/testing/manual-clock.ts'
import { cleanupPriority, nextToDelete } from './cleanup.ts'
import { MassLoss } from './mass-loss.ts'
import type { LabelSelector } from './objects.ts'
import { emptiness, isInSet, selects } from './set-members.ts'
import { saying } from './status.ts'
import { CLEANUP_PRIORITY } from './words.ts'

const prioritised = (priority: string | undefined, name = 'w'): KubeObject => ({
  metadata: { name, ...(priority !== undefined && { annotations: { [CLEANUP_PRIORITY]: priority } }) },
})

describe('the order of cleaning up', () => {
  it.each([
    [undefined, -1],
    ['0', 0],
    ['100', 100],
    ['101', -1],
    ['-1', -1],
    ['1e1', -1],
    ['', -1],
    ['high', -1],
  ])('takes priority %s for %i', (written, priority) => expect(cleanupPriority(prioritised(written))).toBe(priority))

  it('deletes each once, those of a lower priority before all others, whatever came in between', () => {
    const works = fc.array(fc.option(fc.integer({ min: -2, max: 102 }), { nil: undefined }), {
      minLength: 1,
      maxLength: 20,
    })
    fc.assert(
      fc.property(works, (priorities) => {
        let left = priorities.map((one, i) => prioritised(one?.toString(), `w${i}`))
        const order: number[] = []
        while (left.length > 0) {
          const turn = nextToDelete(left)
          expect(turn.length).toBeGreaterThan(0)
          order.push(...turn.map(cleanupPriority))
          left = left.filter((one) => !turn.includes(one))
        }
        expect(order).toHaveLength(priorities.length)
        expect(order).toEqual(order.toSorted((a, b) => a - b))
      }),
    )
  })
})

describe('a set', () => {
  const set = (spec: object, name = 'prod') => ({ metadata: { name }, spec: { clusterSelector: spec } })
  it.each<[string, ReturnType<typeof set>, Record<string, string>, boolean]>([
    [
      'exclusive, by its label',
      set({ selectorType: 'ExclusiveClusterSetLabel' }),
      { [CLUSTER_SET_LABEL]: 'prod' },
      true,
    ],
    [
      'exclusive, another one',
      set({ selectorType: 'ExclusiveClusterSetLabel' }),
      { [CLUSTER_SET_LABEL]: 'test' },
      false,
    ],
    ['exclusive by default', set({}), { [CLUSTER_SET_LABEL]: 'prod' }, true],
    ['exclusive, no label', set({}), {}, false],
    ['an empty selector takes all', set({ selectorType: 'LabelSelector', labelSelector: {} }), {}, true],
    ['no selector takes none', set({ selectorType: 'LabelSelector' }), {}, false],
    ['of an unknown type takes none', set({ selectorType: 'Magic', labelSelector: {} }), {}, false],
    [
      'by labels',
      set({ selectorType: 'LabelSelector', labelSelector: { matchLabels: { env: 'prod' } } }),
      { env: 'prod', region: 'west' },
      true,
    ],
  ])('%s', (_, one, labels, isIn) => expect(isInSet(one, labels)).toBe(isIn))

  it.each<[LabelSelector, Record<string, string>, boolean]>([
    [{ matchExpressions: [{ key: 'env', operator: 'In', values: ['a', 'b'] }] }, { env: 'b' }, true],
    [{ matchExpressions: [{ key: 'env', operator: 'In', values: ['a'] }] }, {}, false],
    [{ matchExpressions: [{ key: 'env', operator: 'NotIn', values: ['a'] }] }, {}, true],
    [{ matchExpressions: [{ key: 'env', operator: 'NotIn', values: ['a'] }] }, { env: 'a' }, false],
    [{ matchExpressions: [{ key: 'env', operator: 'Exists' }] }, { env: '' }, true],
    [{ matchExpressions: [{ key: 'env', operator: 'DoesNotExist' }] }, { env: '' }, false],
    [{ matchExpressions: [{ key: 'env', operator: 'Like', values: ['a'] }] }, { env: 'a' }, false],
    [{ matchLabels: { toString: 'x' } }, {}, false],
  ])('%j fits %j: %s', (selector, labels, fits) => expect(selects(selector, labels)).toBe(fits))

  it('says how many it has', () => {
    expect(emptiness(0)).toMatchObject({ status: 'True', reason: 'NoClusterMatched' })
    expect(emptiness(3)).toEqual({ status: 'False', reason: 'ClustersSelected', message: '3 ManagedClusters selected' })
  })
})

describe('many lost at once', () => {
  const lose = (loss: MassLoss, count: number, from = 0) => {
    for (let i = from; i < from + count; i++) loss.lost(`c${i}`)
  }
  const aLoss = (
    members: number,
    { watchedMs = minutes(60), pauseMs }: { watchedMs?: number; pauseMs?: number } = {},
  ) => {
    const clock = new ManualClock()
    const said: string[] = []
    const logger = { ...silentLogger, warn: (_: object, text: string) => void said.push(text) }
    const startedAt = clock.now() - watchedMs
    const presence = { forMs: () => clock.now() - startedAt }
    const more = { ...(pauseMs !== undefined && { pauseMs }), presence }
    return { clock, said, loss: new MassLoss({ members: () => members, clock, logger, ...more }) }
  }

  it('pause the taints for a minute', async () => {
    const { clock, loss } = aLoss(100)
    lose(loss, 19)
    expect(loss.pauseMs()).toBe(0)
    lose(loss, 1, 19)
    expect(loss.pauseMs()).toBe(seconds(60))
    await clock.advance(seconds(60))
    expect(loss.pauseMs()).toBe(0)
  })

  it('are said once, and not where the hub itself was away', async () => {
    const there = aLoss(10)
    lose(there.loss, 10)
    expect(there.said).toEqual([expect.stringContaining('look at the way to them first')])
    const away = aLoss(10, { watchedMs: seconds(20) })
    lose(away.loss, 10)
    expect(away.said).toEqual([])
    expect(away.loss.pauseMs()).toBe(seconds(70))
  })

  it('are no mass where they are few, the same one, or go one by one', async () => {
    const few = aLoss(4)
    lose(few.loss, 4)
    expect(few.loss.pauseMs()).toBe(0)
    const same = aLoss(10)
    for (let i = 0; i < 20; i++) same.loss.lost('c')
    expect(same.loss.pauseMs()).toBe(0)
    const slow = aLoss(10)
    for (let i = 0; i < 10; i++) {
      slow.loss.lost(`c${i}`)
      await slow.clock.advance(seconds(10))
    }
    expect(slow.loss.pauseMs()).toBe(0)
  })

  it('are all there are while the hub has just begun to watch, however few, until each had time to come back', async () => {
    const { clock, loss } = aLoss(1, { watchedMs: 0 })
    expect(loss.pauseMs()).toBe(seconds(90))
    await clock.advance(seconds(89))
    expect(loss.pauseMs()).toBe(seconds(1))
    await clock.advance(seconds(1))
    expect(loss.pauseMs()).toBe(0)
    expect(aLoss(1, { watchedMs: 0, pauseMs: minutes(5) }).loss.pauseMs()).toBe(minutes(5))
    expect(aLoss(1, { watchedMs: 0, pauseMs: 0 }).loss.pauseMs()).toBe(0)
  })
})

describe('conditions', () => {
  const said = { type: 'A', status: 'True', reason: 'Because', message: 'so' } as const
  it('are the very same where only the message of what is well moves', () => {
    const once = saying([], [said], 0)
    expect(saying(once, [{ ...said, message: 'otherwise' }], 1)).toBe(once)
    expect(saying(once, [{ ...said, reason: 'Since' }], 1)).not.toBe(once)
  })

  it('say the present cause of what is not well, since it is so', () => {
    const cause = (message: string) => ({ ...said, status: 'False' as const, message })
    const once = saying([], [cause('it is away')], 0)
    expect(saying(once, [cause('it is away')], 60_000)).toBe(once)
    expect(saying(once, [cause('its certificate counts not')], 60_000)).toEqual([
      { ...cause('its certificate counts not'), lastTransitionTime: '1970-01-01T00:00:00Z' },
    ])
    const long = saying([], [cause('x'.repeat(2000))], 0)
    expect(saying(long, [cause('x'.repeat(2000))], 1)).toBe(long)
  })
})
