import type { MetricSourceStatus } from '#kinds'
import {
  type ClusterName,
  type ClusterState,
  documentTime,
  type FieldReport,
  type RowsState,
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
  /** a cluster was read by the definition in force, or refused it */
  readonly isOfThisDefinition: boolean
  readonly resources: number
  /** faults of the source and its kind: not those of `clustersAway` */
  readonly errors: number
  /** clusters that could not be read because they cannot be reached at all, by name */
  readonly clustersAway: readonly ClusterName[]
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
  const reported = clusters.flatMap((cluster) => {
    const { name, tables } = cluster
    const state = tables.get(id)
    return state ? [{ name, state, said: clusterStatus(name, state, refusalOf), isAway: isAway(cluster, state) }] : []
  })
  const states = reported.map(({ state }) => state)
  const ofThis = states.filter((state) => state.hash === hash)
  const count = (holds: (state: RowsState) => boolean) => states.filter(holds).length
  const sum = (amount: (said: ClusterStatus) => number) => reported.reduce((total, { said }) => total + amount(said), 0)
  return {
    clusters: reported.map(({ said }) => said).sort(withErrorsFirst),
    clustersKnown: clusters.length,
    clustersCollected: count(({ outcome }) => outcome === 'complete'),
    clustersAbsent: count(({ outcome }) => outcome === 'absent'),
    isOfThisDefinition: states.some((state) => (state.failedHash ?? state.hash) === hash),
    resources: sum(({ resources = 0 }) => resources),
    errors: reported.reduce((total, { said, isAway }) => total + (isAway ? 0 : (said.errors ?? 0)), 0),
    clustersAway: reported.flatMap(({ name, isAway }) => (isAway ? [name] : [])).sort(),
    truncated: sum(({ truncated = false }) => Number(truncated)),
    durationMs: states.reduce((slowest, { durationMs }) => Math.max(slowest, durationMs), 0),
    newestAt: states.reduce<number | null>((newest, { attemptedAt }) => Math.max(newest ?? 0, attemptedAt), null),
    reports: fieldSums(ofThis),
  }
}

/** What fails on a cluster that does not answer at all is no fault of a source. */
const isAway = ({ parts }: ClusterState, { outcome }: RowsState): boolean =>
  outcome === 'unreachable' && parts.cluster?.outcome === 'unreachable'

function clusterStatus(
  name: ClusterName,
  state: RowsState,
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

function reasonOf({ outcome, code, message, errors }: RowsState) {
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

function fieldSums(states: readonly RowsState[]): ReadonlyMap<string, FieldSum> {
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
