import { describe, expect, it } from 'vitest'
import { runWorlds } from './run.ts'

describe('access, against the oracle', () => {
  const sees = async (worlds: number) => {
    const { done, failure } = await runWorlds({ seed: 1, worlds, apiEvery: 16 })
    expect(failure).toBeUndefined()
    expect(done.worlds).toBe(worlds)
  }
  it('sees in forty random worlds what the specification says, at the core and through the API', () => sees(40))
  it('sees in five hundred random worlds what the specification says', { tags: ['long'] }, () => sees(500))
})
