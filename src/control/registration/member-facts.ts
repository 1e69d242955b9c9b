import type { ClusterState, NodeSnapshot } from '#model'
import type { Claim, ManagedCluster } from './objects.ts'

type Status = NonNullable<ManagedCluster['status']>
/** What a member says of itself, as its ManagedCluster shows it. */
export type MemberFacts = Pick<Status, 'version' | 'capacity' | 'allocatable' | 'clusterClaims'>

/**
 * What our agent told of its cluster, in the fields of a ManagedCluster. Sums are over nodes; those that take no pods count
 * for the capacity only. What is not known is left out: an old value stays then.
 */
export function memberFacts(state: ClusterState): MemberFacts {
  const cluster = state.parts.cluster?.items.get('cluster')
  const part = state.parts.node
  const nodes = part?.outcome === 'complete' && part.freshness ? [...part.items.values()] : undefined
  const claims = cluster ? claimsOf(cluster) : []
  // OpenShift tells its own version, and not that of its API server.
  const version = cluster?.distribution === 'kubernetes' ? cluster.version : null
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

function claimsOf({ distribution, version, clusterId }: NonNullable<ReturnType<typeof clusterIn>>): readonly Claim[] {
  const isOpenShift = distribution === 'openshift'
  const all: readonly (readonly [name: string, value: string | null])[] = [
    ['id.k8s.io', clusterId],
    ['kubeversion.open-cluster-management.io', isOpenShift ? null : version],
    ['product.open-cluster-management.io', isOpenShift ? 'OpenShift' : null],
    ['version.openshift.io', isOpenShift ? version : null],
  ]
  return all.flatMap(([name, value]) => (value ? [{ name, value: value.slice(0, 1024) }] : []))
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
