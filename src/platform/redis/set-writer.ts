import { type Clock, StoreUnavailableError } from '#model'
import type { Logger } from '#runtime'
import { KeptKeys } from './kept-keys.ts'
import {
  type Command,
  closeRedis,
  guardedTransaction,
  pipelined,
  type Redis,
  type RedisConnection,
  redisClient,
  redisUnavailable,
} from './redis.ts'
import { digestOf, KEPT, type Sealed, sealScripts, sealText, sha1 } from './seal.ts'
import { type Contents, differences, readContents } from './set-contents.ts'
import { type SetLayout, textAt } from './set-layout.ts'

/** What becomes of a document: its new text, or nothing, or it goes. */
export type Change = { readonly text: string } | 'kept' | 'removed'

/** A write of one document with the keys beside it. */
export interface Write {
  readonly name: string
  readonly change: Change
  /** asked at the moment of the write */
  readonly reads: readonly Command[]
  /** @returns what is written; none: nothing happens, and the generation stays */
  readonly decide: (answers: readonly unknown[], isListed: boolean) => readonly Command[]
}

/** A write of everything. */
export interface Resync<R> {
  /** everything the set may hold, beside what `SetLayout` names */
  readonly keys: readonly string[]
  readonly patterns: readonly string[]
  /** what is to be there instead of what is */
  readonly wanted: (stored: Contents) => Contents
  /** written beside it, and what the caller learns; `moved` as of `differences` */
  readonly finish: (
    moved: ReadonlyMap<string, readonly string[]>,
    stored: Contents,
  ) => { readonly commands: readonly Command[]; readonly value: R }
}

export interface SetWriterOptions {
  readonly connection: RedisConnection
  readonly layout: SetLayout
  readonly clock: Clock
  readonly logger: Logger
  /** the highest generation that this process read */
  readonly newest: () => number
  /** called where only a resync can help */
  readonly onLost: () => void
}

/** Far beyond any time in ms, and so far below what numbers can count that there is always a next one. */
const MAX_GENERATION = 2 ** 52
/** 0: damaged, it is no generation that a writer counted. */
const countable = (generation: string): number => (Number(generation) < MAX_GENERATION ? Number(generation) : 0)

interface Decided<R> {
  readonly commands: readonly Command[]
  readonly value: R
  /** called when Redis took the commands */
  readonly taken?: () => void
}

/** Tries before a store that others write counts as unavailable, and the longest pause between two, ms. */
const ATTEMPTS = 20
const PAUSE_MS = 20

/**
 * Writes documents, one transaction per call: document, indexes, seal and announcements at once, and only if no other client wrote
 * in between. Where Redis lost its memory nothing but a resync is accepted: a few documents alone would pass for all of them.
 */
export class SetWriter {
  /** of its own, as it watches keys; opened by the first write */
  readonly #redis: Redis
  readonly #options: SetWriterOptions
  readonly #script: string
  #connecting: Promise<void> | undefined
  /** counts connections: what was watched on an earlier one is not watched any more */
  #connection = 0
  /** digests of all documents by name, as written; undefined: this process did not write all of them */
  #written: Map<string, string> | undefined
  /** keys of the documents, and those beside them */
  #kept = new KeptKeys()
  /** the highest generation that this process wrote, whatever its clock and Redis say since */
  #highest = 0

  constructor(options: SetWriterOptions) {
    const { connection, layout, logger } = options
    this.#options = options
    this.#script = sealScripts(layout.script).beside
    this.#redis = redisClient(connection, (reason) => logger.debug({ reason }, `no connection to write ${layout.what}`))
    this.#redis.on('close', () => this.#connection++)
  }

  /** this process wrote all that Redis should hold */
  get hasWrittenAll(): boolean {
    return this.#written !== undefined
  }

  /**
   * Whether a key that this process wrote is gone, or has another number of entries: an index for other readers too.
   * @throws StoreUnavailableError
   */
  async lacksEntries(redis: Redis): Promise<boolean> {
    return this.#written !== undefined && !(await this.#kept.areAsWritten(redis, this.#options.clock.now()))
  }

  /** Whether somebody else wrote: Redis holds other documents than we wrote. */
  contradicts(documents: ReadonlyMap<string, { readonly sha1: string }>): boolean {
    const written = this.#written
    if (!written) return false
    return written.size !== documents.size || [...documents].some(([name, { sha1 }]) => written.get(name) !== sha1)
  }

  /** @throws StoreUnavailableError: nothing was written, or it is not known */
  async write({ name, change, reads, decide }: Write): Promise<void> {
    const { layout, onLost } = this.#options
    const digest = change === 'kept' ? KEPT : change === 'removed' ? '' : sha1(change.text)
    await this.#transact([layout.generation, layout.documentKey(name)], async () => {
      const [isListed, beside, generation, ...answers] = await pipelined(this.#redis, [
        ['SISMEMBER', layout.members, name],
        ['EVAL', this.#script, 3, layout.members, layout.generation, layout.seal, name, digest],
        ['GET', layout.generation],
        ...reads,
      ])
      const [isIntact, before, count, after] = beside as [number, string, number, string]
      if (generation === null || isIntact !== 1) {
        onLost()
        throw new StoreUnavailableError(
          'Redis',
          `it lost ${layout.what}; they are about to be written again as a whole`,
        )
      }
      const commands = decide(answers, isListed === 1)
      if (commands.length === 0 || before === after) return { commands, value: undefined }
      return {
        commands: [...commands, ...this.#sealed(String(Number(generation) + 1), count, after)],
        value: undefined,
        taken: () => {
          this.#highest = Math.max(this.#highest, Number(generation) + 1)
          this.#kept.take(commands, this.#options.clock.now())
          if (change === 'removed') this.#written?.delete(name)
          else this.#written?.set(name, digest)
        },
      }
    })
  }

  /** @throws StoreUnavailableError: nothing was written, or it is not known */
  async resync<R>({ keys, patterns, wanted, finish }: Resync<R>): Promise<R> {
    const { layout, clock, newest } = this.#options
    const { generation, seal, members } = layout
    return this.#transact([generation, members], async () => {
      const stored = new Map(await readContents(this.#redis, [generation, seal, members, ...keys], patterns))
      const [number, stamp] = [stored.get(generation), stored.get(seal)]
      for (const key of [generation, seal]) stored.delete(key)
      const contents = wanted(stored)
      const { commands, moved } = differences(stored, contents)
      const documents = [...(contents.get(members)?.entries.keys() ?? [])].map(
        (name): Sealed => [name, sha1(textAt(contents.get(layout.documentKey(name)), layout.field))],
      )
      const digest = digestOf(documents)
      const former = Math.max(countable(textAt(number)), newest(), this.#highest)
      // What lies there may be a dump that was put back, which readers refuse: who did not write it seals it anew.
      const isSealed =
        this.#written !== undefined &&
        former === Number(textAt(number)) &&
        number?.kind === 'string' &&
        textAt(stamp) === sealText(textAt(number), documents.length, digest)
      // Above every count of a former life of this Redis, so that no reader takes the new for the old.
      const next = String(Math.max(Math.round(clock.now()), former + 1))
      const seals = !isSealed || commands.length > 0
      const { commands: more, value } = finish(moved, stored)
      return {
        commands: [...commands, ...(seals ? this.#sealed(next, documents.length, digest) : []), ...more],
        value,
        taken: () => {
          if (seals) this.#highest = Number(next)
          this.#written = new Map(documents)
          this.#kept = new KeptKeys(contents)
        },
      }
    })
  }

  /** Keys beside the set, in one transaction. @throws StoreUnavailableError: nothing was written, or it is not known */
  async beside(commands: readonly Command[]): Promise<void> {
    await this.#transact([], async () => ({ commands, value: undefined }))
  }

  /** @throws StoreUnavailableError */
  async connected(): Promise<Redis> {
    // The first connection is waited for; later ones come by themselves.
    if (this.#redis.status === 'wait') this.#connecting = this.#redis.connect()
    try {
      await this.#connecting
    } catch (error) {
      this.#connecting = undefined
      throw redisUnavailable(error)
    }
    return this.#redis
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await closeRedis(this.#redis)
  }

  #sealed(generation: string, count: number, digest: string): readonly Command[] {
    const { layout } = this.#options
    return [
      ['SET', layout.generation, generation],
      ['SET', layout.seal, sealText(generation, count, digest)],
    ]
  }

  /** Reads and decides while these keys are watched, then writes; from the start again where they moved meanwhile. */
  async #transact<R>(keys: readonly string[], decide: () => Promise<Decided<R>>): Promise<R> {
    const { layout, clock, onLost } = this.#options
    try {
      await this.connected()
      for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
        const connection = this.#connection
        if (attempt > 0) await clock.sleep(Math.random() * PAUSE_MS)
        if (keys.length > 0) await this.#redis.watch(...keys)
        const { commands, value, taken } = await decide()
        if (connection !== this.#connection) continue
        if (commands.length > 0 && !(await guardedTransaction(this.#redis, commands))) continue
        taken?.()
        return value
      }
    } catch (error) {
      const failure = redisUnavailable(error)
      // A key is not what it should be: only a resync puts it right.
      if (failure.reason.includes('WRONGTYPE')) onLost()
      throw failure
    }
    throw new StoreUnavailableError('Redis', `others keep writing the ${layout.what} at the same time`)
  }
}
