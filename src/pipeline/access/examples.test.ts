import { describe, expect, it } from 'vitest'
import { type ClusterState, parseClusterName } from '#model'
import { accessOf } from './testing/access-of.ts'
import type { Principal } from './types.ts'

const alice: Principal = { username: 'alice', email: '', groups: [], isServiceAccount: false, method: 'trusted-proxy' }
const c1: ClusterState = {
  name: parseClusterName('c1'),
  connection: null,
  status: { health: 'healthy', message: '', reasons: [], checkedAt: null, lastSyncAt: null },
  sequence: 1,
  origin: '',
  agent: null,
  source: 'pull',
  parts: {},
  heartbeats: [],
  events: [],
  version: 1,
}
describe('smoke', () => {
  it('allows by name', async () => {
    const access = accessOf([
      {
        metadata: { name: 'p', namespace: 'x' },
        spec: {
          identity: { subjects: { users: ['alice'] } },
          access: { effect: 'Allow' },
          scope: { clusters: { rules: [{ selector: { matchNames: ['c*'] } }] } },
        },
      },
    ])
    expect((await access.sight(alice)).canSee(c1)).toBe(true)
    expect((await access.sight({ ...alice, username: 'bob' })).canSee(c1)).toBe(false)
  })
})
