import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { builtInSchema } from '../schema/index.ts'
import { equalJson } from '../schema/json.ts'
import { applyJsonPatch, applyMergePatch, applyStrategicPatch, PatchError } from './index.ts'

const statusOf = (patch: () => unknown): number | undefined => {
  try {
    patch()
    return undefined
  } catch (error) {
    return error instanceof PatchError ? error.status : Number.NaN
  }
}

describe('applyJsonPatch', () => {
  it.each([
    ['adds a field', { a: 1 }, [{ op: 'add', path: '/b', value: 2 }], { a: 1, b: 2 }],
    ['inserts into a list', { a: [1, 3] }, [{ op: 'add', path: '/a/1', value: 2 }], { a: [1, 2, 3] }],
    ['appends to a list', { a: [1] }, [{ op: 'add', path: '/a/-', value: 2 }], { a: [1, 2] }],
    ['removes', { a: { b: 1, c: 2 } }, [{ op: 'remove', path: '/a/b' }], { a: { c: 2 } }],
    ['replaces the document', { a: 1 }, [{ op: 'replace', path: '', value: { b: 1 } }], { b: 1 }],
    ['moves', { a: 1, b: {} }, [{ op: 'move', from: '/a', path: '/b/c' }], { b: { c: 1 } }],
    ['copies', { a: [1] }, [{ op: 'copy', from: '/a/0', path: '/b' }], { a: [1], b: 1 }],
    [
      'reads escapes in order',
      { 'a/b': 1, '~1': 2 },
      [
        { op: 'test', path: '/a~1b', value: 1 },
        { op: 'remove', path: '/~01' },
      ],
      { 'a/b': 1 },
    ],
    [
      'takes __proto__ for data',
      {},
      [{ op: 'add', path: '/__proto__', value: { bad: 1 } }],
      JSON.parse('{"__proto__":{"bad":1}}'),
    ],
    ['replaces a missing field, as the Kubernetes API does', {}, [{ op: 'replace', path: '/a', value: 1 }], { a: 1 }],
  ])('%s', (_, doc, ops, expected) => {
    expect(equalJson(applyJsonPatch(doc, ops), expected)).toBe(true)
    expect(({} as { bad?: number }).bad).toBeUndefined()
  })

  it.each([
    ['what is no list', { op: 'add' }, 400],
    ['an unknown operation', [{ op: 'push', path: '/a' }], 400],
    ['an operation without a value', [{ op: 'add', path: '/a' }], 400],
    ['a malformed path', [{ op: 'remove', path: 'a' }], 400],
    ['a broken escape', [{ op: 'remove', path: '/a~2' }], 400],
    ['a test that fails', [{ op: 'test', path: '/a', value: 2 }], 422],
    ['removing what is not there', [{ op: 'remove', path: '/nope' }], 422],
    ['a place outside of a list', [{ op: 'add', path: '/l/9', value: 1 }], 422],
    ['a list index with a leading zero', [{ op: 'replace', path: '/l/00', value: 1 }], 422],
    ['an inherited field', [{ op: 'copy', from: '/toString', path: '/x' }], 422],
    ['moving a value into itself', [{ op: 'move', from: '/m', path: '/m/x' }], 422],
    [
      'more operations than anyone needs',
      Array.from({ length: 10_001 }, () => ({ op: 'test', path: '/a', value: 1 })),
      413,
    ],
    [
      'copies that grow without end',
      Array.from({ length: 40 }, () => ({ op: 'copy', from: '/m', path: '/m/x' })).flatMap((op, at) => [
        op,
        { ...op, path: `/m/y${at}` },
      ]),
      413,
    ],
  ])('refuses %s', (_, ops, status) => {
    expect(statusOf(() => applyJsonPatch({ a: 1, l: [1], m: { text: 'x'.repeat(1000) } }, ops))).toBe(status)
  })

  it('applies all operations or none, and leaves the document alone', () => {
    const doc = { a: [1, { b: 2 }] }
    const before = JSON.stringify(doc)
    expect(
      statusOf(() =>
        applyJsonPatch(doc, [
          { op: 'add', path: '/a/1/c', value: 3 },
          { op: 'remove', path: '/no' },
        ]),
      ),
    ).toBe(422)
    applyJsonPatch(doc, [{ op: 'remove', path: '/a/1/b' }])
    expect(JSON.stringify(doc)).toBe(before)
  })

  it('undoes what it did: take out and put back, there and back again, one value and the old one', () => {
    const json = fc
      .dictionary(fc.string(), fc.jsonValue({ maxDepth: 4 }), { minKeys: 1 })
      .map((value) => JSON.parse(JSON.stringify(value)))
    const pick = json.chain((doc) => fc.tuple(fc.constant(doc), fc.constantFrom(...pathsIn(doc))))
    fc.assert(
      fc.property(pick, fc.jsonValue(), ([doc, path], value) => {
        const old = path.reduce((part: unknown, name) => (part as Record<string, unknown>)[name], doc)
        const at = path.map((name) => `/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')
        const same = (ops: object[]) => expect(equalJson(applyJsonPatch(doc, ops), doc)).toBe(true)
        same([
          { op: 'remove', path: at },
          { op: 'add', path: at, value: old },
        ])
        same([
          { op: 'replace', path: at, value },
          { op: 'test', path: at, value },
          { op: 'replace', path: at, value: old },
        ])
        const wrapped = { doc, shelf: {} }
        const there = { op: 'move', from: `/doc${at}`, path: '/shelf/x' }
        const back = { op: 'move', from: '/shelf/x', path: `/doc${at}` }
        expect(equalJson(applyJsonPatch(wrapped, [there, back]), wrapped)).toBe(true)
      }),
    )
  })
})

function pathsIn(value: unknown): string[][] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, item]) => [[name], ...pathsIn(item).map((rest) => [name, ...rest])])
}

describe('applyMergePatch', () => {
  // The table of RFC 7386, appendix A.
  it.each([
    [{ a: 'b' }, { a: 'c' }, { a: 'c' }],
    [{ a: 'b' }, { b: 'c' }, { a: 'b', b: 'c' }],
    [{ a: 'b' }, { a: null }, {}],
    [{ a: 'b', b: 'c' }, { a: null }, { b: 'c' }],
    [{ a: ['b'] }, { a: 'c' }, { a: 'c' }],
    [{ a: 'c' }, { a: ['b'] }, { a: ['b'] }],
    [{ a: { b: 'c' } }, { a: { b: 'd', c: null } }, { a: { b: 'd' } }],
    [{ a: [{ b: 'c' }] }, { a: [1] }, { a: [1] }],
    [
      ['a', 'b'],
      ['c', 'd'],
      ['c', 'd'],
    ],
    [{ a: 'b' }, ['c'], ['c']],
    [{ a: 'foo' }, null, null],
    [{ a: 'foo' }, 'bar', 'bar'],
    [{ e: null }, { a: 1 }, { e: null, a: 1 }],
    [[1, 2], { a: 'b', c: null }, { a: 'b' }],
    [{}, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
  ])('%j patched with %j is %j', (doc, patch, expected) => {
    expect(applyMergePatch(doc, patch)).toEqual(expected)
  })

  it('says the same when it is applied twice, and never stores a null of the patch', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.dictionary(fc.string(), fc.jsonValue()), (doc, patch) => {
        const once = applyMergePatch(doc, patch)
        expect(equalJson(applyMergePatch(once, patch), once)).toBe(true)
        for (const [name, value] of Object.entries(patch))
          if (value === null) expect(Object.hasOwn(once as object, name)).toBe(false)
      }),
    )
  })

  it('refuses a patch nested without end', () => {
    let patch: object = {}
    for (let depth = 0; depth < 2000; depth++) patch = { a: patch }
    expect(statusOf(() => applyMergePatch({}, patch))).toBe(413)
  })
})

describe('applyStrategicPatch', () => {
  const schema = builtInSchema('', 'v1', 'Pod')
  const pod = {
    metadata: { finalizers: ['a', 'b'], labels: { x: '1', y: '2' } },
    spec: {
      containers: [
        {
          name: 'web',
          image: 'one',
          env: [
            { name: 'A', value: '1' },
            { name: 'B', value: '2' },
          ],
        },
        { name: 'side', image: 'two' },
      ],
      tolerations: [{ key: 'k' }],
    },
  }
  const patched = (patch: object) => applyStrategicPatch(pod, patch, schema) as typeof pod
  const names = (list: readonly { name: string }[]) => list.map(({ name }) => name)

  it('merges items by their key and leaves the others', () => {
    const { spec } = patched({ spec: { containers: [{ name: 'side', image: 'three' }] } })
    expect(spec.containers).toEqual([pod.spec.containers[0], { name: 'side', image: 'three' }])
  })
  it('merges lists within items of lists', () => {
    const { spec } = patched({ spec: { containers: [{ name: 'web', env: [{ name: 'B', value: '3' }] }] } })
    expect(spec.containers[0]?.env).toEqual([
      { name: 'A', value: '1' },
      { name: 'B', value: '3' },
    ])
  })
  it('deletes an item', () => {
    expect(names(patched({ spec: { containers: [{ name: 'web', $patch: 'delete' }] } }).spec.containers)).toEqual([
      'side',
    ])
  })
  it('replaces a list or a map when asked', () => {
    expect(patched({ spec: { containers: [{ $patch: 'replace' }, { name: 'new' }] } }).spec.containers).toEqual([
      { name: 'new' },
    ])
    expect(patched({ metadata: { labels: { $patch: 'replace', z: '3' } } }).metadata.labels).toEqual({ z: '3' })
    expect(patched({ metadata: { labels: { $patch: 'delete' } } }).metadata.labels).toEqual({})
  })
  it('replaces a list without a key', () => {
    expect(patched({ spec: { tolerations: [{ key: 'other' }] } }).spec.tolerations).toEqual([{ key: 'other' }])
  })
  it('joins lists of words, and takes words out', () => {
    const { metadata } = patched({ metadata: { finalizers: ['c', 'a'], '$deleteFromPrimitiveList/finalizers': ['b'] } })
    expect([...metadata.finalizers].sort()).toEqual(['a', 'c'])
  })
  it('orders items as asked, and keeps what the patch does not know beside its neighbour', () => {
    const order = patched({ spec: { '$setElementOrder/containers': [{ name: 'side' }, { name: 'web' }] } })
    expect(names(order.spec.containers)).toEqual(['side', 'web'])
  })
  it('keeps only the named keys', () => {
    const { metadata } = patched({ metadata: { labels: { $retainKeys: ['y', 'z'], z: '3' } } })
    expect(metadata.labels).toEqual({ y: '2', z: '3' })
  })
  it.each([
    ['an item without its key', { spec: { containers: [{ image: 'x' }] } }, 422],
    ['an unknown directive', { metadata: { $patch: 'explode' } }, 400],
    ['keys to keep that lack what is set', { metadata: { labels: { $retainKeys: ['y'], z: '3' } } }, 400],
    [
      'items in another order than it asks for',
      { spec: { containers: [{ name: 'web' }], '$setElementOrder/containers': [{ name: 'side' }] } },
      400,
    ],
    ['what is no object', [], 400],
  ])('refuses %s', (_, patch, status) => {
    expect(statusOf(() => applyStrategicPatch(pod, patch, schema))).toBe(status)
  })
  it('leaves the object alone', () => {
    const before = JSON.stringify(pod)
    patched({
      metadata: { labels: { x: null } },
      spec: { containers: [{ name: 'web', env: null, $retainKeys: ['name'] }] },
    })
    expect(JSON.stringify(pod)).toBe(before)
  })
})
