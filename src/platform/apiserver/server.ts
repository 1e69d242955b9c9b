import { setMaxListeners } from 'node:events'
import type { AdmissionRule, VersionConverter } from '#kinds'
import { type Clock, systemClock } from '#model'
import { type Logger, silentLogger } from '#runtime'
import type { Sealer } from '#sealing'
import { AdmissionRules, type WriteObserver } from './admission.ts'
import type { TokenHolders } from './authentication.ts'
import { BootstrapTokens } from './bootstrap-tokens.ts'
import { builtInResources } from './built-in.ts'
import { resourcesOf } from './crd.ts'
import { isEstablished, waitsForNames } from './crd-names.ts'
import type { EventLimits } from './event-limits.ts'
import { expiringEvents, expiringRequests } from './expiring-kinds.ts'
import { Expiry } from './expiry.ts'
import { Housekeeping } from './housekeeping.ts'
import type { ApiRequest, ApiResponse } from './http/call.ts'
import { handleRequest } from './http/handle.ts'
import { journalStorage } from './journal.ts'
import { ObjectStore } from './objects.ts'
import { type PublishedAuthorities, publishAuthorities, publishFollowing, publishReader } from './published.ts'
import { Authorizer, seedDefaultRoles } from './rbac/index.ts'
import { ServedResources } from './served.ts'
import type { NodeProxy, ServerParts } from './server-parts.ts'
import { ServiceAccountTokens } from './service-account-tokens.ts'
import { memoryStorage, type ObjectStorage } from './storage.ts'
import { type StoreEvent, VersionedStore } from './store.ts'
import type { ApiObject } from './types.ts'
import { WATCH_LIMITS, WatchCounts, type WatchLimits } from './watch-limits.ts'

const CRDS = 'apiextensions.k8s.io/customresourcedefinitions'
const NAMESPACES = ['default', 'kube-node-lease', 'kube-public', 'kube-system']

/** Where objects are kept, and which kinds there are. */
export interface ApiServerOptions {
  /** `journal` keeps objects in a directory of its own, synced before a write is answered, sealed where there is a sealer; `memory` keeps nothing. */
  readonly storage:
    | { readonly kind: 'journal'; readonly dir: string; readonly acceptLoss?: boolean; readonly sealer?: Sealer }
    | { readonly kind: 'memory' }
    | ObjectStorage
  /** for logs */
  readonly name?: string
  /** what /version says; default: this implementation's */
  readonly version?: { readonly gitVersion: string; readonly platform: string }
  readonly clock?: Clock
  /** changes per resource that watches and pages can go back over; default 10 000 */
  readonly maxHistory?: number
  /** between bookmarks of a watch that asks for them, ms; default 30 s */
  readonly bookmarkMs?: number
  readonly logger?: Logger
  /** something here plays the part of nodes; else who writes a workload is warned that nothing runs it */
  readonly runsWorkloads?: boolean
  /** makes the roles and bindings every cluster has, such as cluster-admin, view and system:discovery */
  readonly defaultRoles?: boolean
  /**
   * PEM of the CAs whose client certificates its listener takes; published in kube-system/extension-apiserver-authentication. `later`: they
   * are told by `publishAuthorities` before anybody listens.
   */
  readonly clientCa?: string
  /** what callers' writes must obey beyond schemas and rights; what is written in process is not asked about */
  readonly admission?: readonly AdmissionRule[]
  /** hears who writes what through a listener, and who is refused; default: nobody does */
  readonly observer?: WriteObserver
  /** what events may take; default: they stay, and have no bound */
  readonly events?: EventLimits
  /** watches of one caller at a time; default: `WATCH_LIMITS` */
  readonly watches?: WatchLimits
  /** how objects of kinds with several versions are turned from one into the other; without, only their apiVersion changes */
  readonly converters?: readonly VersionConverter[]
}

/** Read-only objects that are computed whenever somebody asks. */
export interface VirtualResource {
  readonly group: string
  readonly version: string
  readonly plural: string
  readonly kind: string
  readonly namespaced: boolean
  readonly shortNames?: readonly string[]
  list(): readonly ApiObject[]
}

/** One Kubernetes-compatible API over one store, to be mounted on a listener and used in process. */
export class ApiServer implements ServerParts, AsyncDisposable {
  readonly name: string
  readonly clock: Clock
  readonly logger: Logger
  readonly bookmarkMs: number
  readonly served = new ServedResources()
  readonly store: VersionedStore
  readonly objects: ObjectStore
  readonly tokens: ServiceAccountTokens
  readonly bootstrapTokens: BootstrapTokens
  readonly authorizer: Authorizer
  readonly admission: AdmissionRules
  readonly observer: WriteObserver | undefined
  readonly runsWorkloads: boolean
  readonly watches: WatchCounts
  /** counted since the start */
  readonly counters = { requests: 0, slowWatchersCut: 0 }
  readonly versionInfo: object
  nodeProxy: NodeProxy | undefined
  readonly #housekeeping: Housekeeping
  readonly #converters: readonly VersionConverter[]
  readonly #expiries: readonly Expiry[]
  readonly #closing = new AbortController()

  private constructor(options: ApiServerOptions, storage: ObjectStorage) {
    this.name = options.name ?? 'apiserver'
    this.clock = options.clock ?? systemClock
    this.logger = (options.logger ?? silentLogger).child({ apiserver: this.name })
    this.bookmarkMs = options.bookmarkMs ?? 30_000
    this.watches = new WatchCounts(options.watches ?? WATCH_LIMITS)
    this.#converters = options.converters ?? []
    setMaxListeners(0, this.#closing.signal) // every watch ends with it
    this.versionInfo = versionInfo(options.version)
    for (const resource of builtInResources()) this.served.add(resource)
    this.store = new VersionedStore(storage, {
      maxHistory: options.maxHistory ?? 10_000,
      onCommit: (collection, event) => this.#saw(collection, event),
    })
    this.objects = new ObjectStore(this.store, this.served, this.clock, options.events)
    this.authorizer = new Authorizer(this.store)
    this.tokens = new ServiceAccountTokens(this.objects, this.clock)
    this.bootstrapTokens = new BootstrapTokens(this.objects, this.clock)
    this.runsWorkloads = options.runsWorkloads ?? false
    const { store, served, objects, logger, authorizer, clock } = this
    this.observer = options.observer
    const { observer } = this
    this.admission = new AdmissionRules(options.admission ?? [], { authorizer, objects, served, clock, observer })
    this.#housekeeping = new Housekeeping({ store, served, objects, logger })
    this.#expiries = [expiringRequests, ...(options.events ? [expiringEvents(options.events)] : [])].map(
      (kind) => new Expiry(kind, { objects, clock, logger }),
    )
  }

  /**
   * Opens the store, with the four namespaces every cluster has.
   * @throws DirectoryLockedError where another process has the directory open.
   */
  static async open(options: ApiServerOptions): Promise<ApiServer> {
    const storage = await openStorage(options)
    try {
      const server = new ApiServer(options, storage)
      for (const definition of server.store.list(CRDS)) server.#define(definition)
      server.#housekeeping.start()
      for (const expiry of server.#expiries) expiry.start()
      for (const name of NAMESPACES)
        if (!server.objects.get({ group: '', version: 'v1', plural: 'namespaces' }, { name }))
          await server.objects.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } })
      if (options.defaultRoles) {
        await seedDefaultRoles(server.objects)
        await publishReader(server.objects)
        if (options.clientCa !== 'later') await publishAuthorities(server.objects, options.clientCa ?? '')
      }
      return server
    } catch (error) {
      await storage[Symbol.asyncDispose]()
      throw error
    }
  }

  /** Aborts when the server closes: ends the watches. */
  get closing(): AbortSignal {
    return this.#closing.signal
  }

  /** Whether it goes on: a server that closes takes no writes. */
  get isReady(): boolean {
    return !this.#closing.signal.aborted
  }

  #saw(collection: string, event: StoreEvent): void {
    if (collection === CRDS) {
      if (event.type === 'DELETED') this.served.removeDefinition(event.object.metadata.name)
      else if (
        event.type === 'ADDED' ||
        event.previous?.metadata.generation !== event.object.metadata.generation ||
        (event.previous && isEstablished(event.previous)) !== isEstablished(event.object)
      )
        this.#define(event.object)
      if (event.type !== 'ADDED') this.#offerNames(event.object)
    }
    this.authorizer.saw(collection, event)
    this.#housekeeping.saw(collection, event)
    for (const expiry of this.#expiries) expiry.saw(collection)
  }

  #define(definition: ApiObject): void {
    this.served.removeDefinition(definition.metadata.name)
    if (!isEstablished(definition)) return
    for (const resource of resourcesOf(definition, this.#converters)) this.served.add(resource)
  }

  /** Names that a definition gave up may be those another one of its group waits for. */
  #offerNames({ metadata, spec }: ApiObject): void {
    const { group } = spec as { group: string }
    for (const other of this.store.list(CRDS)) {
      const isWaiting = other.metadata.name !== metadata.name && waitsForNames(other)
      if (!isWaiting || (other.spec as { group: string }).group !== group) continue
      this.objects
        .put(other)
        .catch((error: unknown) =>
          this.logger.warn({ error, definition: other.metadata.name }, 'a definition could not be given its names'),
        )
    }
  }

  /** Publishes the CAs whose client certificates its listener takes, as they come and go. @param fixed PEM of those that stay */
  async publishAuthorities(authorities: PublishedAuthorities, fixed = ''): Promise<void> {
    const { objects, logger } = this
    const end = await publishFollowing(objects, authorities, { fixed, logger })
    this.#closing.signal.addEventListener('abort', end, { once: true })
  }

  /** Serves objects that are computed on each read, such as those of metrics.k8s.io. */
  addVirtual(resource: VirtualResource): void {
    this.served.add({
      ...resource,
      list: () => resource.list(),
      singular: resource.kind.toLowerCase(),
      shortNames: resource.shortNames ?? [],
      categories: [],
      status: false,
      builtIn: true,
      schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
      columns: [],
      collection: `${resource.group}/${resource.plural}`,
      storageVersion: resource.version,
      nameRule: 'subdomain',
      generation: false,
      versionRequired: false,
      fields: {},
    })
  }

  /** Lets kubelets be asked through this server, at `nodes/{name}/proxy/…`. */
  proxyNodes(proxy: NodeProxy): void {
    this.nodeProxy = proxy
  }

  /**
   * Answers a request whose path starts with `prefix`.
   * @param holders who has which token, beside the tokens this server issues itself
   */
  async handle(request: ApiRequest, response: ApiResponse, prefix: string, holders: TokenHolders): Promise<void> {
    await handleRequest(this, request, response, prefix, holders)
  }

  /** Ends the watches, finishes what is being written, closes the store. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort()
    await this.#housekeeping[Symbol.asyncDispose]()
    for (const expiry of this.#expiries) await expiry[Symbol.asyncDispose]()
    await this.store[Symbol.asyncDispose]()
  }
}

async function openStorage({ storage, logger }: ApiServerOptions): Promise<ObjectStorage> {
  if (!('kind' in storage)) return storage
  return storage.kind === 'journal' ? journalStorage({ ...storage, ...(logger && { logger }) }) : memoryStorage()
}

function versionInfo(
  { gitVersion, platform } = {
    gitVersion: 'v1.32.0+clusterpulse',
    platform: `linux/${process.arch === 'x64' ? 'amd64' : process.arch}`,
  },
): object {
  const [, major = '1', minor = '0'] = /^v?(\d+)\.(\d+)/.exec(gitVersion) ?? []
  return {
    major,
    minor,
    gitVersion,
    gitCommit: '',
    gitTreeState: 'clean',
    buildDate: '1970-01-01T00:00:00Z',
    goVersion: '',
    compiler: 'node',
    platform,
  }
}
