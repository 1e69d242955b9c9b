import { KubeconfigError } from '#kube'

const MAX_LISTED = 20

/**
 * Contexts that names and globs choose, each once, in the order of the kubeconfig. `*` is any letters, `?` one.
 * @throws KubeconfigError where one chooses none: what was meant is then not read, and that must not pass for an empty answer
 */
export function chooseContexts(patterns: readonly string[], known: readonly string[]): readonly string[] {
  const chosen = new Set<string>()
  for (const pattern of patterns) {
    const matches = known.includes(pattern)
      ? [pattern]
      : known.filter((name) => isGlob(pattern) && globTest(pattern).test(name))
    if (matches.length === 0) throw noContext(pattern, known)
    for (const name of matches) chosen.add(name)
  }
  return known.filter((name) => chosen.has(name))
}

/** Whether a pattern may choose several. */
export const isGlob = (pattern: string): boolean => /[*?]/.test(pattern)

const globTest = (pattern: string): RegExp =>
  // Runs of stars are one: many in a row would be tried in every way.
  new RegExp(
    `^${pattern
      .replace(/\*+/g, '*')
      .replace(/[.+^${}()|[\]\\]/g, '\\$&')
      .replaceAll('*', '.*')
      .replaceAll('?', '.')}$`,
    's',
  )

function noContext(pattern: string, known: readonly string[]): KubeconfigError {
  const what = isGlob(pattern)
    ? `no context matches ${JSON.stringify(pattern)}`
    : `there is no context ${JSON.stringify(pattern)}`
  const more = known.length > MAX_LISTED ? ` and ${known.length - MAX_LISTED} more` : ''
  return new KubeconfigError(
    known.length === 0
      ? `${what}: the kubeconfig has none`
      : `${what}; there are: ${known.slice(0, MAX_LISTED).join(', ')}${more}`,
  )
}
