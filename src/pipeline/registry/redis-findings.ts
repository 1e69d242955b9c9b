import { isDeepStrictEqual } from 'node:util'
import type { Clock } from '#model'
import { type Loaded, pipelined, type Redis } from '#redis'
import { type Entry, Journal, RegistryBoard } from './board.ts'
import { announced, keysOf, oldestScore, readMeasurement, readStatus, scoreOf } from './redis-layout.ts'
import type { RegistryFacts } from './types.ts'

type Documents = Loaded<RegistryFacts | undefined>['documents']

/** Registries per round trip. */
const SLICE = 200

/** What probes found of registries, read from Redis beside what is declared, on a board with it. */
export class RedisFindings {
  readonly board = new RegistryBoard()
  readonly #clock: Clock
  readonly #allEveryMs: number
  /** of each registry the status that the board holds; null: there is none */
  readonly #statuses = new Map<string, string | null>()
  #comparedAt = Number.NEGATIVE_INFINITY

  /** @param allEveryMs how often all are read though nothing was announced */
  constructor(clock: Clock, allEveryMs: number) {
    this.#clock = clock
    this.#allEveryMs = allEveryMs
  }

  /** @param status as it was written; null: none, undefined: it is the same */
  put(entry: Entry, status: string | null | undefined): void {
    const { name } = entry.state.facts
    if (status !== undefined) this.#statuses.set(name, status)
    this.board.put(name, entry)
  }

  /** What is declared now, and what was found of those that were announced; now and then of all of them. */
  async look(redis: Redis, documents: Documents, news: readonly string[] | undefined): Promise<void> {
    for (const { facts } of this.board.registries()) if (!documents.get(facts.name)?.value) this.forget(facts.name)
    const began = performance.now()
    const names = news?.map(announced)
    const isAll = !names?.length || names.includes(undefined) || began - this.#comparedAt >= this.#allEveryMs
    const wanted = [...documents].flatMap(([name, { value }]) =>
      value && (isAll || names.includes(name) || !isDeepStrictEqual(this.#factsOf(name), value)) ? [value] : [],
    )
    for (let start = 0; start < wanted.length; start += SLICE)
      await this.#read(redis, wanted.slice(start, start + SLICE))
    if (isAll) this.#comparedAt = began
  }

  async #read(redis: Redis, all: readonly RegistryFacts[]): Promise<void> {
    const statuses = await pipelined(
      redis,
      all.map(({ name }) => ['GET', keysOf(name).status]),
    )
    const changed = all.flatMap((facts, i) => {
      const status = typeof statuses[i] === 'string' ? statuses[i] : null
      const isSame = this.#statuses.get(facts.name) === status && isDeepStrictEqual(this.#factsOf(facts.name), facts)
      return isSame ? [] : [{ facts, status }]
    })
    const now = this.#clock.now()
    const measured = await pipelined(
      redis,
      changed.map(({ facts: { name } }) => ['ZRANGEBYSCORE', keysOf(name).metrics, this.#from(name, now), '+inf']),
    )
    changed.forEach(({ facts, status }, i) => {
      const journal = this.board.get(facts.name)?.journal ?? new Journal()
      const members = measured[i]
      for (const member of Array.isArray(members) ? members : []) {
        const measurement = readMeasurement(String(member))
        if (measurement) journal.add(measurement.at, measurement.available, measurement.responseMs)
      }
      const found = status === null ? undefined : readStatus(status)
      this.#statuses.set(facts.name, status)
      this.board.put(facts.name, {
        state: { facts, last: found?.last ?? null, since: found?.since ?? null, version: 0 },
        journal,
      })
    })
  }

  /** Where reading of measurements goes on: what is known is not read again. */
  #from(name: string, now: number): number {
    const last = this.board.measurements(name, now).at(-1)
    return last ? scoreOf(last.at) : oldestScore(now)
  }

  forget(name: string): void {
    this.#statuses.delete(name)
    this.board.remove(name)
  }

  #factsOf(name: string): RegistryFacts | undefined {
    return this.board.get(name)?.state.facts
  }
}
