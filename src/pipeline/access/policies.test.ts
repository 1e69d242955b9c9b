import { describe, expect, it } from 'vitest'
import { PoliciesUnavailableError } from './errors.ts'
import { MemoryPolicies } from './policies-memory.ts'
import { aDocument } from './testing/policies.ts'

const active = { state: 'Active' }

describe('policies in memory', () => {
  it('answer nobody before the first resync, whatever was put', async () => {
    const store = new MemoryPolicies()
    await store.put(aDocument('a'), active)
    await expect(store.current()).rejects.toBeInstanceOf(PoliciesUnavailableError)
    expect(() => store.latest(60_000)).toThrow(PoliciesUnavailableError)
    await store.resync([])
    expect((await store.current()).policies).toEqual([])
  })
})
