import { describe, expect, it } from 'vitest'
import type { AuditEntry } from '#audit'
import type { DecideMember, MemberRequest } from '#model'
import { FleetError } from '#model'
import { aTrail, get, post } from '../test/ask.ts'
import { SomeMembers } from '../test/members.ts'
import { aWorld, proxy, type World } from '../test/world.ts'

/** As the modules behind the route throw. */
class Refused extends FleetError {
  readonly retryable = false
  readonly code: string

  constructor(code: string, message: string) {
    super(message)
    this.code = code
  }
}

async function decides(decide: DecideMember | undefined, path: string, body: object = {}, as = 'admin') {
  const audit = aTrail()
  await using world = await aWorld(
    { identity: proxy },
    { ...(decide && { members: new SomeMembers([], [], decide) }), audit },
  )
  const answer = await post(world, `/api/v2/members/${path}`, body, { as })
  return { ...answer, audited: audit.entries }
}
const never: DecideMember = () => {
  throw new Error('nobody may')
}
const refuses = (code: string, message: string) => () => Promise.reject(new Refused(code, message))

describe('a decision about a member', () => {
  it('is carried out for an administrator, with the request that is meant, and audited with what was done', async () => {
    const decided: unknown[] = []
    const decide: DecideMember = (decision, about) => {
      decided.push([decision, about])
      return Promise.resolve(['east is accepted as a member'])
    }
    const { status, body, audited } = await decides(decide, 'east/accept', { request: 'east-1' })
    expect([status, body]).toEqual([200, { done: ['east is accepted as a member'] }])
    const by = { username: 'admin', requestId: audited[0]?.requestId }
    expect(decided).toEqual([['accept', { cluster: 'east', request: 'east-1', by }]])
    expect(audited).toMatchObject([
      {
        kind: 'administration',
        username: 'admin',
        resource: 'managedcluster east',
        reason: 'accept: east is accepted as a member',
      },
    ])
  })

  const approved = { act: 'request_approved', words: 'request east-1 is approved', request: 'east-1' } as const
  const accepted = { act: 'cluster_accepted', words: 'east is accepted as a member' } as const

  it('has an entry for each thing it did, named as commands and kubectl have it, and no other', async () => {
    const decide: DecideMember = (_, __, did) => {
      for (const act of [approved, accepted]) did?.(act)
      return Promise.resolve([approved.words, accepted.words])
    }
    const { audited } = await decides(decide, 'east/accept')
    const who = { kind: 'administration', username: 'admin', method: 'trusted-proxy', resource: 'managedcluster east' }
    expect(audited).toMatchObject([
      { ...who, route: 'request_approved', requestId: 'east-1', status: 200, reason: approved.words },
      { ...who, route: 'cluster_accepted', status: 200, reason: accepted.words },
    ])
    expect(audited).toHaveLength(2)
    expect(audited[1]?.requestId).toMatch(/^[\w-]{36}$/)
  })

  it('that fails half way has what it did, and that it failed', async () => {
    const decide: DecideMember = (_, __, did) => {
      did?.(approved)
      return Promise.reject(new Refused('kube_timeout', 'no answer within 10 s'))
    }
    const { status, audited } = await decides(decide, 'east/accept')
    expect(status).toBe(503)
    expect(audited).toMatchObject([
      { route: 'request_approved', requestId: 'east-1', status: 200, reason: approved.words },
      { route: 'POST /api/v2/members/:name/:decision', status: 503, reason: 'accept' },
    ])
  })

  it('is answered when its entries are written, as are sign-ins, and what is only read at once', async () => {
    const order: string[] = []
    let release: () => void = () => undefined
    const written = new Promise<void>((resolve) => {
      release = resolve
    })
    const audit = {
      ...aTrail(),
      record: ({ route }: AuditEntry) => void order.push(route),
      flush() {
        order.push('flush')
        return written
      },
    }
    const decide: DecideMember = (_, __, did) => {
      did?.(accepted)
      return Promise.resolve([accepted.words])
    }
    const secret = 'a long password of the administrator'
    const identity = { ...proxy, password: { username: 'root', secret } }
    await using world = await aWorld({ identity }, { members: new SomeMembers([], [], decide), audit })
    const asked = async (question: Promise<{ status: number }>) => order.push(`answered ${(await question).status}`)
    await asked(get(world, '/api/v2/clusters', { as: 'admin' }))
    const decided = asked(post(world, '/api/v2/members/east/accept', {}, { as: 'admin' }))
    await expect.poll(() => order).toEqual(['GET /api/v2/clusters', 'answered 200', 'cluster_accepted', 'flush'])
    const signedIn = asked(post(world, '/api/v1/auth/password', { username: 'root', password: secret }))
    await expect.poll(() => order.slice(4)).toEqual(['POST /api/v1/auth/password', 'flush'])
    release()
    await Promise.all([decided, signedIn])
    expect(order.slice(6)).toEqual(['answered 200', 'answered 200'])
  })

  it('that takes longer than its request has an entry for what it did after that was answered', async () => {
    let release: () => void = () => undefined
    const late = new Promise<void>((resolve) => {
      release = resolve
    })
    const decide: DecideMember = async (_, __, did) => {
      await late
      did?.(accepted)
      return [accepted.words]
    }
    const audit = aTrail()
    const members = new SomeMembers([], [], decide)
    await using world = await aWorld({ identity: proxy, requestTimeoutMs: 50 }, { members, audit })
    expect((await post(world, '/api/v2/members/east/accept', {}, { as: 'admin' })).status).toBe(503)
    release()
    await expect
      .poll(() => audit.entries.map(({ route, status }) => [route, status]))
      .toEqual([
        ['POST /api/v2/members/:name/:decision', 503],
        ['cluster_accepted', 200],
      ])
  })

  it('is nobody else’s, and nothing is decided for them', async () => {
    const { status, body, audited } = await decides(never, 'east/accept', {}, 'alice')
    expect([status, body.code]).toEqual([403, 'rights_missing'])
    expect(body.error).toMatch(/alice may not accept east; lacking at the hub's API: every right/)
    expect(audited).toMatchObject([{ kind: 'denial', username: 'alice', resource: 'managedcluster east' }])
  })

  it.each([
    ['several_requests', '2 machines ask to be east', 409, 'several_requests', /2 machines/],
    ['no_request', 'no request east-9 of east waits', 404, 'no_request', /east-9/],
    ['unknown_member', 'the hub knows no cluster east', 404, 'unknown_member', /knows no cluster/],
    ['kube_forbidden', 'secrets is forbidden', 403, 'hub_forbids', /secrets is forbidden.*clusterpulse revoke east/],
    ['kube_timeout', 'no answer within 10 s', 503, 'store_unavailable', /no answer within 10 s/],
  ])('that cannot be carried out (%s) says why and what would do', async (code, message, status, told, words) => {
    const answer = await decides(refuses(code, message), 'east/revoke')
    expect([answer.status, answer.body.code]).toEqual([status, told])
    expect(answer.body.error).toMatch(words)
  })

  it('is none where it is not one of the four, where the name is none, or where the hub has no members', async () => {
    const done: DecideMember = () => Promise.resolve([])
    expect((await decides(done, 'east/promote')).status).toBe(404)
    expect((await decides(done, 'EAST!/accept')).body.code).toBe('unknown_member')
    expect((await decides(done, 'east/accept', { request: '' })).body.code).toBe('invalid_parameter')
    expect((await decides(undefined, 'east/accept')).body).toMatchObject({ code: 'members_off' })
  })
})

describe('who may decide about members', () => {
  const request: MemberRequest = {
    ...{ name: 'east-1', cluster: 'east', username: 'u', address: '', key: 'k', agentVersion: '', requestedAt: 1 },
    missing: ['acceptance'],
  }
  /** A hub whose API lets ann alone accept. */
  async function aHubWithRights(asked: unknown[] = [], administratorsDecide = false) {
    const members = new SomeMembers([], [request, { ...request, name: 'west-1', cluster: 'west' }], () =>
      Promise.resolve(['done']),
    )
    members.administratorsDecide = administratorsDecide
    members.lackedRights = (who, decision, cluster) => {
      asked.push([who, cluster])
      return Promise.resolve(who.username === 'ann' && decision !== 'revoke' ? [] : [`right to ${decision}`])
    }
    return aWorld({ identity: proxy }, { members })
  }
  const own = '/api/v2/members/decisions'
  const accepts = (world: World, as: string) => post(world, '/api/v2/members/east/accept', {}, { as })

  it('is whom the hub’s API lets, whether they administrate the page or not, and nobody it does not let', async () => {
    await using world = await aHubWithRights()
    expect((await accepts(world, 'ann')).status).toBe(200)
    expect((await accepts(world, 'admin')).body).toMatchObject({ code: 'rights_missing' })
    expect((await get(world, own, { as: 'admin' })).body).toMatchObject({ may: [], rule: 'rights' })
  })

  it('is told what they may, what they lack, and who asks; others are told of nobody', async () => {
    await using world = await aHubWithRights()
    expect((await get(world, own, { as: 'ann' })).body).toMatchObject({
      ...{ may: ['accept', 'deny', 'detach'], lacks: { revoke: ['right to revoke'] }, waiting: 2 },
      requests: [
        { name: 'east-1', member: 'east', address: null, key: 'k', missing: ['acceptance'] },
        { name: 'west-1' },
      ],
    })
    expect((await get(world, `${own}?member=west`, { as: 'ann' })).body).toMatchObject({
      ...{ requests: [{ name: 'west-1' }], waiting: 1 },
    })
    expect((await get(world, own, { as: 'bob' })).body).toMatchObject({ may: [], requests: [], waiting: 0 })
    expect((await get(world, own)).status).toBe(401)
  })

  it('is an administrator as well where the hub is its own API', async () => {
    await using world = await aHubWithRights([], true)
    expect((await accepts(world, 'admin')).status).toBe(200)
    expect((await accepts(world, 'bob')).status).toBe(403)
  })

  it('is never found by a name that a proxy makes one of the API server’s own', async () => {
    const asked: unknown[] = []
    await using world = await aHubWithRights(asked)
    expect((await get(world, own, { as: 'system:admin' })).body.may).toEqual([])
    expect(asked).toEqual([])
    await get(world, `${own}?member=east`, { as: 'eve', groups: 'dev,system:masters' })
    expect(asked[0]).toEqual([{ username: 'eve', groups: ['dev', 'system:authenticated'] }, 'east'])
  })

  it('is nobody who came without a name that the API knows, such as by reaching the port', async () => {
    const members = new SomeMembers([], [], never)
    members.administratorsDecide = false
    await using world = await aWorld({}, { members })
    const { status, body } = await post(
      world,
      '/api/v2/members/east/deny',
      {},
      { headers: { host: 'localhost', origin: 'http://localhost' } },
    )
    expect([status, body.code]).toEqual([403, 'rights_missing'])
    expect(body.error).toMatch(/signed in here without one/)
  })

  it('is not guessed where the hub’s API does not say', async () => {
    const members = new SomeMembers([], [], never)
    members.lackedRights = () => Promise.reject(new Refused('rights_unknown', 'the API is away'))
    await using world = await aWorld({ identity: proxy }, { members })
    expect(await accepts(world, 'ann')).toMatchObject({ status: 503, body: { code: 'rights_unknown' } })
  })
})
