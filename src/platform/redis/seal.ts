import { createHash } from 'node:crypto'

/*
 * A seal says of what revision a set of documents is, how many they are and the digest of them all. It is written in the
 * transaction that writes the documents, so that whoever reads can tell that nothing is missing, altered or older. It guards
 * against loss, not against somebody who may write to Redis and knows how it is made.
 */

/** One document of a sealed set: its name, and the SHA-1 of its text. */
export type Sealed = readonly [name: string, sha1: string]

/** Stands for the digest of a document that is listed and not there, or no text. */
export const MISSING = '-'
/** Stands for the digest of a document that a write leaves as it is. */
export const KEPT = '='

/*
 * `lineOf(name, sha1)`, and `digestOf(lines)`, the same whatever the order of the lines. They are ordered by numbers, since a
 * server orders text by its locale.
 */
const FUNCTIONS = `
local function lineOf(name, sha1) return #name .. ':' .. name .. sha1 end
local function digestOf(lines)
  local order, digests = {}, {}
  for i = 1, #lines do
    local one = redis.sha1hex(lines[i])
    order[i] = tonumber(string.sub(one, 1, 12), 16)
    digests[order[i]] = one
  end
  table.sort(order)
  for i = 1, #order do order[i] = digests[order[i]] end
  return redis.sha1hex(table.concat(order))
end
`

/**
 * Scripts over a sealed set, each one step of the server, so one moment. KEYS: set of names, generation, seal.
 *
 * `look`, ARGV: the digest that the asker knows. Answers generation, seal, digest and number of documents; then name and SHA-1 of
 * each, left out where the digest is the one known.
 *
 * `beside`, ARGV: a name, and the SHA-1 that its document is about to have, '' where it is to go. Answers whether the seal holds now
 * (1), since what is damaged must not be sealed; the digest of the documents now; number and digest of them after the write.
 *
 * @param read reads the document called `name`, in Lua, such as `redis.pcall('GET', name)`
 */
export function sealScripts(read: string): { readonly look: string; readonly beside: string } {
  const listed = `${FUNCTIONS}
local names = redis.call('SMEMBERS', KEYS[1])
local digests, lines = {}, {}
for i = 1, #names do
  local name = names[i]
  local text = ${read}
  digests[i] = type(text) == 'string' and redis.sha1hex(text) or '${MISSING}'
  lines[i] = lineOf(name, digests[i])
end
`
  const look = `${listed}
local digest = digestOf(lines)
local answer = {redis.call('GET', KEYS[2]), redis.call('GET', KEYS[3]), digest, #names}
if digest ~= ARGV[1] then
  for i = 1, #names do
    answer[#answer + 1] = names[i]
    answer[#answer + 1] = digests[i]
  end
end
return answer`
  const beside = `${listed}
local after = {}
for i = 1, #names do
  if names[i] ~= ARGV[1] or ARGV[2] == '${KEPT}' then after[#after + 1] = lines[i] end
end
if ARGV[2] ~= '' and ARGV[2] ~= '${KEPT}' then after[#after + 1] = lineOf(ARGV[1], ARGV[2]) end
local now = digestOf(lines)
local seal = (redis.call('GET', KEYS[2]) or '') .. ' ' .. #names .. ' ' .. now
return {redis.call('GET', KEYS[3]) == seal and 1 or 0, now, #after, digestOf(after)}`
  return { look, beside }
}

export const sha1 = (text: string | Buffer): string => createHash('sha1').update(text).digest('hex')

/** Equals the digest of the scripts. */
export function digestOf(documents: Iterable<Sealed>): string {
  const lines = [...documents].map(([name, digest]) => sha1(`${Buffer.byteLength(name)}:${name}${digest}`))
  return sha1(lines.sort().join(''))
}

/** The text of a seal. */
export const sealText = (generation: string, count: number, digest: string): string =>
  `${generation} ${count} ${digest}`

/** What is wrong with a set of documents; undefined where they are exactly those of the seal. */
export function sealFault(
  seal: string | undefined,
  found: { readonly generation: string; readonly count: number; readonly digest: string },
): string | undefined {
  if (seal === sealText(found.generation, found.count, found.digest)) return undefined
  const [generation, count] = seal?.split(' ') ?? []
  if (generation !== found.generation)
    return 'the digest of this generation is missing: it was lost, or an older version of the manager writes'
  return `they are not those that the manager wrote: ${count} were written, ${found.count} are listed, or one of them is another`
}
