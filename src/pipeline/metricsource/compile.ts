import type { SourceId, Table } from '#model'
import { aggregate, sumsOfNothing } from './aggregate.ts'
import { compileAggregations } from './compile-aggregations.ts'
import { compileColumns } from './compile-columns.ts'
import { hashOf } from './definition-hash.ts'
import { type Draft, draftOf } from './draft.ts'
import { Findings, suggestionFor } from './findings.ts'
import { allNamespaces, chooseNamespaces } from './namespaces.ts'
import { guessPlural, splitApiVersion } from './resource-name.ts'
import { selectorText } from './selector-text.ts'
import { SourceRowBuilder } from './source-row-builder.ts'
import { documentOf } from './stored.ts'
import type { CompilationResult, CompiledSource, SourceObject } from './types.ts'

/**
 * Checks a declaration and makes it ready to run. Every mistake is named, not only the first; an error keeps it from coming into
 * force, a warning does not. Anything may be given: what is no MetricSource gives errors. Never throws.
 * @param now when it was compiled, ms since the Unix epoch: a note in the definition
 */
export function compileMetricSource(object: SourceObject, now: number = Date.now()): CompilationResult {
  const findings = new Findings()
  const draft = draftOf(object, findings)
  const source = compileDraft(draft, { compiledAt: now, hash: hashOf(draft) }, findings)
  return { source, findings: findings.list }
}

/** What is known of a compilation besides the declaration. */
export interface Provenance {
  /** ms since the Unix epoch */
  readonly compiledAt: number
  readonly hash: string
}

/** Types that the product has itself: no source may take their place. */
export const STANDARD_TYPES: readonly string[] = [
  ...['nodes', 'operators', 'namespaces', 'pods', 'alerts', 'events', 'registries', 'clusters'],
]

/** @returns undefined where an error was found, now or before */
export function compileDraft(
  draft: Draft,
  { compiledAt, hash }: Provenance,
  findings: Findings,
): CompiledSource | undefined {
  const target = targetOf(draft, findings)
  const { source } = draft
  const selector = source.labelSelector
  const labelSelector = typeof selector === 'object' ? selectorText(selector, findings) : selector
  const namespaces = namespacesOf(draft, findings)
  const { plan, columns, paths } = compileColumns(draft, findings)
  const { plans, infos, drafts } = compileAggregations(draft, columns, findings)
  const typeName = typeNameOf(draft, findings)
  const filterableFields = filterableOf(draft, plan.names, findings)
  const collection = collectionOf(draft, findings)
  if (findings.hasErrors) return undefined
  const compiled = {
    id: `${draft.namespace}/${draft.name}` satisfies SourceId,
    namespace: draft.namespace,
    name: draft.name,
    hash,
    typeName,
    access: 'declared' as const,
    target,
    targets: [target],
    labelSelector,
    wantsNamespace: namespaces.wants,
    exactNamespaces: namespaces.exact,
    wantsAllNamespaces: namespaces.wantsAll,
    columns,
    aggregations: infos,
    filterableFields,
    filterAggregations: draft.rbac.filterAggregations ?? true,
    collection,
  }
  const definition = documentOf(compiled, { ...draft, aggregations: drafts }, { paths, compiledAt })
  return Object.freeze({
    ...compiled,
    definition,
    rowName: (name: string) => name,
    collect: (now: number) => new SourceRowBuilder(plan, now),
    aggregate: (rows: Table) => aggregate(plans, rows),
    sumsOfNothing: (rows: Table) => sumsOfNothing(plans, rows),
  })
}

const GROUP = /^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/
const VERSION = /^[a-z]([a-z0-9-]*[a-z0-9])?$/
const KIND = /^[A-Za-z]([A-Za-z0-9-]*[A-Za-z0-9])?$/
const RESOURCE = /^[a-z]([a-z0-9-]*[a-z0-9])?$/

function targetOf({ source }: Draft, findings: Findings): CompiledSource['target'] {
  const { apiVersion, kind, resource, scope } = source
  const { group, version } = splitApiVersion(apiVersion)
  if (apiVersion !== '' && !(VERSION.test(version) && (apiVersion === version || GROUP.test(group)))) {
    const message = `${JSON.stringify(apiVersion)} is no API version: write v1, or group/version such as apps/v1`
    findings.error('source_api_version_invalid', 'spec.source.apiVersion', message)
  }
  if (kind !== '' && !KIND.test(kind)) {
    const message = `${JSON.stringify(kind)} is no kind: write it as manifests do, such as PersistentVolumeClaim`
    findings.error('source_kind_invalid', 'spec.source.kind', message)
  }
  if (resource !== undefined && !RESOURCE.test(resource)) {
    const message = `${JSON.stringify(resource)} is no resource: write the plural name of the kind in lower case, such as persistentvolumeclaims`
    findings.error('source_resource_invalid', 'spec.source.resource', message)
  }
  const plural = resource ?? guessPlural(kind)
  if (group === '' && (plural === 'secrets' || kind.toLowerCase() === 'secret')) {
    findings.error(
      'source_kind_refused',
      'spec.source.kind',
      'Secrets are not read: their values would be shown to others',
    )
  }
  return { apiVersion, group, version, kind, scope, plural, isPluralDeclared: resource !== undefined }
}

function namespacesOf({ source }: Draft, findings: Findings) {
  if (source.scope === 'Cluster') {
    if (source.include.length + source.exclude.length > 0) {
      findings.warning(
        'namespaces_ignored',
        'spec.source.namespaces',
        'objects of scope Cluster live in no namespace: this is ignored',
      )
    }
    return allNamespaces
  }
  const chosen = chooseNamespaces(source.include, source.exclude)
  if (chosen.exact?.length === 0 || source.exclude.some((pattern) => /^\*+$/.test(pattern))) {
    findings.warning(
      'namespaces_none',
      'spec.source.namespaces',
      'everything that is included is excluded as well: nothing is read',
    )
  }
  return chosen
}

function typeNameOf({ source, rbac }: Draft, findings: Findings): string {
  const name = rbac.resourceTypeName ?? source.kind.toLowerCase()
  const at = rbac.resourceTypeName === undefined ? 'spec.source.kind' : 'spec.rbac.resourceTypeName'
  if (STANDARD_TYPES.includes(name.toLowerCase())) {
    const message = `${JSON.stringify(name)} is a type that is there already: choose another name`
    findings.error('type_name_reserved', 'spec.rbac.resourceTypeName', message)
  } else if (/[\p{Cc}/]/u.test(name)) {
    findings.error('type_name_invalid', at, 'a type name may have neither "/" nor control characters')
  } else if (name !== '' && !/^[A-Za-z0-9]([\w.-]*[A-Za-z0-9])?$/.test(name)) {
    const message = `${JSON.stringify(name)} must be escaped in addresses: letters, digits, "-", "_" and "." need not`
    findings.warning('type_name_unusual', at, message)
  }
  return name
}

function filterableOf({ rbac }: Draft, names: readonly string[], findings: Findings): readonly string[] | undefined {
  for (const [i, name] of (rbac.filterableFields ?? []).entries()) {
    if (names.includes(name)) continue
    const message = `there is no field or computed value called ${JSON.stringify(name)}`
    findings.warning(
      'filterable_unknown_field',
      `spec.rbac.filterableFields[${i}]`,
      message,
      suggestionFor(name, names),
    )
  }
  return rbac.filterableFields === undefined || rbac.filterableFields.length === 0 ? undefined : rbac.filterableFields
}

/** What the schema asks for at least; a file may say less, and then it is done. */
const LEAST = { intervalSeconds: 30, timeoutSeconds: 5, maxResources: 1, batchSize: 10, parallelism: 1 } as const
const USUAL = { intervalSeconds: 60, timeoutSeconds: 30, maxResources: 5000, batchSize: 500, parallelism: 3 } as const
const USUAL_RETRIES = 3

function collectionOf({ collection }: Draft, findings: Findings): CompiledSource['collection'] {
  const taken = (key: keyof typeof LEAST): number => {
    const declared = collection[key]
    if (declared !== undefined && declared < LEAST[key]) {
      const rest = declared > 0 ? '' : `: ${USUAL[key]} is taken`
      findings.warning(
        'collection_below_minimum',
        `spec.collection.${key}`,
        `should be ${LEAST[key]} or more, not ${declared}${rest}`,
      )
    }
    return declared !== undefined && declared > 0 ? declared : USUAL[key]
  }
  const retries = collection.retryAttempts ?? USUAL_RETRIES
  const [intervalMs, timeoutMs] = [taken('intervalSeconds') * 1000, taken('timeoutSeconds') * 1000]
  if (timeoutMs > intervalMs) {
    const message = 'one collection may take longer than the time between two: the next begins when it ends'
    findings.warning('collection_timeout_above_interval', 'spec.collection.timeoutSeconds', message)
  }
  return {
    intervalMs,
    timeoutMs,
    maxResources: taken('maxResources'),
    batchSize: taken('batchSize'),
    retryAttempts: retries >= 0 ? retries : USUAL_RETRIES,
    parallelism: taken('parallelism'),
    watch: collection.watch,
  }
}
