import { createHash } from 'node:crypto'

/*
 * A seal says of what revision a set of documents is, how many they are and the digest of them all. It is written in the
 * transaction that writes the documents, so that whoever reads can tell that nothing is missing, altered or older. It guards
 * against loss, not against somebody who may write to Redis and knows how it is made.
 */

/** One document of a sealed set: its name, and the SHA-1 of its text. */
export type Sealed = readonly [name: string, sha1: string]

/**
 * For scripts: `lineOf(name, sha1)`, and `digestOf(lines)`, the same whatever the order of the lines. They are ordered by
 * numbers, since a server orders text by its locale.
 */
export const SEAL_SCRIPT = `
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

const sha1 = (text: string): string => createHash('sha1').update(text).digest('hex')

/** Equals `digestOf` of the script. */
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
