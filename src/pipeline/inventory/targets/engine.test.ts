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

it('reads what a namespace wants apart, once its targets used up their time, and nobody else waits for it', async () => {
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

  times.of('slow').spent(10_000, {})
  await clock.advance(200)
  expect(cluster.opened.map(({ namespace }) => namespace)).toEqual([undefined, 'slow'])
  // In the list that all share it is passed over.
  await shared.give({ items: namespaces.map(pod) }, 'open')
  await clock.advance(200)
  expect(shownRows(rows, 'settings', 'quick-3')).toEqual(['quick-3/a=on'])
  expect([shownRows(rows, 'settings', 'slow'), isComplete(rows, 'settings', 'slow')]).toEqual([[], false])
  await cluster.last.give({ items: namespaces.map(pod) }, 'open')
  await clock.advance(200)
  expect([isComplete(rows, 'settings', 'quick-3'), engine.load.kinds]).toEqual([true, 1])

  // Its own list is read without haste, and by itself.
  await clock.advance(60_000)
  const own = cluster.opened.findLast(({ namespace, isClosed }) => namespace === 'slow' && !isClosed)
  await own?.give({ items: [pod('slow')] }, 'open')
  await clock.advance(200)
  expect([shownRows(rows, 'settings', 'slow'), isComplete(rows, 'settings', 'slow')]).toEqual([['slow/a=on'], true])
})
