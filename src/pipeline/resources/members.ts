import { AUTHORITY_LOST, CLAIMS, type MemberFacts, type MemberRequest, renewalOf, seconds } from '#model'
import { targetOf } from './define.ts'
import { defineFleetKind } from './define-snapshot-kind.ts'

/** Until when the newest certificate counts: of who is no member none does, however long it lives, and none of a CA that is lost. */
const countingOf = ({ accepted, certificate, reason }: MemberFacts) =>
  accepted && reason !== AUTHORITY_LOST ? certificate : null
const renewalIn = (facts: MemberFacts) => {
  const life = countingOf(facts)
  return life && renewalOf(life)
}

/** Members of the hub, and clusters that ask to be. */
export const members = defineFleetKind<MemberFacts>({
  name: 'members',
  singular: 'member',
  title: 'Members',
  target: targetOf('cluster.open-cluster-management.io/v1', 'ManagedCluster', 'managedclusters', 'Fleet'),
  everyMs: seconds(60),
  place: ({ name }) => ({ namespace: '', name }),
  labels: ({ labels }) => labels,
  countBy: 'state',
  sort: 'state',
  columns: {
    state: {
      label: 'State',
      kind: 'string',
      health: {
        ...{ available: 'healthy', unreachable: 'unhealthy', lost: 'unhealthy' },
        ...{ 'not accepted yet': 'degraded', detaching: 'degraded' },
        ...{ 'not joined yet': 'unknown', denied: 'unknown', revoked: 'unknown' },
      },
      read: ({ state }) => state,
    },
    accepted: { label: 'Accepted', kind: 'boolean', read: ({ accepted }) => accepted },
    joined: { label: 'Joined', kind: 'boolean', read: ({ joined }) => joined },
    available: { label: 'Available', kind: 'string', absence: 'unknown', read: ({ available }) => available },
    sets: { label: 'Sets', kind: 'any', read: ({ sets }) => [...sets] },
    version: {
      ...{ label: 'Kubernetes', kind: 'string', isVersion: true, absence: 'unknown' },
      read: ({ kubernetesVersion }) => kubernetesVersion,
    },
    certificateUntil: {
      ...{ label: 'Certificate until', kind: 'number', unit: 'time' },
      read: (facts) => countingOf(facts)?.until ?? null,
    },
    since: { label: 'Since', kind: 'number', unit: 'time', absence: 'unknown', read: ({ since }) => since },
    reason: { label: 'Reason', kind: 'string', isExtra: true, read: ({ reason }) => reason || null },
    message: { label: 'Message', kind: 'string', isWide: true, read: ({ message }) => message || null },
    transport: { label: 'Transport', kind: 'string', isExtra: true, read: ({ transport }) => transport },
    clockSynced: {
      ...{ label: 'Clock synced', kind: 'boolean', isExtra: true, absence: 'unknown' },
      read: ({ clockSynced }) => clockSynced,
    },
    certificateFrom: {
      ...{ label: 'Certificate from', kind: 'number', unit: 'time', isExtra: true, absence: 'unknown' },
      read: ({ certificate }) => certificate?.from ?? null,
    },
    renewsFrom: {
      ...{ label: 'Renews from', kind: 'number', unit: 'time', isExtra: true },
      read: (facts) => renewalIn(facts)?.from ?? null,
    },
    renewBy: {
      ...{ label: 'Renews by', kind: 'number', unit: 'time', isExtra: true },
      read: (facts) => renewalIn(facts)?.latest ?? null,
    },
    rights: {
      ...{ label: 'Rights it tells', kind: 'string', isExtra: true, absence: 'unknown' },
      read: ({ claims }) => claims[CLAIMS.rights] ?? null,
    },
    taints: { label: 'Taints', kind: 'any', isExtra: true, read: ({ taints }) => [...taints] },
    claims: { label: 'Claims', kind: 'any', isExtra: true, read: ({ claims }) => ({ ...claims }) },
    capacity: { label: 'Capacity', kind: 'any', isExtra: true, read: ({ capacity }) => ({ ...capacity }) },
    allocatable: { label: 'Allocatable', kind: 'any', isExtra: true, read: ({ allocatable }) => ({ ...allocatable }) },
    conditions: {
      ...{ label: 'Conditions', kind: 'any', isExtra: true },
      read: ({ conditions }) => conditions.map((one) => ({ ...one })),
    },
    createdAt: {
      ...{ label: 'Created', kind: 'number', unit: 'time', isExtra: true, absence: 'unknown' },
      read: ({ createdAt }) => createdAt,
    },
  },
})

const ACCOUNT = /^system:serviceaccount:([^:]+):([^:]+)$/

/** The address of the machine; of one that asked the hub's API by itself, whose is not noted, the credential it used. */
function fromOf({ address, username }: MemberRequest): string | null {
  if (address || !username) return address || null
  const [, namespace, name] = ACCOUNT.exec(username) ?? []
  return `the hub's API, ${name === undefined ? `user ${username}` : `account ${namespace}/${name}`}`
}

/** Requests for members' certificates that wait for a decision. */
export const memberRequests = defineFleetKind<MemberRequest>({
  name: 'memberrequests',
  singular: 'memberrequest',
  title: 'Requests to join',
  target: targetOf('certificates.k8s.io/v1', 'CertificateSigningRequest', 'certificatesigningrequests', 'Fleet'),
  everyMs: seconds(60),
  place: ({ name }) => ({ namespace: '', name }),
  countBy: 'member',
  sort: 'member',
  columns: {
    member: { label: 'Asks to be', kind: 'string', read: ({ cluster }) => cluster },
    from: { label: 'From', kind: 'string', absence: 'unknown', read: fromOf },
    key: { label: 'Key (SHA-256)', kind: 'string', absence: 'unknown', read: ({ key }) => key || null },
    requestedAt: {
      ...{ label: 'Asked', kind: 'number', unit: 'time', absence: 'unknown' },
      read: ({ requestedAt }) => requestedAt,
    },
    missing: { label: 'Missing', kind: 'any', read: ({ missing }) => [...missing] },
    address: {
      label: 'Address',
      kind: 'string',
      isExtra: true,
      absence: 'unknown',
      read: ({ address }) => address || null,
    },
    username: { label: 'User', kind: 'string', isExtra: true, read: ({ username }) => username || null },
    agentVersion: {
      ...{ label: 'Agent', kind: 'string', isVersion: true, isExtra: true, absence: 'unknown' },
      read: ({ agentVersion }) => agentVersion || null,
    },
  },
})
