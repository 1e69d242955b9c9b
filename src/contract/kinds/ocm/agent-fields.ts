import type { AdmissionRequest, AdmittedObject } from '../admission.ts'
import type { Fault } from '../kind.ts'
import { agentOf } from './asker.ts'
import { CLUSTER_SET_LABEL, DEFAULT_CLUSTER_SET, DEFAULT_LEASE_SECONDS } from './names.ts'

const ADDRESSES = 'managedClusterClientConfigs'
/** How annotations begin that are an agent's own. */
const AGENT_ANNOTATIONS = 'agent.open-cluster-management.io/'

type Fields = Readonly<Record<string, unknown>>

const WHY = {
  member: `is not the member's to change: of its ManagedCluster that is spec.${ADDRESSES} and annotations ${AGENT_ANNOTATIONS}…`,
  bootstrap: `is not changed with a bootstrap kubeconfig: of a ManagedCluster that is there it adds to spec.${ADDRESSES} and no more`,
} as const

/**
 * What is wrong with how an agent changes a ManagedCluster. Its rights are those of Open Cluster Management, whose agents change nothing but
 * addresses: labels, taints, heartbeat and owners are for the hub's people to say.
 */
export function agentFaults({ user, object, before }: AdmissionRequest): readonly Fault[] {
  const agent = agentOf(user)
  if (!agent || !object || !before) return []
  const fault = (path: string): Fault => ({ path, message: WHY[agent] })
  const [is, was] = [kept(object, agent), kept(before, agent)]
  const paths = Object.keys({ ...was, ...is }).filter((path) => !isSame(is[path], was[path]))
  const moved = agent === 'bootstrap' && !isAddedTo(addressesOf(before), addressesOf(object))
  return [...paths, ...(moved ? [`spec.${ADDRESSES}`] : [])].map(fault)
}

/** What has to stay as it is, by its place, without what the API fills in. */
function kept({ metadata, spec }: AdmittedObject, agent: 'member' | 'bootstrap'): Fields {
  const { labels, annotations = {}, finalizers, ownerReferences } = metadata
  const { [ADDRESSES]: _, leaseDurationSeconds, hubAcceptsClient, taints, ...others } = (spec ?? {}) as Fields
  const isOwn = (name: string) => agent === 'member' && name.startsWith(AGENT_ANNOTATIONS)
  const foreign = Object.entries(annotations).filter(([name]) => !isOwn(name))
  return {
    'metadata.labels': { ...labels, [CLUSTER_SET_LABEL]: labels?.[CLUSTER_SET_LABEL] || DEFAULT_CLUSTER_SET },
    'metadata.annotations': Object.fromEntries(foreign),
    'metadata.finalizers': finalizers,
    'metadata.ownerReferences': ownerReferences,
    'spec.hubAcceptsClient': hubAcceptsClient === true,
    'spec.leaseDurationSeconds': leaseDurationSeconds || DEFAULT_LEASE_SECONDS,
    // A value that is empty is left out by clients in Go.
    'spec.taints': Array.isArray(taints) ? taints.map((taint: Fields) => ({ value: '', ...taint })) : undefined,
    ...Object.fromEntries(Object.entries(others).map(([name, value]) => [`spec.${name}`, value])),
  }
}

interface Address {
  readonly url?: unknown
}

function addressesOf({ spec }: AdmittedObject): readonly Address[] {
  const addresses = ((spec ?? {}) as Fields)[ADDRESSES]
  return Array.isArray(addresses) ? (addresses as Address[]) : []
}

/** Whether all that were there stand as they were, and the others are new ones. */
const isAddedTo = (were: readonly Address[], are: readonly Address[]): boolean =>
  were.every((one, at) => isSame(one, are[at])) &&
  are.slice(were.length).every(({ url }) => were.every((one) => one.url !== url))

const isSame = (a: unknown, b: unknown): boolean => JSON.stringify(plain(a)) === JSON.stringify(plain(b))

/** The same for all ways of writing it: nothing, null and an empty list or object are one, and fields have one order. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.length > 0 ? value.map(plain) : undefined
  if (typeof value !== 'object' || value === null) return value ?? undefined
  const fields = Object.entries(value)
    .map(([name, one]) => [name, plain(one)] as const)
    .filter(([, one]) => one !== undefined)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
  return fields.length > 0 ? Object.fromEntries(fields) : undefined
}
