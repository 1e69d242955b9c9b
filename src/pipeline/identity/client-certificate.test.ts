import 'reflect-metadata'
import { webcrypto } from 'node:crypto'
import { createServer, request, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import * as x509 from '@peculiar/x509'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { UnsafeConfigurationError } from './errors.ts'
import { anIdentity } from './test/requests.ts'
import type { Identity } from './types.ts'

const day = 24 * 3600_000
const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }

interface Made {
  readonly certificate: x509.X509Certificate
  readonly cert: string
  readonly key: string
  readonly keys: webcrypto.CryptoKeyPair
}

interface Wanted {
  readonly name?: string
  readonly issuer?: Made
  readonly ca?: boolean
  readonly dns?: string
  readonly usage?: string
  readonly validFor?: readonly [from: number, to: number]
}

async function make({
  name = 'oauth-proxy',
  issuer,
  ca = false,
  dns,
  usage = '1.3.6.1.5.5.7.3.2',
  validFor = [-1, 1],
}: Wanted) {
  const keys = (await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])) as webcrypto.CryptoKeyPair
  const certificate = await x509.X509CertificateGenerator.create({
    subject: `CN=${name}`,
    issuer: issuer?.certificate.subject ?? `CN=${name}`,
    notBefore: new Date(Date.now() + validFor[0] * day),
    notAfter: new Date(Date.now() + validFor[1] * day),
    signingKey: (issuer?.keys ?? keys).privateKey,
    publicKey: keys.publicKey,
    signingAlgorithm: algorithm,
    extensions: [
      new x509.BasicConstraintsExtension(ca, undefined, true),
      ...(ca ? [] : [new x509.ExtendedKeyUsageExtension([usage])]),
      ...(dns ? [new x509.SubjectAlternativeNameExtension([{ type: 'dns', value: dns }])] : []),
    ],
  })
  const pkcs8 = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey)).toString('base64')
  const key = `-----BEGIN PRIVATE KEY-----\n${pkcs8.replace(/.{64}/g, '$&\n')}\n-----END PRIVATE KEY-----\n`
  return { certificate, cert: certificate.toString('pem'), key, keys }
}

describe('a proxy with a client certificate', () => {
  let ca: Made
  let serving: Made
  let server: Server
  let identity: Identity
  const answers = () => (server.address() as AddressInfo).port

  beforeAll(async () => {
    ca = await make({ name: 'CA of the proxy', ca: true })
    serving = await make({ name: 'localhost', usage: '1.3.6.1.5.5.7.3.1' })
    // Whatever TLS accepts: who signed is decided by identity.
    const options = { cert: serving.cert, key: serving.key, requestCert: true, rejectUnauthorized: false }
    server = createServer(options, async (asked, response) => {
      const found = await identity.identify(asked)
      response.end(found?.principal.username ?? 'nobody')
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  })
  afterAll(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })

  const whoIs = (client?: { readonly cert: string; readonly key: string }): Promise<string> =>
    new Promise((resolve, reject) => {
      const headers = { 'x-forwarded-user': 'ann' }
      const options = { port: answers(), host: '127.0.0.1', agent: false, headers, rejectUnauthorized: false }
      request({ ...options, ...(client && { cert: client.cert, key: client.key }) }, async (response) => {
        let text = ''
        for await (const part of response) text += String(part)
        resolve(text)
      })
        .on('error', reject)
        .end()
    })

  const trusting = async (names?: readonly string[]) => {
    identity = await anIdentity({ proxy: { trustedPeers: [], clientCa: { pem: ca.cert, ...(names && { names }) } } })
  }

  it('is believed when the CA signed it', async () => {
    await trusting()
    expect(await whoIs(await make({ issuer: ca }))).toBe('ann')
  })

  it.each([
    ['without one', async () => undefined],
    ['signed by itself', () => make({})],
    ['of a CA with the same name', async () => make({ issuer: await make({ name: 'CA of the proxy', ca: true }) })],
    ['that ended', () => make({ issuer: ca, validFor: [-2, -1] })],
    ['that does not count yet', () => make({ issuer: ca, validFor: [1, 2] })],
    ['made for servers', () => make({ issuer: ca, usage: '1.3.6.1.5.5.7.3.1' })],
    ['that is a CA itself', () => make({ issuer: ca, ca: true })],
  ])('is nobody %s', async (_, client) => {
    await trusting()
    expect(await whoIs(await client())).toBe('nobody')
  })

  it('must have one of the names where names are given', async () => {
    await trusting(['oauth-proxy'])
    expect(await whoIs(await make({ issuer: ca }))).toBe('ann')
    expect(await whoIs(await make({ issuer: ca, name: 'other' }))).toBe('nobody')
    expect(await whoIs(await make({ issuer: ca, name: 'other', dns: 'oauth-proxy' }))).toBe('ann')
    expect(await whoIs(await make({ issuer: ca, name: 'other', dns: 'xoauth-proxy' }))).toBe('nobody')
  })

  it('is no proxy by a leaf certificate in place of its CA', async () => {
    const proxy = { trustedPeers: [], clientCa: { pem: serving.cert } }
    await expect(anIdentity({ proxy })).rejects.toThrow(UnsafeConfigurationError)
  })
})
