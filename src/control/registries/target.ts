import { destinationOf, type Held, type Question, secretFor } from '#credentials'
import { seconds } from '#model'
import { MAX_BACKOFF_INTERVALS, type RegistryTarget } from '#registry'
import type { CredentialSecret, Registry } from './registry-resource.ts'

const DEFAULT_INTERVAL_S = 60
const MIN_INTERVAL_S = 30
const MAX_INTERVAL_S = 86_400
const DEFAULT_TIMEOUT_S = 10
const MAX_TIMEOUT_S = 600
const DEFAULT_PAGE_SIZE = 100

/** What follows from the spec alone. */
export interface Settings {
  readonly target: RegistryTarget
  /** what was written and does not count as written, for people */
  readonly adjustments: readonly string[]
}

/** Decides how a registry is to be probed, without its credentials. Old manifests keep working: odd numbers are adjusted and named. */
export function settingsOf({ metadata, spec }: Registry, namespace: string): Settings {
  const { monitoring = {}, credentialsRef } = spec
  const interval = within('interval', monitoring.interval, DEFAULT_INTERVAL_S, MIN_INTERVAL_S, MAX_INTERVAL_S)
  const timeout = within('timeout', monitoring.timeout, DEFAULT_TIMEOUT_S, 1, MAX_TIMEOUT_S)
  const pageSize = monitoring.maxCatalogEntries || DEFAULT_PAGE_SIZE
  return {
    target: {
      name: metadata.name,
      displayName: spec.displayName || metadata.name,
      endpoint: endpointOf(spec.endpoint),
      type: spec.type ?? '',
      labels: { ...spec.labels },
      insecure: spec.insecure === true,
      skipTlsVerify: spec.skipTLSVerify === true,
      caPem: spec.caBundle || undefined,
      allowPrivateRedirects: spec.allowPrivateRedirects === true,
      credentials: undefined,
      credentialsRef: credentialsRef && {
        name: credentialsRef.name,
        namespace: credentialsRef.namespace || metadata.namespace || namespace,
      },
      intervalMs: seconds(interval.value),
      timeoutMs: seconds(timeout.value),
      checkCatalog: monitoring.checkCatalog === true,
      catalogPageSize: pageSize < 0 ? undefined : pageSize,
      healthCheckPaths: [...(spec.healthCheckPaths ?? [])],
    },
    adjustments: [...interval.adjustments, ...timeout.adjustments],
  }
}

/** With a scheme, in lower case, and without slashes at the end. */
export function endpointOf(written: string): string {
  const scheme = /^(https?):\/\//i.exec(written)
  const rest = scheme ? written.slice(scheme[0].length) : written
  return `${scheme?.[1]?.toLowerCase() ?? 'https'}://${rest.replace(/\/+$/, '')}`
}

function within(name: string, written: number | undefined, byDefault: number, min: number, max: number) {
  if (written === undefined || written <= 0) return { value: byDefault, adjustments: [] }
  const value = Math.min(Math.max(written, min), max)
  return { value, adjustments: value === written ? [] : [`monitoring.${name} ${written} counts as ${value}`] }
}

/** What a Secret says, or why there is nothing to sign in with; undefined: none is wanted. */
export type Credentials =
  | {
      readonly kind: 'found'
      readonly credentials: NonNullable<RegistryTarget['credentials']>
      /** whose they are, and where they go */
      readonly question: Question
    }
  | Lacking

export interface Lacking {
  readonly kind: 'lacking'
  readonly reason: string
  readonly message: string
  /** they are there, and not for this endpoint */
  readonly held?: Held
}

/** @param secret undefined: there is none of that name */
export function credentialsOf(
  { name: registry, endpoint }: Pick<RegistryTarget, 'name' | 'endpoint'>,
  ref: { readonly name: string; readonly namespace: string },
  secret: CredentialSecret | undefined,
): Credentials {
  const name = `${ref.namespace}/${ref.name}`
  if (!secret) return lacking('SecretMissing', `credentials of Secret ${name} are missing: there is no such Secret`)
  const { username = '', password = '' } = secret
  if (username === '' || password === '') {
    const what = username === '' ? 'username' : 'password'
    return lacking('SecretIncomplete', `credentials of Secret ${name} have no ${what}`)
  }
  const question = {
    connection: registry,
    secret: secretFor({ ...secret.metadata, ...ref }),
    destination: destinationOf(endpoint),
  }
  return { kind: 'found', credentials: { username, password }, question }
}

/** @param message without what is done instead, which is always the same */
export const lacking = (reason: string, message: string): Lacking => ({
  kind: 'lacking',
  reason,
  message: `${message}; the registry is asked anonymously`,
})

/** The same credentials, held back. */
export const heldBack = (held: Held): Lacking => ({ ...lacking('CredentialsHeld', held.message), held })

/** Rounds are spread by this share of the interval, so that registries declared together are not always probed together. */
const JITTER = 0.1

/**
 * When the next probe begins, counted from the end of this one: the interval from start to start. A registry that stays
 * away is asked less often, up to every fifth interval.
 * @param failures in a row, this one included
 */
export function nextProbeMs(intervalMs: number, failures: number, tookMs: number, random: number): number {
  const factor = failures < 2 ? 1 : Math.min(2 ** (failures - 1), MAX_BACKOFF_INTERVALS)
  const spread = 1 - JITTER / 2 + JITTER * random
  return Math.max(Math.round(intervalMs * factor * spread) - tookMs, 1000)
}
