import { accessReconcilers, type PolicyWriter } from '#access'
import type { AuditTrail } from '#audit'
import { type CatalogWriter, declaredTypes, type SourceCatalog } from '#catalog'
import { type Controller, type LeaderElection, Manager } from '#controller'
import type { EventBus } from '#events'
import type { KubeClient } from '#kube'
import { type AgentRoles, metricSourceReconcilers } from '#metricsources'
import { type ClusterName, type SourceId, systemClock } from '#model'
import { OutboundGuard } from '#outbound'
import { type RegistrationOptions, registrationReconcilers } from '#registration'
import { registryReconcilers } from '#registries'
import type { RegistryStore } from '#registry'
import type { Metrics, Part } from '#runtime'
import type { StateReader } from '#state'
import type { CollectionConfig } from './config.ts'
import type { MembersConfig } from './config-members.ts'
import { auditEntryOfRule } from './member-authority.ts'
import type { HubLogger } from './run.ts'

/** What is elected, and led, on its own. */
export type ControllerName = 'connections' | 'access' | 'registries'

export interface HubControllersOptions {
  readonly namespace: string
  readonly hub: () => KubeClient
  /** where compiled access policies go */
  readonly policies: () => PolicyWriter
  readonly catalog: () => SourceCatalog & CatalogWriter
  /** what is known of container registries */
  readonly registries: () => RegistryStore
  readonly collection: Pick<CollectionConfig, 'outboundAllow'>
  /** undefined: ManagedClusters are not looked after */
  readonly members: (MembersConfig & Pick<RegistrationOptions, 'revoke' | 'authorities'>) | undefined
  /** where it is written down what was decided without a person; undefined: not open yet */
  readonly trail?: () => Pick<AuditTrail, 'record'> | undefined
  /** signs members beside the controllers of the fleet, until the signal aborts; default: signed elsewhere */
  readonly signing?: (signal: AbortSignal) => Promise<void>
  /** tells other processes of the hub that members are judged, until the signal aborts; default: there are none */
  readonly judging?: (signal: AbortSignal) => Promise<void>
  /** of the controllers of this name */
  readonly election?: (name: ControllerName) => LeaderElection
  readonly metrics: Metrics
  readonly logger: HubLogger
}

/** What the controllers of MetricSources and members need of the fleet, all of it. */
export interface WholeFleet {
  readonly state: StateReader
  readonly events: EventBus
  readonly ingester: { removeSource(cluster: ClusterName, source: SourceId): Promise<void> }
  readonly agentRoles: AgentRoles
}

/** Controllers that are about no single cluster. Policies and registries lead on their own, sources with the connections. */
export interface HubControllers {
  readonly parts: readonly Part[]
  /** MetricSources, for their statuses and removals, and members need the state of the fleet: led by who leads that. */
  ofFleet(fleet: WholeFleet, signal: AbortSignal): Promise<void>
}

export function createHubControllers(options: HubControllersOptions): HubControllers {
  const { logger, metrics } = options
  const outbound = new OutboundGuard({ use: 'registry', allow: options.collection.outboundAllow })
  const shared = (name: string) => ({
    hub: options.hub(),
    namespace: options.namespace,
    logger: logger.child({ part: name }),
    metrics,
    clock: systemClock,
  })
  // Managers of their own: where a kind is not installed yet, connections go on all the same.
  const ownManager = (name: ControllerName, controllers: () => readonly Controller[]): Part => {
    let own: Manager | undefined
    return {
      name,
      async start() {
        const election = options.election?.(name)
        own = new Manager({ name, controllers: controllers(), ...(election && { election }), logger })
        await own.start()
      },
      stop: async () => own?.stop(),
    }
  }
  return {
    parts: [
      ownManager('access', () =>
        accessReconcilers({ ...shared('access'), writer: options.policies(), types: declaredTypes(options.catalog()) }),
      ),
      ownManager('registries', () =>
        registryReconcilers({ ...shared('registries'), store: options.registries(), outbound }),
      ),
    ],
    async ofFleet(fleet, signal) {
      const sources = new Manager({
        name: 'sources',
        controllers: metricSourceReconcilers({ ...shared('sources'), ...fleet, catalog: options.catalog() }),
        logger,
      })
      const { state, events } = fleet
      // Of its own: its kinds may not be installed.
      const members =
        options.members &&
        new Manager({
          name: 'members',
          controllers: registrationReconcilers({
            ...{ ...shared('members'), ...options.members, state, events },
            decided: (decision) => options.trail?.()?.record(auditEntryOfRule(decision, systemClock.now())),
          }),
          logger,
        })
      await Promise.all([sources.start(), members?.start()])
      const beside = [options.signing?.(signal), members && options.judging?.(signal)]
      await new Promise<void>((resolve) => {
        if (signal.aborted) resolve()
        else signal.addEventListener('abort', () => resolve(), { once: true })
      })
      await Promise.all([sources.stop(), members?.stop(), ...beside])
    },
  }
}
