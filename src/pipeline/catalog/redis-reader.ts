import { isUtf8 } from 'node:buffer'
import { createHash } from 'node:crypto'
import type { CompiledSource } from '#metricsource'
import { type SourceId, StoreUnavailableError } from '#model'
import { MISSING, type Redis, redisUnavailable, sealFault } from '#redis'
import type { Logger } from '#runtime'
import { type ReadDefinition, sameDefinition } from './definition.ts'
import { Picture } from './picture.ts'
import { DIGEST, documentKey, ENABLED, GENERATION, parseDefinition, SEAL_SCRIPTS } from './redis-layout.ts'

/** The sources of one moment. */
export interface Loaded {
  /** over all ids and definitions */
  readonly digest: string
  readonly picture: Picture
}

interface Held {
  readonly sha1: string
  /** undefined: it cannot be read */
  readonly source: CompiledSource | undefined
}

/** Redis answers, but does not hold what our manager wrote: nothing yet, less, or something else. Writing all again mends it. */
export class CatalogLostError extends StoreUnavailableError {}

const NONE_YET = `it holds no MetricSources of a manager of this version: they were not written yet, or ${GENERATION} is missing`
const MENDS = `; a running manager of this version writes them again within seconds (key ${DIGEST})`
const FOREIGN = `${MENDS}; where an original manager writes by now, delete ${GENERATION} and ${DIGEST}`
/** Definitions asked for at once. */
const PAGE = 50
/** Looks before a store that keeps changing counts as unavailable. */
const ATTEMPTS = 10

/**
 * Reads all sources of one moment: first which there are and the digest of each, in one step of the server; then the
 * definitions whose digest is new. What did not change stays the very same object.
 */
export class RedisCatalogReader {
  readonly #redis: Redis
  readonly #read: ReadDefinition
  readonly #logger: Logger
  readonly #takesUnsealed: boolean
  #held = new Map<SourceId, Held>()
  #loaded: Loaded | undefined

  /** @param takesUnsealed also what a writer left that counts no generations, which is nothing where it has no sources */
  constructor(redis: Redis, read: ReadDefinition, logger: Logger, takesUnsealed: boolean) {
    this.#takesUnsealed = takesUnsealed
    this.#redis = redis
    this.#read = read
    this.#logger = logger
  }

  /** digest of each definition of the last look */
  get digests(): ReadonlyMap<SourceId, { readonly sha1: string }> {
    return this.#held
  }

  /** Not twice at once. @throws StoreUnavailableError */
  async load(): Promise<Loaded> {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const loaded = await this.#look()
      if (loaded) return loaded
    }
    throw new StoreUnavailableError('Redis', 'the MetricSources change faster than they can be read')
  }

  /** @returns undefined where something was written in between */
  async #look(): Promise<Loaded | undefined> {
    const known = this.#loaded
    const [answer] = await this.#ask([['eval', SEAL_SCRIPTS.look, 3, ENABLED, GENERATION, DIGEST, known?.digest ?? '']])
    const [generation, seal, digest, count, ...list] = answer as [
      string | null,
      string | null,
      string,
      number,
      ...string[],
    ]
    // Only an original manager counts no generations.
    if (generation === null && (seal !== null || !this.#takesUnsealed)) throw new CatalogLostError('Redis', NONE_YET)
    const fault = generation === null ? undefined : sealFault(seal ?? undefined, { generation, count, digest })
    if (fault !== undefined) {
      const next = this.#takesUnsealed ? FOREIGN : MENDS
      throw new CatalogLostError('Redis', `of the MetricSources in it ${fault}${next}`)
    }
    if (known?.digest === digest) return known
    const held = await this.#fetch(list)
    if (!held) return undefined
    this.#held = held
    this.#loaded = { digest, picture: new Picture([...held.values()].flatMap(({ source }) => source ?? [])) }
    return this.#loaded
  }

  async #fetch(list: readonly string[]): Promise<Map<SourceId, Held> | undefined> {
    const held = new Map<SourceId, Held>()
    const lacking: { readonly id: SourceId; readonly sha1: string }[] = []
    for (let i = 0; i < list.length; i += 2) {
      const [id = '', sha1 = ''] = [list[i], list[i + 1]]
      const known = this.#held.get(id)
      if (known?.sha1 === sha1) held.set(id, known)
      else if (sha1 === MISSING) held.set(id, this.#skipped(id, sha1, 'it is listed and not there'))
      else lacking.push({ id, sha1 })
    }
    for (let from = 0; from < lacking.length; from += PAGE) {
      const page = lacking.slice(from, from + PAGE)
      const texts = await this.#ask(page.map(({ id }) => ['getBuffer', documentKey(id)]))
      for (const [i, { id, sha1 }] of page.entries()) {
        const bytes = texts[i]
        if (!Buffer.isBuffer(bytes) || createHash('sha1').update(bytes).digest('hex') !== sha1) return undefined
        held.set(id, this.#heldOf(id, sha1, bytes))
      }
    }
    return held
  }

  #heldOf(id: SourceId, sha1: string, bytes: Buffer): Held {
    const definition = isUtf8(bytes) ? parseDefinition(bytes.toString('utf8')) : undefined
    if (!definition) return this.#skipped(id, sha1, 'it is no JSON object')
    const known = this.#held.get(id)?.source
    if (known && sameDefinition(known.definition, definition)) return { sha1, source: known }
    const source = this.#read(definition)
    if (!source) return this.#skipped(id, sha1, 'it does not compile')
    return source.id === id ? { sha1, source } : this.#skipped(id, sha1, `it is that of ${source.id}`)
  }

  /** Once per text, as the same text is not read again. */
  #skipped(id: SourceId, sha1: string, reason: string): Held {
    this.#logger.warn({ source: id, reason }, 'the stored definition of a MetricSource cannot be used')
    return { sha1, source: undefined }
  }

  async #ask(commands: (string | number)[][]): Promise<unknown[]> {
    try {
      const results = await this.#redis.pipeline(commands).exec()
      return (results ?? []).map(([error, value]) => {
        if (error) throw error
        return value
      })
    } catch (error) {
      const { reason } = redisUnavailable(error)
      throw new (reason.includes('WRONGTYPE') ? CatalogLostError : StoreUnavailableError)('Redis', reason, {
        cause: error,
      })
    }
  }
}
