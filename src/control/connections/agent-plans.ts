import { createHash } from 'node:crypto'
import type { SourceCatalog } from '#catalog'
import { usageNames } from '#collect'
import type { PlanSource } from '#ingest'
import type { SourceDefinition } from '#metricsource'
import { type ClusterName, isClusterName, type Plan } from '#model'
import type { AgentCredentials, ConnectionLine } from './agent-credentials.ts'
import { type Defaults, timingOf } from './settings.ts'

/** The sources of all plans, and what names them: made once per change of the catalog. */
interface Planned {
  readonly version: number
  readonly sources: readonly SourceDefinition[]
  /** by what they collect, not by when they were compiled */
  readonly names: readonly (readonly [id: string, hash: string])[]
}

type Sources = Pick<SourceCatalog, 'sources' | 'version' | 'onChange'>

/**
 * What agents are asked to collect, and how often: the `monitoring` of their ClusterConnection, adjusted as in pull, and the
 * MetricSources in force. Follows the connections `credentials` holds, and the catalog. A cluster in pull mode, or one that is being deleted, is asked nothing.
 */
export function agentPlans(
  credentials: Pick<AgentCredentials, 'connections'>,
  namespace: string,
  defaults: Defaults,
  catalog?: Sources,
): PlanSource {
  const { connections } = credentials
  const planned = plannedBy(catalog)
  const planOf = (line: ConnectionLine) => planFor(line, defaults, planned())
  return {
    planOf(cluster) {
      const line = connections.get({ name: cluster, namespace })
      return line && planOf(line)
    },
    onChange(listener) {
      const ended = connections.onChange((change) => {
        const { name } = change.key
        const before = change.kind === 'added' ? undefined : planOf(change.previous)
        const after = change.kind === 'deleted' ? undefined : planOf(change.object)
        if (isClusterName(name) && before?.version !== after?.version) listener(name satisfies ClusterName)
      })
      const unsubscribed = catalog?.onChange(() => {
        for (const line of connections.list()) {
          const { name } = line.metadata
          if (line.isPush && isClusterName(name)) listener(name)
        }
      })
      const unrated = defaults.usage?.rates.onChange((name) => {
        const line = connections.get({ name, namespace })
        if (line?.isPush && isClusterName(name)) listener(name)
      })
      return () => {
        ended()
        unsubscribed?.()
        unrated?.()
      }
    },
  }
}

function plannedBy(catalog: Sources | undefined): () => Planned {
  let planned: Planned = { version: Number.NaN, sources: [], names: [] }
  return () => {
    const version = catalog?.version() ?? 0
    if (planned.version !== version) {
      const sources = catalog?.sources() ?? []
      planned = {
        version,
        sources: sources.map(({ definition }) => definition),
        names: sources.map(({ id, hash }) => [id, hash]),
      }
    }
    return planned
  }
}

function planFor(
  { isPush, metadata, monitoring }: ConnectionLine,
  defaults: Defaults,
  { sources, names }: Planned,
): Plan | undefined {
  if (!isPush || metadata.deletionTimestamp) return undefined
  const { interval, timeout } = timingOf(monitoring, defaults)
  const content = {
    intervalMs: interval.ms,
    timeoutMs: timeout.ms,
    operatorScanIntervalMs: defaults.operatorScanIntervalMs,
    ...((defaults.resources || defaults.usage) && {
      resources: [...(defaults.resources ?? []).map(({ id }) => id), ...(defaults.usage ? usageNames : [])],
    }),
    ...usageOf(metadata.name, interval.ms, defaults),
  }
  // From the content alone, so that every process of the hub and every start of it names the same plan alike.
  const named = JSON.stringify({ ...content, sources: names })
  return { version: createHash('sha256').update(named).digest('hex').slice(0, 16), ...content, sources }
}

function usageOf(cluster: string, roundMs: number, { usage }: Defaults): Pick<Plan, 'refreshMs' | 'kubelets'> {
  if (!usage) return {}
  const kubelets = usage.kubeletsOf(cluster)
  return { refreshMs: usage.rates.of(cluster, roundMs), ...(kubelets && { kubelets }) }
}
