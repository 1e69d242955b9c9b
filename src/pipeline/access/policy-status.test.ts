import fc from 'fast-check'
import { Compile } from 'typebox/compile'
import { describe, expect, it } from 'vitest'
import { type MonitorAccessPolicyStatus, monitorAccessPolicy } from '#kinds'
import { type InForce, policyStatus, type StatusFacts, statusPatch, storedStatus } from './policy-status.ts'
import { aDocument } from './testing/policies.ts'
import type { Finding } from './types.ts'

const schema = Compile(monitorAccessPolicy.definition.status!)
const now = Date.parse('2026-06-15T12:00:00Z')
const inForce = (over = {}, more: Partial<InForce> = {}): InForce => ({
  document: aDocument('a', over),
  generation: 3,
  uid: 'u',
  ...more,
})
const facts = (over: Partial<StatusFacts> = {}): StatusFacts => ({
  generation: 3,
  stored: undefined,
  findings: [],
  inForce: inForce(),
  now,
  ...over,
})
const error: Finding = { severity: 'error', code: 'pattern_invalid', path: 'spec.x', message: 'is wrong' }
const warning: Finding = { severity: 'warning', code: 'filter_empty', path: 'spec.y', message: 'does nothing' }
const merged = (stored: object, patch: object | undefined) =>
  Object.fromEntries(Object.entries({ ...stored, ...patch }).filter(([, value]) => value !== null))

describe('the status of a policy', () => {
  it.each<[string, object, string, string]>([
    ['counts', {}, 'Active', 'Policy is active'],
    ['is disabled', { enabled: false }, 'Inactive', 'Policy is disabled'],
    ['begins later', { not_before: '2026-06-15T12:00:01Z' }, 'Inactive', 'Policy not yet valid'],
    ['begins at this moment', { not_before: '2026-06-15T14:00:00+02:00' }, 'Active', 'Policy is active'],
    ['ends at this moment', { not_after: '2026-06-15T12:00:00Z' }, 'Active', 'Policy is active'],
    ['ended', { not_after: '2026-06-15T11:59:59.999Z' }, 'Expired', 'Policy expired'],
    ['ended and is disabled', { not_after: '2026-06-15T11:59:59Z', enabled: false }, 'Expired', 'Policy expired'],
  ])('of one that %s', (_, over, state, message) => {
    expect(policyStatus(facts({ inForce: inForce(over) }))).toMatchObject({ state, message })
  })

  it('names the first fault, counts the others, and says what is in force instead', () => {
    const status = policyStatus(facts({ generation: 4, findings: [error, error, warning] }))
    expect(status.message).toBe('Revision 4 has faults; revision 3 stays in force. spec.x: is wrong (and 1 more)')
    expect(status).toMatchObject({
      state: 'Error',
      generationInForce: 3,
      customResourceWarnings: ['spec.y: does nothing'],
    })
  })

  it('leaves out what the state says already', () => {
    const expired: Finding = { ...warning, code: 'validity_expired' }
    expect(policyStatus(facts({ findings: [expired] }))).not.toHaveProperty('customResourceWarnings')
  })

  it('stays small, however much there is to say', () => {
    const long: Finding = { ...warning, message: 'x'.repeat(100_000) }
    const status = policyStatus(
      facts({ findings: [...Array(5_000).fill(long), { ...error, message: long.message }] as Finding[] }),
    )
    expect(status.customResourceWarnings).toHaveLength(101)
    expect(status.customResourceWarnings?.at(-1)).toBe('and 4900 more')
    expect(JSON.stringify(status).length).toBeLessThan(500_000)
  })

  it('leaves times where they were while nothing changed, and says nothing anew', () => {
    const stored = policyStatus(facts())
    const later = policyStatus(facts({ stored, now: now + 60_000 }))
    expect(later).toEqual(stored)
    expect(statusPatch(stored, later)).toBeUndefined()
    const faulty = policyStatus(facts({ stored, findings: [error], now: now + 60_000 }))
    const ready = faulty.conditions?.find(({ type }) => type === 'Ready')
    expect(ready?.lastTransitionTime).toBe('2026-06-15T12:01:00Z')
    expect(storedStatus(faulty)).toMatchObject({ state: 'Error', error_at: '2026-06-15T12:01:00Z' })
    expect(storedStatus(policyStatus(facts({ stored: faulty, findings: [error], now: now + 120_000 })))).toEqual(
      storedStatus(faulty),
    )
  })

  it('is, whatever happened, as the kind says, and complete after one patch', () => {
    const finding = fc.record({
      severity: fc.constantFrom('error' as const, 'warning' as const),
      code: fc.constant('some_code'),
      path: fc.string(),
      message: fc.string(),
    })
    const held = fc.option(
      fc.record({
        document: fc
          .record({
            enabled: fc.boolean(),
            not_before: fc.constantFrom(null, '2026-06-15T12:00:00Z', '2027-01-01T00:00:00Z', 'soon'),
            not_after: fc.constantFrom(null, '2026-06-15T11:00:00Z', '2027-01-01T00:00:00Z'),
            users: fc.array(fc.string()),
          })
          .map((over) => aDocument('a', over)),
        generation: fc.option(fc.integer({ min: 1, max: 9 }), { nil: undefined }),
        uid: fc.constant('u'),
        isClosed: fc.boolean(),
      }),
      { nil: undefined },
    )
    const situation = fc.record({
      generation: fc.option(fc.integer({ min: 1, max: 9 }), { nil: undefined }),
      findings: fc.array(finding, { maxLength: 4 }),
      inForce: held,
      storeTrouble: fc.option(fc.string(), { nil: undefined }),
      now: fc.integer({ min: 0, max: 4_102_444_800_000 }),
    })
    fc.assert(
      fc.property(fc.array(situation, { minLength: 1, maxLength: 4 }), (situations) => {
        let stored: MonitorAccessPolicyStatus = { state: 'Pending', evaluationCount: 0 }
        for (const one of situations) {
          const wanted = policyStatus({ ...one, stored })
          const next = merged(stored, statusPatch(stored, wanted)) as MonitorAccessPolicyStatus
          expect(statusPatch(next, policyStatus({ ...one, stored: next }))).toBeUndefined()
          expect(next).toEqual({ ...wanted, evaluationCount: 0 })
          expect(schema.Errors(next)).toEqual([])
          // Only a policy in force can be active, and only a revision without faults can be ready.
          const is = (type: string) => next.conditions?.find((condition) => condition.type === type)?.status
          if (is('Active') === 'True') expect(one.inForce).toBeDefined()
          if (one.findings.some(({ severity }) => severity === 'error')) expect(is('Ready')).toBe('False')
          if (is('Ready') === 'True') expect(one.inForce).toBeDefined()
          stored = next
        }
      }),
      { numRuns: 300 },
    )
  })
})
