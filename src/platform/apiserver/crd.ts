import type { VersionConverter } from '#kinds'
import { builtInResources } from './built-in.ts'
import { compilePath } from './jsonpath.ts'
import { checkStructural } from './schema/index.ts'
import type { FieldReaders } from './selectors.ts'
import { groupVersion, type Resource } from './served.ts'
import type { ApiObject, FieldFault, PrinterColumn, Schema } from './types.ts'

/** apiextensions.k8s.io/v1 CustomResourceDefinitionSpec, as far as this server reads it. */
export interface CrdSpec {
  readonly group: string
  readonly scope: 'Namespaced' | 'Cluster'
  readonly names: {
    readonly plural: string
    readonly singular?: string
    readonly kind: string
    readonly listKind?: string
    readonly shortNames?: readonly string[]
    readonly categories?: readonly string[]
  }
  readonly versions: readonly CrdVersion[]
  readonly conversion?: { readonly strategy?: string }
}

interface CrdVersion {
  readonly name: string
  readonly served: boolean
  readonly storage: boolean
  readonly deprecated?: boolean
  readonly deprecationWarning?: string
  readonly schema?: { readonly openAPIV3Schema?: Schema }
  readonly subresources?: {
    readonly status?: object
    readonly scale?: {
      readonly specReplicasPath: string
      readonly statusReplicasPath: string
      readonly labelSelectorPath?: string
    }
  }
  readonly additionalPrinterColumns?: readonly PrinterColumn[]
  readonly selectableFields?: readonly { readonly jsonPath: string }[]
}

export const CLEANUP_FINALIZER = 'customresourcecleanup.apiextensions.k8s.io'

const specOf = (definition: ApiObject): CrdSpec => definition.spec as CrdSpec

const AGE: PrinterColumn = { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' }

let ownGroups: ReadonlySet<string> | undefined

/** Whether this server has kinds of its own in a group. A definition there would take their place, and their objects with it when it goes. */
function isOwnGroup(group: string): boolean {
  ownGroups ??= new Set(builtInResources().map((resource) => resource.group))
  return ownGroups.has(group)
}

/**
 * The resources a definition brings, one per served version; none in a group of this server's own.
 * @param converters how objects of other versions become those of the stored one; without, versions differ by name only
 */
export function resourcesOf(definition: ApiObject, converters: readonly VersionConverter[] = []): Resource[] {
  const { group, names, scope, versions } = specOf(definition)
  if (isOwnGroup(group)) return [] // stored before such a one was refused
  const storageVersion = versions.find((version) => version.storage)?.name ?? ''
  return versions
    .filter((version) => version.served)
    .map((version) => ({
      group,
      version: version.name,
      plural: names.plural,
      singular: names.singular ?? names.kind.toLowerCase(),
      kind: names.kind,
      shortNames: names.shortNames ?? [],
      categories: names.categories ?? [],
      namespaced: scope === 'Namespaced',
      status: version.subresources?.status !== undefined,
      builtIn: false,
      schema: version.schema?.openAPIV3Schema ?? {},
      columns: version.additionalPrinterColumns?.length ? version.additionalPrinterColumns : [AGE],
      collection: `${group}/${names.plural}`,
      storageVersion,
      nameRule: 'subdomain' as const,
      generation: true,
      versionRequired: true,
      fields: selectableFields(version),
      ...(version.subresources?.scale ? { scale: version.subresources.scale } : {}),
      definition: definition.metadata.name,
      ...conversionOf({ group, plural: names.plural, version: version.name, storageVersion }, converters),
      ...(version.deprecated
        ? {
            deprecationWarning: version.deprecationWarning ?? `${group}/${version.name} ${names.kind} is deprecated`,
          }
        : {}),
    }))
}

function conversionOf(
  { group, plural, version, storageVersion }: Pick<Resource, 'group' | 'plural' | 'version' | 'storageVersion'>,
  converters: readonly VersionConverter[],
): Pick<Resource, 'toStorage' | 'fromStorage'> {
  const found = converters.find((one) => one.group === group && one.plural === plural && one.version === version)
  if (!found || version === storageVersion) return {}
  const named = (name: string, object: Record<string, unknown>) =>
    ({ ...object, apiVersion: groupVersion({ group, version: name }) }) as ApiObject // a conversion keeps kind and name
  return {
    toStorage: (object) => named(storageVersion, found.toStored(object)),
    fromStorage: (object) => named(version, found.fromStored(object)),
  }
}

function selectableFields(version: CrdVersion): FieldReaders {
  const readers = (version.selectableFields ?? []).flatMap(({ jsonPath }) => {
    const read = compilePath(jsonPath)
    return read ? [[jsonPath.replace(/^\./, ''), (object: ApiObject) => String(read(object)[0] ?? '')] as const] : []
  })
  return Object.fromEntries(readers)
}

const required = (path: string, message = 'Required value'): FieldFault => ({
  reason: 'FieldValueRequired',
  path,
  message,
})
const wrong = (path: string, value: unknown, why: string): FieldFault => ({
  reason: 'FieldValueInvalid',
  path,
  message: `Invalid value: ${JSON.stringify(value)}: ${why}`,
})

/** What makes a definition unusable, by field. */
export function definitionFaults(definition: ApiObject, before: ApiObject | undefined): FieldFault[] {
  const spec = specOf(definition)
  if (!spec || typeof spec !== 'object') return [required('spec')]
  const faults: FieldFault[] = []
  if (!spec.group) faults.push(required('spec.group'))
  if (!spec.names?.plural) faults.push(required('spec.names.plural'))
  if (!spec.names?.kind) faults.push(required('spec.names.kind'))
  if (spec.scope !== 'Namespaced' && spec.scope !== 'Cluster')
    faults.push({
      reason: 'FieldValueNotSupported',
      path: 'spec.scope',
      message: `Unsupported value: ${JSON.stringify(spec.scope ?? '')}: supported values: "Cluster", "Namespaced"`,
    })
  if (!Array.isArray(spec.versions) || spec.versions.length === 0) return [...faults, required('spec.versions')]
  if (faults.length > 0) return faults
  if (!before && isOwnGroup(spec.group))
    faults.push(
      wrong('spec.group', spec.group, 'its kinds are those of the API server itself: name a group of your own'),
    )
  const expected = `${spec.names.plural}.${spec.group}`
  if (definition.metadata.name !== expected)
    faults.push(wrong('metadata.name', definition.metadata.name, `must be spec.names.plural+"."+spec.group`))
  if (spec.versions.filter((version) => version.storage).length !== 1)
    faults.push(wrong('spec.versions', spec.versions, 'must have exactly one version marked as storage version'))
  spec.versions.forEach((version, index) => {
    const path = `spec.versions[${index}]`
    const schema = version.schema?.openAPIV3Schema
    if (!schema) faults.push(required(`${path}.schema.openAPIV3Schema`, 'Required value: schemas are required'))
    else
      for (const fault of checkStructural(schema))
        faults.push({ ...fault, path: [`${path}.schema.openAPIV3Schema`, fault.path].filter(Boolean).join('.') })
  })
  const old = before ? specOf(before) : undefined
  if (old && old.scope !== spec.scope) faults.push(wrong('spec.scope', spec.scope, 'field is immutable'))
  if (old && old.group !== spec.group) faults.push(wrong('spec.group', spec.group, 'field is immutable'))
  return faults
}

const now = (ms: number) => new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z')

/** A definition with what the server fills in: names, conversion, and a status that says it is served. */
export function establish(definition: ApiObject, before: ApiObject | undefined, nowMs: number): ApiObject {
  const spec = specOf(definition)
  if (!spec?.names?.kind || !Array.isArray(spec.versions)) return definition
  const names = {
    ...spec.names,
    singular: spec.names.singular || spec.names.kind.toLowerCase(),
    listKind: spec.names.listKind || `${spec.names.kind}List`,
  }
  const oldStatus = (before?.status ?? {}) as {
    conditions?: { type: string; status: string }[]
    storedVersions?: string[]
  }
  const storage = spec.versions.find((version) => version.storage)?.name ?? ''
  const stored = new Set([...(oldStatus.storedVersions ?? []), storage])
  const condition = (type: string, reason: string, message: string) =>
    oldStatus.conditions?.find((each) => each.type === type && each.status === 'True') ?? {
      type,
      status: 'True',
      lastTransitionTime: now(nowMs),
      reason,
      message,
    }
  return {
    ...definition,
    spec: { ...spec, names, conversion: spec.conversion ?? { strategy: 'None' } },
    status: {
      conditions: [
        condition('NamesAccepted', 'NoConflicts', 'no conflicts found'),
        condition('Established', 'InitialNamesAccepted', 'the initial names have been accepted'),
      ],
      acceptedNames: names,
      storedVersions: [...stored],
    },
  }
}
