import { createHash, createSecretKey, type KeyObject } from 'node:crypto'
import { invariant } from '#model'
import { decrypt, encrypt } from './aead.ts'
import { SealBrokenError, UnknownKeyError } from './errors.ts'
import type { KeyProvider } from './key-provider.ts'

export const KEY_BYTES = 32

/** Names a key without telling anything of it. */
export const keyId = (key: Uint8Array): string =>
  createHash('sha256').update('clusterpulse key-encryption key\n').update(key).digest('hex').slice(0, 16)

/** @returns undefined where the text is no key: 32 bytes in base64, base64url or hex */
export function parseKey(text: string): Buffer | undefined {
  const isHex = /^[0-9a-f]{64}$/i.test(text)
  if (!isHex && !/^[\w+/-]{43}=?$/.test(text)) return undefined
  const key = Buffer.from(text, isHex ? 'hex' : 'base64')
  // A word repeated until it is long enough, or zeros, are no random bytes.
  return key.length === KEY_BYTES && new Set(key).size > 12 ? key : undefined
}

/**
 * Keys of a setting, the one in force first: one a line, or separated by commas.
 * @returns undefined where any of them is no key, or none is there
 */
export function parseKeys(text: string): readonly Buffer[] | undefined {
  const keys = text
    .split(/[\s,]+/)
    .filter((part) => part !== '')
    .map(parseKey)
  return keys.length > 0 && keys.every((key) => key !== undefined) ? keys : undefined
}

/** Keys that this process holds. @param keys 32 bytes each: the first wraps, all unwrap */
export function localKeys(keys: readonly Uint8Array[]): KeyProvider {
  const byId = new Map<string, KeyObject>()
  for (const key of keys) {
    invariant(key.length === KEY_BYTES, 'a key-encryption key has 32 bytes')
    byId.set(keyId(key), createSecretKey(key))
  }
  const [id] = byId.keys()
  invariant(id !== undefined, 'there is at least one key')
  return {
    id,
    ids: () => [...byId.keys()],
    async wrap(dataKey) {
      return Buffer.concat(encrypt(keyOf(id), dataKey, boundTo(id)))
    },
    async unwrap(wrapped, wanted) {
      const dataKey = decrypt(keyOf(wanted), Buffer.from(wrapped), boundTo(wanted))
      if (!dataKey) throw new SealBrokenError('a data key', `it is not what the key ${wanted} wrapped`)
      return dataKey
    },
  }

  function keyOf(wanted: string): KeyObject {
    const key = byId.get(wanted)
    if (!key) throw new UnknownKeyError(wanted, [...byId.keys()])
    return key
  }
}

const boundTo = (id: string): Buffer => Buffer.from(`clusterpulse data key of ${id}`)
