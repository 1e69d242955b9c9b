import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import type { MonitorAccessPolicySpec } from '#kinds'
import { canonicalJson, specHash } from './hash.ts'

const shortest: MonitorAccessPolicySpec = {
  identity: { subjects: {} },
  access: { effect: 'Allow' },
  scope: { clusters: {} },
}

const everything: MonitorAccessPolicySpec = {
  lifecycle: { validity: { notAfter: '2027-01-01T00:00:00Z', notBefore: '' } },
  scope: {
    clusters: {
      rules: [
        {
          resources: [
            {
              aggregations: {},
              filters: {
                fields: { b: { denied: ['x'], allowed: ['<1>'] }, '10': {}, '9': {} },
                labels: { z: '&', a: '\u2028' },
                names: {},
                namespaces: { denied: [], allowed: ['app-*'] },
              },
              type: 'pvc',
            },
            { type: 'nodes', visibility: 'none', filters: {} },
          ],
          permissions: { viewMetrics: true, view: false },
          selector: { matchPattern: '^a"', matchNames: ['é\n'], matchLabels: { env: 'prod' } },
        },
        { selector: { matchNames: [], matchLabels: {} }, permissions: {} },
      ],
      default: 'allow',
    },
  },
  access: { enabled: false, effect: 'Deny' },
  identity: {
    priority: 7,
    subjects: { serviceAccounts: [{ namespace: 'ci', name: 'bot' }, { name: 'x' }], groups: ['g'], users: ['u'] },
  },
}

describe('the canonical JSON of a spec', () => {
  it('holds the defaults and nothing empty', () => {
    expect(canonicalJson(shortest)).toBe(
      '{"identity":{"subjects":{},"priority":100},"access":{"effect":"Allow","enabled":true},"scope":{"clusters":{"default":"none"}}}',
    )
  })

  it('has its own order of keys, sorted maps, empty objects that were given, and escapes for what HTML reads', () => {
    expect(canonicalJson(everything)).toBe(
      '{"identity":{"subjects":{"users":["u"],"groups":["g"],"serviceAccounts":[{"name":"bot","namespace":"ci"},{"name":"x","namespace":"default"}]},"priority":7},' +
        '"access":{"effect":"Deny","enabled":false},' +
        '"scope":{"clusters":{"default":"allow","rules":[{"selector":{"matchLabels":{"env":"prod"},"matchNames":["é\\n"],"matchPattern":"^a\\""},"permissions":{"view":false,"viewMetrics":true},' +
        '"resources":[{"type":"pvc","visibility":"all","filters":{"namespaces":{"allowed":["app-*"]},"names":{},"labels":{"a":"\\u2028","z":"\\u0026"},"fields":{"10":{},"9":{},"b":{"allowed":["\\u003c1\\u003e"],"denied":["x"]}}},"aggregations":{}},' +
        '{"type":"nodes","visibility":"none","filters":{}}]},{"selector":{},"permissions":{}}]}},' +
        '"lifecycle":{"validity":{"notAfter":"2027-01-01T00:00:00Z"}}}',
    )
  })

  it('sorts the keys of maps by code point, not by code unit', () => {
    const labels = { '\u{1F600}': 'b', '\uFF5E': 'a' }
    const spec = { ...shortest, scope: { clusters: { rules: [{ selector: { matchLabels: labels } }] } } }
    expect(canonicalJson(spec)).toContain('{"\uFF5E":"a","\u{1F600}":"b"}')
  })
})

describe('the hash of a spec', () => {
  it('is the first 16 hex digits of SHA-256', () => {
    const whole = createHash('sha256').update(canonicalJson(everything)).digest('hex')
    expect(specHash(everything)).toBe(whole.slice(0, 16))
    expect(specHash(shortest)).toMatch(/^[0-9a-f]{16}$/)
  })

  it('does not tell defaults written from defaults left out', () => {
    const written: MonitorAccessPolicySpec = {
      identity: { priority: 100, subjects: { users: [] } },
      access: { enabled: true, effect: 'Allow' },
      scope: { clusters: { default: 'none', rules: [] } },
    }
    expect(specHash(written)).toBe(specHash(shortest))
  })

  it('tells any other two apart', () => {
    const hashes = [
      shortest,
      everything,
      { ...shortest, access: { effect: 'Deny' as const } },
      { ...shortest, access: { effect: 'Allow' as const, enabled: false } },
      { ...shortest, identity: { subjects: {}, priority: 101 } },
      { ...shortest, lifecycle: {} },
    ].map(specHash)
    expect(new Set(hashes).size).toBe(hashes.length)
  })
})
