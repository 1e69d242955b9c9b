import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { KollectScopeSpec } from '#kinds'
import { underScopes } from './ceiling.ts'

const pod = { version: 'v1', kind: 'Pod' }
const scope = (spec: KollectScopeSpec, name = 'a', annotations = {}) => ({ name, spec, annotations })
const clip = { 'kollect.dev/excess': 'clip' }
const wanted = { kinds: [pod], namespaces: ['bank', 'shop'] }

describe('a ceiling', () => {
  it('leaves everything where there is no scope', () => expect(underScopes([], wanted)).toEqual({ reach: wanted }))

  it('names what was wanted and who denied it, and not what would be allowed', () => {
    expect(underScopes([scope({ allowedNamespaces: ['shop'] })], wanted).denied).toEqual({
      reason: 'ScopeNamespaceDenied',
      message: 'the scope a does not allow the namespace bank',
    })
    const { denied } = underScopes(
      [scope({ allowedGVKs: [{ group: 'apps', version: 'v1', kind: 'Secretive' }] })],
      wanted,
    )
    expect(denied).toEqual({ reason: 'ScopeGVKDenied', message: 'the scope a does not allow Pod' })
  })

  it('compares kinds without regard to case', () =>
    expect(underScopes([scope({ allowedGVKs: [{ version: 'V1', kind: 'pod' }] })], wanted).reach).toEqual(wanted))

  it('takes a scope of the own namespace as consent to read another, and no other scope', () => {
    expect(underScopes([], wanted, 'shop').denied?.message).toContain('bank is not its own')
    expect(underScopes([scope({ deniedNamespaces: ['x'] })], wanted, 'shop').denied).toBeDefined()
    expect(underScopes([scope({ allowedNamespaces: ['shop', 'bank'] })], wanted, 'shop').reach).toEqual(wanted)
    expect(underScopes([scope({}, 'a', clip)], wanted, 'shop').reach?.namespaces).toEqual(['shop'])
  })

  const names = fc.subarray(['a', 'b', 'c', 'd'])
  const scopes = fc.array(
    fc.record({
      name: fc.string({ minLength: 1 }),
      spec: fc.record({ allowedNamespaces: names, deniedNamespaces: names }),
      annotations: fc.constantFrom({}, clip),
    }),
    { maxLength: 4 },
  )
  it('never leaves more for one scope more, in whatever order they come', () =>
    fc.assert(
      fc.property(scopes, scopes, names, (some, more, namespaces) => {
        const reachOf = (all: Parameters<typeof underScopes>[0]) =>
          underScopes(all, { kinds: [pod], namespaces }).reach?.namespaces ?? []
        const less = reachOf([...some, ...more])
        const all = reachOf(some)
        expect(less.filter((one) => !all.includes(one))).toEqual([])
        for (const { spec } of [...some, ...more]) {
          const allowed = spec.allowedNamespaces
          expect(less.filter((one) => spec.deniedNamespaces.includes(one))).toEqual([])
          if (allowed.length > 0) expect(less.filter((one) => !allowed.includes(one))).toEqual([])
        }
      }),
    ))
})
