import { isOwnType } from './document.ts'
import { FindingList } from './findings.ts'
import { memberPath, quoted } from './texts.ts'
import type { Finding, PolicyDocument, ResourceDocument } from './types.ts'

/** What MetricSources declare of a type, or a kind of rows that is compiled in has, as far as policies may name it. */
export interface CustomType {
  /** fields and computed names */
  readonly fields: readonly string[]
  /** those that its author meant for policies; undefined: all */
  readonly filterableFields: readonly string[] | undefined
  readonly aggregations: readonly string[]
}

/** The types that MetricSources collect now, and the kinds that are compiled in. Asked while a policy is looked at; nothing waits. */
export interface CustomTypes {
  /** undefined: nothing is called so */
  ofType(typeName: string): CustomType | undefined
  /** false while types may be missing that are there: then nothing is said of any; absent: never */
  isComplete?(): boolean
  /** @returns ends it */
  onChange(listener: () => void): () => void
}

/**
 * What the author of a policy should know of the types in it that MetricSources collect: that nobody collects one, that a
 * filter names what it does not have or what its author did not mean for policies. Warnings all of them: decisions do not ask
 * which sources there are. Paths are those of the object that the document was made of.
 */
export function customTypeFindings(
  document: PolicyDocument,
  types: Pick<CustomTypes, 'ofType' | 'isComplete'>,
): readonly Finding[] {
  if (types.isComplete && !types.isComplete()) return []
  const findings = new FindingList()
  for (const [i, { resources }] of (document.cluster_rules ?? []).entries()) {
    for (const [j, resource] of (resources ?? []).entries()) {
      if (isOwnType(resource.type)) continue
      const path = `spec.scope.clusters.rules[${i}].resources[${j}]`
      const type = types.ofType(resource.type)
      if (!type) findings.warning('custom_type_unknown', `${path}.type`, unknownType(resource.type, document.effect))
      // A Deny hides the whole type.
      else if (document.effect !== 'Deny') checkNames(resource, type, path, findings)
    }
  }
  return findings.list()
}

function unknownType(type: string, effect: string): string {
  const now = effect === 'Deny' ? 'hides nothing' : 'counts for nothing'
  return `no MetricSource collects ${quoted(type)}, so this ${now} now: write the spec.rbac.resourceTypeName of one`
}

function checkNames(resource: ResourceDocument, type: CustomType, path: string, findings: FindingList): void {
  const { filterableFields } = type
  for (const field of Object.keys(resource.field_filters ?? {})) {
    const here = memberPath(`${path}.filters.fields`, field)
    if (!type.fields.includes(field)) {
      const message = `rows of ${quoted(resource.type)} have no ${quoted(field)}, so this filter hides all of them: its fields are ${listed(type.fields)}`
      findings.warning('custom_field_unknown', here, message)
    } else if (filterableFields && !filterableFields.includes(field)) {
      const message = `${quoted(field)} is not among the filterableFields of ${quoted(resource.type)}, so its meaning may change; the filter counts: meant for policies are ${listed(filterableFields)}`
      findings.warning('custom_field_not_filterable', here, message)
    }
  }
  const { include = [], exclude = [] } = resource.aggregation_rules ?? {}
  for (const [list, names] of Object.entries({ include, exclude })) {
    for (const [i, name] of names.entries()) {
      if (type.aggregations.includes(name)) continue
      const message = `${quoted(resource.type)} has no aggregation ${quoted(name)}: it has ${listed(type.aggregations)}`
      findings.warning('custom_aggregation_unknown', `${path}.aggregations.${list}[${i}]`, message)
    }
  }
}

const LISTED = 10

function listed(names: readonly string[]): string {
  if (names.length === 0) return 'none'
  const shown = names.slice(0, LISTED).map(quoted).join(', ')
  return names.length > LISTED ? `${shown} and ${names.length - LISTED} more` : shown
}
