import { createHash } from 'node:crypto'
import type { Collector } from '#collect'
import type { KubeObject, Resource } from '#kube'
import { type AgentRights, agentRightsText } from '#model'
import { agentRole, type RoleRead } from './agent-role.ts'
import { AGENT_NAME, AGENT_NAMESPACE, IDENTITY_SECRET, memberObjects } from './member-objects.ts'

/** The name of our one image, which runs every role, without its tag. Manifests, guide and container file write the same. */
export const IMAGE = 'clusterpulse/clusterpulse'

/** How agents are installed on members. */
export interface AgentInstall {
  /** image of this product; without a tag, that is `collectorVersion` of the connection, else `version` */
  readonly image: string
  /** of the hub; '' and `dev` count as `latest` */
  readonly version: string
  /** collectors of the original may speak: where one is installed, it stays until somebody deletes its Deployment */
  readonly keepsOriginals?: boolean
  /** host:port under which agents reach the hub, where a connection names none */
  readonly address?: string
  /** agents speak TLS to the hub */
  readonly tls: boolean
  /**
   * PEM of the CA that agents trust; undefined: the roots of their system; '': not known yet, and no agent is deployed before
   * it is. Asked at every look, so that a new CA gets there.
   */
  readonly caPem?: () => string | undefined
  /** name that agents verify instead of the one they dial */
  readonly serverName?: string
  /** agents ask kubelets at their own ports, which are let through */
  readonly asksKubelets?: boolean
  /** Secret in the agent's namespace to pull its image with */
  readonly imagePullSecret?: string
  /** a volume for the agent's buffer that outlives its pod; absent: what it has not delivered ends with the pod */
  readonly bufferVolume?: {
    readonly size: string
    /** default: the default of the member */
    readonly storageClass?: string
  }
}

/** The group of the image's user: a volume is made writable for it, where the cluster assigns none. */
export const IMAGE_GROUP = 65532

/** The volume as it is claimed on one member. */
export interface BufferVolume {
  readonly size: string
  readonly storageClass?: string
  /** group the volume is made writable for; not to be given on OpenShift, which assigns one */
  readonly fsGroup?: number
}

/** Everything that decides what an agent's objects look like. */
export interface AgentSettings {
  readonly cluster: string
  readonly image: string
  /** host:port; of an agent that joins several of one hub, with commas between */
  readonly address: string
  readonly intervalMs: number
  readonly operatorScanIntervalMs: number
  readonly tls: boolean
  readonly caPem?: string
  readonly serverName?: string
  readonly asksKubelets?: boolean
  readonly imagePullSecret?: string
  readonly bufferVolume?: BufferVolume
  /** address of the member's API, where known: its port is let through */
  readonly endpoint?: string
}

export { AGENT_NAME, AGENT_NAMESPACE } from './member-objects.ts'
export const TOKEN_SECRET = 'clusterpulse-collector-token'
const CA_MAP = 'ingester-ca'
const CA_KEY = 'service-ca.crt'
const CA_FOLDER = '/etc/ingester-ca'
const HEALTH_PORT = 8081
const KUBELET_PORT = 10_250
const BUFFER_BYTES = '1200Mi'

/** On every object of ours: which connection it serves. Objects without it, or of another, are never deleted. */
export const SERVES = 'clusterpulse.io/cluster'
/** On the pods: which token they were started with, so that a new one starts them anew. */
const CREDENTIAL = 'clusterpulse.io/credential'
const CA_HASH = 'clusterpulse.io/ca'

const LABELS = {
  'app.kubernetes.io/name': AGENT_NAME,
  'app.kubernetes.io/component': 'collector',
  'app.kubernetes.io/part-of': 'clusterpulse',
} as const
const SELECTOR = { 'app.kubernetes.io/name': AGENT_NAME } as const

/** One object on a member, and the word its failure begins with. */
export interface AgentObject {
  readonly step: string
  readonly resource: Resource
  readonly object: KubeObject
}

const RBAC = 'rbac.authorization.k8s.io'
const resource = (group: string, plural: string, kind: string, namespaced = true): Resource => ({
  group,
  version: 'v1',
  plural,
  kind,
  namespaced,
})

/** What an agent consists of, in the order in which it is made; taken away in the reverse order. */
export const agentResources = {
  namespace: resource('', 'namespaces', 'Namespace', false),
  serviceaccount: resource('', 'serviceaccounts', 'ServiceAccount'),
  clusterrole: resource(RBAC, 'clusterroles', 'ClusterRole', false),
  clusterrolebinding: resource(RBAC, 'clusterrolebindings', 'ClusterRoleBinding', false),
  secret: resource('', 'secrets', 'Secret'),
  configmap: resource('', 'configmaps', 'ConfigMap'),
  networkpolicy: resource('networking.k8s.io', 'networkpolicies', 'NetworkPolicy'),
  persistentvolumeclaim: resource('', 'persistentvolumeclaims', 'PersistentVolumeClaim'),
  deployment: resource('apps', 'deployments', 'Deployment'),
} as const satisfies Readonly<Record<string, Resource>>

type Step = keyof typeof agentResources

/** Where each of them is. */
export const agentKeys: Readonly<Record<Step, { readonly name: string; readonly namespace?: string }>> = {
  namespace: { name: AGENT_NAMESPACE },
  serviceaccount: inNamespace(AGENT_NAME),
  clusterrole: { name: AGENT_NAME },
  clusterrolebinding: { name: AGENT_NAME },
  secret: inNamespace(TOKEN_SECRET),
  configmap: inNamespace(CA_MAP),
  networkpolicy: inNamespace(AGENT_NAME),
  persistentvolumeclaim: inNamespace(AGENT_NAME),
  deployment: inNamespace(AGENT_NAME),
}

function inNamespace(name: string) {
  return { name, namespace: AGENT_NAMESPACE }
}

export interface AgentCredential {
  /** bearer token; of an agent that joins, its join token */
  readonly token: string
  readonly id: string
  /** it joins by a key of its own, which it keeps on the member, and has these rights there */
  readonly joins?: { readonly rights: AgentRights }
}

/** Decides the objects of an agent; `reads` is what MetricSources read. Equal inputs give equal objects: applied twice they change nothing. */
export function agentObjects(
  settings: AgentSettings,
  credential: AgentCredential,
  collectors: readonly Collector[],
  reads: readonly RoleRead[] = [],
): readonly AgentObject[] {
  // A join token says itself how the hub is known.
  const ca = settings.tls && !credential.joins ? settings.caPem : undefined
  const labelled = (labels: Readonly<Record<string, string>> = LABELS) => ({
    labels: { ...labels },
    annotations: { [SERVES]: settings.cluster },
  })
  const one = (step: Step, body: Omit<KubeObject, 'metadata'>, labels?: Readonly<Record<string, string>>) => ({
    step,
    resource: agentResources[step],
    object: {
      apiVersion: apiVersionOf(agentResources[step]),
      kind: agentResources[step].kind,
      metadata: { ...agentKeys[step], ...labelled(labels) },
      ...body,
    },
  })
  return [
    one(
      'namespace',
      {},
      { 'app.kubernetes.io/part-of': 'clusterpulse', 'pod-security.kubernetes.io/enforce': 'restricted' },
    ),
    one('serviceaccount', {}),
    one('clusterrole', { rules: agentRole(collectors, reads) }),
    one('clusterrolebinding', {
      roleRef: { apiGroup: RBAC, kind: 'ClusterRole', name: AGENT_NAME },
      subjects: [{ kind: 'ServiceAccount', name: AGENT_NAME, namespace: AGENT_NAMESPACE }],
    }),
    ...(credential.joins ? memberObjects(credential.joins.rights, labelled()) : []),
    one('secret', { type: 'Opaque', data: { token: Buffer.from(credential.token).toString('base64') } }),
    ...(ca ? [one('configmap', { data: { [CA_KEY]: ca } })] : []),
    one('networkpolicy', { spec: networkPolicy(settings) }),
    ...(settings.bufferVolume ? [one('persistentvolumeclaim', { spec: volumeClaim(settings.bufferVolume) })] : []),
    one('deployment', { spec: deployment(settings, credential, ca) }),
  ]
}

const apiVersionOf = ({ group, version }: Resource) => (group ? `${group}/${version}` : version)

function deployment(settings: AgentSettings, credential: AgentCredential, ca: string | undefined): object {
  return {
    replicas: 1,
    // Two agents of one cluster would push each other off the stream, and only one can hold the buffer.
    strategy: { type: 'Recreate' },
    selector: { matchLabels: { ...SELECTOR } },
    template: {
      metadata: {
        labels: { ...LABELS },
        annotations: { [CREDENTIAL]: credential.id, ...(ca && { [CA_HASH]: shortHash(ca) }) },
      },
      spec: podSpec(settings, credential, ca),
    },
  }
}

const shortHash = (text: string) => createHash('sha256').update(text).digest('hex').slice(0, 16)

function podSpec(settings: AgentSettings, credential: AgentCredential, ca: string | undefined): object {
  const { imagePullSecret, bufferVolume, image } = settings
  const port = { containerPort: HEALTH_PORT, name: 'health', protocol: 'TCP' }
  return {
    serviceAccountName: AGENT_NAME,
    terminationGracePeriodSeconds: 30,
    ...(imagePullSecret && { imagePullSecrets: [{ name: imagePullSecret }] }),
    securityContext: {
      // The image names its user; a number here would be refused where the cluster assigns one.
      runAsNonRoot: true,
      ...(bufferVolume?.fsGroup !== undefined && { fsGroup: bufferVolume.fsGroup }),
      seccompProfile: { type: 'RuntimeDefault' },
    },
    containers: [
      {
        name: 'collector',
        image,
        args: [credential.joins ? 'join' : 'agent'],
        env: credential.joins ? joiningEnvironment(credential.joins.rights) : environment(settings, ca !== undefined),
        ports: [port],
        startupProbe: { httpGet: { path: '/healthz', port: 'health' }, periodSeconds: 2, failureThreshold: 60 },
        livenessProbe: { httpGet: { path: '/healthz', port: 'health' }, periodSeconds: 20, failureThreshold: 3 },
        readinessProbe: { httpGet: { path: '/readyz', port: 'health' }, periodSeconds: 10, failureThreshold: 3 },
        resources: { requests: { cpu: '50m', memory: '128Mi' }, limits: { cpu: '200m', memory: '512Mi' } },
        securityContext: {
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        },
        volumeMounts: [
          { name: 'buffer', mountPath: '/data' },
          ...(ca === undefined ? [] : [{ name: CA_MAP, mountPath: CA_FOLDER, readOnly: true }]),
        ],
      },
    ],
    volumes: [
      bufferVolume
        ? { name: 'buffer', persistentVolumeClaim: { claimName: AGENT_NAME } }
        : { name: 'buffer', emptyDir: { sizeLimit: BUFFER_BYTES } },
      ...(ca === undefined ? [] : [{ name: CA_MAP, configMap: { name: CA_MAP } }]),
    ],
  }
}

type Variable = { readonly name: string } & ({ readonly value: string } | { readonly valueFrom: object })

/** The documented ones first, in the documented order; then ours. */
function environment(settings: AgentSettings, ownCa: boolean): readonly Variable[] {
  const plain = plainEnvironment(settings, ownCa ? `${CA_FOLDER}/${CA_KEY}` : undefined)
  const token = { name: 'COLLECTOR_TOKEN', valueFrom: { secretKeyRef: { name: TOKEN_SECRET, key: 'token' } } }
  const variables = plain.map(([name, value]) => ({ name, value }))
  return [...variables.slice(0, 2), token, ...variables.slice(2), { name: 'BUFFER_DIR', value: '/data' }]
}

/** All else stands in the join token, and then in the identity: the Secret of the token may be deleted when it is spent. */
function joiningEnvironment(rights: AgentRights): readonly Variable[] {
  const secretKeyRef = { name: TOKEN_SECRET, key: 'token', optional: true }
  return [
    { name: 'JOIN_TOKEN', valueFrom: { secretKeyRef } },
    { name: 'IDENTITY_SECRET', value: `${AGENT_NAMESPACE}/${IDENTITY_SECRET}` },
    { name: 'AGENT_RIGHTS', value: agentRightsText(rights) },
    { name: 'BUFFER_DIR', value: '/data' },
  ]
}

/** The environment of an agent without its token. */
export function plainEnvironment(
  settings: Pick<AgentSettings, 'cluster' | 'address' | 'intervalMs' | 'operatorScanIntervalMs' | 'tls' | 'serverName'>,
  caFile: string | undefined,
): readonly (readonly [name: string, value: string])[] {
  const { cluster, address, intervalMs, operatorScanIntervalMs, tls, serverName } = settings
  const wholeSeconds = (ms: number) => String(Math.max(1, Math.round(ms / 1000)))
  return [
    ['CLUSTER_NAME', cluster],
    ['INGESTER_ADDRESS', address],
    ['OPERATOR_SCAN_INTERVAL', wholeSeconds(operatorScanIntervalMs)],
    ...(tls ? ([['INGESTER_TLS_ENABLED', 'true']] as const) : []),
    ...(tls && serverName ? ([['INGESTER_TLS_SERVER_NAME', serverName]] as const) : []),
    ...(tls && caFile !== undefined ? ([['INGESTER_TLS_CA', caFile]] as const) : []),
    ['COLLECT_INTERVAL', wholeSeconds(intervalMs)],
  ]
}

function volumeClaim({ size, storageClass }: BufferVolume): object {
  return {
    accessModes: ['ReadWriteOnce'],
    resources: { requests: { storage: size } },
    ...(storageClass && { storageClassName: storageClass }),
  }
}

/**
 * Out: names, the cluster's API, the hub. In: the kubelet's probes. The API and a hub by name have no address a policy
 * could know, so their ports are let through; a hub by number is named itself.
 */
function networkPolicy({ address, endpoint, asksKubelets }: AgentSettings): object {
  const tcp = (port: number) => ({ protocol: 'TCP', port })
  const hubs = address.split(',').map((one) => {
    const { host, port } = hostAndPort(one)
    const cidr = cidrOf(host)
    return { ports: [tcp(port)], ...(cidr && { to: [{ ipBlock: { cidr } }] }) }
  })
  const apiPorts = [...new Set([443, 6443, ...portOf(endpoint)])].sort((a, b) => a - b)
  const names = [53, 5353].flatMap((number) => [{ protocol: 'UDP', port: number }, tcp(number)])
  return {
    podSelector: { matchLabels: { ...SELECTOR } },
    policyTypes: ['Ingress', 'Egress'],
    ingress: [{ ports: [tcp(HEALTH_PORT)] }],
    egress: [
      { ports: names },
      { ports: apiPorts.map(tcp) },
      ...(asksKubelets ? [{ ports: [tcp(KUBELET_PORT)] }] : []),
      ...hubs,
    ],
  }
}

/** Any target form of gRPC; without a port 443 is meant. */
export function hostAndPort(address: string): { readonly host: string; readonly port: number } {
  const target = address.replace(/^(dns|ipv4|ipv6|passthrough|https?):(\/\/[^/]*\/(?=.)|\/\/)?/i, '')
  const [, bracketed, host = '', port] = /^(?:\[([^\]]+)\]|([^:]*))(?::(\d{1,5}))?$/.exec(target) ?? []
  return { host: bracketed ?? host, port: Number(port ?? 443) }
}

function cidrOf(host: string): string | undefined {
  if (/^\d{1,3}(\.\d{1,3}){3}$/.test(host)) return `${host}/32`
  return /^[0-9a-f:.]*:[0-9a-f:.]*$/i.test(host) ? `${host}/128` : undefined
}

function portOf(endpoint: string | undefined): readonly number[] {
  const port = Number(/:(\d{1,5})(?:\/|$)/.exec(endpoint?.replace(/^https?:\/\//, '') ?? '')?.[1] ?? 0)
  return port > 0 && port < 65536 ? [port] : []
}

/** The agent's image: a tag or digest that is written stays, unless the connection asks for a version. */
export function imageOf(
  { image, version }: Pick<AgentInstall, 'image' | 'version'>,
  collectorVersion?: string,
): string {
  const [bare = image, digest] = image.split('@')
  const tagAt = bare.indexOf(':', bare.lastIndexOf('/') + 1)
  if (!collectorVersion && (digest !== undefined || tagAt >= 0)) return image
  // The commit behind a + names the build, not the release; a tag holds no +.
  const wanted = collectorVersion || version.replace(/\+.*$/, '')
  return `${tagAt < 0 ? bare : bare.slice(0, tagAt)}:${wanted === '' || wanted === 'dev' ? 'latest' : wanted}`
}
