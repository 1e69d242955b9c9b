import { describe, expect, it, onTestFinished } from 'vitest'
import { KubeError } from '#kube'
import { ManualClock, until } from '../kube/testing/scripted-server.ts'
import { ApiPulse } from './api-pulse.ts'
import { lastingTrouble } from './informer.ts'

/** An API server of which the test says how it answers. */
function aPulse() {
  const clock = new ManualClock()
  const server = { answer: (_: AbortSignal): Promise<void> => Promise.resolve(), asked: 0 }
  const ping = (signal?: AbortSignal) => {
    server.asked++
    return server.answer(signal ?? new AbortController().signal)
  }
  const pulse = new ApiPulse({ kube: { ping }, clock })
  onTestFinished(() => pulse[Symbol.asyncDispose]())
  pulse.start()
  const asks = async (n: number) => {
    while (server.asked < n) {
      await until(() => clock.waits.length > 0)
      clock.advance(Math.min(...clock.waits))
      await new Promise((resolve) => setTimeout(resolve, 2))
    }
  }
  return { clock, server, pulse, asks }
}

describe('an API server that is asked again and again', () => {
  it('that hangs is told within ten seconds, as of its last answer, and no more once it answers', async () => {
    const { clock, server, pulse, asks } = aPulse()
    await asks(2)
    const answeredAt = clock.now()
    expect(pulse.trouble).toBeUndefined()
    server.answer = () => new Promise(() => undefined)
    await asks(4)
    await until(() => pulse.trouble)
    expect(pulse.trouble?.since).toBe(answeredAt)
    expect(clock.now() - answeredAt).toBeLessThanOrEqual(13_000)
    expect(lastingTrouble([pulse], clock)).toEqual({ since: answeredAt, message: 'nothing came within 7 s' })
    server.answer = () => Promise.resolve()
    await asks(6)
    await until(() => pulse.trouble === undefined)
  })

  it('that refuses is there; one that nobody reaches is not, and is said with the cause', async () => {
    const { server, pulse, asks } = aPulse()
    server.answer = () => Promise.reject(new KubeError('forbidden', 'may not', { httpStatus: 403 }))
    await asks(3)
    expect(pulse.trouble).toBeUndefined()
    server.answer = () => Promise.reject(new KubeError('unreachable', 'connection refused'))
    await asks(5)
    await until(() => pulse.trouble)
    expect(pulse.trouble?.error).toMatchObject({ message: 'connection refused' })
  })
})
