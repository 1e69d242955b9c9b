import { describe, expect, it } from 'vitest'
import type { AccessView } from '#access'
import { AUTHORITY_LOST, type MemberFacts, type MemberRequest, parseClusterName, systemClock } from '#model'
import type { StateReader } from '#state'
import { MemberRequestRows, MemberRows } from './member-rows.ts'
import { aMember, SomeMembers } from './test/members.ts'

/** Who sees these clusters, or everything. */
const sees = (...names: readonly string[]): AccessView => {
  const view = { administrator: names.includes('*'), canSee: ({ name }: { name: string }) => names.includes(name) }
  return view as unknown as AccessView // all that rows of members ask
}

function rowsOf(members: readonly MemberFacts[], clusters: readonly string[], isKnown = true) {
  let stateVersion = 1
  let labels: Readonly<Record<string, string>> = {}
  const served = new SomeMembers(members)
  served.isKnown = isKnown
  const state = {
    version: () => stateVersion,
    cluster: (name: string) =>
      clusters.includes(name) ? { name: parseClusterName(name), connection: { labels } } : undefined,
  } as unknown as Pick<StateReader, 'cluster' | 'version'>
  return {
    rows: new MemberRows({ members: served.members, state, clock: systemClock }),
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
    const { rows } = rowsOf(
      [aMember('east'), aMember('west'), aMember('asks', { state: 'not accepted yet' })],
      ['east', 'west'],
    )
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

  it('say until when a certificate counts, and of who is no member, or is locked out, nothing, however long it lives', () => {
    const certificate = { from: 1000, until: 4000 }
    const out = { accepted: false, state: 'denied', certificate } as const
    const lockedOut = { reason: AUTHORITY_LOST, certificate }
    const { rows } = rowsOf(
      [aMember('denied', out), aMember('east', { certificate }), aMember('west', lockedOut)],
      ['denied', 'east', 'west'],
    )
    const table = rows.rows(sees('*')).rows
    const valuesOf = (name: string) => [...table.rows()].find((row) => row.name === name)?.values
    expect(valuesOf('east')).toMatchObject({ certificateFrom: 1000, certificateUntil: 4000, renewsFrom: 3000 })
    for (const name of ['denied', 'west'])
      expect(valuesOf(name)).toMatchObject({ certificateFrom: 1000, certificateUntil: null, renewsFrom: null })
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

describe('rows of requests', () => {
  const aRequest = (name: string): MemberRequest => ({
    ...{ name, cluster: 'east', username: 'system:admin', address: '10.0.0.1', key: 'ab', agentVersion: '' },
    ...{ requestedAt: 1, missing: ['acceptance'] },
  })

  it('say where each comes from, or by which credential it asked the API itself', () => {
    const asks = [
      { name: 'a' },
      {
        name: 'b',
        address: '',
        username: 'system:serviceaccount:open-cluster-management:agent-registration-bootstrap',
      },
      { name: 'c', address: '', username: 'eve' },
      { name: 'd', address: '', username: '' },
    ]
    const served = new SomeMembers(
      [],
      asks.map((one) => ({ ...aRequest(one.name), ...one })),
    )
    const rows = new MemberRequestRows(served.requests, systemClock).rows(sees('*')).rows
    expect([...rows.rows()].map(({ values }) => values.from)).toEqual([
      '10.0.0.1',
      "the hub's API, account open-cluster-management/agent-registration-bootstrap",
      "the hub's API, user eve",
      null,
    ])
  })

  it('are of when the hub last heard of them, with all that is known, where it hears no more', () => {
    const served = new SomeMembers([aMember('east')], [aRequest('east-1')])
    const state = { version: () => 1, cluster: () => undefined } as unknown as StateReader // of nobody's cluster anything is asked
    const members = new MemberRows({ members: served.members, state, clock: systemClock }).rows(sees('*'))
    expect(members).toMatchObject({ outcome: 'complete' })
    served.behind = { since: 1000, code: 'members_not_judged', message: 'no manager judges them' }
    const since = { outcome: 'unreachable', code: 'members_not_judged', freshness: { observedAt: 1000 } }
    for (const rows of [
      new MemberRows({ members: served.members, state, clock: systemClock }),
      new MemberRequestRows(served.requests, systemClock),
    ]) {
      const told = rows.rows(sees('*'))
      expect(told).toMatchObject(since)
      expect([...told.rows.rows()]).toHaveLength(1)
    }
  })

  it('are for administrators, all of one name beside each other', () => {
    const served = new SomeMembers([], [aRequest('east-1'), aRequest('east-2')])
    const rows = new MemberRequestRows(served.requests, systemClock)
    const names = (view: AccessView) => [...rows.rows(view).rows.rows()].map(({ name }) => name)
    expect(names(sees('*'))).toEqual(['east-1', 'east-2'])
    expect(names(sees('east'))).toEqual([])
    expect(rows.rows(sees('*')).aggregations).toEqual({ byMember: { east: 2 } })
  })

  it('are not known before they were read', () => {
    const served = new SomeMembers()
    served.isKnown = false
    expect(new MemberRequestRows(served.requests, systemClock).rows(sees('*'))).toMatchObject({
      outcome: 'unreachable',
    })
  })
})
