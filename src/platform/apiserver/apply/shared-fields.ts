import { LRUCache } from 'lru-cache'
import type { Json } from '../schema/json.ts'

/** Kinds have a handful of writers, and each of them sets the same fields of every object. */
const MAX_KEPT = 2_000
const MAX_CHARS = 8_192

const known = new LRUCache<string, Json>({ max: MAX_KEPT })

/**
 * The same fields once for all objects that have them: with ten thousand members the trees that say who set which field were a fifth of
 * all that lived. Frozen, as whoever changed one would change it everywhere.
 */
export function sharedFields(fields: Json): Json {
  const text = JSON.stringify(fields)
  if (text.length > MAX_CHARS) return fields
  const before = known.get(text)
  if (before) return before
  known.set(text, frozen(fields))
  return fields
}

function frozen(fields: Json): Json {
  for (const below of Object.values(fields)) if (typeof below === 'object' && below !== null) frozen(below as Json)
  return Object.freeze(fields)
}
