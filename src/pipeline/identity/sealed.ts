import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'
import { deflateRawSync, inflateRawSync } from 'node:zlib'
import { minutes } from '#model'
import { UnsafeConfigurationError } from './errors.ts'

/** What a sealed text is for; one for another purpose does not open. */
export type Purpose = 'session' | 'sign-in' | 'view-as' | 'id-token'

export interface Seal {
  seal(purpose: Purpose, value: object): string
  /** undefined: not sealed by us for this purpose, or changed since. Times inside are the caller's to check. */
  open(purpose: Purpose, text: string): unknown
}

/** What the clocks of replicas may differ by: a document may seem to be from the future by as much. */
export const clockSkewMs = minutes(1)

const ivBytes = 12
const tagBytes = 16
const maxOpenedBytes = 256 * 1024

/**
 * Small documents handed to a browser for keeping: AES-256-GCM, one key per purpose, derived from the secret (HKDF).
 * @param secret 32 bytes or more, the same on every replica; absent: random, so that nothing sealed outlives the process
 */
export function sealer(secret: string | undefined): Seal {
  if (secret !== undefined && Buffer.byteLength(secret) < 32)
    throw new UnsafeConfigurationError('SESSION_SECRET needs at least 32 bytes')
  const root = secret === undefined ? randomBytes(32) : Buffer.from(secret)
  const keys = new Map<Purpose, Buffer>()
  const keyFor = (purpose: Purpose): Buffer => {
    const key = keys.get(purpose) ?? Buffer.from(hkdfSync('sha256', root, 'clusterpulse', `cookie ${purpose}`, 32))
    keys.set(purpose, key)
    return key
  }
  return {
    seal(purpose, value) {
      const iv = randomBytes(ivBytes)
      const cipher = createCipheriv('aes-256-gcm', keyFor(purpose), iv)
      const content = deflateRawSync(JSON.stringify(value))
      return Buffer.concat([iv, cipher.update(content), cipher.final(), cipher.getAuthTag()]).toString('base64url')
    },
    open(purpose, text) {
      const bytes = Buffer.from(text, 'base64url')
      // The last characters of base64 may be written in several ways: only ours counts.
      if (bytes.length < ivBytes + tagBytes || bytes.toString('base64url') !== text) return undefined
      try {
        const decipher = createDecipheriv('aes-256-gcm', keyFor(purpose), bytes.subarray(0, ivBytes))
        decipher.setAuthTag(bytes.subarray(-tagBytes))
        const content = Buffer.concat([decipher.update(bytes.subarray(ivBytes, -tagBytes)), decipher.final()])
        return JSON.parse(inflateRawSync(content, { maxOutputLength: maxOpenedBytes }).toString())
      } catch {
        // Wrong key, wrong purpose or changed: to the caller all the same.
        return undefined
      }
    },
  }
}
