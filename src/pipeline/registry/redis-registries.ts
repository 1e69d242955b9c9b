import { type Clock, minutes, seconds, systemClock } from '#model'
import { aSet, aString, type Command, escapeGlob, type RedisConnection, ReplicatedSet, scanKeys, textAt } from '#redis'
import { type Logger, silentLogger } from '#runtime'
import { probed, type RegistryBoard } from './board.ts'
import { RedisFindings } from './redis-findings.ts'
import {
  ALL,
  EVENTS_CHANNEL,
  EVENTS_KEPT,
  EVENTS_TTL_S,
  eventDocument,
  keysOf,
  LAYOUT,
  measurementDocument,
  oldestScore,
  readSpec,
  rfc3339,
  scoreOf,
  specDocument,
  statusDocument,
  statusTtlS,
} from './redis-layout.ts'
import { factsOf } from './stored.ts'
import type { ProbeResult, RegistryFacts, RegistryMeasurement, RegistryState, RegistryStore } from './types.ts'

export interface RedisRegistriesOptions {
  readonly connection: RedisConnection
  /** how often everything is compared, ms; default 5 s. Announced changes are seen at once. */
  readonly checkEveryMs?: number
  /** how long a status stands at least without a new one, ms; default 10 min */
  readonly statusTtlMs?: number
  /** also what an original manager declared, which counts no generations. Default no */
  readonly takesUnsealed?: boolean
  readonly clock?: Clock
  readonly logger?: Logger
}

type Specs = ReplicatedSet<RegistryFacts | undefined>

/**
 * Registries in a shared Redis, in the documented layout: written by the leading manager, followed by every API process. What is
 * declared is taken as a whole or not at all; what probes found lies beside it, and what of it is missing is as not yet probed.
 * While they are unavailable the last ones known stay.
 */
export class RedisRegistries implements RegistryStore {
  readonly #options: Required<RedisRegistriesOptions>
  readonly #set: Specs
  readonly #findings: RedisFindings
  readonly #board: RegistryBoard

  private constructor(options: Required<RedisRegistriesOptions>, set: Specs, findings: RedisFindings) {
    this.#options = options
    this.#set = set
    this.#findings = findings
    this.#board = findings.board
  }

  /** Begins with a first look, no longer than the timeouts of the connection. Redis may be away: it comes back by itself. */
  static async open(given: RedisRegistriesOptions): Promise<RedisRegistries> {
    const { connection, checkEveryMs = seconds(5), statusTtlMs = minutes(10), takesUnsealed = false } = given
    const { clock = systemClock, logger = silentLogger } = given
    const findings = new RedisFindings(clock, checkEveryMs)
    const set = await ReplicatedSet.open<RegistryFacts | undefined>({
      ...{ connection, checkEveryMs, clock, logger },
      layout: LAYOUT,
      unsealed: takesUnsealed ? 'taken' : 'refused',
      read: (name, text = '') => readSpec(name, text),
      lookBeside: (redis, { documents }, news) => findings.look(redis, documents, news),
    })
    return new RedisRegistries({ connection, checkEveryMs, statusTtlMs, takesUnsealed, clock, logger }, set, findings)
  }

  registries(): readonly RegistryState[] {
    return this.#board.registries()
  }

  registry(name: string): RegistryState | undefined {
    return this.#board.get(name)?.state
  }

  measurements(name: string): readonly RegistryMeasurement[] {
    return this.#board.measurements(name, this.#options.clock.now())
  }

  version(): number {
    return this.#board.version
  }

  unavailable(): { readonly since: number; readonly reason: string } | undefined {
    return this.#set.unavailable()
  }

  onChange(listener: (name: string) => void): () => void {
    return this.#board.onChange(listener)
  }

  onLost(listener: () => void): () => void {
    return this.#set.onLost(listener)
  }

  /** @throws StoreUnavailableError: nothing was written */
  async resync(all: readonly RegistryFacts[]): Promise<void> {
    const wanted = new Map(all.map((given) => [given.name, factsOf(given)]))
    const specs = new Map([...wanted.values()].map((facts) => [keysOf(facts.name).spec, aString(specText(facts))]))
    const foreign = await this.#keysOfOthers(wanted)
    await this.#set.resync({
      keys: [...specs.keys()],
      patterns: [],
      wanted: () => (wanted.size === 0 ? specs : new Map([...specs, [ALL, aSet(wanted.keys())]])),
      finish: (moved, stored) => {
        const gone = [...(stored.get(ALL)?.entries.keys() ?? [])].filter((name) => !wanted.has(name))
        const elsewhere = [...wanted.values()].filter(
          ({ name, endpoint }) => readSpec(name, textAt(stored.get(keysOf(name).spec)))?.endpoint !== endpoint,
        )
        const commands: Command[] = [
          ...(foreign.length > 0 ? [['UNLINK', ...foreign] satisfies Command] : []),
          // What was found at another address says nothing of this one.
          ...elsewhere.flatMap(({ name }): Command[] =>
            moved.has(keysOf(name).spec) ? [['DEL', keysOf(name).status]] : [],
          ),
          ...gone.map((name) => this.#deleted(name)),
        ]
        return { commands, value: undefined }
      },
    })
    await this.#set.look().catch(() => undefined) // `unavailable` says it
  }

  /** @throws StoreUnavailableError: nothing was written */
  async declare(given: RegistryFacts): Promise<void> {
    const facts = factsOf(given)
    const entry = this.#board.declared(facts)
    if (!entry) return
    const text = specText(facts)
    const { last } = entry.state
    await this.#set.write({
      name: facts.name,
      change: { text },
      reads: [],
      decide: () => [
        ['SADD', ALL, facts.name],
        ['SET', keysOf(facts.name).spec, text],
        ...(last ? [] : [['DEL', keysOf(facts.name).status] satisfies Command]),
        ['PUBLISH', EVENTS_CHANNEL, this.#event(entry.state)],
      ],
    })
    this.#findings.put(entry, last ? undefined : null)
  }

  /** @throws StoreUnavailableError: nothing was written */
  async record(name: string, result: ProbeResult): Promise<void> {
    const known = this.#board.get(name)
    if (!known) return
    const state = probed(known.state, result)
    const isNews = known.state.last?.health !== result.health || known.state.last?.code !== result.code
    const status = JSON.stringify(statusDocument(state, result))
    await this.#set.writeBeside(this.#probeCommands(state, result, { status, isNews }))
    known.journal.add(result.at, result.available, result.responseMs)
    this.#findings.put({ ...known, state }, status)
  }

  /** @throws StoreUnavailableError: some of it may still be there; ask again */
  async remove(name: string): Promise<void> {
    const keys: string[] = [keysOf(name).events]
    for await (const page of scanKeys(await this.#set.connected(), `registry:${escapeGlob(name)}:*`)) keys.push(...page)
    await this.#set.write({
      name,
      change: 'removed',
      reads: [],
      decide: () => [['SREM', ALL, name], ['UNLINK', ...keys], this.#deleted(name)],
    })
    this.#findings.forget(name)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#set[Symbol.asyncDispose]()
  }

  /** Keys of registries that are not among these. */
  async #keysOfOthers(wanted: ReadonlyMap<string, unknown>): Promise<readonly string[]> {
    const redis = await this.#set.connected()
    const others: string[] = []
    for (const pattern of ['registry:*', 'registry-events:*'])
      for await (const page of scanKeys(redis, pattern))
        others.push(...page.filter((key) => !wanted.has(key.split(':')[1] ?? '')))
    return others
  }

  #probeCommands(
    state: RegistryState,
    result: ProbeResult,
    { status, isNews }: { readonly status: string; readonly isNews: boolean },
  ): Command[] {
    const { facts } = state
    const keys = keysOf(facts.name)
    const { clock, statusTtlMs } = this.#options
    const ttlS = statusTtlS(facts, statusTtlMs)
    const measurement = measurementDocument({
      at: result.at,
      available: result.available,
      responseMs: result.responseMs,
    })
    const event = this.#event(state)
    return [
      ['SET', keys.status, status, 'EX', ttlS],
      ['HSET', keys.meta, 'last_update', rfc3339(result.at), 'available', String(result.available)],
      ['ZADD', keys.metrics, scoreOf(result.at), measurement],
      ['ZREMRANGEBYSCORE', keys.metrics, '-inf', `(${oldestScore(clock.now())}`],
      ['SET', keys.latest, measurement, 'EX', ttlS],
      // The list is for people: a registry that goes on as it was is no event.
      ...(isNews
        ? ([
            ['LPUSH', keys.events, event],
            ['LTRIM', keys.events, 0, EVENTS_KEPT - 1],
            ['EXPIRE', keys.events, EVENTS_TTL_S],
          ] satisfies Command[])
        : []),
      ['PUBLISH', EVENTS_CHANNEL, event],
    ]
  }

  #event({ facts, last }: RegistryState): string {
    const data = {
      health: last?.health ?? 'unknown',
      available: last?.available ?? false,
      response_time: Math.round(last?.responseMs ?? 0),
      display_name: facts.displayName,
      type: facts.type,
    }
    return eventDocument('registry.reconciled', facts.name, this.#options.clock.now(), data)
  }

  #deleted(name: string): Command {
    return ['PUBLISH', EVENTS_CHANNEL, eventDocument('registry.deleted', name, this.#options.clock.now(), null)]
  }
}

const specText = (facts: RegistryFacts): string => JSON.stringify(specDocument(facts))
