import { describe, expect, it } from 'vitest'
import { auditEntryOfRefusal, auditEntryOfWrite, type ObservedWrite } from './member-writes.ts'

const ann = { name: 'ann', groups: ['admins'] }
const agent = { name: 'system:open-cluster-management:east:one', groups: ['system:open-cluster-management:east'] }
const labels = { 'open-cluster-management.io/cluster-name': 'east' }

const write = (more: Partial<ObservedWrite>): ObservedWrite => ({
  ...{ id: 'id-1', user: ann, operation: 'UPDATE', address: '10.1.2.3', object: undefined, before: undefined },
  ...{ group: 'cluster.open-cluster-management.io', resource: 'managedclusters', name: 'east' },
  ...more,
})
const aCluster = (spec: object = {}, annotations?: Record<string, string>) => ({
  metadata: { name: 'east', ...(annotations && { annotations }) },
  spec,
})
const inSet = (set: string) => ({
  metadata: { name: 'east', labels: { 'cluster.open-cluster-management.io/clusterset': set } },
})
const aRequest = (...types: string[]) => ({
  metadata: { name: 'east-1', labels },
  status: { conditions: types.map((type) => ({ type, reason: 'R', message: `${type} by ann` })) },
})
const request = { group: 'certificates.k8s.io', resource: 'certificatesigningrequests', name: 'east-1' }
const decided = { ...request, subresource: 'approval', before: aRequest() }
const revoked = { 'clusterpulse.io/certificates': 'revoked-2026-11-26T00:00:00.000Z' }

describe('the audit trail of what is written about members', () => {
  it.each<[string, Partial<ObservedWrite>, string, string]>([
    ['a request', { ...request, operation: 'CREATE', object: aRequest() }, 'request_made', 'east-1'],
    ['an approval', { ...decided, object: aRequest('Approved') }, 'request_approved', 'east-1'],
    ['a denial', { ...decided, object: aRequest('Denied') }, 'request_denied', 'east-1'],
    [
      'a denial of what was approved',
      { ...decided, before: aRequest('Approved'), object: aRequest('Approved', 'Failed') },
      'request_denied',
      'east-1',
    ],
    [
      'a deletion of one that waits',
      { ...request, operation: 'DELETE', before: aRequest(), object: undefined },
      'request_deleted',
      'east-1',
    ],
    ['a cluster that is declared', { operation: 'CREATE', object: aCluster() }, 'cluster_declared', 'id-1'],
    ['an acceptance', { before: aCluster(), object: aCluster({ hubAcceptsClient: true }) }, 'cluster_accepted', 'id-1'],
    ['its end', { before: aCluster({ hubAcceptsClient: true }), object: aCluster() }, 'cluster_denied', 'id-1'],
    ['a revocation', { before: aCluster(), object: aCluster({}, revoked) }, 'cluster_revoked', 'id-1'],
    ['a move to another set', { before: aCluster(), object: inSet('blue') }, 'cluster_moved', 'id-1'],
    ['a deletion', { operation: 'DELETE', before: aCluster() }, 'cluster_deleted', 'id-1'],
  ])('names who made %s, with the id of the request', (_, more, route, requestId) => {
    expect(auditEntryOfWrite(write(more), 5)).toMatchObject({
      ...{ at: 5, kind: 'administration', requestId, username: 'ann', address: '10.1.2.3' },
      ...{ route, resource: 'managedcluster east', status: 200 },
    })
  })

  it('says of one that a rule refused how it was answered, and why', () => {
    const refused = write({ before: aCluster(), object: inSet('blue') })
    expect(auditEntryOfWrite(refused, 5, { httpCode: 422, message: 'no such set' })).toMatchObject({
      ...{ route: 'cluster_moved', status: 422 },
      reason: 'moved from the set default to the set blue: not done, no such set',
    })
  })

  it.each([agent.name, 'system:serviceaccount:open-cluster-management:agent-registration-bootstrap'])(
    'bounds what %s asks for, as what members write, so that it pushes no decision out',
    (name) => {
      const user = { name, groups: [] }
      const asked = write({ ...request, user, operation: 'CREATE', object: aRequest() })
      expect(auditEntryOfWrite(asked, 5)).toMatchObject({ kind: 'member', route: 'request_made', requestId: 'east-1' })
      const declared = write({ user, operation: 'CREATE', object: aCluster() })
      expect(auditEntryOfWrite(declared, 5)).toMatchObject({ kind: 'member', route: 'cluster_declared' })
    },
  )

  it('has every write that a member makes, and what it was refused', () => {
    const status = { user: agent, resource: 'manifestworks', group: 'work.open-cluster-management.io' }
    const more = { ...status, subresource: 'status', namespace: 'east', name: 'web', object: aCluster() }
    expect(auditEntryOfWrite(write(more), 5)).toMatchObject({
      ...{ kind: 'member', route: 'member_write', username: agent.name, requestId: 'id-1' },
      reason: 'changed manifestworks/status.work.open-cluster-management.io east/web',
    })
    const refused = { id: 'id-2', user: agent, address: '', method: 'GET', path: '/api/v1/secrets', message: 'no' }
    expect(auditEntryOfRefusal(refused, 6)).toMatchObject({
      ...{ kind: 'member', route: 'member_refused', status: 403, resource: 'managedcluster east' },
      reason: 'GET /api/v1/secrets: no',
    })
  })

  it('leaves out what decides nothing: labels, statuses the hub writes, requests of others, refusals of people', () => {
    const labelled = { before: aCluster(), object: { ...aCluster(), metadata: { name: 'east', labels: { a: 'b' } } } }
    expect(auditEntryOfWrite(write(labelled), 5)).toBeUndefined()
    const cleaned = { ...request, operation: 'DELETE', before: aRequest('Approved'), object: undefined } as const
    expect(auditEntryOfWrite(write(cleaned), 5)).toBeUndefined()
    expect(auditEntryOfWrite(write({ subresource: 'status', before: aCluster(), object: aCluster() }), 5)).toBe(
      undefined,
    )
    const foreign = { ...request, operation: 'CREATE', object: { metadata: { labels: {} } } } as const
    expect(auditEntryOfWrite(write(foreign), 5)).toBeUndefined()
    expect(auditEntryOfWrite(write({ ...decided, object: aRequest() }), 5)).toBeUndefined()
    const refused = { id: '', user: ann, address: '', method: 'GET', path: '/api', message: 'no' }
    expect(auditEntryOfRefusal(refused, 6)).toBeUndefined()
  })
})
