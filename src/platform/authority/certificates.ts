import 'reflect-metadata'
import {
  createPrivateKey,
  createPublicKey,
  type KeyObject,
  X509Certificate as ReadCertificate,
  webcrypto,
} from 'node:crypto'
import { isIP } from 'node:net'
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509Certificate,
  X509CertificateGenerator,
} from '@peculiar/x509'
import { elementsOf, expectTag, only, TAG } from './der.ts'
import { AuthorityUnusableError } from './errors.ts'
import { canSign, type Leaf, type Signer, signLeaf } from './leaf.ts'

const ECDSA = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }

/** Certificates begin a little before they are made, for clocks that are behind, ms. */
export const BACKDATE_MS = 5 * 60_000
const DAY_MS = 86_400_000

/** What signs: a CA's certificate with its key. */
export interface SigningPair extends Signer {
  readonly certificate: X509Certificate
  /** the extension by which its certificates name its key, DER */
  readonly keyIdentifier: Uint8Array
}

/** PEM, as it is kept. */
export interface PairText {
  readonly cert: string
  readonly key: string
}

/** 120 random bits behind a one: positive, never zero, sixteen bytes. */
const newSerial = (): string => `01${Buffer.from(webcrypto.getRandomValues(new Uint8Array(15))).toString('hex')}`

const pemOf = (certificate: X509Certificate): string => `${certificate.toString('pem')}\n`

/** A new P-256 key; its private half as PEM as well. */
export async function newKeyPair(): Promise<{ readonly keys: webcrypto.CryptoKeyPair; readonly pem: string }> {
  const keys = (await webcrypto.subtle.generateKey(ECDSA, true, ['sign', 'verify'])) as webcrypto.CryptoKeyPair
  const pkcs8 = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey))
  const key = createPrivateKey({ key: pkcs8, format: 'der', type: 'pkcs8' })
  return { keys, pem: String(key.export({ type: 'pkcs8', format: 'pem' })) }
}

/** CAs count from here on, so that they outlive a clock that was years ahead when they were made. */
const CA_SINCE_MS = Date.UTC(2020, 0, 1)

/** A self-signed CA with a new P-256 key, good for signing leaves and nothing else. */
export async function newAuthorityPair(commonName: string, nowMs: number, lifeMs: number): Promise<PairText> {
  const { keys, pem } = await newKeyPair()
  const certificate = await X509CertificateGenerator.createSelfSigned(
    {
      serialNumber: newSerial(),
      name: [{ CN: [commonName] }],
      // Machines whose clock is behind believe it, too.
      notBefore: new Date(Math.min(nowMs - DAY_MS, CA_SINCE_MS)),
      notAfter: new Date(nowMs + lifeMs),
      signingAlgorithm: ECDSA,
      keys,
      extensions: [
        new BasicConstraintsExtension(true, 0, true),
        new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
        await SubjectKeyIdentifierExtension.create(keys.publicKey, false, webcrypto),
      ],
    },
    webcrypto,
  )
  return { cert: pemOf(certificate), key: pem }
}

/**
 * A CA from its PEM texts.
 * @throws AuthorityUnusableError where they are unreadable, do not belong together, are no CA's, or of a key we do not sign with
 */
export async function readAuthorityPair({ cert, key }: PairText): Promise<SigningPair> {
  const stored = readKey(key)
  const read = readCertificate(cert)
  if (!read.publicKey.equals(createPublicKey(stored)))
    throw unusable('its certificate and its key do not belong together')
  // An altered certificate may still be read: where it signed itself, its own signature tells.
  if (read.checkIssued(read) && !read.verify(read.publicKey)) throw unusable('its certificate was altered')
  if (!read.ca) throw unusable('its certificate is not that of a CA')
  if (!canSign(stored)) throw unusable('its key is neither P-256, P-384 nor RSA')
  const certificate = new X509Certificate(cert)
  const keyIdentifier = await AuthorityKeyIdentifierExtension.create(certificate.publicKey, false, webcrypto)
  const issuer = subjectIn(read.raw)
  return { certificate, key: stored, issuer, keyIdentifier: new Uint8Array(keyIdentifier.rawData) }
}

/** The subject as it stands in a certificate of version 3: byte for byte, as it is compared by bytes. */
function subjectIn(certificate: Buffer): Buffer {
  const [info] = elementsOf(only(certificate, TAG.sequence).content)
  const [, , , , , subject] = elementsOf(expectTag(info, TAG.sequence).content)
  return expectTag(subject, TAG.sequence).whole
}

const unusable = (why: string, cause?: unknown): AuthorityUnusableError =>
  new AuthorityUnusableError(`the hub's CA cannot be used: ${why}`, { cause })

function readKey(pem: string): KeyObject {
  try {
    return createPrivateKey(pem)
  } catch (error) {
    throw unusable('its key is no PEM of a private key without a passphrase', error)
  }
}

function readCertificate(pem: string): ReadCertificate {
  try {
    return new ReadCertificate(pem)
  } catch (error) {
    throw unusable('its certificate is no PEM of a certificate', error)
  }
}

/** An extension as it stands in certificates, DER. */
const bytesOf = ({ rawData }: { readonly rawData: ArrayBuffer }): Uint8Array => new Uint8Array(rawData)

const NO_AUTHORITY = bytesOf(new BasicConstraintsExtension(false, undefined, true))
const SIGNS = bytesOf(new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true))
const SIGNS_AND_ENCIPHERS = bytesOf(
  new KeyUsagesExtension(KeyUsageFlags.digitalSignature | KeyUsageFlags.keyEncipherment, true),
)
const CLIENT = bytesOf(new ExtendedKeyUsageExtension([ExtendedKeyUsage.clientAuth]))
const SERVER = bytesOf(new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth]))

/** A certificate that is no CA's. @param usages of its key, and what is not the same for all */
async function issueCertificate(
  pair: SigningPair,
  wanted: Omit<Leaf, 'serial' | 'extensions'>,
  usages: readonly Uint8Array[],
): Promise<{ readonly pem: string; readonly serial: string }> {
  const serial = newSerial()
  const extensions = [NO_AUTHORITY, pair.keyIdentifier, ...usages]
  const der = await signLeaf(pair, { ...wanted, serial, extensions })
  const lines = der.toString('base64').match(/.{1,64}/g) ?? []
  return { pem: `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`, serial }
}

type Span = Pick<Leaf, 'notBeforeMs' | 'notAfterMs'>

/** A certificate of a server, for these names and addresses. */
export async function issueServerCertificate(
  pair: SigningPair,
  wanted: Span & {
    readonly commonName: string
    readonly hosts: readonly string[]
    readonly publicKey: webcrypto.CryptoKey
  },
): Promise<{ readonly pem: string; readonly serial: string }> {
  const { commonName, hosts, publicKey, notBeforeMs, notAfterMs } = wanted
  const names = hosts.map((host) => ({ type: isIP(host) ? ('ip' as const) : ('dns' as const), value: host }))
  const spki = new Uint8Array(await webcrypto.subtle.exportKey('spki', publicKey))
  const subject = [{ type: 'CN', value: commonName }] as const
  const hostNames = bytesOf(new SubjectAlternativeNameExtension(names))
  return issueCertificate(pair, { subject, spki, notBeforeMs, notAfterMs }, [SIGNS, SERVER, hostNames])
}

/** A certificate of a client: subject, key and span as said here, client authentication alone, nothing of the asker's choice. */
export function issueClientCertificate(
  pair: SigningPair,
  wanted: Span & {
    readonly commonName: string
    readonly organizations: readonly string[]
    /** DER */
    readonly spki: Uint8Array
    readonly isRsa: boolean
  },
): Promise<{ readonly pem: string; readonly serial: string }> {
  const { commonName, organizations, spki, isRsa, notBeforeMs, notAfterMs } = wanted
  const subject = [
    ...organizations.map((value) => ({ type: 'O', value }) as const),
    { type: 'CN', value: commonName } as const,
  ]
  const usages = [isRsa ? SIGNS_AND_ENCIPHERS : SIGNS, CLIENT]
  return issueCertificate(pair, { subject, spki, notBeforeMs, notAfterMs }, usages)
}
