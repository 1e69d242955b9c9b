import { describe, expect, it } from 'vitest'
import { readStoredPolicy } from './document.ts'
import { accessOf, storedOf } from './testing/access-of.ts'
import { cluster, names, namespace, node, person, policy } from './testing/words.ts'
import type { Principal } from './types.ts'

const noon = Date.parse('2026-06-01T12:00:00Z')
const alice = person('alice')
const c1 = cluster('c1', { node: [node('a'), node('b')], namespace: [namespace('shop')] })

function aClock(start = noon) {
  const clock = { at: start, now: () => clock.at, sleep: () => Promise.resolve() }
  return clock
}

describe('administrators', () => {
  const access = accessOf([policy('Deny', [names('*')], { users: ['root', 'alice'], groups: ['admins'] })], {
    administrators: { users: ['root', ''], groups: ['admins', ''] },
  })

  it.each<[string, Partial<Principal>, boolean]>([
    ['the local administrator', { method: 'local-administrator' }, true],
    ['whoever signed in as the local administrator', { method: 'password' }, true],
    ['a named user', { username: 'root' }, true],
    ['a member of a named group', { groups: ['dev', 'admins'] }, true],
    ['anybody else', {}, false],
    ['a user called like an admin group', { username: 'admins' }, false],
    ['a member of a group called like an admin', { groups: ['root'] }, false],
    ['a user of almost the name', { username: 'Root' }, false],
    ['a user without a name', { username: '', groups: [''] }, false],
    ['the development user', { username: 'dev-user', method: 'development' }, false],
    ['one at whom an administrator looks', { method: 'local-administrator', actor: 'root' }, false],
  ])('%s', async (_, changes, seesAll) => {
    const principal = { ...alice, ...changes }
    expect(access.isAdministrator(principal)).toBe(seesAll)
    for (const accessView of [await access.viewOf(principal), access.viewNow(principal)]) {
      expect(accessView.administrator).toBe(seesAll)
      expect(accessView.fingerprint === 'all').toBe(seesAll)
      expect(accessView.canSee(c1)).toBe(seesAll)
      expect(accessView.visible(c1, 'namespace')).toHaveLength(seesAll ? 1 : 0)
      expect(accessView.visible(c1, 'podSummary')).toEqual([])
    }
  })

  it('see the very rows that somebody without filters sees', async () => {
    const open = accessOf([policy('Allow', [{ ...names('*'), permissions: { view: true, viewMetrics: true } }])])
    const root = { ...alice, method: 'local-administrator' } as const
    expect((await open.viewOf(alice)).visible(c1, 'node')).toBe((await open.viewOf(root)).visible(c1, 'node'))
  })

  it('are let in while no policy can be read, and nobody else is', async () => {
    const lost = accessOf([policy('Allow', [names('*')])])
    lost.source.lose()
    const refused = { code: 'policies_unavailable', retryable: true }
    await expect(lost.viewOf(alice)).rejects.toMatchObject(refused)
    expect(() => lost.viewNow(alice)).toThrowError(expect.objectContaining(refused))
    await expect(lost.explain(alice, { action: 'view', cluster: { name: 'c1', labels: {} } })).rejects.toMatchObject(
      refused,
    )
    await expect(lost.policiesOf(alice)).rejects.toMatchObject(refused)
    expect((await lost.viewOf({ ...alice, method: 'local-administrator' })).canSee(c1)).toBe(true)
    lost.source.find()
    expect((await lost.viewOf(alice)).canSee(c1)).toBe(true)
  })
})

describe('a document that says nothing', () => {
  it('fails everybody whom it could be about, and its error names the key and no content', async () => {
    const access = accessOf([policy('Allow', [names('*')])])
    const { policies } = await access.policies()
    access.source.set([...policies, readStoredPolicy('team/name', 'no JSON')])
    const error: unknown = await access.viewOf(alice).catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ code: 'policies_unavailable' })
    expect(String(error)).toContain('policy:team:name')
    expect(String(error)).not.toMatch(/alice|no JSON/)
    await expect(access.viewOf(person('somebody-else'))).rejects.toMatchObject({ code: 'policies_unavailable' })
    expect((await access.policies()).policies).toHaveLength(2)
  })
})

describe('subjects', () => {
  const sees = async (words: Parameters<typeof policy>[2], principal: Principal) =>
    (await accessOf([policy('Allow', [names('*')], words)]).viewOf(principal)).canSee(c1)

  it('are compared exactly, and by their kind', async () => {
    expect(await sees({ users: ['alice'] }, alice)).toBe(true)
    expect(await sees({ users: ['Alice'] }, alice)).toBe(false)
    expect(await sees({ users: ['alic*'] }, alice)).toBe(false)
    expect(await sees({ groups: ['alice'] }, alice)).toBe(false)
    expect(await sees({ users: ['dev'] }, person('alice', 'dev'))).toBe(false)
    expect(await sees({ groups: ['dev'] }, person('alice', 'ops', 'dev'))).toBe(true)
    expect(await sees({ groups: ['ops,dev'] }, person('alice', 'ops', 'dev'))).toBe(false)
  })

  it.each(['__proto__', 'constructor', 'toString', 'a:b', 'x,y', 'a*', 'line\nbreak', '🜁'])(
    'may be called %j',
    async (name) => {
      if (!name.includes('\n')) {
        expect(await sees({ users: [name] }, person(name))).toBe(true)
        expect(await sees({ groups: [name] }, person('alice', name))).toBe(true)
      }
      expect(await sees({ users: ['alice'] }, person(name, name))).toBe(false)
    },
  )

  it('without a name are nobody', async () => {
    expect(await sees({ users: [''], groups: [''] }, person('', ''))).toBe(false)
  })

  it('by address only where the provider vouches for it', async () => {
    const words = { users: ['alice@example.com'] }
    const email = 'alice@example.com'
    expect(await sees(words, { ...alice, email, emailVerified: true })).toBe(true)
    expect(await sees(words, { ...alice, email, emailVerified: false })).toBe(false)
    expect(await sees(words, { ...alice, email })).toBe(false)
  })

  it('tell through what a policy is about them', async () => {
    const access = accessOf([
      policy('Allow', [names('*')], { name: 'a', groups: ['ops', 'dev'], priority: 1 }),
      policy('Deny', [names('x')], { name: 'b', users: ['alice'], priority: 2, enabled: false }),
      policy('Allow', [names('*')], { name: 'other', users: ['bob'] }),
    ])
    const own = await access.policiesOf(person('alice', 'dev'))
    expect(own.map(({ source, policy: { key }, state }) => [source, key, state])).toEqual([
      ['user', 'clusterpulse/b', 'Inactive'],
      ['group:dev', 'clusterpulse/a', 'Active'],
    ])
  })
})

describe('time', () => {
  const from = new Date(noon + 60_000).toISOString()
  const to = new Date(noon + 120_000).toISOString()

  it('begins and ends policies on the second, bounds included, without an event', async () => {
    const clock = aClock()
    const access = accessOf([policy('Allow', [names('*')], { notBefore: from, notAfter: to })], { clock })
    const seen: [number, boolean][] = []
    for (const at of [0, 59_999, 60_000, 120_000, 120_001, 500_000]) {
      clock.at = noon + at
      seen.push([at, access.viewNow(alice).canSee(c1)])
    }
    expect(seen).toEqual([
      [0, false],
      [59_999, false],
      [60_000, true],
      [120_000, true],
      [120_001, false],
      [500_000, false],
    ])
  })

  it('says of every access view until when it holds', async () => {
    const clock = aClock()
    const access = accessOf(
      [
        policy('Allow', [names('*')], { notBefore: from, notAfter: to }),
        policy('Allow', [names('*')], { users: ['bob'], notBefore: new Date(noon + 1).toISOString() }),
        policy('Deny', [names('*')], { enabled: false, notAfter: new Date(noon + 5).toISOString() }),
      ],
      { clock },
    )
    const until: number[] = []
    for (let i = 0; i < 3; i++) {
      const { validUntil } = await access.viewOf(alice)
      until.push(validUntil)
      clock.at = validUntil
    }
    expect(until).toEqual([noon + 60_000, noon + 120_001, Number.POSITIVE_INFINITY])
  })

  it('that is set back is believed', async () => {
    const clock = aClock(noon + 90_000)
    const access = accessOf([policy('Allow', [names('*')], { notBefore: from })], { clock })
    expect(access.viewNow(alice).canSee(c1)).toBe(true)
    clock.at = noon
    expect(access.viewNow(alice).canSee(c1)).toBe(false)
    clock.at = noon + 90_000
    expect(access.viewNow(alice).canSee(c1)).toBe(true)
  })
})

describe('a change of policies', () => {
  it('holds for the next question, and tells whoever listens', async () => {
    const access = accessOf([policy('Allow', [names('*')])])
    let told = 0
    const end = access.onChange(() => told++)
    const before = await access.viewOf(alice)
    access.set([])
    const after = await access.viewOf(alice)
    expect([before.canSee(c1), after.canSee(c1), access.viewNow(alice).canSee(c1), told]).toEqual([
      true,
      false,
      false,
      1,
    ])
    expect(after.generation).not.toBe(before.generation)
    end()
    access.set([])
    expect(told).toBe(1)
  })

  it('follows labels of a cluster', async () => {
    const accessView = await accessOf([policy('Allow', [{ selector: { matchLabels: { env: 'dev' } } }])]).viewOf(alice)
    const dev = cluster('c1', {}, { env: 'dev' })
    expect([accessView.canSee(dev), accessView.canSee(c1), accessView.canSee(dev)]).toEqual([true, false, true])
  })

  it('that is only tried changes nothing', async () => {
    const access = accessOf([policy('Allow', [names('*')])])
    const denied = storedOf(policy('Deny', [names('c1')], { priority: 200 }))
    const { policies } = await access.policies()
    const dry = access.withPolicies([denied, ...policies])
    expect((await dry.viewOf(alice)).canSee(c1)).toBe(false)
    expect((await access.viewOf(alice)).canSee(c1)).toBe(true)
    expect((await dry.policies()).generation).not.toBe((await access.policies()).generation)
    expect(dry.isAdministrator({ ...alice, method: 'local-administrator' })).toBe(true)
  })
})

describe('a fingerprint', () => {
  it('is the same for the same content, whoever it is said to, and shares its rows', async () => {
    const rules = [{ ...names('c1'), resources: [{ type: 'nodes', filters: { names: { allowed: ['a'] } } }] }]
    const access = accessOf([
      policy('Allow', rules, { name: 'one', users: ['alice'], priority: 5 }),
      policy('Allow', rules, { name: 'two', users: ['bob'], priority: 900 }),
      policy('Deny', [names('c1')], { users: ['bob'], notAfter: '2020-01-01T00:00:00Z' }),
    ])
    const [one, two] = [await access.viewOf(alice), await access.viewOf(person('bob'))]
    expect(two.fingerprint).toBe(one.fingerprint)
    expect(two.visible(c1, 'node')).toBe(one.visible(c1, 'node'))
    // What is shared names nobody's policy but the asker's own.
    expect([one, two].map((accessView) => accessView.permissions(c1).decidedBy?.policy)).toEqual([
      'clusterpulse/one',
      'clusterpulse/two',
    ])
  })

  it('lasts over changes that do not concern it', async () => {
    const mine = policy('Allow', [names('c1')], { name: 'mine' })
    const access = accessOf([mine])
    const { fingerprint } = await access.viewOf(alice)
    access.set([mine, policy('Allow', [names('c1')], { users: ['bob'] })])
    expect((await access.viewOf(alice)).fingerprint).toBe(fingerprint)
  })

  it('of whoever has no policy is one and the same', async () => {
    const access = accessOf([])
    const [one, two] = [await access.viewOf(alice), await access.viewOf(person('bob', 'x'))]
    expect(two.fingerprint).toBe(one.fingerprint)
    expect(one.canSee(c1)).toBe(false)
  })
})
