import { describe, expect, it } from 'vitest'
import { ApiProblem } from '../contract.ts'
import { Retries, Return } from './use-return.ts'

const problem = (status: number) => new ApiProblem(status, { error: 'no', code: 'no', requestId: '' })
const refused = (status: number, code: string) => new ApiProblem(status, { error: 'no', code, requestId: '' })
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

describe('what stands unread while the hub is heard', () => {
  const away = [problem(0), refused(502, 'no_answer'), refused(503, 'store_unavailable'), refused(503, 'state_loading')]

  it('is asked for again within a second, then ever less often, and anew after an answer or with another way', () => {
    for (const one of away) {
      const own = new Retries()
      const waits = Array.from({ length: 12 }, () => own.waitMs(one, () => 1) ?? Number.NaN)
      expect(waits.slice(0, 3)).toEqual([400, 800, 1600])
      expect(waits.at(-1)).toBe(one.status === 0 ? 3_000 : 8_000)
      expect(own.waitMs(null)).toBeNull()
      expect(own.waitMs(one, () => 1)).toBe(400)
      own.forget()
      expect(own.waitMs(one, () => 0)).toBe(100)
    }
  })

  it('is left to its own pace where the hub answered, and not for want of anything', () => {
    const answered = [
      refused(403, 'type_denied'),
      refused(429, 'too_many_requests'),
      refused(503, 'history_unavailable'),
    ]
    for (const one of answered) expect(new Retries().waitMs(one)).toBeNull()
  })
})
