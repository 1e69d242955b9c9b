import type { Logger } from '#runtime'
import { CLEANUP_FINALIZER, resourcesOf } from './crd.ts'
import type { ObjectStore } from './objects.ts'
import { aggregatedRules, COLLECTIONS, CollectingRoles, type RoleObject } from './rbac/index.ts'
import { keyIn, type Resource, type ServedResources } from './served.ts'
import { ApiError } from './status.ts'
import { keyOf, type StoreEvent, type VersionedStore } from './store.ts'
import type { ApiObject } from './types.ts'

const CRDS = 'apiextensions.k8s.io/customresourcedefinitions'
const NAMESPACES = '/namespaces'

interface Dependent {
  readonly collection: string
  readonly key: string
}

/**
 * What a cluster's controllers do for the API itself: empties namespaces and definitions that are being deleted,
 * deletes what lost its last owner, lets go of what was to be orphaned, fills roles that collect the rules of others. Works behind the writes, one task at a time,
 * and starts from what is stored, so a restart loses nothing.
 */
export class Housekeeping {
  readonly #store: VersionedStore
  readonly #served: ServedResources
  readonly #objects: ObjectStore
  readonly #logger: Logger
  readonly #dependents = new Map<string, Map<string, Dependent>>()
  readonly #tasks: (() => Promise<unknown>)[] = []
  readonly #collecting = new CollectingRoles()
  #rolesChanged = false
  #working: Promise<void> | undefined
  #stopped = false

  constructor(parts: { store: VersionedStore; served: ServedResources; objects: ObjectStore; logger: Logger }) {
    this.#store = parts.store
    this.#served = parts.served
    this.#objects = parts.objects
    this.#logger = parts.logger
  }

  /** Takes in what is stored, and goes on where a former process stopped. */
  start(): void {
    for (const collection of this.#store.collections)
      for (const object of this.#store.list(collection)) {
        this.#index(collection, undefined, object)
        if (collection === COLLECTIONS.clusterRoles) this.#collecting.add(object)
        if (object.metadata.deletionTimestamp) this.#follow(collection, object)
      }
    this.#rolesMoved()
  }

  /** Called with every change as it becomes visible. */
  saw(collection: string, event: StoreEvent): void {
    const { type, object, previous } = event
    if (collection === COLLECTIONS.clusterRoles && this.#collecting.saw(event)) this.#rolesMoved()
    if (type === 'DELETED') {
      this.#index(collection, previous, undefined)
      this.#released(collection, object)
      return
    }
    this.#index(collection, previous, object)
    if (object.metadata.deletionTimestamp) this.#follow(collection, object)
  }

  #index(collection: string, before: ApiObject | undefined, after: ApiObject | undefined): void {
    if (before?.metadata.ownerReferences === after?.metadata.ownerReferences) return
    const key = keyOf((after ?? before) as ApiObject)
    for (const uid of ownersOf(before)) {
      const dependents = this.#dependents.get(uid)
      dependents?.delete(`${collection}/${key}`)
      if (dependents?.size === 0) this.#dependents.delete(uid)
    }
    for (const uid of ownersOf(after)) {
      const dependents = this.#dependents.get(uid) ?? new Map<string, Dependent>()
      dependents.set(`${collection}/${key}`, { collection, key })
      this.#dependents.set(uid, dependents)
    }
  }

  /** An object is marked for deletion. */
  #follow(collection: string, object: ApiObject): void {
    if (collection === NAMESPACES) this.#later(() => this.#emptyNamespace(object.metadata.name))
    else if (collection === CRDS && object.metadata.finalizers?.includes(CLEANUP_FINALIZER))
      this.#later(() => this.#emptyDefinition(object))
    if (object.metadata.finalizers?.includes('orphan')) this.#later(() => this.#orphan(collection, object))
  }

  /** An object is gone. */
  #released(collection: string, object: ApiObject): void {
    const { uid = '', namespace } = object.metadata
    if (this.#dependents.has(uid)) this.#later(() => this.#collectDependents(uid))
    // The last object of a namespace may have waited for its finalizer.
    if (!namespace || !this.#store.get(NAMESPACES, namespace)?.metadata.deletionTimestamp) {
      const definition = this.#served.ofCollection(collection)?.definition
      const stored = definition ? this.#store.get(CRDS, definition) : undefined
      if (stored?.metadata.deletionTimestamp) this.#follow(CRDS, stored)
      return
    }
    this.#later(() => this.#emptyNamespace(namespace))
  }

  /** However many roles change meanwhile, they are looked at once. */
  #rolesMoved(): void {
    if (this.#rolesChanged) return
    this.#rolesChanged = true
    this.#later(async () => {
      this.#rolesChanged = false
      await this.#aggregateRoles()
    })
  }

  async #aggregateRoles(): Promise<void> {
    const resource = this.#served.ofCollection(COLLECTIONS.clusterRoles)
    if (!resource) return
    const roles = () => this.#store.list(COLLECTIONS.clusterRoles) as RoleObject[]
    for (const name of this.#collecting.names) {
      const role = this.#store.get(COLLECTIONS.clusterRoles, name) as RoleObject | undefined
      const rules = role && aggregatedRules(role, roles())
      if (rules)
        await this.#objects.change(resource, { name }, (live) => ({ ...(live ?? role), rules }), {
          fieldManager: 'clusterrole-aggregation-controller',
        })
    }
  }

  async #emptyNamespace(name: string): Promise<void> {
    const namespace = this.#store.get(NAMESPACES, name)
    if (!namespace?.metadata.deletionTimestamp) return
    let left = 0
    for (const resource of storedResources(this.#served)) {
      if (!resource.namespaced) continue
      for (const object of this.#store.list(resource.collection, `${name}/`)) {
        if (!object.metadata.deletionTimestamp) await this.#remove(resource, object)
        if (this.#store.get(resource.collection, keyOf(object))) left++
      }
    }
    // Once: what else holds it back is for others to end, and each write of it would bring us here again.
    const { finalizers } = (namespace.spec ?? {}) as { readonly finalizers?: readonly string[] }
    if (left === 0 && finalizers?.length) await this.#objects.finalizeNamespace(name, [])
  }

  async #emptyDefinition(definition: ApiObject): Promise<void> {
    const [resource] = resourcesOf(definition)
    let left = 0
    if (resource)
      for (const object of this.#store.list(resource.collection)) {
        if (!object.metadata.deletionTimestamp) await this.#remove(resource, object)
        if (this.#store.get(resource.collection, keyOf(object))) left++
      }
    if (left === 0) await this.#dropFinalizer(CRDS, definition.metadata.name, CLEANUP_FINALIZER)
  }

  async #collectDependents(uid: string): Promise<void> {
    for (const { collection, key } of [...(this.#dependents.get(uid)?.values() ?? [])]) {
      const dependent = this.#store.get(collection, key)
      const resource = this.#served.ofCollection(collection)
      if (!dependent || !resource) continue
      const others = ownersOf(dependent).filter((owner) => owner !== uid && this.#exists(dependent, owner))
      if (others.length === 0) await this.#remove(resource, dependent)
    }
  }

  /** Whether another owner of the dependent is still stored. */
  #exists(dependent: ApiObject, uid: string): boolean {
    const reference = referencesOf(dependent).find((each) => each.uid === uid)
    const resource = reference && this.#served.ofKind(reference.apiVersion, reference.kind)
    if (!resource) return false
    const key = keyIn(resource, { name: reference.name, namespace: dependent.metadata.namespace })
    return this.#store.get(resource.collection, key)?.metadata.uid === uid
  }

  async #orphan(collection: string, owner: ApiObject): Promise<void> {
    const { uid = '' } = owner.metadata
    for (const { collection: where, key } of [...(this.#dependents.get(uid)?.values() ?? [])])
      await this.#store.transact((transaction) => {
        const dependent = transaction.get(where, key)
        if (!dependent) return
        const ownerReferences = referencesOf(dependent).filter((reference) => reference.uid !== uid)
        transaction.put(where, key, { ...dependent, metadata: { ...dependent.metadata, ownerReferences } })
      })
    await this.#dropFinalizer(collection, keyOf(owner), 'orphan')
  }

  #dropFinalizer(collection: string, key: string, finalizer: string): Promise<void> {
    return this.#store.transact((transaction) => {
      const live = transaction.get(collection, key)
      if (!live) return
      const finalizers = (live.metadata.finalizers ?? []).filter((each) => each !== finalizer)
      const metadata = { ...live.metadata, finalizers }
      if (finalizers.length === 0) delete (metadata as { finalizers?: string[] }).finalizers
      const object = { ...live, metadata }
      if (finalizers.length === 0 && metadata.deletionTimestamp) transaction.remove(collection, key, object)
      else transaction.put(collection, key, object)
    })
  }

  async #remove(resource: Resource, { metadata }: ApiObject): Promise<void> {
    try {
      await this.#objects.remove(resource, metadata, { preconditions: { uid: metadata.uid ?? '' } })
    } catch (error) {
      // Somebody else removed or replaced it: nothing is left to do.
      if (!(error instanceof ApiError && (error.reason === 'NotFound' || error.reason === 'Conflict'))) throw error
    }
  }

  #later(task: () => Promise<unknown>): void {
    this.#tasks.push(task)
    this.#working ??= this.#work()
  }

  async #work(): Promise<void> {
    // Not within the write that called for it.
    await Promise.resolve()
    for (let task = this.#tasks.shift(); task && !this.#stopped; task = this.#tasks.shift()) {
      try {
        await task()
      } catch (error) {
        if (error instanceof ApiError && error.reason === 'NotFound') continue
        this.#logger.warn({ err: error }, 'housekeeping of the API server failed; it goes on with the next start')
      }
    }
    this.#working = undefined
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopped = true
    await this.#working
  }
}

interface OwnerReference {
  readonly apiVersion: string
  readonly kind: string
  readonly name: string
  readonly uid: string
}

const referencesOf = (object: ApiObject | undefined): OwnerReference[] =>
  (object?.metadata.ownerReferences as OwnerReference[] | undefined) ?? []
const ownersOf = (object: ApiObject | undefined): string[] => referencesOf(object).map(({ uid }) => uid)

/** One resource per collection. */
function storedResources(served: ServedResources): Resource[] {
  const byCollection = new Map<string, Resource>()
  for (const resource of served.all())
    if (!resource.list && !byCollection.has(resource.collection)) byCollection.set(resource.collection, resource)
  return [...byCollection.values()]
}
