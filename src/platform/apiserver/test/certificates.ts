import 'reflect-metadata'
import { webcrypto } from 'node:crypto'
import {
  BasicConstraintsExtension,
  ExtendedKeyUsageExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  type X509Certificate,
  X509CertificateGenerator,
} from '@peculiar/x509'

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }
const DAY_MS = 86_400_000

/** What a client shows. Both PEM. */
export interface ClientPair {
  readonly cert: string
  readonly key: string
}

export interface Wanted {
  /** such as `CN=ann, O=dev, O=ops` */
  readonly subject: string
  /** default: of a client */
  readonly usages?: readonly string[]
  /** days from now; default yesterday to tomorrow */
  readonly days?: readonly [from: number, to: number]
  readonly endsMs?: number
  readonly isAuthority?: boolean
}

/** A CA of one test. */
export class TestAuthority {
  readonly certificate: X509Certificate
  readonly #keys: webcrypto.CryptoKeyPair

  private constructor(certificate: X509Certificate, keys: webcrypto.CryptoKeyPair) {
    this.certificate = certificate
    this.#keys = keys
  }

  static async create(name: string): Promise<TestAuthority> {
    const keys = (await webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify'])) as webcrypto.CryptoKeyPair
    const certificate = await X509CertificateGenerator.createSelfSigned({
      name: `CN=${name}`,
      notBefore: new Date(Date.now() - DAY_MS),
      notAfter: new Date(Date.now() + DAY_MS),
      signingAlgorithm: ALGORITHM,
      keys,
      extensions: [
        new BasicConstraintsExtension(true, undefined, true),
        new KeyUsagesExtension(KeyUsageFlags.keyCertSign, true),
      ],
    })
    return new TestAuthority(certificate, keys)
  }

  get pem(): string {
    return `${this.certificate.toString('pem')}\n`
  }

  async sign({ subject, usages, days = [-1, 1], endsMs, isAuthority = false }: Wanted): Promise<ClientPair> {
    const keys = (await webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify'])) as webcrypto.CryptoKeyPair
    const certificate = await X509CertificateGenerator.create({
      subject,
      issuer: this.certificate.subject,
      notBefore: new Date(Date.now() + days[0] * DAY_MS),
      notAfter: new Date(endsMs ?? Date.now() + days[1] * DAY_MS),
      signingKey: this.#keys.privateKey,
      publicKey: keys.publicKey,
      signingAlgorithm: ALGORITHM,
      extensions: [
        new BasicConstraintsExtension(isAuthority, undefined, true),
        ...(usages?.length === 0 ? [] : [new ExtendedKeyUsageExtension([...(usages ?? [CLIENT])])]),
      ],
    })
    const pkcs8 = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey)).toString('base64')
    const key = `-----BEGIN PRIVATE KEY-----\n${pkcs8.replace(/.{64}/g, '$&\n')}\n-----END PRIVATE KEY-----\n`
    return { cert: `${certificate.toString('pem')}\n`, key }
  }
}

export const CLIENT = '1.3.6.1.5.5.7.3.2'
export const SERVER = '1.3.6.1.5.5.7.3.1'
