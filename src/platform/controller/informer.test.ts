import { describe, expect, it } from 'vitest'
import { lastingTrouble } from './informer.ts'

const at = (now: number) => ({ now: () => now, sleep: () => Promise.resolve() })
const followed = { trouble: undefined }
const away = { trouble: { since: 100_000, error: new Error('connection refused') } }

describe('what is not followed', () => {
  it('is told once it lasts, since when and why', () => {
    expect(lastingTrouble([followed], at(500_000))).toBeUndefined()
    expect(lastingTrouble([followed, away], at(109_999))).toBeUndefined()
    const later = { trouble: { since: 120_000, error: new Error('another') } }
    expect(lastingTrouble([later, followed, away], at(130_000))).toEqual({
      since: 100_000,
      message: expect.stringContaining('connection refused'),
    })
  })

  it('is told also where the clock was set back meanwhile', () => {
    expect(lastingTrouble([away], at(40_000))?.since).toBe(100_000)
  })
})
