import type { CompiledSource, SourceDefinition } from '#metricsource'
import { type Clock, type SourceId, seconds, systemClock } from '#model'
import { type Command, type Loaded, pipelined, type RedisConnection, ReplicatedSet } from '#redis'
import { type Logger, silentLogger } from '#runtime'
import { idOf, type ReadDefinition, readByDefault, sameDefinition } from './definition.ts'
import { Picture } from './picture.ts'
import {
  ALL,
  contentsOf,
  documentKey,
  ENABLED,
  event,
  indexesOf,
  LAYOUT,
  laid,
  noteKey,
  PATTERNS,
  parseDefinition,
} from './redis-layout.ts'
import type { CatalogWriter, SourceCatalog } from './types.ts'

/** How the MetricSources in force are followed in Redis; durations in ms. */
export interface RedisCatalogOptions {
  readonly connection: RedisConnection
  /** how often Redis is looked at though nothing was heard, ms; default 2 s */
  readonly checkEveryMs?: number
  /** how definitions are read; default: as everywhere */
  readonly read?: ReadDefinition
  /** an original manager writes, which counts no generations and leaves nothing where it has no sources. Default no */
  readonly takesUnsealed?: boolean
  readonly clock?: Clock
  readonly logger?: Logger
}

type Sources = ReplicatedSet<CompiledSource | undefined>

/**
 * The sources in a shared Redis, in the documented layout: written by the leading manager, followed by every other process.
 * The one that writes reads what was written. While they are unavailable the last ones known stay.
 */
export class RedisCatalog implements SourceCatalog, CatalogWriter, AsyncDisposable {
  readonly #set: Sources
  readonly #clock: Clock
  #documents: Loaded<CompiledSource | undefined>['documents'] | undefined
  #picture = Picture.empty

  private constructor(set: Sources, clock: Clock) {
    this.#set = set
    this.#clock = clock
  }

  /** Begins with a first look, no longer than the timeouts of the connection. Redis may be away: then nothing is known yet. */
  static async open(options: RedisCatalogOptions): Promise<RedisCatalog> {
    const { checkEveryMs = seconds(2), read = readByDefault, takesUnsealed = false } = options
    const { clock = systemClock, logger = silentLogger, connection } = options
    const set = await ReplicatedSet.open<CompiledSource | undefined>({
      ...{ connection, checkEveryMs, clock, logger },
      layout: LAYOUT,
      unsealed: takesUnsealed ? 'taken' : 'refused',
      read: (id, text, known) => sourceOf(id, text, { known, read, logger }),
    })
    return new RedisCatalog(set, clock)
  }

  sources(): readonly CompiledSource[] {
    return this.#now().sources
  }

  source(id: SourceId): CompiledSource | undefined {
    return this.#now().source(id)
  }

  ofType(typeName: string): CompiledSource | undefined {
    return this.allOfType(typeName)[0]
  }

  allOfType(typeName: string): readonly CompiledSource[] {
    return this.#now().allOfType(typeName)
  }

  version(): number {
    return this.#set.version
  }

  unavailable(): { readonly since: number; readonly reason: string } | undefined {
    return this.#set.unavailable()
  }

  onChange(listener: () => void): () => void {
    return this.#set.onChange(listener)
  }

  onLost(listener: () => void): () => void {
    return this.#set.onLost(listener)
  }

  async put(definition: SourceDefinition): Promise<void> {
    const { id, text, note, indexes } = laid(definition)
    await this.#set.write({
      name: id,
      change: { text },
      reads: [['GET', documentKey(id)]],
      decide: ([stored]) => {
        const before = typeof stored === 'string' ? parseDefinition(stored) : undefined
        if (before && sameDefinition(before, definition)) return []
        return [
          ...withdrawn(id, before, indexes),
          ['SET', documentKey(id), text],
          ['DEL', noteKey(id)],
          ['HSET', noteKey(id), ...Object.entries(note).flat()],
          ...indexes.map((index): Command => ['SADD', index, id]),
          event('compiled', id, null, this.#clock.now()),
        ]
      },
    })
    await this.#look()
  }

  async remove(id: SourceId): Promise<void> {
    await this.#set.write({
      name: id,
      change: 'removed',
      reads: [['GET', documentKey(id)]],
      decide: ([stored], isListed) => {
        if (typeof stored !== 'string' && !isListed) return []
        const before = typeof stored === 'string' ? parseDefinition(stored) : undefined
        return [...withdrawn(id, before, []), ['DEL', documentKey(id), noteKey(id)]]
      },
    })
    await this.#look()
  }

  async resync(definitions: readonly SourceDefinition[]): Promise<void> {
    const all = [...new Map(definitions.map((one) => [idOf(one), one])).values()].map(laid)
    await this.#set.resync({
      keys: [ALL, ENABLED],
      patterns: PATTERNS,
      wanted: (stored) => contentsOf(all, stored),
      finish: (moved) => {
        const hasMoved = ({ id, indexes }: (typeof all)[number]) =>
          moved.has(documentKey(id)) ||
          moved.has(noteKey(id)) ||
          indexes.some((index) => moved.get(index)?.includes(id))
        const now = this.#clock.now()
        return { commands: all.filter(hasMoved).map(({ id }) => event('compiled', id, null, now)), value: undefined }
      },
    })
    await this.#look()
  }

  async stored(id: SourceId): Promise<SourceDefinition | undefined> {
    const [text] = await pipelined(await this.#set.connected(), [['GET', documentKey(id)]])
    return typeof text === 'string' ? parseDefinition(text) : undefined
  }

  async announce(
    type: 'reconciled' | 'deleted',
    id: SourceId,
    data: Readonly<Record<string, unknown>> | null,
  ): Promise<void> {
    await pipelined(await this.#set.connected(), [event(type, id, data, this.#clock.now())])
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#set[Symbol.asyncDispose]()
  }

  #now(): Picture {
    const documents = this.#set.loaded?.documents
    if (documents && documents !== this.#documents) {
      this.#documents = documents
      this.#picture = new Picture([...documents.values()].flatMap(({ value }) => value ?? []))
    }
    return this.#picture
  }

  /** What was written is read; what fails then is said by `unavailable`. */
  async #look(): Promise<void> {
    await this.#set.look().catch(() => undefined)
  }
}

/** Out of every index it stands in and should not. */
const withdrawn = (id: SourceId, before: SourceDefinition | undefined, wanted: readonly string[]): readonly Command[] =>
  indexesOf(before)
    .filter((index) => !wanted.includes(index))
    .map((index) => ['SREM', index, id])

/** The source of a stored text; the very same where it collects the same. Called once per text, so it says once what is wrong. */
function sourceOf(
  id: SourceId,
  text: string | undefined,
  {
    known,
    read,
    logger,
  }: { readonly known: CompiledSource | undefined; readonly read: ReadDefinition; readonly logger: Logger },
): CompiledSource | undefined {
  const definition = text === undefined ? undefined : parseDefinition(text)
  if (known && definition && sameDefinition(known.definition, definition)) return known
  const source = definition && read(definition)
  if (source?.id === id) return source
  const reason =
    text === undefined
      ? 'it is listed and not there, or no text'
      : !definition
        ? 'it is no JSON object'
        : source
          ? `it is that of ${source.id}`
          : 'it does not compile'
  logger.warn({ source: id, reason }, 'the stored definition of a MetricSource cannot be used')
  return undefined
}
