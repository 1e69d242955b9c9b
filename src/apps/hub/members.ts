import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import { delimiter, join, resolve } from 'node:path'
import type { ApiObject, ApiServer } from '#apiserver'
import { accessForContext, loadKubeconfig } from '#kube'
import { type ClusterName, clusterNameFrom, FleetError, isClusterName } from '#model'
import type { Logger } from '#runtime'
import { HUB_NAMESPACE } from './control-plane.ts'

/** One cluster that `up` shows, as the objects it writes for it. */
export interface Member {
  readonly name: string
  readonly displayName: string
  readonly endpoint: string
  readonly labels: Readonly<Record<string, string>>
  /** of the Secret, as text */
  readonly credentials: Readonly<Record<string, string>>
  readonly insecureSkipTlsVerify: boolean
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

/** The kubeconfig files to read: the one named, else `KUBECONFIG`, else the usual place; none where nothing is there. */
export function kubeconfigPaths(
  named: string | undefined,
  env: Readonly<Record<string, string | undefined>>,
): readonly string[] {
  if (named !== undefined) return [resolve(named)]
  const listed = (env.KUBECONFIG ?? '').split(delimiter).filter((path) => path !== '')
  if (listed.length > 0) return listed.map((path) => resolve(path))
  const usual = join(homedir(), '.kube', 'config')
  return existsSync(usual) ? [usual] : []
}

/**
 * Each context is one cluster. Credentials stay in the kubeconfig: the Secret says where, and they are read again with it.
 * @throws KubeconfigError, NoClusterError
 */
export async function kubeconfigMembers(
  paths: readonly string[],
  chosen: readonly string[],
  logger: Logger,
): Promise<Member[]> {
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
  for (const context of names) {
    try {
      const access = await accessForContext(config, context)
      const file = files.find((candidate) => candidate.config.contexts.some(({ name }) => name === context))
      members.push({
        name: freeName(context, taken),
        displayName: context,
        endpoint: access.server,
        labels: {},
        credentials: { kubeconfigPath: file?.path ?? config.paths[0] ?? '', context },
        insecureSkipTlsVerify: !access.verifyTls,
      })
    } catch (error) {
      if (chosen.length > 0 || names.length === 1) throw error
      logger.warn({ context, err: error }, 'a context of the kubeconfig cannot be used and is left out')
    }
  }
  if (members.length === 0)
    throw new NoClusterError(`no context of ${paths.join(', ')} can be used; the log names each`)
  return members
}

function freeName(context: string, taken: Set<string>): string {
  const wanted = clusterNameFrom(context)
  let name: string = wanted
  for (let n = 2; taken.has(name); n++) name = `${wanted.slice(0, 245)}-${n}`
  taken.add(name)
  return name
}

/** Makes the objects of `up` these, and removes those of an earlier start that are no longer asked for. Others stay. */
export async function declareMembers(server: ApiServer, members: readonly Member[], logger: Logger): Promise<void> {
  const wanted = new Set(members.map((member) => member.name))
  const mine = (object: ApiObject) => object.metadata.labels?.[MANAGED_BY] === UP
  for (const object of server.objects.list(connections, { namespace: HUB_NAMESPACE })) {
    const { name } = object.metadata
    if (!mine(object) && wanted.has(name)) {
      wanted.delete(name)
      logger.warn({ cluster: name }, 'a ClusterConnection of this name was made by hand and is kept as it is')
    } else if (mine(object) && !wanted.has(name)) {
      await server.objects.delete(connections, { name, namespace: HUB_NAMESPACE })
      const secret = { name: secretName(name), namespace: HUB_NAMESPACE }
      if (server.objects.get(secrets, secret)) await server.objects.delete(secrets, secret)
    }
  }
  // At once, as writes that come together share a sync of the disk.
  await Promise.all(
    members.map(async (member) => {
      if (!wanted.has(member.name)) return
      await putIfDifferent(server, secrets, secretOf(member))
      await putIfDifferent(server, connections, connectionOf(member))
    }),
  )
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

/** A repeat changes nothing: what a person set beside our fields, such as monitoring or who collects, stays. */
async function putIfDifferent(server: ApiServer, resource: typeof connections, wanted: ApiObject): Promise<void> {
  const key = { name: wanted.metadata.name, namespace: HUB_NAMESPACE }
  const live = server.objects.get(resource, key)
  if (!live) {
    await server.objects.create(wanted)
    return
  }
  const ours = wanted.kind === 'Secret' ? 'data' : 'spec'
  const { collectionMode: _, ...spec } = (wanted.spec ?? {}) as Record<string, unknown>
  const merged = ours === 'data' ? wanted.data : { ...(live.spec as object), ...spec }
  const annotations = { ...live.metadata.annotations, ...wanted.metadata.annotations }
  const isSame =
    JSON.stringify(live[ours]) === JSON.stringify(merged) &&
    JSON.stringify(live.metadata.annotations ?? {}) === JSON.stringify(annotations)
  if (!isSame) await server.objects.update({ ...live, metadata: { ...live.metadata, annotations }, [ours]: merged })
}
