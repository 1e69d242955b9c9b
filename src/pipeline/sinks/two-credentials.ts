/**
 * A warning where a Secret holds more than one sort of credentials: `kubectl apply` leaves keys of before that the manifest no longer
 * names, and the one that is shown may be the old one.
 * @param sorts keys of the Secret, one for each sort, in the order in which they go before each other
 */
export function twoCredentials(
  credentials: Readonly<Record<string, Uint8Array>>,
  sorts: readonly string[],
): readonly string[] {
  const [shown, ...rest] = sorts.filter((key) => (credentials[key]?.length ?? 0) > 0)
  if (shown === undefined || rest.length === 0) return []
  return [
    `the Secret holds ${[shown, ...rest].join(' and ')}: ${shown} is what is shown; take out of it what is not meant, as kubectl apply leaves keys that a manifest does not name`,
  ]
}
