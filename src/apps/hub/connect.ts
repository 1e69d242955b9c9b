import { isMemberCluster, isReservedNamespace } from '#authority'
import {
  AgentCredentials,
  IMAGE,
  IMAGE_GROUP,
  imageOf,
  type Joining,
  joinCommand,
  joinContainer,
  joinManifest,
} from '#connections'
import { hasCertificate, JoinTokens, managedClusterOf, managedClusters } from '#joining'
import { clusterConnection, metricSource } from '#kinds'
import { createKubeClient, isKubeError, type KubeClient, type KubeObject, type Resource } from '#kube'
import { type CompiledSource, compileMetricSource, type SourceObject } from '#metricsource'
import { type ClusterName, parseAgentRights, seconds, systemClock } from '#model'
import { silentLogger } from '#runtime'
import { encodeJoinText } from '#wire'
import { trustedRoots } from './joins.ts'
import { HUB_NAMESPACE, INGESTER_MAP } from './object-names.ts'
import { ConnectError, clusterNameOf, hubAccess } from './objects-of-hub.ts'

/** What `clusterpulse connect` is called with. */
export interface ConnectOptions {
  readonly cluster: string
  /** of the hub's objects */
  readonly kubeconfig?: string
  readonly namespace?: string
  /** overrides what the hub says of itself */
  readonly address?: string
  readonly image?: string
  readonly output: 'command' | 'docker' | 'podman' | 'manifest'
  /** size of the volume the manifest claims for the buffer; '0': none; default: what the hub says */
  readonly bufferSize?: string
  /** the manifest is for OpenShift, which assigns groups of volumes itself */
  readonly openshift?: boolean
  readonly revoke: boolean
  /** `bearer`: an agent with a token, as before; else a machine that joins by a key of its own */
  readonly as: 'bearer' | JoinWish
  readonly environment: Readonly<Record<string, string | undefined>>
}

/** A join token, and what comes of it. */
export interface JoinWish {
  /** of the token, ms */
  readonly lifeMs: number
  /** the cluster is accepted now, and the first key that shows the token gets its certificate */
  readonly accept: boolean
  /** what the agent may change on the cluster, as parseAgentRights reads it */
  readonly rights: string
}

/** What goes to standard output, to be run or applied, and what is said beside it. */
export interface ConnectAnswer {
  readonly text: string
  readonly notes: readonly string[]
}

const configMaps: Resource = { group: '', version: 'v1', plural: 'configmaps', kind: 'ConfigMap', namespaced: true }
const connections: Resource = {
  group: clusterConnection.group,
  version: clusterConnection.version,
  plural: clusterConnection.plural,
  kind: clusterConnection.kind,
  namespaced: true,
}

interface Inputs {
  readonly hub: KubeClient
  readonly namespace: string
  readonly cluster: ClusterName
  readonly options: ConnectOptions
}

/**
 * Makes the hub ready for the agent of a cluster it may not be able to reach, and says what to run there: with a join token it asks to
 * become a member; with a bearer token the cluster is declared, and monitored. Needs the hub's objects only, not the hub itself.
 */
export async function connect(options: ConnectOptions): Promise<ConnectAnswer> {
  const cluster = clusterNameOf(options.cluster)
  const hub = createKubeClient(await hubAccess(options))
  const namespace = options.namespace ?? options.environment.NAMESPACE ?? HUB_NAMESPACE
  const credentials = new AgentCredentials({ hub, namespace, logger: silentLogger })
  try {
    if (options.revoke) {
      if (await credentials.revoke(cluster))
        return { text: '', notes: [`every credential of the agent of ${cluster} is revoked; its streams end at once`] }
      const why = (await hub.get(connections, { name: cluster, namespace }))
        ? `there is no credential for an agent of ${cluster}: nothing is to be revoked`
        : `the hub knows no cluster ${cluster}, and no credential for one; \`clusterpulse get clusters\` lists those it knows`
      throw new ConnectError('unknown_cluster', why)
    }
    const inputs = { hub, namespace, cluster, options }
    if (options.as !== 'bearer') return await memberJoining(inputs, options.as)
    return await joining(inputs, credentials)
  } finally {
    await credentials[Symbol.asyncDispose]()
    await hub[Symbol.asyncDispose]()
  }
}

/** A hub that has just started says where agents reach it a moment after it serves people, ms. */
const STARTING_MS = seconds(10)

async function publishedMap(hub: KubeClient, namespace: string, waitMs: number): Promise<KubeObject | undefined> {
  const until = systemClock.now() + waitMs
  for (;;) {
    const map = await hub.get(configMaps, { name: INGESTER_MAP, namespace })
    if (map || systemClock.now() >= until) return map
    await systemClock.sleep(250)
  }
}

interface Published {
  readonly address?: string
  /** with commas between, for who takes several */
  readonly addresses?: string
  readonly tls?: string
  readonly 'ca.crt'?: string
  readonly fingerprint?: string
  readonly serverName?: string
  readonly image?: string
  readonly imagePullSecret?: string
  readonly bufferSize?: string
  readonly bufferStorageClass?: string
}

const NO_ADDRESS = 'the hub does not say where agents reach it'

/** A token with which a machine that reaches the member may ask to join, and nothing else. */
async function memberJoining(inputs: Inputs, { lifeMs, accept, rights: wanted }: JoinWish): Promise<ConnectAnswer> {
  const { hub, namespace, cluster, options } = inputs
  const rights = parseAgentRights(wanted)
  if (typeof rights === 'string') throw new ConnectError('invalid_rights', `--rights: ${rights}`)
  if (!isMemberCluster(cluster))
    throw new ConnectError(
      'invalid_cluster',
      `a member is called as its namespace on the hub: lower-case letters, digits and -, at most 63; ${cluster} is not (--bearer-token: it is monitored and no member)`,
    )
  if (cluster === namespace || isReservedNamespace(cluster))
    throw new ConnectError(
      'invalid_cluster',
      `the namespace ${cluster} is not for a member; choose another name (--bearer-token: it is monitored and no member)`,
    )
  if (!(await hub.serves(managedClusters)))
    throw new ConnectError(
      'no_members',
      'this hub has no members: it does not serve ManagedClusters (deploy/components/members on Kubernetes); --bearer-token: the cluster is monitored without being one',
    )
  const map = await publishedMap(hub, namespace, options.address ? 0 : STARTING_MS)
  const published = (map?.data ?? {}) as Published
  const addresses = (options.address || published.addresses || published.address || '').split(',').filter(Boolean)
  if (addresses.length === 0) throw new ConnectError('no_address', noAddress(map, namespace))
  if (published.tls !== 'true')
    throw new ConnectError(
      'no_tls',
      'members join by certificate, and this hub receives agents without TLS: set INGESTER_TLS_ENABLED, or take --bearer-token',
    )
  const notes = [
    ...localOnly(addresses[0] ?? '', published),
    ...(await monitoredAlready(inputs)),
    ...(await memberAlready(inputs)),
  ]
  if (accept) notes.push(await acceptAhead(hub, cluster))
  const { fingerprint, serverName, 'ca.crt': caPem } = published
  const tokens = new JoinTokens({ hub, namespace, clock: systemClock })
  const secret = await tokens.issue(cluster, lifeMs, { isApproved: accept })
  const token = encodeJoinText({
    ...{ cluster, secret, addresses },
    ...(fingerprint ? { caFingerprint: fingerprint } : caPem ? { caPem } : {}),
    ...(serverName && { serverName }),
  })
  const text = await printed(inputs, published, notes, {
    ...{ cluster, token, address: addresses.join(), tls: true, intervalMs: seconds(30), joins: { rights } },
    ...(caPem ? { caPem } : {}),
  })
  const until = new Date(systemClock.now() + lifeMs).toISOString()
  notes.push(`until ${until} one machine may ask with it to be ${cluster}, and keeps its own key`)
  if (!accept) notes.push(`when it asks, accept it: clusterpulse accept ${cluster}`)
  return { text, notes }
}

/** What speaks for a cluster of this name already, and would be in the way of the one that joins. */
async function monitoredAlready({ hub, namespace, cluster }: Inputs): Promise<readonly string[]> {
  const known = await hub.get(connections, { name: cluster, namespace })
  if (!known || known.metadata.ownerReferences?.some(({ kind }) => kind === 'ManagedCluster')) return []
  const { collectionMode } = (known.spec ?? {}) as { collectionMode?: string }
  if (collectionMode !== 'push')
    throw new ConnectError(
      'monitored_already',
      `the hub reads a cluster ${cluster} itself: join under another name, or delete ClusterConnection ${namespace}/${cluster} first; --bearer-token makes its agent push`,
    )
  return [
    `an agent with a bearer token may speak for ${cluster}: stop it when this one is accepted (clusterpulse connect ${cluster} --revoke ends its token)`,
  ]
}

/** Who is a member under that name, and would have to share it. */
async function memberAlready({ hub, namespace, cluster }: Inputs): Promise<readonly string[]> {
  // Who may only make tokens may not know who is a member.
  const known = await hub.get(managedClusters, { name: cluster }).catch((error: unknown) => {
    if (!isKubeError(error, 'forbidden')) throw error
    return undefined
  })
  if (known?.spec?.hubAcceptsClient !== true || !hasCertificate(known, await trustedRoots(hub, namespace))) return []
  return [
    `warning: a machine is a member as ${cluster} already; where this token is for another one, stop the agent of that one first, or end it (clusterpulse revoke ${cluster}, then a new token): of two that speak for one cluster one is made to wait`,
  ]
}

/** With the rights of whoever calls it: the hub's own are not asked for. */
async function acceptAhead(hub: KubeClient, cluster: ClusterName): Promise<string> {
  const known = await hub.get(managedClusters, { name: cluster })
  if (known?.metadata.deletionTimestamp)
    throw new ConnectError('leaving', `ManagedCluster ${cluster} is being deleted; accept it anew when it is gone`)
  const spec = { hubAcceptsClient: true }
  if (known) await hub.patch(managedClusters, { name: cluster }, { spec }, { kind: 'merge' })
  else await hub.create(managedClusters, managedClusterOf(cluster, spec))
  return `${cluster} is accepted: the first key that shows the token is this member, without a second look`
}

/** What is to be run or applied on the member, in the form that was asked for. */
async function printed(
  { hub, namespace, options }: Inputs,
  published: Published,
  notes: string[],
  joining: Joining,
): Promise<string> {
  const image = imageOf({ image: options.image ?? (published.image || IMAGE), version: '' })
  if (options.output === 'command') {
    notes.push('run it where the kubeconfig of the member is (KUBECONFIG, else ~/.kube/config); it holds the token')
    return `${joinCommand(joining)}\n`
  }
  if (options.output !== 'manifest') {
    notes.push(
      `run it on any machine that reaches the member and has ${options.output} and its kubeconfig (KUBECONFIG, else ~/.kube/config); it holds the token`,
      'the kubeconfig must hold its credentials itself: `kubectl config view --raw --minify --flatten` prints such a one',
    )
    return `${joinContainer({ ...joining, image, engine: options.output })}\n`
  }
  notes.push(
    'the manifest holds the token: apply it on the member with kubectl apply --server-side -f -, and delete it',
  )
  const sources = await sourcesOf(hub, namespace)
  if (sources.length > 0)
    notes.push(
      `its role lets the agent read what ${sources.length} MetricSources name today; print it again when there are more`,
    )
  const { imagePullSecret } = published
  const bufferVolume = bufferOf(published, options)
  if (bufferVolume)
    notes.push(
      `it claims a volume of ${bufferVolume.size} for the agent's buffer; where the member has no default StorageClass, print it with --buffer-size 0`,
    )
  return joinManifest({
    ...joining,
    ...{ image, sources },
    ...(imagePullSecret && { imagePullSecret }),
    ...(bufferVolume && { bufferVolume }),
  })
}

/** Of an address that only this machine reaches, what makes the hub tell another one. */
function localOnly(address: string, { serverName, fingerprint }: Published): readonly string[] {
  if (!/^(127\.|localhost|\[?::1\]?)/.test(address)) return []
  const ofUp = 'start it with --ingester-host 0.0.0.0 --ingester-advertise HOST:PORT'
  const onKubernetes =
    'set INGESTER_ADVERTISE=HOST:PORT in clusterpulse-settings to where its Service is reached from outside'
  // A hub of `up` tells the CA of its own, one on Kubernetes the name of its Service.
  const remedy = fingerprint ? ofUp : serverName ? onKubernetes : `${ofUp}; on Kubernetes ${onKubernetes}`
  return [`the hub receives agents on ${address}, which only this machine reaches; ${remedy}`]
}

/** The hub tells no address: it does not run, or nobody told it where it is reached. */
const noAddress = (map: KubeObject | undefined, namespace: string): string =>
  map
    ? `${NO_ADDRESS}: set INGESTER_ADVERTISE of its manager, or give it with --address host:port`
    : `${NO_ADDRESS} (there is no ConfigMap ${namespace}/${INGESTER_MAP}: is it running, and does it receive agents?); give it with --address host:port`

async function joining(inputs: Inputs, credentials: AgentCredentials): Promise<ConnectAnswer> {
  const { hub, namespace, cluster, options } = inputs
  const notes: string[] = []
  const known = await hub.get(connections, { name: cluster, namespace })
  const spec = (known?.spec ?? {}) as {
    ingesterAddress?: string
    collectionMode?: string
    monitoring?: { interval?: number }
  }
  const isGiven = Boolean(options.address || spec.ingesterAddress)
  const map = await publishedMap(hub, namespace, isGiven ? 0 : STARTING_MS)
  const published = (map?.data ?? {}) as Published
  const address = options.address || spec.ingesterAddress || published.address
  if (!address) throw new ConnectError('no_address', noAddress(map, namespace))
  notes.push(...localOnly(address, published))
  if (!known) {
    await hub.create(connections, declared(cluster, namespace))
    notes.push(`the hub knows a new cluster now: ClusterConnection ${namespace}/${cluster}, collectionMode push`)
  } else if (spec.collectionMode !== 'push') {
    await hub.patch(connections, { name: cluster, namespace }, { spec: { collectionMode: 'push' } }, { kind: 'merge' })
    notes.push(`${cluster} was pulled; its ClusterConnection says collectionMode push now`)
  }
  const { token } = await credentials.issue(cluster)
  const caPem = published['ca.crt']
  const tls = published.tls === 'true'
  const shared = {
    cluster,
    token,
    address,
    tls,
    ...(caPem ? { caPem } : {}),
    ...(published.fingerprint ? { caFingerprint: published.fingerprint } : {}),
    ...(published.serverName ? { serverName: published.serverName } : {}),
    intervalMs: seconds(Math.max(30, spec.monitoring?.interval ?? 30)),
  }
  if (tls && published.fingerprint)
    notes.push(`the agent trusts the hub's CA with the SHA-256 fingerprint ${published.fingerprint}`)
  if (!tls) notes.push('the hub receives agents without TLS: the token and all numbers can be read on the way')
  return { text: await printed(inputs, published, notes, shared), notes }
}

function bufferOf(published: Published, { bufferSize, openshift }: ConnectOptions) {
  const size = bufferSize ?? published.bufferSize ?? ''
  if (size === '' || size === '0') return undefined
  const storageClass = published.bufferStorageClass
  return { size, ...(storageClass && { storageClass }), ...(!openshift && { fsGroup: IMAGE_GROUP }) }
}

/** What is declared now, as far as it works: the agent's role is made of it. None where the kind is not installed. */
async function sourcesOf(hub: KubeClient, namespace: string): Promise<readonly CompiledSource[]> {
  const { group, plural, definition } = metricSource
  const resource = { group, version: definition.version, plural, kind: definition.kind, namespaced: true }
  if (!(await hub.serves(resource))) return []
  const objects = await hub.listAll(resource, { namespace })
  return objects.flatMap((object) => {
    if (metricSource.faults(object).length > 0) return []
    const { source } = compileMetricSource(object as unknown as SourceObject) // without faults it is one
    return source ? [source] : []
  })
}

/** A cluster only its agent speaks for: the hub has no way to it, and tries none. */
function declared(cluster: ClusterName, namespace: string): KubeObject {
  return {
    apiVersion: clusterConnection.apiVersion,
    kind: clusterConnection.kind,
    metadata: { name: cluster, namespace },
    spec: { collectionMode: 'push' },
  }
}
