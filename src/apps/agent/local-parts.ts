import { hostname } from 'node:os'
import { join } from 'node:path'
import { agentName } from '#agent'
import { createKubeClient } from '#kube'
import { seconds } from '#model'
import type { Logger, Metrics, Part } from '#runtime'
import { clusterAccess } from './cluster-access.ts'
import type { AgentConfig } from './config.ts'
import { type InventoryPart, inventoryPart } from './inventory-part.ts'
import type { Leadership } from './leadership.ts'

/** What an agent does without its hub: of several replicas one leads, and inventory is collected and written. */
export interface LocalParts {
  /** of this process, as the hub and other replicas hear it */
  readonly name: string
  /** undefined: there is one replica */
  readonly leadership: Leadership | undefined
  /** undefined: it is set to collect none */
  readonly inventory: InventoryPart | undefined
  /** Both of them, in the order in which they start. Each starts once, however often it is asked: who waits to become a member goes on as one. */
  readonly parts: readonly Part[]
}

export async function localParts(
  config: AgentConfig,
  { logger, metrics }: { readonly logger: Logger; readonly metrics: Metrics },
): Promise<LocalParts> {
  const name = agentName()
  const leadership = config.leaderElection && (await leadershipOf(config, config.leaderElection, { name, logger }))
  const inventory =
    config.inventory &&
    inventoryPart({
      leadership,
      process: config.leaderElection ? `agent of ${config.leaderElection.namespace}` : hostname(),
      ...{ settings: config.inventory, webhooks: config.webhooks, cluster: config.cluster, metrics, logger },
      // A kind that is slow is its own trouble: it is waited for, and takes nobody's place. An API server
      // that was away is asked again soon.
      connect: async () =>
        createKubeClient(await clusterAccess(config), {
          ...{ timeoutMs: 60_000, qps: 50, burst: 100 },
          recoveryMs: seconds(2),
        }),
      directory: join(config.buffer.directory, 'sinks'),
      ...(config.inventoryApi && { api: config.inventoryApi }),
    })
  // The lease is given back last: nothing is written after that.
  const parts = [leadership?.part ?? [], inventory?.part ?? []].flat().map(startedOnce)
  return { name, leadership, inventory, parts }
}

function startedOnce(part: Part): Part {
  let started: Promise<void> | undefined
  return { name: part.name, start: (signal) => (started ??= part.start(signal)), stop: () => part.stop() }
}

async function leadershipOf(
  config: AgentConfig,
  election: NonNullable<AgentConfig['leaderElection']>,
  { name, logger }: { readonly name: string; readonly logger: Logger },
): Promise<Leadership> {
  const { openLeadership } = await import('./leadership.ts')
  return openLeadership({
    ...{ config: election, identity: name, logger },
    connect: async () => createKubeClient(await clusterAccess(config), { timeoutMs: 10_000 }),
    // Whatever is under way would go on for a while: only the end of the process is sure to come before the lease runs out.
    onLost() {
      logger.error({ agent: name }, 'the lease is lost: this replica ends, and stands by when it is started anew')
      process.exit(1)
    },
  })
}
