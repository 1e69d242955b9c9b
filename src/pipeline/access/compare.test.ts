import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { asPrincipal, compareAccess, countsOf, subjectsOf } from './compare.ts'
import { accessOf, storedDocument, storedOf } from './testing/access-of.ts'
import { aStoredDocument, cluster, names, pattern, person, policy } from './testing/words.ts'
import type { PolicyObject, Principal } from './types.ts'

const aNode = (name: string) => ({ name, labels: {} }) as never // rows of which only name and labels are looked at
const clusters = [cluster('west', { node: [aNode('a'), aNode('b')] }), cluster('east', { node: [aNode('a')] })]
const compare = async (
  before: readonly PolicyObject[],
  after: readonly PolicyObject[],
  who: Principal = person('alice'),
) => compareAccess(await accessOf(before).viewOf(who), await accessOf(after).viewOf(who), clusters)

describe('what changes between two sets of policies', () => {
  it('is nothing where the same is decided, even by a policy of another name', async () => {
    const same = await compare(
      [policy('Allow', [names('west')], { name: 'one' })],
      [policy('Allow', [names('west')], { name: 'two' })],
    )
    expect(same).toEqual({ changes: [], unchanged: 2 })
    const otherwise = await compare([policy('Allow', [names('west')])], [policy('Allow', [pattern('^west$')])])
    expect(otherwise).toEqual({ changes: [], unchanged: 2 })
  })

  it('is each cluster that is seen more or less, with counts and who decides', async () => {
    const before = [policy('Allow', [names('west')])]
    const after = [
      policy('Allow', [names('east')], { name: 'east' }),
      policy('Allow', [
        {
          ...names('west'),
          resources: [{ type: 'nodes', visibility: 'filtered', filters: { names: { denied: ['b'] } } }],
        },
      ]),
    ]
    const { changes, unchanged } = await compare(before, after)
    expect(unchanged).toBe(0)
    expect(changes).toMatchObject([
      { cluster: 'west', before: 'limited', after: 'limited', counts: { nodes: { before: 2, after: 1 } } },
      {
        cluster: 'east',
        before: 'none',
        after: 'limited',
        counts: { nodes: { before: 0, after: 1 } },
        decidedBy: { policy: 'clusterpulse/east' },
      },
    ])
  })

  it('is told where a filter changes that hides nothing yet', async () => {
    const filtered = policy('Allow', [
      {
        ...names('west'),
        resources: [{ type: 'nodes', visibility: 'filtered', filters: { names: { denied: ['z'] } } }],
      },
    ])
    const { changes } = await compare([policy('Allow', [names('west')])], [filtered])
    expect(changes).toMatchObject([{ cluster: 'west', counts: { nodes: { before: 2, after: 2 } } }])
  })

  it('turned around is the same with before and after exchanged', async () => {
    const sets = fc.subarray([
      policy('Allow', [names('west')]),
      policy('Allow', [pattern('.*')], { priority: 50 }),
      policy('Deny', [names('east')], { priority: 200 }),
      policy('Deny', [{ ...names('west'), resources: [{ type: 'nodes' }] }], { priority: 300 }),
    ])
    await fc.assert(
      fc.asyncProperty(sets, sets, async (one, other) => {
        const there = await compare(one, other)
        const back = await compare(other, one)
        expect(back.unchanged).toBe(there.unchanged)
        expect(back.changes.map(({ cluster: name, before, after }) => [name, after, before])).toEqual(
          there.changes.map(({ cluster: name, before, after }) => [name, before, after]),
        )
      }),
      { numRuns: 60 },
    )
  })
})

describe('counts', () => {
  it('are zero for a cluster that is hidden', async () => {
    const accessView = await accessOf([policy('Allow', [names('west')])]).viewOf(person('alice'))
    expect(clusters.map((one) => countsOf(accessView, one).nodes)).toEqual([2, 0])
  })
  it('are not there for what was never read on a cluster', async () => {
    const accessView = await accessOf([policy('Allow', [names('west')])]).viewOf(person('alice'))
    expect(clusters.map((one) => countsOf(accessView, one).operators)).toEqual([undefined, undefined])
    expect(countsOf(accessView, cluster('west', { operator: [] })).operators).toBe(0)
  })
})

describe('subjects', () => {
  it('are everyone whom a policy names, once, and a member of each group', () => {
    const stored = [
      storedOf(policy('Allow', [names('west')], { users: ['ann', 'bob@example.org'], groups: ['dev'] })),
      storedOf(
        policy('Deny', [names('west')], {
          users: ['ann'],
          groups: ['dev', 'ops'],
          serviceAccounts: [{ name: 'bot', namespace: 'ci' }],
        }),
      ),
    ]
    expect(
      subjectsOf(stored).map(({ username, email, groups, isServiceAccount }) => [
        username,
        email,
        groups,
        isServiceAccount,
      ]),
    ).toEqual([
      ['ann', '', [], false],
      ['bob@example.org', 'bob@example.org', [], false],
      ['', '', ['dev'], false],
      ['system:serviceaccount:ci:bot', '', [], true],
      ['', '', ['ops'], false],
    ])
  })

  it('are no administrators by the way they are said to have signed in', () => {
    const access = accessOf([])
    for (const username of ['local-administrator', '', 'root'])
      expect(access.isAdministrator(asPrincipal({ username }))).toBe(false)
  })

  it('of a document with faults are those that can be read', () => {
    const stored = storedDocument(aStoredDocument({ users: ['ann'], groups: null as never }))
    expect(subjectsOf([stored]).map(({ username }) => username)).toEqual(['ann'])
  })
})
