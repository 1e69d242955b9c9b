/**
 * Whoever holds key-encryption keys and never gives them away: this process with keys of a file (`localKeys`), or a KMS. A data
 * key is wrapped once and unwrapped once per process, so a slow one costs the start, not each write.
 */
export interface KeyProvider {
  /** names the key that wraps from now on; up to 255 characters of ASCII, shown to people, no secret */
  readonly id: string
  /** of all keys at hand, as far as known */
  ids(): readonly string[]
  /** @returns what only `unwrap` with this id turns back; at most 64 KiB */
  wrap(dataKey: Uint8Array): Promise<Uint8Array>
  /** @throws UnknownKeyError where no key of this id is at hand, SealBrokenError where it is not what was wrapped */
  unwrap(wrapped: Uint8Array, id: string): Promise<Uint8Array>
}
