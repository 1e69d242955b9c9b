import fc from 'fast-check'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { cpuMs } from '../../../test/cpu.ts'
import { compileProfile, type ProfileSpec } from './profile.ts'
import { canonicalJson } from './row.ts'

const deployment = {
  metadata: { name: 'web', namespace: 'shop', uid: 'u1', labels: { app: 'web', 'app.kubernetes.io/name': 'shop' } },
  spec: {
    replicas: 3,
    empty: null,
    list: ['only'],
    template: {
      spec: {
        containers: [
          { name: 'a', image: 'one', ports: [{ containerPort: 80 }] },
          { name: 'b', image: 'two' },
        ],
      },
    },
  },
}
const targetGVK = { group: 'apps', version: 'v1', kind: 'Deployment' }
const compiled = (attributes: NonNullable<ProfileSpec['attributes']>, more: Partial<ProfileSpec> = {}) => {
  const { extractor, faults } = compileProfile({ spec: { targetGVK, attributes, ...more } })
  if (!extractor) throw new Error(JSON.stringify(faults))
  return extractor
}
const valueAt = (path: string, more: object = {}, object: unknown = deployment): unknown => {
  const { row, failure } = compiled([{ name: 'x', path, ...more }]).row(object)
  return failure ? `failed: ${failure.message}` : row.attributes.x
}
const faultOf = (path: string) =>
  compileProfile({ spec: { targetGVK, attributes: [{ name: 'x', path }] } }).faults?.[0]?.message

describe('a row', () => {
  it('says which object it is of, and what the profile asks', () => {
    const extractor = compiled([
      { name: 'image', path: '{.spec.template.spec.containers[*].image}' },
      { name: 'wanted', path: 'cel:object.spec.replicas * 2' },
    ])
    expect(extractor.row(deployment)).toEqual({
      row: {
        namespace: 'shop',
        name: 'web',
        group: 'apps',
        version: 'v1',
        kind: 'Deployment',
        uid: 'u1',
        attributes: { image: ['one', 'two'], wanted: 6 },
      },
    })
  })

  it.each([
    ['{.spec.replicas}', 3],
    ['$.spec.replicas', 3],
    ['{ .spec.replicas }', 3],
    ["{.metadata.labels['app\\.kubernetes\\.io/name']}", 'shop'],
    ['{.metadata.labels.app\\.kubernetes\\.io/name}', 'shop'],
    ['{.spec.list[*]}', 'only'],
    ['{.spec.template.spec.containers[?(@.name=="b")].image}', 'two'],
    ['{.spec.template.spec.containers[-1].image}', 'two'],
    ['{..containerPort}', 80],
    ['{.spec.template.spec.containers}{.metadata.name}', deployment.spec.template.spec.containers],
    ['{.spec.missing.deeper}', null],
    ['{.spec.empty}', null],
    ['{.spec.missing[0].deeper}', null],
    ['{.spec.empty[0]}', null],
    ['{.spec.template.spec.containers[5].image}', expect.stringContaining('failed: an index is beyond the end')],
    ['{.metadata.name[0]}', expect.stringContaining('failed: an index')],
    ['cel:object.spec.missing', 'failed: No such key: missing'],
    ['cel:has(object.spec.missing)', false],
    ['cel:object.spec.replicas > 2 && object.metadata.name == "web"', true],
  ])('%s gives %j', (path, value) => expect(valueAt(path)).toEqual(value))

  it('is late where the machine was slow, also where an attribute is optional', () => {
    const list = '[1,2,3,4,5,6,7,8,9]'
    const path = `cel:${list}.all(a, ${list}.all(b, ${list}.all(c, ${list}.all(d, a + b + c + d > 0))))`
    const extractor = compiled([{ name: 'x', path, optional: true }])
    expect(extractor.row(deployment).row?.attributes).toEqual({ x: true })
    let now = 0
    vi.spyOn(performance, 'now').mockImplementation(() => (now += 100))
    onTestFinished(() => void vi.restoreAllMocks())
    expect(extractor.row(deployment).failure).toMatchObject({ attribute: 'x', isLate: true })
  })

  it('leaves out what is absent or fails where an attribute is optional', () => {
    const optional = [
      { name: 'a', path: '{.spec.missing}', optional: true },
      { name: 'b', path: '{.spec.list[7]}', optional: true },
      { name: 'c', path: 'cel:object.nope', optional: true },
    ]
    expect(compiled(optional).row(deployment).row?.attributes).toEqual({})
  })

  it('keeps a list of one a list where the attribute is declared as one', () => {
    expect(valueAt('{.spec.list[*]}', { type: 'list' })).toEqual(['only'])
    expect(valueAt('{.spec.replicas}', { type: 'list' })).toEqual([3])
    expect(valueAt('{.spec.missing}', { type: 'list' })).toBeNull()
  })

  it('has no row where a required attribute fails, and names it', () => {
    const { failure } = compiled([
      { name: 'ok', path: '{.metadata.name}' },
      { name: 'port', path: '{.spec.list[3]}' },
    ]).row(deployment)
    expect(failure).toEqual({
      attribute: 'port',
      message: 'an index is beyond the end of a list, or meets what is no list',
    })
  })

  it.each([[undefined], [null], [3], ['x'], [[]], [{}], [{ metadata: {} }], [{ metadata: { name: 'x' } }]])(
    'says what is missing of %j',
    (object) => expect(compiled([]).row(object).failure?.message).toMatch(/^it /),
  )
})

describe('a path', () => {
  it.each([
    ['.metadata.name', /without braces .* write \{\.metadata\.name\}/],
    ['metadata.name', /write \{\.metadata\.name\}/],
    ['object.spec', /write cel:object\.spec/],
    ['object["spec"]', /write cel:/],
    ['name: {.metadata.name}', /leave it out/],
    ['{.a', /not closed/],
    ['{}', /nothing between/],
    ['{range .items[*]}{.x}{end}', /range/],
    ['{.a[}', /./],
    ['cel:', /./],
    ['cel:object.', /./],
    ['cel:nope(object)', /no matching overload/],
    ['cel:1 + "a"', /no such overload/],
    ['cel:variable', /Unknown variable/],
    ['helm:release.', /write a field/],
    ['helm:release.manifest', /never given/],
    ['helm:release.chart.templates', /never given/],
  ])('%s is refused with a reason', (path, reason) => expect(faultOf(path)).toMatch(reason))

  it('is refused together with every other mistake of the profile', () => {
    const attributes = ['.a', '{.b}', 'cel:(', 'object.c'].map((path, i) => ({ name: `a${i}`, path }))
    const { faults } = compileProfile({
      spec: { targetGVK, attributes, export: { mode: 'Resource', prune: { jsonPointers: ['x', '/a~2'] } } },
    })
    expect(faults?.map(({ path }) => path)).toEqual([
      'spec.attributes[0].path',
      'spec.attributes[2].path',
      'spec.attributes[3].path',
      'spec.export.prune.jsonPointers[0]',
      'spec.export.prune.jsonPointers[1]',
    ])
  })

  it('of several expressions counts by its first, and warns', () => {
    expect(compiled([{ name: 'x', path: '{.a}{.b}' }]).warnings).toEqual([
      { path: 'spec.attributes[0].path', message: expect.stringContaining('only the first') },
    ])
  })
})

describe('a whole object', () => {
  const full = {
    ...deployment,
    metadata: {
      ...deployment.metadata,
      resourceVersion: '7',
      managedFields: [{}],
      annotations: { a: '1', 'kubectl.kubernetes.io/last-applied-configuration': '{}' },
    },
    status: { ready: 2 },
  }
  const resourceOf = (more: object) =>
    compiled([], { export: { mode: 'Resource', ...more } }).row(full).row?.attributes.resource

  it.each([
    ['SpecAndStatus', ['apiVersion', 'kind', 'spec', 'status']],
    ['SpecOnly', ['apiVersion', 'kind', 'spec']],
    ['StatusOnly', ['apiVersion', 'kind', 'status']],
    ['MetadataOnly', ['apiVersion', 'kind', 'metadata']],
    ['All', ['apiVersion', 'kind', 'metadata', 'spec', 'status']],
  ])('of %s has these parts', (include, parts) =>
    expect(Object.keys(resourceOf({ include }) as object).sort()).toEqual(parts),
  )

  it('is without what the row carries, and without what changes for nothing', () =>
    expect(resourceOf({ include: 'MetadataOnly' })).toEqual({
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { labels: deployment.metadata.labels, annotations: { a: '1' } },
    }))

  it('keeps both where the profile says so', () =>
    expect(resourceOf({ include: 'MetadataOnly', dedupeIdentity: false, prune: { defaults: false } })).toMatchObject({
      metadata: { name: 'web', uid: 'u1', resourceVersion: '7', managedFields: [{}] },
    }))

  it('loses what pointers and paths name, and nothing by those that lead nowhere', () => {
    const jsonPointers = [
      '/spec/template/spec/containers/0',
      '/spec/none',
      '/spec/list/-',
      '/spec/list/7',
      '/metadata/labels/app.kubernetes.io~1name',
      '/status/ready/x',
    ]
    const jsonPaths = [
      '.spec.replicas',
      '{.metadata.annotations}',
      '.spec.template.spec.containers[*].image',
      '.spec.list[9]',
    ]
    const left = resourceOf({ include: 'All', prune: { jsonPointers, jsonPaths } })
    expect(left).toEqual({
      ...{ apiVersion: 'apps/v1', kind: 'Deployment', status: { ready: 2 }, metadata: { labels: { app: 'web' } } },
      spec: { empty: null, list: ['only'], template: { spec: { containers: [null, { name: 'b', image: 'two' }] } } },
    })
  })

  it('does not change the object itself', () => {
    const before = JSON.stringify(full)
    resourceOf({ include: 'All', prune: { jsonPointers: ['/spec/template'] } })
    expect(JSON.stringify(full)).toBe(before)
  })

  it('stands under the name that the profile gives', () =>
    expect(compiled([], { export: { mode: 'Resource', as: 'manifest' } }).row(full).row?.attributes).toHaveProperty(
      'manifest.kind',
      'Deployment',
    ))

  it('hides further names of the profile', () => {
    const object = { metadata: { name: 'x', uid: 'u' }, spec: { pin: '1234', mypin: '1', pinned: true } }
    expect(
      compiled([], { export: { mode: 'Resource', prune: { scrubKeys: ['PIN'] } } }).row(object).row?.attributes
        .resource,
    ).toMatchObject({ spec: { pin: { redacted: true }, mypin: { redacted: true }, pinned: true } })
  })
})

describe('any object', () => {
  const extractor = compiled(
    [
      { name: 'a', path: '{.spec}', optional: true },
      { name: 'b', path: '{..name}', optional: true },
      { name: 'c', path: '{.spec[*][0]}', optional: true },
      { name: 'd', path: 'cel:object.spec', optional: true },
      { name: 'e', path: 'cel:object.map(k, object[k])', optional: true },
      { name: 'f', path: 'helm:release.chart', optional: true },
      { name: '__proto__', path: '{.spec.__proto__}', optional: true },
    ],
    { export: { mode: 'Resource', include: 'All' } },
  )
  const objects = fc.record({
    metadata: fc.constant({ name: 'x', uid: 'u' }),
    spec: fc.anything({
      withBigInt: true,
      withNullPrototype: true,
      withObjectString: true,
      withMap: true,
      withDate: true,
      withTypedArray: true,
      maxDepth: 4,
    }),
  })

  it('never throws', () => {
    fc.assert(
      fc.property(fc.oneof(objects, fc.anything()), (object) => {
        const { row, failure } = extractor.row(object)
        expect(row === undefined).not.toBe(failure === undefined)
      }),
    )
  })

  it('is one row whatever the order of its keys, and the same twice', () => {
    const reversed = (value: unknown): unknown =>
      Array.isArray(value)
        ? value.map(reversed)
        : typeof value === 'object' && value !== null
          ? Object.fromEntries(
              Object.entries(value)
                .reverse()
                .map(([key, one]) => [key, reversed(one)]),
            )
          : value
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 5 }), (spec) => {
        const object = { metadata: { name: 'x', uid: 'u' }, spec }
        const whole = compiled([
          { name: 'a', path: '{.spec}' },
          { name: 'b', path: 'cel:object.spec' },
        ])
        const row = canonicalJson(whole.row(object))
        expect(canonicalJson(whole.row(reversed(object)))).toBe(row)
        expect(canonicalJson(whole.row(structuredClone(object)))).toBe(row)
      }),
    )
  })

  it('does not reach others: one that is bad stops none', () => {
    const one = compiled([
      { name: 'port', path: '{.spec.ports[0]}' },
      { name: 'sum', path: 'cel:object.spec.a + 1' },
    ])
    const good = { metadata: { name: 'good', uid: 'g' }, spec: { ports: [80], a: 1 } }
    const bad = [
      { metadata: { name: 'bad', uid: 'b' }, spec: { ports: 'none', a: 'text' } },
      null,
      { metadata: { name: 'b', uid: 'c' }, spec: { ports: [1], a: Number.NaN } },
    ]
    const answers = [good, ...bad, good].map((object) => one.row(object))
    expect(answers.map(({ failure }) => failure !== undefined)).toEqual([false, true, true, true, false])
    expect(answers[4]).toEqual(answers[0])
  })

  it.each([
    ['NaN', Number.NaN, 'failed: the value is NaN, which JSON cannot express'],
    ['infinity', Number.POSITIVE_INFINITY, 'failed: the value is Infinity, which JSON cannot express'],
    ['2^63', 2 ** 63, 2 ** 63],
    ['-0', -0, -0],
    ['1e-7', 1e-7, 1e-7],
  ])('may hold %s', (_, number, value) =>
    expect(valueAt('{.spec.n}', {}, { metadata: { name: 'x', uid: 'u' }, spec: { n: number } })).toEqual(value),
  )

  it('of 1.5 MB is one row within a second', () => {
    const entries = Array.from({ length: 12_000 }, (_, i) => ({
      name: `entry-${i}`,
      value: `postgres://user:pass-${i}@host/${i}`,
      note: 'x'.repeat(60),
    }))
    const object = { metadata: { name: 'big', uid: 'u' }, spec: { entries, text: 'password= '.repeat(30_000) } }
    expect(JSON.stringify(object).length).toBeGreaterThan(1_500_000)
    const since = process.cpuUsage()
    const whole = compiled(
      [
        { name: 'names', path: 'cel:object.spec.entries.map(e, e.name)' },
        { name: 'values', path: '{.spec.entries[?(@.name=="entry-7")].value}' },
      ],
      { export: { mode: 'Resource' } },
    )
    // Where others have the processor meanwhile it is late, and looked at again.
    let looked = whole.row(object)
    for (let i = 0; i < 9 && looked.failure?.isLate; i++) looked = whole.row(object)
    expect(looked.failure).toBeUndefined()
    const { row } = looked
    expect(row?.attributes.names).toHaveLength(12_000)
    expect(row?.attributes.values).toBe('postgres://[redacted]@host/7')
    expect(cpuMs(since)).toBeLessThan(5_000)
  })

  it('nested without end is refused, not followed', () => {
    const deep = JSON.parse(`${'{"a":'.repeat(3_000)}1${'}'.repeat(3_000)}`)
    const { failure } = compiled([{ name: 'x', path: '{.spec}' }]).row({
      metadata: { name: 'x', uid: 'u' },
      spec: deep,
    })
    expect(failure?.message).toMatch(/nested more than/)
  })
})
