import { describe, expect, it } from 'vitest'
import { ApiProblem } from '../contract.ts'
import { Return } from './use-return.ts'

const problem = (status: number) => new ApiProblem(status, { error: 'no', code: 'no', requestId: '' })
const answered = { problem: null, isAsking: false }
const failed = { problem: problem(0), isAsking: false }
const asking = { problem: null, isAsking: true }

describe('a look', () => {
  it('is repeated once when the hub is heard again, where it failed or still waits', () => {
    for (const look of [failed, asking]) {
      const own = new Return('live')
      expect(own.isDue('reconnecting', look)).toBe(false)
      expect(own.isDue('live', look)).toBe(true)
      expect(own.isDue('live', failed)).toBe(false)
    }
  })

  it('is repeated where it fails after the hub is heard again, and waits no longer than that', () => {
    const own = new Return('offline')
    expect(own.isDue('live', answered)).toBe(false)
    expect(own.isDue('live', asking)).toBe(false)
    expect(own.isDue('live', failed)).toBe(true)
    expect(own.isDue('live', failed)).toBe(false)
  })

  it('is left as it is where it was answered or refused, or the hub was heard all the time', () => {
    const returned = new Return('offline')
    expect(returned.isDue('live', answered)).toBe(false)
    expect(returned.isDue('live', { problem: problem(403), isAsking: false })).toBe(false)
    expect(new Return('live').isDue('live', failed)).toBe(false)
  })
})
