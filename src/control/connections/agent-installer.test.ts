import { describe, expect, it } from 'vitest'
import { collectors } from '#collect'
import { type KubeClient, KubeError } from '#kube'
import { minutes, systemClock } from '#model'
import { silentLogger } from '#runtime'
import { AGENT_FINALIZER, AgentInstaller, type Wish } from './agent-installer.ts'

const unreachable = () => Promise.reject(new KubeError('unreachable', 'nobody answers'))
// Every attempt asks the member first; this one never answers.
const deaf = { get: unreachable, endpoint: 'https://api:6443' } as unknown as KubeClient

function anInstaller() {
  let attempts = 0
  const installer = new AgentInstaller({
    hub: deaf,
    install: { image: 'i', version: '1', tls: false, address: 'hub:1' },
    credentials: { check: () => undefined, issue: unreachable, revoke: () => Promise.resolve() },
    collectors,
    operatorScanIntervalMs: 1,
    clock: systemClock,
    random: () => 0,
    logger: silentLogger,
  })
  const metadata = { name: 'west', namespace: 'fleet', finalizers: [AGENT_FINALIZER] }
  const settle = async (now: number, over: Partial<Wish> & { version?: string } = {}) => {
    const { version, ...wish } = over
    await installer.settle({
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
  return settle
}

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
      credentials: { check: () => undefined, issue: unreachable, revoke: () => Promise.resolve() },
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
  it('is tried again within a minute, and given as soon as that is allowed', async () => {
    const kept = new Map<string, object>()
    let mayGrant = false
    let refused = 0
    const id = (resource: { plural: string }, key: { name: string }) => `${resource.plural}/${key.name}`
    const kube = {
      endpoint: 'https://api:6443',
      find: () => Promise.resolve(undefined),
      serves: () => Promise.resolve(true),
      list: () => Promise.resolve({ items: [] }),
      listAll: () => Promise.resolve([]),
      get: (resource: { plural: string }, key: { name: string }) => Promise.resolve(kept.get(id(resource, key))),
      patch: (resource: { plural: string }, key: { name: string }, body: object) => {
        if (resource.plural === 'clusterroles' && JSON.stringify(body).includes('widgets') && !mayGrant) {
          refused++
          return Promise.reject(new KubeError('forbidden', 'that would be more than it has'))
        }
        kept.set(id(resource, key), { metadata: {}, ...body })
        return Promise.resolve(body)
      },
    } as unknown as KubeClient
    const metadata = { name: 'west', namespace: 'fleet', uid: 'u', finalizers: [AGENT_FINALIZER] }
    const hub = {
      get: () => Promise.resolve({ metadata }),
      patch: () => Promise.resolve({}),
    } as unknown as KubeClient
    const widget = {
      group: 'x',
      version: 'v1',
      kind: 'Widget',
      plural: 'widgets',
      isPluralDeclared: true,
      watch: false,
    }
    const installer = new AgentInstaller({
      hub,
      install: { image: 'i', version: '1', tls: false, address: 'hub:1' },
      credentials: {
        check: () => undefined,
        issue: () => Promise.resolve({ token: 't', id: 'i', issuedAt: 0 }) as never,
        revoke: () => Promise.resolve(),
      },
      collectors,
      reads: () => [widget],
      operatorScanIntervalMs: 1,
      clock: systemClock,
      random: () => 0,
      logger: silentLogger,
    })
    const settle = (now: number, isMissing: boolean) =>
      installer.settle({
        object: { metadata },
        connection: { apiVersion: '', kind: '', metadata, spec: {} },
        facts: { intervalMs: 30_000 },
        wants: true,
        isMissing,
        condition: undefined,
        absence: '',
        server: 'https://api:6443',
        client: () => Promise.resolve(kube),
        now,
        signal: new AbortController().signal,
      } as unknown as Wish)
    const hasRole = () =>
      JSON.stringify([...kept].filter(([name]) => name.startsWith('clusterroles'))).includes('widgets')
    expect(await settle(0, true)).toMatchObject({ accepted: true })
    expect([refused, hasRole()]).toEqual([1, false])
    for (let now = 10_000; now < 200_000; now += 10_000) await settle(now, false)
    expect(refused).toBeGreaterThanOrEqual(4)
    expect(refused).toBeLessThanOrEqual(6)
    mayGrant = true
    for (let now = 200_000; now <= 260_000; now += 10_000) await settle(now, false)
    expect(hasRole()).toBe(true)
  })
})
