import type { HistoryView, RegistryDetailView, RegistryView } from '../../contract.ts'
import type { ChartPlan } from '../../history/picture.ts'
import type { Need } from '../../model/cluster.ts'
import { formatCount, formatSpan, notNothing, plural } from '../../model/format.ts'

type Measurements = RegistryDetailView['measurements']

/** What a person should hear first about this registry. */
export const needOf = ({ stale, health }: Pick<RegistryView, 'stale' | 'health'>): Need => (stale ? 'stale' : health)

const order: readonly Need[] = ['unhealthy', 'degraded', 'stale', 'unknown', 'healthy']
/** 0 needs a person most. */
export const severityOf = (registry: RegistryView): number => order.indexOf(needOf(registry))

export interface Summary {
  readonly available: number
  readonly total: number
  /** all, some or none of them */
  readonly need: Need
}

/** How many of them are known to be available now; null where there are none. */
export function summaryOf(registries: readonly RegistryView[]): Summary | null {
  const total = registries.length
  if (total === 0) return null
  const available = registries.filter((registry) => registry.available === true && !registry.stale).length
  if (registries.every((registry) => registry.available === null)) return { available, total, need: 'unknown' }
  return { available, total, need: available === total ? 'healthy' : available === 0 ? 'unhealthy' : 'degraded' }
}

/** Milliseconds below ten seconds, then seconds. */
export const formatMs = (ms: number): string => (ms < 10_000 ? `${notNothing(ms, 1, formatCount)} ms` : formatSpan(ms))

/** The count as it can be told: more than was counted has a mark. */
export const repositoriesText = ({ repositoryCount, catalogTruncated }: RegistryView): string | null =>
  repositoryCount === null ? null : `${formatCount(repositoryCount)}${catalogTruncated ? '+' : ''}`

/** Why the number of repositories is not known. */
export function whyNoCount({ available, warnings, checkedAt }: RegistryView): string {
  if (checkedAt === null) return 'it was not checked yet'
  const listing = warnings.find(({ message }) => message.startsWith('repositories: '))
  if (listing) return listing.message.slice('repositories: '.length)
  return available ? 'counting is not asked for' : 'the registry is not available'
}

const steps: Readonly<Record<string, string>> = {
  unreachable:
    'Check that the address is right and that the hub may reach it: DNS, network policies, firewalls, proxies.',
  timeout: 'Check the load of the registry and the network between; monitoring.timeout gives it more time.',
  tls_untrusted: 'Give the CA that signed its certificate as caBundle, or renew the certificate.',
  tls_failed: 'Check the port and the scheme of the endpoint; plain HTTP needs http:// and insecure: true.',
  ca_invalid: 'Put one or more PEM certificates into caBundle.',
  insecure_refused: 'Use https, or set insecure: true where the network between is trusted.',
  not_a_registry: 'Check the endpoint: below it, /v2/ must answer as the registry API does.',
  unexpected_status: 'Look into the log of the registry, or of the proxy before it.',
  redirect_refused:
    'Use the address it leads to as endpoint, or set allowPrivateRedirects where that network is trusted.',
  answer_too_large: 'Check the endpoint: no registry answers like that.',
  unauthorized: 'Check user and password in the Secret, and that the account is not locked.',
  credentials_held:
    'If this endpoint is meant, annotate the Secret with clusterpulse.io/endpoint; the condition CredentialsHeld of the RegistryConnection has the command.',
  credentials_missing: 'Create the Secret with username and password, or take credentialsRef away.',
  token_failed: 'Check the token service that the registry names, and that the hub may reach it.',
  redirected: 'Use the address it leads to as endpoint: credentials go to no other.',
  health_path_failed: 'Look into the log of the registry, or correct healthCheckPaths.',
  catalog_forbidden: 'Give the account the right to list the catalogue, or set checkCatalog: false.',
  catalog_missing: 'This registry has no catalogue; set checkCatalog: false.',
  catalog_too_large: 'The number is a lower bound; nothing needs to be done.',
}

/** What to do about it; '' where the message says it all. */
export const nextStep = (code: string): string => steps[code] ?? ''

const featureWords: Readonly<Record<string, string>> = {
  docker_v2_api: 'Docker Registry API v2',
  requires_auth: 'wants a sign-in',
  harbor_detected: 'Harbor',
  artifactory_detected: 'Artifactory',
  nexus_detected: 'Nexus',
  content_digest: 'content digests',
  pagination: 'pages its catalogue',
  catalog_accessible: 'lists its repositories',
}

/** What was noticed, in words; what is not there is told only of the catalogue. */
export function featureTexts({ features }: Pick<RegistryView, 'features'>): readonly string[] {
  return Object.entries(features)
    .filter(([, is]) => is)
    .map(([name]) => featureWords[name] ?? name.replaceAll('_', ' '))
    .sort()
}

const daySlots = 96
const dayMs = 24 * 3_600_000

export interface Slot {
  readonly from: number
  readonly to: number
  readonly probes: number
  readonly failed: number
}

/** The last 24 h in quarters of an hour. */
export function slotsOf(measurements: Measurements, now: number): readonly Slot[] {
  const size = dayMs / daySlots
  const start = Math.ceil(now / size) * size - dayMs
  const slots = Array.from({ length: daySlots }, (_, index) => ({
    from: start + index * size,
    to: start + (index + 1) * size,
    probes: 0,
    failed: 0,
  }))
  for (const [at, , available] of measurements) {
    const slot = slots[Math.floor((at - start) / size)]
    if (!slot) continue
    slot.probes++
    if (!available) slot.failed++
  }
  return slots
}

/** How much of the measured time it was available: each measurement stands until the next one, but not over a silence. */
export function availabilityOf(measurements: Measurements, intervalMs: number, now: number): number | null {
  const mostMs = silenceMs(intervalMs)
  let [known, up] = [0, 0]
  for (const [index, [at, , available]] of measurements.entries()) {
    const span = Math.min((measurements[index + 1]?.[0] ?? now) - at, mostMs)
    if (span <= 0) continue
    known += span
    if (available) up += span
  }
  return known === 0 ? null : up / known
}

/** Longer than the longest planned pause between two probes. */
const silenceMs = (intervalMs: number): number => Math.max(6 * intervalMs, 3 * 60_000)

/** The strip in words. */
export function availabilityText(measurements: Measurements, intervalMs: number, now: number): string {
  const ratio = availabilityOf(measurements, intervalMs, now)
  if (ratio === null) return 'It was not measured in the last 24 hours.'
  const failed = measurements.filter(([, , available]) => !available).length
  const first = measurements[0]?.[0] ?? now
  const span = formatSpan(now - first)
  if (failed === 0) {
    const all =
      measurements.length === 1 ? 'its one measurement' : `all ${formatCount(measurements.length)} measurements`
    return `Available in ${all} of ${span}.`
  }
  return `Available for ${percent(ratio)} of ${span}; ${plural(failed, 'measurement')} of ${formatCount(measurements.length)} without an answer as it should be.`
}

/** Never 100 % where something failed. */
export function percent(ratio: number): string {
  const text = (Math.floor(ratio * 10_000) / 100).toFixed(2).replace(/\.?0+$/, '')
  return `${text} %`
}

export const responsePlan: ChartPlan = {
  id: 'response',
  title: 'Response time',
  unit: 'milliseconds',
  lines: [{ metric: 'response_time', word: 'response time', stroke: 'first' }],
}

/** Measurements as the charts take them: a line breaks where it was not available, and over a silence. */
export function historyOf(measurements: Measurements, intervalMs: number, from: number, to: number): HistoryView {
  const points: [number, number | null][] = []
  let last: number | undefined
  for (const [at, responseMs, available] of measurements) {
    if (at < from || at > to) continue
    if (last !== undefined && at - last > silenceMs(intervalMs)) points.push([(last + at) / 2000, null])
    points.push([at / 1000, available && responseMs !== null ? responseMs : null])
    last = at
  }
  const step = Math.max(60, intervalMs / 1000)
  return {
    ...{ metrics: [], spans: [], start: from / 1000, end: to / 1000, step },
    series: [{ metric: 'response_time', labels: {}, points }],
  }
}

const sparkWidth = 72
const sparkHeight = 18

/** A line of the last response times; gaps where it did not answer. The scale is its own: it shows change, not size. */
export function sparkPath(recent: readonly (number | null)[]): {
  readonly line: string
  readonly gaps: readonly number[]
} {
  const known = recent.filter((value) => value !== null)
  const most = Math.max(...known, 1)
  const step = sparkWidth / Math.max(recent.length - 1, 1)
  let line = ''
  let isDown = false
  const gaps: number[] = []
  for (const [index, value] of recent.entries()) {
    const x = Math.round(index * step * 10) / 10
    if (value === null) {
      gaps.push(x)
      isDown = false
      continue
    }
    const y = Math.round((sparkHeight - 2 - (value / most) * (sparkHeight - 4)) * 10) / 10
    line += `${isDown ? 'L' : 'M'}${x} ${y}`
    isDown = true
  }
  return { line, gaps }
}

export const sparkSize = { width: sparkWidth, height: sparkHeight }

/** The line in words. */
export function sparkText(recent: readonly (number | null)[]): string {
  const known = recent.filter((value) => value !== null)
  if (recent.length === 0) return 'not measured yet'
  const missing = recent.length - known.length
  const gone = missing > 0 ? `, ${formatCount(missing)} without an answer` : ''
  if (known.length === 0) return `no answer in the last ${plural(recent.length, 'measurement')}`
  return `between ${formatMs(Math.min(...known))} and ${formatMs(Math.max(...known))} in the last ${plural(recent.length, 'measurement')}${gone}`
}

/** To copy. */
export const example = `apiVersion: clusterpulse.io/v1alpha1
kind: RegistryConnection
metadata:
  name: harbor
  namespace: clusterpulse
spec:
  displayName: Harbor
  endpoint: https://harbor.example.com
  # A Secret with username and password; not needed for anonymous use.
  credentialsRef:
    name: harbor-credentials
  monitoring:
    interval: 60
    checkCatalog: true
`
