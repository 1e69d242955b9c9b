import { createHash, createPublicKey, type KeyObject, verify } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { type DerElement, DerError, elementsOf, expectTag, oidText, only, stringOf, TAG, wholeBytes } from './der.ts'
import { CertificateRequestError } from './errors.ts'

/** One word of a name: `2.5.4.3` is the common name, `2.5.4.10` the organisation. */
export interface NameWord {
  readonly oid: string
  readonly value: string
}

/** A request for a certificate (PKCS#10, RFC 2986) whose signature was made with the key it names. */
export interface CertificateRequest {
  /** in the order in which they stand */
  readonly subject: readonly NameWord[]
  /** object identifiers of the extensions that are asked for; `2.5.29.17` are alternative names */
  readonly extensions: readonly string[]
  readonly publicKey: KeyObject
  /** the key as SubjectPublicKeyInfo, DER */
  readonly spki: Buffer
  /** SHA-256 of `spki`, hex: which key it is, for people who compare */
  readonly keySha256: string
}

export const COMMON_NAME = '2.5.4.3'
export const ORGANIZATION = '2.5.4.10'
export const ALTERNATIVE_NAMES = '2.5.29.17'

/** Of the PEM text. A request with an RSA key of 4096 bits has 1700. */
export const MAX_REQUEST_BYTES = 16 * 1024

const EXTENSION_REQUESTS = ['1.2.840.113549.1.9.14', '1.3.6.1.4.1.311.2.1.14']

/** Signature algorithms by object identifier: the type of key, and the digest. */
const SIGNATURES: Readonly<Record<string, readonly [key: string, digest: string | null]>> = {
  '1.2.840.10045.4.3.2': ['ec', 'sha256'],
  '1.2.840.10045.4.3.3': ['ec', 'sha384'],
  '1.2.840.10045.4.3.4': ['ec', 'sha512'],
  '1.2.840.113549.1.1.11': ['rsa', 'sha256'],
  '1.2.840.113549.1.1.12': ['rsa', 'sha384'],
  '1.2.840.113549.1.1.13': ['rsa', 'sha512'],
  '1.3.101.112': ['ed25519', null],
}

/** On its way from who asks to who signs a request is judged several times, and each look at its signature costs a quarter of a millisecond. */
const readLately = new LRUCache<string, CertificateRequest>({ max: 512 })

/**
 * Reads the one PEM block of a text as a certificate request and checks its signature.
 * @throws CertificateRequestError where it is too long, is none, not the only one, is not DER, or its signature is not made with its key
 */
export function parseCertificateRequest(pem: string | Uint8Array): CertificateRequest {
  if (pem.length > MAX_REQUEST_BYTES)
    throw new CertificateRequestError(
      `a certificate request may have ${MAX_REQUEST_BYTES} bytes, this one has ${pem.length}`,
    )
  const text = typeof pem === 'string' ? pem : Buffer.from(pem).toString('latin1')
  const known = readLately.get(text)
  if (known) return known
  const der = onlyBlock(text)
  try {
    const request = read(der)
    readLately.set(text, request)
    return request
  } catch (error) {
    if (!(error instanceof DerError)) throw error
    throw new CertificateRequestError(`the certificate request cannot be read: ${error.message}`, { cause: error })
  }
}

const [BEGIN, END] = ['-----BEGIN CERTIFICATE REQUEST-----', '-----END CERTIFICATE REQUEST-----']
const ONE_BLOCK = new RegExp(`(?:^|\\n)${BEGIN}\\r?\\n((?:[A-Za-z0-9+/]+={0,2}\\r?\\n)+)${END}\\s*$`)

/** Who signs may look for another block than we do, so there is one, in the form that every reader takes for one. */
function onlyBlock(text: string): Buffer {
  const begin = text.indexOf('-----BEGIN ')
  const body = ONE_BLOCK.exec(text)?.[1]?.replace(/[\r\n]/g, '') ?? ''
  if (begin < 0 || !text.startsWith(BEGIN, begin) || !text.includes(END, begin))
    throw new CertificateRequestError('PEM block type must be CERTIFICATE REQUEST')
  const der = Buffer.from(body, 'base64')
  // Words may stand before it, as openssl -text has them, and no dashes.
  if (body === '' || der.toString('base64') !== body || text.split('-----').length !== 5)
    throw new CertificateRequestError(
      'the certificate request must be one PEM block, its first and last line and each line of base64 by itself, with nothing behind it',
    )
  return der
}

function read(der: Buffer): CertificateRequest {
  const [info, algorithm, signature, ...more] = elementsOf(only(der, TAG.sequence).content)
  const signed = expectTag(info, TAG.sequence)
  if (more.length > 0) throw new DerError('something stands behind the signature')
  const [version, subject, key, attributes, ...rest] = elementsOf(signed.content)
  if (!expectTag(version, TAG.integer).content.equals(Buffer.of(0)) || rest.length > 0)
    throw new DerError('it is not of version 1')
  const spki = Buffer.from(expectTag(key, TAG.sequence).whole)
  const publicKey = readKey(spki)
  const request = {
    subject: readName(expectTag(subject, TAG.sequence)),
    extensions: attributes ? readExtensions(expectTag(attributes, TAG.zero)) : [],
    publicKey,
    spki,
    keySha256: createHash('sha256').update(spki).digest('hex'),
  }
  const [oid] = elementsOf(expectTag(algorithm, TAG.sequence).content)
  const by = oidText(expectTag(oid, TAG.oid).content)
  checkSignature(publicKey, by, signed.whole, wholeBytes(expectTag(signature, TAG.bitString)))
  return request
}

function readKey(spki: Buffer): KeyObject {
  try {
    return createPublicKey({ key: spki, format: 'der', type: 'spki' })
  } catch (error) {
    throw new CertificateRequestError('the certificate request holds no public key that can be read', { cause: error })
  }
}

function readName(name: DerElement): NameWord[] {
  return elementsOf(name.content).flatMap((set) =>
    elementsOf(expectTag(set, TAG.set).content).map((word) => {
      const [oid, value, ...more] = elementsOf(expectTag(word, TAG.sequence).content)
      if (!value || more.length > 0) throw new DerError('a word of the name has no value')
      return { oid: oidText(expectTag(oid, TAG.oid).content), value: stringOf(value) }
    }),
  )
}

function readExtensions(attributes: DerElement): string[] {
  return elementsOf(attributes.content).flatMap((attribute) => {
    const [oid, values] = elementsOf(expectTag(attribute, TAG.sequence).content)
    if (!EXTENSION_REQUESTS.includes(oidText(expectTag(oid, TAG.oid).content))) return []
    return elementsOf(expectTag(values, TAG.set).content)
      .flatMap((list) => elementsOf(expectTag(list, TAG.sequence).content))
      .map((extension) => {
        const [id] = elementsOf(expectTag(extension, TAG.sequence).content)
        return oidText(expectTag(id, TAG.oid).content)
      })
  })
}

function checkSignature(publicKey: KeyObject, algorithm: string, signed: Buffer, signature: Buffer): void {
  const [type, digest] = SIGNATURES[algorithm] ?? []
  if (type === undefined || digest === undefined)
    throw new CertificateRequestError(
      `the certificate request is signed by an algorithm that is not taken here (${algorithm}): use ECDSA, RSA or Ed25519 with SHA-256 or better`,
    )
  if (type !== publicKey.asymmetricKeyType || !isSignedBy(publicKey, digest, signed, signature))
    throw new CertificateRequestError('the certificate request is not signed with the key it names')
}

function isSignedBy(publicKey: KeyObject, digest: string | null, signed: Buffer, signature: Buffer): boolean {
  try {
    return verify(digest, signed, publicKey, signature)
  } catch {
    return false // OpenSSL throws on keys and signatures of impossible sizes
  }
}
