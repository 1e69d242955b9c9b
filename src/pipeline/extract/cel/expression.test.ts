import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { cpuMs } from '../../../../test/cpu.ts'
import { Expressions } from './expression.ts'

const object = {
  metadata: { name: 'web', labels: { app: 'web', tier: 'front' }, creationTimestamp: '2026-01-01T00:00:00Z' },
  spec: {
    replicas: 3,
    ratio: 0.5,
    ports: [{ port: 80 }, { port: 443 }],
    memory: '1536Mi',
    version: 'v1.30.2',
    host: '10.1.2.3',
    url: 'https://user.example:8443/a%20b?x=1&x=2',
  },
}
function valueAt(text: string, of: unknown = object): unknown {
  const expressions = new Expressions()
  const compiled = expressions.compile(text)
  if (typeof compiled === 'string') return `refused: ${compiled}`
  try {
    return compiled.evaluate(
      expressions.project(
        of,
        (_, __, value) => value,
        (value) => value,
      ),
    )
  } catch (error) {
    return `failed: ${(error as Error).message}`
  }
}

describe('an expression', () => {
  it.each<[string, unknown]>([
    // CEL's own
    ['object.spec.replicas + 1', 4],
    ['object.spec.replicas / 2', 1],
    ['object.spec.ratio * 2.0', 1],
    ['object.spec.replicas > 2 && object.spec.ratio < 1', true],
    ['object.spec.ports.map(p, p.port)', [80, 443]],
    ['object.spec.ports.filter(p, p.port > 100)', [{ port: 443 }]],
    ['object.spec.ports.exists(p, p.port == 443)', true],
    ['object.spec.ports.all(p, p.port > 100)', false],
    ['object.spec.ports.exists_one(p, p.port == 80)', true],
    ['object.metadata.labels.map(k, k + "=" + object.metadata.labels[k])', ['app=web', 'tier=front']],
    ['size(object.metadata)', 3],
    ['"app" in object.metadata.labels', true],
    ['has(object.spec.none) ? 1 : 2', 2],
    ['object.?spec.?none.orValue(7)', 7],
    ['cel.bind(m, object.metadata, m.name + m.labels.app)', 'webweb'],
    ['cel.bind(object, {"spec": 1}, object.spec)', 1],
    ['[object].map(object, object.spec.replicas)', [3]],
    ['{"a": 1, "b": [object.spec.replicas]}', { a: 1, b: [3] }],
    ['timestamp(object.metadata.creationTimestamp) + duration("90m")', '2026-01-01T01:30:00Z'],
    ['duration("90m")', '5400s'],
    ['uint(7)', 7],
    ['b"\\xff"', '/w=='],
    ['9007199254740993', '9007199254740993'],
    ['9223372036854775807', '9223372036854775807'],
    ['dyn(null)', null],
    // texts and lists
    ['"a1b22".matches("^[a-z0-9]+$")', true],
    ['"abc".matches("b")', true],
    ['"a1b22".find("[0-9]+")', '1'],
    ['"a1b22".findAll("[0-9]+")', ['1', '22']],
    ['"a1b22".findAll("[0-9]+", 1)', ['1']],
    ['"aaa".replace("a", "b", 2)', 'bba'],
    ['"aaa".replace("a", "b")', 'bbb'],
    ['"abc".charAt(1)', 'b'],
    ['["b", "a"].join("-")', 'b-a'],
    ['"a-b".split("-")', ['a', 'b']],
    ['[1, 2, 2].isSorted()', true],
    ['[1, 2].sum() + [3, 4].max() + [5, 6].min()', 12],
    ['["a", "b"].indexOf("b")', 1],
    [
      '"%s has %d of %.1f (%x) 100%%".format([object.metadata.name, object.spec.replicas, 0.25, 255])',
      'web has 3 of 0.3 (ff) 100%',
    ],
    // Kubernetes' own
    ['quantity(object.spec.memory).isGreaterThan(quantity("1Gi"))', true],
    ['quantity("1.5Gi").asInteger()', 1610612736],
    ['quantity("500m").asApproximateFloat()', 0.5],
    ['quantity("500m").isInteger()', false],
    ['quantity("1Gi").add(quantity("1")).sub(1) == quantity("1024Mi")', true],
    ['quantity("-1k").sign()', -1],
    ['quantity("1k").compareTo(quantity("1000"))', 0],
    ['isQuantity("1.5Gx")', false],
    ['quantity("200Mi")', '200Mi'],
    ['semver("1.30.2").isGreaterThan(semver("1.9.10"))', true],
    ['semver("1.0.0-rc.2").compareTo(semver("1.0.0-rc.10"))', -1],
    ['semver("1.0.0-rc.1").isLessThan(semver("1.0.0"))', true],
    ['semver(object.spec.version, true).minor()', 30],
    ['isSemver("v1.2")', false],
    ['isSemver("v1.2", true)', true],
    ['ip(object.spec.host).family()', 4],
    ['ip("::1").isLoopback()', true],
    ['ip("169.254.1.1").isLinkLocalUnicast()', true],
    ['ip("8.8.8.8").isGlobalUnicast() && !ip("127.0.0.1").isGlobalUnicast()', true],
    ['isIP("1.2.3.04") || isIP("::ffff:1.2.3.4")', false],
    ['ip("0:0::1") == ip("::1")', true],
    ['cidr("10.0.0.0/8").containsIP(object.spec.host)', true],
    ['cidr("10.0.0.0/8").containsCIDR("10.1.0.0/16")', true],
    ['cidr("10.0.0.0/16").containsCIDR(cidr("10.0.0.0/8"))', false],
    ['cidr("10.1.2.3/12").masked()', '10.0.0.0/12'],
    ['cidr("2001:db8:ffff::/33").masked()', '2001:db8:8000::/33'],
    ['cidr("10.0.0.0/8").prefixLength()', 8],
    ['isCIDR("10.0.0.0/33")', false],
    ['url(object.spec.url).getHost()', 'user.example:8443'],
    ['url(object.spec.url).getHostname() + url(object.spec.url).getPort()', 'user.example8443'],
    ['url(object.spec.url).getEscapedPath()', '/a%20b'],
    ['url(object.spec.url).getQuery()', { x: ['1', '2'] }],
    ['url("/path").getScheme()', ''],
    ['isURL("../x")', false],
    ['format.dns1123Label().validate(object.metadata.name).hasValue()', false],
    ['format.named("dns1123Label").value().validate("A_").value().size()', 1],
    ['format.named("none").hasValue()', false],
  ])('%s is %j', (text, value) => expect(valueAt(text)).toEqual(value))

  it.each([
    ['0.0 / 0.0', /NaN, which JSON cannot/],
    ['1.0 / 0.0', /Infinity, which JSON cannot/],
    ['type(1)', /type that JSON cannot/],
    ['1 / 0', /division by zero/],
    ['9223372036854775807 + 1', /overflow/],
    ['object.none', /No such key/],
    ['"a".matches("(")', /./],
    ['quantity("x")', /quantity/],
    ['ip("x")', /IP address/],
    ['cidr("10.0.0.0")', /network/],
    ['url("x")', /absolute/],
    ['semver("1")', /version/],
    ['"%d".format(["a"])', /does not fit/],
    ['"%d".format([])', /fewer/],
  ])('%s fails with a reason', (text, reason) => expect(valueAt(text)).toMatch(reason))

  it('is valueAt no more of an object than it looks at, and gives the same as with all of it', () => {
    const expressions = new Expressions()
    for (const text of [
      'object.spec.ports.map(p, p.port)',
      'has(object.metadata.labels.app)',
      'object.metadata.labels["tier"]',
    ])
      expressions.compile(text)
    const part = expressions.project(
      object,
      (_, __, value) => value,
      (value) => value,
    )
    expect(part).toEqual({
      metadata: { labels: { app: 'web', tier: 'front' } },
      spec: { ports: [{ port: 80n }, { port: 443n }] },
    })
  })

  it('gives the same from the parts it looks at as from the whole', () => {
    const texts = [
      'object.a.b',
      'object.a[0].b',
      'object["a"].map(x, x)',
      'object.a.exists(x, x.b == 1)',
      'has(object.a.b) && object.a.b == object.a.b',
      'object.a.filter(x, has(x.b)).map(x, x.b)',
      'cel.bind(v, object.a, v.b)',
      'object.?a.?b.orValue(0)',
      'object.a == object["a"]',
      'size(object.a)',
      '[object.a].map(x, x)',
      'object.a.all(x, object.a.b == x)',
    ]
    fc.assert(
      fc.property(fc.constantFrom(...texts), fc.jsonValue({ maxDepth: 3 }), (text, a) => {
        const whole = valueAt(`cel.bind(o, [object], o.size() == 1 ? dyn(${text}) : dyn(0))`, { a })
        expect(valueAt(text, { a })).toEqual(whole)
      }),
    )
  })
})

describe('an expression without end', () => {
  const big = {
    spec: {
      list: Array.from({ length: 3_000 }, (_, i) => i),
      text: 'a'.repeat(1_000_000),
      labels: { a: `${'a'.repeat(40)}!` },
    },
  }
  const doubled = (inner: string, times: number) =>
    Array.from({ length: times }).reduce<string>((text, _, i) => `cel.bind(v${i}, ${text} + ${text}, v${i})`, inner)

  it.each([
    ['loops in loops', 'object.spec.list.map(a, object.spec.list.map(b, object.spec.list.map(c, a + b + c)))'],
    [
      'loops in loops that pass over errors',
      'object.spec.list.exists(a, object.spec.list.exists(b, object.spec.list.exists(c, a + b + c < 0))) || true',
    ],
    ['all of all', 'object.spec.list.all(a, object.spec.list.all(b, a + b >= 0))'],
    ['texts cut in pieces again and again', 'object.spec.list.map(a, object.spec.text.split(""))'],
    [
      'a list compared with itself for ever',
      'object.spec.list.map(a, object.spec.list.map(b, object.spec.list == [0]))',
    ],
    ['a text joined a million times', 'object.spec.list.map(a, object.spec.text).join("")'],
    ['a text put into itself', 'object.spec.text.replace("a", object.spec.text)'],
    ['searches in lists of lists', 'object.spec.list.map(a, object.spec.list.filter(b, b in object.spec.list))'],
  ])('is stopped: %s', (_, text) => {
    const since = process.cpuUsage()
    expect(valueAt(text, big)).toMatch(/^failed: (?:the expression takes too long|a text may have)/)
    expect(cpuMs(since)).toBeLessThan(10_000)
  })

  it.each([
    ['text', doubled('object.spec.text', 5)],
    ['list', doubled('object.spec.list', 8)],
  ])('is stopped: a %s that doubles', (_, text) =>
    expect(valueAt(text, big)).toMatch(/failed: the (?:expression takes|result holds)|refused/),
  )

  it('is not had by a regular expression that goes back and forth', () =>
    expect(valueAt('object.spec.labels.a.matches("^(a+)+$")', big)).toBe(false))

  it.each([
    ['nested too deep', `${'('.repeat(300)}1${')'.repeat(300)}`],
    ['too long', `"${'a'.repeat(9_000)}"`],
    ['of too many nodes', Array.from({ length: 4_000 }, () => '1').join('+')],
  ])('is refused when it is %s', (_, text) => expect(valueAt(text)).toMatch(/^refused: /))

  it('is stopped for one object only', () => {
    const expressions = new Expressions()
    const compiled = expressions.compile('object.spec.list.map(a, object.spec.list.map(b, a + b)).size()')
    if (typeof compiled === 'string') throw new Error(compiled)
    const sizes = [big, { spec: { list: [1, 2] } }].map((one) => {
      try {
        return compiled.evaluate(
          expressions.project(
            one,
            (_, __, value) => value,
            (value) => value,
          ),
        )
      } catch {
        return 'stopped'
      }
    })
    expect(sizes).toEqual(['stopped', 2])
  })
})
