import { describe, expect, it } from 'vitest'
import { aRequest } from '../authority/test/requests.ts'
import { ManualClock } from '../controller/testing/manual-clock.ts'
import { isRequestOver } from './expiring-kinds.ts'
import { TestAuthority } from './test/certificates.ts'
import { aServer } from './test/server.ts'
import type { ApiObject } from './types.ts'

const NOW = Date.UTC(2026, 0, 10)
const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const requests = { group: 'certificates.k8s.io', version: 'v1', plural: 'certificatesigningrequests' }
const ago = (ms: number): string => new Date(NOW - ms).toISOString()

function request(
  createdMs: number,
  conditions: readonly (readonly [type: string, ms: number])[],
  certificate?: string,
): ApiObject {
  return {
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name: 'one', creationTimestamp: ago(createdMs) },
    status: {
      ...(conditions.length > 0 && {
        conditions: conditions.map(([type, ms]) => ({ type, status: 'True', lastUpdateTime: ago(ms) })),
      }),
      ...(certificate && { certificate: Buffer.from(certificate).toString('base64') }),
    },
  }
}

describe('a certificate request', () => {
  const long = 1000 * HOUR_MS
  it.each<[what: string, object: ApiObject, isOver: boolean]>([
    ['that waits for less than a day', request(24 * HOUR_MS, []), false],
    ['that has waited for a day', request(24 * HOUR_MS + 1000, []), true],
    ['denied within the hour', request(long, [['Denied', HOUR_MS]]), false],
    ['denied an hour ago', request(long, [['Denied', HOUR_MS + 1000]]), true],
    [
      'failed an hour ago, though approved just now',
      request(long, [
        ['Approved', 1000],
        ['Failed', HOUR_MS + 1000],
      ]),
      true,
    ],
    ['approved an hour ago and not signed', request(long, [['Approved', HOUR_MS + 1000]]), false],
    ['approved a day ago and not signed', request(long, [['Approved', 24 * HOUR_MS + 1000]]), true],
    ['approved within the hour and signed', request(long, [['Approved', HOUR_MS]], 'no certificate'), false],
    ['approved an hour ago and signed', request(long, [['Approved', HOUR_MS + 1000]], 'no certificate'), true],
    ['of which somebody said something else', request(long, [['Seen', long]]), false],
  ])('%s: whether it is over', (_, object, isOver) => expect(isRequestOver(object, NOW)).toBe(isOver))

  it('is over with its certificate, however young the decision is', async () => {
    const authority = await TestAuthority.create('signer')
    const today = (NOW - Date.now()) / (24 * HOUR_MS)
    const isOver = async (from: number, to: number) => {
      const { cert } = await authority.sign({ subject: 'CN=one', days: [today + from, today + to] })
      return isRequestOver(request(1000, [['Approved', 1000]], cert), NOW)
    }
    expect(await isOver(-2, -1)).toBe(true)
    expect(await isOver(-1, 1)).toBe(false)
  })

  it('that has served its time is deleted, and no other', async () => {
    const clock = new ManualClock(NOW)
    const server = await aServer({ clock })
    const { pem } = await aRequest()
    const create = (name: string) =>
      server.objects.create({
        apiVersion: 'certificates.k8s.io/v1',
        kind: 'CertificateSigningRequest',
        metadata: { name },
        spec: {
          request: Buffer.from(pem).toString('base64'),
          signerName: 'example.com/nobody',
          usages: ['client auth'],
        },
      })
    const names = () => server.objects.list(requests).map(({ metadata }) => metadata.name)
    const denied = await create('denied')
    await server.objects.updateStatus({ ...denied, status: { conditions: [{ type: 'Failed', status: 'True' }] } })
    await clock.advance(30 * MINUTE_MS)
    await create('waiting')
    await clock.advance(29 * MINUTE_MS)
    expect(names()).toEqual(['denied', 'waiting'])
    await clock.advance(3 * MINUTE_MS)
    expect(names()).toEqual(['waiting'])
    await clock.advance(24 * HOUR_MS)
    expect(names()).toEqual([])
    await clock.advance(10 * MINUTE_MS)
    expect(clock.sleepers).toBe(0) // nobody looks where there is nothing
    await create('again')
    await clock.advance(25 * HOUR_MS)
    expect(names()).toEqual([])
  })
})
