import 'reflect-metadata'
import { webcrypto } from 'node:crypto'
import {
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  SubjectAlternativeNameExtension,
  type X509Certificate,
  X509CertificateGenerator,
} from '@peculiar/x509'

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }
const DAY_MS = 86_400_000

export interface TestPair {
  readonly cert: string
  readonly key: string
}

/** An authority for tests: signs servers of 127.0.0.1 and clients of any name. */
export class TestAuthority {
  readonly #certificate: X509Certificate
  readonly #key: webcrypto.CryptoKey

  private constructor(certificate: X509Certificate, key: webcrypto.CryptoKey) {
    this.#certificate = certificate
    this.#key = key
  }

  static async make(name: string): Promise<TestAuthority> {
    const keys = await newKeys()
    const certificate = await X509CertificateGenerator.createSelfSigned(
      {
        name: `CN=${name}`,
        notBefore: new Date(Date.now() - DAY_MS),
        notAfter: new Date(Date.now() + DAY_MS),
        signingAlgorithm: ALGORITHM,
        keys,
        extensions: [new BasicConstraintsExtension(true, 1, true)],
      },
      webcrypto,
    )
    return new TestAuthority(certificate, keys.privateKey)
  }

  get pem(): string {
    return `${this.#certificate.toString('pem')}\n`
  }

  async sign(name: string, use: 'server' | 'client', { expired = false } = {}): Promise<TestPair> {
    const keys = await newKeys()
    const certificate = await X509CertificateGenerator.create(
      {
        subject: `CN=${name}`,
        issuer: this.#certificate.subject,
        notBefore: new Date(Date.now() - 2 * DAY_MS),
        notAfter: new Date(Date.now() + (expired ? -DAY_MS : DAY_MS)),
        signingAlgorithm: ALGORITHM,
        signingKey: this.#key,
        publicKey: keys.publicKey,
        extensions: [
          new ExtendedKeyUsageExtension([use === 'server' ? ExtendedKeyUsage.serverAuth : ExtendedKeyUsage.clientAuth]),
          new SubjectAlternativeNameExtension(
            use === 'server'
              ? [{ type: 'ip', value: '127.0.0.1' }]
              : [{ type: 'url', value: `clusterpulse://cluster/${name}` }],
          ),
        ],
      },
      webcrypto,
    )
    const pkcs8 = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey)).toString('base64')
    const key = `-----BEGIN PRIVATE KEY-----\n${pkcs8.replace(/(.{64})/g, '$1\n').trimEnd()}\n-----END PRIVATE KEY-----\n`
    return { cert: `${certificate.toString('pem')}\n`, key }
  }
}

async function newKeys(): Promise<webcrypto.CryptoKeyPair> {
  return (await webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify'])) as webcrypto.CryptoKeyPair
}
