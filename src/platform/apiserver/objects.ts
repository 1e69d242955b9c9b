import { randomUUID } from 'node:crypto'
import type { Clock } from '#model'
import { CLEANUP_FINALIZER } from './crd.ts'
import { acceptNames } from './crd-names.ts'
import { checkEvent, EVENTS, type EventLimits } from './event-limits.ts'
import { ruleOf } from './kind-rules/index.ts'
import { type ListQuery, listPage, type ObjectPage } from './list.ts'
import type { Predicate } from './selectors.ts'
import { keyIn, type Resource, type ResourceName, type ServedResources, toStorage, toVersion } from './served.ts'
import { ApiError, alreadyExists, conflict, deleted, forbidden, invalid, notFound, type Status } from './status.ts'
import type { StoreEvent, Transaction, VersionedStore } from './store.ts'
import type { Admission, ApiObject } from './types.ts'
import { acceptObject, nameObject, prepareCreate, prepareUpdate, timestamp, type WriteOptions } from './write-rules.ts'

const CRDS = 'apiextensions.k8s.io/customresourcedefinitions'

/** Which object of a kind; without a namespace for kinds of the whole cluster. */
export interface ObjectKey {
  readonly name: string
  readonly namespace?: string | undefined
}

/** As the Kubernetes API has them. */
export interface DeleteOptions {
  readonly preconditions?: { readonly uid?: string; readonly resourceVersion?: string }
  readonly dryRun?: boolean
  readonly propagationPolicy?: string
  /** what rules say to the deletion; absent: it is the server's own, or there are none */
  readonly admission?: Admission | undefined
}

/** What became of a deletion: the object is gone, or marked and waiting for its finalizers. */
export type DeleteResult =
  | { readonly kind: 'gone'; readonly object: ApiObject; readonly status: Status }
  | { readonly kind: 'marked'; readonly object: ApiObject }

export interface Written {
  readonly object: ApiObject
  readonly created: boolean
}

const NAMESPACES = '/namespaces'

/**
 * The objects of one server, in process: the same rules and the same watch events as over HTTP. Reads are synchronous
 * and give the stored objects themselves, which must not be changed; writes are promises. With memory storage a write
 * has taken effect when the call returns.
 */
export class ObjectStore {
  readonly #store: VersionedStore
  readonly #served: ServedResources
  readonly #clock: Clock
  readonly #eventLimits: EventLimits | undefined

  constructor(store: VersionedStore, served: ServedResources, clock: Clock, eventLimits?: EventLimits) {
    this.#store = store
    this.#served = served
    this.#clock = clock
    this.#eventLimits = eventLimits
  }

  /** The version of the newest change of any object. */
  get resourceVersion(): string {
    return String(this.#store.resourceVersion)
  }

  /** @throws ApiError NotFound where this server does not serve it. */
  resource(name: ResourceName): Resource {
    const resource = this.#served.get(name)
    if (!resource) throw new ApiError('NotFound', 'the server could not find the requested resource')
    return resource
  }

  #ofKind(object: ApiObject): Resource {
    const resource = this.#served.ofKind(object.apiVersion, object.kind)
    if (!resource)
      throw new ApiError('NotFound', `no resource of kind ${object.kind} in ${object.apiVersion} is served`)
    return resource
  }

  /**
   * Creates an object; its kind says where.
   * @throws ApiError AlreadyExists, Invalid, NotFound for a missing namespace.
   */
  async create(object: ApiObject, options: WriteOptions = {}): Promise<ApiObject> {
    return this.createIn(this.#ofKind(object), object.metadata.namespace, object, options)
  }

  /**
   * Replaces an object, its status excepted.
   * @throws ApiError NotFound, Conflict where `resourceVersion` is not the newest, Invalid.
   */
  async update(object: ApiObject, options: WriteOptions = {}): Promise<ApiObject> {
    const written = await this.change(this.#ofKind(object), object.metadata, () => object, options)
    return written.object
  }

  /** Replaces the status of an object, and nothing else of it. Throws as `update`. */
  async updateStatus(object: ApiObject, options: WriteOptions = {}): Promise<ApiObject> {
    return this.update(object, { ...options, subresource: 'status' })
  }

  /**
   * Puts an object as it is, status included, whether it exists or not, whatever its version: for seeding and for
   * simulated clusters. Names are checked, the schema is not, managedFields are not tracked; the object is taken over
   * and must not be changed afterwards. Cheap: no copy, no comparison.
   * @throws ApiError NotFound for an unknown kind or namespace, Invalid for a bad name.
   */
  put(object: ApiObject): Promise<ApiObject> {
    const resource = this.#ofKind(object)
    const { namespace, name } = object.metadata
    if (!name || (resource.namespaced && !namespace))
      throw invalid(resource, name ?? '', [
        { reason: 'FieldValueRequired', path: 'metadata.name', message: 'Required value: put needs the full name' },
      ])
    const key = keyIn(resource, object.metadata)
    return this.#store.transact((transaction) => {
      const live = transaction.get(resource.collection, key)
      if (!live && resource.namespaced) requireNamespace(transaction, resource, namespace ?? '', name)
      const metadata = {
        ...object.metadata,
        uid: object.metadata.uid ?? live?.metadata.uid ?? randomUUID(),
        creationTimestamp:
          object.metadata.creationTimestamp ?? live?.metadata.creationTimestamp ?? timestamp(this.#clock.now()),
      }
      if (resource.generation) metadata.generation ??= live?.metadata.generation ?? 1
      const whole = toStorage(resource, { ...object, metadata })
      const rule = ruleOf(resource)
      const prepared = rule?.prepare?.(whole, live, this.#clock.now(), { subresource: 'status' }) ?? whole
      return this.#put(transaction, resource, key, prepared)
    })
  }

  /** @returns undefined where there is none. The object is the stored one: do not change it. */
  get(name: ResourceName, key: ObjectKey): ApiObject | undefined {
    return this.read(this.resource(name), key)
  }

  /** All objects of a resource in the order of namespace and name. They are the stored ones: do not change them. */
  list(name: ResourceName, query: ListQuery = {}): ApiObject[] {
    const resource = this.resource(name)
    return listPage(this.#store, resource, query).items.map((object) => toVersion(resource, object))
  }

  /** @returns what became of it; undefined where there was none. */
  async delete(name: ResourceName, key: ObjectKey, options: DeleteOptions = {}): Promise<DeleteResult | undefined> {
    try {
      return await this.remove(this.resource(name), key, options)
    } catch (error) {
      if (error instanceof ApiError && error.reason === 'NotFound') return undefined
      throw error
    }
  }

  /**
   * Calls the listener with every change after `resourceVersion` (default: from now on), in order, as it becomes visible.
   * @returns a function that ends it.
   * @throws ApiError Expired where that version is forgotten: list again.
   */
  watch(name: ResourceName, listener: (event: StoreEvent) => void, resourceVersion?: string): () => void {
    const from = resourceVersion === undefined ? this.#store.resourceVersion : Number(resourceVersion)
    const end = this.#store.watch(this.resource(name).collection, from, listener)
    if (!end) throw new ApiError('Expired', `too old resource version: ${from}`)
    return end
  }

  // What follows takes the resource itself and is what HTTP calls.

  read(resource: Resource, key: ObjectKey): ApiObject | undefined {
    if (resource.list)
      return resource
        .list()
        .find(
          ({ metadata }) =>
            metadata.name === key.name && (!resource.namespaced || metadata.namespace === key.namespace),
        )
    const object = this.#store.get(resource.collection, keyIn(resource, key))
    return object && toVersion(resource, object)
  }

  page(resource: Resource, query: ListQuery): ObjectPage {
    const page = listPage(this.#store, resource, query)
    return { ...page, items: page.items.map((object) => toVersion(resource, object)) }
  }

  async createIn(
    resource: Resource,
    namespace: string | undefined,
    body: unknown,
    options: WriteOptions,
  ): Promise<ApiObject> {
    refuseVirtual(resource)
    const accepted = inNamespace(resource, namespace, acceptObject(resource, body, options))
    return this.#written(options, (transaction) => this.#createWithin(transaction, resource, accepted, options))
  }

  /** One step, done once whoever hears of writes was told what became of it. */
  async #written<T>({ admission }: Pick<WriteOptions, 'admission'>, work: (transaction: Transaction) => T): Promise<T> {
    const step = this.#store.transact(work)
    if (!admission) return step
    try {
      await step
    } catch (error) {
      await admission.settled(error instanceof ApiError ? error : new ApiError('InternalError', 'the write failed'))
      throw error
    }
    await admission.settled()
    return step
  }

  #createWithin(transaction: Transaction, resource: Resource, accepted: ApiObject, options: WriteOptions): ApiObject {
    const { namespace } = accepted.metadata
    const taken = (name: string) =>
      transaction.get(resource.collection, keyIn(resource, { name, namespace })) !== undefined
    const named = nameObject(resource, accepted, taken)
    const { name } = named.metadata
    if (accepted.metadata.resourceVersion)
      throw new ApiError('BadRequest', 'resourceVersion should not be set on objects to be created')
    if (resource.namespaced) requireNamespace(transaction, resource, namespace ?? '', name)
    if (taken(name)) throw alreadyExists(resource, name)
    const prepared = prepareCreate(resource, named, { ...options, nowMs: this.#clock.now() })
    options.guard?.(prepared, undefined)
    options.admission?.validate(prepared, undefined, transaction)
    if (options.dryRun) return prepared
    const stored = toStorage(resource, prepared)
    return toVersion(resource, this.#put(transaction, resource, keyIn(resource, prepared.metadata), stored))
  }

  /**
   * Changes an object in one step: `next` gets what is stored (undefined where nothing is) and gives what shall be.
   * Where nothing is stored and `next` gives an object, it is created, if `createMissing` says so.
   */
  async change(
    resource: Resource,
    key: ObjectKey,
    next: (live: ApiObject | undefined) => ApiObject,
    options: WriteOptions & { readonly createMissing?: boolean },
  ): Promise<Written> {
    refuseVirtual(resource)
    const path = keyIn(resource, key)
    return this.#written(options, (transaction) => {
      const stored = transaction.get(resource.collection, path)
      const live = stored && toVersion(resource, stored)
      const accepted = inNamespace(resource, key.namespace, acceptObject(resource, next(live), options))
      if (accepted.metadata.name && accepted.metadata.name !== key.name)
        throw new ApiError(
          'BadRequest',
          `the name of the object (${accepted.metadata.name}) does not match the name on the URL (${key.name})`,
        )
      if (!accepted.metadata.name) accepted.metadata.name = key.name
      const creates = options.createMissing || (resource.createOnUpdate && !accepted.metadata.resourceVersion)
      if (!live && !creates) throw notFound(resource, key.name)
      if (!live) return { object: this.#createWithin(transaction, resource, accepted, options), created: true }
      const changed = prepareUpdate(resource, live, accepted, { ...options, nowMs: this.#clock.now() })
      if (changed) {
        options.guard?.(changed, live)
        options.admission?.validate(changed, live, transaction)
      }
      if (!changed || options.dryRun) return { object: changed ?? live, created: false }
      return { object: this.#keep(transaction, resource, path, changed), created: false }
    })
  }

  /** Stores a changed object; one that only waited for its last finalizer goes instead. */
  #keep(transaction: Transaction, resource: Resource, path: string, changed: ApiObject): ApiObject {
    const stored = { ...toStorage(resource, changed), metadata: { ...changed.metadata } }
    if (changed.metadata.deletionTimestamp && isFree(resource, stored))
      return toVersion(resource, transaction.remove(resource.collection, path, stored) ?? stored)
    return toVersion(resource, this.#put(transaction, resource, path, stored))
  }

  /** The names of definitions are compared in the same step, so that no two get the same one. */
  #put(transaction: Transaction, resource: Resource, path: string, object: ApiObject): ApiObject {
    const { collection } = resource
    if (collection === EVENTS && this.#eventLimits) checkEvent(this.#eventLimits, transaction, path, object)
    if (collection !== CRDS) return transaction.put(collection, path, object)
    const all = transaction.list(collection, '')
    return transaction.put(
      collection,
      path,
      acceptNames(object, transaction.get(collection, path), all, this.#clock.now()),
    )
  }

  async remove(resource: Resource, key: ObjectKey, options: DeleteOptions): Promise<DeleteResult> {
    refuseVirtual(resource)
    return this.#written(options, (transaction) => this.#removeWithin(transaction, resource, key, options))
  }

  #removeWithin(transaction: Transaction, resource: Resource, key: ObjectKey, options: DeleteOptions): DeleteResult {
    const path = keyIn(resource, key)
    const stored = transaction.get(resource.collection, path)
    if (!stored) throw notFound(resource, key.name)
    checkPreconditions(resource, stored, options)
    ruleOf(resource).beforeDelete?.(resource, stored)
    options.admission?.validate(undefined, toVersion(resource, stored), transaction)
    const object = marked(resource, stored, options, this.#clock.now())
    if (isFree(resource, object)) {
      if (!options.dryRun) transaction.remove(resource.collection, path)
      return {
        kind: 'gone',
        object: toVersion(resource, object),
        status: deleted(resource, key.name, stored.metadata.uid),
      }
    }
    if (options.dryRun || stored.metadata.deletionTimestamp)
      return { kind: 'marked', object: toVersion(resource, stored) }
    return { kind: 'marked', object: toVersion(resource, transaction.put(resource.collection, path, object)) }
  }

  /** Deletes what matches. @returns what matched, as it was. */
  async removeAll(
    resource: Resource,
    query: { readonly namespace?: string | undefined; readonly matches: Predicate },
    options: DeleteOptions,
  ): Promise<ApiObject[]> {
    refuseVirtual(resource)
    const prefix = resource.namespaced && query.namespace ? `${query.namespace}/` : ''
    return this.#written(options, (transaction) => {
      const matching = transaction.list(resource.collection, prefix).filter(query.matches)
      for (const { metadata } of matching) this.#removeWithin(transaction, resource, metadata, options)
      return matching.map((object) => toVersion(resource, object))
    })
  }

  /** Ends a namespace's life: what `finalize` and our own housekeeping do once it is empty. */
  async finalizeNamespace(name: string, finalizers: readonly string[]): Promise<ApiObject> {
    const resource = this.resource({ group: '', version: 'v1', plural: 'namespaces' })
    return this.#store.transact((transaction) => {
      const live = transaction.get(NAMESPACES, name)
      if (!live) throw notFound(resource, name)
      const changed = {
        ...live,
        metadata: { ...live.metadata },
        spec: { ...(live.spec as object), finalizers: [...finalizers] },
      }
      return this.#keep(transaction, resource, name, changed)
    })
  }
}

function refuseVirtual(resource: Resource): void {
  if (resource.list)
    throw new ApiError('MethodNotAllowed', 'the server does not allow this method on the requested resource')
}

/** Whether nothing holds an object back from going. */
function isFree(resource: Resource, { metadata, spec }: ApiObject): boolean {
  if (metadata.finalizers?.length) return false
  return resource.collection !== NAMESPACES || !(spec as { finalizers?: string[] } | undefined)?.finalizers?.length
}

function marked(resource: Resource, stored: ApiObject, options: DeleteOptions, nowMs: number): ApiObject {
  if (stored.metadata.deletionTimestamp) return stored
  const metadata: ApiObject['metadata'] = {
    ...stored.metadata,
    deletionTimestamp: timestamp(nowMs),
    deletionGracePeriodSeconds: 0,
  }
  if (metadata.generation !== undefined) metadata.generation++
  if (resource.collection === 'apiextensions.k8s.io/customresourcedefinitions')
    metadata.finalizers = [...(metadata.finalizers ?? []), CLEANUP_FINALIZER]
  if (options.propagationPolicy === 'Orphan') metadata.finalizers = [...(metadata.finalizers ?? []), 'orphan']
  const object = { ...stored, metadata }
  if (resource.collection !== NAMESPACES) return object
  delete metadata.deletionGracePeriodSeconds
  return { ...object, status: { ...(stored.status as object | undefined), phase: 'Terminating' } }
}

function checkPreconditions(resource: Resource, stored: ApiObject, { preconditions }: DeleteOptions): void {
  const { uid, resourceVersion } = preconditions ?? {}
  const { metadata } = stored
  if (uid && uid !== metadata.uid)
    throw conflict(
      resource,
      metadata.name,
      `the UID in the precondition (${uid}) does not match the UID in record (${metadata.uid}). The object might have been deleted and then recreated`,
    )
  if (resourceVersion && resourceVersion !== metadata.resourceVersion)
    throw conflict(
      resource,
      metadata.name,
      `the ResourceVersion in the precondition (${resourceVersion}) does not match the ResourceVersion in record (${metadata.resourceVersion}). The object might have been modified`,
    )
}

function inNamespace(resource: Resource, namespace: string | undefined, object: ApiObject): ApiObject {
  if (!resource.namespaced) return object
  const own = object.metadata.namespace
  if (own && namespace && own !== namespace)
    throw new ApiError(
      'BadRequest',
      'the namespace of the provided object does not match the namespace sent on the request',
    )
  const effective = namespace ?? own
  if (!effective) throw new ApiError('BadRequest', `${resource.kind} lives in a namespace: name one`)
  return { ...object, metadata: { ...object.metadata, namespace: effective } }
}

function requireNamespace(transaction: Transaction, resource: Resource, namespace: string, name: string): void {
  const found = transaction.get(NAMESPACES, namespace)
  if (!found) throw notFound({ group: '', plural: 'namespaces', kind: 'Namespace' }, namespace)
  if (found.metadata.deletionTimestamp)
    throw forbidden(
      resource,
      name,
      `unable to create new content in namespace ${namespace} because it is being terminated`,
      [
        {
          reason: 'NamespaceTerminating',
          message: `namespace ${namespace} is being terminated`,
          field: 'metadata.namespace',
        },
      ],
    )
}
