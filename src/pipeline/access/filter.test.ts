import { describe, expect, it } from 'vitest'
import { type ClusterState, parseClusterName } from '#model'
import { administratorsOnly } from './filter.ts'
import type { Principal } from './types.ts'

const somebody: Principal = { username: 'ann', email: '', groups: [], isServiceAccount: false, method: 'trusted-proxy' }
const items = new Map([['shop', { name: 'shop', phase: 'Active', createdAt: null, labels: {} }]])
const west: ClusterState = {
  name: parseClusterName('west'),
  connection: null,
  status: { health: 'healthy', message: '', reasons: [], checkedAt: null, lastSyncAt: null },
  sequence: 1,
  origin: '',
  agent: null,
  source: 'pull',
  parts: { namespace: { outcome: 'complete', code: '', message: '', attemptedAt: 0, freshness: null, items } },
  heartbeats: [],
  events: [],
  version: 1,
}

describe('access without policies', () => {
  const filter = administratorsOnly({ users: ['root', ''], groups: ['admins', ''] })

  it.each<[string, Partial<Principal>, boolean]>([
    ['the local administrator', { method: 'local-administrator' }, true],
    ['a named user', { username: 'root' }, true],
    ['a member of a named group', { groups: ['dev', 'admins'] }, true],
    ['anybody else', {}, false],
    ['a user called like an admin group', { username: 'admins' }, false],
    ['a member of a group called like an admin', { groups: ['root'] }, false],
    ['a user of almost the name', { username: 'Root' }, false],
    ['a user without a name', { username: '', groups: [''] }, false],
    ['the development user', { username: 'dev-user', method: 'development' }, false],
  ])('for %s', (_, changes, seesAll) => {
    const principal = { ...somebody, ...changes }
    expect(filter.canSee(principal, west)).toBe(seesAll)
    expect(filter.fingerprint(principal)).toBe(seesAll ? 'all' : 'none')
    expect(filter.visible(principal, west, 'namespace')).toHaveLength(seesAll ? 1 : 0)
    expect(filter.visible(principal, west, 'node')).toEqual([])
  })

  it('shows nothing when no administrator is named', () => {
    const nobody = administratorsOnly({ users: [], groups: [] })
    expect(nobody.canSee({ ...somebody, username: '', groups: [''] }, west)).toBe(false)
  })
})
