import { type Command, pipelined, type Redis, scanKeys } from './redis.ts'

export type Kind = 'string' | 'hash' | 'set' | 'zset' | 'other'

/** What lies under one key: fields with texts, members, members with scores; a string is one field with an empty name. */
export interface Value {
  readonly kind: Kind
  readonly entries: ReadonlyMap<string, string | number | undefined>
}

/** Values of keys, as a replicated set writes them. */
export type Contents = ReadonlyMap<string, Value>

type Entries = readonly (readonly [name: string, value: string | number | undefined])[]

interface Access {
  readonly read: (key: string) => Command
  readonly entries: (answer: unknown) => Entries
  readonly put: (key: string, entries: Entries) => Command
  readonly take: (key: string, names: readonly string[]) => Command
}

const ACCESS: Readonly<Record<Exclude<Kind, 'other'>, Access>> = {
  string: {
    read: (key) => ['GET', key],
    entries: (answer) => [['', String(answer)]],
    put: (key, entries) => ['SET', key, entries[0]?.[1] ?? ''],
    take: (key) => ['DEL', key],
  },
  hash: {
    read: (key) => ['HGETALL', key],
    entries: (answer) => Object.entries(answer as Record<string, string>), // the driver makes an object of the pairs
    put: (key, entries) => ['HSET', key, ...entries.flatMap(([field, text]) => [field, text ?? ''])],
    take: (key, names) => ['HDEL', key, ...names],
  },
  set: {
    read: (key) => ['SMEMBERS', key],
    entries: (answer) => (answer as string[]).map((member) => [member, undefined]),
    put: (key, entries) => ['SADD', key, ...entries.map(([member]) => member)],
    take: (key, names) => ['SREM', key, ...names],
  },
  zset: {
    read: (key) => ['ZRANGE', key, 0, -1, 'WITHSCORES'],
    entries: (answer) =>
      (answer as string[]).flatMap((member, i, flat) => (i % 2 === 0 ? [[member, Number(flat[i + 1])] as const] : [])),
    put: (key, entries) => ['ZADD', key, ...entries.flatMap(([member, score]) => [score ?? 0, member])],
    take: (key, names) => ['ZREM', key, ...names],
  },
}

/** Keys read at once, and entries in one command. */
const PAGE = 500
const MAX_ENTRIES = 5_000

/** A Redis string. */
export const aString = (text: string): Value => ({ kind: 'string', entries: new Map([['', text]]) })
/** A Redis hash with these fields. */
export const aHash = (fields: Readonly<Record<string, string>>): Value => ({
  kind: 'hash',
  entries: new Map(Object.entries(fields)),
})
/** A Redis set with these members. */
export const aSet = (members: Iterable<string>): Value => ({
  kind: 'set',
  entries: new Map([...members].map((member) => [member, undefined])),
})

/** These keys and those of the patterns, as far as they are there; page by page, so that no other client waits long. */
export async function readContents(
  redis: Redis,
  keys: Iterable<string>,
  patterns: readonly string[] = [],
): Promise<Contents> {
  const wanted = new Set(keys)
  for (const pattern of patterns)
    for await (const page of scanKeys(redis, pattern)) for (const key of page) wanted.add(key)
  const contents = new Map<string, Value>()
  for (const page of pages([...wanted], PAGE)) {
    const types = await pipelined(
      redis,
      page.map((key) => ['TYPE', key]),
    )
    const present = page.flatMap((key, i) => (types[i] === 'none' ? [] : [{ key, access: accessTo(types[i]) }]))
    const answers = await pipelined(
      redis,
      present.map(({ key, access }) => access?.[1].read(key) ?? ['TYPE', key]),
    )
    for (const [i, { key, access }] of present.entries())
      contents.set(
        key,
        access
          ? { kind: access[0], entries: new Map(access[1].entries(answers[i])) }
          : { kind: 'other', entries: new Map() },
      )
  }
  return contents
}

const accessTo = (type: unknown) =>
  (Object.entries(ACCESS) as [Exclude<Kind, 'other'>, Access][]).find(([kind]) => kind === type)

/**
 * The commands that make what is stored into what is wanted, and nothing besides.
 * @returns for each key that is not as wanted the fields or members that moved; those of a key that goes: all it had
 */
export function differences(
  stored: Contents,
  wanted: Contents,
): { readonly commands: readonly Command[]; readonly moved: ReadonlyMap<string, readonly string[]> } {
  const commands: Command[] = []
  const moved = new Map<string, readonly string[]>()
  for (const [key, { entries }] of stored) {
    if (wanted.has(key)) continue
    commands.push(['DEL', key])
    moved.set(key, [...entries.keys()])
  }
  for (const [key, { kind, entries }] of wanted) {
    const access = kind === 'other' ? undefined : ACCESS[kind]
    if (!access) continue
    const before = stored.get(key)
    const isSameKind = before?.kind === kind
    const held: Value['entries'] = isSameKind ? before.entries : new Map()
    const surplus = [...held.keys()].filter((name) => !entries.has(name))
    const lacking = [...entries].filter(([name, value]) => !held.has(name) || held.get(name) !== value)
    if (before && !isSameKind) commands.push(['DEL', key])
    for (const page of pages(surplus, MAX_ENTRIES)) commands.push(access.take(key, page))
    for (const page of pages(lacking, MAX_ENTRIES)) commands.push(access.put(key, page))
    const names = [...surplus, ...lacking.map(([name]) => name)]
    if (names.length > 0) moved.set(key, names)
    else if (before && !isSameKind) moved.set(key, [])
  }
  return { commands, moved }
}

export function* pages<T>(list: readonly T[], size: number): Generator<readonly T[]> {
  for (let from = 0; from < list.length; from += size) yield list.slice(from, from + size)
}
