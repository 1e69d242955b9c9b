import { describe, expect, it } from 'vitest'
import { secrets } from '#kube'
import { minutes, StoreUnavailableError, seconds } from '#model'
import { MemoryRegistries } from '#registry'
import { json, registry, type Script, serve } from '../../pipeline/registry/testing/registry-server.ts'
import { registryResource } from './registry-resource.ts'
import {
  aHub,
  anEmbeddedApi,
  apis,
  change,
  condition,
  declare,
  NAMESPACE,
  putSecret,
  statusOf,
  undeclare,
  until,
} from './testing/hub.ts'

const credentials = { username: 'robot', password: 's3cret-of-the-robot' }
const pings = (server: { seen: readonly { path: string }[] }) =>
  server.seen.filter(({ path }) => path === '/v2/').length

describe.each(apis)('a registry that is declared at $title', ({ skip, open }) => {
  it.skipIf(skip)('is probed, and its object says how it is; deleted, it leaves no trace', async () => {
    await using api = await open()
    await using hub = await aHub(api)
    await using server = await serve(registry({ credentials, repositories: ['a', 'b'] }))
    await putSecret(hub, 'robot', credentials)
    await declare(hub, 'harbor', {
      displayName: 'Harbor',
      endpoint: `${server.url}/`,
      insecure: true,
      credentialsRef: { name: 'robot' },
      monitoring: { checkCatalog: true },
      labels: { tier: 'gold' },
    })
    await hub.start()
    await until(async () => expect((await statusOf(hub, 'harbor')).phase).toBe('Connected'))
    const status = await statusOf(hub, 'harbor')
    expect(status).toMatchObject({
      available: true,
      health: 'healthy',
      version: 'registry/2.0',
      repositoryCount: 2,
      features: { docker_v2_api: true, catalog_accessible: true },
      message: expect.stringMatching(/^Registry is healthy \(response time: \d+ms\), 2 repositories$/),
    })
    expect(condition(status, 'Ready')).toMatchObject({ status: 'True', reason: 'Available' })
    expect(condition(status, 'Reachable')).toMatchObject({ status: 'True' })
    expect(condition(status, 'CredentialsValid')).toMatchObject({ status: 'True', reason: 'Accepted' })
    expect(condition(status, 'TLSVerified')).toMatchObject({ status: 'False', reason: 'PlainHttp' })
    expect(hub.store.registry('harbor')).toMatchObject({
      facts: { displayName: 'Harbor', endpoint: server.url, labels: { tier: 'gold' } },
      last: { available: true, repositories: ['a', 'b'] },
    })
    await undeclare(hub, 'harbor')
    await until(() => expect(hub.store.registries()).toEqual([]))
    const told = JSON.stringify([hub.lines, status])
    expect(told).not.toContain(credentials.password)
    expect(told).not.toContain(Buffer.from(`robot:${credentials.password}`).toString('base64'))
  })
})

describe('a registry', () => {
  const withHub = async (script: Script, work: (hub: Awaited<ReturnType<typeof given>>) => Promise<void>) => {
    await using made = await given(script)
    await work(made)
  }
  const given = async (script: Script) => {
    const api = await anEmbeddedApi()
    const hub = await aHub(api)
    const server = await serve(script)
    return Object.assign(hub, {
      server,
      api,
      async [Symbol.asyncDispose]() {
        await hub.stop()
        await server[Symbol.asyncDispose]()
        await api[Symbol.asyncDispose]()
      },
    })
  }

  /** Waits until so many probes have ended and the next one is planned. */
  const probed = async (hub: Awaited<ReturnType<typeof given>>, times: number) => {
    await until(() => {
      expect(pings(hub.server)).toBe(times)
      expect(hub.store.registry('harbor')?.last?.at).toBe(hub.clock.now())
      expect(hub.clock.sleepers).toBe(1) // the pause, and no deadline of a probe
    })
  }

  it('is probed again after its interval, and not before', () =>
    withHub(registry(), async (hub) => {
      await declare(hub, 'harbor', { endpoint: hub.server.url, insecure: true, monitoring: { interval: 60 } })
      await hub.start()
      await probed(hub, 1)
      await hub.clock.advance(seconds(55))
      expect(pings(hub.server)).toBe(1)
      await hub.clock.advance(seconds(5))
      await until(() => expect(pings(hub.server)).toBe(2))
    }))

  it('is probed at once when its object changes, and under the new one', () =>
    withHub(registry(), async (hub) => {
      await declare(hub, 'harbor', { endpoint: 'http://127.0.0.1:1', insecure: true })
      await hub.start()
      await until(async () => expect((await statusOf(hub, 'harbor')).phase).toBe('Error'))
      const status = await statusOf(hub, 'harbor')
      expect(condition(status, 'Reachable')).toMatchObject({ status: 'False', reason: 'Unreachable' })
      expect(status).toMatchObject({ available: false, health: 'unhealthy' })
      expect(status.message).toMatch(/^Registry unavailable: request failed: 127.0.0.1:1 refuses connections/)
      await change(hub, 'harbor', { endpoint: hub.server.url })
      await until(async () => expect((await statusOf(hub, 'harbor')).phase).toBe('Connected'))
    }))

  it('whose probe hangs is left when its object changes', () =>
    withHub(
      () => undefined,
      async (hub) => {
        await using other = await serve(registry())
        await declare(hub, 'harbor', { endpoint: hub.server.url, insecure: true, monitoring: { timeout: 300 } })
        await hub.start()
        await until(() => expect(pings(hub.server)).toBe(1))
        await change(hub, 'harbor', { endpoint: other.url })
        await until(() => expect(hub.store.registry('harbor')?.last?.available).toBe(true))
        expect(hub.store.measurements('harbor')).toHaveLength(1)
      },
    ))

  it('is probed with the credentials of a Secret that changes, at once', () =>
    withHub(registry({ credentials }), async (hub) => {
      await putSecret(hub, 'robot', { ...credentials, password: 'old' })
      await declare(hub, 'harbor', { endpoint: hub.server.url, insecure: true, credentialsRef: { name: 'robot' } })
      await hub.start()
      await until(async () =>
        expect(condition(await statusOf(hub, 'harbor'), 'CredentialsValid')).toMatchObject({
          status: 'False',
          reason: 'Refused',
          message: expect.stringContaining(`Secret ${NAMESPACE}/robot`),
        }),
      )
      expect(await statusOf(hub, 'harbor')).toMatchObject({ available: true, phase: 'Connected', health: 'degraded' })
      await putSecret(hub, 'robot', credentials)
      await until(async () =>
        expect(condition(await statusOf(hub, 'harbor'), 'CredentialsValid')).toMatchObject({ status: 'True' }),
      )
      expect(await statusOf(hub, 'harbor')).toMatchObject({ health: 'healthy' })
    }))

  it.each([
    ['is not there', undefined, 'SecretMissing'],
    ['has no password', { username: 'robot' }, 'SecretIncomplete'],
    ['has an empty user', { username: '', password: 'x' }, 'SecretIncomplete'],
  ])('whose Secret %s is asked anonymously, which is said', (_, secret, reason) =>
    withHub(registry({ credentials }), async (hub) => {
      if (secret) await putSecret(hub, 'robot', secret)
      await declare(hub, 'harbor', { endpoint: hub.server.url, insecure: true, credentialsRef: { name: 'robot' } })
      await hub.start()
      await until(async () =>
        expect(condition(await statusOf(hub, 'harbor'), 'CredentialsValid')).toMatchObject({ status: 'False', reason }),
      )
      await until(() =>
        expect(hub.store.registry('harbor')?.last).toMatchObject({
          available: true,
          warnings: [{ code: 'credentials_missing' }],
        }),
      )
      expect(hub.server.seen.every(({ authorization }) => authorization === undefined)).toBe(true)
      // The API cuts these words out for who is no administrator.
      const [warning] = hub.store.registry('harbor')?.last?.warnings ?? []
      expect(warning?.message.replace(` of Secret ${NAMESPACE}/robot`, '')).not.toContain('robot')
      await putSecret(hub, 'robot', credentials)
      await until(() => expect(hub.store.registry('harbor')?.last?.warnings).toEqual([]))
    }),
  )

  it('whose editor may not read its Secret is sent no credentials at another endpoint, until the Secret allows it', () =>
    withHub(registry({ credentials }), async (hub) => {
      await using stranger = await serve(registry({}))
      const held = async (name: string) =>
        until(async () =>
          expect(condition(await statusOf(hub, name), 'CredentialsHeld')).toMatchObject({
            status: 'True',
            message: expect.stringContaining(`clusterpulse.io/endpoint=${stranger.url},${hub.server.url}`),
          }),
        )
      const credentialsRef = { name: 'robot' }
      await putSecret(hub, 'robot', credentials)
      await declare(hub, 'harbor', { endpoint: hub.server.url, insecure: true, credentialsRef })
      await hub.start()
      await until(async () =>
        expect((await statusOf(hub, 'harbor')).credentials).toMatchObject({ endpoint: hub.server.url }),
      )
      await change(hub, 'harbor', { endpoint: stranger.url })
      await declare(hub, 'evil', { endpoint: stranger.url, insecure: true, credentialsRef })
      for (const name of ['harbor', 'evil']) await held(name)
      await until(() => expect(pings(stranger)).toBeGreaterThan(1))
      expect(stranger.seen.filter(({ authorization }) => authorization !== undefined)).toEqual([])
      const warnings = hub.store.registry('evil')?.last?.warnings
      expect(warnings).toMatchObject([{ code: 'credentials_held' }])
      expect(JSON.stringify(warnings)).not.toContain('robot')
      const annotations = { 'clusterpulse.io/endpoint': stranger.url }
      await hub.kube.patch(
        secrets,
        { name: 'robot', namespace: NAMESPACE },
        { metadata: { annotations } },
        { kind: 'merge' },
      )
      await until(async () => expect(condition(await statusOf(hub, 'harbor'), 'CredentialsHeld')).toBeUndefined())
      expect((await statusOf(hub, 'harbor')).credentials).toMatchObject({ endpoint: stranger.url })
    }))

  it('gets the credentials of a Secret in another namespace', () =>
    withHub(registry({ credentials }), async (hub) => {
      await putSecret(hub, 'robot', credentials, 'elsewhere')
      const credentialsRef = { name: 'robot', namespace: 'elsewhere' }
      await declare(hub, 'harbor', { endpoint: hub.server.url, insecure: true, credentialsRef })
      await hub.start()
      await until(async () =>
        expect(condition(await statusOf(hub, 'harbor'), 'CredentialsValid')).toMatchObject({ status: 'True' }),
      )
      await hub.kube.delete(secrets, { name: 'robot', namespace: 'elsewhere' })
      await hub.clock.advance(minutes(1))
      await until(async () =>
        expect(condition(await statusOf(hub, 'harbor'), 'CredentialsValid')).toMatchObject({ reason: 'SecretMissing' }),
      )
    }))

  it('that stays away is asked less often, and at its interval again once it is back', () => {
    let isBack = false
    return withHub(
      (_, response) => json(response, isBack ? 200 : 503, {}),
      async (hub) => {
        await declare(hub, 'harbor', { endpoint: hub.server.url, insecure: true, monitoring: { interval: 60 } })
        await hub.start()
        await probed(hub, 1)
        // From one to five intervals between two probes.
        for (const [index, wait] of [1, 2, 4, 5, 5].entries()) {
          await hub.clock.advance(minutes(wait) - seconds(1))
          expect(pings(hub.server)).toBe(index + 1)
          await hub.clock.advance(seconds(1))
          await probed(hub, index + 2)
        }
        isBack = true
        await hub.clock.advance(minutes(5))
        await probed(hub, 7)
        await hub.clock.advance(minutes(1))
        await probed(hub, 8)
      },
    )
  })

  it('that goes on as it was is written to its object once a minute at most', () =>
    withHub(registry(), async (hub) => {
      await declare(hub, 'harbor', { endpoint: hub.server.url, insecure: true, monitoring: { interval: 30 } })
      await hub.start()
      const written = new Set<string | undefined>()
      for (let times = 1; times <= 8; times++) {
        await probed(hub, times)
        const { metadata } = (await hub.kube.get(registryResource, { name: 'harbor', namespace: NAMESPACE })) ?? {}
        written.add(metadata?.resourceVersion)
        await hub.clock.advance(seconds(30))
      }
      expect(written.size).toBe(4)
    }))

  it('that was deleted while the hub was away is forgotten when it is back', () =>
    withHub(registry(), async (hub) => {
      await declare(hub, 'harbor', { endpoint: hub.server.url, insecure: true })
      await declare(hub, 'other', { endpoint: hub.server.url, insecure: true })
      await hub.start()
      await until(() => expect(hub.store.registries()).toHaveLength(2))
      await hub.stop()
      await undeclare(hub, 'harbor')
      await hub.start()
      await until(() => expect(hub.store.registries().map(({ facts }) => facts.name)).toEqual(['other']))
    }))

  it('is probed while the store is away, and stored within seconds of its return, without another probe', async () => {
    await using api = await anEmbeddedApi()
    const store = await MemoryRegistries.open()
    const declareFor = store.declare.bind(store)
    let isAway = true
    store.declare = (facts) =>
      isAway ? Promise.reject(new StoreUnavailableError('Redis', 'it is away')) : declareFor(facts)
    await using hub = await aHub(api, store)
    await using server = await serve(registry())
    await declare(hub, 'harbor', { endpoint: server.url, insecure: true })
    await hub.start()
    await until(async () => expect((await statusOf(hub, 'harbor')).phase).toBe('Connected'))
    await hub.clock.advance(seconds(5))
    const probes = pings(server)
    isAway = false
    await hub.clock.advance(seconds(1))
    await until(() => expect(store.registry('harbor')?.last?.available).toBe(true))
    expect(pings(server)).toBe(probes)
    // Its interval goes on as it was.
    await hub.clock.advance(minutes(1))
    await until(() => expect(pings(server)).toBeGreaterThan(probes))
  })
})
