import { X509Certificate } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ApiListener, ApiServer, listenApi } from '#apiserver'
import { createKubeClient, type OwnedKubeClient, secrets, whole } from '#kube'
import { type ServingPair, servingCertificate } from './index.ts'

const DAY_MS = 86_400_000
const NOW = Date.parse('2026-11-26T00:00:00Z')
const HOST = 'clusterpulse-webhooks.clusterpulse.svc'

describe('a serving certificate that several processes share', () => {
  let server: ApiServer
  let listener: ApiListener
  let hub: OwnedKubeClient
  let made = 0
  beforeAll(async () => {
    server = await ApiServer.open({ storage: { kind: 'memory' } })
    const grant = { token: 'word', user: 'hub', groups: ['system:masters'] }
    listener = await listenApi({ tokens: [grant], mounts: new Map([['', server]]) })
    const credentials = { kind: 'token' as const, token: grant.token }
    hub = createKubeClient({ server: listener.url, ca: listener.caPem, verifyTls: true, credentials })
  })
  afterAll(async () => {
    await hub[Symbol.asyncDispose]()
    await listener[Symbol.asyncDispose]()
    await server[Symbol.asyncDispose]()
  })

  const fresh = () => ({ namespace: 'default', name: `webhooks-${made++}` })
  const read = (key: { namespace: string; name: string }, days = 0, hosts: readonly string[] = [HOST]) =>
    servingCertificate({ hub, key, hosts, nowMs: NOW + days * DAY_MS, signal: new AbortController().signal })
  const roots = ({ ca }: ServingPair): X509Certificate[] =>
    (ca.match(/-----BEGIN[^-]*-----[^-]*-----END[^-]*-----/g) ?? []).map((pem) => new X509Certificate(pem))
  const isSignedBy = ({ cert }: ServingPair, root: X509Certificate | undefined) =>
    root !== undefined && new X509Certificate(cert).verify(root.publicKey)

  it('is made once, whoever comes first, for its names and by its CA', async () => {
    const key = fresh()
    const all = await Promise.all([read(key), read(key), read(key)])
    expect(new Set(all.map(({ cert }) => cert)).size).toBe(1)
    const [one] = all
    expect(new X509Certificate(one.cert).checkHost(HOST)).toBe(HOST)
    expect(isSignedBy(one, roots(one)[0])).toBe(true)
  })

  it('fills the empty Secret that a manifest brings', async () => {
    const key = fresh()
    await hub.create(whole(secrets), { metadata: key, type: 'Opaque' })
    const one = await read(key)
    expect(await read(key)).toEqual(one)
  })

  it('is another one thirty days before it ends, by the same CA', async () => {
    const key = fresh()
    const first = await read(key)
    expect((await read(key, 59)).cert).toBe(first.cert)
    const second = await read(key, 61)
    expect(second.cert).not.toBe(first.cert)
    expect(second.ca).toBe(first.ca)
  })

  it('is another one where a name is missing', async () => {
    const key = fresh()
    await read(key)
    const { cert } = await read(key, 1, [HOST, '127.0.0.1'])
    expect(new X509Certificate(cert).checkIP('127.0.0.1')).toBe('127.0.0.1')
  })

  it('is by a new CA long after that is trusted, and the former one goes when it has ended', async () => {
    const key = fresh()
    const first = await read(key)
    const years = 9 * 365 + 10
    await read(key, years - 80) // a certificate that is good for a while
    const before = await read(key, years - 30)
    const announced = await read(key, years)
    expect(announced.cert).toBe(before.cert)
    expect(roots(announced)).toHaveLength(2)
    expect(isSignedBy(announced, roots(announced)[1])).toBe(true)
    const next = await read(key, years + 60)
    expect(isSignedBy(next, roots(next)[0])).toBe(true)
    expect(roots(next).map(({ fingerprint256 }) => fingerprint256)).toContain(roots(first)[0]?.fingerprint256)
    const late = await read(key, years + 360)
    expect(roots(late)).toHaveLength(1)
  })

  it('is made anew where what is kept does not belong together', async () => {
    const key = fresh()
    const first = await read(key)
    const data = { 'ca.crt': Buffer.from('no certificate').toString('base64') }
    await hub.patch(secrets, key, { data }, { kind: 'merge' })
    const second = await read(key)
    expect(second.ca).not.toBe(first.ca)
    expect(isSignedBy(second, roots(second)[0])).toBe(true)
  })
})
