import { createCipheriv, createDecipheriv, type KeyObject, randomBytes } from 'node:crypto'

const NONCE_BYTES = 12
const TAG_BYTES = 16
const ALGORITHM = 'aes-256-gcm'

/** AES-256-GCM: nonce, text, tag. The nonce is random, so one key is good for 2^32 texts. */
export function encrypt(key: KeyObject, text: Uint8Array, associated: Uint8Array): Buffer[] {
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv(ALGORITHM, key, nonce, { authTagLength: TAG_BYTES }).setAAD(associated)
  return [nonce, cipher.update(text), cipher.final(), cipher.getAuthTag()]
}

/** @returns undefined where key, associated bytes or any byte of it are not those of `encrypt` */
export function decrypt(key: KeyObject, sealed: Buffer, associated: Uint8Array): Buffer | undefined {
  if (sealed.length < NONCE_BYTES + TAG_BYTES) return undefined
  const nonce = sealed.subarray(0, NONCE_BYTES)
  const decipher = createDecipheriv(ALGORITHM, key, nonce, { authTagLength: TAG_BYTES }).setAAD(associated)
  decipher.setAuthTag(sealed.subarray(-TAG_BYTES))
  const text = decipher.update(sealed.subarray(NONCE_BYTES, -TAG_BYTES))
  try {
    return Buffer.concat([text, decipher.final()])
  } catch {
    return undefined // the one way in which it says that the tag is wrong
  }
}
