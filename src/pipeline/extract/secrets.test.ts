import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { compileProfile, type Profile } from './profile.ts'
import { canonicalJson } from './row.ts'
import { type Planted, planted } from './testing/planted.ts'

const SECRET = 'Zq7-hunter2-Xw9'
const OTHER = 'another-Kp3-of-other-length'
const world = planted(SECRET)
const otherWorld = planted(OTHER)

const profileOf = ({ kind, group }: Planted, path: string, name = 'found'): Profile => ({
  spec: { targetGVK: { group, version: 'v1', kind }, attributes: [{ name, path }] },
})

/** What leaves: the row, or the failure; a profile that is refused lets nothing leave. */
const leaves = (profile: Profile, object: unknown): string => leaving(profile)(object)

/** The same for several objects. */
function leaving(profile: Profile): (object: unknown) => string {
  const { extractor, faults } = compileProfile(profile)
  return (object) => canonicalJson(faults ?? extractor.row(object))
}

/** The secret as it is, and as an expression could have written it. */
function formsOf(secret: string): readonly string[] {
  const reversed = [...secret].reverse().join('')
  const bytes = Buffer.from(secret)
  return [
    secret,
    reversed,
    bytes.toString('hex'),
    bytes.toString('base64').replace(/=+$/, ''),
    secret.toUpperCase(),
    [...secret].join('","'),
  ]
}
const FORMS = formsOf(SECRET)

function expectNothing(profile: Profile, i: number): void {
  const leavesOf = leaving(profile)
  const left = leavesOf(world[i]!.object)
  const told = FORMS.filter((form) => left.includes(form))
  expect(told, `${profile.spec.attributes![0]!.path} of ${world[i]!.kind}`).toEqual([])
  // Not even one bit: with another secret the very same leaves.
  expect(leavesOf(otherWorld[i]!.object)).toBe(left)
}

const inner = (path: string): string => path.replace(/^cel:/, '')
/** By hand: what somebody who looks for a way out would try, of any object. */
const tricks: readonly string[] = [
  ...[
    '{}',
    '{$}',
    '$',
    '{..*}',
    '{.*}',
    '{.*.*}',
    '{.*.*.*}',
    '{..value}',
    '{..password}',
    '{..data}',
    '{..data.*}',
    '{..stringData}',
    '{..innocent}',
  ],
  ...[
    '{..env[*].value}',
    '{..env[*]["value"]}',
    '{..env[?(@.name=="plain")].value}',
    '{..env[-1:].value}',
    '{..command[2:]}',
    '{..command[-1]}',
  ],
  ...[
    '{.data.*}',
    "{.data['innocent','password']}",
    '{.data["innocent"]}',
    "$['data']",
    '$["data"]["innocent"]',
    '$.data',
    '{ .data }',
    '{.data\\.}',
    '{.dat\\a.innocent}',
  ],
  ...[
    '{["data"]["innocent"]}',
    "{['stringData']['plain']}",
    '{.metadata.annotations.*}',
    '{.metadata.annotations}',
    '{..annotations}',
    '{@.data}',
    '{.[?(@.innocent)]}',
  ],
  ...[
    '{..secretKeyRef.key}',
    '{..valueFrom}',
    '{..tls}',
    '{..tls.key}',
    '{..auth.*}',
    '{..manifests[*].data}',
    '{..manifests[0]["data"]["innocent"]}',
    '{..httpHeaders[*].value}',
  ],
  ...[
    `{..env[?(@.value=="${SECRET}")].name}`,
    `{..command[?(@=="${SECRET}")]}`,
    `{..[?(@.password=="${SECRET}")]}`,
    `{..env[?(@.value>="Z")].name}`,
  ],
  ...[
    'helm:release.config',
    'helm:release.config.db',
    'helm:release["config"]',
    "helm:release.['config'].innocent",
    'helm:release.manifest',
    'helm:release.hooks',
  ],
  ...[
    'helm:release.*',
    'helm:release.chart',
    'helm:release.chart.*',
    'helm:release.chart.values',
    'helm:release.chart["values"]',
    'helm:release.chart.templates',
    'helm:release.info',
    'helm:release.info.notes',
    'helm:release.[*]',
  ],
]
/** Of an expression `x` that leads to something secret. */
const twists: readonly ((x: string) => string)[] = [
  (x) => x,
  (x) => `string(${x})`,
  (x) => `[${x}]`,
  (x) => `{"found": ${x}}`,
  (x) => `{"name": ${x}}`,
  (x) => `string(${x}).split("")`,
  (x) => `string(${x}).split("").map(c, c + " ").join("")`,
  (x) => `bytes(string(${x})).hex()`,
  (x) => `bytes(string(${x})).base64()`,
  (x) => `size(string(${x}))`,
  (x) => `string(${x}).startsWith("Zq7")`,
  (x) => `string(${x}).matches("^Z.*9$")`,
  (x) => `string(${x}).find("h.*2")`,
  (x) => `${x} == "${SECRET}"`,
  (x) => `${x} in ["${SECRET}"]`,
  (x) => `"%s".format([${x}])`,
  (x) => `cel.bind(it, ${x}, [it, it])`,
  (x) => `[1].map(i, ${x})`,
  (x) => `[${x}].filter(i, i != "").map(i, i)`,
  (x) => `dyn(${x})`,
  (x) => `optional.of(${x}).orValue("")`,
  (x) => `"${SECRET.slice(0, 3)}" < string(${x}) ? "a" : "b"`,
  (x) => `timestamp(string(${x}))`,
  (x) => `duration(string(${x}))`,
  (x) => `quantity(string(${x}))`,
  (x) => `int(string(${x}))`,
  (x) => `object[string(${x})]`,
  (x) => `bytes(string(${x})).json()`,
  (x) => `string(${x}).replace("-", "")`,
  (x) => `url(string(${x})).getHost()`,
]
const wholes: readonly string[] = [
  ...[
    'object',
    'object.data',
    'object["data"]',
    "object['da' + 'ta']",
    'object.map(k, object[k])',
    'object.filter(k, k != "metadata").map(k, object[k])',
    'object[["data"][0]]',
  ],
  ...[
    'object.?data.orValue("")',
    'object[?"data"].orValue("")',
    'cel.bind(o, object, o.data)',
    '[object].map(o, o.data)',
    '[object][0].data',
    '{"o": object}.o.data',
    'dyn(object).data',
    'object.data.map(k, object.data[k])',
  ],
  ...[
    'object.metadata.annotations.map(k, object.metadata.annotations[k])',
    'object.stringData',
    'object.spec',
    'object.spec.template.spec.containers.map(c, c.env.map(e, e.value))',
    'object.spec.template.spec.containers.map(c, c)[0].env',
  ],
]

/** Spellings of a path to a place. */
const spelling = (place: readonly (string | number)[]): fc.Arbitrary<string> =>
  fc
    .tuple(...place.map((key) => (typeof key === 'number' ? indexSpelling(key) : keySpelling(key))))
    .map((steps) => `{${steps.join('')}}`)
const keySpelling = (key: string) => {
  const dotted = key.replaceAll('.', '\\.')
  return fc.constantFrom(
    `.${dotted}`,
    `['${key}']`,
    `["${key}"]`,
    `[ '${key}' ]`,
    '.*',
    '[*]',
    `..${dotted}`,
    `['${key}','${key}']`,
    `.${dotted.replace(/^[a-z]/, (letter) => `\\${letter}`)}`,
  )
}
const indexSpelling = (index: number) =>
  fc.constantFrom(`[${index}]`, '[*]', '.*', `[${index}:]`, `[${index}:${index + 1}]`, `[${index},${index}]`, '[?(@)]')

const celSpelling = (place: readonly (string | number)[]): fc.Arbitrary<string> =>
  fc
    .tuple(fc.tuple(...place.map(celStep)), fc.constantFrom(...twists))
    .map(([steps, twist]) => `cel:${twist(steps.reduce((x, step) => step(x), 'object'))}`)
function celStep(key: string | number): fc.Arbitrary<(x: string) => string> {
  if (typeof key === 'number')
    return fc.constantFrom<((x: string) => string)[]>(
      (x) => `${x}[${key}]`,
      (x) => `${x}.map(e, e)[${key}]`,
      (x) => `${x}.filter(e, true)[${key}]`,
      (x) => `dyn(${x})[${key}]`,
    )
  const isName = /^[A-Za-z_]\w*$/.test(key)
  const steps: ((x: string) => string)[] = [
    (x) => `${x}["${key}"]`,
    (x) => `${x}["${key.slice(0, 2)}" + "${key.slice(2)}"]`,
    (x) => `cel.bind(k, "${key}", ${x}[k])`,
    (x) => `[${x}].map(o, o["${key}"])[0]`,
    (x) => `${x}[?"${key}"].orValue("")`,
  ]
  if (isName)
    steps.push(
      (x) => `${x}.${key}`,
      (x) => `${x}.?${key}.orValue("")`,
    )
  return fc.constantFrom(...steps)
}

describe('no secret leaves', () => {
  it('by any path or expression that somebody wrote by hand', () => {
    const paths = [...tricks, ...wholes.flatMap((whole) => twists.map((twist) => `cel:${twist(inner(whole))}`))]
    expect(new Set(paths).size).toBeGreaterThan(600)
    for (const path of paths) for (const i of world.keys()) expectNothing(profileOf(world[i]!, path), i)
  })

  it('by any spelling of a path to where it stands', () => {
    for (const [i, one] of world.entries())
      for (const place of one.places)
        fc.assert(
          fc.property(spelling(place), (path) => expectNothing(profileOf(one, path), i)),
          { numRuns: 40 },
        )
  })

  it('by any expression that leads to where it stands', () => {
    for (const [i, one] of world.entries())
      for (const place of one.places)
        fc.assert(
          fc.property(celSpelling(place), (path) => expectNothing(profileOf(one, path), i)),
          { numRuns: 40 },
        )
  })

  it.each(['All', 'SpecAndStatus', 'SpecOnly', 'StatusOnly', 'MetadataOnly'] as const)(
    'in whole objects (%s), whatever is pruned of them',
    (include) => {
      const pointers = [
        '/metadata/labels',
        '/kind',
        '/metadata/labels/owner',
        '/data/none',
        '/spec/template/spec/containers/0/env/0/name',
      ]
      for (const jsonPointers of [[], pointers, ...pointers.map((one) => [one])])
        for (const [i, { kind, group }] of world.entries()) {
          const profile: Profile = {
            metadata: { annotations: { 'kollect.dev/allow-full-resource-export': 'true' } },
            spec: {
              targetGVK: { group, version: 'v1', kind },
              export: { mode: 'Resource', include, prune: { jsonPointers, defaults: false } },
            },
          }
          const left = leaves(profile, world[i]!.object)
          for (const form of FORMS) expect(left, `${include} of ${kind}`).not.toContain(form)
        }
    },
  )

  it('under a name that says what it is', () => {
    const object = { metadata: { name: 'x', uid: 'u' }, spec: { innocent: SECRET } }
    for (const name of ['password', 'dbPassword', 'API_TOKEN', 'x-api-key', 'DB_PASS', 'client.secret'])
      expect(
        leaves(
          {
            spec: {
              targetGVK: { group: 'g', version: 'v1', kind: 'K' },
              attributes: [{ name, path: '{.spec.innocent}' }],
            },
          },
          object,
        ),
      ).not.toContain(SECRET)
  })

  it('although single values of a Secret do by consent, and only those', () => {
    const annotations = { 'kollect.dev/allow-secret-extraction': 'true' }
    const secret = { metadata: { name: 's', uid: 'u' }, data: { user: 'bWU=', password: 'aHVudGVyMg==' } }
    const values = (path: string, name = 'found') => {
      const { extractor } = compileProfile({
        metadata: { annotations },
        spec: { targetGVK: { version: 'v1', kind: 'Secret' }, attributes: [{ name, path }] },
      })
      return extractor!.row(secret).row?.attributes[name]
    }
    expect(values('{.data.password}')).toBe('aHVudGVyMg==')
    expect(values('cel:object.data.user')).toBe('bWU=')
    expect(values('{.data.password}', 'password')).toEqual({ redacted: true, reason: 'sensitive-key' })
  })

  it('refuses what can only mean the values of Secrets, and says what would allow it', () => {
    const faultsOf = (spec: Omit<Profile['spec'], 'targetGVK'>) =>
      compileProfile({ spec: { targetGVK: { version: 'v1', kind: 'Secret' }, ...spec } }).faults
    expect(faultsOf({ attributes: [{ name: 'a', path: '{.data.x}' }] })).toEqual([
      { path: 'spec.attributes[0].path', message: expect.stringContaining('allow-secret-extraction') },
    ])
    expect(faultsOf({ export: { mode: 'Resource' } })).toEqual([
      { path: 'spec.export.mode', message: expect.stringContaining('allow-full-resource-export') },
    ])
    expect(faultsOf({ attributes: [{ name: 'a', path: 'helm:release.config.db' }] })).toEqual([
      { path: 'spec.attributes[0].path', message: expect.stringContaining('allow-secret-extraction') },
    ])
    expect(faultsOf({ attributes: [{ name: 'a', path: '{.metadata.name}' }] })).toBeUndefined()
  })
})

it('of a Secret annotations that name something are given, and no copies under whatever name', () => {
  const copy = JSON.stringify({ data: { a: SECRET } })
  const copies = [
    copy,
    JSON.stringify(copy),
    Buffer.from(copy).toString('base64'),
    `x ${'a'.repeat(40)}`,
    'a, '.repeat(200),
  ]
  const names = {
    'cert-manager.io/common-name': '*.shop.example.com',
    'cert-manager.io/alt-names': 'shop.example.com,www.shop.example.com',
    'kubernetes.io/service-account.uid': '7f8f4b4e-3c1c-4a57-9f0e-0c4f4f1a2b3c',
    'example.com/at': '2026-01-01T00:00:00Z',
  }
  const annotations = { ...names, ...Object.fromEntries(copies.map((text, i) => [`copy${i}`, text])) }
  const object = { metadata: { name: 's', namespace: 'n', uid: 'u', annotations } }
  const left = JSON.parse(
    leaves(profileOf({ kind: 'Secret', group: '' } as Planted, '{.metadata.annotations}'), object),
  )
  const hidden = Object.fromEntries(copies.map((_, i) => [`copy${i}`, '[redacted]']))
  expect(left.row.attributes.found).toEqual({ ...names, ...hidden })
})

it('of a Secret inside of another object no copy is given either', () => {
  const copy = Buffer.from(JSON.stringify({ data: { a: SECRET } })).toString('base64')
  const inner = { kind: 'Secret', metadata: { name: 's', annotations: { copy, note: 'kept' } }, data: { a: SECRET } }
  const metadata = { name: 'm', namespace: 'n', uid: 'u' }
  for (const data of [{ inner: JSON.stringify(inner) }, { list: JSON.stringify({ kind: 'List', items: [inner] }) }]) {
    const left = leaves(profileOf({ kind: 'ConfigMap', group: '' } as Planted, '{.data}'), { metadata, data })
    expect(left).not.toContain(copy)
    expect(left).not.toContain(SECRET)
    expect(left).toContain('kept')
  }
})

it('of a Secret the annotation of `kubectl apply` never leaves, whatever its text looks like', () => {
  const annotations = { 'kubectl.kubernetes.io/last-applied-configuration': `{"data":{"A":"${SECRET}"}}`, note: 'kept' }
  const object = { metadata: { name: 's', namespace: 'n', uid: 'u', annotations } }
  for (const path of [
    '{.metadata.annotations}',
    '{.metadata}',
    '{.*}',
    '{..*}',
    '{$}',
    'cel:object.metadata.annotations',
  ]) {
    const left = leaves(profileOf({ kind: 'Secret', group: '' } as Planted, path), object)
    expect(left, path).not.toContain(SECRET)
    expect(left, path).toContain('kept')
  }
})

it('keeps what the name of several only counts or refers to, and shows no credentials of keys', () => {
  const metadata = { name: 'm', namespace: 'n', uid: 'u' }
  const kept = {
    ...{ secrets: [{ name: 'web-token' }], imagePullSecrets: [{ name: 'regcred' }], hard: { secrets: '10' } },
    ...{
      max_tokens: 4096,
      tokens: 12,
      externalSecrets: { enabled: true },
      publicKeyData: 'abc',
      params: [{ name: 'a', default: 'b' }],
    },
  }
  const hidden = {
    ...{
      apiKeys: [SECRET],
      clients: { secrets: { web: SECRET }, tokens: SECRET },
      secrets: [{ name: 'a', value: SECRET }],
    },
    auths: { [`https://me:${SECRET}@registry`]: { kept: 'x' } },
  }
  const found = (data: object, path: string, name = 'found') => {
    const profile = profileOf({ kind: 'Kind', group: 'g' } as Planted, path, name)
    return JSON.parse(leaves(profile, { metadata, data })).row.attributes[name]
  }
  for (const path of ['{.data}', 'cel:object.data']) {
    expect(found(kept, path)).toEqual(kept)
    expect(JSON.stringify(found(hidden, path))).not.toContain(SECRET)
    expect(found(hidden, path).auths).toEqual({ 'https://[redacted]@registry': { kept: 'x' } })
  }
  expect(found(hidden, 'cel:object.data.auths.map(k, k)')).toEqual(['https://[redacted]@registry'])
  expect(found(hidden, 'cel:object.data.auths.map(k, k.split(""))').join()).not.toContain('h,u,n,t,e,r')
  expect(found(kept, '{.data.tokens}', 'secrets')).toBe(12)
  expect(found({ a: 'b' }, '{.data.a}', 'secrets')).toEqual({ redacted: true, reason: 'sensitive-key' })
})
