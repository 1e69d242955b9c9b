import { parseAllDocuments, stringify } from 'yaml'
import { metricSource } from '#kinds'
import type { CompiledSource, Finding, SourceObject } from '#metricsource'

/*
 * MetricSources as people write them. What comes in is bounded, and without what YAML takes long to read; what goes out is made
 * of the compiled definition and compiles to the same again.
 */

// YAML is slow, and some of it slower than its length. JSON is quick at any length.
const maxChars = 128 * 1024
const maxAnchors = 100
const tooDeep = /(?:[[{]\s*(?:\w+:\s*)?){200}|(?:[-?]\s+){200}/

type Fields = Readonly<Record<string, unknown>>
const isRecord = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Either what was read, or why nothing could be; a MetricSource that names no namespace stands in `clusterpulse`. Never throws. */
export type ReadManifest = { readonly object: SourceObject } | { readonly finding: Finding }

export function readSourceManifest(text: string): ReadManifest {
  const read = documentsOf(text)
  if (typeof read === 'string') return fault('manifest_unreadable', read)
  const [value, ...others] = read.filter((one) => one !== null && one !== undefined)
  if (others.length > 0)
    return fault('manifest_not_one', 'this is more than one document: try one MetricSource at a time')
  if (!isRecord(value) || value.apiVersion !== metricSource.apiVersion || value.kind !== metricSource.kind)
    return fault('not_a_metric_source', `this is no ${metricSource.kind} of ${metricSource.apiVersion}`)
  const metadata = isRecord(value.metadata) ? value.metadata : {}
  const { name = '', namespace } = metadata
  const where = typeof namespace === 'string' && namespace !== '' ? namespace : 'clusterpulse'
  // The compiler finds the faults of its shape itself.
  return { object: { ...value, metadata: { ...metadata, name, namespace: where } } as unknown as SourceObject }
}

const fault = (code: string, message: string): ReadManifest => ({
  finding: { severity: 'error', code, path: '', message },
})

/** @returns a sentence where it cannot be read */
function documentsOf(text: string): readonly unknown[] | string {
  if (/^\s*[[{]/.test(text)) {
    try {
      return [JSON.parse(text) as unknown]
    } catch {
      // then it is YAML in braces, or its fault is told as YAML's
    }
  }
  if (text.length > maxChars) return `more than ${maxChars} characters of YAML: write it as JSON`
  if (tooDeep.test(text)) return 'nested deeper than any MetricSource'
  if ((text.match(/(?:^|[\s,:[{-])&\S/gm)?.length ?? 0) > maxAnchors)
    return `more than ${maxAnchors} anchors: write out what they stand for`
  try {
    const documents = parseAllDocuments(text, { logLevel: 'silent' })
    const [wrong] = documents.flatMap(({ errors }) => errors)
    return wrong ? firstLine(wrong) : documents.map((document) => document.toJS({ maxAliasCount: 100 }) as unknown)
  } catch (error) {
    return firstLine(error) // deeper than the stack, or aliases without end
  }
}

const firstLine = (error: unknown): string =>
  (error instanceof Error ? error.message : String(error)).split('\n', 1)[0]?.replace(/:$/, '') ?? 'this is no YAML'

// ── back to what people write ────────────────────────────────────────────────────────────────────────────────────────

/** YAML, ready to be applied. */
export function sourceManifest({ name, namespace, definition }: CompiledSource): string {
  const { source, fields, computed, aggregations, collection, rbac } = definition
  const { apiVersion, kind, scope, resource, resourceDeclared, namespaces, labelSelector } = recordOf(source)
  const spec = {
    source: {
      apiVersion,
      kind,
      ...(resourceDeclared === true && { resource }),
      scope,
      ...(isRecord(namespaces) && { namespaces }),
      ...(typeof labelSelector === 'string' && labelSelector !== '' && { labelSelector: selectorOf(labelSelector) }),
    },
    fields: listOf(fields).map((field) => without(field, 'pathSegments', 'index')),
    ...(Array.isArray(computed) && { computed: listOf(computed).map(typed) }),
    ...(Array.isArray(aggregations) && { aggregations }),
    collection,
    rbac,
  }
  return stringify({
    apiVersion: metricSource.apiVersion,
    kind: metricSource.kind,
    metadata: { name, namespace },
    spec,
  })
}

const recordOf = (value: unknown): Fields => (isRecord(value) ? value : {})
const listOf = (value: unknown): readonly Fields[] => (Array.isArray(value) ? value.filter(isRecord) : [])
const without = (record: Fields, ...keys: readonly string[]): Fields =>
  Object.fromEntries(Object.entries(record).filter(([key]) => !keys.includes(key)))
/** The stored form says "no type" by an empty text. */
const typed = (computed: Fields): Fields => (computed.type === '' ? without(computed, 'type') : computed)

const set = /^(\S+)\s+(in|notin)\s+\((.*)\)$/

/** The text of a selector, as the API takes it, as it is declared. */
function selectorOf(text: string): object {
  const labels: [string, string][] = []
  const expressions: object[] = []
  for (const part of text.split(/,(?![^(]*\))/).map((one) => one.trim())) {
    const [, key = '', operator, values = ''] = set.exec(part) ?? []
    if (operator) {
      const list = values.split(',').map((value) => value.trim())
      expressions.push({ key, operator: operator === 'in' ? 'In' : 'NotIn', values: list })
    } else if (part.includes('=')) {
      const [label = '', value = ''] = part.split(/==?/)
      labels.push([label, value])
    } else if (part.startsWith('!')) expressions.push({ key: part.slice(1), operator: 'DoesNotExist' })
    else if (part !== '') expressions.push({ key: part, operator: 'Exists' })
  }
  return {
    ...(labels.length > 0 && { matchLabels: Object.fromEntries(labels) }),
    ...(expressions.length > 0 && { matchExpressions: expressions }),
  }
}
