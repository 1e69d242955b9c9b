import { createHash } from 'node:crypto'
import type { MonitorAccessPolicySpec } from '#kinds'

/**
 * What tells two policies apart: the first 16 hex digits of SHA-256 over the canonical JSON of the spec, as the original
 * computed it. Defaults of the schema count as written, so that a file and the object made of it have one hash.
 */
export function specHash(spec: MonitorAccessPolicySpec): string {
  return createHash('sha256').update(canonicalJson(spec)).digest('hex').slice(0, 16)
}

/** The text that is hashed: compact, keys in the documented order, nothing empty but objects that were given. */
export function canonicalJson(spec: MonitorAccessPolicySpec): string {
  const { identity, access, scope, lifecycle } = spec
  return json({
    identity: identityOf(identity),
    access: { effect: access.effect, enabled: access.enabled ?? true },
    scope: { clusters: clustersOf(scope.clusters) },
    lifecycle: lifecycle && {
      validity: lifecycle.validity && {
        notBefore: text(lifecycle.validity.notBefore),
        notAfter: text(lifecycle.validity.notAfter),
      },
    },
  })
}

/** Keys of an object in the order they were written, those of a Map sorted; what is undefined is left out. */
function json(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(json).join(',')}]`
  if (value instanceof Map) return members([...(value as Map<string, unknown>)].sort(([a], [b]) => byCodePoint(a, b)))
  if (typeof value === 'object' && value !== null) return members(Object.entries(value))
  return JSON.stringify(value).replace(/[<>&\u2028\u2029]/g, escaped)
}

const members = (entries: readonly (readonly [string, unknown])[]): string =>
  `{${entries
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => `${json(key)}:${json(value)}`)
    .join(',')}}`

const escaped = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
const byCodePoint = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b))

type Spec = MonitorAccessPolicySpec
type Rule = NonNullable<Spec['scope']['clusters']['rules']>[number]
type Resource = NonNullable<Rule['resources']>[number]
type Filter = NonNullable<NonNullable<Resource['filters']>['names']>

function identityOf({ subjects, priority }: Spec['identity']): object {
  return {
    subjects: {
      users: list(subjects.users),
      groups: list(subjects.groups),
      serviceAccounts: list(
        subjects.serviceAccounts?.map(({ name, namespace = 'default' }) => ({ name, namespace: text(namespace) })),
      ),
    },
    priority: (priority ?? 100) || undefined,
  }
}

const clustersOf = (clusters: Spec['scope']['clusters']): object => ({
  default: text(clusters.default ?? 'none'),
  rules: list(clusters.rules?.map(ruleOf)),
})

const ruleOf = ({ selector, permissions, resources }: Rule): object => ({
  selector: {
    matchLabels: map(selector.matchLabels, (value) => value),
    matchNames: list(selector.matchNames),
    matchPattern: text(selector.matchPattern),
  },
  permissions: permissions && { view: permissions.view, viewMetrics: permissions.viewMetrics },
  resources: list(resources?.map(resourceOf)),
})

const resourceOf = ({ type, visibility, filters, aggregations }: Resource): object => ({
  type,
  visibility: text(visibility ?? 'all'),
  filters: filters && {
    namespaces: filters.namespaces && filterOf(filters.namespaces),
    names: filters.names && filterOf(filters.names),
    labels: map(filters.labels, (value) => value),
    fields: map(filters.fields, filterOf),
  },
  aggregations: aggregations && { include: list(aggregations.include), exclude: list(aggregations.exclude) },
})

const filterOf = ({ allowed, denied }: Filter): object => ({ allowed: list(allowed), denied: list(denied) })

/** `undefined` is left out by JSON. */
const text = (value: string | undefined): string | undefined => value || undefined
const list = <T>(values: readonly T[] | undefined): readonly T[] | undefined => (values?.length ? values : undefined)

/** Maps have no order of their own; an object would put keys that look like numbers first. */
function map<T>(
  values: Readonly<Record<string, T>> | undefined,
  write: (value: T) => unknown,
): Map<string, unknown> | undefined {
  const entries = Object.entries(values ?? {})
  return entries.length > 0 ? new Map(entries.map(([key, value]) => [key, write(value)])) : undefined
}
