import { describe, expect, it } from 'vitest'
import type { DecideMember } from '#model'
import { FleetError } from '#model'
import { aTrail, post } from '../test/ask.ts'
import { SomeMembers } from '../test/members.ts'
import { aWorld, proxy } from '../test/world.ts'

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
const refuses = (code: string, message: string) => () => Promise.reject(new Refused(code, message))

describe('a decision about a member', () => {
  it('is carried out for an administrator, with the request that is meant, and audited with what was done', async () => {
    const decided: unknown[] = []
    const decide: DecideMember = (...what) => {
      decided.push(what)
      return Promise.resolve(['east is accepted as a member'])
    }
    const { status, body, audited } = await decides(decide, 'east/accept', { request: 'east-1' })
    expect([status, body]).toEqual([200, { done: ['east is accepted as a member'] }])
    expect(decided).toEqual([['accept', { cluster: 'east', request: 'east-1' }]])
    expect(audited).toMatchObject([
      {
        kind: 'administration',
        username: 'admin',
        resource: 'managedcluster east',
        reason: 'accept: east is accepted as a member',
      },
    ])
  })

  it('is nobody else’s, and nothing is decided for them', async () => {
    const never: DecideMember = () => {
      throw new Error('nobody may')
    }
    const { status, body, audited } = await decides(never, 'east/accept', {}, 'alice')
    expect([status, body.code]).toEqual([403, 'administrators_only'])
    expect(audited).toMatchObject([{ kind: 'denial', username: 'alice' }])
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
