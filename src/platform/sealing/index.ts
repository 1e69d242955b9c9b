/**
 * Secrets at rest: what is kept on a disk is sealed with a data key (AES-256-GCM), and that key is kept beside it, wrapped by a
 * key-encryption key that is not.
 *
 *   KeyProvider  wraps and unwraps data keys: keys of a setting or a file here, a KMS or a vault later
 *   Sealer       seals bytes for one place (kind, namespace, name) and opens them there again, and nowhere else
 *
 * What is sealed holds all that is needed to open it but the key-encryption key. With a new one at hand, what former keys sealed
 * still opens; whoever keeps it seals it anew at the start (`isCurrent`), and `unneededKeyIds` says which keys may go then.
 */
export { SealBrokenError, UnknownKeyError } from './errors.ts'
export { keptKeys } from './kept-keys.ts'
export type { KeyProvider } from './key-provider.ts'
export { localKeys, parseKeys } from './local-keys.ts'
export { createSealer, isSealed, type SealedPlace, type Sealer, wrappingKeyOf } from './sealer.ts'
