import { createHash } from 'node:crypto'
import type { SourceDefinition } from '#metricsource'
import { type Clock, type SourceId, StoreUnavailableError } from '#model'
import {
  type Command,
  closeRedis,
  digestOf,
  pipelined,
  type Redis,
  type RedisConnection,
  redisClient,
  redisUnavailable,
  sealText,
} from '#redis'
import type { Logger } from '#runtime'
import { idOf, sameDefinition, typeNameOf } from './definition.ts'
import {
  DIGEST,
  documentKey,
  ENABLED,
  event,
  GENERATION,
  indexesOf,
  type Laid,
  laid,
  noteKey,
  parseDefinition,
  SEAL_SCRIPTS,
} from './redis-layout.ts'
import { differences, readEverything } from './redis-resync.ts'

export interface CatalogWriterOptions {
  readonly connection: RedisConnection
  readonly clock: Clock
  readonly logger: Logger
}

/** Tries before a store that others write counts as unavailable. */
const ATTEMPTS = 20
const LOST = 'it lost MetricSources; they are about to be written again as a whole'

/**
 * Writes sources, one transaction per call: definition, note, indexes, seal and event at once, and only if nobody else
 * wrote in between. A store that holds less or something else than was written takes nothing but all of them again.
 */
export class RedisCatalogWriter {
  /** of its own, as it watches keys; opened by the first write */
  readonly #redis: Redis
  readonly #clock: Clock
  readonly #onLost: () => void
  #connecting: Promise<void> | undefined
  /** counts connections: what was watched on an earlier one is not watched any more */
  #connection = 0
  #turn: Promise<unknown> = Promise.resolve()
  /** digests of all definitions, as written; undefined: this process did not write all of them */
  #written: Map<SourceId, string> | undefined
  #begun = 0
  #ended = 0

  /** @param onLost told where only a resync can help */
  constructor({ connection, clock, logger }: CatalogWriterOptions, onLost: () => void) {
    this.#redis = redisClient(connection, (reason) => logger.debug({ reason }, 'no connection to write MetricSources'))
    this.#clock = clock
    this.#onLost = onLost
    this.#redis.on('ready', () => {
      this.#connection++
    })
  }

  /** this process wrote all that Redis should hold */
  get hasWrittenAll(): boolean {
    return this.#written !== undefined
  }

  async put(definition: SourceDefinition): Promise<void> {
    const next = laid(definition)
    const text = await this.#writeOne(next.id, sha1(next.text), ({ stored, sealing }) => {
      const before = stored === null ? undefined : parseDefinition(stored)
      if (stored !== null && before && sameDefinition(before, definition)) return { commands: [], value: stored }
      const commands = [...this.#withdraw(next.id, stored, next.indexes), ...this.#enter(next), ...sealing]
      return { commands, value: next.text }
    })
    this.#written?.set(next.id, sha1(text))
  }

  async remove(id: SourceId): Promise<void> {
    await this.#writeOne(id, '', ({ stored, isListed, sealing }) => {
      if (stored === null && !isListed) return { commands: [], value: '' }
      return {
        commands: [...this.#withdraw(id, stored, []), ['DEL', documentKey(id), noteKey(id)], ...sealing],
        value: '',
      }
    })
    this.#written?.delete(id)
  }

  async resync(definitions: readonly SourceDefinition[]): Promise<void> {
    const byId = new Map(definitions.map((definition) => [idOf(definition), definition]))
    const wanted = [...byId.values()].map(laid)
    const kept = await this.#transact([GENERATION, ENABLED], async () => {
      const everything = await readEverything(this.#redis)
      const { commands, put, kept } = differences(everything, wanted)
      const generation = everything.get(GENERATION)
      const digest = digestOf(wanted.map(({ id, text }) => [id, sha1(kept.get(id) ?? text)]))
      const isSealed =
        typeof generation === 'string' && everything.get(DIGEST) === sealText(generation, wanted.length, digest)
      if (commands.length === 0 && isSealed) return { commands: [], value: kept }
      const events = put.map((id) => event('compiled', id, null, this.#clock.now()))
      return { commands: [...commands, ...sealed(generation, wanted.length, digest), ...events], value: kept }
    })
    this.#written = new Map(wanted.map(({ id, text }) => [id, sha1(kept.get(id) ?? text)]))
  }

  async stored(id: SourceId): Promise<SourceDefinition | undefined> {
    await this.#connected()
    const [text] = await pipelined(this.#redis, [['GET', documentKey(id)]])
    return typeof text === 'string' ? parseDefinition(text) : undefined
  }

  async announce(type: string, id: SourceId, data: unknown): Promise<void> {
    await this.#connected()
    await pipelined(this.#redis, [event(type, id, data, this.#clock.now())])
  }

  /** Before a look at Redis: a mark for `contradicts`; undefined while something is being written. */
  mark(): number | undefined {
    return this.#begun === this.#ended ? this.#begun : undefined
  }

  /** Whether somebody else wrote: Redis holds other definitions than we wrote, and we wrote nothing since the mark. */
  contradicts(mark: number | undefined, digests: ReadonlyMap<SourceId, { readonly sha1: string }>): boolean {
    const written = this.#written
    if (!written || mark !== this.#begun) return false
    return written.size !== digests.size || [...digests].some(([id, { sha1 }]) => written.get(id) !== sha1)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await closeRedis(this.#redis)
    await this.#turn
  }

  /** Out of every index it stands in and should not. */
  #withdraw(id: SourceId, stored: string | null, wanted: readonly string[]): readonly Command[] {
    const before = stored === null ? undefined : parseDefinition(stored)
    // Where it stands besides only a look through all indexes tells.
    if (stored !== null && !before) this.#onLost()
    return indexesOf(before ? typeNameOf(before) : '')
      .filter((index) => !wanted.includes(index))
      .map((index) => ['SREM', index, id])
  }

  #enter({ id, text, note, indexes }: Laid): readonly Command[] {
    return [
      ['SET', documentKey(id), text],
      ['DEL', noteKey(id)],
      ['HSET', noteKey(id), ...Object.entries(note).flat()],
      ...indexes.map((index): Command => ['SADD', index, id]),
      event('compiled', id, null, this.#clock.now()),
    ]
  }

  /** @param sha1 of the definition that is to be there; '': none */
  #writeOne<T>(id: SourceId, sha1: string, decide: (held: Held) => Decided<T>): Promise<T> {
    return this.#transact([GENERATION, documentKey(id)], async () => {
      const [generation, stored, isListed, [isIntact, count, digest]] = (await pipelined(this.#redis, [
        ['GET', GENERATION],
        ['GET', documentKey(id)],
        ['SISMEMBER', ENABLED, id],
        ['EVAL', SEAL_SCRIPTS.beside, 3, ENABLED, GENERATION, DIGEST, id, sha1],
      ])) as [string | null, string | null, number, [number, number, string]]
      // The very first in an empty store has nothing beside it that could be missing.
      const isFirst = generation === null && !this.hasWrittenAll && isListed === 0 && count === (sha1 === '' ? 0 : 1)
      if (isIntact !== 1 && !isFirst) {
        this.#onLost()
        throw new StoreUnavailableError('Redis', LOST)
      }
      return decide({ stored, isListed: isListed === 1, sealing: sealed(generation, count, digest) })
    })
  }

  /** Reads and decides while these keys are watched, then writes; from the start again where they moved meanwhile. */
  #transact<T>(keys: string[], decide: () => Promise<Decided<T>>): Promise<T> {
    this.#begun++
    const turn = this.#turn
      .then(() => this.#attempts(keys, decide))
      .catch((error: unknown) => {
        const failure = redisUnavailable(error)
        // A key is not what it should be: only a resync puts it right.
        if (failure.reason.includes('WRONGTYPE')) this.#onLost()
        throw failure
      })
      .finally(() => {
        this.#ended++
      })
    this.#turn = turn.catch(() => undefined) // told to whoever asked; the next in line begins anew
    return turn
  }

  async #attempts<T>(keys: string[], decide: () => Promise<Decided<T>>): Promise<T> {
    await this.#connected()
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const connection = this.#connection
      await this.#redis.watch(...keys)
      const { commands, value } = await decide()
      if (connection !== this.#connection) continue
      if (commands.length === 0 || (await this.#execute(commands))) return value
    }
    throw new StoreUnavailableError('Redis', 'others keep writing the MetricSources at the same time')
  }

  /** The first connection is waited for; later ones come by themselves. */
  async #connected(): Promise<void> {
    if (this.#redis.status === 'wait') this.#connecting = this.#redis.connect()
    try {
      await this.#connecting
    } catch (error) {
      this.#connecting = undefined
      throw redisUnavailable(error)
    }
  }

  /** @returns false where a watched key moved and nothing was written */
  async #execute(commands: readonly Command[]): Promise<boolean> {
    const results = await this.#redis.multi(commands.map(([name, ...args]) => [name.toLowerCase(), ...args])).exec()
    const failure = results?.find(([error]) => error)?.[0]
    if (failure) throw failure
    return results !== null
  }
}

interface Decided<T> {
  readonly commands: readonly Command[]
  readonly value: T
}

/** One definition as Redis holds it. */
interface Held {
  readonly stored: string | null
  readonly isListed: boolean
  /** makes a new generation of what is there after the write */
  readonly sealing: readonly Command[]
}

function sealed(before: unknown, count: number, digest: string): readonly Command[] {
  const generation = String((Number(before) || 0) + 1)
  return [
    ['SET', GENERATION, generation],
    ['SET', DIGEST, sealText(generation, count, digest)],
  ]
}

const sha1 = (text: string): string => createHash('sha1').update(text).digest('hex')
