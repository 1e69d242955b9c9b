import { isUtf8 } from 'node:buffer'
import { createHash } from 'node:crypto'
import { MISSING, type Redis, redisUnavailable, sealFault } from '#redis'
import { PoliciesUnavailableError } from './errors.ts'
import { ALL, DIGEST, GENERATION, keyOfHash, SEAL_SCRIPTS } from './redis-layout.ts'
import type { PolicyGeneration, StoredPolicy } from './types.ts'

/** Makes a policy of its stored text; never throws. */
export type ReadPolicy = (key: string, text: string) => StoredPolicy

/** The policies of one moment, and by what a later look tells whether they are still the same. */
export interface Loaded {
  /** of our writers; undefined: only another writer was here */
  readonly counter: string | undefined
  /** over all keys and documents */
  readonly digest: string
  readonly generation: PolicyGeneration
}

interface Held {
  readonly sha1: string
  readonly policy: StoredPolicy
}

/** Redis answers, but does not hold what our manager wrote: nothing yet, less, or something else. Writing all again mends it. */
export class PoliciesBrokenError extends PoliciesUnavailableError {}

// A Deny that is lost there leaves no trace.
const UNCOUNTED =
  'another manager than ours wrote them, so nothing proves that they are complete: key policies:generation is missing'

const MENDS = `; a running manager of this version writes them again within seconds (key ${DIGEST})`
const FOREIGN = `${MENDS}; where an original manager writes by now, delete ${GENERATION} and ${DIGEST}`

/** Documents asked for at once. */
const PAGE = 200
/** Looks before a store that keeps changing counts as unavailable. */
const ATTEMPTS = 10

/**
 * Reads all policies of one moment: first which there are and the digest of each, in one step of the server; then the
 * documents whose digest is new. A document that does not match its digest was written in between: all is looked at again.
 */
export class RedisPolicyReader {
  readonly #redis: Redis
  readonly #read: ReadPolicy
  readonly #takesUncounted: boolean
  #held = new Map<string, Held>()
  #loaded: Loaded | undefined

  /** @param takesUncounted also policies of a writer that counts no generations */
  constructor(redis: Redis, read: ReadPolicy, takesUncounted: boolean) {
    this.#redis = redis
    this.#read = read
    this.#takesUncounted = takesUncounted
  }

  /** what was loaded last */
  get loaded(): Loaded | undefined {
    return this.#loaded
  }

  /** digest of each document loaded, by the name of its hash */
  get digests(): ReadonlyMap<string, { readonly sha1: string }> {
    return this.#held
  }

  /** The counter of our writers; they raise it with every change. @throws PoliciesUnavailableError */
  async counter(): Promise<string | undefined> {
    const [counter] = await this.#ask([['get', GENERATION]])
    return typeof counter === 'string' ? counter : undefined
  }

  /** Not twice at once. @throws PoliciesUnavailableError; `loaded` stays what it was */
  async load(): Promise<Loaded> {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const loaded = await this.#look()
      if (loaded) return loaded
    }
    throw new PoliciesUnavailableError('they change faster than they can be read')
  }

  async #look(): Promise<Loaded | undefined> {
    const known = this.#loaded
    const [answer] = await this.#ask([['eval', SEAL_SCRIPTS.look, 3, ALL, GENERATION, DIGEST, known?.digest ?? '']])
    const [counter, seal, digest, count, ...list] = answer as [
      string | null,
      string | null,
      string,
      number,
      ...string[],
    ]
    if (counter !== null) {
      const fault = sealFault(seal ?? undefined, { generation: counter, count, digest })
      if (fault !== undefined) throw new PoliciesBrokenError(`${fault}${this.#takesUncounted ? FOREIGN : MENDS}`)
    } else if (count === 0 && seal === null) {
      throw new PoliciesBrokenError('Redis holds none: they were not written yet')
    } else if (seal !== null || !this.#takesUncounted) throw new PoliciesBrokenError(UNCOUNTED)
    const moment = { counter: counter ?? undefined, digest }
    if (known?.digest === digest) {
      this.#loaded = { ...moment, generation: known.generation }
      return this.#loaded
    }
    const held = await this.#fetch(list)
    if (!held) return undefined
    const policies = [...held.values()].map(({ policy }) => policy).sort((a, b) => (a.key < b.key ? -1 : 1))
    this.#held = held
    this.#loaded = { ...moment, generation: { generation: digest, policies } }
    return this.#loaded
  }

  /** @returns undefined where a document is another one by now */
  async #fetch(list: readonly string[]): Promise<Map<string, Held> | undefined> {
    const held = new Map<string, Held>()
    const lacking: { hash: string; sha1: string }[] = []
    for (let i = 0; i < list.length; i += 2) {
      const [hash = '', sha1 = ''] = [list[i], list[i + 1]]
      const known = this.#held.get(hash)
      if (known?.sha1 === sha1) held.set(hash, known)
      // It counts as one that cannot be read.
      else if (sha1 === MISSING) held.set(hash, { sha1, policy: this.#read(keyOfHash(hash), '') })
      else lacking.push({ hash, sha1 })
    }
    for (let from = 0; from < lacking.length; from += PAGE) {
      const page = lacking.slice(from, from + PAGE)
      const texts = await this.#ask(page.map(({ hash }) => ['hgetBuffer', hash, 'data']))
      for (const [i, { hash, sha1 }] of page.entries()) {
        const bytes = texts[i]
        if (!Buffer.isBuffer(bytes) || createHash('sha1').update(bytes).digest('hex') !== sha1) return undefined
        held.set(hash, { sha1, policy: this.#read(keyOfHash(hash), textOf(bytes)) })
      }
    }
    return held
  }

  async #ask(commands: (string | number)[][]): Promise<unknown[]> {
    try {
      const results = await this.#redis.pipeline(commands).exec()
      return (results ?? []).map(([error, value]) => {
        if (error) throw error
        return value
      })
    } catch (error) {
      const { message } = redisUnavailable(error)
      const isBroken = message.includes('WRONGTYPE')
      throw new (isBroken ? PoliciesBrokenError : PoliciesUnavailableError)(message, { cause: error })
    }
  }
}

/** The text, or '' where it is none: a name with a broken character would match nothing, and a Deny would open. */
function textOf(bytes: Buffer): string {
  return isUtf8(bytes) ? bytes.toString('utf8') : ''
}
