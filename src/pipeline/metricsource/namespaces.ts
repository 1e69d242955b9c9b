/** Which namespaces a source reads. */
export interface NamespaceChoice {
  readonly wants: (name: string) => boolean
  /** the names that are wanted, where all are written out */
  readonly exact: readonly string[] | undefined
  readonly wantsAll: boolean
}

export const allNamespaces: NamespaceChoice = { wants: () => true, exact: undefined, wantsAll: true }

/** No includes mean all; what is excluded is out, whatever includes it. Time is linear in the name for each pattern. */
export function chooseNamespaces(include: readonly string[], exclude: readonly string[]): NamespaceChoice {
  const included = anyOf(include)
  const excluded = anyOf(exclude)
  const includesAll = include.length === 0 || include.some(isAnything)
  if (includesAll && exclude.length === 0) return allNamespaces
  const wants = (name: string) => !excluded(name) && (includesAll || included(name))
  const isExact = include.length > 0 && !include.some(hasWildcard)
  return { wants, exact: isExact ? [...new Set(include)].filter(wants) : undefined, wantsAll: false }
}

const hasWildcard = (pattern: string) => pattern.includes('*') || pattern.includes('?')
const isAnything = (pattern: string) => /^\*+$/.test(pattern)

function anyOf(patterns: readonly string[]): (name: string) => boolean {
  const names = new Set(patterns.filter((pattern) => !hasWildcard(pattern)))
  const wildcards = [...new Set(patterns.filter(hasWildcard))].map(wildcard)
  return (name) => names.has(name) || wildcards.some((matches) => matches(name))
}

/** `*` is any text, `?` any one character; everything else is itself, and the whole name must fit. No backtracking. */
export function wildcard(pattern: string): (name: string) => boolean {
  const [first = '', ...rest] = pattern.split('*')
  const last = rest.pop()
  const middle = rest.filter(Boolean)
  return (name) => {
    if (!fits(first, name, 0)) return false
    if (last === undefined) return name.length === first.length
    const end = name.length - last.length
    if (end < first.length || !fits(last, name, end)) return false
    let at = first.length
    for (const piece of middle) {
      while (at + piece.length <= end && !fits(piece, name, at)) at++
      if (at + piece.length > end) return false
      at += piece.length
    }
    return true
  }
}

function fits(piece: string, name: string, at: number): boolean {
  if (at + piece.length > name.length) return false
  for (let i = 0; i < piece.length; i++) if (piece[i] !== '?' && piece[i] !== name[at + i]) return false
  return true
}
