import { describe, expect, it } from 'vitest'
import { collectors } from '#collect'
import { type KubeClient, KubeError } from '#kube'
import { minutes, parseClusterName, systemClock } from '#model'
import { silentLogger } from '#runtime'
import { AGENT_FINALIZER, AgentInstaller, type Installed, type Wish } from './agent-installer.ts'
import type { RoleGap } from './agent-role.ts'

const unreachable = () => Promise.reject(new KubeError('unreachable', 'nobody answers'))
// Every attempt asks the member first; this one never answers.
const deaf = { get: unreachable, endpoint: 'https://api:6443' } as unknown as KubeClient

function anInstaller(readOnly = false) {
  let attempts = 0
  let said: Installed = {}
  const installer = new AgentInstaller({
    hub: deaf,
    install: { image: 'i', version: '1', tls: false, address: 'hub:1' },
    credentials: { check: () => undefined, issue: unreachable, revoke: () => Promise.resolve(false) },
    collectors,
    operatorScanIntervalMs: 1,
    ...(readOnly && { readOnly }),
    clock: systemClock,
    random: () => 0,
    logger: silentLogger,
  })
  const metadata = { name: 'west', namespace: 'fleet', finalizers: [AGENT_FINALIZER] }
  const settle = async (now: number, over: Partial<Wish> & { version?: string } = {}) => {
    const { version, ...wish } = over
    said = await installer.settle({
      object: { metadata },
      connection: { apiVersion: '', kind: '', metadata, spec: version ? { collectorVersion: version } : {} },
      facts: {
        displayName: '',
        endpoint: '',
        labels: {},
        mode: 'push',
        intervalMs: 30_000,
        timeoutMs: 1000,
        insecureSkipTlsVerify: false,
        credentialsRef: { name: '', namespace: '' },
      },
      wants: true,
      isMissing: true,
      isRefused: false,
      condition: undefined,
      absence: 'no agent has connected',
      server: 'https://api:6443',
      client: () => {
        attempts++
        return Promise.resolve(deaf)
      },
      now,
      signal: new AbortController().signal,
      ...wish,
    })
    return attempts
  }
  return Object.assign(settle, { said: () => said })
}

describe('a hub that may only read its members', () => {
  it('asks nothing of a member for its agent, wanted or not, and says why', async () => {
    const settle = anInstaller(true)
    expect(await settle(0)).toBe(0)
    expect(settle.said().condition).toMatchObject({ status: 'False', reason: 'MembersReadOnly' })
    expect(settle.said().condition?.message).toMatch(/READ_ONLY_MEMBERS.*collects by itself/)
    expect(await settle(minutes(60), { wants: false, isMissing: false })).toBe(0)
    expect(settle.said().left).toMatch(/stays on the member/)
  })
})

describe('attempts at a deployment', () => {
  it('come each round at first, then ever more rarely, at least every ten minutes', async () => {
    const settle = anInstaller()
    const at: number[] = []
    for (let now = 0, made = 0; now <= minutes(60); now += 10_000) {
      if ((await settle(now)) > made) at.push(now / 1000)
      made = at.length
    }
    expect(at.slice(0, 6)).toEqual([0, 30, 90, 210, 450, 930])
    expect(at.slice(6).map((time, n) => time - (at[n + 5] ?? 0))).toEqual([600, 600, 600, 600])
  })

  it('come at once when something else is wanted', async () => {
    const settle = anInstaller()
    expect(await settle(0)).toBe(1)
    expect(await settle(1)).toBe(1)
    expect(await settle(2, { version: 'v9' })).toBe(2)
    expect(await settle(3, { version: 'v9' })).toBe(2)
    expect(await settle(4, { version: 'v9', server: 'https://elsewhere:6443' })).toBe(3)
  })

  it('are rare while the agent delivers: for drift, and not all at once when the hub comes up', async () => {
    const settle = anInstaller()
    const delivering = { isMissing: false, absence: '' }
    expect(await settle(0, delivering)).toBe(0)
    expect(await settle(minutes(10) - 1, delivering)).toBe(0)
    expect(await settle(minutes(10), delivering)).toBe(1)
    expect(await settle(minutes(10) + 1, { ...delivering, version: 'v9' })).toBe(2)
  })
})

describe('a finalizer that cannot be taken off', () => {
  it('is said and tried again ever more rarely, and ends no round that was read', async () => {
    const patches: number[] = []
    let now = 0
    const metadata = { name: 'west', namespace: 'fleet', uid: 'u', finalizers: [AGENT_FINALIZER] }
    const hub = {
      get: () => Promise.resolve({ metadata }),
      patch: () => {
        patches.push(now / 1000)
        return Promise.reject(new KubeError('forbidden', 'may not patch'))
      },
    } as unknown as KubeClient
    const gone = () => Promise.reject(new KubeError('not_found', 'is gone'))
    const member = { get: () => Promise.resolve(undefined), delete: gone, endpoint: '' } as unknown as KubeClient
    const installer = new AgentInstaller({
      hub,
      credentials: { check: () => undefined, issue: unreachable, revoke: () => Promise.resolve(false) },
      collectors,
      operatorScanIntervalMs: 1,
      clock: systemClock,
      random: () => 0,
      logger: silentLogger,
    })
    for (; now < 600_000; now += 1000) {
      const wish = { object: { metadata }, wants: false, client: () => Promise.resolve(member), now }
      const { left } = await installer.settle({ ...wish, signal: new AbortController().signal } as unknown as Wish)
      expect(left).toContain(`the finalizer ${AGENT_FINALIZER} could not be taken off the connection: may not patch`)
    }
    expect(patches.slice(0, 4)).toEqual([0, 60, 180, 420])
  })
})

describe('a role that the hub may not grant', () => {
  const base = { version: 'v1', isPluralDeclared: true, watch: false }
  const reads = [
    { ...base, group: 'x', kind: 'Widget', plural: 'widgets' },
    { ...base, group: '', kind: 'ConfigMap', plural: 'configmaps' },
  ]
  // As kube-apiserver 1.30 says it.
  const refusal = (rule: string) =>
    `clusterroles.rbac.authorization.k8s.io "clusterpulse-collector" is forbidden: user "reader" (groups=["a" "b"]) is attempting to grant RBAC permissions not currently held:\n${rule}`

  function aMember() {
    const kept = new Map<string, { readonly metadata: object; readonly rules?: unknown }>()
    const member = { mayGrant: false, refused: 0 }
    const id = (resource: { plural: string }, key: { name: string }) => `${resource.plural}/${key.name}`
    const kube = {
      endpoint: 'https://api:6443',
      find: () => Promise.resolve(undefined),
      serves: () => Promise.resolve(true),
      list: () => Promise.resolve({ items: [] }),
      listAll: () => Promise.resolve([]),
      get: (resource: { plural: string }, key: { name: string }) => Promise.resolve(kept.get(id(resource, key))),
      patch: (resource: { plural: string }, key: { name: string }, body: object) => {
        if (resource.plural === 'clusterroles' && JSON.stringify(body).includes('widgets') && !member.mayGrant) {
          member.refused++
          const apiMessage = refusal('{APIGroups:["x"], Resources:["widgets"], Verbs:["get" "list"]}')
          return Promise.reject(new KubeError('forbidden', 'may not (403)', { apiMessage }))
        }
        kept.set(id(resource, key), { metadata: {}, ...body })
        return Promise.resolve(body)
      },
      delete: (resource: { plural: string }, key: { name: string }) =>
        Promise.resolve(void kept.delete(id(resource, key))),
    } as unknown as KubeClient
    const rules = () => JSON.stringify(kept.get('clusterroles/clusterpulse-collector')?.rules)
    return Object.assign(member, { kube, rules })
  }

  function aLife({ kube }: ReturnType<typeof aMember>) {
    const metadata = { name: 'west', namespace: 'fleet', uid: 'u', finalizers: [AGENT_FINALIZER] }
    const gaps: (readonly RoleGap[])[] = []
    const installer = new AgentInstaller({
      hub: { get: () => Promise.resolve({ metadata }), patch: () => Promise.resolve({}) } as unknown as KubeClient,
      install: { image: 'i', version: '1', tls: false, address: 'hub:1' },
      credentials: {
        check: () => undefined,
        issue: () => Promise.resolve({ token: 't', id: 'i', issuedAt: 0 }) as never,
        revoke: () => Promise.resolve(false),
      },
      collectors,
      reads: () => reads,
      onRoleGaps: (cluster, said) => {
        expect(cluster).toBe('west')
        gaps.push(said)
      },
      operatorScanIntervalMs: 1,
      clock: systemClock,
      random: () => 0,
      logger: silentLogger,
    })
    const settle = (now: number, over: Partial<Wish> = {}) =>
      installer.settle({
        object: { metadata },
        connection: { apiVersion: '', kind: '', metadata, spec: {} },
        facts: { intervalMs: 300_000 },
        wants: true,
        isMissing: false,
        isRefused: false,
        condition: undefined,
        absence: '',
        server: 'https://api:6443',
        client: () => Promise.resolve(kube),
        now,
        signal: new AbortController().signal,
        ...over,
      } as unknown as Wish)
    return { settle, gaps, installer }
  }

  it('is told with the right that lacks, and the rest is given all the same', async () => {
    const member = aMember()
    const { settle, gaps } = aLife(member)
    expect(await settle(0, { isMissing: true })).toMatchObject({ accepted: true })
    expect(gaps).toEqual([[expect.objectContaining({ group: 'x', kind: 'Widget' })]])
    expect(gaps[0]?.[0]?.message).toBe(
      'the agent may not read this, and the hub may not give it "get, list widgets.x": reader does not hold that right there itself; grant "get, list widgets.x" to it on the member; the hub tries again within a minute',
    )
    expect(member.rules()).toContain('configmaps')
    expect(member.rules()).not.toContain('widgets')
  })

  it.each([30_000, 40_000, 300_000])(
    'is tried again within a minute where a connection is looked at every %d ms, and is no gap once it is allowed',
    async (intervalMs) => {
      const member = aMember()
      const { settle, gaps } = aLife(member)
      await settle(0, { isMissing: true })
      const triedAt = [0]
      let now = 0
      const next = async () => {
        const { againMs = intervalMs } = await settle(now)
        if (member.refused > triedAt.length) triedAt.push(now)
        now += Math.min(againMs, intervalMs)
      }
      while (now < 300_000) await next()
      const pauses = triedAt.slice(1).map((at, i) => at - (triedAt[i] ?? 0))
      expect(pauses.length).toBeGreaterThanOrEqual(5)
      expect(Math.max(...pauses)).toBeLessThan(60_000)
      expect(Math.min(...pauses)).toBeGreaterThan(30_000)
      member.mayGrant = true
      for (const until = now + 60_000; now < until; ) await next()
      expect(member.rules()).toContain('widgets')
      expect(gaps.at(-1)).toEqual([])
      expect((await settle(now)).againMs).toBeUndefined()
    },
  )

  it('is found again by a hub that starts while the agent is refused, and left alone where it is not', async () => {
    const member = aMember()
    await aLife(member).settle(0, { isMissing: true })
    member.refused = 0
    const { settle, gaps } = aLife(member)
    await settle(1000)
    expect([member.refused, gaps]).toEqual([0, []])
    expect((await settle(2000, { isRefused: true })).againMs).toBeLessThanOrEqual(60_000)
    expect([member.refused, gaps[0]?.[0]?.kind]).toEqual([1, 'Widget'])
  })

  it('is no matter any more where the agent is to go, or the connection went', async () => {
    const member = aMember()
    for (const end of ['pull', 'deleted']) {
      const { settle, gaps, installer } = aLife(member)
      await settle(0, { isMissing: true })
      expect(gaps.at(-1)).toHaveLength(1)
      if (end === 'pull') await settle(1, { wants: false })
      else await installer.forget(parseClusterName('west'), new AbortController().signal)
      expect(gaps.at(-1)).toEqual([])
    }
  })
})
