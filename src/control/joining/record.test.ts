import { expect, it } from 'vitest'
import { auditEntryOf } from './record.ts'

it('a machine that was refused has no name in the trail: what it said to be is told as said', () => {
  const fact = { cluster: 'east', agent: 'a1', address: '10.0.0.9', reason: 'the token is unknown' }
  expect(auditEntryOf({ ...fact, event: 'join_refused' }, 5)).toMatchObject({
    username: '',
    resource: 'managedcluster east',
    reason: 'who says to be agent a1 of east: the token is unknown',
  })
  expect(auditEntryOf({ ...fact, event: 'join_asked' }, 5)).toMatchObject({
    username: 'system:open-cluster-management:east:a1',
    reason: 'the token is unknown',
  })
})
