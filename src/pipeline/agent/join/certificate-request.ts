import { createHash, createPrivateKey, createPublicKey, generateKeyPairSync, sign } from 'node:crypto'

/*
 * PKCS#10 (RFC 2986) as far as a member needs it: one organisation, one common name, a key on P-256, nothing else. Written by hand: the
 * agent carries no library of certificates for these thirty lines.
 */

/** A key that stays here, PEM. */
export function newKey(): string {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
}

/** Asks for the certificate of one agent of one cluster, in DER. */
export function certificateRequest(key: string, { cluster, agent }: { cluster: string; agent: string }): Buffer {
  const group = `system:open-cluster-management:${cluster}`
  const name = sequence(word(ORGANIZATION, group), word(COMMON_NAME, `${group}:${agent}`))
  const info = sequence(element(0x02, Buffer.of(0)), name, publicKeyOf(key), element(0xa0))
  const signature = sign('sha256', info, createPrivateKey(key))
  return sequence(info, sequence(ECDSA_WITH_SHA256), element(0x03, Buffer.of(0), signature))
}

/** The key of a certificate of before says yes to a request for the next one. */
export const proofOf = (key: string, request: Uint8Array): Buffer => sign('sha256', request, createPrivateKey(key))

/** SHA-256 of the public key, hex: what people on the hub compare. */
export const keyId = (key: string): string => createHash('sha256').update(publicKeyOf(key)).digest('hex')

/** SubjectPublicKeyInfo, DER. @param key private or public, PEM */
export const publicKeyOf = (key: string): Buffer => createPublicKey(key).export({ type: 'spki', format: 'der' })

const ORGANIZATION = Buffer.from('060355040a', 'hex')
const COMMON_NAME = Buffer.from('0603550403', 'hex')
const ECDSA_WITH_SHA256 = Buffer.from('06082a8648ce3d040302', 'hex')

const word = (oid: Buffer, value: string) => element(0x31, sequence(oid, element(0x0c, Buffer.from(value))))
const sequence = (...parts: readonly Uint8Array[]) => element(0x30, ...parts)

/** One element of DER: its tag, its length, its content. */
function element(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(parts)
  const { length } = content
  const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff]
  return Buffer.concat([Buffer.of(tag, ...size), content])
}
