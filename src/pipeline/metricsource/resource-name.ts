const IRREGULAR: Readonly<Record<string, string>> = { endpoints: 'endpoints' }

/**
 * The plural name of a kind as its author probably chose it: for where the cluster cannot be asked. A cluster's discovery knows,
 * this guesses.
 */
export function guessPlural(kind: string): string {
  const singular = kind.toLowerCase()
  if (Object.hasOwn(IRREGULAR, singular)) return IRREGULAR[singular] ?? singular
  if (/(?:s|x|ch|sh)$/.test(singular)) return `${singular}es`
  return /[^aeiou]y$/.test(singular) ? `${singular.slice(0, -1)}ies` : `${singular}s`
}

/** Group and version of `v1` or `apps/v1`. */
export function splitApiVersion(apiVersion: string): { readonly group: string; readonly version: string } {
  const slash = apiVersion.indexOf('/')
  return slash < 0
    ? { group: '', version: apiVersion }
    : { group: apiVersion.slice(0, slash), version: apiVersion.slice(slash + 1) }
}
