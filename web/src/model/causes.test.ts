import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { clustersOf, groupCauses, groupChanges, sharedText } from './causes.ts'
import type { EventLine } from './events.ts'

const west = { name: 'west', displayName: 'West Coast', endpoint: 'https://10.0.0.1:6443' }

describe('sharedText', () => {
  it.each([
    ['west did not answer within 10 s', 'did not answer within 10 s'],
    ['cluster west did not answer', 'did not answer'],
    ['West Coast did not answer', 'did not answer'],
    [
      'nothing listens at https://10.0.0.1:6443; check address and port',
      'nothing listens at its API; check address and port',
    ],
    ['GET /api/v1/nodes: https://10.0.0.1:6443 did not answer completely', 'its API did not answer completely'],
    ['no certificate for 10.0.0.1:6443', 'no certificate for its API'],
    ['1 of 9 nodes not ready: west-1', '1 of 9 nodes not ready: west-1'],
    [
      'connection test failed: GET /api/v1/namespaces: https://10.0.0.1:6443 did not answer completely within 10 s',
      'its API did not answer completely within 10 s',
    ],
    [
      'failed to get node metrics: GET /api/v1/pods: https://10.0.0.1:6443 did not answer completely within 10 s',
      'its API did not answer completely within 10 s',
    ],
    [
      'failed to get node metrics: GET /api/v1/nodes: the account may not do this (403)',
      'failed to get node metrics: the account may not do this (403)',
    ],
    ['connection test failed: west is away', 'is away'],
    [
      'deployments may not be read: GET /apis/apps/v1/deployments: the account may not do this (403)',
      'deployments may not be read: the account may not do this (403)',
    ],
    ['the token of west has expired', 'the token of it has expired'],
    ['', ''],
  ])('says %j as %j', (message, shared) => expect(sharedText(message, west)).toBe(shared))

  it('reads no name as a pattern', () => expect(sharedText('a.b is away', { ...west, name: 'a.b' })).toBe('is away'))
})

describe('groupCauses', () => {
  const complaint = ([code, text]: readonly [string, string]) => ({ code, text, shared: text.replace(/^\w+ /, '') })

  it('makes one line of what is equal, and leaves one alone in its own words', () => {
    const dead = Array.from({ length: 30 }, (_, index) => ['unreachable', `c${index} is away`] as const)
    const groups = groupCauses([...dead, ['no_nodes', 'lab has no nodes'] as const], complaint)
    expect(groups.map(({ text, isSame, items }) => [text, isSame, items.length])).toEqual([
      ['is away', true, 30],
      ['lab has no nodes', true, 1],
    ])
  })

  it('keeps few wordings of a code apart, and makes one line of many', () => {
    const few = (count: number) =>
      Array.from({ length: count }, (_, index) => ['nodes_not_ready', `c ${index}`] as const)
    expect(groupCauses(few(3), complaint)).toHaveLength(3)
    expect(groupCauses(few(4), complaint).map(({ text, isSame }) => [text, isSame])).toEqual([
      ['nodes not ready', false],
    ])
  })

  it('loses nobody and names nobody twice', () =>
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.constantFrom('a', 'b'), fc.constantFrom('x', 'y', 'z', 'u', 'v'))), (items) => {
        const all = groupCauses(items, complaint).flatMap((group) => group.items)
        expect(all).toHaveLength(items.length)
        expect(new Set(all)).toEqual(new Set(items))
      }),
    ))
})

describe('groupChanges', () => {
  const line = (cluster: string, at: number, text: string, type = 'health'): EventLine => ({
    key: `${cluster} ${at} ${text}`,
    cluster,
    at,
    need: 'unhealthy',
    text,
    type,
    detail: '',
  })

  it('makes one line of what many clusters did within minutes, and another of what they do later', () => {
    const at = 3_600_000
    const many = Array.from({ length: 30 }, (_, index) => line(`c${index}`, at - index * 1000, 'turned unhealthy'))
    const later = line('c1', at - 20 * 60_000, 'turned unhealthy')
    expect(groupChanges([...many, later]).map(({ of, lines }) => [of, lines.length])).toEqual([
      ['clusters', 30],
      ['one', 1],
    ])
  })

  it('counts clusters, not how often they turned; one that turned twice is not several', () => {
    const turns = ['west', 'east', 'west', 'east', 'west'].map((name, index) =>
      line(name, 500 - index, 'turned degraded'),
    )
    const [group] = groupChanges(turns)
    expect([group?.of, group?.lines.length, clustersOf(group?.lines ?? [])]).toEqual(['clusters', 5, 2])
    const [alone] = groupChanges([line('west', 9, 'turned degraded'), line('west', 3, 'turned degraded')])
    expect(alone).toMatchObject({ of: 'kind', lines: [{ cluster: 'west' }, { cluster: 'west' }] })
  })

  it('makes one line of what one cluster tells again and again, and keeps the newest first', () => {
    const nodes = ['a', 'b', 'c'].map((node, index) => line('west', 100 - index, `node ${node} is not ready`, 'node'))
    const groups = groupChanges([line('east', 200, 'was connected'), ...nodes])
    expect(groups.map(({ of, lines }) => [of, lines[0].cluster, lines.length])).toEqual([
      ['one', 'east', 1],
      ['kind', 'west', 3],
    ])
  })
})
