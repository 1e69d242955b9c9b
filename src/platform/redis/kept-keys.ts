import { type Command, pipelined, type Redis } from './redis.ts'
import type { Contents } from './set-contents.ts'

/** Keys in one command. */
const PAGE = 1_000
/** A key about to run out may be gone by the time it is asked for, ms. */
const MARGIN_MS = 2_000

/** What answers how many entries a key has, by the command that wrote it, and by its kind. */
const COUNTERS: Readonly<Record<string, string>> = { HSET: 'HLEN', SADD: 'SCARD', ZADD: 'ZCARD', RPUSH: 'LLEN' }
const COUNTER_OF = { hash: 'HLEN', set: 'SCARD', zset: 'ZCARD' } as const

/*
 * How many of KEYS are as they were written. ARGV: of each the command that counts its entries, and how many they were. A hash
 * may have fields of a former version besides. A key of another kind is not as it was: its count is an error.
 */
const AS_WRITTEN = `
local found = 0
for i, key in ipairs(KEYS) do
  local counter, written = ARGV[2 * i - 1], tonumber(ARGV[2 * i])
  local count = redis.pcall(counter, key)
  if count == written or (counter == 'HLEN' and type(count) == 'number' and count > written) then found = found + 1 end
end
return found`

interface Kept {
  readonly counter: string
  /** ms since the Unix epoch; infinite: it does not run out */
  ends: number
  /** names; of a string and a list, which may hold one twice, their number alone */
  readonly entries: Set<string> | number
}

/** A question whether keys are as they were written: they are where the answer is `count`. */
export interface Question {
  readonly command: Command
  readonly count: number
}

/** Keys that must be there until they run out, each with its entries, as told by the commands that wrote them. */
export class KeptKeys {
  readonly #kept = new Map<string, Kept>()
  /** Hashes that are written one after the other mostly have the same fields, which are held once. */
  #fields = new Set<string>()

  /** @param contents of keys that never run out */
  constructor(contents: Contents = new Map()) {
    for (const [key, { kind, entries }] of contents)
      if (kind === 'string') this.#put(key, 'EXISTS', 1)
      else if (kind !== 'other') this.#put(key, COUNTER_OF[kind], new Set(entries.keys()))
  }

  /** Learns from commands that Redis took. @param isWatched default: every key */
  take(commands: readonly Command[], now: number, isWatched: (key: string) => boolean = () => true): void {
    for (const [name, first, ...rest] of commands) {
      const key = String(first)
      if (!isWatched(key)) continue
      const counter = COUNTERS[name]
      const kept = this.#kept.get(key)
      const endsIn = (seconds: unknown) => now + Number(seconds) * 1000
      if (name === 'SET') this.#put(key, 'EXISTS', 1, rest[1] === 'EX' ? endsIn(rest[2]) : Number.POSITIVE_INFINITY)
      else if (name === 'RPUSH') this.#put(key, 'LLEN', Number(kept?.entries ?? 0) + rest.length)
      else if (counter !== undefined) this.#put(key, counter, this.#with(kept, counter, namesIn(name, rest)))
      else if (name === 'EXPIRE' && kept) kept.ends = endsIn(rest[0])
      else if (['SREM', 'ZREM', 'HDEL'].includes(name) && kept) this.#without(key, kept, rest.map(String))
      else if (['DEL', 'UNLINK'].includes(name)) for (const gone of [key, ...rest]) this.#kept.delete(String(gone))
    }
  }

  /** Whether those that have not run out are as they were written, unless somebody meddled; each key stands in one question. */
  questions(now: number): { readonly keys: number; readonly questions: readonly Question[] } {
    const live = [...this.#kept].filter(([, { ends }]) => ends > now + MARGIN_MS)
    const questions = Array.from({ length: Math.ceil(live.length / PAGE) }, (_, page): Question => {
      const asked = live.slice(page * PAGE, (page + 1) * PAGE)
      const keys = asked.map(([key]) => key)
      const written = asked.flatMap(([, { counter, entries }]) => [counter, sizeOf(entries)])
      return { command: ['EVAL', AS_WRITTEN, keys.length, ...keys, ...written], count: keys.length }
    })
    return { keys: live.length, questions }
  }

  /** @throws StoreUnavailableError */
  async areAsWritten(redis: Redis, now: number): Promise<boolean> {
    const { questions } = this.questions(now)
    const answers = await pipelined(
      redis,
      questions.map(({ command }) => command),
    )
    return questions.every(({ count }, i) => answers[i] === count)
  }

  #put(key: string, counter: string, entries: Kept['entries'], ends?: number): void {
    this.#kept.set(key, { counter, entries, ends: ends ?? this.#kept.get(key)?.ends ?? Number.POSITIVE_INFINITY })
  }

  #with(kept: Kept | undefined, counter: string, names: readonly string[]): Set<string> {
    const known = typeof kept?.entries === 'object' ? kept.entries : new Set<string>()
    if (counter !== 'HLEN') return addAll(known, names)
    if (names.every((name) => known.has(name))) return known
    return this.#shared(addAll(new Set(known), names))
  }

  /** Redis drops a key with its last entry. */
  #without(key: string, { counter, entries, ends }: Kept, names: readonly string[]): void {
    if (typeof entries === 'number' || !names.some((name) => entries.has(name))) return
    const left = counter === 'HLEN' ? new Set(entries) : entries
    for (const name of names) left.delete(name)
    if (left.size > 0) this.#put(key, counter, counter === 'HLEN' ? this.#shared(left) : left, ends)
    else this.#kept.delete(key)
  }

  #shared(fields: Set<string>): Set<string> {
    const isSame = fields.size === this.#fields.size && [...fields].every((name) => this.#fields.has(name))
    if (!isSame) this.#fields = fields
    return this.#fields
  }
}

const sizeOf = (entries: Kept['entries']): number => (typeof entries === 'number' ? entries : entries.size)

function addAll(set: Set<string>, names: readonly string[]): Set<string> {
  for (const name of names) set.add(name)
  return set
}

/** SADD names members alone, HSET a value after each field, ZADD a score before each member. */
const namesIn = (command: string, args: readonly (string | number)[]): readonly string[] =>
  args.filter((_, i) => command === 'SADD' || i % 2 === (command === 'ZADD' ? 1 : 0)).map(String)
