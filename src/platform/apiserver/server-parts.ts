import type { Clock } from '#model'
import type { Logger } from '#runtime'
import type { AdmissionRules, WriteObserver } from './admission.ts'
import type { BootstrapTokens } from './bootstrap-tokens.ts'
import type { ObjectStore } from './objects.ts'
import type { Authorizer } from './rbac/index.ts'
import type { ServedResources } from './served.ts'
import type { ServiceAccountTokens } from './service-account-tokens.ts'
import type { VersionedStore } from './store.ts'
import type { WatchCounts } from './watch-limits.ts'

/**
 * Answers for the kubelet of a node: an object as JSON; undefined: it has no such path.
 * @throws ApiError where there is no such node, or its kubelet does not answer
 */
export type NodeProxy = (node: string, path: string) => object | undefined

/** What answers are made of: the parts of an `ApiServer` that its HTTP handlers use. */
export interface ServerParts {
  readonly clock: Clock
  readonly logger: Logger
  readonly served: ServedResources
  readonly store: VersionedStore
  readonly objects: ObjectStore
  readonly tokens: ServiceAccountTokens
  readonly bootstrapTokens: BootstrapTokens
  /** decides by the roles and bindings that are stored */
  readonly authorizer: Authorizer
  /** what rules say to what callers write */
  readonly admission: AdmissionRules
  /** hears who writes what, and who is refused */
  readonly observer?: WriteObserver | undefined
  readonly runsWorkloads: boolean
  /** between bookmarks of a watch, ms */
  readonly bookmarkMs: number
  /** what answers behind nodes/{name}/proxy; absent: nothing does */
  readonly nodeProxy?: NodeProxy | undefined
  /** those that are open, by who watches */
  readonly watches: WatchCounts
  /** counted since the start */
  readonly counters: { requests: number; slowWatchersCut: number }
  /** the answer to /version */
  readonly versionInfo: object
  /** aborts when the server closes: ends the watches */
  readonly closing: AbortSignal
  /** false: it closes, and takes no writes */
  readonly isReady: boolean
}
