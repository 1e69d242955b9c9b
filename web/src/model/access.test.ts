import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { ExplanationView, PreviewView } from '../contract.ts'
import {
  answerText,
  changedTypes,
  countedTypes,
  directionOf,
  type FilterView,
  filterLines,
  permissionText,
  rulesOfDocument,
  selectorText,
  skipWord,
  splitList,
  subjectText,
} from './access.ts'

const lists = (allowed: string[] = [], denied: string[] = []) => ({ allowed, denied })

describe('filterLines', () => {
  it.each<[string, FilterView, string[]]>([
    ['all', { visibility: 'all' }, ['all are shown']],
    ['none, whatever else it says', { visibility: 'none', names: lists(['a']) }, ['nothing is shown']],
    [
      'to be filtered by nothing',
      { visibility: 'filtered' },
      ['nothing is shown: it is to be filtered, but by nothing'],
    ],
    [
      'every condition',
      {
        visibility: 'filtered',
        names: lists(['a', 'b-*', 'c'], ['b-9']),
        namespaces: lists(['shop'], ['kube-*']),
        labels: { team: 'web', tier: '1' },
        fields: { phase: lists(['Bound'], ['Lost']) },
        aggregations: { include: ['total'], exclude: ['cost'] },
      },
      [
        'only those named a, b-* or c',
        'none named b-9',
        'only in namespaces shop',
        'none in namespaces kube-*',
        'only with team=web and tier=1',
        'only where phase is Bound',
        'none where phase is Lost',
        'of its results only total',
        'of its results never cost',
      ],
    ],
  ])('says a filter of %s in words', (_, filter, lines) => expect(filterLines(filter)).toEqual(lines))

  it('never calls a type shown whole that has a condition', () =>
    fc.assert(
      fc.property(fc.array(fc.string({ minLength: 1 }), { minLength: 1 }), fc.boolean(), (names, denied) => {
        const lines = filterLines({ visibility: 'filtered', names: denied ? lists([], names) : lists(names) })
        expect(lines).not.toContain('all are shown')
      }),
    ))
})

describe('words for policies', () => {
  it.each([
    [{ names: ['a', 'b'], pattern: '', labels: {} }, 'clusters named a or b'],
    [
      { names: ['a'], pattern: '^eu-', labels: { env: 'prod' } },
      'clusters named a, whose name matches ^eu- or with env=prod',
    ],
    [{ names: [], pattern: '', labels: {} }, 'no cluster: the selector is empty'],
  ])('says which clusters %j selects', (selector, text) => expect(selectorText(selector)).toBe(text))

  it.each([
    [['view'], 'see it, without usage and history'],
    [['view', 'view_metrics'], 'see it, its usage and its history'],
    [['view_metrics'], 'usage and history only'],
    [[], 'nothing'],
  ])('says what %j permits', (permissions, text) => expect(permissionText(permissions)).toBe(text))

  it('says a reason it does not know in its own words', () => expect(skipWord('moon_is_full')).toBe('moon is full'))

  it.each([
    [{ username: 'alice' }, 'alice'],
    [{ username: 'alice', groups: ['dev', 'ops'] }, 'alice (dev, ops)'],
    [{ username: '', groups: ['dev'] }, 'anybody in dev'],
    [{ username: '' }, 'anybody'],
  ])('names %j', (subject, text) => expect(subjectText(subject)).toBe(text))

  it('reads a list as people type it', () =>
    expect(splitList(' dev, ops,,dev\non-call ')).toEqual(['dev', 'ops', 'on-call']))
})

describe('answerText', () => {
  const explanation = (wish: Partial<ExplanationView>): ExplanationView => ({
    principal: { username: 'alice', email: '', groups: [], administrator: false },
    question: { action: 'view', cluster: 'west', type: null, name: null },
    semantics: 'strict',
    generation: 'g',
    result: 'allow',
    reason: '',
    permissions: [],
    decidedBy: null,
    skipped: [],
    filters: {},
    item: null,
    ...wish,
  })
  const nodes = { action: 'view', cluster: 'west', type: 'nodes', name: null }
  it.each<[Partial<ExplanationView>, string, string, string]>([
    [{}, 'You', 'shown', 'You may see cluster west'],
    [{ result: 'partial' }, 'You', 'part', 'You may see a part of cluster west'],
    [{ result: 'deny' }, 'alice', 'hidden', 'alice may not see cluster west'],
    [{ question: nodes }, 'You', 'shown', 'You may see the nodes of west'],
    [
      { question: { ...nodes, action: 'view_metrics' }, result: 'deny' },
      'You',
      'hidden',
      'You may not see usage and history of the nodes of west',
    ],
    [
      { question: { ...nodes, name: 'n1' }, result: 'partial', item: { shown: false, why: '' } },
      'alice',
      'hidden',
      'alice may not see n1 among the nodes of west',
    ],
    [
      { question: { ...nodes, name: 'n1' }, result: 'partial', item: { shown: true, why: '' } },
      'You',
      'shown',
      'You may see n1 among the nodes of west',
    ],
  ])('answers %j for %s', (wish, who, verdict, text) =>
    expect(answerText(explanation(wish), who)).toEqual({ verdict, text }),
  )
})

describe('changes', () => {
  const change = (before: string, after: string, counts: PreviewView['changes'][number]['counts']) => ({
    subject: { username: 'a' },
    cluster: 'west',
    before,
    after,
    counts,
    decidedBy: null,
  })
  it.each([
    ['more', change('none', 'limited', { nodes: { before: 0, after: 2 } })],
    ['less', change('full', 'full', { nodes: { before: 3, after: 2 } })],
    ['mixed', change('limited', 'limited', { nodes: { before: 3, after: 2 }, operators: { before: 0, after: 1 } })],
    ['mixed', change('limited', 'limited', {})],
  ])('says %s', (direction, one) => expect(directionOf(one)).toBe(direction))

  it('names only the types of which the amount would change', () =>
    expect(
      changedTypes([
        change('full', 'limited', { nodes: { before: 3, after: 2 }, operators: { before: 1, after: 1 } }),
        change('full', 'full', { events: { before: 0, after: 1 } }),
      ]),
    ).toEqual(['nodes', 'events']))

  it('counts types in their usual order, unknown ones last', () =>
    expect(
      countedTypes([
        { counts: { zebras: { shown: 1, of: 1 }, pods: { shown: 1, of: 1 } } },
        { counts: { nodes: { shown: 1, of: 1 } } },
      ]),
    ).toEqual(['nodes', 'pods', 'zebras']))
})

describe('rulesOfDocument', () => {
  it('reads stored rules as administrators get them, patterns as they were written', () =>
    expect(
      rulesOfDocument({
        cluster_rules: [
          {
            cluster_selector: { matchNames: ['a'], matchLabels: { env: 'prod' } },
            permissions: { view: true, viewMetrics: true },
            resources: [
              {
                type: 'pods',
                visibility: 'filtered',
                allowed_names: ['x'],
                name_patterns: [['web-*', '^web-.*$']],
                denied_ns: ['kube-system'],
              },
            ],
          },
        ],
      }),
    ).toEqual([
      {
        selector: { names: ['a'], pattern: '', labels: { env: 'prod' } },
        permissions: ['view', 'view_metrics'],
        filters: {
          pods: {
            visibility: 'filtered',
            names: { allowed: ['x', 'web-*'], denied: [] },
            namespaces: { allowed: [], denied: ['kube-system'] },
            labels: {},
            fields: {},
            aggregations: { include: [], exclude: [] },
          },
        },
      },
    ]))

  it('throws at nothing, whatever a store holds', () =>
    fc.assert(
      fc.property(fc.object({ maxDepth: 4 }), fc.jsonValue(), (document, rules) => {
        const read = rulesOfDocument({ ...document, cluster_rules: rules })
        for (const { selector, permissions, filters } of read) {
          selectorText(selector)
          permissionText(permissions)
          for (const filter of Object.values(filters)) filterLines(filter)
        }
      }),
    ))
})
