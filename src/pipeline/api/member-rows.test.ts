import { describe, expect, it } from 'vitest'
import type { AccessView } from '#access'
import { type MemberFacts, type MemberReader, parseClusterName, systemClock } from '#model'
import type { StateReader } from '#state'
import { MemberRows } from './member-rows.ts'

const aMember = (name: string, over: Partial<MemberFacts> = {}): MemberFacts => ({
  name,
  ...{ state: 'available', accepted: true, joined: true, available: 'True', reason: '', message: '' },
  ...{ since: 1, createdAt: 1, sets: ['default'], transport: 'stream', kubernetesVersion: 'v1.33.1' },
  ...{ clockSynced: true, taints: [], claims: {}, labels: {} },
  ...over,
})

/** Who sees these clusters, or everything. */
const sees = (...names: readonly string[]): AccessView => {
  const view = { administrator: names.includes('*'), canSee: ({ name }: { name: string }) => names.includes(name) }
  return view as unknown as AccessView // all that rows of members ask
}

function rowsOf(members: readonly MemberFacts[], clusters: readonly string[], isKnown = true) {
  let stateVersion = 1
  let labels: Readonly<Record<string, string>> = {}
  const reader: MemberReader = { members: () => members, version: () => 1, isKnown: () => isKnown }
  const state = {
    version: () => stateVersion,
    cluster: (name: string) =>
      clusters.includes(name) ? { name: parseClusterName(name), connection: { labels } } : undefined,
  } as unknown as Pick<StateReader, 'cluster' | 'version'>
  return {
    rows: new MemberRows({ members: reader, state, clock: systemClock }),
    relabel: () => {
      labels = { env: 'prod' }
      stateVersion++
    },
    move: () => void stateVersion++,
  }
}
const namesIn = (rows: MemberRows, view: AccessView) => [...rows.rows(view).rows.rows()].map(({ name }) => name)

describe('rows of members', () => {
  it('are seen with their clusters; those that have none, by administrators', () => {
    const { rows } = rowsOf([aMember('east'), aMember('west'), aMember('asks', { state: 'pending' })], ['east', 'west'])
    expect(namesIn(rows, sees('east'))).toEqual(['east'])
    expect(namesIn(rows, sees())).toEqual([])
    expect(namesIn(rows, sees('*'))).toEqual(['asks', 'east', 'west'])
    expect(rows.rows(sees('east')).aggregations).toEqual({ byState: { available: 1 } })
  })

  it('are not known before the objects were read, which is not the same as none', () => {
    expect(rowsOf([], [], false).rows.rows(sees('*'))).toMatchObject({
      outcome: 'unreachable',
      code: 'members_unknown',
    })
    expect(rowsOf([], []).rows.rows(sees('*'))).toMatchObject({ outcome: 'complete' })
  })

  it('are others where what policies select by moves, and the same where only numbers do', () => {
    const { rows, relabel, move } = rowsOf([aMember('east')], ['east'])
    const before = rows.version()
    move()
    expect(rows.version()).toBe(before)
    relabel()
    expect(rows.version()).not.toBe(before)
  })
})
