import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Breaker } from './breaker.ts'
import { KubeError, type KubeErrorReason } from './errors.ts'
import { ManualClock } from './testing/scripted-server.ts'

const failing = (reason: KubeErrorReason, httpStatus?: number) => async () => {
  throw new KubeError(reason, reason, httpStatus === undefined ? {} : { httpStatus })
}
const fine = async () => 'fine'

async function outcome(work: Promise<unknown>): Promise<string> {
  return work.then(
    () => 'success',
    (error) => (error instanceof KubeError ? error.reason : 'other'),
  )
}

describe('Breaker', () => {
  it('opens after five failures in a row, and not before', async () => {
    const breaker = new Breaker({ clock: new ManualClock() })
    for (let n = 0; n < 4; n++) await outcome(breaker.run(failing('unreachable')))
    await breaker.run(fine)
    for (let n = 0; n < 4; n++) await outcome(breaker.run(failing('timeout')))
    expect(breaker.state).toBe('closed')
    await outcome(breaker.run(failing('tls')))
    expect(breaker.state).toBe('open')
    expect(await outcome(breaker.run(fine))).toBe('breaker_open')
  })

  it('says when the next try may be made', async () => {
    const clock = new ManualClock()
    const breaker = new Breaker({ clock })
    for (let n = 0; n < 5; n++) await outcome(breaker.run(failing('server', 500)))
    clock.advance(20_000)
    const error = await breaker.run(fine).catch((caught) => caught)
    expect(error).toMatchObject({ reason: 'breaker_open', retryAfterMs: 40_000 })
    // What people read is the trouble and nothing of our pause, the same from round to round.
    expect(error).toMatchObject({ code: 'kube_server', message: 'server' })
  })

  it.each<[KubeErrorReason, number]>([
    ['forbidden', 403],
    ['not_found', 404],
    ['unauthorized', 401],
    ['throttled', 429],
  ])('takes %s for a sign of life', async (reason, httpStatus) => {
    const breaker = new Breaker({ clock: new ManualClock() })
    for (let n = 0; n < 20; n++) await outcome(breaker.run(failing(reason, httpStatus)))
    expect(breaker.state).toBe('closed')
  })

  it('lets one call probe after the pause, and closes when it succeeds', async () => {
    const clock = new ManualClock()
    const breaker = new Breaker({ clock })
    for (let n = 0; n < 5; n++) await outcome(breaker.run(failing('unreachable')))
    clock.advance(60_000)
    expect(breaker.state).toBe('half-open')
    let answer: (value: string) => void = () => {}
    const probe = breaker.run(() => new Promise<string>((resolve) => (answer = resolve)))
    expect(await outcome(breaker.run(fine))).toBe('breaker_open')
    answer('here')
    expect(await probe).toBe('here')
    expect(breaker.state).toBe('closed')
  })

  it('opens again for the whole pause when the probe fails', async () => {
    const clock = new ManualClock()
    const breaker = new Breaker({ clock })
    for (let n = 0; n < 5; n++) await outcome(breaker.run(failing('unreachable')))
    clock.advance(60_000)
    await outcome(breaker.run(failing('unreachable')))
    clock.advance(59_999)
    expect(breaker.state).toBe('open')
    clock.advance(1)
    expect(breaker.state).toBe('half-open')
  })

  it('lets through who looks whether the trouble is over, closes by it, and is not kept open for longer by it', async () => {
    const clock = new ManualClock()
    const breaker = new Breaker({ clock })
    for (let n = 0; n < 5; n++) await outcome(breaker.run(failing('timeout')))
    clock.advance(59_000)
    expect(await outcome(breaker.runAnyway(failing('timeout')))).toBe('timeout')
    expect(await outcome(breaker.run(fine))).toBe('breaker_open')
    clock.advance(1_000)
    expect(breaker.state).toBe('half-open')
    await outcome(breaker.run(failing('timeout')))
    expect(await outcome(breaker.runAnyway(failing('forbidden', 403)))).toBe('forbidden')
    expect([breaker.state, await outcome(breaker.run(fine))]).toEqual(['closed', 'success'])
  })

  it('lets another call probe when the first was given up by its caller', async () => {
    const clock = new ManualClock()
    const breaker = new Breaker({ clock })
    for (let n = 0; n < 5; n++) await outcome(breaker.run(failing('unreachable')))
    clock.advance(60_000)
    const given = breaker.run(async () => {
      throw new DOMException('left', 'AbortError')
    })
    expect(await outcome(given)).toBe('other')
    expect(await outcome(breaker.run(fine))).toBe('success')
  })

  it('behaves as a small model of it does, whatever happens in whatever order', async () => {
    const step = fc.oneof(
      fc.record({ do: fc.constant('wait' as const), ms: fc.integer({ min: 1, max: 70_000 }) }),
      fc.record({ do: fc.constantFrom('succeed' as const, 'fail' as const, 'refuse' as const, 'leave' as const) }),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
        const clock = new ManualClock()
        const breaker = new Breaker({ clock })
        let failures = 0
        let openUntil: number | undefined
        for (const next of steps) {
          if (next.do === 'wait') {
            clock.advance('ms' in next ? next.ms : 0)
            continue
          }
          const blocked = openUntil !== undefined && clock.now() < openUntil
          let called = false
          const result = await outcome(
            breaker.run(async () => {
              called = true
              if (next.do === 'fail') throw new KubeError('unreachable', 'x')
              if (next.do === 'refuse') throw new KubeError('forbidden', 'x', { httpStatus: 403 })
              if (next.do === 'leave') throw new Error('left')
            }),
          )
          expect(called).toBe(!blocked)
          if (blocked) {
            expect(result).toBe('breaker_open')
            continue
          }
          if (next.do === 'fail') {
            failures++
            if (openUntil !== undefined || failures >= 5) openUntil = clock.now() + 60_000
          } else if (next.do !== 'leave') {
            failures = 0
            openUntil = undefined
          }
        }
      }),
      { numRuns: 300 },
    )
  })
})
