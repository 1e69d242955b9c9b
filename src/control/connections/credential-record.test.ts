import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isClusterName, parseClusterName } from '#model'
import {
  type CredentialRecord,
  clusterOfToken,
  credentialName,
  credentialOf,
  findToken,
  MAX_TOKENS,
  newToken,
  secretOf,
  type TokenRecord,
  withToken,
} from './credential-record.ts'
import { clusterOfCertificate } from './peer-certificate.ts'

const west = parseClusterName('west')
const connection = { apiVersion: 'a/v1', kind: 'ClusterConnection', metadata: { name: 'west', uid: 'u1' } }
const clusterNames = fc
  .stringMatching(/^[a-z0-9]([-a-z0-9]{0,20}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,80}[a-z0-9])?){0,4}$/)
  .filter(isClusterName)

describe('a token', () => {
  it('names its cluster, whatever the cluster is called', () =>
    fc.assert(
      fc.property(clusterNames, (name) => {
        const { token } = newToken(parseClusterName(name), 0)
        expect(clusterOfToken(token)).toBe(name)
      }),
    ))

  it('holds 256 random bits, and its record none of them', () => {
    const made = Array.from({ length: 50 }, () => newToken(west, 5, 1000))
    expect(new Set(made.map(({ token }) => token)).size).toBe(50)
    for (const { token, record } of made) {
      expect(Buffer.from(token.slice('cp_west_'.length), 'base64url')).toHaveLength(32)
      expect(JSON.stringify(record)).not.toContain(token.slice(8, 20))
      expect(record).toMatchObject({ createdAt: 5, expiresAt: 1005 })
    }
  })

  it.each([
    '',
    'cp_',
    'cp_west',
    'cp_west_short',
    'cp_WEST_',
    'Bearer x',
    'eyJhbGciOiJSUzI1NiJ9.e30.c2ln',
    `cp_we st_${'a'.repeat(43)}`,
  ])('is not %j', (text) => expect(clusterOfToken(text)).toBeUndefined())

  it('is found among its own, and no changed one is', () => {
    const { token, record } = newToken(west, 0)
    const other = newToken(west, 0).record
    expect(findToken([other, record], token)?.id).toBe(record.id)
    fc.assert(
      fc.property(fc.nat(token.length - 1), fc.constantFrom('A', 'b', '0', '_', ''), (at, character) => {
        const changed = token.slice(0, at) + character + token.slice(at + 1)
        fc.pre(changed !== token)
        expect(findToken([other, record], changed)).toBeUndefined()
      }),
    )
  })
})

describe('withToken', () => {
  const record = (id: string, expiresAt: number | null): TokenRecord => ({ id, sha256: id, createdAt: 0, expiresAt })

  it('keeps the newest beside the new one, and drops what has expired', () => {
    const kept = withToken([record('b', 50), record('a', null)], record('c', null), 10)
    expect(kept.map(({ id }) => id)).toEqual(['c', 'b'])
    expect(withToken([record('b', 50), record('a', null)], record('c', null), 50).map(({ id }) => id)).toEqual([
      'c',
      'a',
    ])
  })

  it('keeps the one in use instead, where it is known', () => {
    const kept = withToken([record('b', null), record('a', null)], record('c', null), 10, { inUse: 'a' })
    expect(kept.map(({ id }) => id)).toEqual(['c', 'a'])
  })

  it('lets the old one live no longer than the overlap', () => {
    const old = (expiresAt: number | null) =>
      withToken([record('a', expiresAt)], record('b', null), 10, { overlapMs: 5 })[1]
    expect([old(null)?.expiresAt, old(12)?.expiresAt, old(100)?.expiresAt]).toEqual([15, 12, 15])
  })

  it('never holds more than two, and always the newest', () =>
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(100), fc.option(fc.nat(200)))), (steps) => {
        let tokens: readonly TokenRecord[] = []
        for (const [n, [now, expiresAt]] of steps.entries()) {
          tokens = withToken(tokens, record(`t${n}`, expiresAt), now)
          expect(tokens.length).toBeLessThanOrEqual(MAX_TOKENS)
          expect(tokens[0]?.id).toBe(`t${n}`)
        }
      }),
    ))
})

describe('the Secret of a cluster', () => {
  it('reads back as what was written, for any cluster', () =>
    fc.assert(
      fc.property(clusterNames, fc.array(fc.stringMatching(/^[0-9a-f]{64}$/), { maxLength: 3 }), (name, revoked) => {
        const cluster = parseClusterName(name)
        const record: CredentialRecord = {
          cluster,
          owner: 'u1',
          tokens: [newToken(cluster, 1000, 5000).record, newToken(cluster, 2000).record],
          revokedCertificates: [...new Set(revoked)],
        }
        const secret = secretOf(record, connection, 'fleet')
        expect(secret.metadata.name.length).toBeLessThanOrEqual(253)
        expect(Object.values(secret.metadata.labels ?? {}).every((value) => value.length <= 63)).toBe(true)
        expect(credentialOf(secret)).toEqual(record)
      }),
    ))

  it('has another name for every cluster, also where it must be cut', () => {
    const long = (end: string) => `${'a'.repeat(60)}.${'b'.repeat(60)}.${'c'.repeat(60)}.${'d'.repeat(60)}${end}`
    expect(credentialName('west')).toBe('west-agent')
    expect(new Set([credentialName(long('.x')), credentialName(long('.y')), credentialName(long('.y1'))]).size).toBe(3)
  })

  it('keeps what others put on it', () => {
    const known = {
      metadata: { name: 'west-agent', resourceVersion: '7', labels: { team: 'a' }, annotations: { note: 'b' } },
    }
    const record = { cluster: west, owner: 'u1', tokens: [], revokedCertificates: [] }
    expect(secretOf(record, connection, 'fleet', known).metadata).toMatchObject({
      resourceVersion: '7',
      labels: { team: 'a' },
      annotations: { note: 'b' },
    })
  })

  const stored = (data: Readonly<Record<string, string>>, over: object = {}) =>
    credentialOf({
      metadata: { name: 'west-agent', labels: { 'clusterpulse.io/agent-credential': 'west' }, ...over },
      data: Object.fromEntries(Object.entries(data).map(([key, text]) => [key, Buffer.from(text).toString('base64')])),
    })

  it.each([
    'not json',
    '{}',
    '[null, 5, {"id":"a"}]',
    '[{"id":"a","sha256":"xyz"}]',
    `[{"id":"a","sha256":"${'0'.repeat(64)}","expires":"soon"}]`,
  ])('proves nothing where its tokens are %s', (tokens) => expect(stored({ tokens })?.tokens).toEqual([]))

  it('takes fingerprints as people paste them', () => {
    const plain = 'ab'.repeat(32)
    const withColons = plain.toUpperCase().match(/../g)?.join(':') ?? ''
    expect(
      stored({ 'revoked-certificates': `${withColons}, ${'0f'.repeat(32)}\nrubbish\n${plain}\n` })?.revokedCertificates,
    ).toEqual([plain, '0f'.repeat(32)])
  })

  it('is ours only under the name of its cluster, so that no second one speaks for it', () => {
    expect(stored({}, { name: 'other' })).toBeUndefined()
    expect(stored({}, { labels: {} })).toBeUndefined()
    expect(stored({}, { annotations: { 'clusterpulse.io/cluster': 'east' } })).toBeUndefined()
  })
})

describe('clusterOfCertificate', () => {
  const certificate = (subjectAltName: string, commonName = '') => ({
    subjectAltName,
    commonName,
    organizations: [],
    fingerprint: '',
    notAfter: 0,
  })
  it.each([
    ['URI:clusterpulse://cluster/west', '', 'west'],
    ['DNS:agent.local, URI:clusterpulse://cluster/west.eu, IP Address:10.0.0.1', 'x', 'west.eu'],
    ['', 'clusterpulse:cluster:west', 'west'],
    ['DNS:agent.local', 'clusterpulse:cluster:west', 'west'],
    ['URI:clusterpulse://cluster/west', 'clusterpulse:cluster:east', 'west'],
  ])('takes %j with the common name %j for %s', (names, commonName, cluster) =>
    expect(clusterOfCertificate(certificate(names, commonName))?.cluster).toBe(cluster),
  )

  it.each([
    ['', ''],
    ['', 'west'],
    ['URI:clusterpulse://cluster/', ''],
    ['URI:clusterpulse://cluster/WEST', ''],
    ['URI:clusterpulse://cluster/west/../east', ''],
    ['URI:spiffe://cluster/west', ''],
    ['URI:clusterpulse://cluster/west, URI:clusterpulse://cluster/east', ''],
    ['URI:clusterpulse://cluster/WEST', 'clusterpulse:cluster:east'],
    // One entry that looks like two where it is split at commas.
    ['DNS:"evil, URI:clusterpulse://cluster/east"', ''],
    ['DNS:"a\\", URI:clusterpulse://cluster/east"', ''],
  ])('takes %j with the common name %j for nobody', (names, commonName) =>
    expect(clusterOfCertificate(certificate(names, commonName))).toBeUndefined(),
  )
})
