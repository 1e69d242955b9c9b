import type { GroupVersionKind, KollectScopeSpec } from '#kinds'

/** What scopes leave of what a target wants. */
export type Ceiling = { readonly namespaces: readonly string[] } | { readonly denied: string }

/**
 * Holds a target against the scopes of its namespace: all of them count. What goes beyond is refused as a whole, so that nobody
 * takes a part for everything; the sentence names what was wanted, not what would be allowed.
 */
export function underScopes(
  scopes: readonly { readonly name: string; readonly spec: KollectScopeSpec }[],
  gvk: GroupVersionKind,
  wanted: readonly string[],
): Ceiling {
  for (const { name, spec } of scopes) {
    const { allowedGVKs = [], allowedNamespaces = [], deniedNamespaces = [] } = spec
    if (allowedGVKs.length > 0 && !allowedGVKs.some((one) => sameKind(one, gvk)))
      return { denied: `the scope ${name} does not allow ${gvk.kind} (ScopeGVKDenied)` }
    const beyond = wanted.find(
      (one) => deniedNamespaces.includes(one) || (allowedNamespaces.length > 0 && !allowedNamespaces.includes(one)),
    )
    if (beyond !== undefined)
      return { denied: `the scope ${name} does not allow the namespace ${beyond} (ScopeNamespaceDenied)` }
  }
  return { namespaces: wanted }
}

function sameKind(a: GroupVersionKind, b: GroupVersionKind): boolean {
  const text = ({ group = '', version, kind }: GroupVersionKind) => `${group}/${version}/${kind}`.toLowerCase()
  return text(a) === text(b)
}
