import fc from 'fast-check'
import type { Redis } from '../redis.ts'

// Without bias: every key has its turn, not the first and the last alone.
const place = fc.noBias(fc.nat({ max: 999 })).map((n) => n / 1000)

/** What somebody, or a broken disk, does to Redis; places are fractions of what is there. */
export const damage = fc.record({
  kind: fc.constantFrom(
    ...(['delete', 'alter', 'add', 'older', 'olderSome', 'flush', 'rename', 'exchange', 'otherType'] as const),
  ),
  at: place,
  to: place,
})
export type Damage = typeof damage extends fc.Arbitrary<infer T> ? T : never
/** Keys as they were at one moment. */
export type Dump = ReadonlyMap<string, Buffer>

/** What the damage is done to. */
export interface Damaged {
  readonly redis: Redis
  /** of the keys */
  readonly pattern: string
  /** what may be put into a set that it does not hold */
  readonly members: readonly string[]
  /** another text that reads well */
  readonly another: (text: string) => string
}

const pick = <T>(list: readonly T[], place: number): T | undefined => list[Math.floor(place * list.length)]

export async function dump({ redis, pattern }: Damaged): Promise<Dump> {
  const keys = (await redis.keys(pattern)).sort()
  const values = await Promise.all(keys.map((key) => redis.dumpBuffer(key)))
  return new Map(keys.map((key, i) => [key, values[i] ?? Buffer.alloc(0)]))
}

async function restore(redis: Redis, key: string, dumped: Buffer | undefined): Promise<void> {
  await redis.del(key)
  if (dumped) await redis.restore(key, 0, dumped)
}

/** All of it, and nothing else, is there again. */
export async function putBack({ redis, pattern }: Damaged, all: Dump): Promise<void> {
  for (const key of new Set([...(await redis.keys(pattern)), ...all.keys()])) await restore(redis, key, all.get(key))
}

/** One member, field or text of the key is gone, or another one. */
async function alter({ redis, members: ghosts, another }: Damaged, key: string, { kind, to }: Damage): Promise<void> {
  const type = await redis.type(key)
  const isAdded = kind === 'add'
  if (type === 'hash') {
    const field = pick(['data', ...(await redis.hkeys(key))], to) ?? 'data'
    const text = (await redis.hget(key, field)) ?? ''
    if (isAdded) await redis.hset(key, `${field}2`, text)
    else if (to < 0.3) await redis.hdel(key, field)
    else await redis.hset(key, field, to < 0.6 ? another(text) : text.slice(1))
  } else if (type === 'set' || type === 'zset') {
    const members = type === 'set' ? await redis.smembers(key) : await redis.zrange(key, '0', '-1')
    const member = (isAdded ? pick(ghosts, to) : pick(members, to)) ?? ''
    if (type === 'set') await (isAdded ? redis.sadd(key, member) : redis.srem(key, member))
    else await (isAdded ? redis.zadd(key, 1, member) : redis.zrem(key, member))
  } else if (type === 'string') {
    const text = (await redis.get(key)) ?? ''
    await redis.set(key, isAdded ? `${text}1` : to < 0.5 ? another(text) : text.slice(0, -1) || '0')
  }
}

export async function harm(damaged: Damaged, one: Damage, history: readonly Dump[]): Promise<void> {
  const { redis, pattern } = damaged
  const keys = (await redis.keys(pattern)).sort()
  const key = pick(keys, one.at)
  const other = pick(keys, one.to)
  const former = pick(history, one.to) ?? new Map<string, Buffer>()
  if (one.kind === 'flush') await redis.flushall()
  else if (one.kind === 'olderSome') {
    for (const [i, name] of [...new Set([...keys, ...former.keys()])].entries())
      if ((i * 7 + Math.floor(one.at * 100)) % 3 > 0) await restore(redis, name, former.get(name))
  } else if (key === undefined || other === undefined) return
  else if (one.kind === 'older') await restore(redis, key, former.get(key))
  else if (one.kind === 'delete') await redis.del(key)
  else if (one.kind === 'rename') await redis.rename(key, `${key}x`)
  else if (one.kind === 'exchange') await (key === other ? redis.del(key) : redis.copy(key, other, 'REPLACE'))
  else if (one.kind === 'otherType') await redis.set(key, 'x')
  else await alter(damaged, key, one)
}
