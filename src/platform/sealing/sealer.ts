import { createSecretKey, type KeyObject, randomBytes } from 'node:crypto'
import { decrypt, encrypt } from './aead.ts'
import { SealBrokenError, UnknownKeyError } from './errors.ts'
import type { KeyProvider } from './key-provider.ts'
import { KEY_BYTES } from './local-keys.ts'

/** Whose bytes they are. What is sealed for one place opens at no other. */
export interface SealedPlace {
  readonly kind: string
  readonly namespace?: string
  readonly name: string
}

/** Seals what is kept at rest, and opens it again. One per process: it remembers data keys, and which former keys are needed. */
export interface Sealer {
  /** of the key-encryption key in force */
  readonly keyId: string
  /** of all keys at hand */
  keyIds(): readonly string[]
  seal(text: Uint8Array, place: SealedPlace): Promise<Buffer>
  /**
   * @throws UnknownKeyError where its key is not at hand; SealBrokenError where a byte of it was changed, it was sealed for another
   * place, or it is not sealed at all
   */
  open(sealed: Uint8Array, place: SealedPlace): Promise<Buffer>
  /** Whether the key in force seals it. What a former one sealed is sealed anew by who keeps it. */
  isCurrent(sealed: Uint8Array): boolean
  /** What is sealed from now on gets a data key of its own. */
  renewDataKey(): void
  /** Former keys at hand that seal nothing any more of what was opened. Asked when all that is kept was opened. */
  unneededKeyIds(): readonly string[]
}

/*
 * magic │ length, id of the key-encryption key │ length, wrapped data key │ nonce, text, tag
 *   4   │   1                                  │   2                      │  12          16
 */
const MAGIC = Buffer.from('CPS1')
/** People read it. */
const KEY_ID = /^[!-~]{1,255}$/
/** Far below what random nonces allow with one key. */
const MAX_SEALS = 2 ** 28
/** data keys that are remembered when opened: one per journal's snapshot, and what else is kept */
const MAX_OPENED = 1_000

/** Whether bytes look sealed; says nothing of what they are worth. */
export const isSealed = (bytes: Uint8Array): boolean => MAGIC.equals(bytes.subarray(0, MAGIC.length))

interface Envelope {
  readonly keyId: string
  readonly wrapped: Buffer
  readonly sealed: Buffer
}

/** @returns undefined where it is none */
function parseEnvelope(bytes: Uint8Array): Envelope | undefined {
  if (!isSealed(bytes)) return undefined
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
  const idEnd = MAGIC.length + 1 + (buffer[MAGIC.length] ?? 0)
  if (buffer.length < idEnd + 2) return undefined
  const wrappedEnd = idEnd + 2 + buffer.readUInt16BE(idEnd)
  const keyId = buffer.toString('latin1', MAGIC.length + 1, idEnd)
  if (buffer.length < wrappedEnd || !KEY_ID.test(keyId)) return undefined
  return {
    keyId,
    wrapped: buffer.subarray(idEnd + 2, wrappedEnd),
    sealed: buffer.subarray(wrappedEnd),
  }
}

function headOf(keyId: string, wrapped: Uint8Array): Buffer {
  const id = Buffer.from(keyId, 'latin1')
  const length = Buffer.alloc(2)
  length.writeUInt16BE(wrapped.length)
  return Buffer.concat([MAGIC, Buffer.of(id.length), id, length, wrapped])
}

/** @returns id of the key-encryption key it needs; undefined where it is not sealed, or cut off */
export const wrappingKeyOf = (bytes: Uint8Array): string | undefined => parseEnvelope(bytes)?.keyId

const bytesOf = ({ kind, namespace = '', name }: SealedPlace): Buffer =>
  Buffer.from(JSON.stringify(['clusterpulse sealed', kind, namespace, name]))

const wordsOf = ({ kind, namespace, name }: SealedPlace): string =>
  `${kind} ${namespace === undefined ? '' : `${namespace}/`}${name}`

export const createSealer = (keys: KeyProvider): Sealer => new EnvelopeSealer(keys)

interface DataKey {
  readonly key: KeyObject
  readonly head: Buffer
}

class EnvelopeSealer implements Sealer {
  readonly #keys: KeyProvider
  readonly #opened = new Map<string, Promise<KeyObject>>()
  /** places that were opened with a former key, and which */
  readonly #former = new Map<string, string>()
  #dataKey: Promise<DataKey> | undefined
  #seals = 0

  constructor(keys: KeyProvider) {
    this.#keys = keys
  }

  get keyId(): string {
    return this.#keys.id
  }

  keyIds(): readonly string[] {
    return this.#keys.ids()
  }

  async seal(text: Uint8Array, place: SealedPlace): Promise<Buffer> {
    if (++this.#seals > MAX_SEALS) this.renewDataKey()
    const { key, head } = await this.#currentDataKey()
    const bound = bytesOf(place)
    this.#former.delete(bound.toString())
    return Buffer.concat([head, ...encrypt(key, text, bound)])
  }

  async open(bytes: Uint8Array, place: SealedPlace): Promise<Buffer> {
    const envelope = parseEnvelope(bytes)
    if (!envelope) throw new SealBrokenError(wordsOf(place), 'it is not sealed, or cut off')
    const key = await this.#unwrapped(envelope).catch((error: unknown) => {
      if (!(error instanceof UnknownKeyError)) throw error
      throw new UnknownKeyError(error.keyId, error.known, wordsOf(place))
    })
    const bound = bytesOf(place)
    const text = decrypt(key, envelope.sealed, bound)
    if (!text)
      throw new SealBrokenError(wordsOf(place), 'it was changed since it was sealed, or sealed for another place')
    if (envelope.keyId !== this.#keys.id) this.#former.set(bound.toString(), envelope.keyId)
    return text
  }

  isCurrent(bytes: Uint8Array): boolean {
    return wrappingKeyOf(bytes) === this.#keys.id
  }

  renewDataKey(): void {
    this.#dataKey = undefined
    this.#seals = 0
  }

  unneededKeyIds(): readonly string[] {
    const needed = new Set([this.#keys.id, ...this.#former.values()])
    return this.#keys.ids().filter((id) => !needed.has(id))
  }

  /** Made when it is first needed: a provider that makes its own key does so only then. */
  #currentDataKey(): Promise<DataKey> {
    if (this.#dataKey) return this.#dataKey
    const making = this.#newDataKey()
    this.#dataKey = making
    // Whoever waits hears of the failure; the next one tries again.
    making.catch(() => {
      if (this.#dataKey === making) this.#dataKey = undefined
    })
    return making
  }

  async #newDataKey(): Promise<DataKey> {
    const bytes = randomBytes(KEY_BYTES)
    const wrapped = await this.#keys.wrap(bytes)
    return { key: createSecretKey(bytes), head: headOf(this.#keys.id, wrapped) }
  }

  #unwrapped({ keyId, wrapped }: Envelope): Promise<KeyObject> {
    const name = `${keyId} ${wrapped.toString('base64')}`
    const known = this.#opened.get(name)
    if (known) return known
    const opening = this.#keys.unwrap(wrapped, keyId).then((bytes) => {
      if (bytes.length !== KEY_BYTES) throw new SealBrokenError('a data key', `it has ${bytes.length} bytes`)
      return createSecretKey(bytes)
    })
    const [oldest] = this.#opened.keys()
    if (this.#opened.size >= MAX_OPENED && oldest !== undefined) this.#opened.delete(oldest)
    this.#opened.set(name, opening)
    opening.catch(() => this.#opened.delete(name)) // a KMS may answer the next time
    return opening
  }
}
