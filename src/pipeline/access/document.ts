import type { MonitorAccessPolicySpec } from '#kinds'
import { specHash } from './hash.ts'
import { documentPattern, isWildcard } from './pattern.ts'
import { FaultList, filled, orNull, StoredReader } from './stored-reader.ts'
import {
  type DocumentPattern,
  type PolicyDocument,
  type PolicyObject,
  type ResourceDocument,
  type RuleDocument,
  type StoredPolicy,
  standardTypes,
} from './types.ts'

type Rule = NonNullable<MonitorAccessPolicySpec['scope']['clusters']['rules']>[number]
type Resource = NonNullable<Rule['resources']>[number]
type Filters = NonNullable<Resource['filters']>
type Texts = NonNullable<Filters['names']>

/** Types that no MetricSource collects. Registries stand beside the clusters. */
const ownTypes: ReadonlySet<string> = new Set([...standardTypes, 'registries'])
export const isOwnType = (type: string): boolean => ownTypes.has(type)

/**
 * A policy as it is stored (specification, section 4): defaults filled in, wildcards beside their regular expressions, what is
 * empty left out. The object must be one that `compilePolicy` finds no error in.
 * @param now ms since the Unix epoch, for `compiled_at`
 */
export function policyDocument({ metadata, spec }: PolicyObject, now: number): PolicyDocument {
  const { identity, access, scope, lifecycle } = spec
  const rules = scope.clusters.rules ?? []
  const types = rules
    .flatMap(({ resources = [] }) => resources.map(({ type }) => type))
    .filter((type) => !isOwnType(type))
  return {
    policy_name: metadata.name,
    namespace: metadata.namespace || 'default',
    priority: identity.priority ?? 100,
    effect: access.effect,
    enabled: access.enabled ?? true,
    users: identity.subjects.users ?? [],
    groups: identity.subjects.groups ?? [],
    service_accounts: (identity.subjects.serviceAccounts ?? []).map(
      ({ name, namespace }) => `system:serviceaccount:${namespace || 'default'}:${name}`,
    ),
    default_cluster_access: scope.clusters.default ?? 'none',
    cluster_rules: orNull(rules.map(ruleDocument)),
    not_before: lifecycle?.validity?.notBefore || null,
    not_after: lifecycle?.validity?.notAfter || null,
    compiled_at: `${new Date(now).toISOString().slice(0, 19)}Z`,
    hash: specHash(spec),
    custom_resource_types: orNull([...new Set(types)].sort()),
  }
}

function ruleDocument({ selector, permissions, resources = [] }: Rule): RuleDocument {
  const { matchNames = [], matchPattern, matchLabels = {} } = selector
  const { view, viewMetrics } = permissions ?? {}
  const isSet = view !== undefined || viewMetrics !== undefined
  return {
    cluster_selector: {
      ...(matchNames.length > 0 && { matchNames }),
      ...(matchPattern && { matchPattern }),
      ...(Object.keys(matchLabels).length > 0 && { matchLabels }),
    },
    permissions: isSet
      ? { ...(view !== undefined && { view }), ...(viewMetrics !== undefined && { viewMetrics }) }
      : { view: true },
    resources: orNull(resources.map(resourceDocument)),
  }
}

function resourceDocument({ type, visibility = 'all', filters = {}, aggregations }: Resource): ResourceDocument {
  const names = split(filters.names)
  const namespaces = split(filters.namespaces)
  const { labels = {}, fields = {} } = filters
  const hasFields = Object.keys(fields).length > 0
  return {
    type,
    visibility,
    ...filled({ allowed_names: names.allowed_literals, denied_names: names.denied_literals }),
    ...filled({ name_patterns: names.allowed_patterns, deny_name_patterns: names.denied_patterns }),
    ...filled({ allowed_ns: namespaces.allowed_literals, denied_ns: namespaces.denied_literals }),
    ...filled({ ns_patterns: namespaces.allowed_patterns, deny_ns_patterns: namespaces.denied_patterns }),
    ...(Object.keys(labels).length > 0 && { labels }),
    ...(hasFields && { field_filters: mapValues(fields, split) }),
    ...(aggregations && {
      aggregation_rules: { include: aggregations.include ?? [], exclude: aggregations.exclude ?? [] },
    }),
  }
}

interface SplitTexts {
  readonly allowed_literals: readonly string[]
  readonly denied_literals: readonly string[]
  readonly allowed_patterns: readonly DocumentPattern[]
  readonly denied_patterns: readonly DocumentPattern[]
}

const split = ({ allowed = [], denied = [] }: Texts = {}): SplitTexts => ({
  allowed_literals: allowed.filter((text) => !isWildcard(text)),
  denied_literals: denied.filter((text) => !isWildcard(text)),
  allowed_patterns: allowed.filter(isWildcard).map(documentPattern),
  denied_patterns: denied.filter(isWildcard).map(documentPattern),
})

const mapValues = <T, U>(values: Readonly<Record<string, T>>, write: (value: T) => U): Record<string, U> =>
  Object.fromEntries(Object.entries(values).map(([key, value]) => [key, write(value)]))

/**
 * Reads what a store holds of one policy, written by us, by the original or by hand. Never throws. Null, absent and empty mean
 * the same, unknown keys nothing.
 *
 * Every element that cannot be read is a fault, with its path in the document (`cluster_rules[0].resources[1].type`). What has
 * the right type and a wrong content (an expression, a time, an effect) stays as it is, so that `original` can do with it what
 * the original did; whoever decides finds the same fault again. What has the wrong type (code `type_wrong`; the original
 * skipped the whole document) is replaced by what can only take away: in an Allow the part or its rule grants nothing, in a
 * Deny, or where the effect is unknown, it denies all that it could have named.
 *
 * The fault `document_unreadable` says that not even the subjects are known: the policy could touch anybody, so a decision for
 * anybody is a guess. Its document is a placeholder without subjects.
 * @param key `<namespace>/<name>`
 */
export function readStoredPolicy(key: string, text: string): StoredPolicy {
  const faults = new FaultList()
  const document = new StoredReader(key, faults).read(text)
  return { key, document, faults: faults.list() }
}
