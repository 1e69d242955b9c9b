import { expect, it, onTestFinished } from 'vitest'
import type { KubeObject } from '#kube'
import { silentLogger } from '#runtime'
import { ManualClock, settle } from '../../../platform/controller/testing/manual-clock.ts'
import { RowStore } from '../store/index.ts'
import { NO_DEFAULTS } from './compile.ts'
import { TargetEngine } from './engine.ts'
import { ExtractionTimes } from './extraction-time.ts'
import { RowSpaces } from './row-space.ts'
import { isComplete, shownRows, strict } from './testing/cluster.ts'
import { ScriptedCluster } from './testing/scripted-cluster.ts'

const gvk = { version: 'v1', kind: 'Pod' }
const pod = (namespace: string): KubeObject => ({
  metadata: { name: 'a', namespace, uid: `u-${namespace}` },
  mode: 'on',
})

it('reads what a namespace wants apart once its targets are slow, after what others begin with, and nobody else waits for it', async () => {
  const clock = new ManualClock()
  const cluster = new ScriptedCluster()
  const times = new ExtractionTimes(clock)
  const rows = new RowStore(() => undefined)
  const engine = new TargetEngine({
    ...{ kube: cluster.kube, rows, defaults: NO_DEFAULTS, known: strict, watchNamespaces: [] },
    ...{ times, spaces: new RowSpaces(1e6), clock, logger: silentLogger, onChange: () => undefined },
  })
  onTestFinished(() => engine.stop())
  const namespaces = ['slow', ...Array.from({ length: 9 }, (_, i) => `quick-${i}`)]
  const declared = (name: string, namespace: string, spec: object) => ({ name, namespace, annotations: {}, spec })
  const attributes = [{ name: 'mode', path: '{.mode}' }]
  engine.update({
    namespaces: namespaces.map((name) => ({ name, labels: {} })),
    declared: {
      profiles: namespaces.map((namespace) => declared('p', namespace, { targetGVK: gvk, attributes })),
      targets: namespaces.map((namespace) => declared('settings', namespace, { profileRef: 'p' })),
      ...{ clusterTargets: [], scopes: [], clusterScopes: [] },
    } as never, // of the right form, as written here
  })
  await settle()
  expect(cluster.opened.map(({ namespace }) => namespace)).toEqual([undefined])
  const shared = cluster.last

  for (let i = 0; i < 20; i++) times.of('slow').spent(101, {})
  expect(times.of('slow').isLeft).toBe(true)
  await clock.advance(200)
  expect(cluster.opened.map(({ namespace }) => namespace)).toEqual([undefined])
  // In the list that all share it is passed over.
  await shared.give({ items: namespaces.map(pod) }, 'open')
  await clock.advance(200)
  await expect.poll(() => shownRows(rows, 'settings', 'quick-3')).toEqual(['quick-3/a=on'])
  expect([shownRows(rows, 'settings', 'slow'), isComplete(rows, 'settings', 'slow')]).toEqual([[], false])
  const opened = async () => {
    await clock.advance(200)
    return cluster.opened.map(({ namespace }) => namespace)
  }
  await expect.poll(opened).toContain('slow')
  for (const one of cluster.opened.slice(1))
    if (one.namespace === undefined) await one.give({ items: namespaces.map(pod) }, 'open')
  const isRead = async (namespace: string) => {
    await clock.advance(200)
    return isComplete(rows, 'settings', namespace)
  }
  await expect.poll(() => isRead('quick-3')).toBe(true)
  expect(engine.load.kinds).toBe(1)

  // Its own list is read without haste, and by itself.
  await clock.advance(60_000)
  const own = cluster.opened.findLast(({ namespace, isClosed }) => namespace === 'slow' && !isClosed)
  await own?.give({ items: [pod('slow')] }, 'open')
  await expect.poll(() => isRead('slow')).toBe(true)
  expect(shownRows(rows, 'settings', 'slow')).toEqual(['slow/a=on'])
})

it('prepares targets a little at a time, so that others are heard, and what it prepared runs at once', async () => {
  const [clock, cluster] = [new ManualClock(), new ScriptedCluster()]
  const engine = new TargetEngine({
    ...{ kube: cluster.kube, rows: new RowStore(() => undefined), defaults: NO_DEFAULTS, known: strict },
    ...{ times: new ExtractionTimes(clock), spaces: new RowSpaces(1e6), clock, logger: silentLogger },
    ...{ watchNamespaces: [], onChange: () => undefined },
  })
  onTestFinished(() => engine.stop())
  const declared = (name: string, spec: object) => ({ name, namespace: 'shop', annotations: {}, spec })
  const names = Array.from({ length: 300 }, (_, i) => `t${i}`)
  const rule = (name: string) => ({ gvk, matchPolicy: `object.metadata.name != '${name}' && [1, 2, 3].all(a, a > 0)` })
  const world = {
    namespaces: [{ name: 'shop', labels: {} }],
    declared: {
      profiles: [declared('p', { targetGVK: gvk, attributes: [{ name: 'mode', path: '{.mode}' }] })],
      targets: names.map((name) => declared(name, { profileRef: 'p', resourceRules: [rule(name)] })),
      ...{ clusterTargets: [], scopes: [], clusterScopes: [] },
    } as never, // of the right form, as written here
  }
  let [heard, isOver] = [0, false]
  const hear = () => {
    heard++
    if (!isOver) setImmediate(hear)
  }
  setImmediate(hear)
  const began = process.cpuUsage().user
  await engine.prepare(world)
  const prepared = process.cpuUsage().user
  isOver = true
  expect(heard).toBeGreaterThan(2)
  engine.update(world)
  expect(process.cpuUsage().user - prepared).toBeLessThan((prepared - began) / 2)
  await clock.advance(200)
  expect(engine.state({ namespace: 'shop', name: 't299' })).toMatchObject({ isReading: true, activeRules: 1 })
})

it('lists a kind no more often for a namespace that alone wants it and suspends its target again and again', async () => {
  const [clock, cluster] = [new ManualClock(), new ScriptedCluster()]
  cluster.onOpened = (one) => void clock.sleep(10_000).then(() => one.give({ items: [] }, 'open'))
  const engine = new TargetEngine({
    ...{ kube: cluster.kube, rows: new RowStore(() => undefined), defaults: NO_DEFAULTS, known: strict },
    ...{ times: new ExtractionTimes(clock), spaces: new RowSpaces(1e6), clock, logger: silentLogger },
    ...{ watchNamespaces: [], onChange: () => undefined },
  })
  onTestFinished(() => engine.stop())
  const declared = (name: string, spec: object) => ({ name, namespace: 'shop', annotations: {}, spec })
  const world = (suspend: boolean) => ({
    namespaces: [{ name: 'shop', labels: {} }],
    declared: {
      profiles: [declared('p', { targetGVK: gvk, attributes: [{ name: 'mode', path: '{.mode}' }] })],
      targets: [declared('settings', { profileRef: 'p', suspend })],
      ...{ clusterTargets: [], scopes: [], clusterScopes: [] },
    } as never, // of the right form, as written here
  })
  for (let turn = 0; turn < 120; turn++) {
    engine.update(world(turn % 2 === 1))
    await clock.advance(5_000)
  }
  // Each is broken off after five seconds: a tenth of ten minutes, three in advance, and the first.
  expect(cluster.opened.length).toBeLessThanOrEqual(12 + 3 + 1)
  expect(cluster.opened.length).toBeGreaterThan(8)
  engine.update(world(false))
  await clock.advance(70_000)
  expect(engine.state({ namespace: 'shop', name: 'settings' })).toMatchObject({ isComplete: true })
})
