import { describe, expect, it } from 'vitest'
import { type KubeClient, KubeError, type KubeObject } from '#kube'
import { collectTarget, type Target } from './collect-once.ts'

const pod = (name: string, namespace = 'shop', more: object = {}): KubeObject => ({
  metadata: { name, namespace, uid: `uid-${name}` },
  spec: { image: 'web:1' },
  ...more,
})
const target: Target = {
  ...{ title: 'shop/pods', key: { name: 'pods', namespace: 'shop' } },
  spec: { profileRef: 'pods' },
  profile: {
    spec: { targetGVK: { version: 'v1', kind: 'Pod' }, attributes: [{ name: 'image', path: '{.spec.image}' }] },
  },
}
type Pages = readonly (readonly KubeObject[] | KubeError)[]

/** A cluster that gives these pages, by namespace; an error ends a list. */
const cluster = (
  lists: Readonly<Record<string, Pages[]>>,
  served: { plural: string; namespaced: boolean } | null = { plural: 'pods', namespaced: true },
) =>
  ({
    find: async () => served ?? undefined,
    async *list(_: unknown, { namespace = '*' }: { namespace?: string } = {}) {
      const list = lists[namespace]
      if (!list) throw new KubeError('forbidden', `pods may not be listed in ${namespace}`)
      for (const page of (list.length > 1 ? list.shift() : list[0]) ?? []) {
        if (page instanceof KubeError) throw page
        yield { items: page, resourceVersion: '1', next: '' }
      }
    },
  }) as unknown as KubeClient

const collect = (kube: KubeClient, more: Partial<Target> = {}, namespaces: readonly string[] = ['shop']) =>
  collectTarget(
    { ...target, ...more },
    {
      ...{ kube, namespace: undefined, signal: new AbortController().signal, onObjects: () => undefined },
      namespacesFor: async () => namespaces.map((name) => ({ name, labels: {} })),
      ceiling: (reach) => ({ reach }),
    },
  )
const spec = (more: object) => ({ spec: { profileRef: 'pods', ...more } })
const gone = new KubeError('unreachable', 'the cluster is away')

describe('a target', () => {
  it('is collected where all of it was read', async () =>
    expect(await collect(cluster({ shop: [[[pod('a')], [pod('b')]]] }))).toMatchObject({
      state: 'collected',
      failed: 0,
      notes: [],
      rows: [{ name: 'a' }, { name: 'b' }],
    }))

  it('is partial where its list broke off, keeps what came before, and says so', async () =>
    expect(await collect(cluster({ shop: [[[pod('a')], gone]] }))).toMatchObject({
      state: 'partial',
      rows: [{ name: 'a' }],
      notes: [expect.stringContaining('broke off after 1 rows')],
    }))

  it('is unreachable where nothing came', async () =>
    expect(await collect(cluster({ shop: [[gone]] }))).toMatchObject({
      state: 'unreachable',
      rows: [],
      notes: ['namespace shop: the cluster is away'],
    }))

  it('is forbidden where it may be read nowhere, and partial where in some namespaces', async () => {
    expect(await collect(cluster({}))).toMatchObject({ state: 'forbidden', rows: [] })
    const wide = spec({ includedNamespaces: ['shop', 'bank'] })
    expect(await collect(cluster({ shop: [[[pod('a')]]] }), wide, ['shop', 'bank'])).toMatchObject({
      state: 'partial',
      rows: [{ name: 'a' }],
      notes: [expect.stringContaining('namespace bank')],
    })
  })

  it('is absent where the cluster has no such kind', async () =>
    expect(await collect(cluster({}, null))).toMatchObject({
      state: 'absent',
      notes: ['the cluster does not have Pod of v1'],
    }))

  it('is empty, and collected, where there is nothing', async () =>
    expect(await collect(cluster({ shop: [[[]]] }))).toMatchObject({ state: 'collected', rows: [] }))

  it('begins a list anew whose version the server forgot, without rows twice', async () => {
    const expired = new KubeError('expired', 'too old')
    expect(
      await collect(
        cluster({
          shop: [
            [[pod('a')], expired],
            [[pod('a')], [pod('b')]],
          ],
        }),
      ),
    ).toMatchObject({ state: 'collected', rows: [{ name: 'a' }, { name: 'b' }], notes: [] })
  })

  it('is partial where an object has no row, which it names, and keeps the others', async () => {
    const bad = pod('bad', 'shop', { spec: { image: Number.NaN } })
    expect(await collect(cluster({ shop: [[[pod('a'), bad, pod('c')]]] }))).toMatchObject({
      state: 'partial',
      failed: 1,
      rows: [{ name: 'a' }, { name: 'c' }],
      notes: [expect.stringMatching(/^shop\/bad: attribute image: .*NaN/)],
    })
  })

  it('of many namespaces is one list of the cluster, and many where that is forbidden', async () => {
    const many = Array.from({ length: 12 }, (_, i) => `n${i}`)
    const wide = spec({ includedNamespaces: many })
    const all = many.map((namespace) => pod(`p-${namespace}`, namespace))
    expect((await collect(cluster({ '*': [[[...all, pod('x', 'other')]]] }), wide, many)).rows).toHaveLength(12)
    const single = Object.fromEntries(many.map((name, i) => [name, [[[all[i]!]]]]))
    expect(await collect(cluster(single), wide, many)).toMatchObject({ state: 'collected', rows: { length: 12 } })
  })

  it('reads its own namespace where it names none, and nothing of the cluster', async () => {
    const kube = cluster({ shop: [[[pod('a')]]], bank: [[[pod('b', 'bank')]]] })
    expect(await collect(kube, {}, ['shop', 'bank'])).toMatchObject({ state: 'collected', rows: [{ name: 'a' }] })
  })

  it('of a kind without namespaces wants the namespace they count as of', async () => {
    const node = { metadata: { name: 'n1', uid: 'u' }, spec: { image: 'x' } } as KubeObject
    const kube = cluster({ '*': [[[node]]] }, { plural: 'nodes', namespaced: false })
    expect(await collect(kube)).toMatchObject({ rows: [], notes: [expect.stringContaining('includedNamespaces')] })
    expect(await collect(kube, spec({ includedNamespaces: ['default'] }), ['default'])).toMatchObject({
      rows: [{ name: 'n1', namespace: '' }],
    })
  })

  it('is refused, suspended or unusable without a question', async () => {
    const kube = cluster({ shop: [[[pod('a')]]] })
    expect(await collect(kube, spec({ suspend: true }))).toMatchObject({ state: 'suspended', rows: [] })
    const profile = { spec: { ...target.profile.spec, attributes: [{ name: 'x', path: '.spec' }] } }
    expect(await collect(kube, { profile })).toMatchObject({
      state: 'invalid',
      notes: [expect.stringContaining('spec.attributes[0].path')],
    })
  })
})
