import { type GroupVersionKind, type KollectClusterScopeSpec, type KollectScopeSpec, SCOPE_EXCESS } from '#kinds'
import type { Declared } from './declared.ts'

/** What a target wants, or may have. */
export interface Reach {
  readonly kinds: readonly GroupVersionKind[]
  readonly namespaces: readonly string[]
}

/** Why a target may not have what it wants. The sentence names what was wanted, not what would be allowed. */
export interface Denial {
  readonly reason: 'ScopeGVKDenied' | 'ScopeNamespaceDenied'
  readonly message: string
}

/** What scopes leave of what a target wants. */
export type Ceiling =
  | { readonly reach: Reach; readonly denied?: never }
  | { readonly denied: Denial; readonly reach?: never }

type Scope = Pick<Declared<KollectScopeSpec | KollectClusterScopeSpec>, 'name' | 'spec'> & {
  readonly annotations?: Readonly<Record<string, string>>
}

/**
 * Holds a target against the scopes that bound it: all of them count. What goes beyond one is refused as a whole, so that nobody takes a
 * part for everything; a scope annotated with `kollect.dev/excess: clip` leaves what it allows instead.
 * @param own namespace of the target, where others need a scope that lists them; undefined: they do not
 */
export function underScopes(scopes: readonly Scope[], wanted: Reach, own?: string): Ceiling {
  const sorted = [...scopes].sort((a, b) => (a.name < b.name ? -1 : 1))
  let reach = wanted
  for (const scope of sorted) {
    // What another one would have clipped is judged too: one scope more never allows more.
    const denied = clips(scope) ? undefined : denialOf(scope, wanted)
    if (denied) return { denied }
    reach = within(scope.spec, reach)
  }
  return own === undefined ? { reach } : consented(sorted, reach, own)
}

/** Reading another namespace takes the consent of whoever bounds this one: the agent's rights are not those of the target's author. */
function consented(scopes: readonly Scope[], reach: Reach, own: string): Ceiling {
  const listed = new Set(scopes.flatMap(({ spec }) => spec.allowedNamespaces ?? []))
  const namespaces = reach.namespaces.filter((one) => one === own || listed.has(one))
  if (namespaces.length === reach.namespaces.length || scopes.some(clips)) return { reach: { ...reach, namespaces } }
  const foreign = reach.namespaces.find((one) => one !== own && !listed.has(one))
  const message = `the namespace ${foreign} is not its own: a KollectScope in ${own} must list it in allowedNamespaces, or a KollectClusterTarget must read it`
  return { denied: { reason: 'ScopeNamespaceDenied', message } }
}

const clips = ({ annotations }: Scope): boolean => annotations?.[SCOPE_EXCESS] === 'clip'

function within(
  { allowedGVKs = [], allowedNamespaces = [], deniedNamespaces = [] }: Scope['spec'],
  reach: Reach,
): Reach {
  return {
    kinds: reach.kinds.filter((kind) => allowedGVKs.length === 0 || allowedGVKs.some((one) => sameKind(one, kind))),
    namespaces: reach.namespaces.filter(
      (one) => !deniedNamespaces.includes(one) && (allowedNamespaces.length === 0 || allowedNamespaces.includes(one)),
    ),
  }
}

function denialOf({ name, spec }: Scope, wanted: Reach): Denial | undefined {
  const left = within(spec, wanted)
  const kind = wanted.kinds.find((one) => !left.kinds.includes(one))
  if (kind) return { reason: 'ScopeGVKDenied', message: `the scope ${name} does not allow ${kind.kind}` }
  const namespace = wanted.namespaces.find((one) => !left.namespaces.includes(one))
  if (namespace === undefined) return undefined
  return { reason: 'ScopeNamespaceDenied', message: `the scope ${name} does not allow the namespace ${namespace}` }
}

/** Scopes compare kinds without regard to case. */
function sameKind(a: GroupVersionKind, b: GroupVersionKind): boolean {
  const text = ({ group = '', version, kind }: GroupVersionKind) => `${group}/${version}/${kind}`.toLowerCase()
  return text(a) === text(b)
}
