import { expect, it } from 'vitest'
import { auditEntryOf, auditEntryOfAuthority } from './member-authority.ts'

const asked = { name: 'east-x7k2m', username: 'system:bootstrap:abcdef' }

it('the audit trail names who asked for a certificate, for which member it was signed, and why one was refused', () => {
  const member = { cluster: 'east', agent: 'one' }
  const signed = auditEntryOf({ ...asked, result: { kind: 'signed', member, serial: '01ab', notAfterMs: 0 } }, 5)
  expect(signed).toMatchObject({
    at: 5,
    kind: 'administration',
    requestId: 'east-x7k2m',
    username: 'system:bootstrap:abcdef',
    route: 'certificate_signed',
    resource: 'managedcluster east',
    status: 200,
    reason: 'certificate 01ab for agent one until 1970-01-01T00:00:00.000Z',
  })
  const refused = auditEntryOf({ ...asked, result: { kind: 'failed', message: 'two organisations' } }, 5)
  expect(refused).toMatchObject({
    kind: 'denial',
    requestId: 'east-x7k2m',
    username: 'system:bootstrap:abcdef',
    route: 'certificate_refused',
    status: 403,
    reason: 'two organisations',
  })
})

it('the audit trail says which CA was ended, and which could not be and why', () => {
  const ended = { act: 'authority_ended', id: '0123' } as const
  expect(auditEntryOfAuthority(ended, 5)).toMatchObject({ route: 'authority_ended', status: 200 })
  expect(auditEntryOfAuthority({ ...ended, trouble: 'no CA "0123" is trusted' }, 5)).toMatchObject({
    kind: 'administration',
    route: 'authority_ended',
    status: 422,
    reason: 'an annotation of the ConfigMap asks for it ("0123"): not done, no CA "0123" is trusted',
  })
})
