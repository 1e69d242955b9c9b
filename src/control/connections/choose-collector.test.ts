import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { AgentFacts } from '#model'
import { type CollectorInputs, chooseCollector, graceMs } from './choose-collector.ts'

const NOW = 1_000_000
const agent = (over: Partial<AgentFacts> = {}): AgentFacts => ({
  connected: true,
  since: NOW - 1000,
  reason: '',
  version: '1.2',
  protocol: 1,
  heartbeatAt: NOW,
  bufferedBatches: 0,
  bufferedBytes: 0,
  oldestBufferedAt: null,
  lostBatches: 0,
  clockOffsetMs: 0,
  tls: true,
  method: 'token',
  plan: '',
  epoch: 1,
  ...over,
})
const gone = agent({ connected: false, reason: 'the connection broke' })
const inputs = (over: Partial<CollectorInputs> = {}): CollectorInputs => ({
  mode: 'push',
  receivesAgents: true,
  isReachable: true,
  isDelivering: false,
  facts: undefined,
  lastBatchAt: undefined,
  lastReadAt: undefined,
  hadAgent: false,
  formerAbsence: '',
  refusal: '',
  awaySince: NOW,
  patienceMs: 10_000,
  isPulling: false,
  pulledAt: undefined,
  intervalMs: 30_000,
  tokenSharedWith: [],
  now: NOW,
  ...over,
})
const had = { hadAgent: true, facts: gone }

describe('who reads a cluster', () => {
  const silent = { isDelivering: true, facts: agent(), hadAgent: true, lastBatchAt: NOW - 90_001 }
  it.each<readonly [what: string, over: Partial<CollectorInputs>, decided: string]>([
    ['pull mode', { mode: 'pull' }, 'hub'],
    ['pull mode, though an agent delivers', { mode: 'pull', isDelivering: true, facts: agent() }, 'hub'],
    ['a hub that receives no agents', { receivesAgents: false }, 'hub: False NoAgent'],
    ['the same without a way', { receivesAgents: false, isReachable: false }, 'none, lost: False NoAgent'],
    ['an agent that delivers', { isDelivering: true, facts: agent(), hadAgent: true }, 'agent: True Delivering'],
    [
      'one of two that claim to be it',
      { isDelivering: true, facts: agent({ reason: 'two agents use the identity: a and b' }), hadAgent: true },
      'agent: True TwoAgents',
    ],
    ['no agent ever', {}, 'hub, deploy: False NoAgent'],
    ['collectors that show one token', { tokenSharedWith: ['east'] }, 'hub, deploy: False TokenShared'],
    ['the same, but an agent of ours', { ...had, tokenSharedWith: ['east'] }, 'wait: False AgentAway'],
    ['no agent ever, without a way', { isReachable: false }, 'none: False NoAgent'],
    [
      'an agent that connects while the hub reads',
      { facts: agent(), hadAgent: true, isPulling: true },
      'hub: Unknown AwaitingFirstBatch',
    ],
    [
      'an agent that connects, an interval after the hub read',
      { facts: agent(), hadAgent: true, isPulling: true, pulledAt: NOW - 30_000 },
      'hub: Unknown AwaitingFirstBatch',
    ],
    [
      'an agent that connects just after the hub read',
      { facts: agent(), hadAgent: true, isPulling: true, pulledAt: NOW - 29_999 },
      'wait: Unknown AwaitingFirstBatch',
    ],
    [
      'an agent that connects after a restart of the hub',
      { facts: agent(), hadAgent: true },
      'wait: Unknown AwaitingFirstBatch',
    ],
    ['a stream just gone', { ...had }, 'wait: False AgentAway'],
    ['gone for less than the grace', { ...had, awaySince: NOW - 9_999 }, 'wait: False AgentAway'],
    ['gone for the grace', { ...had, awaySince: NOW - 10_000 }, 'hub, deploy: False AgentAway'],
    ['gone, and read by the hub already', { ...had, isPulling: true }, 'hub, deploy: False AgentAway'],
    ['an agent of a former life of the hub', { hadAgent: true }, 'wait: False AgentAway'],
    [
      'gone for less than the grace, without a way',
      { ...had, isReachable: false, awaySince: NOW - 9_999 },
      'wait: False AgentAway',
    ],
    [
      'gone for the grace, without a way',
      { ...had, isReachable: false, awaySince: NOW - 10_000 },
      'none, lost: False AgentAway',
    ],
    [
      'back after the grace, without a way, and what it read last is young',
      { facts: agent(), hadAgent: true, isReachable: false, awaySince: NOW - 80_000, lastReadAt: NOW - 90_000 },
      'none, back: Unknown AwaitingFirstBatch',
    ],
    [
      'back after the grace, without a way, and what it read last is old: as it was said to be',
      { facts: agent(), hadAgent: true, isReachable: false, awaySince: NOW - 90_000, lastReadAt: NOW - 90_001 },
      'none: Unknown AwaitingFirstBatch',
    ],
    [
      'away because the hub was, without a way',
      { hadAgent: true, isReachable: false, awaySince: NOW - 69_999, patienceMs: 70_000 },
      'wait: False AgentAway',
    ],
    [
      'away since the hub is there again, for as long as it has, without a way',
      { hadAgent: true, isReachable: false, awaySince: NOW - 70_000, patienceMs: 70_000 },
      'none, lost: False AgentAway',
    ],
    [
      'away because the hub was, and the hub may read it',
      { hadAgent: true, awaySince: NOW - 10_000, patienceMs: 70_000 },
      'hub, deploy: False AgentAway',
    ],
    [
      'gone for the grace of short intervals, without a way',
      { ...had, isReachable: false, intervalMs: 1_000, awaySince: NOW - 9_999 },
      'wait: False AgentAway',
    ],
    [
      'an agent has just come to a cluster that was declared, or lost, long ago, without a way',
      { facts: agent(), hadAgent: true, isReachable: false, awaySince: NOW - 600_000 },
      'none: Unknown AwaitingFirstBatch',
    ],
    [
      'an agent has come and brought nothing for three intervals, without a way',
      {
        facts: agent({ since: NOW - 90_000 }),
        hadAgent: true,
        isReachable: false,
        awaySince: NOW - 600_000,
      },
      'none, lost: Unknown AwaitingFirstBatch',
    ],
    ['no batch for three intervals', { ...silent, lastBatchAt: NOW - 90_000 }, 'agent: True Delivering'],
    ['no batch for longer', silent, 'hub, deploy: False AgentSilent'],
    ['no batch for longer, without a way', { ...silent, isReachable: false }, 'none, lost: False AgentSilent'],
  ])('%s', (_, over, decided) => {
    const { by, deploy, isLost, isBack, condition } = chooseCollector(inputs(over))
    const said = condition ? `: ${condition.status} ${condition.reason}` : ''
    expect(`${by}${deploy ? ', deploy' : ''}${isLost ? ', lost' : ''}${isBack ? ', back' : ''}${said}`).toBe(decided)
  })

  it('says why the agent is away, and what the hub does meanwhile', () => {
    const { condition, absence } = chooseCollector(inputs({ ...had, isPulling: true }))
    expect(absence).toBe('the agent is away: the connection broke')
    expect(condition?.message).toBe(`${absence}; the hub collects by itself meanwhile`)
    const former = { hadAgent: true, formerAbsence: 'the connection broke' }
    const notSince = 'the agent has not connected to this hub since it started'
    expect(chooseCollector(inputs(former)).absence).toBe(`${notSince}, and was away before: the connection broke`)
    expect(chooseCollector(inputs({ ...former, formerAbsence: '' })).absence).toBe(notSince)
    // It cannot come back by itself, however it went.
    for (const over of [had, former])
      expect(chooseCollector(inputs({ ...over, refusal: 'its authority is gone' })).absence).toBe(
        'the agent is away: its authority is gone',
      )
    expect(chooseCollector(inputs({ isReachable: false })).condition?.message).toContain('clusterpulse connect')
  })

  it.each([
    [999, ''],
    [-84_400, '; its clock is 84 s behind, and times are corrected for it'],
    [1_000, '; its clock is 1 s ahead, and times are corrected for it'],
  ])('says of a clock that is %d ms off what is done about it', (clockOffsetMs, said) => {
    const { condition } = chooseCollector(inputs({ isDelivering: true, facts: agent({ clockOffsetMs }) }))
    expect(condition?.message).toBe(`the agent 1.2 is connected and its batches are accepted${said}`)
  })

  it('waits two intervals, at most 10 s, and looks again when they are over', () => {
    expect([graceMs(1000), graceMs(5000), graceMs(30_000)]).toEqual([2000, 10_000, 10_000])
    expect(chooseCollector(inputs({ ...had, awaySince: NOW - 6_000 })).againMs).toBe(4000)
  })

  it('never lets two read at once, never deploys where it has no way, and always looks again', () =>
    fc.assert(
      fc.property(
        fc.record({
          mode: fc.constantFrom('pull' as const, 'push' as const),
          receivesAgents: fc.boolean(),
          isReachable: fc.boolean(),
          isDelivering: fc.boolean(),
          facts: fc.constantFrom(undefined, agent(), gone),
          lastBatchAt: fc.option(fc.integer({ min: 0, max: NOW }), { nil: undefined }),
          lastReadAt: fc.option(fc.integer({ min: 0, max: NOW }), { nil: undefined }),
          hadAgent: fc.boolean(),
          formerAbsence: fc.constantFrom('', 'the connection broke'),
          refusal: fc.constantFrom('', 'its authority is gone'),
          awaySince: fc.option(fc.integer({ min: 0, max: NOW }), { nil: undefined }),
          patienceMs: fc.constantFrom(10_000, 70_000),
          isPulling: fc.boolean(),
          pulledAt: fc.option(fc.integer({ min: 0, max: 2 * NOW }), { nil: undefined }),
          tokenSharedWith: fc.constantFrom([], ['east']),
          intervalMs: fc.integer({ min: 100, max: 3_600_000 }),
        }),
        (given) => {
          const decided = chooseCollector({ ...given, now: NOW })
          if (decided.by === 'agent') expect(given.isDelivering && given.mode === 'push').toBe(true)
          if (decided.by === 'hub' && given.mode === 'push') expect(given.isReachable).toBe(true)
          if (decided.deploy) expect(given.isReachable && given.mode === 'push' && decided.by === 'hub').toBe(true)
          if (decided.isLost || decided.isBack) expect(decided.by).toBe('none')
          expect(decided.isLost && decided.isBack).toBe(false)
          expect(decided.againMs).toBeGreaterThan(0)
          expect(decided.againMs).toBeLessThanOrEqual(given.intervalMs)
        },
      ),
    ))
})
