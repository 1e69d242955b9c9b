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
  type Extension,
  type JsonName,
  KeyUsageFlags,
  KeyUsagesExtension,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509Certificate,
  X509CertificateGenerator,
} from '@peculiar/x509'
import { AuthorityUnusableError } from './errors.ts'

const ECDSA = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }
const RSA = { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' }
/** How a CA of each sort of key signs. */
const ALGORITHMS: Readonly<Record<string, webcrypto.EcKeyImportParams | webcrypto.RsaHashedImportParams>> = {
  prime256v1: ECDSA,
  secp384r1: { ...ECDSA, namedCurve: 'P-384', hash: 'SHA-384' } as webcrypto.EcKeyImportParams,
  rsa: RSA,
}

/** Certificates begin a little before they are made, for clocks that are behind, ms. */
export const BACKDATE_MS = 5 * 60_000

/** What signs: a CA's certificate with its key. */
export interface SigningPair {
  readonly certificate: X509Certificate
  readonly key: webcrypto.CryptoKey
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

/** A self-signed CA with a new P-256 key, good for signing leaves and nothing else. */
export async function newAuthorityPair(commonName: string, nowMs: number, lifeMs: number): Promise<PairText> {
  const { keys, pem } = await newKeyPair()
  const certificate = await X509CertificateGenerator.createSelfSigned(
    {
      serialNumber: newSerial(),
      name: [{ CN: [commonName] }],
      notBefore: new Date(nowMs - BACKDATE_MS),
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
  const sort = stored.asymmetricKeyType === 'rsa' ? 'rsa' : (stored.asymmetricKeyDetails?.namedCurve ?? '')
  const algorithm = ALGORITHMS[sort]
  if (!algorithm) throw unusable('its key is neither P-256, P-384 nor RSA')
  const pkcs8 = stored.export({ type: 'pkcs8', format: 'der' })
  const imported = await webcrypto.subtle.importKey('pkcs8', pkcs8, algorithm, false, ['sign'])
  return { certificate: new X509Certificate(cert), key: imported }
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

/** What a leaf is for. */
interface Leaf {
  readonly subject: JsonName
  /** SubjectPublicKeyInfo in DER, or a key of WebCrypto */
  readonly publicKey: Uint8Array<ArrayBuffer> | webcrypto.CryptoKey
  readonly keyUsages: number
  readonly notBeforeMs: number
  readonly notAfterMs: number
  /** beside those that every leaf has */
  readonly extensions: readonly Extension[]
}

/** A certificate that is no CA's. */
async function issueCertificate(
  { certificate: ca, key }: SigningPair,
  { subject, publicKey, keyUsages, notBeforeMs, notAfterMs, extensions }: Leaf,
): Promise<{ readonly pem: string; readonly serial: string }> {
  const serial = newSerial()
  const certificate = await X509CertificateGenerator.create(
    {
      serialNumber: serial,
      subject,
      issuer: ca.subjectName,
      notBefore: new Date(notBeforeMs),
      notAfter: new Date(notAfterMs),
      signingAlgorithm: key.algorithm,
      signingKey: key,
      publicKey,
      extensions: [
        new BasicConstraintsExtension(false, undefined, true),
        new KeyUsagesExtension(keyUsages, true),
        await AuthorityKeyIdentifierExtension.create(ca.publicKey, false, webcrypto),
        ...extensions,
      ],
    },
    webcrypto,
  )
  return { pem: pemOf(certificate), serial }
}

/** A certificate of a server, for these names and addresses. */
export function issueServerCertificate(
  pair: SigningPair,
  wanted: Pick<Leaf, 'notBeforeMs' | 'notAfterMs'> & {
    readonly commonName: string
    readonly hosts: readonly string[]
    readonly publicKey: webcrypto.CryptoKey
  },
): Promise<{ readonly pem: string; readonly serial: string }> {
  const { commonName, hosts, publicKey, notBeforeMs, notAfterMs } = wanted
  const names = hosts.map((host) => ({ type: isIP(host) ? ('ip' as const) : ('dns' as const), value: host }))
  return issueCertificate(pair, {
    subject: [{ CN: [commonName] }],
    publicKey,
    keyUsages: KeyUsageFlags.digitalSignature,
    notBeforeMs,
    notAfterMs,
    extensions: [
      new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth]),
      new SubjectAlternativeNameExtension(names),
    ],
  })
}

/** A certificate of a client: subject, key and span as said here, client authentication alone, nothing of the asker's choice. */
export function issueClientCertificate(
  pair: SigningPair,
  wanted: Pick<Leaf, 'notBeforeMs' | 'notAfterMs'> & {
    readonly commonName: string
    readonly organizations: readonly string[]
    /** DER */
    readonly spki: Buffer
    readonly isRsa: boolean
  },
): Promise<{ readonly pem: string; readonly serial: string }> {
  const { commonName, organizations, spki, isRsa, notBeforeMs, notAfterMs } = wanted
  return issueCertificate(pair, {
    subject: [...organizations.map((name) => ({ O: [name] })), { CN: [commonName] }],
    publicKey: new Uint8Array(spki),
    keyUsages: KeyUsageFlags.digitalSignature | (isRsa ? KeyUsageFlags.keyEncipherment : 0),
    notBeforeMs,
    notAfterMs,
    extensions: [new ExtendedKeyUsageExtension([ExtendedKeyUsage.clientAuth])],
  })
}
