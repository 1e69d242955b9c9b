import { describe, expect, it } from 'vitest'
import { readStoredPolicy } from './document.ts'
import { accessOf, storedOf } from './testing/access-of.ts'
import {
  aStoredDocument,
  aStoredRule,
  cluster,
  names,
  namesOf,
  namespace,
  node,
  person,
  policy,
} from './testing/words.ts'
import type { AccessView } from './types.ts'

const alice = person('alice')
const c1 = cluster('c1', { node: [node('a'), node('b')], namespace: [namespace('a')] })
const c2 = cluster('c2', { node: [node('a')] })

/** Documents as somebody's hand or another version left them, above an Allow of everything at the lowest priority. */
async function accessViewOf(document: Record<string, unknown>, who = alice): Promise<AccessView> {
  const access = accessOf([])
  access.source.set([
    readStoredPolicy('clusterpulse/by-hand', JSON.stringify(document)),
    storedOf(policy('Allow', [names('*')], { name: 'lowest', users: ['alice', 'bob'], priority: 1 })),
  ])
  return access.viewOf(who)
}

async function accessViewOfAlone(document: Record<string, unknown>): Promise<AccessView> {
  const access = accessOf([])
  access.source.set([readStoredPolicy('clusterpulse/by-hand', JSON.stringify(document))])
  return access.viewOf(alice)
}

const deny = (over: Record<string, unknown> = {}) => ({ ...aStoredDocument({ effect: 'Deny' }), ...over })
const allow = (over: Record<string, unknown> = {}) => ({ ...aStoredDocument(), ...over })
const rule = (over: Record<string, unknown>) => [{ ...aStoredRule(), ...over }]
const onlyC1 = { matchNames: ['c1'] }

describe('a stored Deny that cannot be read in part', () => {
  it.each<[string, Record<string, unknown>, [c1: boolean, c2: boolean]]>([
    ['sound: its cluster', { cluster_rules: rule({ cluster_selector: onlyC1 }) }, [false, true]],
    [
      'pattern: every cluster',
      { cluster_rules: rule({ cluster_selector: { matchNames: ['c1'], matchPattern: '(' } }) },
      [false, false],
    ],
    [
      'pattern too long: every cluster',
      { cluster_rules: rule({ cluster_selector: { matchPattern: `^c1${'x'.repeat(300)}` } }) },
      [false, false],
    ],
    ['selector: every cluster', { cluster_rules: rule({ cluster_selector: 7 }) }, [false, false]],
    ['names: every cluster', { cluster_rules: rule({ cluster_selector: { matchNames: [7] } }) }, [false, false]],
    ['rule: every cluster', { cluster_rules: ['nonsense'] }, [false, false]],
    ['rules: every cluster', { cluster_rules: 'nonsense' }, [false, false]],
    [
      'resources: the whole cluster',
      { cluster_rules: rule({ cluster_selector: onlyC1, resources: 'nodes' }) },
      [false, true],
    ],
    [
      'type: the whole cluster',
      { cluster_rules: rule({ cluster_selector: onlyC1, resources: [{ type: 7 }] }) },
      [false, true],
    ],
    ['end: no end', { not_after: 'soon', cluster_rules: rule({ cluster_selector: onlyC1 }) }, [false, true]],
    ['end of another kind: no end', { not_after: 7, cluster_rules: rule({ cluster_selector: onlyC1 }) }, [false, true]],
    [
      'begin: no begin',
      { not_before: '2099-13-01T00:00:00Z', cluster_rules: rule({ cluster_selector: onlyC1 }) },
      [false, true],
    ],
    ['enabled: it is', { enabled: 'no', cluster_rules: rule({ cluster_selector: onlyC1 }) }, [false, true]],
    ['permissions: all of them', { cluster_rules: rule({ cluster_selector: onlyC1, permissions: 7 }) }, [false, true]],
    [
      'priority: before all others',
      { priority: 'high', cluster_rules: rule({ cluster_selector: onlyC1 }) },
      [false, true],
    ],
    ['effect: it may be a Deny', { effect: 'deny', cluster_rules: rule({ cluster_selector: onlyC1 }) }, [false, true]],
    [
      'default: ignored in any case',
      { default_cluster_access: 7, cluster_rules: rule({ cluster_selector: onlyC1 }) },
      [false, true],
    ],
    ['hash: harmless', { hash: 7, compiled_at: 7, cluster_rules: rule({ cluster_selector: onlyC1 }) }, [false, true]],
  ])('%s', async (_, over, expected) => {
    const accessView = await accessViewOf(deny(over))
    expect([accessView.canSee(c1), accessView.canSee(c2)]).toEqual(expected)
  })

  it('is about everybody where it cannot be told about whom', async () => {
    const access = accessOf([policy('Allow', [names('*')], { users: ['bob'] })])
    const { policies } = await access.policies()
    access.source.set([...policies, readStoredPolicy('clusterpulse/by-hand', JSON.stringify(deny({ groups: 7 })))])
    const answered = await access.viewOf(person('bob')).then(
      (accessView) => accessView.canSee(c1),
      (error: unknown) => error,
    )
    expect(answered).toMatchObject({ code: 'policies_unavailable' })
  })
})

describe('a stored Allow that cannot be read in part', () => {
  const sees = (accessView: AccessView) => [accessView.canSee(c1), accessView.canSee(c2)]

  it.each<[string, Record<string, unknown>, [c1: boolean, c2: boolean]]>([
    ['sound', { cluster_rules: rule({ cluster_selector: onlyC1 }) }, [true, false]],
    [
      'pattern: grants by what can be read',
      { cluster_rules: rule({ cluster_selector: { matchNames: ['c1'], matchPattern: '(' } }) },
      [true, false],
    ],
    ['labels', { cluster_rules: rule({ cluster_selector: { matchLabels: { env: 7 } } }) }, [false, false]],
    ['permissions', { cluster_rules: rule({ permissions: { view: 'yes' } }) }, [false, false]],
    ['rule: neither it nor one behind it grants', { cluster_rules: ['nonsense', aStoredRule()] }, [false, false]],
    ['rules', { cluster_rules: 'nonsense' }, [false, false]],
    ['end', { not_after: 'soon' }, [false, false]],
    ['enabled', { enabled: 'yes' }, [false, false]],
    ['priority', { priority: 0 }, [false, false]],
    ['effect', { effect: 'ALLOW' }, [false, false]],
    ['default', { cluster_rules: null, default_cluster_access: ['allow'] }, [false, false]],
  ])('%s', async (_, over, expected) => expect(sees(await accessViewOfAlone(allow(over)))).toEqual(expected))

  it.each<[string, Record<string, unknown>, readonly string[]]>([
    ['sound', { allowed_names: ['a'], name_patterns: [['b*', '^b.*$']] }, ['a', 'b']],
    ['an include that cannot be read lets nothing in', { name_patterns: [['b*', '^(b.*$']] }, []],
    [
      'an exclude that cannot be read hides everything',
      { allowed_names: ['a'], deny_name_patterns: [['b*', '(']] },
      [],
    ],
    ['an exclude of another kind hides everything', { denied_names: 'b' }, []],
    ['a visibility that nobody knows hides everything', { visibility: 'some' }, []],
    ['a visibility of another kind hides everything', { visibility: 7 }, []],
    ['labels of another kind hide everything', { labels: 'zone=x' }, []],
    ['fields of a type that has none hide everything', { field_filters: { phase: { denied_literals: ['x'] } } }, []],
    [
      'null, absent and empty are the same',
      { visibility: '', allowed_names: null, denied_names: [], labels: {}, field_filters: null },
      ['a', 'b'],
    ],
    ['keys that nobody knows are ignored', { audit_config: { all: true } }, ['a', 'b']],
  ])('%s', async (_, over, expected) => {
    const resources = [{ type: 'nodes', visibility: 'all', ...over }]
    const accessView = await accessViewOfAlone(allow({ cluster_rules: rule({ resources }) }))
    expect(accessView.canSee(c1)).toBe(true)
    expect(namesOf(accessView.visible(c1, 'node'))).toEqual(expected)
    expect(namesOf(accessView.visible(c1, 'namespace'))).toEqual(['a'])
  })

  it('hides every type where the type of an entry cannot be read', async () => {
    const accessView = await accessViewOfAlone(
      allow({ cluster_rules: rule({ resources: [{ type: 7, visibility: 'none' }] }) }),
    )
    expect([accessView.visible(c1, 'node'), accessView.visible(c1, 'namespace'), accessView.whole(c1)]).toEqual([
      [],
      [],
      false,
    ])
    expect(accessView.custom(c1, 'pvc').result).toBe('deny')
  })

  it('shows no aggregation where their lists cannot be read', async () => {
    const resources = [{ type: 'pvc', visibility: 'all', aggregation_rules: { include: ['a'], exclude: 'b' } }]
    const accessView = await accessViewOfAlone(allow({ cluster_rules: rule({ resources }) }))
    expect(accessView.custom(c1, 'pvc').aggregation('a')).toBe(false)
  })
})
