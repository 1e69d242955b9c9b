import { describe, expect, it } from 'vitest'
import { type Condition, setCondition } from './conditions.ts'

const ready = { type: 'Ready', status: 'True' as const, reason: 'Collected', message: 'fine' }
const t0 = Date.UTC(2026, 0, 1)

describe('setCondition', () => {
  it('dates a new condition and puts it at the end', () => {
    const first = setCondition([], ready, t0)
    const both = setCondition(first, { ...ready, type: 'Reachable' }, t0 + 5000)
    expect(both.map(({ type, lastTransitionTime }) => [type, lastTransitionTime])).toEqual([
      ['Ready', '2026-01-01T00:00:00Z'],
      ['Reachable', '2026-01-01T00:00:05Z'],
    ])
  })

  it('keeps the date while the status stays, though reason and message change', () => {
    const first = setCondition([], ready, t0)
    const [next] = setCondition(first, { ...ready, message: 'still fine', observedGeneration: 2 }, t0 + 60_000)
    expect(next).toMatchObject({
      lastTransitionTime: first[0]?.lastTransitionTime,
      message: 'still fine',
      observedGeneration: 2,
    })
  })

  it('moves the date when the status changes', () => {
    const first = setCondition([], ready, t0)
    const [next] = setCondition(first, { ...ready, status: 'False' }, t0 + 60_000)
    expect(next?.lastTransitionTime).toBe('2026-01-01T00:01:00Z')
  })

  it('returns the same array when nothing differs, so that nothing needs to be written', () => {
    const conditions: readonly Condition[] = setCondition([], ready, t0)
    expect(setCondition(conditions, ready, t0 + 60_000)).toBe(conditions)
  })
})
