/** Names every cluster may claim, as Open Cluster Management reserves them, and ours; they are told before all others. */
export const CLAIMS = {
  id: 'id.k8s.io',
  kubeVersion: 'kubeversion.open-cluster-management.io',
  platform: 'platform.open-cluster-management.io',
  product: 'product.open-cluster-management.io',
  region: 'region.open-cluster-management.io',
  openShiftVersion: 'version.openshift.io',
  /** what its agent may change there, as agentRightsText writes it */
  rights: 'rights.clusterpulse.io',
} as const

const RESERVED: readonly string[] = Object.values(CLAIMS)
const MAX_CUSTOM = 20
const [MAX_NAME, MAX_VALUE] = [253, 1024]

/** One statement of a cluster about itself. */
export interface ClaimOfCluster {
  readonly name: string
  readonly value: string
}

/**
 * What of them is shown: reserved names first, then at most 20 others by name. A name or value that is empty or longer than OCM takes
 * is left out, as half of it would say something else.
 */
export function boundClaims(claims: Readonly<Record<string, string>>): readonly ClaimOfCluster[] {
  const fitting = Object.entries(claims)
    .filter(([name, value]) => name && value && name.length <= MAX_NAME && value.length <= MAX_VALUE)
    .map(([name, value]) => ({ name, value }))
  const known = RESERVED.flatMap((name) => fitting.filter((one) => one.name === name))
  const others = fitting.filter(({ name }) => !RESERVED.includes(name)).sort((a, b) => (a.name < b.name ? -1 : 1))
  return [...known, ...others.slice(0, MAX_CUSTOM)]
}

/** By name. */
export const claimsByName = (claims: readonly ClaimOfCluster[]): Readonly<Record<string, string>> =>
  Object.fromEntries(claims.map(({ name, value }) => [name, value]))
