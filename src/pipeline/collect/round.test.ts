import { describe, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import type { KubeError, KubeObject } from '#kube'
import { parseClusterName } from '#model'
import { type Logger, silentLogger } from '#runtime'
import { clusterRoleFor, collectors, memberRoleYaml } from './index.ts'
import { allPods, nodeCollector } from './nodes.ts'
import { collectRound, type RoundOptions } from './round.ts'
import { Rounds } from './rounds.ts'
import { type FakeCluster, fakeCluster, kubeError } from './testing/fake-cluster.ts'
import type { Collector } from './types.ts'

const plain: NonNullable<FakeCluster['objects']> = {
  nodes: [{ metadata: { name: 'n1' } }],
  pods: [],
  namespaces: [],
  deployments: [],
}

function round(cluster: FakeCluster, over: Partial<RoundOptions> = {}) {
  return collectRound({
    kube: fakeCluster(cluster),
    cluster: parseClusterName('west'),
    collectors,
    source: 'pull',
    signal: new AbortController().signal,
    ...over,
  })
}

describe('collectRound', () => {
  it('makes one part per type of snapshot, each with its outcome', async () => {
    const batch = await round({ objects: plain })
    expect(batch).toMatchObject({ cluster: 'west', sequence: 0, source: 'pull' })
    expect(batch.failure).toBeUndefined()
    expect(Object.fromEntries(batch.parts.map(({ type, outcome }) => [type, outcome]))).toEqual({
      node: 'complete',
      podSummary: 'complete',
      cluster: 'complete',
      namespace: 'complete',
      deployment: 'complete',
      operator: 'absent',
      clusterOperator: 'absent',
    })
  })

  it.each([
    ['forbidden', 'forbidden'],
    ['unauthorized', 'forbidden'],
    ['not_found', 'absent'],
    ['timeout', 'unreachable'],
    ['server', 'unreachable'],
    ['throttled', 'unreachable'],
    ['protocol', 'unreachable'],
  ] as const)('turns a collector that ended %s into a part that is %s and says why', async (reason, outcome) => {
    const batch = await round({ objects: { ...plain, deployments: kubeError(reason, 'because') } })
    expect(batch.failure).toBeUndefined()
    const part = batch.parts.find(({ type }) => type === 'deployment')
    expect(part).toMatchObject({ outcome, code: `kube_${reason}`, message: 'because', collector: 'deployments' })
  })

  it.each(['ping', 'nodes', 'deployments'] as const)(
    'says nothing of the cluster when we closed the client at %s',
    async (where) => {
      const closed = kubeError('closed', 'the client is closed')
      const cluster = where === 'ping' ? { ping: closed, objects: plain } : { objects: { ...plain, [where]: closed } }
      await expect(round(cluster)).rejects.toBe(closed)
    },
  )

  it('fails with the documented words when the connection test fails, and reads nothing', async () => {
    const batch = await round({ ping: kubeError('unreachable', 'nothing listens there'), objects: plain })
    expect(batch).toMatchObject({
      parts: [],
      failure: { code: 'kube_unreachable', message: 'connection test failed: nothing listens there' },
    })
  })

  it.each(['nodes', 'pods'])('fails with the documented words when %s cannot be read', async (plural) => {
    const batch = await round({ objects: { ...plain, [plural]: kubeError('server', 'broken') } })
    expect(batch).toMatchObject({
      parts: [],
      failure: { code: 'kube_server', message: 'failed to get node metrics: broken' },
    })
  })

  it.each([
    [['nodes'], { node: 'forbidden', podSummary: 'complete' }],
    [['pods'], { node: 'complete', podSummary: 'forbidden' }],
    [['nodes', 'pods'], { node: 'forbidden', podSummary: 'forbidden' }],
  ])('reads the others where %j may not be read, and says the refusal', async (refused, outcomes) => {
    const refusals = refused.map((plural) => [plural, kubeError('forbidden', 'no role')] as const)
    const batch = await round({ objects: { ...plain, ...Object.fromEntries(refusals) } })
    const failure = { code: 'kube_forbidden', message: 'failed to get node metrics: no role' }
    expect(batch.failure).toEqual(refused.includes('nodes') ? failure : undefined)
    expect(Object.fromEntries(batch.parts.map(({ type, outcome }) => [type, outcome]))).toMatchObject({
      ...outcomes,
      cluster: 'complete',
      namespace: 'complete',
      deployment: 'complete',
    })
  })

  it('reads what it may where namespaces may not be listed, in the test of the connection and otherwise', async () => {
    const refusal = kubeError('forbidden', 'no role')
    const batch = await round({ ping: refusal, objects: { ...plain, namespaces: refusal } })
    expect(batch.failure).toBeUndefined()
    expect(Object.fromEntries(batch.parts.map(({ type, outcome }) => [type, outcome]))).toMatchObject({
      node: 'complete',
      podSummary: 'complete',
      namespace: 'forbidden',
      deployment: 'complete',
    })
  })

  it('ends after its limit with what it has: a list without end keeps nothing else from being told', async () => {
    const forever = (plural: string) => ({
      objects: plain,
      onPage: (asked: string, _: number, signal: AbortSignal | undefined) =>
        asked === plural
          ? new Promise<void>((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason)))
          : undefined,
    })
    const batch = await round(forever('deployments'), { limitMs: 20 })
    expect(batch.failure).toBeUndefined()
    expect(batch.parts.find(({ type }) => type === 'node')?.outcome).toBe('complete')
    expect(batch.parts.find(({ type }) => type === 'deployment')).toMatchObject({
      outcome: 'unreachable',
      code: 'kube_timeout',
      message: expect.stringMatching(/not read to its end within the 0\.02 s of a round/) as string,
    })
    expect((await round(forever('pods'), { limitMs: 20 })).failure).toMatchObject({
      code: 'kube_timeout',
      message: expect.stringMatching(/^failed to get node metrics: was not read to its end/) as string,
    })
  })

  it('cancels the others when nodes cannot be read', async () => {
    let cancelled = false
    const batch = await round({
      objects: { ...plain, nodes: kubeError('server') },
      onPage: (plural, _, signal) => {
        if (plural !== 'deployments') return
        return new Promise((_, reject) => {
          signal?.addEventListener('abort', () => {
            cancelled = true
            reject(signal.reason as Error)
          })
        })
      },
    })
    expect(cancelled).toBe(true)
    expect(batch.failure?.code).toBe('kube_server')
  })

  it('says nothing at all when it is ended from outside', async () => {
    const end = new AbortController()
    const onPage = () => end.abort(new Error('cluster is gone'))
    await expect(round({ objects: plain, onPage }, { signal: end.signal })).rejects.toThrow('cluster is gone')
  })

  it('makes a read once that several collectors want, and lets none of them hinder the others', async () => {
    const asked: string[] = []
    const podNames: string[] = []
    const names: Collector = {
      name: 'pod names',
      types: ['namespace'],
      reads: [allPods],
      critical: false,
      open: () => ({
        take(_, event) {
          if (event.type === 'changed') podNames.push((event.after as KubeObject).metadata.name)
          if (podNames.length === 2) throw new TypeError('no more of this')
          return true
        },
        parts: () => ({ namespace: [] }),
      }),
    }
    const pods = ['a', 'b', 'c'].map((name) => ({ metadata: { name, namespace: 'shop' } }))
    const objects = { ...plain, pods }
    const batch = await round(
      { objects, onPage: (plural) => void asked.push(plural) },
      { collectors: [nodeCollector, names] },
    )
    expect(asked.filter((plural) => plural === 'pods')).toEqual(['pods', 'pods'])
    expect(batch.parts.find(({ type }) => type === 'podSummary')).toMatchObject({ items: [{ counts: { total: 3 } }] })
    expect(podNames).toEqual(['a', 'b'])
    expect(batch.parts.at(-1)).toMatchObject({ outcome: 'unreachable', message: 'no more of this' })
  })

  it('survives a collector with a bug, and names it', async () => {
    const broken = {
      ...collectors[2]!,
      open: () => {
        throw new TypeError('x is not a function')
      },
    }
    const batch = await round({ objects: plain }, { collectors: [collectors[0]!, broken] })
    expect(batch.parts.at(-1)).toMatchObject({ type: 'namespace', outcome: 'unreachable', code: 'unexpected' })
  })

  it('takes its turn for reading only, not for waiting on the connection test', async () => {
    const order: string[] = []
    const onPage = (plural: string) => {
      if (plural === 'nodes') order.push('read')
    }
    const turn = <T>(read: () => Promise<T>) => {
      order.push('turn')
      return read()
    }
    await round({ objects: plain, onPage }, { turn })
    expect(order).toEqual(['turn', 'read'])
  })
})

describe('Rounds', () => {
  it('reads again what is due, what did not get through, and what was not kept', async () => {
    const objects: Record<string, readonly KubeObject[] | KubeError> = { ...plain, subscriptions: [] }
    const rounds = new Rounds({ cluster: parseClusterName('west'), collectors, source: 'push', logger: silentLogger })
    const times = { intervalMs: 30_000, timeoutMs: 5_000, operatorScanIntervalMs: 300_000 }
    const readsOperators = async (at: number, isKept = true) => {
      const kube = fakeCluster({ objects })
      const batch = await rounds.collect({ kube, times, at, signal: new AbortController().signal })
      if (isKept) rounds.kept(batch, at)
      expect(batch.parts.some(({ type }) => type === 'node')).toBe(true)
      return batch.parts.some(({ type }) => type === 'operator')
    }
    expect(await readsOperators(0, false)).toBe(true)
    objects.subscriptions = kubeError('server')
    expect(await readsOperators(30_000)).toBe(true)
    objects.subscriptions = []
    expect(await readsOperators(60_000)).toBe(true)
    expect(await readsOperators(344_000)).toBe(false)
    expect(await readsOperators(346_000), 'the round nearest to its time').toBe(true)
  })

  it('names a few of the quantities that could not be read, cut', async () => {
    const capacity = { cpu: 'x'.repeat(100) }
    const nodes = Array.from({ length: 9 }, (_, i) => ({
      metadata: { name: `n${i}` },
      status: { capacity: { cpu: `${i}-${capacity.cpu}` } },
    }))
    const warned: unknown[] = []
    const logger = { ...silentLogger, warn: (facts: unknown) => warned.push(facts) } as unknown as Logger
    const rounds = new Rounds({ cluster: parseClusterName('west'), collectors, source: 'pull', logger })
    const times = { intervalMs: 30_000, timeoutMs: 5_000, operatorScanIntervalMs: 300_000 }
    const kube = fakeCluster({ objects: { ...plain, nodes } })
    await rounds.collect({ kube, times, at: 0, signal: new AbortController().signal })
    const { quantities } = warned[0] as { readonly quantities: readonly string[] }
    expect(quantities.map(({ length }) => length)).toEqual([40, 40, 40, 40, 40])
  })
})

describe('clusterRoleFor', () => {
  it('grants get and list of exactly what the collectors read, and watch of what is followed', () => {
    const followed = (group: string, ...names: readonly string[]) => ({
      ...{ apiGroups: [group], resources: names, verbs: ['get', 'list', 'watch'] },
    })
    const polled = (group: string, ...names: readonly string[]) => ({
      ...{ apiGroups: [group], resources: names, verbs: ['get', 'list'] },
    })
    expect(clusterRoleFor(collectors)).toEqual([
      followed('', 'namespaces', 'nodes', 'pods'),
      followed('apps', 'deployments'),
      polled('config.openshift.io', 'clusterversions'),
      followed('config.openshift.io', 'clusteroperators'),
      polled('metrics.k8s.io', 'nodes'),
      followed('operators.coreos.com', 'clusterserviceversions', 'subscriptions'),
      polled('route.openshift.io', 'routes'),
    ])
  })

  it('is written as a stream of objects that kubectl applies', () => {
    const kinds = parseAllDocuments(memberRoleYaml(collectors)).map(
      (document) => (document.toJS() as { kind: string }).kind,
    )
    expect(kinds).toEqual(['Namespace', 'ServiceAccount', 'ClusterRole', 'ClusterRoleBinding', 'Secret'])
  })
})
