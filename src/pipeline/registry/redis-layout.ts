import { seconds } from '#model'
import type { SetLayout } from '#redis'
import { KEPT_MS } from './board.ts'
import { SLOW_MS } from './probe.ts'
import { factsOf, readResult } from './stored.ts'
import type { ProbeResult, RegistryFacts, RegistryMeasurement, RegistryState } from './types.ts'

/** Keys and documents of registries in Redis: those of the original, in snake case, with what we know besides. */
export const ALL = 'registries:all'
export const EVENTS_CHANNEL = 'registry-events'
/** The set is what is declared; what probes found lies beside it. */
export const LAYOUT: SetLayout = {
  what: 'registries',
  members: ALL,
  generation: 'registries:generation',
  seal: 'registries:digest',
  channel: EVENTS_CHANNEL,
  documentKey: (name) => keysOf(name).spec,
  script: "redis.pcall('GET', 'registry:' .. name .. ':spec')",
}
/** newest first */
export const EVENTS_KEPT = 100
export const EVENTS_TTL_S = 24 * 3600

export const keysOf = (name: string) => ({
  spec: `registry:${name}:spec`,
  status: `registry:${name}:status`,
  meta: `registry:${name}:meta`,
  metrics: `registry:${name}:metrics`,
  latest: `registry:${name}:metrics:latest`,
  /** apart from those of clusters, which may have the same name */
  events: `registry-events:${name}`,
})

/** How long a status stands without a new one, s: longer than any planned pause between two probes. */
export const statusTtlS = ({ intervalMs }: RegistryFacts, atLeastMs: number): number =>
  Math.ceil(Math.max(atLeastMs, intervalMs * 10) / 1000)

export const rfc3339 = (ms: number): string => `${new Date(ms).toISOString().slice(0, 19)}Z`
/** Scores of measurements: whole seconds. */
export const scoreOf = (at: number): number => Math.floor(at / 1000)
export const oldestScore = (now: number): number => scoreOf(now - KEPT_MS)

export function specDocument(facts: RegistryFacts): object {
  const { credentialsRef, caPem } = facts
  return {
    display_name: facts.displayName,
    endpoint: facts.endpoint,
    type: facts.type,
    insecure: facts.insecure,
    skip_tls: facts.skipTlsVerify,
    labels: facts.labels,
    monitoring: {
      interval: Math.round(facts.intervalMs / 1000),
      timeout: Math.round(facts.timeoutMs / 1000),
      check_catalog: facts.checkCatalog,
      max_catalog_entries: facts.catalogPageSize ?? -1,
    },
    ...(credentialsRef && { credentials_ref: credentialsRef }),
    allow_private_redirects: facts.allowPrivateRedirects,
    health_check_paths: facts.healthCheckPaths,
    ...(caPem !== undefined && { ca_bundle: caPem }),
  }
}

/** undefined: it names no address, so it is no registry. What is missing or odd otherwise counts as not said. */
export function readSpec(name: string, text: string): RegistryFacts | undefined {
  const document = objectOf(text)
  if (!document || typeof document.endpoint !== 'string') return undefined
  const monitoring = recordOf(document.monitoring)
  const reference = recordOf(document.credentials_ref)
  const pageSize = numberOf(monitoring.max_catalog_entries) ?? 100
  return factsOf({
    name,
    displayName: textOf(document.display_name) || name,
    endpoint: document.endpoint,
    type: textOf(document.type),
    labels: textsOf(document.labels),
    insecure: document.insecure === true,
    skipTlsVerify: document.skip_tls === true,
    caPem: typeof document.ca_bundle === 'string' ? document.ca_bundle : undefined,
    allowPrivateRedirects: document.allow_private_redirects === true,
    credentialsRef:
      typeof reference.name === 'string' ? { name: reference.name, namespace: textOf(reference.namespace) } : undefined,
    intervalMs: seconds(positive(monitoring.interval) ?? 60),
    timeoutMs: seconds(positive(monitoring.timeout) ?? 10),
    checkCatalog: monitoring.check_catalog === true,
    catalogPageSize: pageSize < 1 ? undefined : Math.trunc(pageSize),
    healthCheckPaths: Array.isArray(document.health_check_paths)
      ? document.health_check_paths.filter((path): path is string => typeof path === 'string')
      : [],
  })
}

export function statusDocument({ since }: Pick<RegistryState, 'since'>, result: ProbeResult): object {
  return {
    available: result.available,
    response_time: Math.round(result.responseMs ?? 0),
    version: result.version,
    repository_count: result.repositoryCount ?? 0,
    features: result.features,
    repositories: result.repositories,
    last_check: rfc3339(result.at),
    ...(result.error !== '' && { error: result.error }),
    health: result.health,
    message: result.message,
    phase: result.available ? 'Connected' : 'Error',
    since,
    probe: result,
  }
}

/** What a status says; undefined: nothing that can be read. One that the original wrote says less. */
export function readStatus(text: string): Pick<RegistryState, 'last' | 'since'> | undefined {
  const document = objectOf(text)
  if (!document) return undefined
  const since = numberOf(document.since) ?? null
  const last = readResult(document.probe) ?? originalResult(document)
  return last && { last, since }
}

function originalResult(document: Readonly<Record<string, unknown>>): ProbeResult | undefined {
  const at = Date.parse(textOf(document.last_check))
  if (typeof document.available !== 'boolean' || Number.isNaN(at)) return undefined
  const { available } = document
  const responseMs = numberOf(document.response_time) ?? 0
  const features = recordOf(document.features)
  const names = Array.isArray(document.repositories)
    ? document.repositories.filter((name) => typeof name === 'string')
    : null
  const error = textOf(document.error)
  return {
    at,
    available,
    responseMs: responseMs > 0 ? responseMs : null,
    version: textOf(document.version),
    features: Object.fromEntries(
      Object.entries(features).filter((entry): entry is [string, boolean] => typeof entry[1] === 'boolean'),
    ),
    repositoryCount:
      features.catalog_accessible === true ? Math.max(0, Math.trunc(numberOf(document.repository_count) ?? 0)) : null,
    isCatalogTruncated: false,
    repositories: names,
    health: available ? (responseMs > SLOW_MS ? 'degraded' : 'healthy') : 'unhealthy',
    message: available ? 'Registry is available' : `Registry unavailable: ${error}`,
    code: available ? '' : 'unavailable',
    error,
    warnings: [],
  }
}

export function measurementDocument({ at, available, responseMs }: RegistryMeasurement): string {
  return JSON.stringify({ timestamp: scoreOf(at), response_time: Math.round(responseMs ?? 0), available })
}

export function readMeasurement(text: string): RegistryMeasurement | undefined {
  const document = objectOf(text)
  const timestamp = document && numberOf(document.timestamp)
  if (!document || timestamp === undefined || typeof document.available !== 'boolean') return undefined
  const { available } = document
  const responseMs = numberOf(document.response_time) ?? 0
  // A refusal within a millisecond is told from no answer at all by nothing: both are 0 here.
  return { at: timestamp * 1000, available, responseMs: available || responseMs > 0 ? responseMs : null }
}

export const eventDocument = (type: string, registry: string, at: number, data: object | null): string =>
  JSON.stringify({ type, registry, timestamp: rfc3339(at), data })

/** The registry that an announcement is about; undefined: it does not say. */
export function announced(text: string): string | undefined {
  const name = objectOf(text)?.registry
  return typeof name === 'string' ? name : undefined
}

function objectOf(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined // somebody else wrote it
  }
}

const recordOf = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')
const numberOf = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isFinite(value) ? value : undefined
const positive = (value: unknown): number | undefined => {
  const number = numberOf(value)
  return number !== undefined && number > 0 ? number : undefined
}
const textsOf = (value: unknown): Record<string, string> =>
  Object.fromEntries(
    Object.entries(recordOf(value)).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  )
