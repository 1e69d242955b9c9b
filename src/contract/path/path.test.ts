import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { findAll, findOne, MAX_MATCHES, MISSING } from './find.ts'
import { MAX_SEGMENTS, parsePath } from './path.ts'

const pod = {
  metadata: {
    name: 'web',
    labels: { 'app.kubernetes.io/name': 'shop', app: 'web', 'a[b]': 'brackets' },
    annotations: {},
  },
  spec: {
    containers: [
      { name: 'a', image: 'one', ports: [{ containerPort: 80 }, { containerPort: 443 }] },
      { name: 'b', image: 'two', limits: { cpu: '500m' } },
      { name: 'c', image: 'three', ready: true, restarts: 3 },
    ],
    matrix: [
      [1, 2],
      [3, 4],
    ],
  },
  status: {
    conditions: [
      { type: 'Ready', status: 'True', count: 2 },
      { type: 'Initialized', status: 'False', count: 10 },
      { type: 'Disk', status: null },
    ],
    empty: null,
    '*': 'star',
    '': 'nameless',
  },
  $ref: 'key',
}

const segmentsOf = (text: string) => {
  const { path, fault } = parsePath(text)
  if (!path) throw new Error(`${text}: ${fault.message}`)
  return path
}
/** What a path finds: the value of a single one, all values of the others. */
function found(text: string, object: unknown = pod): unknown {
  const { segments, isSingle } = segmentsOf(text)
  if (isSingle) {
    const value = findOne(object, segments)
    return value === MISSING ? 'MISSING' : value
  }
  return findAll(object, segments).values
}

describe('the form of the original', () => {
  it.each([
    ['.metadata.name', 'web'],
    ['metadata.name', 'web'],
    ['.spec.containers[0].name', 'a'],
    ['.spec.matrix[0][1]', 2],
    ['.spec.matrix[1][0]', 3],
    ['.spec.containers[+1].name', 'b'],
    ['.metadata..name', 'web'],
    ['.metadata.name.', 'web'],
    ['.metadata.labels.app', 'web'],
    ['.status.empty', null],
    ['$ref', 'key'],
    ['.$ref', 'key'],
  ])('reads %s', (path, value) => expect(found(path)).toEqual(value))

  it.each([
    ['.status.empty.deeper'],
    ['.spec.containers[3]'],
    ['.spec.containers.name'],
    ['.spec.containers.length'],
    ['.metadata.name[0]'],
    ['.metadata.name.length'],
    ['.metadata[0]'],
    ['.nothing'],
    ['.metadata.toString'],
    ['.metadata.constructor'],
    ['.metadata.__proto__'],
    ['.spec.containers[0].__proto__.constructor'],
  ])('finds nothing at %s', (path) => expect(found(path)).toBe('MISSING'))

  it('is the object itself without a step', () => expect(found('.')).toBe(pod))

  it('keeps the steps in documents as the original wrote them', () => {
    expect(segmentsOf('.a[0].b[1]').texts).toEqual(['a', '[0]', 'b', '[1]'])
    expect(segmentsOf('.metadata.labels["x.y/z"]').texts).toEqual(['metadata', 'labels', 'x.y/z'])
    expect(segmentsOf('.a[*].b.*').texts).toEqual(['a', '[*]', 'b', '[*]'])
  })

  it('tells that ".." is read as one "."', () => expect(segmentsOf('.a..b').emptyKeyAt).toBe(2))
})

describe('what is more than the original', () => {
  it.each([
    ['$.metadata.name', 'web'],
    ['{.metadata.name}', 'web'],
    [' { $.metadata.name } ', 'web'],
    ['.spec.containers[-1].name', 'c'],
    ['.spec.containers[ -2 ].name', 'b'],
    ['.metadata.labels["app.kubernetes.io/name"]', 'shop'],
    [".metadata.labels['app.kubernetes.io/name']", 'shop'],
    ['.metadata.labels.app\\.kubernetes\\.io/name', 'shop'],
    ['.metadata.labels["a[b]"]', 'brackets'],
    ['.metadata.labels.a\\[b\\]', 'brackets'],
    ['["metadata"]["name"]', 'web'],
    ['$["metadata"].name', 'web'],
    ['.status.\\*', 'star'],
    ['.status["*"]', 'star'],
    ['.status[""]', 'nameless'],
    ['.spec.containers[*].image', ['one', 'two', 'three']],
    ['.spec.containers.*.image', ['one', 'two', 'three']],
    ['.spec.containers[*].ports[*].containerPort', [80, 443]],
    ['.spec.matrix[*][*]', [1, 2, 3, 4]],
    ['.metadata.labels.*', ['shop', 'web', 'brackets']],
    ['.spec.containers[0:2].name', ['a', 'b']],
    ['.spec.containers[1:].name', ['b', 'c']],
    ['.spec.containers[:-1].name', ['a', 'b']],
    ['.spec.containers[::2].name', ['a', 'c']],
    ['.spec.containers[0,2].name', ['a', 'c']],
    ['.metadata["name","uid"]', ['web']],
    ['.status.conditions[?(@.type=="Ready")].status', ['True']],
    [".status.conditions[?(@.type == 'Ready')].status", ['True']],
    ['.status.conditions[?@.type=="Ready"].status', ['True']],
    ['.status.conditions[?(@.type!="Ready")].type', ['Initialized', 'Disk']],
    ['.status.conditions[?(@.count>2)].type', ['Initialized']],
    ['.status.conditions[?(@.count>=2)].type', ['Ready', 'Initialized']],
    ['.status.conditions[?(@.count<10)].type', ['Ready']],
    ['.status.conditions[?(@.count<=10)].type', ['Ready', 'Initialized']],
    ['.status.conditions[?(2<@.count)].type', ['Initialized']],
    ['.status.conditions[?(@.count)].type', ['Ready', 'Initialized']],
    ['.status.conditions[?(!@.count)].type', ['Disk']],
    ['.status.conditions[?(@.status==null)].type', ['Disk']],
    ['.status.conditions[?(@.type=="Ready" && @.count==2)].type', ['Ready']],
    ['.status.conditions[?(@.type=="Disk" || @.count==2)].type', ['Ready', 'Disk']],
    ['.status.conditions[?((@.type=="Disk" || @.count==2) && @.status=="True")].type', ['Ready']],
    ['.spec.containers[?(@.ready==true)].name', ['c']],
    ['.spec.containers[?(@.limits["cpu"]=="500m")].name', ['b']],
    ['.spec.containers[?(@.ports[1].containerPort==443)].name', ['a']],
    ['.spec.containers[?(@.restarts=="3")].name', ['c']],
    ['.spec.matrix[0][?(@>1)]', [2]],
    ['.metadata.labels[?(@=="web")]', ['web']],
  ])('reads %s', (path, value) => expect(found(path)).toEqual(value))

  it('tells "nothing fitted" from "there was nothing to choose from"', () => {
    const { segments } = segmentsOf('.status.conditions[?(@.type=="None")]')
    expect(findAll(pod, segments)).toMatchObject({ values: [], reached: true, isTooMany: false })
    expect(findAll({}, segments)).toMatchObject({ values: [], reached: false, isTooMany: false })
  })

  it('leads to every depth by two dots, where that is asked for', () => {
    const { path } = parsePath('{..containerPort}', { descends: true })
    expect(findAll(pod, path!.segments).values).toEqual([80, 443])
    expect(parsePath('a..b').path).toMatchObject({ segments: [{ key: 'a' }, { key: 'b' }], emptyKeyAt: 1 })
  })

  it.each([
    ['.spec.containers[5].name', true],
    ['.metadata.name[0]', true],
    ['.metadata.labels[0]', true],
    ['.spec.containers[1].name', false],
    ['.spec.missing[0]', false],
  ])('tells of %s whether an index has no place', (text, isOutside) =>
    expect(findAll(pod, segmentsOf(text).segments).isOutside).toBe(isOutside),
  )

  it('gives up where more is found than a value can be', () => {
    const list = Array.from({ length: MAX_MATCHES + 1 }, (_, i) => i)
    expect(findAll({ list }, segmentsOf('.list[*]').segments).isTooMany).toBe(true)
    expect(findAll({ list: list.slice(1) }, segmentsOf('.list[*]').segments).values).toHaveLength(MAX_MATCHES)
    const nested = { list: Array.from({ length: 200 }, () => list.slice(0, 200)) }
    expect(findAll(nested, segmentsOf('.list[*][*]').segments).isTooMany).toBe(true)
  })
})

describe('what cannot be read', () => {
  it.each([
    ['.a[0', '[', 'not closed'],
    ['.a[]', '[]', 'nothing between'],
    ['.metadata.labels[app]', 'app', 'quoted key'],
    ['.a[1.5]', '.', 'expected "]"'],
    ['.a["b', '"', 'quote is not closed'],
    ['.a["b"', '[', 'not closed'],
    ['{.a', '{', 'not closed'],
    ['{.a}{.b}', '}', 'only one path'],
    ['.a\\', '\\', 'backslash'],
    ['.a[?(@.b=="c")', '[', 'not closed'],
    ['.a[?(@.b="c")]', '=', 'no comparison'],
    ['.a[?(@.b==c)]', 'c', 'a text in quotes'],
    ['.a[?(@.b=="c"]', ']', 'expected ")"'],
    ['.a[?()]', ')', 'expected "@"'],
    ['.a[?("x")]', '"x"', 'expected a comparison'],
    ['.a[?(@.b[*]=="c")]', '[*]', 'only keys and indexes'],
    ['.a[?(@.==1)]', '.', 'expected a key'],
    ['.a[99999999999999999999]', '99999999999999999999', 'too large'],
    ['.a[::0]', '0', 'step'],
  ])('refuses %s at its place', (text, place, message) => {
    const { fault } = parsePath(text)
    expect(fault?.message).toContain(message)
    expect(text.slice(fault?.from, fault?.to)).toBe(place)
  })

  it('says how a key is written that was taken for an index', () =>
    expect(parsePath('.metadata.labels[app.x/y]').fault?.suggestion).toBe('["app.x/y"]'))

  it('has bounds for steps, letters and depth', () => {
    expect(parsePath('.a'.repeat(MAX_SEGMENTS)).path?.segments).toHaveLength(MAX_SEGMENTS)
    expect(parsePath('.a'.repeat(MAX_SEGMENTS + 1)).fault?.message).toContain('64 steps')
    expect(parsePath('.a'.repeat(1_000_000)).fault?.message).toContain('4096')
    expect(parsePath(`.a[?(${'('.repeat(2000)}`).fault?.message).toContain('nested')
    expect(parsePath(`.a[?(${'!'.repeat(2000)}@.b)]`).fault?.message).toContain('nested')
  })

  it('never throws, and names a place within the text', () =>
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.string({ unit: fc.constantFrom(...'.[]()?@="\'*\\{}$!&|<>:,-0a '.split('')), maxLength: 40 }),
        ),
        (text) => {
          const { path, fault } = parsePath(text)
          if (path) {
            findAll(pod, path.segments)
            expect(path.texts).toHaveLength(path.segments.length)
          } else {
            expect(fault.from).toBeGreaterThanOrEqual(0)
            expect(fault.to).toBeLessThanOrEqual(text.length)
            expect(fault.from).toBeLessThanOrEqual(fault.to)
          }
        },
      ),
      { numRuns: 3000 },
    ))
})

describe('any object', () => {
  const tree = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 5 },
      fc.string(),
      fc.integer(),
      fc.boolean(),
      fc.constant(null),
      tie('list'),
      tie('map'),
    ),
    list: fc.array(tie('value'), { maxLength: 4 }),
    map: fc.dictionary(
      fc.oneof(fc.string(), fc.constantFrom('__proto__', 'constructor', 'a.b', '*', '')),
      tie('value'),
      {
        maxKeys: 4,
      },
    ),
  }))
  /** A way to some value of an object, and the value. */
  function wayInto(value: unknown, choices: readonly number[]): readonly [(string | number)[], unknown] {
    const [choice = 0, ...rest] = choices
    const keys = typeof value === 'object' && value !== null ? Object.keys(value) : []
    const key = keys[choice % Math.max(1, keys.length)]
    if (choices.length === 0 || key === undefined) return [[], value]
    const [way, end] = wayInto((value as Record<string, unknown>)[key], rest)
    return [[Array.isArray(value) ? Number(key) : key, ...way], end]
  }
  const quoted = (way: readonly (string | number)[]) =>
    way.map((step) => (typeof step === 'number' ? `[${step}]` : `["${step.replace(/["\\]/g, '\\$&')}"]`)).join('')
  const escaped = (way: readonly (string | number)[]) =>
    way.map((step) => (typeof step === 'number' ? `[${step}]` : `.${step.replace(/[.[\]\\{}*\s]/g, '\\$&')}`)).join('')

  it('is found by its keys in quotes, whatever they are', () =>
    fc.assert(
      fc.property(tree.map, fc.array(fc.nat(), { maxLength: 6 }), (object, choices) => {
        const [way, value] = wayInto(object, choices)
        expect(found(quoted(way), object)).toEqual(value)
        expect(findAll(object, segmentsOf(quoted(way)).segments).values).toEqual(value === null ? [] : [value])
      }),
    ))

  it('is found by its keys with backslashes', () =>
    fc.assert(
      fc.property(tree.map, fc.array(fc.nat(), { maxLength: 6 }), (object, choices) => {
        const [way, value] = wayInto(object, choices)
        if (way.includes('')) return
        expect(found(escaped(way), object)).toEqual(value)
      }),
    ))

  type Step = { readonly text: string; readonly from: (value: unknown) => readonly unknown[] }
  const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])
  const ownKey = (key: string) => (value: unknown) =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.entries(value).flatMap(([name, one]) => (name === key ? [one] : []))
      : []
  const steps = fc.oneof(
    fc.constantFrom('a', 'b', 'c').map((key): Step => ({ text: `.${key}`, from: ownKey(key) })),
    fc.integer({ min: -3, max: 3 }).map(
      (n): Step => ({
        text: `[${n}]`,
        from: (value) =>
          listOf(value)
            .slice(n)
            .slice(0, 1)
            .filter(() => n < listOf(value).length && -n <= listOf(value).length),
      }),
    ),
    fc.constant<Step>({
      text: '[*]',
      from: (value) => (typeof value === 'object' && value !== null ? Object.values(value) : []),
    }),
    fc
      .tuple(fc.nat(3), fc.nat(3))
      .map(([from, to]): Step => ({ text: `[${from}:${to}]`, from: (value) => listOf(value).slice(from, to) })),
    fc.constantFrom('a', 'b').map(
      (key): Step => ({
        text: `[?(@.${key}==1)]`,
        from: (value) =>
          (typeof value === 'object' && value !== null ? Object.values(value) : []).filter(
            (entry) => ownKey(key)(entry)[0] === 1,
          ),
      }),
    ),
  )
  const small = fc.letrec((tie) => ({
    value: fc.oneof({ maxDepth: 4 }, fc.constantFrom<unknown>(1, 2, null, 'x'), tie('list'), tie('map')),
    list: fc.array(tie('value'), { maxLength: 3 }),
    map: fc.dictionary(fc.constantFrom('a', 'b', 'c'), tie('value'), { maxKeys: 3 }),
  })).map

  it('is walked as a plain reference walks it, whatever the steps', () =>
    fc.assert(
      fc.property(small, fc.array(steps, { minLength: 1, maxLength: 5 }), (object, way) => {
        let expected: readonly unknown[] = [object]
        for (const { from } of way) expected = expected.flatMap(from)
        const { segments, isSingle } = segmentsOf(way.map(({ text }) => text).join(''))
        const value = isSingle ? findOne(object, segments) : MISSING
        if (isSingle) expect(value === MISSING ? [] : [value]).toEqual(expected)
        expect(findAll(object, segments).values).toEqual(expected.filter((one) => one !== null))
      }),
      { numRuns: 3000 },
    ))
})
