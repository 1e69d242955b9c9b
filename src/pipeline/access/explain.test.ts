import { describe, expect, it } from 'vitest'
import { accessOf } from './testing/access-of.ts'
import { cluster, names, namespace, node, operator, person, policy, type Resource } from './testing/words.ts'
import type { Question } from './types.ts'

const alice = person('alice', 'dev')
const noon = Date.parse('2026-06-01T12:00:00Z')
const clock = { now: () => noon, sleep: () => Promise.resolve() }
const onC1 = { name: 'c1', labels: { env: 'prod' } }
const ask = (over: Partial<Question> = {}): Question => ({ action: 'view', cluster: onC1, ...over })

describe('explain', () => {
  it('names who decided, and everybody who did not, with a reason, in the order in which they are looked at', async () => {
    const access = accessOf(
      [
        policy('Deny', [names('c1')], { name: 'off', priority: 900, enabled: false }),
        policy('Deny', [names('c1')], { name: 'later', priority: 800, notBefore: '2026-07-01T00:00:00Z' }),
        policy('Deny', [names('c1')], { name: 'over', priority: 700, notAfter: '2026-05-01T00:00:00Z' }),
        policy('Deny', [{ ...names('c1'), resources: [{ type: 'operators' }] }], { name: 'types', priority: 600 }),
        policy('Allow', [names('other')], { name: 'elsewhere', priority: 500 }),
        policy('Allow', [names('other')], { name: 'default', priority: 400, default: 'allow' }),
        policy('Allow', [{ ...names('c1'), permissions: { viewMetrics: true } }], { name: 'blind', priority: 300 }),
        policy('Allow', [names('x'), { selector: { matchLabels: { env: 'prod' } } }], { name: 'this', priority: 200 }),
        policy('Deny', [names('c1')], { name: 'low', priority: 100 }),
        policy('Deny', [names('c1')], { name: 'of-others', users: ['bob'], priority: 1000 }),
      ],
      { clock },
    )
    const told = await access.explain(alice, ask())
    expect(told).toMatchObject({ result: 'partial', reason: 'Allowed by policy this', permissions: ['view'] })
    expect(told.decidedBy).toMatchObject({ policy: 'clusterpulse/this', rule: 1, selectedBy: 'labels', priority: 200 })
    expect(told.skipped.map(({ policy, why }) => [policy.replace('clusterpulse/', ''), why])).toEqual([
      ['off', 'disabled'],
      ['later', 'not_yet_valid'],
      ['over', 'expired'],
      ['types', 'type_not_named'],
      ['elsewhere', 'no_rule_selects_the_cluster'],
      ['default', 'default_not_reached'],
      ['blind', 'action_not_permitted'],
      ['low', 'lower_than_the_deciding'],
    ])
    expect(told.skipped[1]?.detail).toBe('valid from 2026-07-01T00:00:00Z')
    expect(JSON.stringify(told)).not.toContain('of-others')
    expect(told.filters).toEqual({ operators: { visibility: 'none' } })
  })

  it('names the Deny where it is asked for the type that it hides', async () => {
    const access = accessOf([
      policy('Deny', [{ ...names('*'), resources: [{ type: 'nodes' }] }], { name: 'no', priority: 200 }),
      policy('Allow', [names('c1')], { name: 'yes', priority: 100 }),
    ])
    expect(await access.explain(alice, ask({ type: 'nodes', name: 'a' }))).toMatchObject({
      result: 'deny',
      reason: 'Denied by policy no',
      decidedBy: { policy: 'clusterpulse/no' },
      item: { shown: false, why: 'nodes is hidden as a whole' },
      skipped: [{ policy: 'clusterpulse/yes' }],
    })
    expect(await access.explain(alice, ask({ type: 'namespaces', name: 'a' }))).toMatchObject({
      decidedBy: { policy: 'clusterpulse/yes' },
      item: { shown: true },
    })
  })

  it('says that view is not view_metrics', async () => {
    const access = accessOf([policy('Allow', [names('c1')], { name: 'yes' })])
    expect(await access.explain(alice, ask({ action: 'view_metrics' }))).toMatchObject({
      result: 'deny',
      reason: 'The deciding policy clusterpulse/yes does not permit view_metrics',
      permissions: ['view'],
    })
  })

  it('says of a default that it is one', async () => {
    const access = accessOf([policy('Allow', [], { name: 'open', default: 'allow' })])
    expect((await access.explain(alice, ask())).decidedBy).toMatchObject({ rule: null, selectedBy: 'default' })
    expect((await access.explain(alice, ask())).skipped).toEqual([])
  })

  it('says of an administrator that nothing is hidden', async () => {
    const access = accessOf([policy('Deny', [names('*')])], { administrators: { users: ['alice'] } })
    expect(await access.explain(alice, ask({ type: 'nodes', name: 'a' }))).toMatchObject({
      result: 'allow',
      decidedBy: null,
      skipped: [],
      item: { shown: true },
    })
  })

  it.each<[string, Resource, Partial<Question>, boolean, RegExp]>([
    [
      'a name that passes',
      { type: 'nodes', filters: { names: { allowed: ['w-*'] } } },
      { type: 'nodes', name: 'w-1' },
      true,
      /nothing/,
    ],
    [
      'a name that does not',
      { type: 'nodes', filters: { names: { allowed: ['w-*'] } } },
      { type: 'nodes', name: 'm' },
      false,
      /name/,
    ],
    [
      'a label',
      { type: 'nodes', filters: { labels: { zone: 'x' } } },
      { type: 'nodes', name: 'm', labels: { zone: 'y' } },
      false,
      /labels/,
    ],
    [
      'a namespace',
      { type: 'operators', filters: { namespaces: { allowed: ['a'] } } },
      { type: 'operators', name: 'm', namespace: 'b' },
      false,
      /namespace/,
    ],
    [
      'a field',
      { type: 'pvc', filters: { fields: { phase: { denied: ['Lost'] } } } },
      { type: 'pvc', name: 'm', fields: { phase: 'Lost' } },
      false,
      /fields/,
    ],
    [
      'another value',
      { type: 'pvc', filters: { fields: { phase: { denied: ['Lost'] } } } },
      { type: 'pvc', name: 'm', fields: { phase: 'Bound' } },
      true,
      /nothing/,
    ],
    [
      'pods by namespace',
      { type: 'namespaces', filters: { names: { denied: ['b'] } } },
      { type: 'pods', name: 'm', namespace: 'b' },
      false,
      /name/,
    ],
    [
      'an event by its type',
      { type: 'events', filters: { names: { denied: ['node.*'] } } },
      { type: 'events', name: 'node.ready' },
      false,
      /name/,
    ],
    [
      'an alert',
      { type: 'alerts', filters: { labels: { severity: 'critical' } } },
      { type: 'alerts', name: 'Slow', labels: { severity: 'info' } },
      false,
      /labels/,
    ],
    ['a registry', { type: 'registries', visibility: 'none' }, { type: 'registries', name: 'c1' }, false, /whole/],
    ['a type that is hidden', { type: 'nodes', visibility: 'none' }, { type: 'nodes', name: 'a' }, false, /whole/],
    ['a custom type that nobody grants', { type: 'nodes' }, { type: 'vm', name: 'a' }, false, /whole/],
  ])('says why one item is shown or hidden: %s', async (_, resource, question, shown, why) => {
    const access = accessOf([policy('Allow', [{ ...names('c1'), resources: [resource] }])])
    const { item } = await access.explain(alice, ask(question))
    expect(item).toEqual({ shown, why: expect.stringMatching(why) })
  })

  it('agrees with what is shown', async () => {
    const state = cluster('c1', {
      node: [node('a', { zone: 'x' }), node('b', { zone: 'x' }), node('c')],
      namespace: [namespace('a'), namespace('b', { zone: 'x' })],
      operator: [operator('a', ['b']), operator('c', ['a'])],
    })
    const filters = { names: { denied: ['a'] }, labels: { zone: 'x' } }
    const access = accessOf([
      policy('Allow', [
        {
          ...names('c1'),
          resources: [
            { type: 'nodes', filters },
            { type: 'namespaces', filters },
            { type: 'operators', filters: { namespaces: { allowed: ['b'] } } },
          ],
        },
      ]),
    ])
    const accessView = await access.viewOf(alice)
    const shown = async (type: string, name: string, over: Partial<Question>) =>
      (await access.explain(alice, ask({ cluster: { name: 'c1', labels: {} }, type, name, ...over }))).item?.shown
    for (const { name, labels } of state.parts.node?.items.values() ?? []) {
      const isShown = accessView.visible(state, 'node').some((row) => row.name === name)
      expect([name, await shown('nodes', name, { labels })]).toEqual([name, isShown])
    }
    for (const { name, labels } of state.parts.namespace?.items.values() ?? []) {
      const isShown = accessView.visible(state, 'namespace').some((row) => row.name === name)
      expect([name, await shown('namespaces', name, { labels })]).toEqual([name, isShown])
    }
    for (const { csv, availableInNamespaces } of state.parts.operator?.items.values() ?? []) {
      const isShown = accessView.visible(state, 'operator').some((row) => row.csv === csv)
      expect([csv, await shown('operators', csv, { namespace: availableInNamespaces[0] ?? '' })]).toEqual([
        csv,
        isShown,
      ])
    }
  })

  describe('of a row of a kind that is compiled in', () => {
    const kind = (name: string, isTaken = false) => ({ name, rule: 'namespaced', isTaken }) as const
    const row = { name: 'web', namespace: 'shop', labels: { tier: 'gold' } }
    const asked = async (resources: readonly Resource[], over: Partial<Question> = {}) => {
      const access = accessOf([policy('Allow', [{ ...names('c1'), resources: [...resources] }])])
      const { result, item } = await access.explain(
        alice,
        ask({ type: 'services', resource: kind('services'), ...row, ...over }),
      )
      return [result, item?.shown, item?.why ?? '']
    }
    const shop: Resource = { type: 'namespaces', visibility: 'filtered', filters: { labels: { team: 'a' } } }
    const hiddenPods: Resource = { type: 'pods', visibility: 'none' }
    const all = (type: string): Resource => ({ type, visibility: 'all' })

    it('says which rule hides it', async () => {
      const named: Resource = { type: 'services', visibility: 'filtered', filters: { names: { allowed: ['db'] } } }
      const labelled: Resource = { type: 'services', visibility: 'filtered', filters: { labels: { tier: 'iron' } } }
      expect(await asked([])).toEqual(['allow', true, 'services: nothing hides it'])
      expect(await asked([shop])).toEqual(['partial', false, 'services is in a namespace that is not shown'])
      expect(await asked([shop], { namespaceLabels: { team: 'a' } })).toEqual([
        'partial',
        true,
        expect.stringContaining('nothing hides it'),
      ])
      expect((await asked([named]))[2]).toContain('this name does not pass')
      expect((await asked([labelled]))[2]).toContain('filtered by labels')
      expect((await asked([hiddenPods]))[2]).toContain('follows pods')
    })

    it('that follows pods is denied with them, unless the policy names it under the name it has', async () => {
      const taken = { resource: kind('services', true) }
      expect((await asked([hiddenPods]))[0]).toBe('deny')
      expect(await asked([hiddenPods, all('services')])).toEqual([
        'partial',
        true,
        expect.stringContaining('nothing hides it'),
      ])
      expect((await asked([hiddenPods, all('services')], taken))[0]).toBe('deny')
      expect(await asked([hiddenPods, all('core/services')], taken)).toEqual([
        'partial',
        true,
        expect.stringContaining('nothing hides it'),
      ])
    })

    it('names the Deny, of the kind under either name or of the pods that it follows', async () => {
      for (const type of ['services', 'core/services', 'pods']) {
        const access = accessOf([
          policy('Deny', [{ ...names('c1'), resources: [{ type }] }], { name: 'no', priority: 200 }),
          policy('Allow', [names('c1')], { name: 'yes' }),
        ])
        expect(
          await access.explain(alice, ask({ type: 'services', resource: kind('services'), ...row })),
        ).toMatchObject({ result: 'deny', decidedBy: { policy: 'clusterpulse/no' }, item: { shown: false } })
      }
    })

    it('of pods compares names and labels', async () => {
      const gold: Resource = { type: 'pods', visibility: 'filtered', filters: { labels: { tier: 'gold' } } }
      expect(await asked([gold], { type: 'pods', resource: { name: 'pods', rule: 'pods', isTaken: false } })).toEqual([
        'partial',
        true,
        expect.stringContaining('nothing hides it'),
      ])
    })
  })
})
