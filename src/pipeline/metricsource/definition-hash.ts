import { createHash } from 'node:crypto'
import type { Draft } from './draft.ts'

/**
 * 16 hex digits over the declaration: SHA-256 of its JSON in one fixed form, as the original computed it. What the original does
 * not know (resource, watch, a percentile or a number of retries of 0, which mean something here) is there only where it is set.
 */
export function hashOf(draft: Draft): string {
  return createHash('sha256').update(canonicalJson(draft)).digest('hex').slice(0, 16)
}

type Json =
  | string
  | number
  | boolean
  | readonly Json[]
  /** an object whose keys stand in this order, digits or not */
  | ReadonlyMap<string, string>
  | { readonly [key: string]: Json | undefined }

/** Compact, keys in the order of the kind, empty values left out, and the letters escaped that HTML would read. */
export function canonicalJson({ source, fields, computed, aggregations, collection, rbac }: Draft): string {
  const selector = source.labelSelector
  return written({
    source: {
      apiVersion: source.apiVersion,
      kind: source.kind,
      scope: filled(source.declaredScope),
      namespaces: source.hasNamespaces
        ? { include: filledList(source.include), exclude: filledList(source.exclude) }
        : undefined,
      labelSelector:
        selector &&
        (typeof selector === 'string'
          ? selector
          : {
              matchLabels: selector.labels.length > 0 ? new Map(sorted(selector.labels)) : undefined,
              matchExpressions: filledList(
                selector.expressions.map(({ key, operator, values }) => ({
                  key,
                  operator,
                  values: filledList(values),
                })),
              ),
            }),
      resource: filled(source.resource),
    },
    fields: fields.map(({ name, path, declaredType, default: fallback }) => ({
      name,
      path,
      type: filled(declaredType),
      default: filled(fallback),
    })),
    computed: filledList(computed.map(({ name, expression, type }) => ({ name, expression, type: filled(type) }))),
    aggregations: filledList(
      aggregations.map(({ name, field, function: fn, filter, groupBy, percentile }) => ({
        name,
        field: filled(field),
        function: fn,
        filter: filter && { field: filter.field, operator: filter.operator, value: filter.value },
        groupBy: filled(groupBy),
        percentile,
      })),
    ),
    collection: {
      intervalSeconds: collection.intervalSeconds || undefined,
      timeoutSeconds: collection.timeoutSeconds || undefined,
      maxResources: collection.maxResources || undefined,
      batchSize: collection.batchSize || undefined,
      retryAttempts: collection.retryAttempts,
      parallelism: collection.parallelism || undefined,
      watch: collection.watch || undefined,
    },
    rbac: {
      resourceTypeName: rbac.resourceTypeName ?? '',
      filterableFields: filledList(rbac.filterableFields ?? []),
      filterAggregations: rbac.filterAggregations || undefined,
    },
  })
}

const filled = (text: string | undefined) => (text === '' ? undefined : text)
const filledList = <T>(list: readonly T[]) => (list.length > 0 ? list : undefined)
const sorted = (labels: readonly (readonly [string, string])[]) => labels.toSorted(([a], [b]) => (a < b ? -1 : 1))

function written(value: Json): string {
  if (typeof value === 'string') return JSON.stringify(value).replace(/[<>&\u2028\u2029]/g, escaped)
  if (typeof value !== 'object') return String(value)
  if (value instanceof Map) return `{${[...value].map(([key, one]) => `${written(key)}:${written(one)}`).join(',')}}`
  if (Array.isArray(value)) return `[${value.map(written).join(',')}]`
  const entries = Object.entries(value).filter((entry): entry is [string, Json] => entry[1] !== undefined)
  return `{${entries.map(([key, one]) => `${written(key)}:${written(one)}`).join(',')}}`
}

const escaped = (letter: string) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`
