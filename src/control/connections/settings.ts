import type { UsageRates } from '#attention'
import type { KubeletWay, Relisting } from '#collect'
import type { ClusterConnection, ClusterConnectionSpec } from '#kinds'
import type { BuiltInResource } from '#metricsource'
import type { ConnectionFacts } from '#model'
import { CLUSTER_SET_LABEL, seconds } from '#model'

/** What counts where a connection names nothing; ms. */
export interface Defaults {
  readonly intervalMs: number
  readonly timeoutMs: number
  readonly operatorScanIntervalMs: number
  /** a round that failed is made again after so long at the most; default 60 s */
  readonly retryMs?: number
  /** what is listed between rounds as well where it cannot be watched; default: nothing */
  readonly relisting?: Relisting
  /** kinds of rows, compiled in, that are read of every cluster; default none */
  readonly resources?: readonly BuiltInResource[]
  /** nothing is changed on members: no agent is deployed there, kept or removed */
  readonly readOnlyMembers?: boolean
  /** what nodes and pods use is read as well; default: it is not */
  readonly usage?: UsageDefaults
}

/** How what nodes and pods use is read. */
export interface UsageDefaults {
  readonly rates: UsageRates
  /** how kubelets are asked for disks where nothing else is said, and so what agents are granted; undefined: not at all */
  readonly kubelets?: KubeletWay
  /** the same of one cluster */
  readonly kubeletsOf: (cluster: string) => KubeletWay | undefined
}

/** Shortest time between two rounds of one cluster, seconds; less is raised to it. */
export const MIN_INTERVAL_S = 30
/** Shortest limit of one request, seconds; less is raised to it. */
export const MIN_TIMEOUT_S = 5
const RETRY_MS = seconds(60)

/** What follows from the spec alone. */
export interface Settings {
  readonly facts: ConnectionFacts
  /** what was written and does not count as written, for people */
  readonly adjustments: readonly string[]
}

/** How often and how patiently a cluster is read, and which of the written numbers do not count as written. */
export function timingOf(monitoring: ClusterConnectionSpec['monitoring'], defaults: Defaults) {
  return {
    interval: atLeast('monitoring.interval', monitoring?.interval, MIN_INTERVAL_S, defaults.intervalMs),
    timeout: atLeast('monitoring.timeout', monitoring?.timeout, MIN_TIMEOUT_S, defaults.timeoutMs),
  }
}

/**
 * Decides how a connection is to be treated. Old manifests keep working: odd numbers are adjusted and named.
 * @param receivesAgents where the hub receives none, every cluster is pulled
 */
export function settingsOf(
  { metadata, spec }: ClusterConnection,
  defaults: Defaults,
  receivesAgents = false,
): Settings {
  const { interval, timeout } = timingOf(spec.monitoring, defaults)
  return {
    facts: {
      displayName: spec.displayName || metadata.name,
      endpoint: spec.endpoint ?? '',
      labels: labelsOf(metadata.labels, spec.labels),
      mode: receivesAgents && spec.collectionMode === 'push' ? 'push' : 'pull',
      intervalMs: interval.ms,
      timeoutMs: timeout.ms,
      operatorScanIntervalMs: defaults.operatorScanIntervalMs,
      insecureSkipTlsVerify: spec.insecureSkipTLSVerify === true,
      credentialsRef: { name: spec.credentialsRef?.name ?? '', namespace: spec.credentialsRef?.namespace ?? '' },
    },
    adjustments: [...interval.adjustments, ...timeout.adjustments],
  }
}

/** Those of the spec, which policies select by; and its set, which its member brings as a label of the object. */
function labelsOf(
  ofObject: Readonly<Record<string, string>> = {},
  ofSpec: Readonly<Record<string, string>> = {},
): Readonly<Record<string, string>> {
  const set = ofObject[CLUSTER_SET_LABEL]
  return { ...ofSpec, ...(set !== undefined && { [CLUSTER_SET_LABEL]: set }) }
}

/** 0, less, or nothing: the default. Below the minimum: the minimum. */
function atLeast(name: string, written: number | undefined, min: number, defaultMs: number) {
  if (written === undefined || written === 0) return { ms: defaultMs, adjustments: [] }
  if (written < 0) return { ms: defaultMs, adjustments: [`${name} ${written} counts as the default`] }
  if (written < min) return { ms: seconds(min), adjustments: [`${name} ${written} counts as ${min}`] }
  return { ms: seconds(written), adjustments: [] }
}

/** When the next round begins, counted from the end of this one: the interval from start to start; sooner after a failure. */
export function nextRoundMs(intervalMs: number, failed: boolean, tookMs: number, retryMs = RETRY_MS): number {
  return failed ? Math.min(intervalMs, retryMs) : Math.max(intervalMs - tookMs, Math.min(intervalMs, 1000))
}
