import fc from 'fast-check'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { Manager } from '#controller'
import type { MonitorAccessPolicyStatus } from '#kinds'
import { type Clock, StoreUnavailableError, systemClock } from '#model'
import { Metrics, silentLogger } from '#runtime'
import { leastOf } from '../../platform/runtime/testing/least-of.ts'
import { MemoryPolicies } from './policies-memory.ts'
import { accessPolicyResource } from './policy-resource.ts'
import { type AccessReconcilersOptions, accessReconcilers } from './reconciler.ts'
import {
  aFaultySpec,
  anEmbeddedHub,
  aSpec,
  declare,
  hubs,
  NAMESPACE,
  statusOf,
  type TestHub,
  tableOf,
  undeclare,
  until,
} from './testing/hub.ts'
import type { PolicySource } from './types.ts'

const key = (name: string) => `${NAMESPACE}/${name}`
const keysOf = async (source: PolicySource) => (await source.current()).policies.map((policy) => policy.key)
const documentOf = async (source: PolicySource, name: string) =>
  (await source.current()).policies.find((policy) => policy.key === key(name))?.document
const condition = ({ conditions = [] }: MonitorAccessPolicyStatus, type: string) =>
  conditions.find((one) => one.type === type)
const inSeconds = (seconds: number) => new Date(Date.now() + seconds * 1000).toISOString()

/** A memory store that a test may break. */
class BreakableStore extends MemoryPolicies {
  broken = false
  writes = 0
  onPut = (): void => undefined
  #lost: (() => void) | undefined

  override put(...args: Parameters<MemoryPolicies['put']>) {
    this.writes++
    this.onPut()
    return this.#unless(() => super.put(...args))
  }
  override remove(removed: string) {
    this.writes++
    return this.#unless(() => super.remove(removed))
  }
  /** holds a resync back after it was made up */
  gate: Promise<void> = Promise.resolve()
  resyncs = 0

  override async resync(...args: Parameters<MemoryPolicies['resync']>) {
    this.resyncs++
    await this.gate
    return this.#unless(() => super.resync(...args))
  }
  onLost(listener: () => void) {
    this.#lost = listener
    return () => undefined
  }
  lose() {
    this.#lost?.()
  }
  #unless<T>(action: () => Promise<T>): Promise<T> {
    return this.broken ? Promise.reject(new StoreUnavailableError('the store', 'it is broken')) : action()
  }
}

for (const { title, skip, open } of hubs) {
  describe.skipIf(skip)(`policies of ${title}`, () => {
    let hub: TestHub
    const managers: Manager[] = []
    beforeAll(async () => {
      hub = await open()
    })
    afterAll(() => hub?.[Symbol.asyncDispose]())
    afterEach(async () => {
      for (const manager of managers.splice(0)) await manager.stop()
      for (const { metadata } of await hub.kube.listAll(accessPolicyResource)) {
        await hub.kube.delete(accessPolicyResource, { name: metadata.name, namespace: metadata.namespace ?? '' })
      }
    })

    async function start(over: Partial<AccessReconcilersOptions> = {}) {
      const store = new BreakableStore()
      const writer = over.writer ?? store
      const controllers = accessReconcilers({
        hub: hub.kube,
        namespace: NAMESPACE,
        writer,
        logger: silentLogger,
        ...over,
      })
      const manager = new Manager({ controllers, logger: silentLogger })
      managers.push(manager)
      await manager.start()
      return { store, manager }
    }

    it('brings a policy into force and says so', async () => {
      const { store } = await start()
      await until(async () => expect(await keysOf(store)).toEqual([]))
      await declare(
        hub,
        'developers',
        aSpec({
          identity: {
            priority: 70,
            subjects: {
              users: ['ann', 'bob', 'ann'],
              groups: ['dev'],
              serviceAccounts: [{ name: 'bot', namespace: 'ci' }],
            },
          },
        }),
      )
      await until(async () => expect((await statusOf(hub, 'developers')).state).toBe('Active'))
      const document = await documentOf(store, 'developers')
      expect(document).toMatchObject({ priority: 70, service_accounts: ['system:serviceaccount:ci:bot'] })
      const status = await statusOf(hub, 'developers')
      expect(status).toMatchObject({
        state: 'Active',
        message: 'Policy is active',
        compiledAt: document?.compiled_at,
        hash: document?.hash,
        affectedUsers: 2,
        affectedGroups: 1,
        affectedServiceAccounts: 1,
        customResourceTypes: 0,
        observedGeneration: 1,
        generationInForce: 1,
      })
      for (const type of ['Ready', 'Valid', 'Active'])
        expect(condition(status, type)).toMatchObject({ status: 'True', observedGeneration: 1 })
      expect(store.statusOf(key('developers'))).toEqual({
        state: 'Active',
        message: 'Policy is active',
        compiledAt: document?.compiled_at,
        hash: document?.hash,
        affectedUsers: 2,
        affectedGroups: 1,
        affectedServiceAccounts: 1,
        customResourceTypes: 0,
      })
    })

    it('follows changes, and a disabled policy is no more than stored', async () => {
      const { store } = await start()
      await declare(hub, 'one', aSpec())
      await until(async () => expect((await statusOf(hub, 'one')).state).toBe('Active'))
      await declare(hub, 'one', aSpec({ access: { effect: 'Deny', enabled: false } }))
      await until(async () => expect((await statusOf(hub, 'one')).state).toBe('Inactive'))
      expect(await documentOf(store, 'one')).toMatchObject({ effect: 'Deny', enabled: false })
      const status = await statusOf(hub, 'one')
      expect(status).toMatchObject({ message: 'Policy is disabled', observedGeneration: 2, generationInForce: 2 })
      expect(condition(status, 'Active')).toMatchObject({ status: 'False', reason: 'Disabled' })
      expect(condition(status, 'Ready')).toMatchObject({ status: 'True' })
    })

    it('keeps the revision in force when the next one has faults, and says which and why', async () => {
      const { store } = await start()
      await declare(hub, 'one', aSpec())
      await until(async () => expect((await statusOf(hub, 'one')).state).toBe('Active'))
      const before = await documentOf(store, 'one')
      await declare(hub, 'one', aFaultySpec())
      await until(async () => expect((await statusOf(hub, 'one')).state).toBe('Error'))
      const status = await statusOf(hub, 'one')
      expect(status).toMatchObject({
        observedGeneration: 2,
        generationInForce: 1,
        hash: before?.hash,
        affectedGroups: 1,
      })
      expect(status.message).toContain('Revision 2 has faults; revision 1 stays in force')
      expect(status.message).toContain('spec.scope.clusters.rules[0].selector.matchPattern')
      expect(condition(status, 'Valid')).toMatchObject({ status: 'False', reason: 'InvalidSpec' })
      expect(condition(status, 'Ready')).toMatchObject({ status: 'False', reason: 'InvalidSpec' })
      expect(condition(status, 'Active')).toMatchObject({ status: 'True' })
      expect(await documentOf(store, 'one')).toEqual(before)
      expect(store.statusOf(key('one'))).toMatchObject({
        state: 'Error',
        hash: before?.hash,
        error_at: expect.any(String) as string,
      })

      await declare(hub, 'one', aSpec({ identity: { subjects: { users: ['ann'] }, priority: 1 } }))
      await until(async () => expect((await statusOf(hub, 'one')).state).toBe('Active'))
      expect(await documentOf(store, 'one')).toMatchObject({ users: ['ann'] })
      expect(await statusOf(hub, 'one')).toMatchObject({
        observedGeneration: 3,
        generationInForce: 3,
        affectedGroups: 0,
      })
      expect(store.statusOf(key('one'))).not.toHaveProperty('error_at')
    })

    it('stores nothing of a policy that was faulty from the beginning', async () => {
      const { store } = await start()
      await declare(hub, 'broken', aFaultySpec('Deny'))
      await until(async () => expect((await statusOf(hub, 'broken')).state).toBe('Error'))
      const status = await statusOf(hub, 'broken')
      expect(status.message).toContain('Revision 1 has faults; nothing is in force')
      expect(status).not.toHaveProperty('generationInForce')
      expect(condition(status, 'Active')).toMatchObject({ status: 'False', reason: 'NotInForce' })
      expect(await keysOf(store)).toEqual([])
      expect(store.statusOf(key('broken'))).toBeUndefined()
    })

    it('does not keep what another object of the same name said', async () => {
      const { store } = await start()
      await declare(hub, 'one', aSpec())
      await until(async () => expect(await keysOf(store)).toEqual([key('one')]))
      // The removal does not get through before the new object is there.
      store.broken = true
      await undeclare(hub, 'one')
      await declare(hub, 'one', aFaultySpec())
      await until(async () => expect((await statusOf(hub, 'one')).state).toBe('Error'))
      store.broken = false
      await until(async () => expect(await keysOf(store)).toEqual([]))
      expect((await statusOf(hub, 'one')).message).toContain('nothing is in force')
    })

    it('warns of what is probably not meant, with its place', async () => {
      await start()
      await declare(hub, 'one', aSpec({ scope: { clusters: { default: 'none', rules: [{ selector: {} }] } } }))
      await until(async () => expect((await statusOf(hub, 'one')).state).toBe('Active'))
      const status = await statusOf(hub, 'one')
      expect(status.customResourceWarnings?.join('\n')).toContain('spec.scope.clusters.rules[0].selector')
      expect(condition(status, 'Valid')).toMatchObject({ status: 'True', reason: 'CompiledWithWarnings' })
      await declare(hub, 'one', aSpec())
      await until(async () => expect(await statusOf(hub, 'one')).not.toHaveProperty('customResourceWarnings'))
    })

    it('warns of types that no MetricSource collects, until one does', async () => {
      const collected = new Set<string>()
      const listeners = new Set<() => void>()
      const types = {
        ofType: (name: string) =>
          collected.has(name) ? { fields: ['phase'], filterableFields: undefined, aggregations: [] } : undefined,
        onChange: (listener: () => void) => {
          listeners.add(listener)
          return () => listeners.delete(listener)
        },
      }
      await start({ types })
      const rule = { selector: { matchNames: ['dev-*'] }, resources: [{ type: 'pvc' }, { type: 'pods' }] }
      await declare(hub, 'one', aSpec({ scope: { clusters: { default: 'none', rules: [rule] } } }))
      await until(async () =>
        expect((await statusOf(hub, 'one')).customResourceWarnings).toEqual([
          expect.stringMatching(
            /^spec\.scope\.clusters\.rules\[0\]\.resources\[0\]\.type: no MetricSource collects "pvc"/,
          ),
        ]),
      )
      expect(await statusOf(hub, 'one')).toMatchObject({ state: 'Active', customResourceTypes: 1 })
      collected.add('pvc')
      for (const listener of listeners) listener()
      await until(async () => expect(await statusOf(hub, 'one')).not.toHaveProperty('customResourceWarnings'))
      expect((await statusOf(hub, 'one')).state).toBe('Active')
    })

    it('removes a deleted policy, also one that was deleted while nobody looked', async () => {
      const { store, manager } = await start()
      for (const name of ['one', 'two', 'three']) await declare(hub, name)
      await until(async () => expect(await keysOf(store)).toHaveLength(3))
      await undeclare(hub, 'one')
      await until(async () => expect(await keysOf(store)).toEqual([key('three'), key('two')]))
      await manager.stop()
      await undeclare(hub, 'two')
      await declare(hub, 'four')
      await start({ writer: store })
      await until(async () => expect(await keysOf(store)).toEqual([key('four'), key('three')]))
    })

    it('does nothing at a restart where nothing changed', async () => {
      const { store, manager } = await start()
      await declare(hub, 'one', aSpec({ lifecycle: { validity: { notAfter: inSeconds(3600) } } }))
      await declare(hub, 'broken', aFaultySpec())
      await until(async () => expect((await statusOf(hub, 'one')).state).toBe('Active'))
      await until(async () => expect((await statusOf(hub, 'broken')).state).toBe('Error'))
      await manager.stop()
      const versions = async () =>
        (await hub.kube.listAll(accessPolicyResource)).map(({ metadata }) => metadata.resourceVersion)
      const before = await versions()
      const { generation } = await store.current()
      // Another second, so that a new time of compilation would be seen.
      await until(() => expect(Date.now() % 1000).toBeLessThan(100))
      store.writes = 0
      await start({ writer: store })
      await declare(hub, 'later')
      await until(async () => expect((await statusOf(hub, 'later')).state).toBe('Active'))
      expect(store.writes).toBe(1)
      expect((await versions()).slice(0, 1)).toEqual(before.slice(0, 1))
      expect((await documentOf(store, 'one'))?.compiled_at).toBe((await statusOf(hub, 'one')).compiledAt)
      await undeclare(hub, 'later')
      await until(async () => expect(await keysOf(store)).toEqual([key('one')]))
      expect(generation).not.toBe((await store.current()).generation)
    })

    it('keeps the revision in force over a restart, though the API has only the faulty one', async () => {
      const { store, manager } = await start()
      await declare(hub, 'one', aSpec())
      await until(async () => expect((await statusOf(hub, 'one')).state).toBe('Active'))
      const before = await documentOf(store, 'one')
      await manager.stop()
      await declare(hub, 'one', aFaultySpec())
      await start({ writer: store })
      await until(async () => expect((await statusOf(hub, 'one')).state).toBe('Error'))
      expect(await statusOf(hub, 'one')).toMatchObject({ generationInForce: 1, observedGeneration: 2 })
      expect(await documentOf(store, 'one')).toEqual(before)
    })

    it('lets a Deny deny all it could mean where its revision in force is lost, and an Allow nothing', async () => {
      const { manager } = await start()
      await declare(hub, 'deny', aSpec({ access: { effect: 'Deny', enabled: true } }))
      await declare(hub, 'allow', aSpec())
      await until(async () => expect((await statusOf(hub, 'deny')).state).toBe('Active'))
      await until(async () => expect((await statusOf(hub, 'allow')).state).toBe('Active'))
      await manager.stop()
      await declare(hub, 'deny', aFaultySpec('Deny'))
      await declare(hub, 'allow', aFaultySpec())
      // A store that knows nothing, as that of one process after its restart.
      const { store } = await start()
      await until(async () => expect((await statusOf(hub, 'deny')).state).toBe('Error'))
      await until(async () => expect((await statusOf(hub, 'allow')).state).toBe('Error'))
      expect(await keysOf(store)).toEqual([key('deny')])
      expect((await statusOf(hub, 'deny')).message).toContain('denies all that it could mean')
      expect((await statusOf(hub, 'allow')).message).toContain('nothing is in force')
    })

    it('begins and ends with the clock, without an event', async () => {
      const { store } = await start()
      let validity = { notBefore: '', notAfter: '' }
      let afterS = 1.2
      // A machine that looks too late is given more time.
      const lateMs = await leastOf(5, 1_000, async () => {
        validity = { notBefore: inSeconds(afterS), notAfter: inSeconds(2 * afterS) }
        afterS *= 2
        await declare(hub, 'soon', aSpec({ lifecycle: { validity } }))
        const isOf = ({ message, state }: Awaited<ReturnType<typeof statusOf>>) =>
          Date.now() > Date.parse(validity.notBefore) ? 'late' : message === 'Policy not yet valid' ? 'soon' : state
        await until(async () => expect(['late', 'soon']).toContain(isOf(await statusOf(hub, 'soon'))))
        const before = await statusOf(hub, 'soon')
        if (isOf(before) !== 'soon') return Number.POSITIVE_INFINITY
        expect(condition(before, 'Active')).toMatchObject({ status: 'False', reason: 'NotYetValid' })
        await until(async () => expect(['Active', 'Expired']).toContain((await statusOf(hub, 'soon')).state))
        const now = Date.now()
        if ((await statusOf(hub, 'soon')).state !== 'Active') return Number.POSITIVE_INFINITY
        expect(now).toBeGreaterThanOrEqual(Date.parse(validity.notBefore))
        return now - Date.parse(validity.notBefore)
      })
      expect(lateMs).toBeLessThan(1_000)
      await until(async () => expect((await statusOf(hub, 'soon')).state).toBe('Expired'))
      expect(Date.now()).toBeGreaterThan(Date.parse(validity.notAfter))
      expect(condition(await statusOf(hub, 'soon'), 'Active')).toMatchObject({ status: 'False', reason: 'Expired' })
      expect(store.statusOf(key('soon'))).toMatchObject({ state: 'Expired' })
      expect(await keysOf(store)).toEqual([key('soon')])
    })

    it('notices a bound that passes while the store takes the policy', async () => {
      let skewMs = 0
      const clock: Clock = { now: () => Date.now() + skewMs, sleep: (ms, signal) => systemClock.sleep(ms, signal) }
      const store = new BreakableStore()
      store.onPut = () => {
        skewMs = 3_600_000
      }
      await start({ writer: store, clock })
      await until(async () => expect(await keysOf(store)).toEqual([]))
      await declare(hub, 'slow', aSpec({ lifecycle: { validity: { notAfter: inSeconds(1_800) } } }))
      await until(async () => expect((await statusOf(hub, 'slow')).state).toBe('Expired'))
      expect(store.statusOf(key('slow'))).toMatchObject({ state: 'Expired' })
    })

    it('says that the store does not take it, and brings it as soon as it does', async () => {
      const { store } = await start()
      await declare(hub, 'one', aSpec())
      await until(async () => expect((await statusOf(hub, 'one')).state).toBe('Active'))
      store.broken = true
      await declare(hub, 'one', aSpec({ identity: { subjects: { users: ['ann'] }, priority: 5 } }))
      await until(async () =>
        expect(condition(await statusOf(hub, 'one'), 'Ready')).toMatchObject({
          status: 'False',
          reason: 'StoreUnavailable',
        }),
      )
      const status = await statusOf(hub, 'one')
      expect(status).toMatchObject({ state: 'Error', observedGeneration: 2, generationInForce: 1, affectedGroups: 1 })
      expect(status.message).toContain('revision 1 stays in force')
      expect(condition(status, 'Valid')).toMatchObject({ status: 'True' })
      store.broken = false
      await until(async () => expect((await statusOf(hub, 'one')).state).toBe('Active'))
      expect(await documentOf(store, 'one')).toMatchObject({ users: ['ann'] })
    })

    it('waits for a store that is away at the start, and fills one that lost its memory', async () => {
      const store = new BreakableStore()
      store.broken = true
      await declare(hub, 'one')
      await start({ writer: store })
      await declare(hub, 'two')
      await until(async () =>
        expect(condition(await statusOf(hub, 'two'), 'Ready')).toMatchObject({ reason: 'StoreUnavailable' }),
      )
      store.broken = false
      await until(async () => expect(await keysOf(store)).toEqual([key('one'), key('two')]))
      await until(async () => expect((await statusOf(hub, 'two')).state).toBe('Active'))
      await store.remove(key('one'))
      await store.remove(key('two'))
      store.lose()
      await until(async () => expect(await keysOf(store)).toEqual([key('one'), key('two')]))
    })

    it('does not keep what was deleted or changed while the store took everything', async () => {
      for (const name of ['gone', 'moved']) await declare(hub, name)
      const store = new BreakableStore()
      let openGate: () => void = () => undefined
      store.gate = new Promise((resolve) => {
        openGate = resolve
      })
      const metrics = new Metrics({}, { processMetrics: false })
      await start({ writer: store, metrics })
      await until(() => expect(store.resyncs).toBe(1))
      await declare(hub, 'moved', aSpec({ identity: { subjects: { users: ['ann'] }, priority: 9 } }))
      await undeclare(hub, 'gone')
      await until(async () =>
        expect(await metrics.registry.metrics()).toContain('clusterpulse_access_policies{state="Pending"} 1'),
      )
      openGate()
      await until(async () => expect(await keysOf(store)).toEqual([key('moved')]))
      await until(async () => expect(await documentOf(store, 'moved')).toMatchObject({ users: ['ann'] }))
    })

    it('leaves policies of other namespaces alone', async () => {
      const { store } = await start()
      await declare(hub, 'foreign', aSpec(), 'elsewhere')
      await declare(hub, 'own')
      await until(async () => expect(await keysOf(store)).toEqual([key('own')]))
      const foreign = await hub.kube.get(accessPolicyResource, { name: 'foreign', namespace: 'elsewhere' })
      expect((foreign?.status as MonitorAccessPolicyStatus | undefined)?.hash).toBeUndefined()
    })

    it('shows in the columns of kubectl what is in force', async () => {
      await start()
      await declare(hub, 'one', aSpec({ identity: { subjects: { users: ['ann', 'bob'] }, priority: 7 } }))
      await until(async () => expect((await statusOf(hub, 'one')).state).toBe('Active'))
      expect(await tableOf(hub)).toEqual([{ Name: 'one', State: 'Active', Effect: 'Allow', Priority: 7, Users: 2 }])
    })
  })
}

describe('policies of a hub, whatever happens to them', () => {
  const name = fc.constantFrom('a', 'b')
  const step = fc.oneof(
    {
      weight: 3,
      arbitrary: fc.record({ kind: fc.constant('valid' as const), name, priority: fc.integer({ min: 1, max: 9 }) }),
    },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('faulty' as const), name }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('delete' as const), name }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('stop' as const) }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('start' as const) }) },
  )

  it('are in force as they were last seen without a fault, and gone when their object is', async () => {
    const hub = await anEmbeddedHub()
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 3, maxLength: 9 }), async (steps) => {
        const store = new MemoryPolicies()
        const launch = async () => {
          const controllers = accessReconcilers({
            hub: hub.kube,
            namespace: NAMESPACE,
            writer: store,
            logger: silentLogger,
          })
          const manager = new Manager({ controllers, logger: silentLogger })
          await manager.start()
          return manager
        }
        let manager: Manager | undefined = await launch()
        /** per object: the priority in its spec (undefined: faulty), and that of the revision in force */
        const objects = new Map<string, { priority: number | undefined; inForce: number | undefined }>()
        const settled = () =>
          until(async () => {
            const policies = await hub.kube.listAll(accessPolicyResource)
            for (const { metadata, status } of policies)
              expect((status as MonitorAccessPolicyStatus | undefined)?.observedGeneration).toBe(metadata.generation)
            for (const object of objects.values()) object.inForce = object.priority ?? object.inForce
            const wanted = [...objects].flatMap(([of, { inForce }]) =>
              inForce === undefined ? [] : [[key(of), inForce]],
            )
            const held = (await store.current()).policies.map(({ key: of, document }) => [of, document.priority])
            expect(held).toEqual(wanted.sort())
          })
        for (const one of steps) {
          if (one.kind === 'valid') {
            const { subjects } = aSpec().identity
            await declare(hub, one.name, aSpec({ identity: { subjects, priority: one.priority } }))
            objects.set(one.name, { priority: one.priority, inForce: objects.get(one.name)?.inForce })
          } else if (one.kind === 'faulty') {
            await declare(hub, one.name, aFaultySpec())
            objects.set(one.name, { priority: undefined, inForce: objects.get(one.name)?.inForce })
          } else if (one.kind === 'delete') {
            if (objects.delete(one.name)) await undeclare(hub, one.name)
          } else if (one.kind === 'stop') {
            await manager?.stop()
            manager = undefined
          } else manager ??= await launch()
          if (manager) await settled()
        }
        manager ??= await launch()
        await settled()
        for (const of of objects.keys()) await undeclare(hub, of)
        await until(async () => expect((await store.current()).policies).toEqual([]))
        await manager.stop()
      }),
      { numRuns: 12 },
    )
    await hub[Symbol.asyncDispose]()
  })
})
