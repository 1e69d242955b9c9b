import type { Redis } from '#redis'
import type { PolicyDocument } from '../types.ts'

/*
 * Writes policies as the original's controller does (specification, section 5): a pipeline instead of a transaction, both
 * channels, no generation.
 */

const hashOf = (key: string) => `policy:${key.replace('/', ':')}`

function subjectIndexes(document: PolicyDocument): string[] {
  if (!document.enabled) return []
  return [
    ...document.users.map((name) => `policy:user:${name}`),
    ...document.groups.map((name) => `policy:group:${name}`),
    ...document.service_accounts.map((name) => `policy:sa:${name}`),
    ...(document.custom_resource_types ?? []).map((name) => `policy:customtype:${name}`),
  ]
}

export async function storeAsOriginal(redis: Redis, document: PolicyDocument): Promise<void> {
  const key = `${document.namespace}/${document.policy_name}`
  const hash = hashOf(key)
  const text = await redis.hget(hash, 'data')
  const before = text === null ? [] : subjectIndexes(JSON.parse(text) as PolicyDocument)
  const after = subjectIndexes(document)
  const pipeline = redis.pipeline()
  const { priority, effect, enabled, hash: specHash, compiled_at } = document
  pipeline.hset(hash, {
    data: JSON.stringify(document),
    priority,
    effect,
    enabled: String(enabled),
    hash: specHash,
    compiled_at,
  })
  for (const index of before.filter((one) => !after.includes(one)))
    pipeline.srem(index, hash).zrem(`${index}:sorted`, hash)
  for (const index of after) pipeline.sadd(index, hash).zadd(`${index}:sorted`, priority, hash)
  pipeline.sadd('policies:all', hash).zadd('policies:by:priority', priority, hash)
  if (enabled) pipeline.sadd('policies:enabled', hash)
  else pipeline.srem('policies:enabled', hash)
  pipeline.srem('policies:effect:allow', hash).srem('policies:effect:deny', hash)
  pipeline.sadd(`policies:effect:${effect.toLowerCase()}`, hash)
  await pipeline.exec()
  await publish(redis, 'compiled', key)
}

export async function removeAsOriginal(redis: Redis, key: string): Promise<void> {
  const hash = hashOf(key)
  const text = await redis.hget(hash, 'data')
  if (text === null) return
  const pipeline = redis.pipeline()
  for (const index of subjectIndexes(JSON.parse(text) as PolicyDocument))
    pipeline.srem(index, hash).zrem(`${index}:sorted`, hash)
  for (const index of ['policies:all', 'policies:enabled', 'policies:effect:allow', 'policies:effect:deny'])
    pipeline.srem(index, hash)
  pipeline.zrem('policies:by:priority', hash).del(hash)
  await pipeline.exec()
  // Twice, as the original does.
  await publish(redis, 'deleted', key)
  await publish(redis, 'deleted', key)
}

async function publish(redis: Redis, action: string, key: string): Promise<void> {
  const timestamp = '2026-01-02T03:04:05Z'
  await redis.publish('policy-changes', JSON.stringify({ action, policy: key, timestamp }))
  await redis.publish('policy-events', JSON.stringify({ type: `policy.${action}`, policy: key, timestamp }))
}
