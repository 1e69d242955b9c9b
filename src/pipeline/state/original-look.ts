import type { ClusterName } from '#model'
import { type Redis, redisUnavailable } from '#redis'

/** Why a key has no text: it is not of its documented type, or larger than anything an original manager writes. */
export type NoText = 'wrong_type' | 'too_large'

/** The documented keys of one cluster, as they were at one moment. What is not there is in no map. */
export interface Look {
  /** over all that was read; equal ones are equal */
  readonly digest: string
  /** by what follows `cluster:<name>:`, or `node:<node>`, or `custom:<source>:resources`; `event:<index>`, newest first */
  readonly texts: ReadonlyMap<string, string | { readonly why: NoText }>
  /** names of nodes, with or without a document */
  readonly nodes: readonly string[]
  /** of the set, which is asked where the document that names them is gone */
  readonly namespaces: readonly string[]
}

export interface LookLimits {
  /** of one document */
  readonly documentBytes: number
  /** of all of a cluster together */
  readonly clusterBytes: number
}

export const lookLimits: LookLimits = { documentBytes: 32 * 2 ** 20, clusterBytes: 128 * 2 ** 20 }

/** More members of a set are not asked for: no cluster has so many nodes, no hub so many sources. */
const MAX_MEMBERS = 20_000

/*
 * One step of the server, so one moment. Lengths are asked before texts, so nothing too large is ever read. Where the digest is
 * what the asker knows, the texts are left out. Answer: digest, then pairs of a label and a text with its sort in front.
 */
const LOOK = `
local name, known, most, budget = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local path = 'cluster:' .. name .. ':'
local answer, sums = {''}, {}
local function say(label, text)
  answer[#answer + 1] = label
  answer[#answer + 1] = text
  sums[#sums + 1] = #label .. ':' .. label .. redis.sha1hex(text)
end
local function take(label, length, read)
  if type(length) ~= 'number' then return say(label, '?') end
  if length == 0 then return end
  if length > most or length > budget then return say(label, '>') end
  budget = budget - length
  say(label, '=' .. read())
end
local function text(label, key)
  take(label, redis.pcall('STRLEN', key), function() return redis.call('GET', key) end)
end
local function members(label, key)
  local count = redis.pcall('SCARD', key)
  if type(count) ~= 'number' then say(label, '?') return {} end
  if count > ${MAX_MEMBERS} then say(label, '>') return {} end
  local all = redis.call('SMEMBERS', key)
  table.sort(all)
  return all
end
for _, label in ipairs({'spec', 'status', 'info', 'metrics', 'namespaces', 'operators', 'cluster_operators'}) do
  text(label, path .. label)
end
if redis.call('EXISTS', path .. 'namespaces') == 0 then
  for _, namespace in ipairs(members('namespaces:set', path .. 'namespaces:set')) do say('namespace:' .. namespace, '=') end
end
for _, node in ipairs(members('nodes', path .. 'nodes')) do
  say('name:' .. node, '=')
  local key = path .. 'node:' .. node
  take('node:' .. node, redis.pcall('HSTRLEN', key, 'current'), function() return redis.call('HGET', key, 'current') end)
end
for _, source in ipairs(members('sources', 'metricsources:enabled')) do
  for _, part in ipairs({':resources', ':aggregations'}) do
    text('custom:' .. source .. part, path .. 'custom:' .. source .. part)
  end
end
local events = 'events:' .. name
local length = redis.pcall('LLEN', events)
if type(length) ~= 'number' then say('events', '?') elseif length > 0 then
  local size = redis.pcall('MEMORY', 'USAGE', events, 'SAMPLES', 0)
  if type(size) == 'number' and size > most then say('events', '>') else
    for at, event in ipairs(redis.call('LRANGE', events, 0, 99)) do
      take('event:' .. (at - 1), #event, function() return event end)
    end
  end
end
answer[1] = redis.sha1hex(table.concat(sums, '\\n'))
if answer[1] == known then return {answer[1]} end
return answer`

/**
 * Looks at the documented keys of one cluster.
 * @param known digest of a former look
 * @returns undefined where nothing changed since
 * @throws StoreUnavailableError
 */
export async function lookAt(
  redis: Redis,
  name: ClusterName,
  known: string,
  limits: LookLimits,
): Promise<Look | undefined> {
  const { documentBytes, clusterBytes } = limits
  let answer: unknown
  try {
    answer = await redis.eval(LOOK, 0, name, known, documentBytes, clusterBytes)
  } catch (error) {
    throw redisUnavailable(error)
  }
  const [digest = '', ...pairs] = answer as string[]
  if (digest === known) return undefined
  const texts = new Map<string, string | { readonly why: NoText }>()
  const nodes: string[] = []
  const namespaces: string[] = []
  for (let i = 0; i + 1 < pairs.length; i += 2) {
    const [label = '', text = ''] = [pairs[i], pairs[i + 1]]
    if (label.startsWith(NAME)) nodes.push(label.slice(NAME.length))
    else if (label.startsWith(NAMESPACE)) namespaces.push(label.slice(NAMESPACE.length))
    else if (text.startsWith('=')) texts.set(label, text.slice(1))
    else texts.set(label, { why: text === '?' ? 'wrong_type' : 'too_large' })
  }
  return { digest, texts, nodes, namespaces }
}

const NAME = 'name:'
const NAMESPACE = 'namespace:'
