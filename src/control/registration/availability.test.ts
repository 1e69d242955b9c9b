import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { HUB_RESTARTED, HUB_STARTED, HUB_STOPPED, minutes, seconds } from '#model'
import { graceMs, judgeClock, judgeLease, judgeStream, leaseMs, type Said } from './availability.ts'

const T = Date.UTC(2026, 0, 1)

describe('a heartbeat', () => {
  it.each([
    [undefined, 60],
    [0, 60],
    [-3, 60],
    [1, 1],
    [30, 30],
  ])('of %s in the spec is %i s, and five may be missing', (written, s) => {
    expect(leaseMs(written)).toBe(seconds(s))
    expect(graceMs(written)).toBe(seconds(5 * s))
  })
})

describe('a member that is judged by its lease', () => {
  const judge = (over: Partial<Parameters<typeof judgeLease>[0]> = {}) =>
    judgeLease({
      lease: { seenAt: T },
      isDeleting: false,
      isRevoked: false,
      graceMs: minutes(5),
      stored: 'True',
      now: T,
      ...over,
    })

  it('is unknown when the whole grace has passed, and not a moment before', () => {
    expect(judge({ now: T + minutes(5) - 1 })).toEqual({ said: undefined, againMs: 1 })
    expect(judge({ now: T + minutes(5) }).said).toMatchObject({
      status: 'Unknown',
      reason: 'ManagedClusterLeaseUpdateStopped',
    })
  })

  it('is unknown at once where it was revoked, and never was anything where nothing was said before', () => {
    const said = (stored: Said['status'] | undefined) => judge({ isRevoked: true, stored }).said?.status
    expect([said('True'), said('False'), said('Unknown'), said(undefined)]).toEqual([
      ...['Unknown', 'Unknown'],
      ...[undefined, undefined],
    ])
  })

  it('is said to be unknown once', () =>
    expect(judge({ now: T + minutes(9), stored: 'Unknown' })).toEqual({ said: undefined, againMs: undefined }))

  it('is left as it is where there is no lease, and unknown at once where it is being deleted', () => {
    expect(judge({ lease: undefined }).said).toBeUndefined()
    expect(judge({ lease: undefined, isDeleting: true }).said?.status).toBe('Unknown')
    expect(judge({ lease: undefined, isDeleting: true, stored: 'Unknown' }).said).toBeUndefined()
  })

  it('is never said to be available by the hub, whatever happens', () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constant('wait' as const), ms: fc.integer({ min: 0, max: minutes(8) }) }),
      fc.record({ kind: fc.constant('renew' as const) }),
      // The agent says what it finds; a clock is set back.
      fc.record({ kind: fc.constant('agent' as const), status: fc.constantFrom('True' as const, 'False' as const) }),
      fc.record({ kind: fc.constant('setBack' as const), ms: fc.integer({ min: 0, max: minutes(60) }) }),
    )
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), fc.integer({ min: 1, max: 120 }), (steps, duration) => {
        const grace = graceMs(duration)
        let [now, seenAt] = [T, T]
        let stored: Said['status'] | undefined
        for (const one of steps) {
          if (one.kind === 'wait') now += one.ms
          else if (one.kind === 'setBack') now -= one.ms
          else if (one.kind === 'renew') seenAt = now
          else stored = one.status
          const { said, againMs } = judgeLease({
            lease: { seenAt },
            isDeleting: false,
            isRevoked: false,
            graceMs: grace,
            stored,
            now,
          })
          if (said) {
            expect(said.status).toBe('Unknown')
            expect(stored).not.toBe('Unknown')
            expect(now - seenAt).toBeGreaterThanOrEqual(grace)
            stored = said.status
          } else if (stored !== 'Unknown') {
            expect(now - seenAt).toBeLessThan(grace)
            // Looked at again by then, however the clock was set.
            expect(againMs).toBeGreaterThan(0)
            expect(againMs).toBeLessThanOrEqual(grace)
          }
        }
      }),
    )
  })
})

describe('a member on our stream', () => {
  const sign = { connected: true, since: T, reason: '' }
  const judge = (over: Partial<Parameters<typeof judgeStream>[0]> = {}) =>
    judgeStream({ sign, api: { answers: true }, stored: undefined, now: T, ...over })

  it.each([
    ['its agent speaks and its API answers', { answers: true } as const, 'True', 'ManagedClusterAvailable'],
    [
      'its API does not answer the agent',
      { answers: false, why: 'no route' } as const,
      'False',
      'ManagedClusterKubeAPIServerUnavailable',
    ],
  ])('says so where %s', (_, api, status, reason) => expect(judge({ api }).said).toMatchObject({ status, reason }))

  it('says nothing before its agent told anything, or came', () => {
    expect(judge({ api: undefined }).said).toBeUndefined()
    expect(judge({ sign: undefined }).said).toBeUndefined()
  })

  it('is unknown where nobody knows an agent of it any more', () =>
    expect(judge({ sign: undefined, stored: 'True' }).said).toMatchObject({
      status: 'Unknown',
      reason: 'ManagedClusterStreamLost',
    }))

  const gone = (since: number, reason = 'the connection ended') => ({ connected: false, since, reason })

  it('is lost ten seconds after its end, and looked at again then', () =>
    fc.assert(
      fc.property(
        fc.integer({ min: -seconds(60), max: seconds(20) }),
        fc.constantFrom('True', 'False', undefined),
        (at, stored) => {
          const { said, againMs } = judge({ sign: gone(T), stored, now: T + at })
          if (at >= seconds(10)) expect(said?.reason).toBe('ManagedClusterStreamLost')
          // A clock that was set back is looked at more than once.
          else expect([said, againMs]).toEqual([undefined, Math.min(seconds(10), seconds(10) - at)])
        },
      ),
    ))

  it('is lost ten seconds after the hub began to watch where that was away before, and not a moment before', () =>
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: minutes(60) }),
        fc.integer({ min: 0, max: seconds(20) }),
        (ago, watchedMs) => {
          const by = { watchedMs, awayMs: watchedMs, now: T + watchedMs }
          const { said, againMs } = judge({ sign: gone(T - ago), stored: 'True', ...by })
          if (watchedMs >= seconds(10)) expect(said?.status).toBe('Unknown')
          else expect([said, againMs]).toEqual([undefined, seconds(10) - watchedMs])
        },
      ),
    ))

  it('has seventy seconds to come back to a hub that is there again, and is said to be waited for meanwhile', () => {
    const at = (ms: number, stored: 'True' | 'False' | 'Unknown') =>
      judge({ sign: gone(T, HUB_STARTED), stored, watchedMs: ms, awayMs: ms, now: T + ms })
    expect(at(seconds(4), 'True')).toEqual({ said: undefined, againMs: seconds(1) })
    expect(at(seconds(5), 'True')).toMatchObject({
      said: { status: 'True', reason: 'ManagedClusterAgentAwaited' },
      againMs: seconds(65),
    })
    for (const stored of ['False', 'Unknown'] as const)
      expect(at(seconds(69), stored)).toEqual({ said: undefined, againMs: seconds(1) })
    expect(at(seconds(70), 'True').said).toMatchObject({
      status: 'Unknown',
      message: `The agent of the cluster is away: ${HUB_RESTARTED}.`,
    })
  })

  it('has as long where the hub stopped and nothing was noted of its start yet', () => {
    const stopped = (watchedMs: number) =>
      judge({ sign: gone(T, HUB_STOPPED), stored: 'True', watchedMs, awayMs: watchedMs, now: T + minutes(60) })
    expect(stopped(seconds(69))).toEqual({ said: undefined, againMs: seconds(1) })
    expect(stopped(seconds(70)).said?.status).toBe('Unknown')
  })

  it('is lost in time by what the hub saw itself, where its clock was set back by hours or years', () =>
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 10 * 365 * 24 * minutes(60) }), (back) => {
        expect(judge({ sign: gone(T), stored: 'True', awayMs: seconds(10), now: T - back }).said?.status).toBe(
          'Unknown',
        )
      }),
    ))
})

describe('a clock', () => {
  it.each([
    [0, 'True'],
    [minutes(5) - 1, 'True'],
    [-minutes(5) + 1, 'True'],
    [minutes(5), 'False'],
    [-minutes(60), 'False'],
    [10 * 365 * 24 * minutes(60), 'False'],
  ])('that is %i ms off counts as synced: %s', (offsetMs, status) =>
    expect(judgeClock(offsetMs, minutes(5)).status).toBe(status),
  )
  it('says which way it is off', () => {
    expect(judgeClock(minutes(60), minutes(5)).message).toContain('60 minutes ahead of')
    expect(judgeClock(-minutes(60), minutes(5)).message).toContain('60 minutes behind')
  })
})
