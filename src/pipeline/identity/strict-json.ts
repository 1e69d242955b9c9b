/**
 * A JSON object whose every key stands once, at every depth. A key that stands twice has no one meaning: who signed a token
 * may have checked the first, while JSON.parse takes the last.
 * @returns undefined for anything else, bytes that are no UTF-8 and depths beyond 32 included
 */
export function parseStrictObject(bytes: Uint8Array): Readonly<Record<string, unknown>> | undefined {
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
    const value: unknown = JSON.parse(text)
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
    return keysStandOnce(text) ? (value as Readonly<Record<string, unknown>>) : undefined // an object: checked above
  } catch {
    // No UTF-8 or no JSON: the answer is "undefined", as for every other text that is no such object.
    return undefined
  }
}

const maxDepth = 32
const token = /"(?:[^"\\]|\\.)*"|[{}[\]:,]/g

/** For text that JSON.parse accepted, so that strings and brackets are all there is to look at. */
function keysStandOnce(text: string): boolean {
  const open: (Set<string> | null)[] = []
  let last = ''
  for (const [part] of text.matchAll(token)) {
    if (part === '{' || part === '[') {
      if (open.push(part === '{' ? new Set() : null) > maxDepth) return false
    } else if (part === '}' || part === ']') open.pop()
    else if (part === ':') {
      // Escapes are read first: "\u0073ub" is "sub".
      const key = JSON.parse(last) as string // `last` is a string literal here
      const keys = open.at(-1)
      if (keys?.has(key)) return false
      keys?.add(key)
    }
    last = part
  }
  return true
}
