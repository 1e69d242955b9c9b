import { createHash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import type { PlanSource } from '#ingest'
import { type ClusterName, isClusterName, type Plan } from '#model'
import type { AgentCredentials, ConnectionLine } from './agent-credentials.ts'
import { type Defaults, timingOf } from './settings.ts'

/**
 * What agents are asked to collect, and how often: the `monitoring` of their ClusterConnection, adjusted as in pull. Follows
 * the connections `credentials` holds. A cluster in pull mode, or one that is being deleted, is asked nothing.
 */
export function agentPlans(
  credentials: Pick<AgentCredentials, 'connections'>,
  namespace: string,
  defaults: Defaults,
): PlanSource {
  const { connections } = credentials
  return {
    planOf(cluster) {
      const line = connections.get({ name: cluster, namespace })
      return line && planOf(line, defaults)
    },
    onChange: (listener) =>
      connections.onChange((change) => {
        const { name } = change.key
        const before = change.kind === 'added' ? undefined : planOf(change.previous, defaults)
        const after = change.kind === 'deleted' ? undefined : planOf(change.object, defaults)
        if (isClusterName(name) && !isDeepStrictEqual(before, after)) listener(name satisfies ClusterName)
      }),
  }
}

function planOf({ isPush, metadata, monitoring }: ConnectionLine, defaults: Defaults): Plan | undefined {
  if (!isPush || metadata.deletionTimestamp) return undefined
  const { interval, timeout } = timingOf(monitoring, defaults)
  const content = {
    intervalMs: interval.ms,
    timeoutMs: timeout.ms,
    operatorScanIntervalMs: defaults.operatorScanIntervalMs,
    sources: [],
  }
  // From the content alone, so that every process of the hub and every start of it names the same plan alike.
  return { version: createHash('sha256').update(JSON.stringify(content)).digest('hex').slice(0, 16), ...content }
}
