import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { ApiProblem, type RegistryView } from '../contract.ts'
import { everyMs, RegistriesStore } from './registries-store.ts'

const items = (...names: string[]) => ({ items: names.map((name) => ({ name }) as RegistryView) })
const problem = (status: number) => new ApiProblem(status, { error: 'no', code: 'unexpected', requestId: '' })

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

describe('the registries of a page', () => {
  it('are asked for once, however many show them, and every 15 s while any does', async () => {
    const ask = vi.fn(async () => items('a'))
    const store = new RegistriesStore({ ask })
    const ends = [store.subscribe(() => undefined), store.subscribe(() => undefined)]
    await vi.advanceTimersByTimeAsync(0)
    expect(ask).toHaveBeenCalledTimes(1)
    expect(store.current().registries).toHaveLength(1)
    await vi.advanceTimersByTimeAsync(everyMs)
    expect(ask).toHaveBeenCalledTimes(2)
    for (const end of ends) end()
    await vi.advanceTimersByTimeAsync(everyMs * 5)
    expect(ask).toHaveBeenCalledTimes(2)
  })

  it('stay while the hub cannot be asked, with the reason, and go when it refuses', async () => {
    let answer: () => Promise<ReturnType<typeof items>> = async () => items('a')
    const store = new RegistriesStore({ ask: () => answer() })
    store.subscribe(() => undefined)
    await vi.advanceTimersByTimeAsync(0)
    answer = () => Promise.reject(problem(503))
    await vi.advanceTimersByTimeAsync(everyMs)
    expect(store.current()).toMatchObject({ registries: [{ name: 'a' }], problem: { status: 503 } })
    answer = () => Promise.reject(problem(403))
    await vi.advanceTimersByTimeAsync(60_000)
    expect(store.current()).toMatchObject({ registries: null, problem: { status: 403 } })
    answer = async () => items('b')
    await vi.advanceTimersByTimeAsync(60_000)
    expect(store.current()).toMatchObject({ registries: [{ name: 'b' }], problem: null })
  })

  it('are asked for again without what hangs', async () => {
    const signals: AbortSignal[] = []
    const store = new RegistriesStore({
      ask: (signal) => {
        signals.push(signal)
        return signals.length > 1 ? Promise.resolve(items('a')) : new Promise(() => undefined)
      },
    })
    store.subscribe(() => undefined)
    expect(store.isAsking).toBe(true)
    store.again()
    await vi.advanceTimersByTimeAsync(0)
    expect([signals[0]?.aborted, store.current().registries, store.isAsking]).toMatchObject([
      ...[true, [{ name: 'a' }], false],
    ])
  })

  it('are not asked for while nobody looks', async () => {
    const ask = vi.fn(async () => items('a'))
    let isIdle = true
    const store = new RegistriesStore({ ask, isIdle: () => isIdle })
    store.subscribe(() => undefined)
    await vi.advanceTimersByTimeAsync(everyMs * 3)
    expect(ask).not.toHaveBeenCalled()
    isIdle = false
    store.refresh()
    expect(ask).toHaveBeenCalledTimes(1)
  })

  it('of one person are gone before those of the next are asked for', async () => {
    const asked: AbortSignal[] = []
    const answers: ((value: ReturnType<typeof items>) => void)[] = []
    const store = new RegistriesStore({
      ask: (signal) => {
        asked.push(signal)
        return new Promise((resolve) => void answers.push(resolve))
      },
    })
    store.seenIn(1)
    store.subscribe(() => undefined)
    store.seenIn(1) // by another that shows them
    expect(asked).toHaveLength(1)
    answers[0]?.(items('secret'))
    await vi.advanceTimersByTimeAsync(0)
    store.refresh() // still on its way when somebody else looks
    store.seenIn(2)
    expect(store.current().registries).toBeNull()
    expect(asked[1]?.aborted).toBe(true)
    answers[1]?.(items('secret'))
    await vi.advanceTimersByTimeAsync(0)
    expect(store.current().registries).toBeNull()
    answers[2]?.(items('own'))
    await vi.advanceTimersByTimeAsync(0)
    expect(store.current().registries).toMatchObject([{ name: 'own' }])
  })
})
