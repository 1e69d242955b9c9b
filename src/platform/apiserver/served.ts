import type { NameRule } from './names.ts'
import type { FieldReaders } from './selectors.ts'
import type { ApiObject, ServedResource } from './types.ts'

/** A resource as this server knows it: what clients are told of it, and how its objects are kept. */
export interface Resource extends ServedResource {
  /** the store's collection, `group/plural` */
  readonly collection: string
  /** the version objects are stored in */
  readonly storageVersion: string
  readonly nameRule: NameRule
  /** whether a change of the specification raises `metadata.generation` */
  readonly generation: boolean
  /** whether an update must say which version it changes */
  readonly versionRequired: boolean
  /** whether replacing what is not there creates it */
  readonly createOnUpdate?: boolean
  /** kept, with nobody here who does what it says: who writes one is told */
  readonly inert?: boolean
  /** what field selectors may ask beside name and namespace */
  readonly fields: FieldReaders
  /** paths of the scale subresource, where it has one */
  readonly scale?: {
    readonly specReplicasPath: string
    readonly statusReplicasPath: string
    readonly labelSelectorPath?: string
  }
  /** read only, computed on each read, stored nowhere */
  readonly list?: () => readonly ApiObject[]
  /** the name of the CustomResourceDefinition it comes from */
  readonly definition?: string
  /** a version that is still served but discouraged */
  readonly deprecationWarning?: string
  readonly toStorage?: (object: ApiObject) => ApiObject
  readonly fromStorage?: (object: ApiObject) => ApiObject
}

/** What names a resource in a call. */
export interface ResourceName {
  readonly group: string
  readonly version: string
  readonly plural: string
}

export const groupVersion = ({ group, version }: { group: string; version: string }): string =>
  group ? `${group}/${version}` : version

const idOf = ({ group, version, plural }: ResourceName): string => `${group}/${version}/${plural}`

/** The resources served now. CustomResourceDefinitions come and go. */
export class ServedResources {
  readonly #byName = new Map<string, Resource>()
  readonly #byKind = new Map<string, Resource>()
  /** rises with every change: what is computed from the whole set is kept per revision */
  revision = 0

  add(resource: Resource): void {
    this.#byName.set(idOf(resource), resource)
    this.#nameKind(resource)
    this.revision++
  }

  /** A kind is that of who had it first: two definitions stored before names were compared may both say it. */
  #nameKind(resource: Resource): void {
    const kind = `${groupVersion(resource)}/${resource.kind}`
    const holder = this.#byKind.get(kind)
    if (holder === undefined || idOf(holder) === idOf(resource)) this.#byKind.set(kind, resource)
  }

  /** Takes away every version of what a definition brought. */
  removeDefinition(definition: string): void {
    for (const [id, resource] of this.#byName) if (resource.definition === definition) this.#byName.delete(id)
    this.#byKind.clear()
    for (const resource of this.#byName.values()) this.#nameKind(resource)
    this.revision++
  }

  get(name: ResourceName): Resource | undefined {
    return this.#byName.get(idOf(name))
  }

  ofKind(apiVersion: string, kind: string): Resource | undefined {
    return this.#byKind.get(`${apiVersion}/${kind}`)
  }

  all(): Resource[] {
    return [...this.#byName.values()]
  }

  ofCollection(collection: string): Resource | undefined {
    for (const resource of this.#byName.values()) if (resource.collection === collection) return resource
    return undefined
  }
}

/** The object in the version of the resource that is asked for. Versions of a definition differ by name only. */
export function toVersion(resource: Resource, object: ApiObject): ApiObject {
  if (resource.fromStorage) return resource.fromStorage(object)
  const apiVersion = groupVersion(resource)
  return object.apiVersion === apiVersion ? object : { ...object, apiVersion }
}

/** The object in the version it is stored in. */
export function toStorage(resource: Resource, object: ApiObject): ApiObject {
  if (resource.toStorage) return resource.toStorage(object)
  const apiVersion = groupVersion({ group: resource.group, version: resource.storageVersion })
  return object.apiVersion === apiVersion ? object : { ...object, apiVersion }
}

export const keyIn = (resource: Resource, key: { name: string; namespace?: string | undefined }): string =>
  resource.namespaced ? `${key.namespace ?? ''}/${key.name}` : key.name
