import { expect, it } from 'vitest'
import { systemClock } from '#model'
import type { Availability } from '#state'
import { StoreFacts } from './store-facts.ts'

it('says that who writes is not heard, and first what this process itself does not hear', () => {
  let availability: Availability = { state: 'available' }
  let fault: string | undefined
  const facts = new StoreFacts({
    state: { availability: () => availability },
    clock: systemClock,
    readiness: { events: () => fault },
  })
  expect(facts.now()).toEqual({ state: 'available', since: null, reason: '' })
  availability = { state: 'available', silent: { since: 5, reason: 'the manager is not heard' } }
  expect(facts.now()).toEqual({ state: 'available', since: 5, reason: 'the manager is not heard' })
  fault = 'no events'
  expect(facts.now()).toMatchObject({ reason: 'no events', since: expect.any(Number) })
})
