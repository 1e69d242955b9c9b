import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { CERTIFICATE_LIFE_ANNOTATION } from '#kinds'
import { leases as allLeases, type KubeObject } from '#kube'
import { AUTHORITY_LOST, HUB_RESTARTED, HUB_STARTED, HUB_STOPPED, minutes, seconds, TWO_AGENTS } from '#model'
import { silentLogger } from '#runtime'
import { ManualClock } from '../../platform/controller/testing/manual-clock.ts'
import { signOf } from './life-controller.ts'
import { MemberIndex, memberFactsOf } from './member-index.ts'
import { clusterLeases, conditionOf, managedClusters, monitored } from './objects.ts'
import { aNode, anAgent, parts, SomeFleet } from './testing/fleet.ts'
import {
  aHub,
  aMember,
  anEmbeddedApi,
  change,
  exists,
  HUB_NAMESPACE,
  memberOf,
  said,
  type TestApi,
  type TestHub,
  until,
} from './testing/hub.ts'
import { CONDITIONS, LEASE_NAME, SKIP_CLOCK_CHECK, TAINTS } from './words.ts'

let api: TestApi
let hub: TestHub
let clock: ManualClock
let fleet: SomeFleet

beforeEach(async () => {
  api = await anEmbeddedApi()
  clock = new ManualClock(Date.now())
  fleet = new SomeFleet()
})
afterEach(async () => {
  await hub?.stop()
  await api[Symbol.asyncDispose]()
})

const start = async (over: Parameters<typeof aHub>[1] = {}) => {
  hub = await aHub(api, { clock, fleet, random: () => 0, ...over })
}
const available = (name = 'east') => said(api, name, CONDITIONS.available)
const taints = async (name = 'east') => ((await memberOf(api, name)).spec?.taints ?? []).map(({ key }) => key)
const lease = (namespace = 'east') => api.kube.get(clusterLeases, { name: LEASE_NAME, namespace })
/** Time passes in small steps, as what waits for it waits for the API as well. */
const passes = async (ms: number, stepMs = seconds(1)) => {
  for (let left = ms; left > 0; left -= stepMs) {
    await clock.advance(Math.min(stepMs, left))
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
}
/** Until it holds, while time passes. */
const inTime = (check: () => Promise<void>) =>
  until(async () => {
    await clock.advance(100)
    await check()
  })

describe('a member with an agent of Open Cluster Management', () => {
  const renew = (at: number, namespace = 'east') =>
    api.kube.patch(
      clusterLeases,
      { name: LEASE_NAME, namespace },
      { spec: { renewTime: new Date(at).toISOString().replace('Z', '000Z') } },
      { kind: 'merge' },
    )
  /** As its agent writes it. */
  const sayAvailable = async (name = 'east') => {
    const { status } = await memberOf(api, name)
    const now = new Date(clock.now()).toISOString()
    const one = {
      ...{ type: CONDITIONS.available, status: 'True', reason: 'ManagedClusterAvailable', message: '' },
      lastTransitionTime: now,
    }
    const conditions = [...(status?.conditions ?? []).filter(({ type }) => type !== one.type), one]
    await api.kube.patch(
      managedClusters,
      { name },
      { status: { conditions } },
      { kind: 'merge', subresource: 'status' },
    )
  }
  const joined = async (over: Parameters<typeof aHub>[1] = {}) => {
    await start(over)
    await aMember(api, 'east', { transport: 'api' })
    await inTime(async () => expect(await lease()).toBeDefined())
    await sayAvailable()
    await inTime(async () => expect(await taints()).toEqual([]))
  }

  it('is unknown after five leases, unreachable then, and comes back by what its agent says alone', async () => {
    await joined()
    await renew(clock.now())
    await passes(minutes(4), seconds(10))
    expect(await available()).toMatch(/^True/)
    await passes(minutes(2), seconds(10))
    await inTime(async () => expect(await available()).toBe('Unknown ManagedClusterLeaseUpdateStopped'))
    await inTime(async () => expect(await taints()).toEqual([TAINTS.unreachable]))
    await renew(clock.now())
    await passes(seconds(10))
    // The hub never says that it is available.
    expect(await available()).toMatch(/^Unknown/)
    await sayAvailable()
    await inTime(async () => expect(await taints()).toEqual([]))
    // And dies again.
    await passes(minutes(6), seconds(10))
    await inTime(async () => expect(await available()).toMatch(/^Unknown/))
  })

  it('lives on while it renews, though its clock is hours off, and the clock is said to be', async () => {
    await joined()
    for (let i = 0; i < 7; i++) {
      await renew(clock.now() - minutes(120))
      await passes(minutes(1), seconds(10))
    }
    expect(await available()).toMatch(/^True/)
    expect(await said(api, 'east', CONDITIONS.clock)).toBe('False ManagedClusterClockOutOfSync')
    await renew(clock.now())
    await inTime(async () => expect(await said(api, 'east', CONDITIONS.clock)).toBe('True ManagedClusterClockSynced'))
  })

  it('has its clock left alone where it is annotated so', async () => {
    await joined()
    await change(api, 'east', { metadata: { annotations: { [SKIP_CLOCK_CHECK]: 'true' } } })
    await passes(seconds(2))
    await renew(clock.now() + minutes(120))
    await passes(minutes(1), seconds(10))
    expect(await said(api, 'east', CONDITIONS.clock)).toBeUndefined()
  })

  it('is not lost because the hub was away: a new one waits its whole grace', async () => {
    await joined()
    await hub.stop()
    await clock.advance(minutes(30))
    await start()
    await passes(minutes(4), seconds(10))
    expect(await available()).toMatch(/^True/)
    await passes(minutes(2), seconds(10))
    await inTime(async () => expect(await available()).toMatch(/^Unknown/))
  })

  it('has no connection, as nobody reads it for us', async () => {
    await joined()
    expect(await exists(api, monitored, 'east', HUB_NAMESPACE)).toBe(false)
  })
})

describe('a cluster that nobody decided on', () => {
  it('is unreachable as in Open Cluster Management, so that nothing is placed there, and nothing is said of it', async () => {
    await start()
    await aMember(api, 'east', { accepted: false })
    await inTime(async () => expect(await taints()).toEqual([TAINTS.unreachable]))
    expect((await memberOf(api, 'east')).status?.conditions ?? []).toEqual([])
  })
})

describe('a member on our stream', () => {
  const joined = async (name = 'east') => {
    await aMember(api, name, { transport: 'stream' })
    await fleet.tells(name, { agent: anAgent(clock.now()), parts: parts([aNode('a'), aNode('b')]) })
    await inTime(async () => expect(await available(name)).toBe('True ManagedClusterAvailable'))
  }
  const loses = (name = 'east') =>
    fleet.tells(name, { agent: anAgent(clock.now(), { connected: false, reason: 'the stream fell silent' }) })

  it('is joined and available when its agent delivers, with what it has', async () => {
    await start()
    await joined()
    expect(await said(api, 'east', CONDITIONS.joined)).toBe('True ManagedClusterJoined')
    expect(await said(api, 'east', CONDITIONS.clock)).toBe('True ManagedClusterClockSynced')
    expect((await memberOf(api, 'east')).status).toMatchObject({
      version: { kubernetes: 'v1.33.1' },
      capacity: { cpu: '16' },
      allocatable: { cpu: '15' },
    })
    expect(await taints()).toEqual([])
  })

  it('says who else speaks for it, and that nobody does any more', async () => {
    await start()
    await joined()
    expect(await said(api, 'east', CONDITIONS.singleAgent)).toBeUndefined()
    const told = async () => memberFactsOf(await memberOf(api, 'east'), [])
    const reason = 'two agents use the identity of this cluster: a at 10.0.0.1 and b at 10.0.0.2'
    await fleet.tells('east', { agent: anAgent(clock.now(), { reason }) })
    await until(async () => expect(await said(api, 'east', CONDITIONS.singleAgent)).toBe('False TwoAgents'))
    const condition = (await memberOf(api, 'east')).status?.conditions?.find(({ type }) => type === 'SingleAgent')
    expect(condition?.message).toMatch(/a at 10\.0\.0\.1 and b at 10\.0\.0\.2: the newer stream is served/)
    expect(condition?.message).toMatch(/stop one of them; where one is not yours, revoke the member/)
    expect(await available()).toBe('True ManagedClusterAvailable')
    // Who lists members hears of it as well: one of them may be a thief's.
    expect(await told()).toMatchObject({ state: 'available', reason: TWO_AGENTS, message: condition?.message })
    await fleet.tells('east', { agent: anAgent(clock.now()) })
    await until(async () => expect(await said(api, 'east', CONDITIONS.singleAgent)).toBe('True OneAgent'))
    expect(await told()).toMatchObject({ reason: 'ManagedClusterAvailable' })
    await fleet.tells('east', { agent: anAgent(clock.now(), { reason }) })
    await until(async () => expect((await told()).reason).toBe(TWO_AGENTS))
    await loses()
    await inTime(async () => expect(await told()).toMatchObject({ state: 'lost', reason: 'ManagedClusterStreamLost' }))
  })

  it('shows a claim at once when it changes, though amounts wait', async () => {
    await start()
    await joined()
    const claims = async () =>
      (await memberOf(api, 'east')).status?.clusterClaims?.filter(({ name }) => name === 'zone')
    for (const zone of ['a', 'b']) {
      await fleet.tells('east', { parts: parts([aNode('a'), aNode('b')], { claims: { zone } }) })
      await until(async () => expect(await claims()).toEqual([{ name: 'zone', value: zone }]))
    }
  })

  it('is unknown within 15 s, unreachable then, and available again when its agent is back', async () => {
    await start()
    await joined()
    await passes(seconds(90), seconds(10))
    await loses()
    await passes(seconds(3))
    await passes(seconds(11))
    await until(async () => expect(await available()).toBe('Unknown ManagedClusterStreamLost'))
    await inTime(async () => expect(await taints()).toEqual([TAINTS.unreachable]))
    await fleet.tells('east', { agent: anAgent(clock.now(), { epoch: 2 }) })
    await inTime(async () => expect(await available()).toBe('True ManagedClusterAvailable'))
    await inTime(async () => expect(await taints()).toEqual([]))
  })

  describe('whose hub was away', () => {
    const names = ['m0', 'm1', 'm2']
    const tainted = async () => (await Promise.all(names.map(taints))).filter((keys) => keys.length > 0).length
    const allAre = async (wanted: RegExp) => {
      for (const name of names) expect(await available(name)).toMatch(wanted)
    }
    it('is as it was for 70 s after the hub is there again, unknown then, and tainted later', async () => {
      await start()
      for (const name of names) await joined(name)
      await hub.stop()
      const gone = anAgent(clock.now(), { connected: false, reason: HUB_STOPPED })
      for (const name of names) await fleet.tells(name, { agent: gone })
      await clock.advance(minutes(60))
      await start()
      // The ingester says so as it begins.
      const missing = { connected: false, since: clock.now(), reason: HUB_STARTED }
      for (const name of names) await fleet.tells(name, { agent: anAgent(clock.now(), missing) })
      const startedAt = clock.now()
      await passes(seconds(6))
      await inTime(() => allAre(/^True ManagedClusterAgentAwaited/))
      await passes(seconds(30), seconds(5))
      await allAre(/^True/)
      await fleet.tells('m0', { agent: anAgent(clock.now(), { epoch: 2 }) })
      await inTime(async () => expect(await available('m0')).toBe('True ManagedClusterAvailable'))
      await passes(Math.max(0, startedAt + seconds(70) - clock.now()), seconds(5))
      for (const name of ['m1', 'm2'])
        await inTime(async () => expect(await available(name)).toBe('Unknown ManagedClusterStreamLost'))
      expect(await tainted()).toBe(0)
      await inTime(async () => expect(await tainted()).toBe(2))
      expect(clock.now() - startedAt).toBeGreaterThanOrEqual(seconds(90))
      expect(await taints('m0')).toEqual([])
      const { message } =
        (await memberOf(api, 'm1')).status?.conditions?.find(({ type }) => type === CONDITIONS.available) ?? {}
      expect(message).toBe(`The agent of the cluster is away: ${HUB_RESTARTED}.`)
    })

    it('stays unknown where it was before the hub stopped', async () => {
      await start()
      for (const name of names) await joined(name)
      await passes(seconds(90), seconds(10))
      for (const name of names) await loses(name)
      await inTime(() => allAre(/^Unknown/))
      await hub.stop()
      await start()
      await passes(seconds(20))
      await allAre(/^Unknown/)
    })

    it('is so where its process stood still and goes on', async () => {
      let stoodStillMs = 0
      await start({ clock: { now: () => clock.now() + stoodStillMs, sleep: (ms, signal) => clock.sleep(ms, signal) } })
      for (const name of names) await joined(name)
      await passes(seconds(90), seconds(10))
      stoodStillMs = minutes(3)
      // It finds their connections ended, as they have given it up.
      const gone = { connected: false, since: clock.now() + stoodStillMs, reason: 'the connection ended' }
      for (const name of names) await fleet.tells(name, { agent: anAgent(clock.now(), gone) })
      await passes(seconds(9))
      await allAre(/^True/)
      await inTime(() => allAre(/^Unknown ManagedClusterStreamLost/))
      await passes(seconds(50), seconds(5))
      expect(await tainted()).toBe(0)
      await passes(seconds(20), seconds(1))
      await inTime(async () => expect(await tainted()).toBe(3))
    })

    it('is not tainted while the process that serves agents is away, whoever writes taints', async () => {
      await start()
      for (const name of names) await joined(name)
      await passes(seconds(90), seconds(10))
      const gone = anAgent(clock.now(), { connected: false, reason: HUB_STOPPED })
      for (const name of names) await fleet.tells(name, { agent: gone })
      await passes(minutes(3), seconds(10))
      await until(() => allAre(/^Unknown/))
      expect(await tainted()).toBe(0)
      const missing = { connected: false, since: clock.now(), reason: HUB_RESTARTED }
      for (const name of names) await fleet.tells(name, { agent: anAgent(clock.now(), missing) })
      await passes(seconds(80), seconds(10))
      expect(await tainted()).toBe(0)
      await passes(seconds(15), seconds(5))
      await inTime(async () => expect(await tainted()).toBe(3))
    })

    it('is tainted after five heartbeats where the process that serves agents does not come back', async () => {
      await start()
      for (const name of names) await joined(name)
      await passes(seconds(90), seconds(10))
      const stoppedAt = clock.now()
      const gone = anAgent(stoppedAt, { connected: false, reason: HUB_STOPPED })
      for (const name of names) await fleet.tells(name, { agent: gone })
      await passes(minutes(4.5), seconds(10))
      expect(await tainted()).toBe(0)
      await inTime(async () => expect(await tainted()).toBe(3))
      expect(clock.now() - stoppedAt).toBeGreaterThanOrEqual(minutes(5))
    })
  })

  it('is not lost where its agent is back within a moment', async () => {
    await start()
    await joined()
    const before = (await memberOf(api, 'east')).metadata.generation
    await loses()
    await passes(seconds(2))
    await fleet.tells('east', { agent: anAgent(clock.now(), { epoch: 2 }) })
    await passes(seconds(20))
    expect(await available()).toMatch(/^True/)
    expect((await memberOf(api, 'east')).metadata.generation).toBe(before)
  })

  it('is unavailable where its API server does not answer the agent', async () => {
    await start()
    await joined()
    await fleet.tells('east', { parts: parts([], {}, 'unreachable') })
    await inTime(async () => expect(await available()).toBe('False ManagedClusterKubeAPIServerUnavailable'))
    await inTime(async () => expect(await taints()).toEqual([TAINTS.unavailable]))
    // What it had is still what it was.
    expect((await memberOf(api, 'east')).status?.capacity).toMatchObject({ cpu: '16' })
  })

  it('is unavailable where a round failed as a whole, whatever was read before, and not where it may not read', async () => {
    await start()
    await joined()
    const failed = (code: string, at: number, message = 'nothing listens there') => ({
      ...{ health: 'unhealthy' as const, message, checkedAt: at, lastSyncAt: 1 },
      reasons: [{ code, message }],
    })
    await fleet.tells('east', { status: failed('kube_unauthorized', 2) })
    await passes(seconds(2))
    expect(await available()).toMatch(/^True/)
    const before = signOf(fleet.cluster('east'))
    await fleet.tells('east', { status: failed('kube_unreachable', 3) })
    expect(signOf(fleet.cluster('east')), 'it is judged at once').not.toBe(before)
    await inTime(async () => expect(await available()).toBe('False ManagedClusterKubeAPIServerUnavailable'))
    const cause = async () => {
      const { message, lastTransitionTime } = conditionOf(await memberOf(api, 'east'), CONDITIONS.available) ?? {}
      return { message, lastTransitionTime }
    }
    const first = await cause()
    expect(first.message).toMatch(/nothing listens there/)
    await fleet.tells('east', { status: failed('kube_tls', 4, 'its certificate is not signed by a known CA') })
    await inTime(async () =>
      expect(await cause(), 'the same incident, by its present cause').toEqual({
        message: expect.stringMatching(/not signed by a known CA/),
        lastTransitionTime: first.lastTransitionTime,
      }),
    )
    await fleet.tells('east', {
      status: { health: 'healthy', message: '', reasons: [], checkedAt: 5, lastSyncAt: 5 },
    })
    await inTime(async () => expect(await available()).toMatch(/^True/))
  })

  it('has its lease renewed once per heartbeat, whatever it tells meanwhile', async () => {
    await start()
    await joined()
    const seen = new Set<string>()
    const end = new AbortController()
    const watched = (async () => {
      for await (const event of api.kube.watch(allLeases, { namespace: 'east', signal: end.signal }))
        if (event.type !== 'reset' && event.type !== 'deleted') seen.add(String((event.object as Lease).spec.renewTime))
    })()
    for (let s = 0; s < 300; s += 10) {
      await fleet.tells('east', { sequence: s, agent: anAgent(clock.now()) })
      await passes(seconds(10), seconds(5))
    }
    await new Promise((resolve) => setTimeout(resolve, 100))
    end.abort()
    await watched.catch(() => undefined)
    expect(seen.size).toBeGreaterThanOrEqual(3)
    expect(seen.size).toBeLessThanOrEqual(5)
    const times = [...seen].map(Date.parse).sort((a, b) => a - b)
    for (const [index, at] of times.slice(1).entries())
      expect(at - (times[index] ?? 0)).toBeGreaterThanOrEqual(seconds(60))
  })

  it('has its lease renewed all the same where the clock of the hub was an hour ahead, and was set right', async () => {
    let aheadMs = minutes(60)
    await start({ clock: { now: () => clock.now() + aheadMs, sleep: (ms, signal) => clock.sleep(ms, signal) } })
    await joined()
    await inTime(async () => expect((await lease())?.spec?.renewTime).toBeDefined())
    aheadMs = 0
    await fleet.tells('east', { sequence: 1, agent: anAgent(clock.now()) })
    await inTime(async () => {
      const renewedAt = Date.parse((await lease())?.spec?.renewTime ?? '')
      expect(Math.abs(renewedAt - clock.now())).toBeLessThan(minutes(2))
    })
  })

  it('is judged by nobody while what agents told cannot be read', async () => {
    await start()
    await joined()
    fleet.availabilityNow = { state: 'unavailable', since: clock.now(), reason: 'Redis is away' }
    await loses()
    await passes(seconds(30))
    expect(await available()).toMatch(/^True/)
    fleet.availabilityNow = { state: 'available' }
    await inTime(async () => expect(await available()).toMatch(/^Unknown/))
  })

  it('that is accepted anew is available since then, though its agent was there all the time', async () => {
    await start()
    await joined()
    await using index = new MemberIndex({ hub: api.kube, logger: silentLogger, clock })
    index.start()
    for (const hubAcceptsClient of [false, true]) {
      await passes(minutes(1), seconds(10))
      await change(api, 'east', { spec: { hubAcceptsClient } })
      const wanted = hubAcceptsClient ? /^True/ : /^False/
      await inTime(async () => expect(await said(api, 'east', CONDITIONS.accepted)).toMatch(wanted))
    }
    await until(() =>
      expect(index.member('east')).toMatchObject({ state: 'available', reason: 'ManagedClusterAvailable' }),
    )
    const conditions = (await memberOf(api, 'east')).status?.conditions ?? []
    const [accepted = 0, told = 0] = [CONDITIONS.accepted, CONDITIONS.available].map((wanted) =>
      Date.parse(conditions.find(({ type }) => type === wanted)?.lastTransitionTime ?? ''),
    )
    expect(told).toBeLessThan(accepted)
    expect(index.member('east')?.since).toBe(accepted)
  })

  it('whose certificate is of an authority that the hub has lost is said to be locked out, and what helps', async () => {
    let isLost = true
    const listeners = new Set<() => void>()
    const authorities = {
      lacksIssuerOf: ({ issuer }: { readonly issuer?: string }) => isLost && issuer === 'ab'.repeat(8),
      onChange: (listener: () => void) => {
        listeners.add(listener)
        return () => listeners.delete(listener)
      },
    }
    await start({ authorities })
    await using index = new MemberIndex({ hub: api.kube, authorities, logger: silentLogger, clock })
    index.start()
    const life = `2026-01-01T00:00:00.000Z/2036-01-01T00:00:00.000Z/${'ab'.repeat(8)}`
    for (const name of ['east', 'west']) {
      await joined(name)
      await change(api, name, {
        metadata: {
          annotations: { [CERTIFICATE_LIFE_ANNOTATION]: name === 'east' ? life : life.replace('/ab', '/cd') },
        },
      })
    }
    // Of one that speaks to the hub nothing is said.
    await until(() => expect(index.ofLostAuthority()).toEqual(['east']))
    expect(index.member('east')).toMatchObject({ state: 'available', reason: 'ManagedClusterAvailable' })
    for (const name of ['east', 'west']) await loses(name)
    await inTime(async () => expect([await available(), await available('west')].join()).not.toMatch(/True/))
    const words =
      'Its certificate is of an authority that this hub no longer has, so its agent is refused: let the cluster join anew (clusterpulse connect east), or, where that authority was lost and not ended, put it back from the backup (docs/guide/backup.md) and start the hub again.'
    const toldOf = async (name: string) =>
      (await memberOf(api, name)).status?.conditions?.find(({ type }) => type === CONDITIONS.available)?.message
    expect(await toldOf('east')).toBe(words)
    expect(await toldOf('west')).toMatch(/^The agent of the cluster is away/)
    await until(() =>
      expect(index.member('east')).toMatchObject({ state: 'lost', reason: AUTHORITY_LOST, message: words }),
    )
    expect(index.member('west')?.reason).toBe('ManagedClusterStreamLost')
    isLost = false
    for (const listener of listeners) listener()
    expect(index.member('east')?.reason).toBe('ManagedClusterStreamLost')
    // It was put back: what its object said of it is over, too.
    await inTime(async () => expect(await toldOf('east')).toBe('The agent of the cluster is away.'))
    isLost = true
    for (const listener of listeners) listener()
    await inTime(async () => expect(await toldOf('east')).toBe(words))
    expect(await available()).toBe('Unknown ManagedClusterStreamLost')
  })

  it('that is denied is unknown, as its connection goes', async () => {
    await start()
    await joined()
    await change(api, 'east', { spec: { hubAcceptsClient: false } })
    await inTime(async () => expect(await exists(api, monitored, 'east', HUB_NAMESPACE)).toBe(false))
    await fleet.forgets('east')
    await inTime(async () => expect(await available()).toBe('Unknown ManagedClusterStreamLost'))
  })

  it('is tainted at once where the others that went were thrown out', async () => {
    await start()
    const denied = ['d0', 'd1', 'd2', 'd3']
    for (const name of ['dead', ...denied]) await joined(name)
    await passes(seconds(95))
    for (const name of denied) {
      await change(api, name, { spec: { hubAcceptsClient: false } })
      await inTime(async () => expect(await said(api, name, CONDITIONS.accepted)).toMatch(/^False/))
      await fleet.forgets(name)
    }
    for (const name of denied) await inTime(async () => expect(await available(name)).toMatch(/^Unknown/))
    await loses('dead')
    const lostAt = clock.now()
    await inTime(async () => expect(await taints('dead')).toEqual([TAINTS.unreachable]))
    expect(clock.now() - lostAt).toBeLessThan(seconds(40))
  })

  it('is not tainted where many are lost at once, until a minute later', async () => {
    await start()
    const names = Array.from({ length: 8 }, (_, i) => `m${i}`)
    for (const name of names) await joined(name)
    await passes(seconds(90), seconds(10))
    for (const name of names) await loses(name)
    await passes(seconds(16))
    for (const name of names) await until(async () => expect(await available(name)).toMatch(/^Unknown/))
    const tainted = async () => (await Promise.all(names.map(taints))).filter((keys) => keys.length > 0).length
    expect(await tainted()).toBe(0)
    await passes(minutes(1.5), seconds(5))
    await inTime(async () => expect(await tainted()).toBe(names.length))
  })
})

interface Lease extends KubeObject {
  readonly spec: { readonly renewTime?: string }
}
