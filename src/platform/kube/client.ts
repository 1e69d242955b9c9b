import { acceptFor, decodeObject, parseJson } from './decode.ts'
import { Discovery } from './discovery.ts'
import { isKubeError } from './errors.ts'
import { listPages, listWhole } from './list.ts'
import { collectionPath, objectPath, query } from './paths.ts'
import { type Call, type KubeClientOptions, Transport } from './transport.ts'
import type {
  ClusterAccess,
  DeleteOptions,
  KubeClient,
  KubeObject,
  ListOptions,
  ObjectKey,
  PatchKind,
  RequestOptions,
  Resource,
  ServedKind,
  ServerVersion,
  WatchOptions,
  WriteOptions,
} from './types.ts'
import { watchForever } from './watch.ts'

const PATCH_TYPES: Readonly<Record<PatchKind, string>> = {
  merge: 'application/merge-patch+json',
  json: 'application/json-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  apply: 'application/apply-patch+yaml',
}

/**
 * A client of one cluster. Opens connections when first used; TLS is verified unless the access says otherwise.
 * @throws KubeError `invalid` where the address, the CA or a key cannot be used.
 */
export function createKubeClient(access: ClusterAccess, options: KubeClientOptions = {}): OwnedKubeClient {
  return new Client(new Transport(access, options), options)
}

const nothing = () => undefined

const writeQuery = ({ fieldManager, dryRun }: WriteOptions): string =>
  query({ fieldManager, dryRun: dryRun ? 'All' : undefined })

/** v1.DeleteOptions; undefined where the server's own way is meant. */
function deleteBody({ propagation, uid, resourceVersion, dryRun }: DeleteOptions): string | undefined {
  const preconditions = { ...(uid && { uid }), ...(resourceVersion && { resourceVersion }) }
  const options = {
    ...(propagation && { propagationPolicy: propagation }),
    ...(Object.keys(preconditions).length > 0 && { preconditions }),
    ...(dryRun && { dryRun: ['All'] }),
  }
  if (Object.keys(options).length === 0) return undefined
  return JSON.stringify({ apiVersion: 'v1', kind: 'DeleteOptions', ...options })
}

/** A client in the hands of whoever made it. */
export interface OwnedKubeClient extends KubeClient {
  /**
   * Another client takes its place: it keeps no connection open between calls, and goes with its last user. Unlike the end by
   * `Symbol.asyncDispose`, which refuses calls, it breaks nobody's round.
   */
  retire(): void
}

/** A write that fails may fail for its object, which is too large for the store, or for a webhook: it is no reason to pause with others. */
const OF_ONE_OBJECT = { isolated: true }

/** What the pool knows of a client besides its use. */
export class Client implements OwnedKubeClient {
  readonly endpoint: string
  readonly #transport: Transport
  readonly #discovery: Discovery
  readonly #options: KubeClientOptions

  constructor(transport: Transport, options: KubeClientOptions = {}) {
    this.endpoint = transport.endpoint
    this.#transport = transport
    this.#discovery = new Discovery(transport)
    this.#options = options
  }

  /** when the last call ended, ms; now, while a call or a watch runs */
  get lastUsedAt(): number {
    return this.#transport.lastUsedAt
  }

  async *list<T>(resource: Resource<T>, options?: ListOptions) {
    try {
      yield* listPages(this.#transport, resource, options)
    } catch (error) {
      // An empty namespace has an empty list: it is the resource that is not there (any more).
      if (isKubeError(error, 'not_found')) this.#discovery.forget(resource)
      throw error
    }
  }

  async listAll<T>(resource: Resource<T>, options?: ListOptions): Promise<T[]> {
    return (await listWhole(this.#transport, resource, options)).items
  }

  async get<T>(resource: Resource<T>, key: ObjectKey, signal?: AbortSignal): Promise<T | undefined> {
    const call: Call = { method: 'GET', path: objectPath(resource, key), accept: acceptFor(resource), signal }
    try {
      return await this.#transport.call(call, (answer) => decodeObject(resource, call, answer))
    } catch (error) {
      if (isKubeError(error, 'not_found')) return undefined
      throw error
    }
  }

  async create<T>(
    resource: Resource<T>,
    object: KubeObject,
    signal?: AbortSignal,
    options: WriteOptions = {},
  ): Promise<T> {
    const namespace = resource.namespaced ? object.metadata.namespace : undefined
    const { subresource, as } = options
    // What is made below another object, such as a token of an account, is made at that object.
    const path = subresource ? objectPath(resource, object.metadata, subresource) : collectionPath(resource, namespace)
    const body = this.#body(resource, object)
    return this.#write(resource, { method: 'POST', path: path + writeQuery(options), body, as, signal })
  }

  async replace<T>(
    resource: Resource<T>,
    object: KubeObject,
    signal?: AbortSignal,
    options: WriteOptions = {},
  ): Promise<T> {
    const path = objectPath(resource, object.metadata, options.subresource) + writeQuery(options)
    const body = this.#body(resource, object)
    return this.#write(resource, { method: 'PUT', path, body, as: options.as, signal })
  }

  async patch<T>(
    resource: Resource<T>,
    key: ObjectKey,
    body: unknown,
    options: WriteOptions & { readonly kind: PatchKind; readonly force?: boolean; readonly signal?: AbortSignal },
  ): Promise<T> {
    const { kind, subresource, fieldManager = 'clusterpulse', force, as, dryRun, signal } = options
    const more = { fieldManager, force: kind === 'apply' ? force : undefined, dryRun: dryRun ? 'All' : undefined }
    const path = objectPath(resource, key, subresource) + query(more)
    const contentType = PATCH_TYPES[kind]
    // JSON is YAML, so an apply patch travels as JSON too.
    return this.#write(resource, { method: 'PATCH', path, body: JSON.stringify(body), contentType, as, signal })
  }

  async delete<T>(
    resource: Resource<T>,
    key: ObjectKey,
    signal?: AbortSignal,
    options: DeleteOptions = {},
  ): Promise<void> {
    const body = deleteBody(options)
    const path = objectPath(resource, key)
    await this.#transport.call(
      { method: 'DELETE', path, ...(body && { body }), as: options.as, signal, ...OF_ONE_OBJECT },
      nothing,
    )
  }

  async *watch<T>(resource: Resource<T>, options: WatchOptions & { signal: AbortSignal }) {
    const release = this.#transport.hold()
    try {
      yield* watchForever(this.#transport, resource, options, { inactivityMs: this.#options.watchInactivityMs })
    } finally {
      release()
    }
  }

  async version(signal?: AbortSignal): Promise<ServerVersion> {
    const answer = (await this.request('GET', '/version', signal ? { signal } : {})) as
      | Partial<ServerVersion>
      | undefined
    return { gitVersion: answer?.gitVersion ?? 'unknown', platform: answer?.platform ?? '' }
  }

  serves(resource: Pick<Resource, 'group' | 'version' | 'plural'>, signal?: AbortSignal): Promise<boolean> {
    return this.#discovery.serves(resource, signal)
  }

  find(group: string, version: string, kind: string, signal?: AbortSignal): Promise<ServedKind | undefined> {
    return this.#discovery.find({ group, version, kind }, signal)
  }

  async ping(signal?: AbortSignal, anyway = false): Promise<void> {
    await this.#transport.call({ method: 'GET', path: '/api/v1/namespaces?limit=1', signal, anyway }, nothing)
  }

  async request(method: string, path: string, options: RequestOptions = {}): Promise<unknown> {
    const { body, contentType, signal, isolated, timeoutMs, as } = options
    const call: Call = {
      method,
      path,
      signal,
      as,
      ...(isolated && { isolated }),
      ...(timeoutMs !== undefined && { timeoutMs }),
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(contentType === undefined ? {} : { contentType }),
    }
    return this.#transport.call(call, ({ body }) => parseJson(call, body))
  }

  async #write<T>(resource: Resource<T>, call: Call): Promise<T> {
    return await this.#transport.call({ ...call, ...OF_ONE_OBJECT }, (answer) => decodeObject(resource, call, answer))
  }

  #body(resource: Resource<unknown>, object: KubeObject): string {
    const apiVersion = resource.group === '' ? resource.version : `${resource.group}/${resource.version}`
    return JSON.stringify({ apiVersion, kind: resource.kind, ...object })
  }

  retire(): void {
    this.#transport.retire()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#transport[Symbol.asyncDispose]()
  }
}
