import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { loaded, NotLoaded } from './lazy-view.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

it('asks again for what does not come, until it does', async () => {
  let asked = 0
  const view = loaded(async () => {
    if (++asked < 4) throw new TypeError('Failed to fetch dynamically imported module')
    return 'a view'
  })
  await vi.advanceTimersByTimeAsync(4000)
  await expect(view).resolves.toBe('a view')
  expect(asked).toBe(4)
})

it('gives up in the end, with the cause', async () => {
  const cause = new TypeError('Failed to fetch dynamically imported module')
  const view = loaded(() => Promise.reject(cause))
  const refused = expect(view).rejects.toMatchObject({ name: 'NotLoaded', message: cause.message, cause })
  await vi.advanceTimersByTimeAsync(60_000)
  await refused
  await expect(view).rejects.toBeInstanceOf(NotLoaded)
})
