import { describe, expect, it } from 'vitest'
import { aCluster } from '../../testing/worlds.ts'
import { forgotten, healthChanges, isStale, loadOf, needOf, sumAmounts, turnText, unverifiedText } from './cluster.ts'
import { eventLine } from './events.ts'

const now = Date.UTC(2026, 0, 1)

describe('needOf', () => {
  it('turns a healthy cluster stale by time alone, without a word of the hub', () => {
    const { view } = aCluster('west', now, { ageMs: 1000 })
    expect(needOf(view, now)).toBe('healthy')
    expect(needOf(view, now + view.staleAfterMs)).toBe('stale')
    expect(isStale(view, now + view.staleAfterMs - 1001)).toBe(false)
  })
  it('keeps saying unhealthy of what is stale as well', () => {
    const { view } = aCluster('west', now, { health: 'unhealthy', ageMs: 3_600_000 })
    expect(needOf(view, now)).toBe('unhealthy')
  })
})

describe('loadOf', () => {
  const amounts = { capacity: 10, allocatable: 8, requested: 6, used: 2 }
  it('says what it is based on: measured use, else requests', () => {
    expect(loadOf(amounts)).toMatchObject({ ratio: 0.25, basis: 'used' })
    expect(loadOf({ ...amounts, used: null })).toMatchObject({ ratio: 0.75, basis: 'requested' })
    expect(loadOf({ ...amounts, used: 0 })).toMatchObject({ ratio: 0, basis: 'used' })
  })
  it('is not known where its limit or its amount is not', () => {
    expect(loadOf({ capacity: null, allocatable: null, requested: 1, used: 1 })).toBeNull()
    expect(loadOf({ ...amounts, requested: null, used: null })).toBeNull()
    expect(loadOf({ ...amounts, capacity: 0, allocatable: 0 })).toBeNull()
  })
  it('sums what is known and keeps unknown unknown', () => {
    expect(sumAmounts([amounts, { capacity: null, allocatable: 2, requested: null, used: null }])).toEqual({
      capacity: 10,
      allocatable: 10,
      requested: 6,
      used: 2,
    })
    expect(sumAmounts([]).used).toBeNull()
  })
})

it.each([
  ['https://east.example:6443', /certificate/],
  ['http://127.0.0.1:8001', /plain HTTP/],
])('says what is not proved of %s', (endpoint, words) => expect(unverifiedText({ endpoint })).toMatch(words))

describe('healthChanges', () => {
  it('finds each turn of the heartbeats since a moment, newest first', () => {
    const { view } = aCluster('west', now, { beats: ['healthy', 'degraded', 'degraded', 'healthy'] })
    expect(healthChanges([view], 0).map(({ from, to }) => `${from} ${to}`)).toEqual([
      'degraded healthy',
      'healthy degraded',
    ])
    expect(healthChanges([view], now - 45_000)).toHaveLength(1)
  })
  it('goes back before the heartbeats as far as is remembered, and says of how many clusters that is less', () => {
    const { view } = aCluster('west', now, { beats: ['unhealthy', 'unhealthy'] })
    const turns = [{ at: now - 3_000_000, from: 'healthy' as const, to: 'unhealthy' as const }]
    const [first = now] = view.heartbeats.map(({ at }) => at)
    const whole = { ...view, earlier: { knownSince: now - 3_600_000, turns } }
    const part = { ...view, earlier: { knownSince: first, turns: [] } }
    expect(healthChanges([whole, part], now - 3_600_000)).toEqual([{ cluster: 'west', filtered: false, ...turns[0] }])
    expect(healthChanges([whole], now - 2_000_000)).toEqual([])
    expect(forgotten([whole, view], now - 3_600_000).count).toBe(0)
    expect(forgotten([whole, part], now - 3_600_000)).toEqual({ count: 1, knownSince: first })
  })
  it('says of a cluster that is seen in part only whether it answered, as its strip does', () => {
    const { view } = aCluster('west', now, { beats: ['unknown', 'healthy', 'unhealthy', 'healthy'] })
    const words = (filtered: boolean) => healthChanges([{ ...view, filtered }], 0).map(turnText)
    expect(words(true)).toEqual(['answered again', 'did not answer', 'answered'])
    expect(words(false)).toContain('turned unhealthy, was healthy')
  })
})

describe('eventLine', () => {
  it('tells known events in words and unknown ones by their facts', () => {
    const event = { cluster: 'west', at: now, type: 'node.not_ready', data: { node: 'n1', message: 'kubelet silent' } }
    expect(eventLine(event).text).toBe('node n1 is not ready: kubelet silent')
    expect(eventLine({ ...event, type: 'moon.full', data: { phase: 1 } }).text).toBe('moon.full: phase 1')
  })
})
