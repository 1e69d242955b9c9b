import { FleetError, seconds, systemClock } from '#model'
import type { RedisConnection } from '#redis'
import type { Logger, Metrics } from '#runtime'
import { Bounded, MEMBERS, STRANGERS } from './bounded.ts'
import type { ChainNote } from './chain.ts'
import { AuditFile, type AuditLoss } from './file.ts'
import { RedisTrail } from './redis-trail.ts'
import type { AuditConfig, AuditEntry, AuditTrail } from './types.ts'

/** Entries that wait for a sink; beyond it the newest are counted instead of kept, and the trail says how many. */
const MAX_WAITING = 10_000
/** As long as a request waits for its entry; a sink that hangs must not keep people from deciding. */
const MAX_FLUSH_MS = seconds(5)
const DEFAULT_FILE_BYTES = 64 * 2 ** 20
const DEFAULT_STREAM_ENTRIES = 100_000

/** Where accesses are written down. */
export interface AuditOptions {
  readonly config: AuditConfig
  /** for `config.stream` */
  readonly redis?: RedisConnection
  readonly logger: Logger
  readonly metrics: Metrics
}

/** The audit file cannot be opened: what is configured to be recorded would not be. */
export class AuditFileError extends FleetError {
  override readonly name = 'AuditFileError'
  readonly code = 'audit_file'
  readonly retryable = false
}

const foundWords: Readonly<Record<AuditLoss['kind'], string>> = {
  cut: 'lines of the audit file are missing: somebody took the file away, cut it or put another in its place; the trail says so and goes on',
  unsigned:
    'the head beside the audit file is missing or not signed with AUDIT_KEY: lines may be missing; the trail says so and goes on',
  recovered: 'the last line of the audit file was not whole and is cut off; the trail says so and goes on',
}

type Kept = AuditEntry | ChainNote

/** Nobody vouches for who this was: anybody who reaches the port can make such entries. */
const isStranger = ({ kind, method, actor }: AuditEntry): boolean =>
  kind === 'sign_in_failed' || (method === '' && actor === undefined)

interface Sink {
  readonly name: string
  write(entries: readonly Kept[]): Promise<void>
  close(): Promise<void>
}

/**
 * Opens what is configured: every entry goes to the log, and to the file and the stream where they are asked for.
 * @throws AuditFileError
 */
export async function openAudit({ config, redis, logger, metrics }: AuditOptions): Promise<AuditTrail> {
  const sinks: Sink[] = []
  if (config.level !== 'off' && config.file) {
    const { path, maxBytes = DEFAULT_FILE_BYTES, keepFiles, key } = config.file
    const file = await AuditFile.open(path, {
      maxBytes,
      ...(keepFiles !== undefined && { keepFiles }),
      ...(key && { key }),
      found: ({ kind, count }) =>
        logger[kind === 'recovered' ? 'warn' : 'error'](
          { path, ...(kind === 'cut' && { lines: count }) },
          foundWords[kind],
        ),
    }).catch((cause: unknown) => {
      const why = cause instanceof Error ? cause.message : String(cause)
      throw new AuditFileError(`the audit file ${path} cannot be written: ${why}`, { cause })
    })
    sinks.push({
      name: 'file',
      write: (entries) => file.append(entries),
      close: () => file[Symbol.asyncDispose](),
    })
  }
  if (config.level !== 'off' && config.stream && redis) {
    const { key, maxEntries = DEFAULT_STREAM_ENTRIES } = config.stream
    const trail = new RedisTrail({ connection: redis, key, maxEntries })
    sinks.push({ name: 'stream', write: (entries) => trail.add(entries), close: () => trail[Symbol.asyncDispose]() })
  }
  const recorded = metrics.counter('clusterpulse_audit_entries_total', 'audit entries, by kind', ['kind'])
  const missed = metrics.counter('clusterpulse_audit_missed_total', 'audit entries a sink did not take', ['sink'])
  const queues = sinks.map((sink) => new Queue(sink, logger, (count) => missed.inc({ sink: sink.name }, count)))
  const beyond = (kind: 'strangers' | 'members') => (count: number) => {
    logger.warn({ entries: count }, `requests of ${kind} beyond what is recorded one by one`)
    for (const queue of queues) queue.push({ at: Date.now(), kind, count })
  }
  const strangers = new Bounded(STRANGERS, beyond('strangers'))
  const members = new Bounded(MEMBERS, beyond('members'))
  return {
    record(entry) {
      if (config.level === 'off' || (config.level === 'denials' && entry.kind === 'access' && !entry.actor)) return
      recorded.inc({ kind: entry.kind })
      if (isStranger(entry) && !strangers.admit(entry.address)) return
      if (entry.kind === 'member' && !members.admit(entry.username)) return
      const { at: _, ...facts } = entry
      logger.info({ audit: facts }, entry.kind === 'denial' ? 'access denied' : 'audited')
      for (const queue of queues) queue.push(entry)
    },
    async flush() {
      const late = new AbortController()
      const written = Promise.all(queues.map((queue) => queue.written()))
      await Promise.race([written, systemClock.sleep(MAX_FLUSH_MS, late.signal)])
      late.abort()
    },
    async [Symbol.asyncDispose]() {
      strangers.close()
      members.close()
      await Promise.all(queues.map((queue) => queue.close()))
    },
  }
}

/** Hands entries to one sink, in order: those that come while some are written are written together. */
class Queue {
  readonly #sink: Sink
  readonly #logger: Logger
  readonly #missed: (count: number) => void
  #waiting: Kept[] = []
  #dropped = 0
  #failing = false
  #written: Promise<void> = Promise.resolve()

  constructor(sink: Sink, logger: Logger, missed: (count: number) => void) {
    this.#sink = sink
    this.#logger = logger
    this.#missed = missed
  }

  push(entry: Kept): void {
    if (this.#waiting.length >= MAX_WAITING) {
      this.#dropped += 1
      this.#missed(1)
      return
    }
    if (this.#waiting.push(entry) === 1) this.#written = this.#written.then(() => this.#write())
  }

  /** Resolves when what was pushed so far is written, or lost. */
  written(): Promise<void> {
    return this.#written
  }

  async close(): Promise<void> {
    while (this.#waiting.length > 0) await this.#written
    await this.#written
    await this.#sink.close()
  }

  /** Never rejects. */
  async #write(): Promise<void> {
    const entries = this.#waiting
    this.#waiting = []
    const dropped = this.#dropped
    if (dropped > 0) entries.push({ at: Date.now(), kind: 'dropped', count: dropped })
    try {
      await this.#sink.write(entries)
      this.#dropped -= dropped
      this.#failing = false
    } catch (error) {
      const lost = entries.length - (dropped > 0 ? 1 : 0)
      this.#dropped += lost
      this.#missed(lost)
      if (!this.#failing)
        this.#logger.error({ error, sink: this.#sink.name, entries: lost }, 'audit entries could not be kept')
      this.#failing = true
    }
  }
}
