import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'

/** Where a stream stands: a place on the bus, and the mark of the subscription and access view that were told of it. */
export interface StreamPlace {
  readonly place: string
  readonly mark: string
}

const nonceBytes = 12
const tagBytes = 16
/** Ids are as long as each other, so that not even the number of digits is seen. */
const plainBytes = 96

/**
 * Ids of stream messages, sealed by a key that all processes of a hub have. A number would count what moves in all of the fleet, of which its
 * reader may see a part; a sealed place says nothing and cannot be made up.
 */
export class StreamIds {
  readonly #key: Buffer

  /** @param secret absent: a key of this process, and no other opens its ids */
  constructor(secret?: string) {
    this.#key =
      secret === undefined ? randomBytes(32) : Buffer.from(hkdfSync('sha256', secret, 'clusterpulse', 'stream ids', 32))
  }

  seal({ place, mark }: StreamPlace): string {
    const nonce = randomBytes(nonceBytes)
    const cipher = createCipheriv('aes-256-gcm', this.#key, nonce)
    const text = JSON.stringify([place, mark])
    const sealed = [nonce, cipher.update(text.padEnd(Math.ceil(text.length / plainBytes) * plainBytes)), cipher.final()]
    return Buffer.concat([...sealed, cipher.getAuthTag()]).toString('base64url')
  }

  /** undefined for any text that was not sealed here */
  open(id: string): StreamPlace | undefined {
    const bytes = Buffer.from(id, 'base64url')
    if (bytes.length < nonceBytes + tagBytes) return undefined
    const decipher = createDecipheriv('aes-256-gcm', this.#key, bytes.subarray(0, nonceBytes), {
      authTagLength: tagBytes,
    })
    decipher.setAuthTag(bytes.subarray(-tagBytes))
    try {
      const text = Buffer.concat([decipher.update(bytes.subarray(nonceBytes, -tagBytes)), decipher.final()])
      const [place = '', mark = ''] = JSON.parse(text.toString()) as readonly string[] // nobody else can seal
      return { place, mark }
    } catch (error) {
      if (error instanceof Error) return undefined // sealed by another hub, or by nobody
      throw error
    }
  }
}
