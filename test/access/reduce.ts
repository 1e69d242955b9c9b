/** A JSON value without the part at this path. */
function without(value: unknown, [first, ...rest]: readonly (string | number)[]): unknown {
  if (first === undefined) return value
  if (Array.isArray(value)) {
    if (rest.length === 0) return value.filter((_, index) => index !== first)
    return value.map((one, index) => (index === first ? without(one, rest) : one))
  }
  const entries = Object.entries(value as object)
  if (rest.length === 0) return Object.fromEntries(entries.filter(([key]) => key !== first))
  return Object.fromEntries(entries.map(([key, one]) => [key, key === first ? without(one, rest) : one]))
}

/** Keys without which a world is none, or says something else by accident. */
const needed = new Set([
  ...[
    'seed',
    'semantics',
    'now',
    'administrators',
    'policies',
    'principals',
    'clusters',
    'name',
    'mark',
    'labels',
    'nodes',
  ],
  ...[
    'namespaces',
    'deployments',
    'operators',
    'clusterOperators',
    'pods',
    'events',
    'alerts',
    'custom',
    'heartbeats',
    'users',
  ],
  ...[
    'groups',
    'namespace',
    'spec',
    'byHand',
    'identity',
    'subjects',
    'access',
    'effect',
    'scope',
    'clusters',
    'selector',
  ],
  ...[
    'type',
    'username',
    'email',
    'isServiceAccount',
    'method',
    'data',
    'ready',
    'role',
    'cpu',
    'used',
    'failed',
    'displayName',
  ],
  ...[
    'availableIn',
    'degraded',
    'related',
    'unscheduled',
    'by',
    'running',
    'pending',
    'values',
    'severity',
    'kind',
    'resources',
    'taken',
    'url',
    'collected',
    'unread',
  ],
])

/** Every part that could be left out, the big ones first. */
function parts(value: unknown, path: readonly (string | number)[] = []): (readonly (string | number)[])[] {
  if (typeof value !== 'object' || value === null) return []
  const below = Array.isArray(value) ? value.map((one, index) => [index, one] as const) : Object.entries(value)
  const isMap = ['labels', 'fields', 'values', 'matchLabels', 'data'].includes(String(path.at(-1)))
  const own = below
    .filter(([key]) => typeof key === 'number' || isMap || !needed.has(key))
    .map(([key]) => [...path, key])
  return [...own, ...below.flatMap(([key, one]) => parts(one, [...path, key]))]
}

/** Leaves out whatever can be left out while the world still `differs`; stops at this time, ms since the Unix epoch. */
export async function reduced<T>(world: T, differs: (smaller: T) => Promise<boolean>, until: number): Promise<T> {
  let best = world
  let found = true
  while (found) {
    found = false
    const paths = parts(best).toSorted((left, right) => left.length - right.length)
    // From the end, so that the places before it stay where they are.
    for (const path of paths.toReversed().toSorted((left, right) => left.length - right.length)) {
      if (Date.now() >= until) return best
      const smaller = without(best, path) as T // less of the same
      if (JSON.stringify(smaller) === JSON.stringify(best)) continue
      if (await differs(smaller)) {
        best = smaller
        found = true
        break
      }
    }
  }
  return best
}
