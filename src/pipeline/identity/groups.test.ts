import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type ApiListener, ApiServer, listenApi } from '#apiserver'
import { createKubeClient, type KubeClient, type Resource, whole } from '#kube'
import { silentLogger } from '#runtime'
import { IdentityUnavailableError, UnsafeConfigurationError } from './errors.ts'
import { TestClock } from './test/clock.ts'
import { anIdentity, aRequest } from './test/requests.ts'
import type { Identity } from './types.ts'

const second = 1000
const minute = 60_000

const definition = (plural: string, kind: string) => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `${plural}.user.openshift.io` },
  spec: {
    group: 'user.openshift.io',
    scope: 'Cluster',
    names: { plural, singular: kind.toLowerCase(), kind, listKind: `${kind}List` },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
      },
    ],
  },
})

// Names of custom resources are narrower than those of OpenShift's own API.
const stored = (name: string): string => name.replace('@', '.at.')

/** Counts what reaches the API, and stops it at will. */
function watched(kube: KubeClient) {
  const asked: string[] = []
  const state = { broken: undefined as Error | undefined }
  const stopped = async <T>(name: string, work: () => Promise<T>): Promise<T> => {
    asked.push(name)
    if (state.broken) throw state.broken
    return await work()
  }
  const client = new Proxy(kube, {
    get(target, name: keyof KubeClient) {
      if (name === 'get')
        return (...args: Parameters<KubeClient['get']>) =>
          stopped(`user ${args[1].name}`, () => target.get(args[0], { name: stored(args[1].name) }, args[2]))
      if (name === 'listAll')
        return (...args: Parameters<KubeClient['listAll']>) => stopped('groups', () => target.listAll(...args))
      const value = target[name]
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
  return { client, asked, state }
}

describe('Users and Groups of OpenShift', () => {
  let api: ApiServer
  let listener: ApiListener
  let kube: KubeClient
  let world: ReturnType<typeof watched>
  let clock: TestClock
  let identity: Identity

  beforeAll(async () => {
    api = await ApiServer.open({ storage: { kind: 'memory' } })
    listener = await listenApi({
      mounts: new Map([['', api]]),
      tokens: [{ token: 'hub', user: 'hub', groups: ['system:masters'] }],
    })
    kube = createKubeClient({
      server: listener.url,
      ca: listener.caPem,
      verifyTls: true,
      credentials: { kind: 'token', token: 'hub' },
    })
    await api.objects.create(definition('users', 'User'))
    await api.objects.create(definition('groups', 'Group'))
  })
  afterAll(async () => {
    await kube[Symbol.asyncDispose]()
    await listener[Symbol.asyncDispose]()
    await api[Symbol.asyncDispose]()
  })
  beforeEach(async () => {
    clock = new TestClock()
    world = watched(kube)
    identity = await anIdentity(
      { proxy: { trustedPeers: ['127.0.0.1'] }, openshiftGroups: { cacheTtlMs: minute } },
      { clock, kube: world.client, logger: silentLogger },
    )
  })
  afterEach(async () => {
    await identity[Symbol.asyncDispose]()
    for (const plural of ['users', 'groups'])
      for (const { metadata } of await kube.listAll(resource(plural))) await remove(plural, metadata.name)
  })

  const resource = (plural: string): Resource =>
    whole({ group: 'user.openshift.io', version: 'v1', plural, kind: '', namespaced: false })
  const remove = (plural: string, name: string) => kube.delete(resource(plural), { name: stored(name) })
  const user = (name: string, groups: readonly string[] | null = null) =>
    api.objects.create({ apiVersion: 'user.openshift.io/v1', kind: 'User', metadata: { name: stored(name) }, groups })
  const group = (name: string, users: readonly string[]) =>
    api.objects.create({ apiVersion: 'user.openshift.io/v1', kind: 'Group', metadata: { name }, users })
  const come = async (name: string, email = '', groups = '') => {
    const headers = ['X-Forwarded-User', name, 'X-Forwarded-Email', email, 'X-Forwarded-Groups', groups]
    return (await identity.identify(aRequest(headers)))!.principal
  }

  it('give the canonical name, and the memberships of every proved name together', async () => {
    await user('ann@example.org', ['from-user'])
    await group('by-name', ['ann'])
    await group('by-mail', ['someone', 'ann@example.org'])
    await group('of-others', ['bob'])
    const ann = await come('ann', 'ann@example.org', 'from-header')
    expect(ann).toMatchObject({ username: 'ann@example.org', email: 'ann@example.org', method: 'trusted-proxy' })
    expect([...ann.groups].sort()).toEqual(['by-mail', 'by-name', 'from-header', 'from-user'])
  })

  describe('as the original takes them', () => {
    beforeEach(async () => {
      await identity[Symbol.asyncDispose]()
      identity = await anIdentity(
        { proxy: { trustedPeers: ['127.0.0.1'] }, openshiftGroups: { cacheTtlMs: minute, asOriginal: true } },
        { clock, kube: world.client, logger: silentLogger },
      )
    })
    const seen = async (...of: Parameters<typeof come>) => {
      const { username, groups } = await come(...of)
      return [username, ...groups]
    }

    it('are those of the User alone, where it lists any', async () => {
      await user('ann@example.org', ['from-user'])
      await group('by-name', ['ann'])
      await group('by-mail', ['ann@example.org'])
      expect(await seen('ann', 'ann@example.org', 'from-header')).toEqual(['ann@example.org', 'from-user'])
    })

    it('are else those of the first name that a Group lists, which is then the name', async () => {
      await group('by-mail', ['ann@example.org'])
      await group('by-mail-too', ['ann@example.org'])
      expect(await seen('ann', 'ann@example.org', 'from-header')).toEqual(['ann@example.org', 'by-mail', 'by-mail-too'])
      clock.pass(minute)
      await group('by-name', ['bob'])
      await group('of-mail', ['bob@example.org'])
      expect(await seen('bob', 'bob@example.org')).toEqual(['bob', 'by-name'])
      // The canonical name goes first, whichever it is.
      clock.pass(minute)
      await user('eve@example.org')
      await group('of-eve', ['eve'])
      await group('of-eve-by-mail', ['eve@example.org'])
      expect(await seen('eve', 'eve@example.org')).toEqual(['eve@example.org', 'of-eve-by-mail'])
    })

    it('are none of somebody whom nothing knows, and an error where nothing answers', async () => {
      expect(await seen('zoe', 'zoe@example.org', 'from-header')).toEqual(['zoe'])
      world.state.broken = new Error('away')
      await expect(come('max', 'max@example.org')).rejects.toThrow(IdentityUnavailableError)
    })
  })

  it('prefer the name over the address where both are Users', async () => {
    await user('ann', ['one'])
    await user('ann@example.org', ['two'])
    expect(await come('ann', 'ann@example.org')).toMatchObject({ username: 'ann', groups: ['one', 'two'] })
  })

  it('do not rename somebody who is in groups but no User', async () => {
    await group('by-mail', ['ann@example.org'])
    expect(await come('ann', 'ann@example.org')).toMatchObject({ username: 'ann', groups: ['by-mail'] })
  })

  it('are not looked up by an address that nobody vouches for', async () => {
    await user('boss@example.org', ['bosses'])
    await group('admins', ['boss@example.org'])
    await using careful = await anIdentity(
      { proxy: { trustedPeers: ['127.0.0.1'], emailVerified: false }, openshiftGroups: {} },
      { clock, kube },
    )
    const found = await careful.identify(aRequest(['X-Forwarded-User', 'eve', 'X-Forwarded-Email', 'boss@example.org']))
    expect(found?.principal).toMatchObject({ username: 'eve', groups: [] })
  })

  it('list service accounts by their name alone', async () => {
    const reader = 'system:serviceaccount:ci:reader'
    await user('ci@example.org', ['people'])
    await group('robots', [reader])
    expect(await come(reader, 'ci@example.org')).toMatchObject({
      username: reader,
      groups: ['robots'],
      isServiceAccount: true,
    })
    expect(world.asked).toEqual(['groups'])
  })

  it('are asked once, however many requests come at once', async () => {
    await user('ann')
    await Promise.all(Array.from({ length: 50 }, () => come('ann', 'ann@example.org')))
    expect(world.asked.sort()).toEqual(['groups', 'user ann', 'user ann@example.org'])
  })

  it('are listed once for everybody', async () => {
    for (const name of ['ann', 'bob', 'cy']) await group(`of-${name}`, [name])
    for (const name of ['ann', 'bob', 'cy']) await come(name)
    expect(world.asked.filter((one) => one === 'groups')).toHaveLength(1)
  })

  it('follow what changes after the lifetime of the cache', async () => {
    await user('ann@example.org')
    await group('old', ['ann@example.org'])
    expect(await come('ann', 'ann@example.org')).toMatchObject({ username: 'ann@example.org', groups: ['old'] })
    // Renamed: there is a User of the short name now.
    await remove('users', 'ann@example.org')
    await remove('groups', 'old')
    await user('ann')
    await group('new', ['ann'])
    expect(await come('ann', 'ann@example.org')).toMatchObject({ groups: ['old'] })
    clock.pass(minute)
    expect(await come('ann', 'ann@example.org')).toMatchObject({ username: 'ann', groups: ['new'] })
  })

  it('follow within ten seconds for somebody who was not known', async () => {
    expect(await come('new')).toMatchObject({ groups: [] })
    await user('new', ['first'])
    await group('second', ['new'])
    clock.pass(10 * second)
    expect((await come('new')).groups).toEqual(['first', 'second'])
  })

  it('are forgotten for who asks, and then read anew', async () => {
    await user('ann@example.org', ['old'])
    const ann = await come('ann', 'ann@example.org')
    await remove('users', 'ann@example.org')
    await user('ann@example.org', ['new'])
    await group('more', ['ann'])
    clock.pass(2 * second)
    expect(identity.forget(ann)).toBe(2)
    expect((await come('ann', 'ann@example.org')).groups).toEqual(['new', 'more'])
  })

  it('cannot be made to be listed in a loop', async () => {
    const ann = await come('ann')
    for (let time = 0; time < 10; time++) {
      identity.forget(ann)
      await come('ann')
    }
    expect(world.asked.filter((one) => one === 'groups')).toHaveLength(1)
  })

  it('stand in for five minutes while the API fails; after that nobody is let in on a guess', async () => {
    await user('ann', ['dev'])
    await group('ops', ['ann'])
    await come('ann')
    world.state.broken = new Error('the API is away')
    clock.pass(minute)
    expect((await come('ann')).groups).toEqual(['dev', 'ops'])
    clock.pass(5 * minute - 1)
    expect((await come('ann')).groups).toEqual(['dev', 'ops'])
    clock.pass(1)
    await expect(come('ann')).rejects.toThrow(IdentityUnavailableError)
    world.state.broken = undefined
    clock.pass(second)
    expect((await come('ann')).groups).toEqual(['dev', 'ops'])
  })

  it('are never taken for empty when they cannot be read, and the failure is not kept', async () => {
    await user('ann', ['dev'])
    world.state.broken = new Error('the API is away')
    await expect(come('ann')).rejects.toThrow(IdentityUnavailableError)
    world.state.broken = undefined
    clock.pass(second)
    expect((await come('ann')).groups).toEqual(['dev'])
  })

  it('are asked at most once a second while the API fails', async () => {
    world.state.broken = new Error('the API is away')
    for (let time = 0; time < 20; time++) await come('ann').catch(() => null)
    expect(world.asked.filter((one) => one === 'user ann')).toHaveLength(1)
    clock.pass(second)
    await come('ann').catch(() => null)
    expect(world.asked.filter((one) => one === 'user ann')).toHaveLength(2)
  })

  it('are not asked about names that are no names of objects', async () => {
    await group('walkers', ['../groups/admins'])
    expect((await come('../groups/admins')).groups).toEqual(['walkers'])
    expect(world.asked).toEqual(['groups'])
  })

  it('need the hub’s Kubernetes', async () => {
    await expect(anIdentity({ openshiftGroups: {} })).rejects.toThrow(UnsafeConfigurationError)
    await expect(anIdentity({ tokenReview: {} })).rejects.toThrow(UnsafeConfigurationError)
  })
})

describe('an API without Users and Groups', () => {
  it('is an error, not a person without groups', async () => {
    const server = createServer((_, response) =>
      response.writeHead(403, { 'content-type': 'application/json' }).end('{}'),
    )
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const kube = createKubeClient({ server: url, verifyTls: true, credentials: { kind: 'none' } })
    await using identity = await anIdentity({ proxy: { trustedPeers: ['127.0.0.1'] }, openshiftGroups: {} }, { kube })
    await expect(identity.identify(aRequest(['X-Forwarded-User', 'ann']))).rejects.toMatchObject({
      code: 'identity_unavailable',
    })
    await kube[Symbol.asyncDispose]()
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
})
