import { isMap, type Json, own, setOwn } from '../schema/json.ts'
import { PatchError } from './error.ts'

/** Deeper than any real object; keeps a hostile patch from exhausting the stack. */
const MAX_DEPTH = 500

/**
 * Applies a JSON merge patch (RFC 7386): null removes, maps merge, everything else replaces. Neither argument is changed.
 * @throws PatchError for a patch nested deeper than 500 levels
 */
export function applyMergePatch(doc: unknown, patch: unknown): unknown {
  return merged(doc, patch, 0)
}

function merged(target: unknown, patch: unknown, depth: number): unknown {
  if (!isMap(patch)) return patch
  if (depth > MAX_DEPTH) throw new PatchError(413, `the patch is nested deeper than ${MAX_DEPTH} levels`)
  const result: Json = isMap(target) ? { ...target } : {}
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key]
    else setOwn(result, key, merged(own(result, key), value, depth + 1))
  }
  return result
}
