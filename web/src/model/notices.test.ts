import { describe, expect, it } from 'vitest'
import { Notices } from './notices.ts'

describe('notices', () => {
  it('tell one cause once, in the place that has it first, and try again everywhere', () => {
    const notices = new Notices()
    const tried: string[] = []
    const leave = notices.add('page', 'no_answer', () => tried.push('page'))
    notices.add('rows', 'no_answer', () => tried.push('rows'))
    notices.add('events', 'timeout', () => tried.push('events'))
    const told = () => ['page', 'rows', 'events', 'other'].filter((id) => notices.isFirst(id))
    expect(told()).toEqual(['page', 'events'])
    notices.retry('no_answer')
    expect(tried).toEqual(['page', 'rows'])
    leave()
    expect(told()).toEqual(['rows', 'events'])
  })
})
