import { randomUUID } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { type ApiListener, ApiServer, generateServingCertificate, listenApi, type ServingCertificate } from '#apiserver'
import { createKubeClient, type KubeClient, type KubeObject, type Resource } from '#kube'
import { silentLogger } from '#runtime'
import { noRealApiServer, startRealApiServer } from '../../../test/real-apiserver.ts'
import { Controller, onReferredChange, onSpecChange } from './controller.ts'
import { Informer, type ObjectChange } from './informer.ts'
import { LeaderElection } from './leader-election.ts'
import { Manager } from './manager.ts'
import { done, type Reconciler } from './types.ts'

const settings: Resource = { group: '', version: 'v1', plural: 'configmaps', kind: 'ConfigMap', namespaced: true }
const secrets: Resource = { group: '', version: 'v1', plural: 'secrets', kind: 'Secret', namespaced: true }
const NAMESPACE = 'default'
const aSetting = (name: string, data: object = {}): KubeObject => ({ metadata: { name, namespace: NAMESPACE }, data })

let server: ApiServer
let listener: ApiListener
let kube: KubeClient
let tls: ServingCertificate
const token = randomUUID()
const listen = (port = 0) =>
  listenApi({
    port,
    tls,
    tokens: [{ token, user: 'hub', groups: ['system:masters'] }],
    mounts: new Map([['', server]]),
  })
const newClient = () =>
  createKubeClient(
    { server: listener.url, ca: listener.caPem, verifyTls: true, credentials: { kind: 'token', token } },
    { recoveryMs: 2000 },
  )

beforeEach(async () => {
  server = await ApiServer.open({ storage: { kind: 'memory' } })
  tls ??= await generateServingCertificate({ hosts: ['127.0.0.1'] })
  listener = await listen()
  kube = newClient()
})
afterEach(async () => {
  await kube[Symbol.asyncDispose]()
  await listener[Symbol.asyncDispose]()
  await server[Symbol.asyncDispose]()
})

const until = (check: () => void | Promise<void>) => vi.waitFor(check, { timeout: 80_000, interval: 10 })
const anInformer = (resource = settings) => new Informer({ kube, resource, namespace: NAMESPACE, logger: silentLogger })

describe('Informer', () => {
  it('knows what was there before and follows what comes, changes and goes', async () => {
    await kube.create(settings, aSetting('old'))
    await using informer = anInformer()
    const seen: string[] = []
    informer.onChange(({ kind, key }) => seen.push(`${kind} ${key.name}`))
    informer.start()
    await informer.synced()
    expect(informer.get({ name: 'old', namespace: NAMESPACE })).toBeDefined()
    await kube.create(settings, aSetting('new'))
    await kube.patch(settings, { name: 'new', namespace: NAMESPACE }, { data: { a: '1' } }, { kind: 'merge' })
    await kube.delete(settings, { name: 'old', namespace: NAMESPACE })
    await until(() => expect(seen).toEqual(['added old', 'added new', 'changed new', 'deleted old']))
    expect(informer.list().map(({ metadata }) => metadata.name)).toEqual(['new'])
  })

  it('tells the differences after a gap as if they had just happened', async () => {
    const events: ((events: readonly object[]) => void)[] = []
    const scripted = {
      async *watch(_: unknown, { signal }: { signal: AbortSignal }) {
        while (!signal.aborted) {
          const batch = await new Promise<readonly object[]>((resolve) => {
            events.push(resolve)
            signal.addEventListener('abort', () => resolve([]), { once: true })
          })
          yield* batch
        }
      },
    } as unknown as KubeClient
    const versioned = (name: string, resourceVersion: string, uid = name) => ({
      metadata: { name, uid, resourceVersion },
    })
    const tell = async (...list: object[]) => {
      await until(() => expect(events).toHaveLength(1))
      events.shift()?.(list)
    }
    await using informer = new Informer({ kube: scripted, resource: settings, logger: silentLogger })
    const seen: string[] = []
    informer.onChange((change: ObjectChange<KubeObject>) => seen.push(`${change.kind} ${change.key.name}`))
    informer.start()
    await tell({ type: 'reset', items: [versioned('a', '1'), versioned('b', '1'), versioned('c', '1')] })
    await informer.synced()
    seen.length = 0
    await tell({ type: 'reset', items: [versioned('b', '1'), versioned('c', '2'), versioned('d', '1')] })
    await until(() => expect(seen).toEqual(['deleted a', 'changed c', 'added d']))
    seen.length = 0
    await tell({ type: 'modified', object: versioned('b', '9', 'another') })
    await until(() => expect(seen).toEqual(['deleted b', 'added b']))
  })

  it('neither holds nor tells of objects that are not wanted, and lets go of one that is wanted no more', async () => {
    const isOurs = (object: KubeObject) => object.metadata.name.startsWith('our') && object.data !== undefined
    const wanted = { data: { wanted: 'yes' } }
    for (const name of ['our-old', 'their-old']) await kube.create(settings, { ...aSetting(name), ...wanted })
    await using informer = new Informer({
      ...{ kube, resource: settings, namespace: NAMESPACE, logger: silentLogger },
      where: isOurs,
    })
    const seen: string[] = []
    informer.onChange(({ kind, key }) => seen.push(`${kind} ${key.name}`))
    informer.start()
    await informer.synced()
    expect(informer.list().map(({ metadata }) => metadata.name)).toEqual(['our-old'])
    const theirs = { name: 'their-old', namespace: NAMESPACE }
    await kube.create(settings, { ...aSetting('their-new'), ...wanted })
    await kube.patch(settings, theirs, { data: { a: '1' } }, { kind: 'merge' })
    await kube.delete(settings, theirs)
    await kube.create(settings, { ...aSetting('our-new'), ...wanted })
    await kube.patch(settings, { name: 'our-old', namespace: NAMESPACE }, { data: null }, { kind: 'merge' })
    await kube.delete(settings, { name: 'our-old', namespace: NAMESPACE })
    await kube.create(settings, { ...aSetting('our-last'), ...wanted })
    await until(() => expect(seen).toContain('added our-last'))
    expect(seen).toEqual(['added our-old', 'added our-new', 'deleted our-old', 'added our-last'])
    expect(informer.get(theirs)).toBeUndefined()
  })

  it('knows what we wrote before the watch brings it, and takes nothing that the watch has passed', async () => {
    const events: object[] = []
    let wake: () => void = () => undefined
    const tell = (...more: object[]) => {
      events.push(...more)
      wake()
    }
    const scripted = {
      async *watch(_: unknown, { signal }: { signal: AbortSignal }) {
        signal.addEventListener('abort', () => wake(), { once: true })
        while (!signal.aborted) {
          yield* events.splice(0)
          if (events.length > 0) continue
          await new Promise<void>((resolve) => {
            wake = resolve
          })
        }
      },
    } as unknown as KubeClient
    const version = (resourceVersion: string, uid = 'u', name = 'a') => ({ metadata: { name, uid, resourceVersion } })
    await using informer = new Informer({ kube: scripted, resource: settings, logger: silentLogger })
    const seen: string[] = []
    const held = () => informer.get({ name: 'a' })?.metadata.resourceVersion
    informer.onChange((change) => seen.push(`${change.kind} ${change.key.name}`))
    informer.start()
    informer.wrote(version('9'))
    expect(held()).toBeUndefined() // nobody knows yet what else there is
    tell({ type: 'reset', items: [version('9')], resourceVersion: '9' })
    await until(() => expect(seen).toEqual(['added a']))
    informer.wrote(version('11'))
    expect([held(), seen.splice(0)]).toEqual(['11', ['added a', 'changed a']])
    tell({ type: 'modified', object: version('10') }, { type: 'modified', object: version('11') })
    tell({ type: 'added', object: version('12', 'other', 'b') })
    await until(() => expect(seen).toEqual(['added b']))
    expect(held()).toBe('11')
    // Deleted and made anew by us: the end of the former is told once.
    informer.wrote(version('14', 'new'))
    tell({ type: 'deleted', object: version('13') }, { type: 'added', object: version('14', 'new') })
    tell({ type: 'deleted', object: version('15', 'other', 'b') })
    await until(() => expect(seen).toEqual(['added b', 'deleted a', 'added a', 'deleted b']))
    informer.wrote(version('12', 'other', 'b')) // the answer came after the end
    expect(informer.get({ name: 'b' })).toBeUndefined()
    tell({ type: 'reset', items: [version('3')], resourceVersion: '3' }) // a store that went back
    await until(() => expect(held()).toBe('3'))
  })

  it('does not wait for ever for a first list that never comes', async () => {
    const informer = anInformer()
    const end = new AbortController()
    const waiting = informer.synced(end.signal)
    end.abort(new Error('enough'))
    await expect(waiting).rejects.toThrow('enough')
    await informer.stop()
    await expect(informer.synced()).rejects.toThrow('stopped')
  })
})

function aReconciler(): Reconciler & { readonly seen: string[] } {
  const seen: string[] = []
  return {
    name: 'test',
    seen,
    reconcile: ({ name }) => {
      seen.push(name)
      return Promise.resolve(done)
    },
  }
}

describe('Controller and Manager', () => {
  it('says what it cannot follow and what fails, from when on, until both are well again', async () => {
    await kube.create(settings, aSetting('a'))
    let isRefused = true
    const controller = new Controller({
      reconciler: {
        name: 'test',
        reconcile: () => (isRefused ? Promise.reject(new Error('not yours')) : Promise.resolve(done)),
      },
      triggers: [onSpecChange(anInformer())],
      concurrency: 1,
      logger: silentLogger,
    })
    const manager = new Manager({ controllers: [controller], logger: silentLogger })
    const began = Date.now()
    await manager.start()
    await until(() => expect(manager.faults()).toEqual(['test default/a: not yours']))
    isRefused = false
    await until(() => expect(manager.faults()).toEqual([]))
    const { port } = new URL(listener.url)
    await listener[Symbol.asyncDispose]()
    await until(() => expect(manager.faults()).toHaveLength(1))
    const [, since = '', why] =
      /^configmaps cannot be followed since (\S+Z): (.+)$/.exec(manager.faults()[0] ?? '') ?? []
    expect(Date.parse(since)).toBeGreaterThanOrEqual(began)
    expect(why).toContain('127.0.0.1')
    listener = await listen(Number(port))
    await until(() => expect(manager.faults()).toEqual([])) // nothing changed meanwhile: that it answers is enough
    await manager.stop()
  })

  it('looks at every object once at the start, then at those whose spec changes, come or go', async () => {
    const crd = {
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: 'things.example.com' },
      spec: {
        group: 'example.com',
        scope: 'Namespaced',
        names: { kind: 'Thing', plural: 'things', singular: 'thing', listKind: 'ThingList' },
        versions: [
          {
            name: 'v1',
            served: true,
            storage: true,
            subresources: { status: {} },
            schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
          },
        ],
      },
    }
    await server.objects.create(crd)
    const things: Resource = { group: 'example.com', version: 'v1', plural: 'things', kind: 'Thing', namespaced: true }
    const key = { name: 'a', namespace: NAMESPACE }
    await kube.create(things, { metadata: key, spec: { size: 1 } })
    const reconciler = aReconciler()
    const controller = new Controller({
      reconciler,
      triggers: [onSpecChange(anInformer(things))],
      concurrency: 2,
      logger: silentLogger,
    })
    const manager = new Manager({ controllers: [controller], logger: silentLogger })
    await manager.start()
    await until(() => expect(reconciler.seen).toEqual(['a']))
    expect(manager.isSynced).toBe(true)
    await kube.patch(things, key, { status: { phase: 'x' } }, { kind: 'merge', subresource: 'status' })
    await kube.patch(things, key, { metadata: { labels: { l: '1' } } }, { kind: 'merge' })
    await kube.patch(things, key, { spec: { size: 2 } }, { kind: 'merge' })
    await until(() => expect(reconciler.seen).toEqual(['a', 'a']))
    await kube.delete(things, key)
    await until(() => expect(reconciler.seen).toEqual(['a', 'a', 'a']))
    await manager.stop()
    expect(manager.isLeading).toBe(false)
  })

  it('looks at the objects that refer to one that changed', async () => {
    const reconciler = aReconciler()
    const referring = onReferredChange(anInformer(secrets), ({ key }) => [
      { name: `of-${key.name}`, namespace: NAMESPACE },
    ])
    const controller = new Controller({ reconciler, triggers: [referring], concurrency: 1, logger: silentLogger })
    const manager = new Manager({ controllers: [controller], logger: silentLogger })
    await manager.start()
    await until(() => expect(manager.isLeading).toBe(true))
    await kube.create(secrets, { metadata: { name: 's', namespace: NAMESPACE } })
    await until(() => expect(reconciler.seen).toEqual(['of-s']))
    await manager.stop()
  })

  it('works at once, when the API server is back, on what could not be done while it was away', async () => {
    await kube.create(settings, aSetting('old'))
    const { port } = listener
    const informer = anInformer()
    let asked = 0
    const reconciler: Reconciler = {
      name: 'calls',
      async reconcile(key, signal) {
        asked++
        await kube.get(settings, key, signal)
        return done
      },
    }
    // Whoever failed waits for as long as he may.
    const controller = new Controller({
      ...{ reconciler, concurrency: 1, logger: silentLogger, random: () => 1 },
      triggers: [onSpecChange(informer)],
    })
    informer.start()
    await informer.synced()
    controller.start()
    await until(() => expect(asked).toBe(1))
    await listener[Symbol.asyncDispose]()
    controller.enqueue({ name: 'old', namespace: NAMESPACE })
    // 5 ms, and twice as long each time: the next one is due after twenty seconds.
    await vi.waitFor(() => expect(asked).toBe(13), { timeout: 240_000, interval: 10 })
    expect(controller.fault).toMatch(/calls default\/old/)
    listener = await listen(port)
    await vi.waitFor(() => expect([asked, controller.fault]).toEqual([14, undefined]), { timeout: 8000, interval: 10 })
    await controller.stop()
    await informer.stop()
  })

  it('starts though the API server is away, and works when it comes', async () => {
    await kube.create(settings, aSetting('old'))
    const { port } = listener
    await listener[Symbol.asyncDispose]()
    const reconciler = aReconciler()
    const triggers = [onSpecChange(anInformer())]
    const manager = new Manager({
      controllers: [new Controller({ reconciler, triggers, concurrency: 1, logger: silentLogger })],
      logger: silentLogger,
    })
    await manager.start()
    expect(manager.isSynced).toBe(false)
    listener = await listen(port)
    await until(() => expect(reconciler.seen).toEqual(['old']))
    await manager.stop()
  })
})

describe('LeaderElection', () => {
  const fast = { leaseMs: 1000, renewDeadlineMs: 600, retryMs: 50 }
  const lease = () =>
    server.objects.get(
      { group: 'coordination.k8s.io', version: 'v1', plural: 'leases' },
      { name: 'lock', namespace: NAMESPACE },
    )
  const spec = () => lease()?.spec as { holderIdentity?: string; renewTime?: string } | undefined
  const holder = () => spec()?.holderIdentity

  /** A candidate, and how often it led; two that lead at once are noticed. */
  function aCandidate(identity: string, leaders: Set<string>, client = kube, logger = silentLogger) {
    const stop = new AbortController()
    const turns: string[] = []
    const election = new LeaderElection({
      kube: client,
      namespace: NAMESPACE,
      name: 'lock',
      identity,
      logger,
      ...fast,
    })
    const ended = election.run(async (signal) => {
      turns.push(identity)
      leaders.add(identity)
      if (leaders.size > 1) throw new Error(`two leaders: ${[...leaders].join()}`)
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
      leaders.delete(identity)
    }, stop.signal)
    return {
      turns,
      leads: () => election.leads,
      stop() {
        stop.abort()
        return ended
      },
    }
  }

  it('lets one candidate lead, and the next as soon as it gives the lease back', async () => {
    const leaders = new Set<string>()
    const a = aCandidate('a', leaders)
    await until(() => expect(holder()).toBe('a'))
    const b = aCandidate('b', leaders)
    const renewed = spec()?.renewTime
    await until(() => expect(spec()?.renewTime).not.toBe(renewed))
    expect(b.turns).toEqual([])
    await a.stop()
    await until(() => expect(b.turns).toEqual(['b']))
    expect(lease()?.spec).toMatchObject({ holderIdentity: 'b', leaseTransitions: expect.any(Number) as number })
    await b.stop()
    expect(holder()).toBe('')
  })

  it('is known to be over by the first who asks after the process was stopped for too long', async () => {
    const a = aCandidate('a', new Set())
    expect(a.leads()).toBe(false)
    await until(() => expect(a.turns).toEqual(['a']))
    expect(a.leads()).toBe(true)
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, fast.renewDeadlineMs + 50)
    expect(a.leads()).toBe(false)
    await a.stop()
    expect(a.leads()).toBe(false)
  })

  it.each([
    ['', 0],
    [', also where the clock is set back by hours', -7_200_000],
  ])('stops leading when it cannot renew, before another may begin%s', async (_, shiftMs) => {
    const leaders = new Set<string>()
    const cut = newClient()
    const a = aCandidate('a', leaders, cut)
    await until(() => expect(a.turns).toEqual(['a']))
    const b = aCandidate('b', leaders)
    const real = Date.now
    try {
      Date.now = () => real() + shiftMs
      await cut[Symbol.asyncDispose]()
      await until(() => expect(b.turns).toEqual(['b']))
      expect(leaders).toEqual(new Set(['b']))
    } finally {
      Date.now = real
    }
    await a.stop()
    await b.stop()
  })

  it('gives up on an API server that hangs, and leads by no answer that came late', async () => {
    const leaders = new Set<string>()
    let hung = 0
    let late = 0
    // The first question is never answered, and the first claim so late that it would be over before it is renewed.
    const slow = new Proxy(kube, {
      get(target, name) {
        if (name === 'get' && hung === 0)
          return (_: unknown, __: unknown, signal: AbortSignal) => {
            hung++
            return new Promise((_resolve, reject) =>
              signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true }),
            )
          }
        if (name === 'create' && late === 0)
          return async (...args: Parameters<KubeClient['create']>) => {
            late++
            const made = await target.create(...args)
            await new Promise((resolve) => setTimeout(resolve, fast.renewDeadlineMs - 30))
            return made
          }
        const value = Reflect.get(target, name) as unknown
        return typeof value === 'function' ? (value.bind(target) as unknown) : value
      },
    })
    const warned: string[] = []
    const logger = { ...silentLogger, warn: (_: object, said: string) => warned.push(said) } as typeof silentLogger
    const a = aCandidate('a', leaders, slow, logger)
    await until(() => expect(a.turns).toEqual(['a']))
    const renewed = spec()?.renewTime
    await until(() => expect(spec()?.renewTime).not.toBe(renewed))
    expect([hung, late, a.turns, warned.filter((one) => one.includes('lost'))]).toEqual([1, 1, ['a'], []])
    await a.stop()
  })

  it('stops leading at once when another took the lease', async () => {
    const leaders = new Set<string>()
    const a = aCandidate('a', leaders)
    await until(() => expect(a.turns).toEqual(['a']))
    const leases: Resource = {
      group: 'coordination.k8s.io',
      version: 'v1',
      plural: 'leases',
      kind: 'Lease',
      namespaced: true,
    }
    await kube.patch(
      leases,
      { name: 'lock', namespace: NAMESPACE },
      { spec: { holderIdentity: 'intruder', leaseDurationSeconds: 60 } },
      { kind: 'merge' },
    )
    await until(() => expect(leaders.size).toBe(0))
    expect(holder()).toBe('intruder')
    await a.stop()
    expect(holder()).toBe('intruder')
  })

  it('takes over a lease whose holder went silent, though its clock shows another year', async () => {
    const past = '1999-01-01T00:00:00.000000Z'
    await server.objects.create({
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { name: 'lock', namespace: NAMESPACE },
      spec: {
        holderIdentity: 'gone',
        leaseDurationSeconds: 1,
        renewTime: past,
        acquireTime: past,
        leaseTransitions: 3,
      },
    })
    const started = Date.now()
    const b = aCandidate('b', new Set())
    await until(() => expect(b.turns).toEqual(['b']))
    expect(Date.now() - started).toBeGreaterThanOrEqual(1000)
    expect(lease()?.spec).toMatchObject({ leaseTransitions: 4 })
    await b.stop()
  })
})

const missing = noRealApiServer()
describe.skipIf(missing !== undefined && process.env.CI_REQUIRE_ALL !== '1')(
  `on a real kube-apiserver${missing ? ` (skipped: ${missing})` : ''}`,
  () => {
    it('an informer follows, and of two candidates one leads at a time', async () => {
      const real = await startRealApiServer()
      if (!real) throw new Error('there is no real kube-apiserver')
      const client = createKubeClient(real.access)
      const informer = new Informer({ kube: client, resource: settings, namespace: NAMESPACE, logger: silentLogger })
      const stop = new AbortController()
      try {
        informer.start()
        await informer.synced()
        await client.create(settings, aSetting('new'))
        await until(() => expect(informer.get({ name: 'new', namespace: NAMESPACE })).toBeDefined())
        const turns: string[] = []
        const stops = ['a', 'b'].map((identity) => {
          const end = new AbortController()
          const election = new LeaderElection({
            kube: client,
            namespace: NAMESPACE,
            name: 'lock',
            identity,
            logger: silentLogger,
            retryMs: 50,
          })
          const lead = (signal: AbortSignal) => {
            turns.push(identity)
            return new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
          }
          const ended = election.run(lead, AbortSignal.any([end.signal, stop.signal]))
          return { identity, end: () => end.abort(), ended }
        })
        await until(() => expect(turns).toHaveLength(1))
        const leader = stops.find(({ identity }) => identity === turns[0])
        leader?.end()
        await leader?.ended
        await until(() => expect(turns).toHaveLength(2))
        expect(new Set(turns).size).toBe(2)
        stop.abort()
        await Promise.all(stops.map(({ ended }) => ended))
      } finally {
        stop.abort()
        await informer.stop()
        await client[Symbol.asyncDispose]()
        await real.stop()
      }
    })
  },
)
