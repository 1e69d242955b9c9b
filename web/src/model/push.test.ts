import { describe, expect, it } from 'vitest'
import { HUB_STARTED } from '../../../src/contract/model/index.ts'
import { aCluster, anAgent } from '../../testing/worlds.ts'
import type { AgentView, ClusterView } from '../contract.ts'
import { needOf } from './cluster.ts'
import { agentTroubles, formatLag, lagOf, pushStatus, troubleOf } from './push.ts'

const now = Date.UTC(2026, 10, 21, 8, 0, 0)
const minute = 60_000
const pushed = (agent: Partial<AgentView> | null, source: ClusterView['source'] = 'push'): ClusterView =>
  aCluster('west', now, { mode: 'push', source, ...(agent && { agent: anAgent(now, agent) }) }).view
const codes = (cluster: ClusterView) => pushStatus(cluster, now).notes.map(({ code }) => code)

describe('how the facts come', () => {
  it('has nothing to say where it is as declared', () => {
    expect(pushStatus(aCluster('west', now).view, now)).toMatchObject({ instead: '', notes: [] })
    expect(pushStatus(pushed({}), now)).toMatchObject({ instead: '', notes: [] })
  })

  it.each([
    ['an agent that never came', pushed(null, 'pull'), 'no agent yet: pulled by the hub'],
    ['an agent that went', pushed({ connected: false }, 'pull'), 'agent away: pulled by the hub'],
    ['an agent that went, and no way to pull', pushed({ connected: false }), 'agent away'],
    ['an agent that is back', pushed({}, 'pull'), 'agent is back: pulled by the hub until it has sent'],
  ])('names %s', (_name, cluster, instead) => expect(pushStatus(cluster, now).instead).toBe(instead))

  it('gives the reason why the agent is away', () => {
    expect(pushStatus(pushed({ connected: false, reason: 'its token was revoked' }, 'pull'), now).text).toContain(
      '(its token was revoked)',
    )
  })

  it('notices an agent where none is declared', () => {
    const { view } = aCluster('west', now, { source: 'push', agent: anAgent(now) })
    expect(pushStatus(view, now).instead).toBe('pushed by an agent')
  })
})

describe('a cluster whose hub was away', () => {
  const startedAt = now - 20_000
  const { view } = aCluster('west', startedAt - 180_000, {
    mode: 'push',
    source: 'push',
    agent: anAgent(now, { connected: false, reason: HUB_STARTED, since: startedAt }),
  })

  it('is waited for, with the age of what is known, and needs nobody', () => {
    expect(pushStatus(view, now)).toMatchObject({
      ...{ instead: 'waiting for its agent', short: 'agent awaited' },
    })
    expect([needOf(view, now), troubleOf(view, now)]).toEqual(['stale', 'healthy'])
    expect(agentTroubles(view, now)).toEqual([])
  })

  it('needs somebody once its agent had its time to come back', () => {
    const later = startedAt + 70_000
    expect(troubleOf(view, later)).toBe('stale')
    expect(agentTroubles(view, later)).toMatchObject([{ code: 'away' }])
  })

  it('needs nobody while an agent that has just come is about to deliver', () => {
    const since = now + 60_000
    const back = { ...view, agent: anAgent(now, { since }) }
    expect([since + 9_999, since + 10_000].map((at) => troubleOf(back, at))).toEqual(['healthy', 'stale'])
  })

  it('is as ill as it was before', () => expect(troubleOf({ ...view, health: 'unhealthy' }, now)).toBe('unhealthy'))
})

describe('what is wrong with it', () => {
  it('catching up: how much, and since when', () => {
    const [note] = pushStatus(pushed({ bufferedBatches: 120, oldestBufferedAt: now - 130 * minute }), now).notes
    expect(note).toMatchObject({
      word: 'catching up: 120 batches, from 2 h ago',
      short: 'catching up: 120',
      isWarning: false,
    })
  })

  it('a batch on its way is no backlog; an old one is', () => {
    expect(codes(pushed({ bufferedBatches: 1, oldestBufferedAt: now - 3000 }))).toEqual([])
    expect(codes(pushed({ bufferedBatches: 1, oldestBufferedAt: now - 10 * minute }))).toEqual(['catching-up'])
  })

  it.each([
    ['lost batches', { lostBatches: 6 }, 'lost', '6 batches lost'],
    ['a clock that runs ahead', { clockOffsetMs: 5 * minute }, 'clock', 'clock 5 min ahead'],
    ['a clock that is behind', { clockOffsetMs: -3000 }, 'clock', 'clock 3.0 s behind'],
    ['plaintext', { tls: false }, 'plaintext', 'not encrypted'],
    ['a collector without a buffer', { protocol: 'original' }, 'original', 'no buffer'],
  ] as const)('%s', (_name, agent, code, word) => {
    expect(pushStatus(pushed(agent), now).notes).toMatchObject([{ code, word }])
  })

  it('silence, where neither heartbeat nor batch came', () => {
    const old = aCluster('west', now, {
      mode: 'push',
      ageMs: 5 * minute,
      agent: anAgent(now, { heartbeatAt: now - 6 * minute }),
    }).view
    expect(pushStatus(old, now).notes).toMatchObject([{ code: 'silent', word: 'silent for 4 min' }])
    expect(codes(pushed({ heartbeatAt: now - 6 * minute }))).toEqual([])
  })

  it('puts what is lost before what is in the clear, and says nothing of the stream of an agent that is away', () => {
    expect(codes(pushed({ lostBatches: 1, tls: false }))).toEqual(['lost', 'plaintext'])
    expect(codes(pushed({ connected: false, heartbeatAt: now - 5 * minute, tls: false }, 'pull'))).toEqual([])
  })
})

describe('lag', () => {
  it('is the way of the newest facts from reading to arrival', () => {
    expect(lagOf(pushed({}))).toBe(200)
    expect(lagOf(aCluster('new', now, { blank: true }).view)).toBeNull()
  })
  it.each([
    [200, '0.2 s'],
    [45_000, '45 s'],
  ])('%d ms', (ms, text) => expect(formatLag(ms)).toBe(text))
})

describe('what a person should know of an agent', () => {
  const told = (cluster: ClusterView, lost?: number) => agentTroubles(cluster, now, lost).map(({ code }) => code)

  it('is nothing where it pushes, and nothing where none is declared', () => {
    expect(told(pushed({}))).toEqual([])
    expect(told(aCluster('west', now).view)).toEqual([])
  })

  it.each([
    ['away, though the hub reads the cluster', pushed({ connected: false }, 'pull'), ['away']],
    ['never there', pushed(null, 'pull'), ['away']],
    ['a backlog of two hours', pushed({ bufferedBatches: 20, oldestBufferedAt: now - 120 * minute }), ['catching-up']],
    ['a backlog of many batches', pushed({ bufferedBatches: 100, oldestBufferedAt: now - minute }), ['catching-up']],
    ['a backlog of minutes', pushed({ bufferedBatches: 10, oldestBufferedAt: now - 5 * minute }), []],
    ['plaintext', pushed({ tls: false }), ['plaintext']],
    [
      'two agents, of which one may be a thief',
      pushed({ reason: 'two agents: a and b', tls: false }),
      ['two-agents', 'plaintext'],
    ],
    ['losses of long ago', pushed({ lostBatches: 6 }), []],
    ['a clock that is off', pushed({ clockOffsetMs: 60_000 }), []],
  ])('%s', (_name, cluster, codes) => expect(told(cluster)).toEqual(codes))

  it('says of two agents what to do before who they are, and beside the stream both', () => {
    const view = pushed({ reason: 'two agents: a and b' })
    expect(agentTroubles(view, now)[0]?.text).toMatch(/^stop one of its two agents; .* revoke .*: two agents: a and b$/)
    expect(pushStatus(view, now).notes[0]?.text).toMatch(/^two agents: a and b: .*stop one of them/)
  })

  it('tells the worst first, in its own words', () => {
    const troubles = agentTroubles(pushed({ connected: false, lostBatches: 9, reason: 'revoked' }, 'pull'), now, 6)
    expect(troubles.map(({ text }) => text)).toEqual([
      'The agent is away (revoked); the hub reads the cluster itself',
      '6 batches lost within the last hour: the charts show where',
    ])
  })

  it('notices an open stream that says nothing', () => {
    const view = pushed({ heartbeatAt: now - 5 * minute })
    const old = { observedAt: now - 5 * minute, receivedAt: now - 5 * minute, source: 'push' as const }
    const parts = Object.fromEntries(
      Object.entries(view.parts).map(([type, part]) => [type, { ...part, freshness: part.freshness && old }]),
    )
    expect(told({ ...view, parts })).toEqual(['silent'])
  })
})
