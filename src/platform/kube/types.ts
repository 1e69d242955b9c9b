/** What every Kubernetes object has; unknown fields stay. */
export interface KubeObject {
  apiVersion?: string
  kind?: string
  metadata: ObjectMeta
  [field: string]: unknown
}

/** Metadata of an object, as far as it is used. */
export interface ObjectMeta {
  name: string
  namespace?: string
  uid?: string
  resourceVersion?: string
  generation?: number
  creationTimestamp?: string
  deletionTimestamp?: string
  labels?: Record<string, string>
  annotations?: Record<string, string>
  finalizers?: string[]
  ownerReferences?: { apiVersion: string; kind: string; name: string; uid: string; controller?: boolean }[]
  managedFields?: unknown[]
  [field: string]: unknown
}

/** Names a resource of an API server, and how its objects are read. */
export interface Resource<T = KubeObject> {
  /** '' for the core group */
  readonly group: string
  readonly version: string
  readonly plural: string
  readonly kind: string
  readonly namespaced: boolean
  /** Takes from a JSON object what the reader needs; absent: the object as it is. */
  readonly fromJson?: (object: KubeObject) => T
  /** Takes the same from the object's protobuf bytes; present: protobuf is asked for. Must agree with `fromJson`. Keeps no view of the bytes. */
  readonly fromProtobuf?: (bytes: Uint8Array) => T
}

/** Which objects of a kind are listed, and in which pages. */
export interface ListOptions {
  readonly namespace?: string
  readonly labelSelector?: string
  readonly fieldSelector?: string
  /** objects per page, or what says it of each next one, once it can be asked for; default 500 */
  readonly pageSize?: number | (() => Promise<number>)
  /** a larger page is asked for in smaller ones; default: as large as any answer may be */
  readonly maxPageBytes?: number
  /** begins after the page that gave this as its `next`, with the same selectors */
  readonly continue?: string
  /** 5xx and timeouts are this resource's own trouble, such as that of an aggregated API: the circuit breaker does not count them */
  readonly isolated?: boolean
  readonly signal?: AbortSignal
}

/** One answer of a list. */
export interface Page<T> {
  readonly items: readonly T[]
  readonly resourceVersion: string
  /** where the next page begins; '' after the last */
  readonly next: string
  /** further objects on the server, if it tells */
  readonly remaining?: number
}

/** What a watch gives. */
export type WatchEvent<T> =
  /** the whole current set: at the start and after every re-list; what is missing from it is gone */
  | { readonly type: 'reset'; readonly items: readonly T[]; readonly resourceVersion: string }
  | { readonly type: 'added' | 'modified' | 'deleted'; readonly object: T }

/** How a kind is called in paths. */
export interface ServedKind {
  readonly plural: string
  readonly namespaced: boolean
}

/** Which objects are watched, and from where on. */
export interface WatchOptions extends ListOptions {
  /** Begins there instead of listing first: what came after this version of a list is given, and a `reset` only where it is gone. */
  readonly resourceVersion?: string
  /** Called when the watch had to wait or re-list: for logs and status. The watch goes on by itself. */
  readonly onTrouble?: (error: Error) => void
  /** The server has taken the watch: what changes is on its way. Called again for each connection. */
  readonly onOpen?: () => void
  /**
   * false: never lists. Where it would, and where the server refuses the watch or does not know what is watched, the error is
   * thrown. Default true.
   */
  readonly relist?: boolean
  /** It is believed only once a watch has told of an object that is there, as one that was mute before. */
  readonly mustProve?: boolean
  /** Waits between two tries, ms; default: by the clock. */
  readonly pause?: (ms: number, signal: AbortSignal) => Promise<void>
}

/** Which object of a kind; without a namespace for kinds of the whole cluster. */
export interface ObjectKey {
  readonly name: string
  readonly namespace?: string
}

/** Content types of PATCH: JSON merge patch, JSON patch, strategic merge patch, server-side apply. */
export type PatchKind = 'merge' | 'json' | 'strategic' | 'apply'

/** As whom a call is made, if the credentials of the client may `impersonate` that. */
export interface Impersonation {
  readonly user: string
  readonly groups?: readonly string[]
  readonly uid?: string
  readonly extra?: Readonly<Record<string, readonly string[]>>
}

/** How something is written. */
export interface WriteOptions {
  readonly as?: Impersonation
  /** everything is decided, nothing is stored */
  readonly dryRun?: boolean
  /** default: what the server makes of the user agent; for a patch clusterpulse */
  readonly fieldManager?: string
  /** such as status, scale, approval */
  readonly subresource?: string
}

/** How something is deleted. */
export interface DeleteOptions extends Pick<WriteOptions, 'as' | 'dryRun'> {
  /** what becomes of what it owns; default: as the kind has it */
  readonly propagation?: 'Foreground' | 'Background' | 'Orphan'
  /** only the object with this identity: another of that name is a `conflict` */
  readonly uid?: string
  /** only if it has not changed since */
  readonly resourceVersion?: string
}

/** What `/version` says. */
export interface ServerVersion {
  readonly gitVersion: string
  readonly platform: string
}

/** Of a request to any path. */
export interface RequestOptions {
  readonly body?: unknown
  readonly contentType?: string
  readonly as?: Impersonation
  /** as of a list */
  readonly isolated?: boolean
  /** instead of the client's, ms */
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
}

/**
 * One client per cluster. Every call may throw a KubeError (see errors.ts): its `reason` tells absent, forbidden,
 * unauthorized, conflict, expired, throttled, timeout, unreachable, invalid and open breaker apart.
 */
export interface KubeClient extends AsyncDisposable {
  readonly endpoint: string
  /**
   * Pages in the server's order at one consistent version. Where that version expires on the server after pages were
   * given out, it throws `expired`, as a silent restart would give objects twice; `listAll` and `watch` start again.
   */
  list<T>(resource: Resource<T>, options?: ListOptions): AsyncIterable<Page<T>>
  listAll<T>(resource: Resource<T>, options?: ListOptions): Promise<T[]>
  /** @returns undefined where the server says not found. */
  get<T>(resource: Resource<T>, key: ObjectKey, signal?: AbortSignal): Promise<T | undefined>
  create<T>(resource: Resource<T>, object: KubeObject, signal?: AbortSignal, options?: WriteOptions): Promise<T>
  replace<T>(resource: Resource<T>, object: KubeObject, signal?: AbortSignal, options?: WriteOptions): Promise<T>
  patch<T>(
    resource: Resource<T>,
    key: ObjectKey,
    body: unknown,
    options: WriteOptions & { readonly kind: PatchKind; readonly force?: boolean; readonly signal?: AbortSignal },
  ): Promise<T>
  delete<T>(resource: Resource<T>, key: ObjectKey, signal?: AbortSignal, options?: DeleteOptions): Promise<void>
  /** List, then watch, for ever: bookmarks, inactivity deadline, jittered back-off, re-list on 410. Ends with the signal; throws when the client is disposed. */
  watch<T>(resource: Resource<T>, options: WatchOptions & { signal: AbortSignal }): AsyncIterable<WatchEvent<T>>
  version(signal?: AbortSignal): Promise<ServerVersion>
  /** Whether the server serves this resource (discovery, kept for ten minutes). */
  serves(resource: Pick<Resource, 'group' | 'version' | 'plural'>, signal?: AbortSignal): Promise<boolean>
  /**
   * What a kind is called (discovery, kept as for `serves`; that it is missing is believed for half a minute).
   * @returns undefined: the cluster does not serve it
   */
  find(group: string, version: string, kind: string, signal?: AbortSignal): Promise<ServedKind | undefined>
  /**
   * Cheapest authenticated call (namespaces, limit 1): resolves when the cluster answers and lets us in.
   * @param anyway also while the circuit breaker refuses other calls; default false
   */
  ping(signal?: AbortSignal, anyway?: boolean): Promise<void>
  /** A JSON request to any path of the API server; throws KubeError on any status of 400 or more. */
  request(method: string, path: string, options?: RequestOptions): Promise<unknown>
}

/** How to reach and enter one cluster. */
export interface ClusterAccess {
  /** https://host:port[/path]; http only on the loopback, or where `allowHttp` */
  readonly server: string
  /** Credentials may travel in the clear, by explicit choice. */
  readonly allowHttp?: boolean
  readonly ca?: string
  /** false only by explicit choice */
  readonly verifyTls: boolean
  readonly tlsServerName?: string
  readonly proxyUrl?: string
  /** as whom every call is made that names nobody else */
  readonly as?: Impersonation
  readonly credentials:
    | { readonly kind: 'none' }
    | { readonly kind: 'token'; readonly token: string }
    | { readonly kind: 'tokenFile'; readonly path: string }
    | { readonly kind: 'certificate'; readonly cert: string; readonly key: string }
    | { readonly kind: 'basic'; readonly username: string; readonly password: string }
    | {
        readonly kind: 'exec'
        readonly command: string
        readonly args: readonly string[]
        readonly env: Readonly<Record<string, string>>
        readonly installHint?: string
        /** of client.authentication.k8s.io: v1 (default) or v1beta1 */
        readonly apiVersion?: string
        /** tells the command server and CA of the cluster */
        readonly provideClusterInfo?: boolean
      }
}

/** Bounds of one client. */
export interface ClientLimits {
  /** of one request, ms; default 30 s */
  readonly timeoutMs?: number
  /** requests per second and burst; default 100 and 200 */
  readonly qps?: number
  readonly burst?: number
}
