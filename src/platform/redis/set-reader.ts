import { isUtf8 } from 'node:buffer'
import { StoreUnavailableError } from '#model'
import { pipelined, type Redis, redisUnavailable } from './redis.ts'
import { MISSING, sealFault, sealScripts, sha1 } from './seal.ts'
import { pages } from './set-contents.ts'
import type { SetLayout } from './set-layout.ts'

/** One document, as it was read. */
export interface Held<T> {
  readonly sha1: string
  readonly value: T
}

/** The documents of one moment. */
export interface Loaded<T> {
  /** undefined: another writer than ours was here, which counts no generations */
  readonly generation: string | undefined
  /** over all names and documents */
  readonly digest: string
  /** by name; the very same map as long as the digest is the same */
  readonly documents: ReadonlyMap<string, Held<T>>
}

/**
 * Makes a value of the text of a document, and never throws.
 * @param text undefined: it is listed and not there, or no UTF-8
 * @param known what was made of an earlier text
 */
export type ReadDocument<T> = (name: string, text: string | undefined, known: T | undefined) => T

/**
 * What another manager than ours wrote, without a seal: nothing proves that it is complete. `taken-if-any`: taken, but none is
 * not told from a Redis that lost them.
 */
export type Unsealed = 'refused' | 'taken' | 'taken-if-any'

/** Redis answers, but does not hold what our manager wrote: nothing yet, less, or something else. Writing all again mends it. */
export class SetBrokenError extends StoreUnavailableError {}

/** Documents asked for at once. */
const PAGE = 200
/** Looks before a store that keeps changing counts as unavailable. */
const ATTEMPTS = 10

/**
 * Reads all documents of one moment: first which there are and the digest of each, in one step of the server; then those whose
 * digest is new. A document that does not match its digest was written in between: all is looked at again.
 */
export class SetReader<T> {
  readonly #redis: Redis
  readonly #layout: SetLayout
  readonly #read: ReadDocument<T>
  readonly #unsealed: Unsealed
  readonly #script: string
  #loaded: Loaded<T> | undefined
  #newest = 0

  constructor(redis: Redis, layout: SetLayout, read: ReadDocument<T>, unsealed: Unsealed) {
    this.#redis = redis
    this.#layout = layout
    this.#read = read
    this.#unsealed = unsealed
    this.#script = sealScripts(layout.script).look
  }

  /** what was loaded last */
  get loaded(): Loaded<T> | undefined {
    return this.#loaded
  }

  /** The highest generation that was read; 0: none. A lower one is a moment of the past, as of a dump that was put back. */
  get newest(): number {
    return this.#newest
  }

  /** Our writers raise it with every change. @throws StoreUnavailableError */
  async generation(): Promise<string | undefined> {
    const [generation] = await pipelined(this.#redis, [['GET', this.#layout.generation]])
    return typeof generation === 'string' ? generation : undefined
  }

  /** Not twice at once. @throws StoreUnavailableError, SetBrokenError; `loaded` stays what it was */
  async load(): Promise<Loaded<T>> {
    try {
      for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
        const loaded = await this.#look()
        if (loaded) return loaded
      }
    } catch (error) {
      const failure = redisUnavailable(error)
      // A key is something else than it should be.
      throw failure.reason.includes('WRONGTYPE') ? new SetBrokenError('Redis', failure.reason) : failure
    }
    throw new StoreUnavailableError('Redis', `the ${this.#layout.what} change faster than they can be read`)
  }

  /** @returns undefined where something was written in between */
  async #look(): Promise<Loaded<T> | undefined> {
    const known = this.#loaded
    const { members, generation: generationKey, seal: sealKey } = this.#layout
    const [answer] = await pipelined(this.#redis, [
      ['EVAL', this.#script, 3, members, generationKey, sealKey, known?.digest ?? ''],
    ])
    const [generation, seal, digest, count, ...list] = answer as [
      string | null,
      string | null,
      string,
      number,
      ...string[],
    ]
    const fault = this.#fault(generation, seal, { count, digest })
    if (fault !== undefined) throw new SetBrokenError('Redis', fault)
    const documents = known?.digest === digest ? known.documents : await this.#fetch(list)
    if (!documents) return undefined
    this.#loaded = { generation: generation ?? undefined, digest, documents }
    this.#newest = Math.max(this.#newest, Number(generation) || 0)
    return this.#loaded
  }

  #fault(
    generation: string | null,
    seal: string | null,
    found: { readonly count: number; readonly digest: string },
  ): string | undefined {
    const { what, generation: generationKey, seal: sealKey } = this.#layout
    const takesUnsealed = this.#unsealed === 'taken' || (this.#unsealed === 'taken-if-any' && found.count > 0)
    if (generation === null && seal === null && takesUnsealed) return undefined
    if (generation === null)
      return `it holds no ${what} of a manager of this version: they were not written yet, or ${generationKey} is missing, and nothing proves that others are complete`
    const fault = sealFault(seal ?? undefined, { generation, ...found }) ?? this.#isOlder(generation)
    if (fault === undefined) return undefined
    const foreign = `; where an original manager writes by now, delete ${generationKey} and ${sealKey}`
    return `of the ${what} in it ${fault}; a running manager of this version writes them again within seconds (key ${sealKey})${this.#unsealed === 'refused' ? '' : foreign}`
  }

  #isOlder(generation: string): string | undefined {
    if (!(Number(generation) < this.#newest)) return undefined
    return `those of generation ${generation} are older than those of ${this.#newest} that were read before, as in a dump that was put back`
  }

  /** @returns undefined where a document is another one by now */
  async #fetch(list: readonly string[]): Promise<ReadonlyMap<string, Held<T>> | undefined> {
    const known = this.#loaded?.documents
    const documents = new Map<string, Held<T> | undefined>()
    const lacking: { readonly name: string; readonly digest: string }[] = []
    for (let i = 0; i < list.length; i += 2) {
      const [name = '', digest = ''] = [list[i], list[i + 1]]
      const held = known?.get(name)
      documents.set(name, held?.sha1 === digest ? held : undefined)
      if (held?.sha1 !== digest) lacking.push({ name, digest })
    }
    for (const page of pages(lacking, PAGE)) {
      const texts = await Promise.all(page.map(({ name, digest }) => (digest === MISSING ? null : this.#bytes(name))))
      for (const [i, { name, digest }] of page.entries()) {
        const bytes = texts[i]
        if (digest !== MISSING && (!bytes || sha1(bytes) !== digest)) return undefined
        // A broken character in a name would make it match nothing.
        const text = bytes && isUtf8(bytes) ? bytes.toString('utf8') : undefined
        documents.set(name, { sha1: digest, value: this.#read(name, text, known?.get(name)?.value) })
      }
    }
    return documents as Map<string, Held<T>> // those that were not known are read by now
  }

  #bytes(name: string): Promise<Buffer | null> {
    const { documentKey, field } = this.#layout
    const key = documentKey(name)
    return field === undefined ? this.#redis.getBuffer(key) : this.#redis.hgetBuffer(key, field)
  }
}
