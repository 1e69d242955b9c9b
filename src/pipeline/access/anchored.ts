/** Every alternative says where it begins: `^`, `\A`, or openly `.*`. A guess where groups are nested; it is for a warning. */
export function isAnchored(pattern: string): boolean {
  return alternatives(pattern).every((part) => {
    const text = part.replace(/^(\(\?[a-zA-Z-]+\))+/, '')
    const group = /^\((?:\?(?:P?<\w+>|[a-zA-Z-]*:))?/.exec(text)
    const end = group ? closing(text) : -1
    if (group && end > 0) return !/^[?*{]/.test(text.slice(end + 1)) && isAnchored(text.slice(group[0].length, end))
    return /^(\^|\\A|\.[*+])/.test(text)
  })
}

/** Splits at the bars that are in no group, no class and not escaped. */
export function alternatives(pattern: string): readonly string[] {
  const cuts = [...syntax(pattern)]
    .filter(({ depth, character }) => depth === 0 && character === '|')
    .map(({ at }) => at)
  return [...cuts, pattern.length].map((end, i) => pattern.slice(i === 0 ? 0 : (cuts[i - 1] ?? 0) + 1, end))
}

/** Where the group that a pattern begins with ends; -1 where it does not. */
export const closing = (pattern: string): number =>
  [...syntax(pattern)].find(({ depth, character }) => depth === 0 && character === ')')?.at ?? -1

/** Characters that are syntax, with the depth of groups they stand in. */
function* syntax(
  pattern: string,
): Generator<{ readonly at: number; readonly character: string; readonly depth: number }> {
  let depth = 0
  let inClass = false
  for (let at = 0; at < pattern.length; at++) {
    const character = pattern.charAt(at)
    if (character === '\\') at++
    else if (inClass) inClass = character !== ']'
    else {
      if (character === '[') inClass = true
      if (character === ')') depth--
      yield { at, character, depth }
      if (character === '(') depth++
    }
  }
}
