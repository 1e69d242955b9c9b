import { createHash } from 'node:crypto'
import { type Bounds, parseBounds } from './bounds.ts'
import { prepareEntry } from './entry.ts'
import { type Faults, placeFaults, type RuleFaults } from './faults.ts'
import { isWildcard, type Matches, re2, wildcard } from './pattern.ts'
import { closedFilter, filterOf, type TypeFilter } from './type-filter.ts'
import type { PolicyGeneration, ResourceDocument, RuleDocument, Semantics, StoredPolicy } from './types.ts'

/** One policy, ready to be asked: nothing of its document is looked at again while requests are answered. */
export interface PreparedPolicy {
  readonly stored: StoredPolicy
  /** place among all policies of the generation: priority, then Deny before Allow, then key */
  readonly order: number
  readonly effect: 'Allow' | 'Deny' | 'neither'
  readonly isEnabled: boolean
  readonly bounds: Bounds
  /** bounds that cannot be read end no Deny */
  readonly deniesWithoutBounds: boolean
  /** it cannot be told whom it is about */
  readonly touchesEverybody: boolean
  /** what keeps it from granting anything; '' for nothing */
  readonly fault: string
  readonly rules: readonly PreparedRule[]
  readonly allowsByDefault: boolean
  /** hash of what it says, without whom it says it to */
  readonly content: () => string
}

export interface PreparedSelector {
  readonly names: ReadonlySet<string>
  readonly wildcards: readonly Matches[]
  readonly pattern: Matches | null
  /** null: not compared */
  readonly labels: readonly (readonly [key: string, value: string])[] | null
  /** it may have meant any cluster */
  readonly isFaulty: boolean
}

export interface PreparedRule {
  readonly index: number
  readonly selector: PreparedSelector
  readonly view: boolean
  readonly viewMetrics: boolean
  readonly namesTypes: boolean
  /** by type, in the order of the rule */
  readonly filters: ReadonlyMap<string, TypeFilter>
  /** an entry whose type cannot be read: every type is hidden */
  readonly hidesAll: boolean
  /** as they are written, for the original's search among custom types */
  readonly entries: readonly { readonly type: string; readonly filter: TypeFilter }[]
}

export interface PreparedGeneration {
  readonly generation: string
  readonly source: PolicyGeneration
  /** a document says nothing at all: it may be about anybody */
  readonly unreadable: readonly string[]
  readonly byUser: ReadonlyMap<string, readonly PreparedPolicy[]>
  readonly byGroup: ReadonlyMap<string, readonly PreparedPolicy[]>
  readonly byServiceAccount: ReadonlyMap<string, readonly PreparedPolicy[]>
  readonly everybody: readonly PreparedPolicy[]
}

/** Matchers and indexes of a whole generation: made once, used for every question until the next generation. */
export function prepareGeneration(source: PolicyGeneration, semantics: Semantics): PreparedGeneration {
  const readable = source.policies.filter((policy) => !isUnreadable(policy))
  const policies = readable
    .map((stored) => preparePolicy(stored, semantics))
    .sort((a, b) => inOrder(a, b))
    .map((policy, order) => ({ ...policy, order }))
  const byUser = new Map<string, PreparedPolicy[]>()
  const byGroup = new Map<string, PreparedPolicy[]>()
  const byServiceAccount = new Map<string, PreparedPolicy[]>()
  for (const policy of policies) {
    const { document } = policy.stored
    index(byUser, document.users, policy)
    index(byGroup, document.groups, policy)
    index(byServiceAccount, document.service_accounts, policy)
  }
  return {
    generation: source.generation,
    source,
    unreadable: source.policies.filter(isUnreadable).map(({ key }) => key),
    byUser,
    byGroup,
    byServiceAccount,
    everybody: policies.filter(({ touchesEverybody }) => touchesEverybody),
  }
}

const isUnreadable = ({ faults }: StoredPolicy): boolean => faults.some(({ code }) => code === 'document_unreadable')

function index(
  map: Map<string, PreparedPolicy[]>,
  names: readonly string[] | null | undefined,
  policy: PreparedPolicy,
): void {
  for (const name of new Set(names)) {
    if (name === '') continue
    const known = map.get(name)
    if (known) known.push(policy)
    else map.set(name, [policy])
  }
}

type Unordered = Omit<PreparedPolicy, 'order'>

const MIN_PRIORITY = 1
const MAX_PRIORITY = 10_000
const isPriority = (value: number): boolean => Number.isInteger(value) && value >= MIN_PRIORITY && value <= MAX_PRIORITY

export function inOrder(a: Unordered, b: Unordered): number {
  return (
    rank(b) - rank(a) ||
    Number(b.effect === 'Deny') - Number(a.effect === 'Deny') ||
    (a.stored.key < b.stored.key ? -1 : a.stored.key > b.stored.key ? 1 : 0)
  )
}

// A Deny without a readable priority comes before everything.
const rank = ({ stored }: Unordered): number =>
  Number.isFinite(stored.document.priority) ? stored.document.priority : Number.MAX_SAFE_INTEGER

export function preparePolicy(stored: StoredPolicy, semantics: Semantics): Unordered {
  const { document } = stored
  const content = once(() => contentHash(stored))
  const rules = document.cluster_rules ?? []
  const bounds = parseBounds(document.not_before, document.not_after)
  const common = { stored, bounds, content }
  if (semantics === 'original') {
    return {
      ...common,
      effect: document.effect === 'Allow' || document.effect === 'Deny' ? document.effect : 'neither',
      isEnabled: document.enabled === true && document.priority > 0,
      deniesWithoutBounds: false,
      touchesEverybody: false,
      fault: '',
      rules: rules.map((rule, at) => originalRule(rule, at)),
      allowsByDefault: document.default_cluster_access === 'allow',
    }
  }
  const faults = placeFaults(stored)
  // An effect that cannot be read may have been a Deny.
  const effect = document.effect === 'Allow' && !faults.effect ? 'Allow' : 'Deny'
  return {
    ...common,
    bounds: faults.bounds ? { ...bounds, areReadable: false } : bounds,
    effect,
    isEnabled: faults.enabled ? effect === 'Deny' : document.enabled !== false,
    deniesWithoutBounds: true,
    touchesEverybody: faults.subjects && effect === 'Deny',
    fault: effect === 'Allow' ? allowFault(stored, faults) : '',
    rules:
      faults.whole && effect === 'Deny'
        ? [denyEverything]
        : rules.map((rule, at) => strictRule(rule, at, effect, faults.rule(at))),
    allowsByDefault: effect === 'Allow' && document.default_cluster_access === 'allow' && !faults.byDefault,
  }
}

function allowFault({ document }: StoredPolicy, faults: Faults): string {
  if (faults.whole) return 'its document has a fault'
  if (faults.priority || !isPriority(document.priority)) return 'its priority is not within 1 to 10000'
  return ''
}

const NO_NAMES: ReadonlySet<string> = new Set()
const anyCluster: PreparedSelector = { names: NO_NAMES, wildcards: [], pattern: null, labels: null, isFaulty: true }
const denyEverything: PreparedRule = {
  index: 0,
  selector: anyCluster,
  view: false,
  viewMetrics: false,
  namesTypes: false,
  filters: new Map(),
  hidesAll: true,
  entries: [],
}

function strictRule(rule: RuleDocument, at: number, effect: 'Allow' | 'Deny', faults: RuleFaults): PreparedRule {
  // A rule that says nothing readable may have been meant for any cluster, and to restrict it.
  if (faults.whole) return { ...denyEverything, index: at }
  const resources = rule.resources ?? []
  const grouped = new Map<string, ResourceDocument[]>()
  const entries = resources.map((document, i) => ({
    type: document.type,
    entry: prepareEntry(document, 'strict', faults.entry(i)),
  }))
  for (const [i, document] of resources.entries()) {
    if (!faults.type(i)) grouped.set(document.type, [...(grouped.get(document.type) ?? []), document])
  }
  const filters = new Map<string, TypeFilter>()
  for (const type of grouped.keys()) {
    filters.set(type, filterOf(entries.filter((entry) => entry.type === type).map(({ entry }) => entry)))
  }
  const hidesAll = faults.resources || resources.some((_, i) => faults.type(i))
  return {
    index: at,
    selector: strictSelector(rule, effect, faults.selector),
    view: !faults.permissions && rule.permissions?.view === true,
    viewMetrics: !faults.permissions && rule.permissions?.viewMetrics === true,
    namesTypes: resources.length > 0 && !(effect === 'Deny' && hidesAll),
    filters,
    hidesAll,
    entries: [],
  }
}

function strictSelector(
  { cluster_selector: selector }: RuleDocument,
  effect: string,
  hasFault: boolean,
): PreparedSelector {
  const names = selector.matchNames ?? []
  const pattern = selector.matchPattern ? re2(selector.matchPattern, 'strict') : null
  const labels = Object.entries(selector.matchLabels ?? {})
  return {
    names: new Set(names.filter((name) => !isWildcard(name))),
    wildcards: names.filter(isWildcard).map(wildcard),
    pattern: pattern?.matches ?? null,
    labels: labels.length > 0 ? labels : null,
    isFaulty: effect === 'Deny' && (hasFault || pattern?.fault !== undefined),
  }
}

/** Names take no wildcards (RBAC-Q04), labels select nothing unless there are none to compare (RBAC-Q02, RBAC-Q03). */
function originalRule(rule: RuleDocument, at: number): PreparedRule {
  const { matchNames, matchPattern, matchLabels } = rule.cluster_selector
  const pattern = matchPattern ? re2(matchPattern, 'original') : null
  const entries = (rule.resources ?? []).map((document) => ({
    type: document.type,
    filter: filterOf([prepareEntry(document, 'original')]),
  }))
  return {
    index: at,
    selector: {
      names: new Set(matchNames ?? []),
      wildcards: [],
      pattern: pattern?.matches ?? null,
      labels: matchLabels && Object.keys(matchLabels).length === 0 ? [] : null,
      isFaulty: false,
    },
    view: rule.permissions?.view === true,
    viewMetrics: rule.permissions?.viewMetrics === true,
    namesTypes: entries.length > 0,
    filters: new Map(entries.map(({ type, filter }) => [type, filter])), // the last of a type wins (RBAC-Q12)
    hidesAll: false,
    entries,
  }
}

/** What is asked of a type that the rule may or may not name. */
export const filterIn = (rule: PreparedRule, type: string): TypeFilter | undefined =>
  rule.hidesAll ? closedFilter : rule.filters.get(type)

// ── content ──────────────────────────────────────────────────────────────────────────────────────────────────────────

/** Everything that decides, and nothing of subjects, names and times. */
function contentHash({ document, faults }: StoredPolicy): string {
  const said = {
    effect: document.effect,
    default: document.default_cluster_access,
    rules: document.cluster_rules ?? [],
    priority: isPriority(document.priority),
    faults: faults.map(({ severity, path }) => [severity, path]),
  }
  return createHash('sha256').update(canonical(said)).digest('base64url')
}

/** JSON with sorted keys; null, absent and empty are told apart, which costs sharing and no truth. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) =>
    inner && typeof inner === 'object' && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  )
}

function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined
  return () => {
    made ??= { value: make() }
    return made.value
  }
}
