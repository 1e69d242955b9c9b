import { execFileSync } from 'node:child_process'
import { generateKeyPairSync, X509Certificate } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { issueClientCertificate, newAuthorityPair, readAuthorityPair } from './certificates.ts'
import { element } from './der.ts'
import { openssl } from './test/requests.ts'

const MINUTE_MS = 60_000
const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const spki = publicKey.export({ type: 'spki', format: 'der' })
const printed = (pem: string): string =>
  execFileSync('openssl', ['x509', '-noout', '-text'], { input: pem, encoding: 'utf8', stdio: 'pipe' })

describe('a certificate of a member', () => {
  it('is read by others as it was meant, whatever its name and its span', async () => {
    const text = await newAuthorityPair('the hub', Date.UTC(2026, 0), 100 * 365 * 86_400_000)
    const pair = await readAuthorityPair(text)
    const ca = new X509Certificate(text.cert)
    const names = fc.string({ unit: fc.constantFrom(...'abcXYZ019-:. ü漢'), minLength: 1, maxLength: 60 })
    const seconds = (from: number, to: number) => fc.integer({ min: from / 1000, max: to / 1000 })
    await fc.assert(
      fc.asyncProperty(
        fc.array(names, { maxLength: 3 }),
        names,
        seconds(Date.UTC(2020, 0), Date.UTC(2060, 0)),
        fc.integer({ min: 1, max: 20_000_000 }),
        async (organizations, commonName, from, lifeSeconds) => {
          const [notBeforeMs, notAfterMs] = [from * 1000, (from + lifeSeconds) * 1000]
          const wanted = { organizations, commonName, spki, isRsa: false, notBeforeMs, notAfterMs }
          const { pem, serial } = await issueClientCertificate(pair, wanted)
          const read = new X509Certificate(pem)
          expect(read.checkIssued(ca) && read.verify(ca.publicKey) && !read.ca).toBe(true)
          expect(read.serialNumber.toLowerCase()).toBe(serial)
          expect([Date.parse(read.validFrom), Date.parse(read.validTo)]).toEqual([notBeforeMs, notAfterMs])
          expect(read.publicKey.equals(publicKey)).toBe(true)
          const { CN, O = [] } = read.toLegacyObject().subject as { CN?: string; O?: string | string[] }
          expect([CN, [O].flat()]).toEqual([commonName, organizations])
        },
      ),
      { numRuns: 100 },
    )
  })

  it.each([
    ['P-256', () => generateKeyPairSync('ec', { namedCurve: 'P-256' })],
    ['P-384', () => generateKeyPairSync('ec', { namedCurve: 'P-384' })],
    ['RSA', () => generateKeyPairSync('rsa', { modulusLength: 2048 })],
  ])('verifies in openssl where the CA has a key of %s, and says what it is for', async (_, makeKey) => {
    const key = String(makeKey().privateKey.export({ type: 'pkcs8', format: 'pem' }))
    const ca = ['req', '-x509', '-days', '30', '-subj', '/O=Some/CN=CA', '-addext', 'basicConstraints=critical,CA:true']
    const cert = openssl([...ca, '-key', 'ca.key'], { 'ca.key': key })
    const pair = await readAuthorityPair({ cert, key })
    const now = Date.now()
    const { pem } = await issueClientCertificate(pair, {
      ...{ organizations: ['group'], commonName: 'group:agent', spki, isRsa: false },
      ...{ notBeforeMs: now - MINUTE_MS, notAfterMs: now + 60 * MINUTE_MS },
    })
    const text = printed(pem)
    expect(text).toMatch(/X509v3 Basic Constraints: critical\s+CA:FALSE/)
    expect(text).toMatch(/X509v3 Key Usage: critical\s+Digital Signature\n/)
    expect(text).toMatch(/X509v3 Extended Key Usage:\s+TLS Web Client Authentication\n/)
    expect(text).toMatch(/Issuer: O = ?Some, CN = ?CA/)
    expect(new X509Certificate(pem).verify(new X509Certificate(cert).publicKey)).toBe(true)
  })
})

describe('an element of DER', () => {
  it.each([
    [0, '0400'],
    [127, '047f'],
    [128, '048180'],
    [255, '0481ff'],
    [256, '04820100'],
    [65_536, '0483010000'],
  ])('of %i bytes begins with %s', (length, head) => {
    const bytes = element(0x04, Buffer.alloc(length))
    expect(bytes.subarray(0, head.length / 2).toString('hex')).toBe(head)
    expect(bytes).toHaveLength(head.length / 2 + length)
  })
})
