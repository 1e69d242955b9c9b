import type { ApiObject, ApiServer } from '#apiserver'
import { accessForContext, loadKubeconfig } from '#kube'
import { type ClusterName, clusterNameFrom, FleetError, isClusterName } from '#model'
import type { Logger } from '#runtime'
import type { DeclaredOnce } from './declared-once.ts'
import { HUB_NAMESPACE } from './object-names.ts'

/** One cluster that `up` shows, as the objects it writes for it. */
export interface Member {
  readonly name: string
  readonly displayName: string
  readonly endpoint: string
  readonly labels: Readonly<Record<string, string>>
  /** of the Secret, as text */
  readonly credentials: Readonly<Record<string, string>>
  readonly insecureSkipTlsVerify: boolean
  /** PEM of the CAs its API is known by; absent: those of the system, or of what is not read from a kubeconfig */
  readonly ca?: string
  /** an agent beside it is to push; only at its first declaration: afterwards the object says it */
  readonly push?: boolean
}

export class NoClusterError extends FleetError {
  override readonly name = 'NoClusterError'
  readonly code = 'no_cluster'
  readonly retryable = false
}

const MANAGED_BY = 'app.kubernetes.io/managed-by'
const UP = 'clusterpulse-up'
const connections = { group: 'clusterpulse.io', version: 'v1alpha1', plural: 'clusterconnections' }
const secrets = { group: '', version: 'v1', plural: 'secrets' }

/** What kubeconfigs that were read declare. */
export interface KubeconfigMembers {
  readonly paths: readonly string[]
  readonly members: readonly Member[]
  /** names of clusters whose context cannot be used now: what is known of them stays */
  readonly leftOut: readonly string[]
}

/**
 * Each context is one cluster. Credentials stay in the kubeconfig: the Secret says where, and they are read again with it.
 * @throws KubeconfigError, NoClusterError
 */
export async function kubeconfigMembers(
  paths: readonly string[],
  chosen: readonly string[],
  logger: Logger,
): Promise<KubeconfigMembers> {
  const config = await loadKubeconfig(paths)
  // Of a thousand contexts the parsing takes a second: one file is not read twice.
  const files =
    config.paths.length === 1
      ? config.paths.map((path) => ({ path, config }))
      : await Promise.all(config.paths.map(async (path) => ({ path, config: await loadKubeconfig([path]) })))
  const names = chosen.length > 0 ? chosen : config.contexts.map((context) => context.name)
  if (names.length === 0) {
    throw new NoClusterError(
      `${paths.join(', ')} has no context; add one with kubectl config set-context, or start with --demo`,
    )
  }
  const taken = new Set<string>()
  const members: Member[] = []
  const leftOut: string[] = []
  for (const context of names) {
    const name = freeName(context, taken)
    try {
      const access = await accessForContext(config, context)
      const file = files.find((candidate) => candidate.config.contexts.some(({ name }) => name === context))
      members.push({
        name,
        displayName: context,
        endpoint: access.server,
        labels: {},
        credentials: { kubeconfigPath: file?.path ?? config.paths[0] ?? '', context },
        insecureSkipTlsVerify: !access.verifyTls,
        ...(access.ca !== undefined && { ca: access.ca }),
      })
    } catch (error) {
      if (chosen.length > 0 || names.length === 1) throw error
      leftOut.push(name)
      logger.warn({ context, err: error }, 'a context of the kubeconfig cannot be used and is left out')
    }
  }
  if (members.length === 0)
    throw new NoClusterError(`no context of ${paths.join(', ')} can be used; the log names each`)
  return { paths: config.paths, members, leftOut }
}

function freeName(context: string, taken: Set<string>): string {
  const wanted = clusterNameFrom(context)
  let name: string = wanted
  for (let n = 2; taken.has(name); n++) name = `${wanted.slice(0, 245)}-${n}`
  taken.add(name)
  return name
}

/** What the folder holds already. */
export interface KnownMembers {
  /** clusters of the simulated fleet */
  readonly simulated: readonly string[]
  /** all others, with the kubeconfig that declared them; undefined: made by hand */
  readonly own: ReadonlyMap<string, string | undefined>
}

/** @param ownKubeconfig what an earlier start took from it is the hub itself, and no cluster */
export function knownMembers(server: ApiServer, ownKubeconfig: string): KnownMembers {
  const simulated: string[] = []
  const own = new Map<string, string | undefined>()
  for (const object of server.objects.list(connections, { namespace: HUB_NAMESPACE })) {
    const from = isDeclared(object) ? origin(server, object.metadata.name) : { kind: 'unknown' as const }
    if (from.kind === 'file' && from.path === ownKubeconfig) continue
    if (from.kind === 'simulated') simulated.push(object.metadata.name)
    else own.set(object.metadata.name, from.kind === 'file' ? from.path : undefined)
  }
  return { simulated, own }
}

interface DeclareOptions {
  readonly declared: DeclaredOnce
  /** kubeconfigs that were read: what they declared before and lack now goes */
  readonly paths?: readonly string[]
  /** stays as it is, though it is not among the members */
  readonly leftOut?: readonly string[]
  /** members are asked for by name: also who was deleted is made */
  readonly isNamed?: boolean
  readonly logger: Logger
}

/**
 * Makes the objects of `up` these. What an earlier start declared goes only where the kubeconfig it came from is read and lacks
 * it now, and simulated clusters where they are not wanted; all others stay.
 */
export async function declareMembers(
  server: ApiServer,
  members: readonly Member[],
  { declared, paths = [], leftOut = [], isNamed = false, logger }: DeclareOptions,
): Promise<void> {
  const wanted = new Set(members.map((member) => member.name))
  const kept = new Set(leftOut)
  for (const object of server.objects.list(connections, { namespace: HUB_NAMESPACE })) {
    const { name } = object.metadata
    if (wanted.has(name)) {
      if (isDeclared(object)) continue
      wanted.delete(name)
      logger.warn({ cluster: name }, 'a ClusterConnection of this name was made by hand and is kept as it is')
      continue
    }
    const from = origin(server, name)
    const isGone = from.kind === 'simulated' || (from.kind === 'file' && paths.includes(from.path))
    if (!isDeclared(object) || !isGone || kept.has(name)) continue
    await server.objects.delete(connections, { name, namespace: HUB_NAMESPACE })
    const secret = { name: secretName(name), namespace: HUB_NAMESPACE }
    if (server.objects.get(secrets, secret)) await server.objects.delete(secrets, secret)
    declared.forget('ClusterConnection', name)
  }
  // At once, as writes that come together share a sync of the disk.
  await Promise.all(
    members.map(async (member) => {
      if (!wanted.has(member.name)) return
      const live = await declared.make(connections, connectionOf(member), isNamed || undefined)
      if (!live) return
      await putSecret(server, secretOf(member))
      await followEndpoint(server, live, member)
    }),
  )
  await declared.save()
}

/** Declared by `up` and never taken over by a person: who names another Secret, or none, has made it theirs. */
function isDeclared({ metadata, spec }: ApiObject): boolean {
  const { credentialsRef } = (spec ?? {}) as { credentialsRef?: { name?: unknown } }
  return metadata.labels?.[MANAGED_BY] === UP && credentialsRef?.name === secretName(metadata.name)
}

/** Where a declared cluster came from, as its Secret says; unknown where that is gone. */
function origin(
  server: ApiServer,
  cluster: string,
): { readonly kind: 'simulated' | 'unknown' } | { readonly kind: 'file'; readonly path: string } {
  const secret = server.objects.get(secrets, { name: secretName(cluster), namespace: HUB_NAMESPACE })
  if (!secret) return { kind: 'unknown' }
  const path = (secret.data as Record<string, string> | undefined)?.kubeconfigPath
  return path === undefined ? { kind: 'simulated' } : { kind: 'file', path: Buffer.from(path, 'base64').toString() }
}

/** When the hub was first told of each of these clusters, ms. */
export function knownSince(server: ApiServer, members: readonly Member[]): ReadonlyMap<ClusterName, number> {
  const known = new Map<ClusterName, number>()
  for (const { name } of members) {
    const object = server.objects.get(connections, { name, namespace: HUB_NAMESPACE })
    const since = Date.parse(object?.metadata.creationTimestamp ?? '')
    if (isClusterName(name) && !Number.isNaN(since)) known.set(name, since)
  }
  return known
}

const secretName = (cluster: string) => `${cluster.slice(0, 240)}-access`
const meta = (name: string) => ({ name, namespace: HUB_NAMESPACE, labels: { [MANAGED_BY]: UP } })

/** Simulated members come back on other ports with the credentials of before; what a kubeconfig holds says itself where it goes. */
function secretOf({ name, endpoint, credentials }: Member): ApiObject {
  const data = Object.fromEntries(
    Object.entries(credentials).map(([key, text]) => [key, Buffer.from(text).toString('base64')]),
  )
  const annotations = 'kubeconfigPath' in credentials ? undefined : { 'clusterpulse.io/endpoint': endpoint }
  const metadata = { ...meta(secretName(name)), ...(annotations && { annotations }) }
  return { apiVersion: 'v1', kind: 'Secret', metadata, type: 'Opaque', data }
}

function connectionOf({ name, displayName, endpoint, labels, insecureSkipTlsVerify, push }: Member): ApiObject {
  return {
    apiVersion: 'clusterpulse.io/v1alpha1',
    kind: 'ClusterConnection',
    metadata: meta(name),
    spec: {
      displayName,
      endpoint,
      credentialsRef: { name: secretName(name) },
      labels,
      collectionMode: push ? 'push' : 'pull',
      ...(insecureSkipTlsVerify && { insecureSkipTLSVerify: true }),
    },
  }
}

/** A repeat changes nothing. */
async function putSecret(server: ApiServer, wanted: ApiObject): Promise<void> {
  const live = server.objects.get(secrets, { name: wanted.metadata.name, namespace: HUB_NAMESPACE })
  if (!live) {
    await server.objects.create(wanted)
    return
  }
  const annotations = { ...live.metadata.annotations, ...wanted.metadata.annotations }
  const isSame =
    JSON.stringify(live.data) === JSON.stringify(wanted.data) &&
    JSON.stringify(live.metadata.annotations ?? {}) === JSON.stringify(annotations)
  if (!isSame) await server.objects.update({ ...live, metadata: { ...live.metadata, annotations }, data: wanted.data })
}

/** Where the cluster is, its source says anew; its name, labels and all else are a person's once it is made. */
async function followEndpoint(server: ApiServer, live: ApiObject, member: Member): Promise<void> {
  const { endpoint, insecureSkipTlsVerify } = member
  const wanted = { endpoint, ...(insecureSkipTlsVerify && { insecureSkipTLSVerify: true }) }
  const spec = { ...(live.spec as object), ...wanted }
  if (JSON.stringify(live.spec) !== JSON.stringify(spec)) await server.objects.update({ ...live, spec })
}
