import { describe, expect, it } from 'vitest'
import { runWorlds } from './run.ts'

describe('access, against the oracle', () => {
  it('sees in some hundred random worlds what the specification says, at the core and through the API', async () => {
    const { done, failure } = await runWorlds({ seed: 1, worlds: 200, apiEvery: 16 })
    expect(failure).toBeUndefined()
    expect(done.worlds).toBe(200)
  })
})
