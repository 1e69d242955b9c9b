import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Condition } from '#controller'
import { type KubeClient, KubeError, type KubeObject, type Resource, type WatchOptions } from '#kube'
import { systemClock } from '#model'
import { silentLogger } from '#runtime'
import { inventoryInformers, inventoryResources } from '../objects.ts'
import { lagging } from '../testing/lagging.ts'
import { statusOf, troubleOf } from './status.ts'
import {
  aProfile,
  aScope,
  aTarget,
  conditionOf,
  configMap,
  expectRows,
  isComplete,
  type RunningTargets,
  resources,
  shownRows,
  strict,
  TestCluster,
} from './testing/cluster.ts'

let cluster: TestCluster
let running: RunningTargets | undefined

beforeAll(async () => {
  cluster = await TestCluster.start()
})
afterAll(() => cluster[Symbol.asyncDispose]())

beforeEach(async () => {
  for (const name of ['a', 'b']) await cluster.apply(configMap(name))
  await cluster.apply(configMap('c', 'bank'))
  await cluster.apply(aProfile())
})

afterEach(async () => {
  for (const kind of ['KollectTarget', 'KollectClusterTarget', 'KollectScope', 'KollectClusterScope', 'KollectProfile'])
    for (const object of await cluster.list(kind)) await cluster.remove({ ...object, kind })
  // The finalizer goes while the targets run.
  if (running) await expect.poll(async () => await cluster.list('KollectTarget')).toEqual([])
  if (running) await expect.poll(async () => await cluster.list('KollectClusterTarget')).toEqual([])
  await running?.stop()
  running = undefined
  for (const object of await cluster.list('ConfigMap')) await cluster.remove({ ...object, kind: 'ConfigMap' })
  for (const name of ['shop', 'bank'])
    await cluster.apply({ kind: 'Namespace', metadata: { name, labels: {}, annotations: {} } })
})

const run = async (more: Parameters<TestCluster['run']>[0] = {}): Promise<RunningTargets> => {
  running = await cluster.run(more)
  return running
}
const target = (name = 'settings') => cluster.get('KollectTarget', name, 'shop')
/** What is watched may not be listed. */
async function* refused(onTrouble: (error: Error) => void, signal: AbortSignal): AsyncGenerator<never> {
  onTrouble(new KubeError('forbidden', 'configmaps may not be listed'))
  await new Promise((resolve) => signal.addEventListener('abort', resolve))
}
/** What follows one kind may be cut off. */
function cuttable(kube: KubeClient, plural: string) {
  let line = new AbortController()
  let healed = new AbortController()
  async function* watch(resource: Resource, options: WatchOptions & { signal: AbortSignal }) {
    const { signal, onTrouble } = options
    while (!signal.aborted) {
      const either = AbortSignal.any([signal, ...(resource.plural === plural ? [line.signal] : [])])
      yield* kube.watch(resource, { ...options, signal: either })
      if (signal.aborted) return
      onTrouble?.(new KubeError('server', '503'))
      const over = AbortSignal.any([signal, healed.signal])
      await new Promise((resolve) => over.addEventListener('abort', resolve))
    }
  }
  return {
    kube: new Proxy(kube, {
      get: (of, field) => {
        const value: unknown = Reflect.get(of, field)
        if (field === 'watch') return watch
        return typeof value === 'function' ? value.bind(of) : value
      },
    }),
    cut: () => line.abort(),
    heal: () => {
      line = new AbortController()
      healed.abort()
      healed = new AbortController()
    },
  }
}
const expectDegraded = (reason: string, name?: string) =>
  expect.poll(async () => conditionOf(await target(name), 'Degraded')).toBe(`True/${reason}`)

describe('a target that runs', () => {
  it('collects its own namespace where it names none, and follows what happens there', async () => {
    await cluster.apply(aTarget())
    const now = await run()
    await expectRows(now, ['shop/a=on', 'shop/b=on'])
    await cluster.apply(configMap('a', 'shop', { data: { mode: 'off' } }))
    await cluster.apply(configMap('d'))
    await cluster.remove(configMap('b'))
    await expectRows(now, ['shop/a=off', 'shop/d=on'])
  })

  it('says how it is doing, and writes nothing while that stays so', async () => {
    await cluster.apply(aTarget())
    await run()
    await expect.poll(async () => (await target())?.status).toMatchObject({ collectedCount: 2, observedGeneration: 1 })
    await expect.poll(async () => conditionOf(await target(), 'Ready')).toBe('True/Collecting')
    const before = await target()
    expect(before?.status).toMatchObject({
      matchedNamespaces: ['shop'],
      effectiveNamespaces: ['shop'],
      activeResourceRules: 0,
      extractionFailures: 0,
    })
    expect(conditionOf(before, 'Synced')).toBe('True/Collecting')
    expect(conditionOf(before, 'Degraded')).toBe('False/Collecting')
    // Other objects make it look again; what it says is the same.
    for (let i = 0; i < 5; i++) {
      await cluster.apply({ kind: 'Namespace', metadata: { name: 'bank', labels: { turn: String(i) } } } as KubeObject)
      await cluster.apply(configMap('a', 'shop', { data: { mode: `m${i}` } }))
    }
    await expectRows(running as RunningTargets, ['shop/a=m4', 'shop/b=on'])
    expect((await target())?.metadata.resourceVersion).toBe(before?.metadata.resourceVersion)
  })

  it('says what it asks for and can never bring', async () => {
    await cluster.apply(aScope({ allowedNamespaces: ['shop', 'bank'] }))
    await cluster.apply(aTarget({ includedNamespaces: ['shop', 'bank'] }))
    const now = await run({ watchNamespaces: ['shop'] })
    await expectRows(now, ['shop/a=on', 'shop/b=on'])
    const said = async (type: string) => {
      const { conditions = [] } = ((await target())?.status ?? {}) as { readonly conditions?: readonly Condition[] }
      return conditions.find((one) => one.type === type)?.message
    }
    for (const type of ['Ready', 'Degraded'])
      await expect.poll(() => said(type)).toMatch(/reads shop alone \(WATCH_NAMESPACES\), and not bank$/)
    const { spec, ...profile } = aProfile([{ name: 'name', path: '{.metadata.name}' }])
    await cluster.apply({ ...profile, spec: { ...(spec as object), targetGVK: { version: 'v1', kind: 'Namespace' } } })
    await expect
      .poll(() => said('Degraded'))
      .toMatch(/Namespace belongs to no namespace and counts as of default, which is none of those that are read/)
  })

  it('takes its objects anew when its profile changes', async () => {
    await cluster.apply(aTarget())
    const now = await run()
    await expectRows(now, ['shop/a=on', 'shop/b=on'])
    await cluster.apply(aProfile([{ name: 'mode', path: 'cel:"is " + object.data.mode' }]))
    await expectRows(now, ['shop/a=is on', 'shop/b=is on'])
    await cluster.apply(aTarget({ names: ['a'] }))
    await expectRows(now, ['shop/a=is on'])
  })

  it('follows labels of namespaces', async () => {
    await cluster.apply(aScope({ allowedNamespaces: ['shop', 'bank'] }))
    await cluster.apply(aTarget({ namespaceSelector: { matchLabels: { tier: 'front' } } }))
    await cluster.apply({ kind: 'Namespace', metadata: { name: 'shop', labels: { tier: 'front' } } } as KubeObject)
    const now = await run()
    await expectRows(now, ['shop/a=on', 'shop/b=on'])
    await cluster.apply({ kind: 'Namespace', metadata: { name: 'bank', labels: { tier: 'front' } } } as KubeObject)
    await expectRows(now, ['bank/c=on', 'shop/a=on', 'shop/b=on'])
    await cluster.apply({ kind: 'Namespace', metadata: { name: 'shop', labels: {} } } as KubeObject)
    await expectRows(now, ['bank/c=on'])
    await cluster.apply({ kind: 'Namespace', metadata: { name: 'shop', labels: { tier: 'front' } } } as KubeObject)
    await expectRows(now, ['bank/c=on', 'shop/a=on', 'shop/b=on'])
  })

  it('stays ready while it reads one namespace more', async () => {
    await cluster.apply(aScope({ allowedNamespaces: ['shop', 'bank'] }))
    await cluster.apply(aTarget({ namespaceSelector: { matchLabels: { tier: 'front' } } }))
    await cluster.apply({ kind: 'Namespace', metadata: { name: 'shop', labels: { tier: 'front' } } } as KubeObject)
    const now = await run()
    await expect.poll(async () => conditionOf(await target(), 'Ready')).toBe('True/Collecting')
    const seen: unknown[] = []
    const stop = new AbortController()
    const watching = (async () => {
      for await (const event of cluster.kube.watch(resources.KollectTarget as Resource, { signal: stop.signal }))
        if (event.type === 'modified') seen.push(conditionOf(event.object, 'Ready'))
    })()
    await cluster.apply({ kind: 'Namespace', metadata: { name: 'bank', labels: { tier: 'front' } } } as KubeObject)
    await expectRows(now, ['bank/c=on', 'shop/a=on', 'shop/b=on'])
    await expect.poll(async () => (await target())?.status).toMatchObject({ effectiveNamespaces: ['bank', 'shop'] })
    await expect.poll(() => seen.length).toBeGreaterThan(0)
    stop.abort()
    await watching
    expect(seen.filter((one) => one !== 'True/Collecting')).toEqual([])
  })

  it('leaves out what opts out, by object and by namespace', async () => {
    await cluster.apply(aTarget())
    const now = await run()
    await expectRows(now, ['shop/a=on', 'shop/b=on'])
    const labels = { 'kollect.dev/watch': 'disabled' }
    await cluster.apply(configMap('a', 'shop', { metadata: { name: 'a', namespace: 'shop', labels } }))
    await expectRows(now, ['shop/b=on'])
    const annotations = { 'kollect.dev/namespace-watch': 'disabled' }
    await cluster.apply({ kind: 'Namespace', metadata: { name: 'shop', annotations } } as KubeObject)
    await expectRows(now, [])
  })

  it('has rows of several kinds where its rules name them', async () => {
    await cluster.apply({
      kind: 'Secret',
      metadata: { name: 'key', namespace: 'shop', labels: { app: 'web' } },
      data: { mode: 'c2VjcmV0' },
    } as KubeObject)
    await cluster.apply(aProfile([{ name: 'app', path: '{.metadata.labels.app}', optional: true }]))
    await cluster.apply(
      aTarget({
        resourceRules: [
          { gvk: { version: 'v1', kind: 'ConfigMap' }, matchPolicy: 'object.metadata.name == "a"' },
          { gvk: { version: 'v1', kind: 'Secret' }, matchLabels: { app: 'web' } },
        ],
      }),
    )
    const now = await run()
    await expectRows(now, ['shop/a', 'shop/key'])
    await cluster.apply(aTarget({ resourceRules: [{ gvk: { version: 'v1', kind: 'ConfigMap' } }] }))
    await expectRows(now, ['shop/a', 'shop/b'])
  })

  it('keeps the rows of others where one object is bad, says so, and recovers by itself', async () => {
    await cluster.apply(aProfile([{ name: 'mode', path: 'cel:object.data.mode' }]))
    await cluster.apply(aTarget())
    const now = await run()
    await expectRows(now, ['shop/a=on', 'shop/b=on'])
    await cluster.apply(configMap('a', 'shop', { data: { other: 'x' } }))
    await expectDegraded('ExtractionFailed')
    expect(shownRows(now.rows)).toEqual(['shop/b=on'])
    expect(isComplete(now.rows)).toBe(false)
    expect((await target())?.status).toMatchObject({
      extractionFailures: 1,
      lastExtractionError: expect.stringContaining('shop/a: attribute mode'),
    })
    // Also after a restart all that there is was read: what is known may be exported.
    const again = await cluster.run()
    const stateAgain = () => again.rows.state({ namespace: 'shop', name: 'settings' })
    await expect.poll(stateAgain).toMatchObject({ kind: 'rows', isRead: true, isComplete: false })
    expect(shownRows(again.rows)).toEqual(['shop/b=on'])
    await again.stop()
    await cluster.apply(configMap('a'))
    await expectRows(now, ['shop/a=on', 'shop/b=on'])
    await expect.poll(async () => conditionOf(await target(), 'Degraded')).toBe('False/Collecting')
    expect((await target())?.status).not.toHaveProperty('lastExtractionError')
  })

  it('waits for a profile that is not there', async () => {
    for (const object of await cluster.list('KollectProfile'))
      await cluster.remove({ ...object, kind: 'KollectProfile' })
    await cluster.apply(aTarget())
    const now = await run()
    await expectDegraded('ProfileNotFound')
    // It never brought a row: inventories need not wait for it.
    expect(now.rows.state({ namespace: 'shop', name: 'settings' }).kind).toBe('dropped')
    await cluster.apply(aProfile())
    await expectRows(now, ['shop/a=on', 'shop/b=on'])
  })

  it('is waited for where it brought rows before the start, and says how many those were', async () => {
    await cluster.apply(aTarget())
    const first = await run()
    await expectRows(first, ['shop/a=on', 'shop/b=on'])
    await expect.poll(async () => (await target())?.status).toMatchObject({ collectedCount: 2 })
    await first.stop()
    for (const object of await cluster.list('KollectProfile'))
      await cluster.remove({ ...object, kind: 'KollectProfile' })
    const second = await run()
    await expectDegraded('ProfileNotFound')
    expect(second.rows.state({ namespace: 'shop', name: 'settings' })).toMatchObject({
      ...{ kind: 'rows', rows: [], isComplete: false, isHindered: true },
    })
    expect((await target())?.status).toMatchObject({ collectedCount: 2 })
  })

  it('is waited for as well where the number of its rows was not written before the end', async () => {
    await cluster.apply(aTarget())
    const first = await run()
    await expectRows(first, ['shop/a=on', 'shop/b=on'])
    await expect.poll(async () => conditionOf(await target(), 'Ready')).toBe('True/Collecting')
    await first.stop()
    const { metadata, status } = (await target()) as KubeObject
    const key = { name: metadata.name, namespace: 'shop' }
    const late = { status: { ...(status as object), collectedCount: 0 } }
    await cluster.kube.patch(inventoryResources.targets, key, late, { kind: 'merge', subresource: 'status' })
    await cluster.remove(aProfile())
    const second = await run()
    await expectDegraded('ProfileNotFound')
    expect(second.rows.state(key)).toMatchObject({ kind: 'rows', isComplete: false, isHindered: true })
  })

  it('that is well says the same over a restart, and that it is refused at once where it is', async () => {
    await cluster.apply(aTarget())
    const first = await run()
    await expect.poll(async () => (await target())?.status).toMatchObject({ collectedCount: 2 })
    await expect.poll(async () => conditionOf(await target(), 'Ready')).toBe('True/Collecting')
    const before = (await target())?.metadata.resourceVersion
    await first.stop()
    const second = await run()
    await expectRows(second, ['shop/a=on', 'shop/b=on'])
    // What is written of it later comes after whatever was to be written at the start.
    await cluster.apply(configMap('d'))
    await expectRows(second, ['shop/a=on', 'shop/b=on', 'shop/d=on'])
    expect((await target())?.metadata.resourceVersion).toBe(before)
    await second.stop()

    const kube = new Proxy(cluster.kube, {
      get: (of, field) => {
        const value: unknown = Reflect.get(of, field)
        if (field !== 'watch') return typeof value === 'function' ? value.bind(of) : value
        return (_: unknown, { onTrouble, signal }: { onTrouble(error: Error): void; signal: AbortSignal }) =>
          refused(onTrouble, signal)
      },
    })
    expect(second.faults()).toEqual([])
    const third = await run({ kube })
    await expect.poll(async () => conditionOf(await target(), 'Synced')).toBe('False/ScopeForbidden')
    expect(third.rows.state({ namespace: 'shop', name: 'settings' })).toMatchObject({
      ...{ rows: [], isComplete: false, isHindered: true },
    })
    const [fault = '', ...more] = third.faults()
    expect([fault.replace(/\S+Z: /, 'TIME: '), more]).toEqual([
      'objects of targets (v1 ConfigMap) cannot be followed since TIME: the agent may not list and watch them',
      [],
    ])
    expect(Math.abs(Date.now() - Date.parse(/\S+Z/.exec(fault)?.[0] ?? ''))).toBeLessThan(60_000)
    const { conditions = [] } = ((await target())?.status ?? {}) as { readonly conditions?: readonly Condition[] }
    expect(conditions.find(({ type }) => type === 'Ready')?.message).toMatch(/what was collected before is kept$/)
  })

  it('is over what was in its way once all is read, and not before', () => {
    const [of, now] = [{ isOfCluster: false }, 0]
    const state = { ...{ generation: 1, since: 0, isComplete: false, isReading: true, activeRules: 1, failures: 0 } }
    const none = { matchedNamespaces: [], effectiveNamespaces: [] }
    const degraded = { reason: 'ProfileNotFound' as const, message: 'there is none' }
    const ill = statusOf({ ...state, ...none, degraded }, {}, { ...of, now })
    const reading = statusOf({ ...state, ...none }, ill, { ...of, now })
    const stillReading = statusOf({ ...state, ...none }, reading, { ...of, now })
    const well = statusOf({ ...state, ...none, isReading: false, rows: 2 }, stillReading, { ...of, now })
    expect([ill, reading, stillReading, well].map(troubleOf)).toEqual([
      'ProfileNotFound',
      'ProfileNotFound',
      'ProfileNotFound',
      undefined,
    ])
    const ready = [ill, reading, stillReading, well].map(
      ({ conditions }) => conditions?.find(({ type }) => type === 'Ready')?.status,
    )
    expect(ready).toEqual(['False', 'False', 'False', 'True'])
  })

  it('keeps its rows while it is suspended, which nobody may take for all, and goes on afterwards', async () => {
    await cluster.apply(aTarget())
    const now = await run()
    await expectRows(now, ['shop/a=on', 'shop/b=on'])
    await cluster.apply(aTarget({ suspend: true }))
    await expectDegraded('Suspended')
    await cluster.remove(configMap('a'))
    expect([shownRows(now.rows), isComplete(now.rows)]).toEqual([['shop/a=on', 'shop/b=on'], false])
    await cluster.apply(aTarget({ suspend: false }))
    await expectRows(now, ['shop/b=on'])
  })

  it('goes with its rows when it is deleted', async () => {
    await cluster.apply(aTarget())
    const now = await run()
    await expectRows(now, ['shop/a=on', 'shop/b=on'])
    expect((await target())?.metadata.finalizers).toEqual(['kollect.dev/target-cleanup'])
    await cluster.remove(aTarget())
    await expect.poll(target).toBeUndefined()
    expect(now.rows.state({ namespace: 'shop', name: 'settings' }).kind).toBe('dropped')
  })
})

describe('a scope', () => {
  it('that comes later stops a target that runs, and takes its rows', async () => {
    await cluster.apply(aTarget())
    const now = await run()
    await expectRows(now, ['shop/a=on', 'shop/b=on'])
    await cluster.apply(aScope({ allowedGVKs: [{ version: 'v1', kind: 'Secret' }] }))
    await expectDegraded('ScopeGVKDenied')
    expect(now.rows.state({ namespace: 'shop', name: 'settings' }).kind).toBe('dropped')
    expect((await target())?.status).toMatchObject({ collectedCount: 0 })
    await expect
      .poll(async () => (await cluster.list('Event')).map(({ type, reason }) => `${type}/${reason}`))
      .toContain('Warning/ScopeGVKDenied')
    await cluster.remove(aScope({}))
    await expectRows(now, ['shop/a=on', 'shop/b=on'])
  })

  it('is waited for where the agent demands one, and taken away with the rows', async () => {
    await cluster.apply(aTarget())
    const now = await run({ scopeRequired: true })
    await expectDegraded('ScopeLookupFailed')
    await cluster.apply(aScope({}))
    await expectRows(now, ['shop/a=on', 'shop/b=on'])
    await cluster.remove(aScope({}))
    await expectDegraded('ScopeLookupFailed')
    expect(now.rows.state({ namespace: 'shop', name: 'settings' }).kind).toBe('dropped')
  })

  it('is one of several, which all count', async () => {
    await cluster.apply(aScope({ allowedNamespaces: ['shop', 'bank'] }, 'a'))
    await cluster.apply(aScope({ deniedNamespaces: ['bank'] }, 'z'))
    await cluster.apply(aTarget({ includedNamespaces: ['shop', 'bank'] }))
    await run()
    await expectDegraded('ScopeNamespaceDenied')
  })

  it('leaves what it allows where it is told to clip', async () => {
    const annotations = { 'kollect.dev/excess': 'clip' }
    await cluster.apply(aScope({ deniedNamespaces: ['bank'] }, 'ceiling', { annotations }))
    await cluster.apply(aTarget({ includedNamespaces: ['shop', 'bank'] }))
    const now = await run()
    await expectRows(now, ['shop/a=on', 'shop/b=on'])
    await expect
      .poll(async () => (await target())?.status)
      .toMatchObject({ matchedNamespaces: ['bank', 'shop'], effectiveNamespaces: ['shop'] })
  })

  it('is what a target needs to read another namespace, unless it is judged as by the original', async () => {
    await cluster.apply(aTarget({ includedNamespaces: ['bank'] }))
    const now = await run()
    await expectDegraded('ScopeNamespaceDenied')
    await cluster.apply(aScope({ allowedNamespaces: ['bank'] }))
    await expectRows(now, ['bank/c=on'])
    await cluster.remove(aScope({}))
    await expectDegraded('ScopeNamespaceDenied')
    const original = await cluster.run({ known: { ...strict, semantics: 'original' } })
    await expectRows(original, ['bank/c=on'])
    await original.stop()
  })
})

describe('what is judged while something is not followed', () => {
  const labelled = (name: string, labels: object) => ({ kind: 'Namespace', metadata: { name, labels } }) as KubeObject
  it.each([
    {
      lost: 'kollectscopes',
      what: 'a scope that was widened, and its target after it',
      before: [aScope({ allowedNamespaces: ['shop'] }), aTarget({ includedNamespaces: ['shop'] })],
      change: [aScope({ allowedNamespaces: ['shop', 'bank'] }), aTarget({ includedNamespaces: ['shop', 'bank'] })],
    },
    {
      lost: 'namespaces',
      what: 'labels that a namespace got, and the selector that goes by them',
      before: [
        labelled('shop', { tier: 'a', more: 'b' }),
        aTarget({ namespaceSelector: { matchLabels: { tier: 'a' } } }),
      ],
      change: [
        labelled('shop', { tier: 'a', more: 'c' }),
        labelled('bank', { more: 'c' }),
        aScope({ allowedNamespaces: ['shop', 'bank'] }),
        aTarget({ namespaceSelector: { matchLabels: { more: 'c' } } }),
      ],
    },
  ])('takes no row away: $lost, $what', async ({ lost, before, change }) => {
    const line = cuttable(cluster.kube, lost)
    for (const object of before) await cluster.apply(object)
    const now = await run({ informers: inventoryInformers(line.kube, silentLogger) })
    await expectRows(now, ['shop/a=on', 'shop/b=on'])
    await expect.poll(() => isComplete(now.rows)).toBe(true)
    line.cut()
    await expect.poll(() => isComplete(now.rows)).toBe(true)
    for (const object of change) await cluster.apply(object)
    await expectDegraded('ScopeLookupFailed')
    // What is followed goes on meanwhile.
    await cluster.apply(configMap('d'))
    await expect.poll(() => shownRows(now.rows)).toEqual(['shop/a=on', 'shop/b=on', 'shop/d=on'])
    expect(isComplete(now.rows)).toBe(false)
    line.heal()
    const rows = new Set<number>()
    const isOver = async () => {
      rows.add(shownRows(now.rows)?.length ?? 0)
      return isComplete(now.rows)
    }
    await expect.poll(isOver).toBe(true)
    expect(shownRows(now.rows)).toEqual(['bank/c=on', 'shop/a=on', 'shop/b=on', 'shop/d=on'])
    expect(Math.min(...rows)).toBe(3)
  })

  it.each([
    ['late', 700],
    ['silent', 60_000],
  ])('is known anew before it takes rows away, where its watch is %s and nothing shows it', async (_, ms) => {
    await cluster.apply(aScope({ allowedNamespaces: ['shop'] }))
    await cluster.apply(aTarget({ includedNamespaces: ['shop'] }))
    const kube = lagging(cluster.kube, 'kollectscopes', ms)
    const now = await run({ informers: inventoryInformers(kube, silentLogger) })
    await expectRows(now, ['shop/a=on', 'shop/b=on'])
    let least = 2
    const watching = setInterval(() => {
      least = Math.min(least, shownRows(now.rows)?.length ?? 0)
    }, 1)
    try {
      await cluster.apply(aScope({ allowedNamespaces: ['shop', 'bank'] }))
      await cluster.apply(aTarget({ includedNamespaces: ['shop', 'bank'] }))
      await expectRows(now, ['bank/c=on', 'shop/a=on', 'shop/b=on'])
      expect(least).toBe(2)
    } finally {
      clearInterval(watching)
    }
    // What is denied indeed goes.
    await cluster.apply(labelled('attic', {}))
    await cluster.apply(aTarget({ includedNamespaces: ['shop', 'bank', 'attic'] }))
    await expectDegraded('ScopeNamespaceDenied')
    await expect.poll(() => now.rows.state({ namespace: 'shop', name: 'settings' }).kind).toBe('dropped')
    await cluster.remove(labelled('attic', {}))
  })

  it.each([
    ['suspended', () => cluster.apply(aTarget({ includedNamespaces: ['shop'], suspend: true })), 'Suspended'],
    ['without its profile', () => cluster.remove(aProfile()), 'ProfileNotFound'],
  ] as const)(
    'is known anew before what an earlier start brought goes, where the target was %s since',
    async (_, stop, reason) => {
      await cluster.apply(aScope({ allowedNamespaces: ['shop'] }))
      await cluster.apply(aTarget({ includedNamespaces: ['shop'] }))
      const first = await run()
      await expectRows(first, ['shop/a=on', 'shop/b=on'])
      await expect.poll(async () => (await target())?.status).toMatchObject({ collectedCount: 2 })
      await first.stop()
      await stop()
      const now = await run({
        informers: inventoryInformers(lagging(cluster.kube, 'kollectscopes', 60_000), silentLogger),
      })
      await expectDegraded(reason)
      let wasDropped = false
      const watching = setInterval(() => {
        wasDropped ||= now.rows.state({ namespace: 'shop', name: 'settings' }).kind === 'dropped'
      }, 1)
      try {
        await cluster.apply(aScope({ allowedNamespaces: ['shop', 'bank'] }))
        await cluster.apply(aProfile())
        await cluster.apply(aTarget({ includedNamespaces: ['shop', 'bank'], suspend: false }))
        await expectRows(now, ['bank/c=on', 'shop/a=on', 'shop/b=on'])
        expect(wasDropped).toBe(false)
      } finally {
        clearInterval(watching)
      }
    },
  )

  it('does not count a profile as missing that may have been made since', async () => {
    const line = cuttable(cluster.kube, 'kollectprofiles')
    await cluster.apply(aTarget())
    await cluster.apply(aTarget({ profileRef: 'gone' }, 'lost'))
    const now = await run({ informers: inventoryInformers(line.kube, silentLogger) })
    await expectRows(now, ['shop/a=on', 'shop/b=on'])
    await expectDegraded('ProfileNotFound', 'lost')
    line.cut()
    const made = aProfile()
    await cluster.apply({ ...made, metadata: { ...made.metadata, name: 'made' } })
    await cluster.apply(aTarget({ profileRef: 'made' }, 'fresh'))
    await cluster.apply(aTarget({ profileRef: 'made' }))
    for (const name of ['fresh', 'settings']) await expectDegraded('ScopeLookupFailed', name)
    await expect.poll(async () => (await target())?.status).toMatchObject({ effectiveNamespaces: ['shop'] })
    expect(shownRows(now.rows)).toEqual(['shop/a=on', 'shop/b=on'])
    line.heal()
    for (const name of ['fresh', 'settings']) await expect.poll(() => isComplete(now.rows, name)).toBe(true)
    await expectDegraded('ProfileNotFound', 'lost')
  })

  it('holds up nobody who stops while it is listed once more and no answer comes', async () => {
    const lists = new Map<string, number>()
    async function* watch(resource: Resource, options: WatchOptions & { signal: AbortSignal }) {
      const nth = (lists.get(resource.plural) ?? 0) + 1
      lists.set(resource.plural, nth)
      if (nth === 1) yield* cluster.kube.watch(resource, options)
      else await new Promise((resolve) => options.signal.addEventListener('abort', resolve))
    }
    await cluster.apply(aTarget())
    const first = await run()
    await expect.poll(async () => conditionOf(await target(), 'Ready')).toBe('True/Collecting')
    await first.stop()
    const { kube } = cuttable(cluster.kube, '')
    const hanging = new Proxy(kube, { get: (of, field) => (field === 'watch' ? watch : Reflect.get(of, field)) })
    const now = await run({ informers: inventoryInformers(hanging, silentLogger) })
    await expect.poll(() => lists.get('kollectscopes')).toBe(2)
    running = undefined
    const stopped = await Promise.race([now.stop().then(() => true), systemClock.sleep(10_000).then(() => false)])
    expect(stopped).toBe(true)
    // What the first one wrote goes by its like.
    await run()
  })

  it('is gone by once all was followed again: what a scope denies loses its rows', async () => {
    const line = cuttable(cluster.kube, 'namespaces')
    await cluster.apply(aTarget())
    const now = await run({ informers: inventoryInformers(line.kube, silentLogger) })
    await expectRows(now, ['shop/a=on', 'shop/b=on'])
    line.cut()
    await cluster.apply(aScope({ allowedGVKs: [{ version: 'v1', kind: 'Secret' }] }))
    await expectDegraded('ScopeLookupFailed')
    expect(shownRows(now.rows)).toEqual(['shop/a=on', 'shop/b=on'])
    line.heal()
    await expect.poll(() => now.rows.state({ namespace: 'shop', name: 'settings' }).kind).toBe('dropped')
  })
})

describe('a target of the cluster', () => {
  const clusterTarget = (more: object = {}) =>
    ({
      kind: 'KollectClusterTarget',
      metadata: { name: 'settings' },
      spec: {
        profileRef: { name: 'settings', namespace: 'shop' },
        namespaceSelector: {
          matchExpressions: [{ key: 'kubernetes.io/metadata.name', operator: 'In', values: ['shop', 'bank'] }],
        },
        ...more,
      },
    }) as KubeObject

  it('reads the namespaces it selects, apart from a target of a namespace with its name', async () => {
    for (const name of ['shop', 'bank'])
      await cluster.apply({
        kind: 'Namespace',
        metadata: { name, labels: { 'kubernetes.io/metadata.name': name } },
      } as KubeObject)
    await cluster.apply(clusterTarget())
    await cluster.apply(aTarget({ names: ['a'] }))
    const now = await run()
    await expectRows(now, ['bank/c=on', 'shop/a=on', 'shop/b=on'], 'settings', '')
    await expectRows(now, ['shop/a=on'])
    const ready = async () => conditionOf(await cluster.get('KollectClusterTarget', 'settings'), 'Ready')
    await expect.poll(ready).toBe('True/Collecting')
    await cluster.apply({
      kind: 'KollectClusterScope',
      metadata: { name: 'ceiling' },
      spec: { allowedStaticRefNamespaces: ['bank'] },
    } as KubeObject)
    await expect.poll(ready).toBe('False/ScopeNamespaceDenied')
    expect(now.rows.state({ namespace: '', name: 'settings' }).kind).toBe('dropped')
    await expectRows(now, ['shop/a=on'])
  })
})
