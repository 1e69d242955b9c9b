import { documentText } from '#model'
import { type Command, digestOf, pipelined, type Redis, scanKeys, sealText } from '#redis'
import {
  announce,
  DIGEST,
  type Entry,
  entriesOf,
  fieldsOf,
  GENERATION,
  GLOBAL_ENTRIES,
  hashKey,
  keyOf,
  keyOfHash,
  mergedStatus,
  readStatus,
  sha1Of,
  transitionOf,
} from './redis-layout.ts'
import type { PolicyDocument } from './types.ts'

/** What stands under one key. */
type Value =
  | { readonly kind: 'hash'; readonly fields: Readonly<Record<string, string>> }
  | { readonly kind: 'set'; readonly members: ReadonlyMap<string, undefined> }
  | { readonly kind: 'zset'; readonly members: ReadonlyMap<string, number> }
  | { readonly kind: 'other' }

/** All that Redis holds of policies, by key. */
export interface Everything {
  /** undefined: missing, or something else */
  readonly generation: string | undefined
  readonly seal: string | undefined
  readonly values: ReadonlyMap<string, Value>
}

interface Policy {
  readonly document: PolicyDocument
  readonly status: Readonly<Record<string, unknown>>
}

/** Keys read at once. */
const PAGE = 500
/** Members in one command. */
const MEMBERS = 5_000

/** Reads hashes and indexes, whatever they are called; page by page, so that nobody waits long. */
export async function readEverything(redis: Redis): Promise<Everything> {
  const keys = new Set<string>(GLOBAL_ENTRIES.map(({ index }) => index))
  for await (const page of scanKeys(redis, 'policy:*')) for (const key of page) keys.add(key)
  const values = new Map<string, Value>()
  const all = [...keys]
  for (let from = 0; from < all.length; from += PAGE) {
    const page = all.slice(from, from + PAGE)
    const types = (await pipelined(
      redis,
      page.map((key) => ['TYPE', key]),
    )) as string[]
    const present = page.flatMap((key, i) => (types[i] === 'none' ? [] : [{ key, type: types[i] ?? '' }]))
    const answers = await pipelined(
      redis,
      present.map(({ key, type }) => READS[type]?.(key) ?? ['TYPE', key]),
    )
    present.forEach(({ key, type }, i) => {
      values.set(key, readValue(type, answers[i]))
    })
  }
  return { generation: await textAt(redis, GENERATION), seal: await textAt(redis, DIGEST), values }
}

async function textAt(redis: Redis, key: string): Promise<string | undefined> {
  const [type] = await pipelined(redis, [['TYPE', key]])
  if (type !== 'string') return undefined
  const [text] = await pipelined(redis, [['GET', key]])
  return typeof text === 'string' ? text : undefined
}

const READS: Readonly<Record<string, (key: string) => Command>> = {
  hash: (key) => ['HGETALL', key],
  set: (key) => ['SMEMBERS', key],
  zset: (key) => ['ZRANGE', key, 0, -1, 'WITHSCORES'],
}

function readValue(type: string, answer: unknown): Value {
  if (type === 'hash') return { kind: 'hash', fields: fieldsOfAnswer(answer) }
  if (type === 'set')
    return { kind: 'set', members: new Map((answer as string[]).map((member) => [member, undefined])) }
  if (type !== 'zset') return { kind: 'other' }
  const flat = answer as string[]
  const members = new Map<string, number>()
  for (let i = 0; i < flat.length; i += 2) members.set(flat[i] ?? '', Number(flat[i + 1]))
  return { kind: 'zset', members }
}

// The driver gives an object or a flat list, after how it was asked.
function fieldsOfAnswer(answer: unknown): Readonly<Record<string, string>> {
  if (!Array.isArray(answer)) return answer as Readonly<Record<string, string>>
  const pairs = answer.flatMap((field: string, i) => (i % 2 === 0 ? [[field, String(answer[i + 1])] as const] : []))
  return Object.fromEntries(pairs)
}

/**
 * What makes Redis hold exactly these policies: pure, one transaction.
 * @returns no commands where everything is as it should be; `mended` are keys of policies, sorted
 */
export function differences(
  { values, generation, seal }: Everything,
  policies: readonly Policy[],
  now: number,
): { readonly commands: readonly Command[]; readonly mended: readonly string[] } {
  const mended = new Set<string>()
  const commands: Command[] = []
  const announcements: Command[] = []
  const wantedHashes = new Set(policies.map(({ document }) => hashKey(keyOf(document))))

  for (const { document, status } of policies) {
    const key = keyOf(document)
    const stored = values.get(hashKey(key))
    const held: Readonly<Record<string, string>> = stored?.kind === 'hash' ? stored.fields : {}
    const before = readStatus(held.status)
    const after = mergedStatus({}, status)
    const wanted: Readonly<Record<string, string>> = { ...fieldsOf(document), status: documentText(after) }
    const moved = Object.entries(wanted).filter(([field, value]) => held[field] !== value)
    const foreign = Object.keys(held).filter((field) => !(field in wanted))
    const transition = transitionOf(before, after)
    if (stored && stored.kind !== 'hash') commands.push(['DEL', hashKey(key)])
    if (foreign.length > 0) commands.push(['HDEL', hashKey(key), ...foreign])
    if (moved.length > 0) commands.push(['HSET', hashKey(key), ...moved.flat()])
    if (moved.some(([field]) => field !== 'status')) {
      mended.add(key)
      announcements.push(...announce('compiled', key, now))
    }
    if (transition) announcements.push(...announce(transition, key, now))
  }

  const wantedIndexes = indexesOf(policies)
  for (const [key, value] of values) {
    if (wantedHashes.has(key) || wantedIndexes.has(key)) continue
    commands.push(['DEL', key])
    if (value.kind === 'hash') {
      mended.add(keyOfHash(key))
      announcements.push(...announce('deleted', keyOfHash(key), now))
    } else if (value.kind !== 'other') {
      for (const member of value.members.keys()) mended.add(keyOfHash(member))
    }
  }
  for (const [index, wanted] of wantedIndexes) commands.push(...indexCommands(index, wanted, values.get(index), mended))

  const digest = digestOf(policies.map(({ document }) => [hashKey(keyOf(document)), sha1Of(document)]))
  const isSealed = generation !== undefined && seal === sealText(generation, policies.length, digest)
  if (!isSealed || mended.size > 0) {
    // Above every count of a former life of this Redis, so that no reader takes the new for the old.
    const next = String(Math.max(now, (Number(generation) || 0) + 1))
    commands.push(['SET', GENERATION, next], ['SET', DIGEST, sealText(next, policies.length, digest)])
  }
  return { commands: [...commands, ...announcements], mended: [...mended].sort() }
}

type Members = ReadonlyMap<string, number | undefined>

function indexesOf(policies: readonly Policy[]): ReadonlyMap<string, Members> {
  const indexes = new Map<string, Map<string, Entry['score']>>()
  for (const { document } of policies) {
    for (const { index, score } of entriesOf(document)) {
      const members = indexes.get(index) ?? new Map<string, Entry['score']>()
      indexes.set(index, members.set(hashKey(keyOf(document)), score))
    }
  }
  return indexes
}

function indexCommands(index: string, wanted: Members, value: Value | undefined, mended: Set<string>): Command[] {
  const isSorted = [...wanted.values()][0] !== undefined
  const isRightKind = value?.kind === (isSorted ? 'zset' : 'set')
  const held: Members = isRightKind ? value.members : new Map()
  const commands: Command[] = value && !isRightKind ? [['DEL', index]] : []
  const surplus = [...held.keys()].filter((member) => !wanted.has(member))
  const lacking = [...wanted].filter(([member, score]) => !held.has(member) || held.get(member) !== score)
  for (const member of surplus) mended.add(keyOfHash(member))
  for (const [member] of lacking) mended.add(keyOfHash(member))
  for (let from = 0; from < surplus.length; from += MEMBERS)
    commands.push([isSorted ? 'ZREM' : 'SREM', index, ...surplus.slice(from, from + MEMBERS)])
  for (let from = 0; from < lacking.length; from += MEMBERS) {
    const page = lacking.slice(from, from + MEMBERS)
    commands.push(
      isSorted
        ? ['ZADD', index, ...page.flatMap(([member, score]) => [score ?? 0, member])]
        : ['SADD', index, ...page.map(([member]) => member)],
    )
  }
  return commands
}
