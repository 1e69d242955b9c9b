import type { Clock, Health } from '#model'
import type { Lookup, OutboundGuard } from '#outbound'

/** What is to be probed: a RegistryConnection with its credentials resolved. */
export interface RegistryTarget {
  readonly name: string
  readonly displayName: string
  /** as declared, with a scheme, without a trailing slash */
  readonly endpoint: string
  readonly type: string
  readonly labels: Readonly<Record<string, string>>
  readonly insecure: boolean
  readonly skipTlsVerify: boolean
  readonly caPem: string | undefined
  readonly allowPrivateRedirects: boolean
  /** never shown, never logged */
  readonly credentials: { readonly username: string; readonly password: string } | undefined
  readonly credentialsRef: { readonly name: string; readonly namespace: string } | undefined
  readonly intervalMs: number
  readonly timeoutMs: number
  readonly checkCatalog: boolean
  /** repositories per page; undefined: the parameter is left out */
  readonly catalogPageSize: number | undefined
  readonly healthCheckPaths: readonly string[]
}

/** What is said of a registry to readers: never a credential. */
export type RegistryFacts = Omit<RegistryTarget, 'credentials'>

/** How one probe ended. */
export interface ProbeResult {
  /** by our clock, when it began, ms */
  readonly at: number
  readonly available: boolean
  /** until the headers of /v2/, ms; null where none came */
  readonly responseMs: number | null
  /** of the API, as the registry says; '' */
  readonly version: string
  readonly features: Readonly<Record<string, boolean>>
  /** counted as far as `isCatalogTruncated` says; null: not asked, or it could not be read */
  readonly repositoryCount: number | null
  /** there are more than were counted */
  readonly isCatalogTruncated: boolean
  /** names, where there are at most 20; else null */
  readonly repositories: readonly string[] | null
  readonly health: Health
  readonly message: string
  /** '' where available: stable code, such as `unreachable`, `tls_untrusted`, `unauthorized`, `not_a_registry`, `redirect_refused`, `timeout` */
  readonly code: string
  readonly error: string
  /** what besides was noticed, such as a catalogue that is forbidden */
  readonly warnings: readonly { readonly code: string; readonly message: string }[]
}

/** One probe, for charts. */
export interface RegistryMeasurement {
  readonly at: number
  readonly available: boolean
  readonly responseMs: number | null
}

export interface RegistryState {
  readonly facts: RegistryFacts
  /** null before the first probe */
  readonly last: ProbeResult | null
  /** since when it is available, or is not; ms */
  readonly since: number | null
  readonly version: number
}

/** Registries as readers see them: from memory, no call waits. */
export interface RegistryReader {
  /** sorted by name */
  registries(): readonly RegistryState[]
  registry(name: string): RegistryState | undefined
  /** oldest first, of the last 24 h, at most one a minute; [] where none */
  measurements(name: string): readonly RegistryMeasurement[]
  version(): number
  unavailable(): { readonly since: number; readonly reason: string } | undefined
  onChange(listener: (name: string) => void): () => void
}

export interface RegistryStore extends RegistryReader, AsyncDisposable {
  declare(facts: RegistryFacts): Promise<void>
  /** These are all: others go with every trace. Before it, what is declared is not known to be complete. */
  resync(all: readonly RegistryFacts[]): Promise<void>
  /** Told where only a resync can help: the store holds less or something else than was written. */
  onLost?(listener: () => void): () => void
  record(name: string, result: ProbeResult): Promise<void>
  /** every trace goes */
  remove(name: string): Promise<void>
}

export interface ProbeOptions {
  readonly signal: AbortSignal
  readonly clock: Clock
  /** how names become addresses; default: as the system does it */
  readonly lookup?: Lookup
  /** which addresses are never asked; default: as for every registry */
  readonly outbound?: OutboundGuard
}
