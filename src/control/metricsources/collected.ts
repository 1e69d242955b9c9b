import type { MetricSourceStatus } from '#kinds'
import {
  type ClusterName,
  type ClusterState,
  type CustomState,
  documentTime,
  type FieldReport,
  type SourceId,
} from '#model'

type ClusterStatus = NonNullable<MetricSourceStatus['clusters']>[number]

/** What all clusters together say of one source. */
export interface Collected {
  /** clusters that told anything of it, with errors first, then by name */
  readonly clusters: readonly ClusterStatus[]
  /** clusters the hub knows */
  readonly clustersKnown: number
  /** clusters whose last collection was complete */
  readonly clustersCollected: number
  /** clusters that do not serve the kind */
  readonly clustersAbsent: number
  /** a cluster told something of the definition in force */
  readonly isOfThisDefinition: boolean
  readonly resources: number
  readonly errors: number
  readonly truncated: number
  /** of the slowest cluster, ms */
  readonly durationMs: number
  /** of the newest collection, by the collector's clock; null: there was none */
  readonly newestAt: number | null
  /** over all clusters that read by the definition in force */
  readonly reports: ReadonlyMap<string, FieldSum>
}

/** How often a field could be read, over all clusters. */
export interface FieldSum {
  readonly rows: number
  readonly missing: number
  readonly malformed: number
  readonly example: string
}

/**
 * @param hash of the definition in force
 * @param refusalOf why the agent of a cluster may not read the kind; undefined: that is not known
 */
export function collectedOf(
  id: SourceId,
  clusters: readonly ClusterState[],
  hash: string | undefined,
  refusalOf: (cluster: ClusterName) => string | undefined = () => undefined,
): Collected {
  const told = clusters.flatMap(({ name, custom }) => {
    const state = custom.get(id)
    return state ? [{ name, state, said: clusterStatus(name, state, refusalOf) }] : []
  })
  const states = told.map(({ state }) => state)
  const ofThis = states.filter((state) => state.hash === hash)
  const count = (holds: (state: CustomState) => boolean) => states.filter(holds).length
  const sum = (amount: (said: ClusterStatus) => number) => told.reduce((total, { said }) => total + amount(said), 0)
  return {
    clusters: told.map(({ said }) => said).sort(withErrorsFirst),
    clustersKnown: clusters.length,
    clustersCollected: count(({ outcome }) => outcome === 'complete'),
    clustersAbsent: count(({ outcome }) => outcome === 'absent'),
    isOfThisDefinition: ofThis.length > 0,
    resources: sum(({ resources = 0 }) => resources),
    errors: sum(({ errors = 0 }) => errors),
    truncated: sum(({ truncated = false }) => Number(truncated)),
    durationMs: states.reduce((slowest, { durationMs }) => Math.max(slowest, durationMs), 0),
    newestAt: states.reduce<number | null>((newest, { attemptedAt }) => Math.max(newest ?? 0, attemptedAt), null),
    reports: fieldSums(ofThis),
  }
}

function clusterStatus(
  name: ClusterName,
  state: CustomState,
  refusalOf: (cluster: ClusterName) => string | undefined,
): ClusterStatus {
  const { outcome, rows, truncated, freshness, errorCount } = state
  const isComplete = outcome === 'complete'
  const errors = isComplete ? errorCount : Number(outcome !== 'absent')
  // Who keeps the agent's role knows more than the agent: which right is missing, and who can give it.
  const refusal = outcome === 'forbidden' ? refusalOf(name) : undefined
  const why = refusal === undefined ? reasonOf(state) : { code: 'role_not_granted', message: refusal }
  return {
    name,
    collected: isComplete,
    resources: rows.size,
    ...(truncated && { truncated }),
    ...(errors > 0 && { errors }),
    ...(why && { reason: why.code.slice(0, 64), message: why.message.slice(0, 1024) }),
    ...(freshness && { lastCollectionTime: documentTime(freshness.observedAt) }),
  }
}

function reasonOf({ outcome, code, message, errors }: CustomState) {
  if (outcome !== 'complete') return { code, message }
  const [first] = errors
  if (!first) return undefined
  return {
    code: first.code,
    message: first.namespace ? `namespace ${first.namespace}: ${first.message}` : first.message,
  }
}

function withErrorsFirst(a: ClusterStatus, b: ClusterStatus): number {
  const rank = ({ errors = 0, collected }: ClusterStatus) => (errors > 0 ? 0 : collected ? 2 : 1)
  return rank(a) - rank(b) || (a.name < b.name ? -1 : 1)
}

function fieldSums(states: readonly CustomState[]): ReadonlyMap<string, FieldSum> {
  const sums = new Map<string, FieldSum>()
  for (const { rows, reports, freshness } of states) {
    if (!freshness) continue
    for (const report of reports) sums.set(report.field, added(sums.get(report.field), report, rows.size))
  }
  return sums
}

function added(sum: FieldSum | undefined, { missing, malformed, example }: FieldReport, rows: number): FieldSum {
  return {
    rows: (sum?.rows ?? 0) + rows,
    missing: (sum?.missing ?? 0) + missing,
    malformed: (sum?.malformed ?? 0) + malformed,
    example: sum?.example || example,
  }
}
