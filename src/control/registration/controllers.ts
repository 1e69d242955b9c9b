import { CLUSTER_LABEL } from '#authority'
import { certificateRequests } from '#certificates'
import { Controller, changesSpec, Informer, InformerIndex, onReferredChange, onSpecChange } from '#controller'
import type { EventBus } from '#events'
import type { KubeClient, KubeObject, Resource } from '#kube'
import { type Clock, invariant, seconds, steadyClock, systemClock } from '#model'
import type { Logger, Metrics } from '#runtime'
import type { StateReader } from '#state'
import { type ApprovalOptions, ApprovalReconciler } from './approval.ts'
import { type Authorities, CertificateLifeReconciler } from './certificate-life.ts'
import { LifeReconciler } from './life.ts'
import { LifeController, signOf } from './life-controller.ts'
import { MassLoss } from './mass-loss.ts'
import { stateOf } from './member-index.ts'
import { DEFAULT_REMOVAL_PATIENCE_MS, type MembershipOptions, MembershipReconciler } from './membership.ts'
import {
  clusterLeases,
  clusterNamespaces,
  clusterRoleBindings,
  clusterRoles,
  conditionOf,
  isJudged,
  type Lease,
  type ManagedCluster,
  type ManagedClusterSet,
  type ManagedClusterSetBinding,
  managedClusterSetBindings,
  managedClusterSets,
  managedClusters,
  monitored,
  roleBindings,
} from './objects.ts'
import { Presence } from './presence.ts'
import { BindingReconciler, SetReconciler } from './sets.ts'
import { takingConflicts } from './status.ts'
import {
  anyOf,
  clusterOf,
  labelsDiffer,
  onEveryChange,
  onMembershipChange,
  withBuiltIn,
  withForgotten,
} from './triggers.ts'
import { CONDITIONS, LEASE_NAME, MADE_FOR_MEMBERS } from './words.ts'

/** What the controllers of members need. */
export interface RegistrationOptions {
  /** the hub's own API, where the objects are */
  readonly hub: KubeClient
  /** of the hub's own objects, such as ClusterConnections */
  readonly namespace: string
  /** of the whole fleet: what agents on our stream tell */
  readonly state: Pick<StateReader, 'cluster' | 'availability'>
  readonly events: Pick<EventBus, 'subscribe'>
  /** whose requests for certificates are approved, and whose clusters are accepted once, without a person; default: nobody's */
  readonly autoApproveUsers?: readonly string[]
  /** default: the hub's */
  readonly leaseClock?: 'hub' | 'member'
  /** default: a member on our stream is lost within 15 s */
  readonly streamLoss?: boolean
  /** told what was decided about requests without a person */
  readonly decided?: ApprovalOptions['decided']
  /** makes the certificates of a cluster worthless at the hub's API; default: they have ends alone, as at Kubernetes' */
  readonly revoke?: MembershipOptions['revoke']
  /** by which it is known that a member's certificate counts no more; default: they are not known here */
  readonly authorities?: Authorities
  /** how long what belongs to a deleted member that is away is kept, ms; default 5 min */
  readonly removalPatienceMs?: number
  /** how long nobody is tainted after many were lost at once, ms; default 1 min, and 0: never held back */
  readonly massLossPauseMs?: number
  readonly logger: Logger
  readonly metrics?: Metrics
  readonly clock?: Clock
  /** measures how long nothing was seen, however the clock of this machine is set */
  readonly steady?: Clock
  readonly random?: () => number
}

/** Clusters come and change their sets together: one count for all of them. */
const SETS_CALM_MS = 200
/** Amounts of a cluster move with every node; its first ones are waited for. */
const FACTS_CALM_MS = seconds(60)
const FIRST_FACTS_MS = 500
/** First looks at the lives of many are spread, and none of them is late: a lease is old after minutes. */
const SPREAD_PER_KEY_MS = 2

/** The controllers of this module, for a Manager. They need the state of the whole fleet. */
export function registrationReconcilers(options: RegistrationOptions): readonly Controller[] {
  const { hub, namespace, state, logger, metrics, clock = systemClock, random = Math.random } = options
  const { steady = steadyClock } = options
  const inform = <T extends KubeObject>(
    resource: Resource<T>,
    more: { readonly namespace?: string; readonly labelSelector?: string; readonly fieldSelector?: string } = {},
  ) => new Informer<T>({ kube: hub, resource, logger, clock, ...more })
  const members = inform<ManagedCluster>(managedClusters)
  const sets = inform<ManagedClusterSet>(managedClusterSets)
  const bindings = inform<ManagedClusterSetBinding>(managedClusterSetBindings)
  const namespaces = inform(clusterNamespaces, { labelSelector: CLUSTER_LABEL })
  const connections = inform(monitored, { namespace })
  const leases = inform<Lease>(clusterLeases, { fieldSelector: `metadata.name=${LEASE_NAME}` })
  const grants = [clusterRoles, clusterRoleBindings, roleBindings].map(
    (resource) => [resource, inform(resource, { labelSelector: MADE_FOR_MEMBERS })] as const,
  )
  const grantsOf = (resource: Resource): Informer<KubeObject> => {
    const found = grants.find(([one]) => one === resource)
    invariant(found, 'what gives rights is followed')
    return found[1]
  }
  const [roles] = grants.map(([, informer]) => informer)
  const requests = inform(certificateRequests, { labelSelector: CLUSTER_LABEL })
  const requestsOf = new InformerIndex(requests, ({ metadata }) => [metadata.labels?.[CLUSTER_LABEL] ?? ''])
  const shared = { hub, clock, logger }
  const common = { logger, clock, random }

  const membership = new MembershipReconciler({
    ...{ ...shared, namespace, members, namespaces, connections, grants: grantsOf },
    requestsOf: (cluster) => requestsOf.of(cluster),
    ...(options.revoke && { revoke: options.revoke }),
    removalPatienceMs: options.removalPatienceMs ?? DEFAULT_REMOVAL_PATIENCE_MS,
  })
  const memberController = new Controller({
    reconciler: takingConflicts(membership),
    triggers: [
      withForgotten(onMembershipChange(members), members, roles),
      // Whoever changes or deletes what gives rights: it is as it must be in a moment.
      ...[namespaces, ...grants.map(([, informer]) => informer)].map((informer) =>
        onReferredChange(informer, (change) => clusterOf(change) ?? anyOf(members)),
      ),
      // Of one that nobody decided on: whether what it asks for was denied.
      onReferredChange(requests, (change) =>
        (clusterOf(change) ?? []).filter((key) => {
          const member = members.get(key)
          return member !== undefined && !isJudged(member)
        }),
      ),
      onReferredChange(connections, ({ key }) => (members.get({ name: key.name }) ? [{ name: key.name }] : [])),
    ],
    concurrency: 8,
    ...common,
  })

  const judged = () => members.list().filter((one) => conditionOf(one, CONDITIONS.joined)?.status === 'True').length
  const presence = new Presence({ clock, steady, logger })
  const massLoss = new MassLoss({
    members: judged,
    presence,
    ...(options.massLossPauseMs !== undefined && { pauseMs: options.massLossPauseMs }),
    clock,
    logger,
  })
  const life = new LifeReconciler({
    ...{ ...shared, members, leases, state, massLoss, presence, random, steady },
    leaseClock: options.leaseClock ?? 'hub',
    streamLoss: options.streamLoss ?? true,
    authorities: options.authorities,
  })
  const signs = new Map<string, string>()
  const heard = (clusters: Iterable<string>): void => {
    for (const cluster of clusters) {
      const member = members.get({ name: cluster })
      if (!member) {
        signs.delete(cluster)
        continue
      }
      const sign = signOf(state.cluster(cluster))
      const isNews = signs.get(cluster) !== sign
      signs.set(cluster, sign)
      const factsMs = member.status?.capacity ? FACTS_CALM_MS : FIRST_FACTS_MS
      lifeController.enqueue({ name: cluster }, isNews ? 0 : factsMs)
    }
  }
  const trusted = (): void => {
    for (const member of members.list())
      if (conditionOf(member, CONDITIONS.available)?.status === 'Unknown')
        lifeController.enqueue({ name: member.metadata.name })
  }
  const lifeController: Controller = new LifeController(
    {
      reconciler: takingConflicts(life),
      triggers: [
        onMembershipChange(members),
        onReferredChange(leases, (change) => (life.saw(change) ? [{ name: change.key.namespace ?? '' }] : [])),
      ],
      // Leases that are due in the same second are written together.
      concurrency: 64,
      spreadStartMs: (keys) => keys * SPREAD_PER_KEY_MS,
      ...common,
    },
    { events: options.events, heard, presence, trusted, authorities: options.authorities },
  )
  const setController: Controller = new Controller({
    reconciler: takingConflicts(new SetReconciler({ hub, members, sets, clock })),
    triggers: [
      withBuiltIn(onSpecChange(sets)),
      // Any of them may select by any label.
      onReferredChange(members, (change) => {
        if (change.kind !== 'changed' || labelsDiffer(change)) setsMoved()
        return []
      }),
    ],
    concurrency: 2,
    ...common,
  })
  const setsMoved = () => {
    for (const { metadata } of sets.list()) setController.enqueue({ name: metadata.name }, SETS_CALM_MS)
  }
  const bindingController = new Controller({
    reconciler: takingConflicts(new BindingReconciler({ hub, sets, bindings, clock })),
    triggers: [
      onSpecChange(bindings),
      onReferredChange(sets, ({ key }) =>
        bindings
          .list()
          .filter(({ spec }) => spec?.clusterSet === key.name)
          .map(({ metadata: { name, namespace: of = '' } }) => ({ name, namespace: of })),
      ),
    ],
    concurrency: 2,
    ...common,
  })
  const requestKeysOf = (cluster: string) => requestsOf.of(cluster).map(({ metadata: { name } }) => ({ name }))
  const users = options.autoApproveUsers ?? []
  const approvalController = new Controller({
    reconciler: takingConflicts(
      new ApprovalReconciler({
        ...{ ...shared, requests, members, users },
        ...(options.decided && { decided: options.decided }),
      }),
    ),
    triggers: [
      onEveryChange(requests),
      // A cluster may come, or be accepted, after it asked.
      onReferredChange(members, (change) => (changesSpec(change) ? requestKeysOf(change.key.name) : [])),
    ],
    concurrency: 4,
    ...common,
  })
  const certificateController = new Controller({
    reconciler: takingConflicts(new CertificateLifeReconciler({ hub, requests, members })),
    triggers: [
      onEveryChange(requests),
      onReferredChange(members, (change) => (change.kind === 'added' ? requestKeysOf(change.key.name) : [])),
    ],
    concurrency: 4,
    ...common,
  })
  memberMetrics(metrics, members)
  return [memberController, lifeController, setController, bindingController, approvalController, certificateController]
}

function memberMetrics(metrics: Metrics | undefined, members: Informer<ManagedCluster>): void {
  metrics?.gauge('clusterpulse_members', 'ManagedClusters by what is known of them.', ['state'], (gauge) => {
    gauge.reset()
    for (const member of members.list()) gauge.inc({ state: stateOf(member) })
  })
}
