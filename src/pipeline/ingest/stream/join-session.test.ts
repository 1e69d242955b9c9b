import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { encodeRequest } from '#wire'
import { T0 } from '../../state/test/fleet-words.ts'
import type { JoinStep } from '../line/join-desk.ts'
import { defaultLimits } from '../line/limits.ts'
import { Session } from './session.ts'
import type { Effect, SessionEvent, SessionWorld } from './session-events.ts'
import { hello } from './test/own-agent.ts'

const aWorld = (changes: Partial<SessionWorld> = {}): SessionWorld => ({
  limits: defaultLimits,
  tls: true,
  verify: () => ({ refused: 'unknown' }),
  stillValid: () => true,
  pauseMs: () => 0,
  badFrame: () => false,
  knows: () => true,
  takesJoins: true,
  received: () => [],
  heardTo: () => undefined,
  planOf: () => undefined,
  enter: () => {
    throw new Error('nobody who joins has a place')
  },
  random: () => 0.5,
  ...changes,
})
const asking = encodeRequest({
  payload: { case: 'join', value: { token: 'secret', clusterName: 'west', agentName: 'a', csr: Uint8Array.of(1) } },
})
const message = (bytes: Uint8Array): SessionEvent => ({ kind: 'message', bytes })
const step = (one: JoinStep): SessionEvent => ({ kind: 'join', step: one })
const pending: JoinStep = { kind: 'pending', request: 'west-1', message: 'somebody must accept it' }
const joined: JoinStep = { kind: 'joined', request: 'west-1', certificate: 'PEM', roots: 'ROOTS' }
const refused: JoinStep = { kind: 'over', code: 'join_refused', message: 'the join token has expired' }

function opened(world = aWorld()) {
  const session = new Session(world, T0)
  session.on({ kind: 'opened', verdict: undefined }, T0)
  return { session, tell: (event: SessionEvent, now = T0) => session.on(event, now) }
}
const kinds = (effects: readonly Effect[]) => effects.map(({ kind }) => kind)
const answers = (effects: readonly Effect[]) =>
  effects.flatMap((effect) => (effect.kind === 'send' ? [effect.answer] : []))

describe('a stream of a machine that wants to become a member', () => {
  it('is asked for once, hears what is waited for, and ends with the certificate', () => {
    const { session, tell } = opened()
    expect(kinds(tell(message(asking)))).toEqual(['join'])
    expect(answers(tell(step(pending)))).toMatchObject([
      { case: 'joinState', value: { phase: 'pending', request: 'west-1', message: 'somebody must accept it' } },
    ])
    const last = tell(step(joined))
    expect(answers(last)).toMatchObject([
      { case: 'joinState', value: { phase: 'joined', certificate: 'PEM', roots: 'ROOTS' } },
    ])
    expect(last).toContainEqual(expect.objectContaining({ kind: 'end', status: 0 }))
    expect(session.hasEnded).toBe(true)
  })

  it('is told why it is refused, before it ends', () => {
    const { tell } = opened()
    tell(message(asking))
    const last = tell(step(refused))
    expect(answers(last)).toMatchObject([
      { case: 'goodbye', value: { code: 'join_refused', message: 'the join token has expired' } },
    ])
    expect(last).toContainEqual(expect.objectContaining({ kind: 'end', code: 'join_refused' }))
  })

  it('is refused where nobody takes such requests, and where a registration or another request came before', () => {
    expect(opened(aWorld({ takesJoins: false })).tell(message(asking))).toContainEqual(
      expect.objectContaining({ kind: 'end', code: 'not_negotiated' }),
    )
    const { tell } = opened()
    tell(message(asking))
    expect(tell(message(asking))).toContainEqual(expect.objectContaining({ kind: 'end', code: 'malformed' }))
  })

  it('ends after an hour without a decision, and says that the request stays', () => {
    const { tell } = opened()
    tell(message(asking))
    expect(tell({ kind: 'tick' }, T0 + defaultLimits.joinMs)).toEqual([])
    expect(answers(tell({ kind: 'tick' }, T0 + defaultLimits.joinMs + 1))).toMatchObject([
      { case: 'goodbye', value: { code: 'join_unavailable', message: expect.stringContaining('the request stays') } },
    ])
  })

  it('never becomes a stream of a cluster, whatever is said on it in whatever order', () => {
    const event: fc.Arbitrary<SessionEvent> = fc.constantFrom<SessionEvent>(
      message(asking),
      message(encodeRequest({ payload: hello({ now: () => T0 }) })),
      message(encodeRequest({ payload: { case: 'health', value: { clusterName: 'west' } } })),
      message(encodeRequest({ payload: { case: 'loss', value: { sequence: 1 } } })),
      message(Uint8Array.of(255, 255)),
      step(pending),
      step(joined),
      step(refused),
      { kind: 'credentials' },
      { kind: 'plan' },
      { kind: 'flush' },
      { kind: 'tick' },
      { kind: 'finished' },
      { kind: 'disconnect', code: 'stopping', message: 'the hub is stopping' },
      { kind: 'closed', why: '', silentMs: 0 },
    )
    fc.assert(
      fc.property(fc.array(event, { maxLength: 30 }), (events) => {
        const { session, tell } = opened()
        const done: Effect[] = [...tell(message(asking))]
        for (const one of events) done.push(...tell(one))
        expect(session.cluster).toBeUndefined()
        expect(kinds(done).filter((kind) => kind === 'join')).toHaveLength(1)
        expect(kinds(done).filter((kind) => kind === 'end').length).toBeLessThanOrEqual(1)
        expect(kinds(done)).not.toContain('accept')
        expect(kinds(done)).not.toContain('lost')
        // What counts is given out at most once, and nothing follows the end.
        expect(
          answers(done).filter((one) => one.case === 'joinState' && one.value.phase === 'joined').length,
        ).toBeLessThanOrEqual(1)
      }),
      { numRuns: 1_000 },
    )
  })
})
