import { describe, expect, it } from 'vitest'
import { stateOf, surveyPolicies } from './survey.ts'
import { storedDocument, storedOf } from './testing/access-of.ts'
import { aStoredDocument, cluster, names, pattern, policy } from './testing/words.ts'

const now = Date.UTC(2026, 0, 1)
const clusters = [cluster('east', {}, { env: 'prod' }), cluster('west', {}, { env: 'test' })]
const survey = (policies: Parameters<typeof surveyPolicies>[0], semantics: 'strict' | 'original' = 'strict') =>
  surveyPolicies(policies, clusters, { now, semantics })

describe('a survey of policies', () => {
  it('has them in the order in which they are looked at', () => {
    const stored = [
      storedOf(policy('Allow', [names('west')], { name: 'b' })),
      storedOf(policy('Allow', [names('west')], { name: 'a' })),
      storedOf(policy('Deny', [names('west')], { name: 'z' })),
      storedOf(policy('Allow', [names('west')], { name: 'low', priority: 7 })),
      storedOf(policy('Allow', [names('west')], { name: 'high', priority: 900 })),
    ]
    expect(survey(stored).map(({ key }) => key.replace('clusterpulse/', ''))).toEqual(['high', 'z', 'a', 'b', 'low'])
  })

  it('names the clusters that a rule selects now, by name, pattern and label', () => {
    const rules = [names('w*'), pattern('^ea'), { selector: { matchLabels: { env: 'prod' } } }, { selector: {} }]
    const stored = rules.map((rule, at) => storedOf(policy('Allow', [rule], { name: `p${at}` })))
    expect(survey(stored).map(({ clusters: selected }) => selected)).toEqual([['west'], ['east'], ['east'], []])
    expect(survey(stored, 'original').map(({ clusters: selected }) => selected)).toEqual([[], ['east'], [], []])
  })

  it('says of a Deny with a broken selector that it selects everything, and that it is at fault', () => {
    const broken = aStoredDocument({
      effect: 'Deny',
      cluster_rules: [{ cluster_selector: { matchPattern: '[' }, permissions: { view: true }, resources: null }],
    })
    expect(survey([storedDocument(broken)])).toMatchObject([
      { state: 'Error', clusters: ['east', 'west'], findings: [{ severity: 'error' }] },
    ])
  })

  it('sums rules up as people read them', () => {
    const rule = {
      ...names('west'),
      permissions: { view: true, viewMetrics: true },
      resources: [
        { type: 'nodes', visibility: 'filtered' as const, filters: { names: { allowed: ['a*'], denied: ['ab'] } } },
        { type: 'pods', visibility: 'none' as const },
      ],
    }
    expect(survey([storedOf(policy('Allow', [rule]))])[0]?.rules).toEqual([
      {
        selector: { names: ['west'], pattern: '', labels: {} },
        permissions: ['view', 'view_metrics'],
        filters: {
          nodes: { visibility: 'filtered', names: { allowed: ['a*'], denied: ['ab'] } },
          pods: { visibility: 'none' },
        },
      },
    ])
  })
})

describe('the state of a policy', () => {
  const at = (shift: number) => new Date(now + shift).toISOString()
  it.each([
    [{}, 'Active'],
    [{ not_before: at(1000) }, 'Inactive'],
    [{ not_before: at(0) }, 'Active'],
    [{ not_after: at(0) }, 'Active'],
    [{ not_after: at(-1000) }, 'Expired'],
    [{ enabled: false }, 'Inactive'],
    [{ enabled: false, not_after: at(-1000) }, 'Expired'],
    [{ not_after: 'soon' }, 'Error'],
  ] as const)('of %j is %s', (over, state) => {
    expect(stateOf(storedDocument(aStoredDocument(over)), now).state).toBe(state)
  })
})
