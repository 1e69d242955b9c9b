import { boundClaims, CLAIMS, type ClusterState, claimsByName, type NodeSnapshot } from '#model'
import type { Claim, ManagedCluster } from './objects.ts'

type Status = NonNullable<ManagedCluster['status']>
/** What a member says of itself, as its ManagedCluster shows it. */
export type MemberFacts = Pick<Status, 'version' | 'capacity' | 'allocatable' | 'clusterClaims'>

/**
 * What our agent told of its cluster, in the fields of a ManagedCluster. Sums are over nodes; those that take no pods count
 * for the capacity only. What is not known is left out: an old value stays then.
 * @param stored claims as they are shown: of an agent that could not read them, they stay
 */
export function memberFacts(state: ClusterState, stored: readonly Claim[] = []): MemberFacts {
  const cluster = state.parts.cluster?.items.get('cluster')
  const part = state.parts.node
  const nodes = part?.outcome === 'complete' && part.freshness ? [...part.items.values()] : undefined
  const known = cluster ? builtInClaims(cluster, nodes ?? []) : {}
  const told = cluster?.claims
  const claims = cluster ? boundClaims(told ? { ...known, ...told } : { ...claimsByName(stored), ...known }) : []
  // OpenShift tells its own version, and not that of its API server.
  const version = told?.[CLAIMS.kubeVersion] ?? (cluster?.distribution === 'kubernetes' ? cluster.version : null)
  return {
    ...(version && { version: { kubernetes: version.startsWith('v') ? version : `v${version}` } }),
    ...(nodes && {
      capacity: amountsOf(nodes, 'capacity'),
      allocatable: amountsOf(
        nodes.filter(({ unschedulable }) => !unschedulable),
        'allocatable',
      ),
    }),
    ...(claims.length > 0 && { clusterClaims: claims }),
  }
}

/** What can be known without anybody claiming it; '' where it is not. */
function builtInClaims(
  { distribution, version, clusterId }: NonNullable<ReturnType<typeof clusterIn>>,
  nodes: readonly NodeSnapshot[],
): Readonly<Record<string, string>> {
  const isOpenShift = distribution === 'openshift'
  return {
    [CLAIMS.id]: clusterId ?? '',
    [CLAIMS.kubeVersion]: isOpenShift ? '' : (version ?? ''),
    [CLAIMS.product]: isOpenShift ? 'OpenShift' : '',
    [CLAIMS.openShiftVersion]: isOpenShift ? (version ?? '') : '',
    [CLAIMS.platform]: platformOf(nodes),
    [CLAIMS.region]: ofAll(nodes, ({ labels }) => labels[REGION]),
  }
}

const REGION = 'topology.kubernetes.io/region'
/** Labels that the clouds' own node pools carry. */
const PLATFORMS: readonly (readonly [label: string, platform: string])[] = [
  ['eks.amazonaws.com/nodegroup', 'AWS'],
  ['kubernetes.azure.com/cluster', 'Azure'],
  ['cloud.google.com/gke-nodepool', 'GCP'],
  ['ibm-cloud.kubernetes.io/worker-id', 'IBM'],
]
const platformOf = (nodes: readonly NodeSnapshot[]): string =>
  ofAll(nodes, ({ labels }) => PLATFORMS.find(([label]) => labels[label] !== undefined)?.[1])

/** What every node says alike; '' where they differ, or one does not. */
function ofAll(nodes: readonly NodeSnapshot[], say: (node: NodeSnapshot) => string | undefined): string {
  const said = new Set(nodes.map(say))
  const [one] = said
  return said.size === 1 ? (one ?? '') : ''
}
const clusterIn = (state: ClusterState) => state.parts.cluster?.items.get('cluster')

type Amounts = Pick<NodeSnapshot, 'capacity' | 'allocatable'>

function amountsOf(nodes: readonly NodeSnapshot[], which: keyof Amounts): Readonly<Record<string, string>> {
  const sum = (amount: keyof NodeSnapshot['capacity']): number | undefined => {
    let total = 0
    for (const node of nodes) {
      const value = node[which][amount]
      if (value === null) return undefined
      total += value
    }
    return total
  }
  const texts: readonly (readonly [string, string | undefined])[] = [
    ['cpu', cores(sum('cpuCores'))],
    ['memory', bytes(sum('memoryBytes'))],
    ['ephemeral-storage', bytes(sum('storageBytes'))],
    ['pods', whole(sum('pods'))],
  ]
  return Object.fromEntries(texts.flatMap(([name, text]) => (text === undefined ? [] : [[name, text]])))
}

function cores(amount: number | undefined): string | undefined {
  if (amount === undefined) return undefined
  const milli = Math.round(amount * 1000)
  return milli % 1000 === 0 ? String(milli / 1000) : `${milli}m`
}

function bytes(amount: number | undefined): string | undefined {
  if (amount === undefined) return undefined
  const rounded = Math.round(amount)
  return rounded > 0 && rounded % 1024 === 0 ? `${rounded / 1024}Ki` : String(rounded)
}

const whole = (amount: number | undefined) => (amount === undefined ? undefined : String(Math.round(amount)))
