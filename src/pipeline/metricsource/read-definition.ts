import { compileDraft } from './compile.ts'
import { hashOf } from './definition-hash.ts'
import {
  aggregationOf,
  collectionOf,
  computedOf,
  type Draft,
  FIELD_TYPES,
  FUNCTIONS,
  fieldOf,
  isRecord,
  ObjectReader,
  OPERATORS,
  rbacOf,
} from './draft.ts'
import { Findings } from './findings.ts'
import type { CompiledSource } from './types.ts'

/**
 * A source from its documented form (specification: state 5.1), written by us or by the original. What we do not know is left
 * aside; types and aggregations that we do not know are read as the original does: as text, and not at all.
 * @returns undefined where it cannot be run: it is no such document, or we find an error that its writer did not. Never throws.
 */
export function readDefinition(document: unknown): CompiledSource | undefined {
  const findings = new Findings()
  const root = ObjectReader.of(readable(document), 'definition', findings)
  if (!root?.has('source')) return undefined
  const draft = draftOf(root)
  if (draft.name === '' || findings.hasErrors) return undefined
  const [hash, compiledAt] = [root.raw('hash'), Date.parse(String(root.raw('compiledAt')))]
  const provenance = {
    hash: typeof hash === 'string' && /^[0-9a-f]{16}$/.test(hash) ? hash : hashOf(draft),
    compiledAt: Number.isNaN(compiledAt) ? 0 : compiledAt,
  }
  return compileDraft(draft, provenance, findings)
}

function draftOf(root: ObjectReader): Draft {
  const source = root.object('source')
  const namespaces = source?.object('namespaces')
  return {
    namespace: root.text('namespace', 63) ?? '',
    name: root.text('name', 253) ?? '',
    source: {
      apiVersion: source?.requiredText('apiVersion', 253, 'the API version') ?? '',
      kind: source?.requiredText('kind', 63, 'the kind') ?? '',
      resource: source?.boolean('resourceDeclared') === true ? source.text('resource', 63) : undefined,
      declaredScope: undefined,
      scope: source?.raw('scope') === 'Cluster' ? 'Cluster' : 'Namespaced',
      hasNamespaces: namespaces !== undefined,
      include: namespaces?.texts('include', 253) ?? [],
      exclude: namespaces?.texts('exclude', 253) ?? [],
      labelSelector: source?.text('labelSelector', 1_000_000) || undefined,
    },
    fields: root.objects('fields').map(({ at, entry }) => fieldOf(entry, at)),
    computed: root.objects('computed').map(({ at, entry }) => computedOf(entry, at)),
    aggregations: root.objects('aggregations').flatMap(({ at, entry }) => aggregationOf(entry, at)),
    collection: collectionOf(root.object('collection')),
    rbac: rbacOf(root.object('rbac')),
  }
}

/** The document with what newer writers may say made what we can read: unknown words are left out, or are text. */
function readable(document: unknown): unknown {
  if (!isRecord(document)) return document
  const { fields, aggregations } = document
  return {
    ...document,
    ...(Array.isArray(fields) ? { fields: fields.map(readableField) } : {}),
    ...(Array.isArray(aggregations) ? { aggregations: aggregations.filter(isReadableAggregation) } : {}),
  }
}

function readableField(field: unknown): unknown {
  if (!isRecord(field)) return field
  const type = FIELD_TYPES.find((one) => one === field.type) ?? 'string'
  const segments = field.pathSegments
  // A document may hold the steps alone.
  const path =
    typeof field.path === 'string' && field.path !== '' ? field.path : Array.isArray(segments) ? joined(segments) : ''
  return { ...field, type, path }
}

const joined = (segments: readonly unknown[]) =>
  segments.map((one) => (/^\[-?\d+\]$/.test(String(one)) ? String(one) : `[${JSON.stringify(String(one))}]`)).join('')

function isReadableAggregation(aggregation: unknown): boolean {
  if (!isRecord(aggregation)) return false
  const { function: fn, filter } = aggregation
  if (!FUNCTIONS.some((one) => one === fn)) return false
  return !isRecord(filter) || OPERATORS.some((one) => one === filter.operator)
}
