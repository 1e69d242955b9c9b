import { type KeyObject, sign as signWithCallback } from 'node:crypto'
import { promisify } from 'node:util'
import { element, TAG } from './der.ts'

/*
 * A certificate (RFC 5280) that is no CA's, written by hand: every join waits for one, and a library that describes ASN.1 by classes takes
 * ten times as long over it. What varies is listed in `Leaf`; extensions come as they were encoded once.
 */

/** What of a CA a certificate carries, and the key that signs it. */
export interface Signer {
  readonly key: KeyObject
  /** the CA's subject as it stands in its certificate, DER */
  readonly issuer: Uint8Array
}

/** What is written into a certificate, in this order. */
export interface Leaf {
  /** sixteen bytes, hex; the first bit is 0 */
  readonly serial: string
  readonly notBeforeMs: number
  readonly notAfterMs: number
  readonly subject: readonly SubjectWord[]
  /** SubjectPublicKeyInfo, DER */
  readonly spki: Uint8Array
  /** each an Extension, DER */
  readonly extensions: readonly Uint8Array[]
}

export interface SubjectWord {
  readonly type: 'O' | 'CN'
  readonly value: string
}

const sign = promisify(signWithCallback)

/** Object identifiers of the words of a subject, as elements. */
const WORDS = { O: Buffer.from('060355040a', 'hex'), CN: Buffer.from('0603550403', 'hex') }
const VERSION_3 = Buffer.from('a003020102', 'hex')

/** How a CA signs: the digest, and the AlgorithmIdentifier. By `sortOfKey`. */
const ALGORITHMS: Readonly<Record<string, { readonly digest: string; readonly identifier: Buffer }>> = {
  prime256v1: { digest: 'sha256', identifier: Buffer.from('300a06082a8648ce3d040302', 'hex') },
  secp384r1: { digest: 'sha384', identifier: Buffer.from('300a06082a8648ce3d040303', 'hex') },
  rsa: { digest: 'sha256', identifier: Buffer.from('300d06092a864886f70d01010b0500', 'hex') },
}

const sortOfKey = (key: KeyObject): string =>
  key.asymmetricKeyType === 'rsa' ? 'rsa' : (key.asymmetricKeyDetails?.namedCurve ?? '')

/** Whether certificates can be signed with a key of this sort. */
export const canSign = (key: KeyObject): boolean => Object.hasOwn(ALGORITHMS, sortOfKey(key))

/** @returns DER */
export async function signLeaf({ key, issuer }: Signer, leaf: Leaf): Promise<Buffer> {
  const algorithm = ALGORITHMS[sortOfKey(key)]
  if (!algorithm) throw new Error('no key of a CA') // `canSign` was asked where it was read
  const info = element(
    TAG.sequence,
    VERSION_3,
    element(TAG.integer, Buffer.from(leaf.serial, 'hex')),
    algorithm.identifier,
    issuer,
    element(TAG.sequence, timeOf(leaf.notBeforeMs), timeOf(leaf.notAfterMs)),
    element(TAG.sequence, ...leaf.subject.map(wordOf)),
    leaf.spki,
    element(TAG.three, element(TAG.sequence, ...leaf.extensions)),
  )
  const signature = await sign(algorithm.digest, info, key)
  return element(TAG.sequence, info, algorithm.identifier, element(TAG.bitString, Buffer.of(0), signature))
}

const wordOf = ({ type, value }: SubjectWord): Buffer =>
  element(TAG.set, element(TAG.sequence, WORDS[type], element(TAG.utf8, Buffer.from(value))))

/** Whole seconds; years from 2050 on are written with four digits (RFC 5280, 4.1.2.5). */
function timeOf(ms: number): Buffer {
  const digits = new Date(ms).toISOString().slice(0, 19).replace(/\D/g, '')
  const year = Number(digits.slice(0, 4))
  return year >= 1950 && year < 2050
    ? element(TAG.utcTime, Buffer.from(`${digits.slice(2)}Z`))
    : element(TAG.generalizedTime, Buffer.from(`${digits}Z`))
}
