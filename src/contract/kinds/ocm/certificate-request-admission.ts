import type { AdmissionRequest, AdmissionRule, AdmittedObject } from '../admission.ts'
import type { Fault } from '../kind.ts'
import { BOOTSTRAP_ACCOUNT, BOOTSTRAP_TOKENS, isBootstrapUser, MEMBERS } from './asker.ts'
import { CLUSTER_NAME_LABEL } from './names.ts'

/** Undecided requests of one cluster for one signer, as agents of Open Cluster Management count them themselves. */
const MAX_UNDECIDED = 10
/** Requests of one cluster within an hour, decided or not: a member needs one in days, and each of its renewals is approved by itself. */
const MAX_PER_HOUR = 30
/** For all signers, as add-ons ask others. */
const MAX_KEPT = 100
const HOUR_MS = 3_600_000
/** Of one request as JSON, in characters: ten times what agents write. */
const MAX_LENGTH = 32 * 1024

/** Signers of a cluster's own; those of add-ons have other names. */
const OF_KUBERNETES = 'kubernetes.io/'
const API_CLIENTS = 'kubernetes.io/kube-apiserver-client'

interface CertificateRequest {
  readonly spec?: { readonly username?: string; readonly signerName?: string }
  readonly status?: { readonly certificate?: string; readonly conditions?: readonly { readonly type: string }[] }
}

const read = (object: AdmittedObject | undefined): CertificateRequest => (object ?? {}) as CertificateRequest
const clusterOf = (object: AdmittedObject | undefined): string => object?.metadata.labels?.[CLUSTER_NAME_LABEL] ?? ''

/** Who asks for itself: a member, or one of those who share a credential to become one. undefined: somebody else, whom nothing bounds here */
function askerOf(user: string): string | undefined {
  if (user.startsWith(MEMBERS)) return `member ${user.slice(MEMBERS.length).split(':')[0]}`
  return isBootstrapUser(user) ? 'bootstrap' : undefined
}

/** Kubelets ask with bootstrap tokens as well, and for no cluster. */
const isConcerned = ({ user, object }: AdmissionRequest): boolean =>
  askerOf(user.name) !== undefined && (clusterOf(object) !== '' || !user.name.startsWith(BOOTSTRAP_TOKENS))

const isUndecided = ({ status }: CertificateRequest): boolean =>
  !status?.certificate && !status?.conditions?.some(({ type }) => ['Approved', 'Denied', 'Failed'].includes(type))

function faults(request: AdmissionRequest, standing: readonly AdmittedObject[]): readonly Fault[] {
  if (!isConcerned(request)) return []
  const asker = askerOf(request.user.name)
  const cluster = clusterOf(request.object)
  const fault = (message: string): Fault[] => [{ path: `metadata.labels[${CLUSTER_NAME_LABEL}]`, message }]
  if (cluster === '') return fault('is required: a request is made for one cluster')
  const { length } = JSON.stringify(request.object)
  if (length > MAX_LENGTH)
    return [
      { path: 'spec', message: `must be shorter: the request has ${length} characters, and may have ${MAX_LENGTH}` },
    ]
  if (asker !== 'bootstrap' && asker !== `member ${cluster}`)
    return fault(`must be the cluster of who asks: a ${asker} may ask for its own cluster alone`)
  const { signerName } = read(request.object).spec ?? {}
  if (signerName?.startsWith(OF_KUBERNETES) && signerName !== API_CLIENTS)
    return [
      { path: 'spec.signerName', message: `must be ${API_CLIENTS}: agents get no other certificate of Kubernetes` },
    ]
  // Those who share a credential do not keep a member from its renewal, nor the other way round.
  const same = standing.filter((one) => askerOf(read(one).spec?.username ?? '') === asker)
  if (same.length >= MAX_KEPT)
    return fault(
      `${same.length} requests of ${cluster} are there, whoever is to sign them; delete those that are not needed`,
    )
  const forSigner = same.filter((one) => read(one).spec?.signerName === signerName)
  const undecided = forSigner.filter((one) => isUndecided(read(one))).length
  if (undecided >= MAX_UNDECIDED)
    return fault(`${undecided} requests of ${cluster} wait for a decision; approve one or deny them first`)
  const since = request.nowMs - HOUR_MS
  const recent = forSigner.filter(({ metadata }) => !(Date.parse(String(metadata.creationTimestamp)) < since)).length
  if (recent < MAX_PER_HOUR) return []
  return fault(`${recent} requests of ${cluster} were made within an hour; the next one is taken when that is over`)
}

/** How many certificates members, and those who would become one, may ask the API for, and for whom. */
export const certificateRequestAdmission: AdmissionRule = {
  name: 'certificatesigningrequests.admission.clusterpulse.io',
  group: 'certificates.k8s.io',
  versions: ['v1'],
  resources: ['certificatesigningrequests'],
  operations: ['CREATE'],
  namespaced: false,
  // An API server of a cluster asks about these alone, and goes on where no manager answers: kubelets must get their certificates.
  only: {
    name: 'of-members',
    expression: [
      `request.userInfo.username.startsWith(${JSON.stringify(MEMBERS)})`,
      `request.userInfo.username == ${JSON.stringify(BOOTSTRAP_ACCOUNT)}`,
      `(request.userInfo.username.startsWith(${JSON.stringify(BOOTSTRAP_TOKENS)}) && has(object.metadata.labels) && ${JSON.stringify(CLUSTER_NAME_LABEL)} in object.metadata.labels)`,
    ].join(' || '),
  },
  isOptional: true,
  lists: (request) => {
    const cluster = clusterOf(request.object)
    if (!isConcerned(request) || cluster === '') return []
    const plural = 'certificatesigningrequests'
    return [
      { group: 'certificates.k8s.io', version: 'v1', plural, label: { name: CLUSTER_NAME_LABEL, value: cluster } },
    ]
  },
  faults: (request, _, [standing = []]) => faults(request, standing),
}
