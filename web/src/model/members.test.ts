import { describe, expect, it } from 'vitest'
import { AUTHORITY_LOST } from '../contract.ts'
import {
  acceptedSince,
  certificateStateOf,
  halfDecided,
  type Member,
  memberTroubles,
  requestsByMember,
  returnOf,
  setsOfMembers,
} from './members.ts'

const DAY_MS = 86_400_000
const now = 100 * DAY_MS
const aMember = (name: string, over: Partial<Member> = {}): Member => ({
  ...{ name, state: 'available', accepted: true, joined: true, sets: [], version: null, since: 1, createdAt: 1 },
  ...{ certificateFrom: null, certificateUntil: null, renewsFrom: null, renewBy: null, reason: '', message: '' },
  ...{ transport: 'stream', taints: [], claims: {}, capacity: {}, allocatable: {}, conditions: [], labels: {} },
  ...over,
})

it('sets of members are counted by the members that a page lists, also of those that stand on no cluster yet', () => {
  const members = [['default', 'global'], ['global', 'prod'], ['default']].map((sets, at) =>
    aMember(`m${at}`, { sets }),
  )
  expect(setsOfMembers([{ name: 'empty' }, { name: 'default' }], members)).toEqual([
    { name: 'default', count: 2 },
    { name: 'empty', count: 0 },
    { name: 'global', count: 2 },
    { name: 'prod', count: 1 },
  ])
})

describe('a member', () => {
  it('is one since it was accepted, and is none before and after', () => {
    const said = (status: string) => ({
      ...{ type: 'HubAcceptedManagedCluster', status, reason: '', message: '', since: 7 },
    })
    expect(acceptedSince(aMember('east', { conditions: [said('True')] }))).toBe(7)
    expect(acceptedSince(aMember('east', { conditions: [said('False')] }))).toBeNull()
    expect(acceptedSince(aMember('east'))).toBeNull()
  })

  it.each([
    ['comes back', { state: 'denied', joined: true, certificateFrom: now, transport: 'stream' }],
    ['comes back', { state: 'denied', joined: false, certificateFrom: now, transport: 'stream' }],
    ['comes back unless revoked', { state: 'denied', joined: true, certificateFrom: now, transport: 'api' }],
    ['must join anew', { state: 'revoked', joined: true, certificateFrom: null, transport: 'stream' }],
    ['must ask anew', { state: 'revoked', joined: true, certificateFrom: now, transport: 'api' }],
    ['never joined', { state: 'denied', joined: false, certificateFrom: null, transport: 'stream' }],
  ] as const)('%s when it is accepted again: %j', (becomes, member) => expect(returnOf(member)).toBe(becomes))

  it.each([
    [-1, 'ended'],
    [0, 'ended'],
    [5, 'overdue'],
    [6.5, 'renewing'],
    [20, 'valid'],
  ])('whose certificate of 30 days has %d days left: %s', (left, state) => {
    const certificateUntil = now + left * DAY_MS
    const life = {
      certificateUntil,
      renewsFrom: certificateUntil - 10 * DAY_MS,
      renewBy: certificateUntil - 6 * DAY_MS,
    }
    expect(certificateStateOf(life, now)).toBe(state)
    expect(certificateStateOf({ certificateUntil: null, renewsFrom: null, renewBy: null }, now)).toBe('none')
  })
})

describe('troubles of members', () => {
  it('are one each, however many suffer and whatever each of them says, with the time of the first', () => {
    const lost = Array.from({ length: 100 }, (_, place) =>
      aMember(`m${place}`, {
        state: 'lost',
        since: 1000 + place,
        reason: `R${place}`,
        message: `m${place} is away`,
      }),
    )
    const late = aMember('late', {
      certificateUntil: now + DAY_MS,
      renewsFrom: now - 9 * DAY_MS,
      renewBy: now - DAY_MS,
    })
    const lockedOut = aMember('ended', { state: 'lost', since: 999, reason: AUTHORITY_LOST, message: 'join anew' })
    const ended = { certificateUntil: null, renewsFrom: null, renewBy: null }
    const denied = { ...late, ...ended, name: 'denied', accepted: false, state: 'denied' } as const
    expect(
      memberTroubles([...lost, lockedOut, late, denied, aMember('fine')], now).map(({ code, members, since }) => [
        code,
        members.length,
        since,
      ]),
    ).toEqual([
      ['locked-out', 1, 999],
      ['lost', 100, 1000],
      ['certificate', 1, now - DAY_MS],
    ])
    expect(memberTroubles([aMember('fine')], now)).toEqual([])
  })
})

describe('requests to join', () => {
  it('that were half decided say what is missing', () => {
    expect(halfDecided({ missing: ['approval', 'acceptance'] })).toBeNull()
    expect(halfDecided({ missing: ['acceptance'] })).toMatch(/approved; the cluster is not accepted yet/)
    expect(halfDecided({ missing: ['approval'] })).toMatch(/cluster is accepted; .* not approved yet/)
  })

  it('stand together where they are of one name', () => {
    const request = (name: string, member: string) => ({
      ...{ name, member, address: null, key: null, requestedAt: null, username: null, agentVersion: null },
      missing: [],
    })
    const grouped = requestsByMember([request('1', 'west'), request('2', 'east'), request('3', 'west')])
    expect(grouped.map(([member, all]) => [member, all.map(({ name }) => name)])).toEqual([
      ['east', ['2']],
      ['west', ['1', '3']],
    ])
  })
})
