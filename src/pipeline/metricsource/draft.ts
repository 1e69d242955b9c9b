import { type Findings, suggestionFor } from './findings.ts'
import type { AggregationFunction, FieldType, FilterOperator, Finding } from './types.ts'

/*
 * A declaration as somebody wrote it, with every value of the sort it must be: what is wrong is found here and told, and left
 * out. What the values mean is checked in compile.ts.
 */

export const FIELD_TYPES: readonly FieldType[] = [
  ...(['string', 'integer', 'float', 'boolean', 'quantity', 'cpu', 'bytes', 'timestamp', 'arrayLength'] as const),
]
export const COMPUTED_TYPES = ['string', 'integer', 'float', 'boolean'] as const
export const FUNCTIONS: readonly AggregationFunction[] = [
  ...(['count', 'sum', 'avg', 'min', 'max', 'percentile', 'distinct'] as const),
]
export const OPERATORS: readonly FilterOperator[] = [
  ...(['equals', 'notEquals', 'contains', 'startsWith', 'endsWith', 'greaterThan', 'lessThan'] as const),
  ...(['in', 'matches'] as const),
]

export interface LabelSelector {
  readonly labels: readonly (readonly [key: string, value: string])[]
  readonly expressions: readonly {
    readonly at: string
    readonly key: string
    readonly operator: string
    readonly values: readonly string[]
  }[]
}

export interface DraftField {
  readonly at: string
  readonly name: string
  readonly path: string
  /** as written, for the hash */
  readonly declaredType: string | undefined
  readonly type: FieldType
  readonly default: string | undefined
}
export interface DraftComputed {
  readonly at: string
  readonly name: string
  readonly expression: string
  readonly type: (typeof COMPUTED_TYPES)[number] | undefined
}
export interface DraftFilter {
  readonly field: string
  readonly operator: FilterOperator
  readonly value: string
}
export interface DraftAggregation {
  readonly at: string
  readonly name: string
  readonly function: AggregationFunction
  readonly field: string | undefined
  readonly filter: DraftFilter | undefined
  readonly groupBy: string | undefined
  readonly percentile: number | undefined
}
export interface Draft {
  readonly namespace: string
  readonly name: string
  readonly source: {
    readonly apiVersion: string
    readonly kind: string
    readonly resource: string | undefined
    /** as written, for the hash */
    readonly declaredScope: string | undefined
    readonly scope: 'Namespaced' | 'Cluster'
    readonly hasNamespaces: boolean
    readonly include: readonly string[]
    readonly exclude: readonly string[]
    /** a text is ready for the API: stored definitions hold it so */
    readonly labelSelector: LabelSelector | string | undefined
  }
  readonly fields: readonly DraftField[]
  readonly computed: readonly DraftComputed[]
  readonly aggregations: readonly DraftAggregation[]
  readonly collection: {
    readonly intervalSeconds: number | undefined
    readonly timeoutSeconds: number | undefined
    readonly maxResources: number | undefined
    readonly batchSize: number | undefined
    readonly retryAttempts: number | undefined
    readonly parallelism: number | undefined
    readonly watch: boolean
  }
  readonly rbac: {
    readonly resourceTypeName: string | undefined
    readonly filterableFields: readonly string[] | undefined
    readonly filterAggregations: boolean | undefined
  }
}

const MAX_ENTRIES = 256
const MAX_LIST = 1000
const INT32 = 2 ** 31 - 1

type Record_ = Readonly<Record<string, unknown>>

/** Reads values out of one object of the declaration, and tells what does not fit. */
export class ObjectReader {
  readonly #record: Record_
  readonly #path: string
  readonly #findings: Findings

  constructor(record: Record_, path: string, findings: Findings) {
    this.#record = record
    this.#path = path
    this.#findings = findings
  }

  /** @returns undefined where it is absent; or something else, which is told */
  static of(value: unknown, path: string, findings: Findings, keys?: readonly string[]): ObjectReader | undefined {
    if (value === undefined || value === null) return undefined
    if (!isRecord(value)) {
      findings.error('wrong_type', path, `must be an object with named values, not ${nounOf(value)}`)
      return undefined
    }
    for (const key of keys ? Object.keys(value) : []) {
      if (keys?.includes(key)) continue
      findings.warning(
        'unknown_key',
        pathOf(path, key),
        'there is no such setting; it is ignored',
        suggestionFor(key, keys ?? []),
      )
    }
    return new ObjectReader(value, path, findings)
  }

  at(key: string): string {
    return pathOf(this.#path, key)
  }

  has(key: string): boolean {
    return Object.hasOwn(this.#record, key) && this.#record[key] !== null && this.#record[key] !== undefined
  }

  raw(key: string): unknown {
    return this.has(key) ? this.#record[key] : undefined
  }

  object(key: string, keys?: readonly string[]): ObjectReader | undefined {
    return ObjectReader.of(this.raw(key), this.at(key), this.#findings, keys)
  }

  text(key: string, maxLength: number): string | undefined {
    return this.#checkedText(this.raw(key), this.at(key), maxLength)
  }

  /** '' where it is missing, which is told. */
  requiredText(key: string, maxLength: number, what: string): string {
    const text = this.text(key, maxLength)
    if (text !== undefined && text !== '') return text
    if (!this.has(key) || text === '') this.#findings.error('missing', this.at(key), `${what} is missing`)
    return ''
  }

  oneOf<T extends string>(key: string, words: readonly T[], code: string): T | undefined {
    const text = this.text(key, MAX_LIST)
    if (text === undefined || text === '') return undefined
    const word = words.find((one) => one === text)
    if (word !== undefined) return word
    const message = `${JSON.stringify(cut(text))} is none of ${words.join(', ')}`
    this.#findings.error(code, this.at(key), message, suggestionFor(text, words))
    return undefined
  }

  boolean(key: string): boolean | undefined {
    const value = this.raw(key)
    if (value === undefined || typeof value === 'boolean') return value
    this.#findings.error('wrong_type', this.at(key), `must be true or false, not ${nounOf(value)}`)
    return undefined
  }

  integer(key: string): number | undefined {
    const value = this.raw(key)
    if (value === undefined) return undefined
    if (typeof value === 'number' && Number.isSafeInteger(value) && Math.abs(value) <= INT32) return value
    this.#findings.error('wrong_type', this.at(key), `must be a whole number, not ${nounOf(value)}`)
    return undefined
  }

  texts(key: string, maxLength: number): readonly string[] {
    return this.#list(key, MAX_LIST)
      .map((value, i) => this.#checkedText(value, `${this.at(key)}[${i}]`, maxLength))
      .filter((text) => text !== undefined)
  }

  objects(key: string, keys?: readonly string[]): readonly { readonly at: string; readonly entry: ObjectReader }[] {
    return this.#list(key, MAX_ENTRIES).flatMap((value, i) => {
      const at = `${this.at(key)}[${i}]`
      const entry = ObjectReader.of(value ?? '', at, this.#findings, keys)
      return entry ? [{ at, entry }] : []
    })
  }

  entries(): readonly (readonly [string, unknown])[] {
    return Object.entries(this.#record)
  }

  checkedText(value: unknown, key: string, maxLength: number): string | undefined {
    return this.#checkedText(value, this.at(key), maxLength)
  }

  #list(key: string, most: number): readonly unknown[] {
    const value = this.raw(key)
    if (value === undefined) return []
    if (!Array.isArray(value)) {
      this.#findings.error('wrong_type', this.at(key), `must be a list, not ${nounOf(value)}`)
      return []
    }
    if (value.length <= most) return value
    this.#findings.error('too_many', this.at(key), `has ${value.length} entries and may have ${most}`)
    return value.slice(0, most)
  }

  #checkedText(value: unknown, path: string, maxLength: number): string | undefined {
    if (value === undefined) return undefined
    if (typeof value !== 'string') {
      const quoted =
        typeof value === 'number' || typeof value === 'boolean' ? { suggestion: JSON.stringify(String(value)) } : {}
      this.#findings.error('wrong_type', path, `must be text, not ${nounOf(value)}`, quoted)
      return undefined
    }
    if (value.length <= maxLength) return value
    this.#findings.error('too_long', path, `has ${value.length} characters and may have ${maxLength}`)
    return undefined
  }
}

/** The declaration of an object, as far as it can be read. */
export function draftOf(object: unknown, findings: Findings): Draft {
  const root = ObjectReader.of(object, 'object', findings)
  const metadata = ObjectReader.of(root?.raw('metadata'), 'metadata', findings)
  const spec = ObjectReader.of(root?.raw('spec'), 'spec', findings, SPEC_KEYS)
  if (!spec) findings.error('missing', 'spec', 'the declaration is missing')
  const source = spec?.object('source', SOURCE_KEYS)
  if (spec && !source) findings.error('missing', 'spec.source', 'what is to be read is missing')
  const namespaces = source?.object('namespaces', ['include', 'exclude'])
  const scope = source?.oneOf('scope', ['Namespaced', 'Cluster'] as const, 'source_scope_unknown')
  return {
    namespace: metadata?.text('namespace', 63) ?? '',
    name: metadata?.text('name', 253) ?? '',
    source: {
      apiVersion: source?.requiredText('apiVersion', 253, 'the API version, such as v1 or apps/v1,') ?? '',
      kind: source?.requiredText('kind', 63, 'the kind of the objects') ?? '',
      resource: source?.text('resource', 63) || undefined,
      declaredScope: scope,
      scope: scope ?? 'Namespaced',
      hasNamespaces: namespaces !== undefined,
      include: namespaces?.texts('include', 253) ?? [],
      exclude: namespaces?.texts('exclude', 253) ?? [],
      labelSelector: selectorOf(source?.object('labelSelector', ['matchLabels', 'matchExpressions'])),
    },
    fields: (spec?.objects('fields', FIELD_KEYS) ?? []).map((one) => fieldOf(one.entry, one.at)),
    computed: (spec?.objects('computed', COMPUTED_KEYS) ?? []).map((one) => computedOf(one.entry, one.at)),
    aggregations: (spec?.objects('aggregations', AGGREGATION_KEYS) ?? []).flatMap((one) =>
      aggregationOf(one.entry, one.at),
    ),
    collection: collectionOf(spec?.object('collection', COLLECTION_KEYS)),
    rbac: rbacOf(spec?.object('rbac', RBAC_KEYS)),
  }
}

const SPEC_KEYS = ['source', 'fields', 'computed', 'aggregations', 'collection', 'rbac']
const SOURCE_KEYS = ['apiVersion', 'kind', 'resource', 'scope', 'namespaces', 'labelSelector']
const FIELD_KEYS = ['name', 'path', 'type', 'default']
const COMPUTED_KEYS = ['name', 'expression', 'type']
const AGGREGATION_KEYS = ['name', 'field', 'function', 'filter', 'groupBy', 'percentile']
const COLLECTION_KEYS = [
  ...['intervalSeconds', 'timeoutSeconds', 'maxResources', 'batchSize', 'retryAttempts', 'parallelism', 'watch'],
]
const RBAC_KEYS = ['resourceTypeName', 'filterableFields', 'filterAggregations']

function selectorOf(selector: ObjectReader | undefined): LabelSelector | undefined {
  if (!selector) return undefined
  const labels = selector.object('matchLabels')
  return {
    labels: (labels?.entries() ?? []).flatMap(([key, value]) => {
      const text = labels?.checkedText(value, key, 63)
      return text === undefined ? [] : [[key, text] as const]
    }),
    expressions: selector.objects('matchExpressions', ['key', 'operator', 'values']).map(({ at, entry }) => ({
      at,
      key: entry.requiredText('key', 317, 'the label'),
      operator: entry.requiredText('operator', 64, 'the operator (In, NotIn, Exists or DoesNotExist)'),
      values: entry.texts('values', 63),
    })),
  }
}

export function fieldOf(entry: ObjectReader, at: string): DraftField {
  const type = entry.oneOf('type', FIELD_TYPES, 'field_type_unknown')
  return {
    at,
    name: entry.requiredText('name', 128, 'the name of the field'),
    path: entry.requiredText('path', 1024, 'the path'),
    declaredType: type,
    type: type ?? 'string',
    // The original could not tell an empty default from none.
    default: entry.text('default', 1024) || undefined,
  }
}

export function computedOf(entry: ObjectReader, at: string): DraftComputed {
  return {
    at,
    name: entry.requiredText('name', 128, 'the name of the computed value'),
    expression: entry.requiredText('expression', 16_384, 'the expression'),
    type: entry.oneOf('type', COMPUTED_TYPES, 'computed_type_unknown'),
  }
}

export function aggregationOf(entry: ObjectReader, at: string): readonly DraftAggregation[] {
  const name = entry.requiredText('name', 128, 'the name of the aggregation')
  if (!entry.has('function')) entry.requiredText('function', 64, 'the function (count, sum, …)')
  const fn = entry.oneOf('function', FUNCTIONS, 'aggregation_function_unknown')
  const filter = entry.object('filter', ['field', 'operator', 'value'])
  if (filter && !filter.has('operator')) filter.requiredText('operator', 64, 'the operator (equals, …)')
  const operator = filter?.oneOf('operator', OPERATORS, 'filter_operator_unknown')
  // An empty value is one: equals "" finds empty texts.
  const value = filter?.has('value') ? filter.text('value', 4096) : filter?.requiredText('value', 4096, 'the value')
  const field = filter?.requiredText('field', 128, 'the field')
  if (fn === undefined) return []
  return [
    {
      at,
      name,
      function: fn,
      field: entry.text('field', 128) || undefined,
      filter: field && operator && value !== undefined ? { field, operator, value } : undefined,
      groupBy: entry.text('groupBy', 128) || undefined,
      percentile: entry.integer('percentile'),
    },
  ]
}

export function collectionOf(entry: ObjectReader | undefined): Draft['collection'] {
  return {
    intervalSeconds: entry?.integer('intervalSeconds'),
    timeoutSeconds: entry?.integer('timeoutSeconds'),
    maxResources: entry?.integer('maxResources'),
    batchSize: entry?.integer('batchSize'),
    retryAttempts: entry?.integer('retryAttempts'),
    parallelism: entry?.integer('parallelism'),
    watch: entry?.boolean('watch') ?? false,
  }
}

export function rbacOf(entry: ObjectReader | undefined): Draft['rbac'] {
  return {
    resourceTypeName: entry?.text('resourceTypeName', 63) || undefined,
    filterableFields: entry?.has('filterableFields') ? entry.texts('filterableFields', 128) : undefined,
    filterAggregations: entry?.boolean('filterAggregations'),
  }
}

export const isRecord = (value: unknown): value is Record_ =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** What a value is, for a sentence. */
function nounOf(value: unknown): string {
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'number') return 'a number'
  if (typeof value === 'boolean') return 'true or false'
  return typeof value === 'string' ? 'text' : 'an object'
}

export const cut = (text: string, length = 80): string =>
  text.length > length ? `${text.slice(0, length - 1)}…` : text

const pathOf = (path: string, key: string): Finding['path'] =>
  /^[A-Za-z_$][\w$-]*$/.test(key) ? `${path}.${key}` : `${path}[${JSON.stringify(cut(key))}]`
