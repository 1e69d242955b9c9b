import { stringify } from 'yaml'
import { declarationsOf, kindsOf, type NeededRole, neededRoles, type SinkToRead } from '#inventory'
import {
  type Kind,
  kollectClusterTarget,
  kollectDatabaseSink,
  kollectEventSink,
  kollectProfile,
  kollectSnapshotSink,
  kollectTarget,
} from '#kinds'
import {
  accessForContext,
  createKubeClient,
  type KubeClient,
  type KubeObject,
  kubeconfigPaths,
  loadKubeconfig,
  type Resource,
  type ServedKind,
} from '#kube'
import { readDeclarations } from './inventory-files.ts'
import { ManifestError } from './manifest-files.ts'

export interface InventoryRoleOptions {
  /** files and folders of manifests; absent: what the cluster declares itself */
  readonly config?: readonly string[]
  readonly kubeconfig?: string
  readonly context?: string
  /** `namespace/name` of the agent's account */
  readonly account: string
  /** the agent serves its inventory: it asks the API server who its readers are, and what they may */
  readonly httpApi?: boolean
  /** the agent runs in tenant mode for these namespaces: everything it needs, in them alone */
  readonly tenant?: readonly string[]
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly signal: AbortSignal
}

/** Of the roles and their bindings. */
const NAME = 'clusterpulse-inventory-reads'
const SINKS = [kollectDatabaseSink, kollectSnapshotSink, kollectEventSink]
const READ: readonly Kind<unknown, unknown>[] = [kollectProfile, kollectTarget, kollectClusterTarget, ...SINKS]

/**
 * The roles that the agent of a cluster needs for what is declared, and their bindings, as YAML.
 * @throws KubeError, KubeconfigError, ManifestError
 */
export async function inventoryRole(
  options: InventoryRoleOptions,
): Promise<{ readonly text: string; readonly notes: readonly string[] }> {
  const { config, kubeconfig, context, account, httpApi = false, tenant, environment, signal } = options
  const [namespace, name] = account.split('/')
  if (!namespace || !name) throw new ManifestError(`--account is ${JSON.stringify(account)}: write namespace/name`)
  const known = await loadKubeconfig(kubeconfigPaths(kubeconfig, environment))
  await using kube = createKubeClient(await accessForContext(known, context ?? known.currentContext))
  const objects = (config ? ofFiles(config) : await ofCluster(kube, tenant, signal)).filter(
    ({ metadata: { namespace } }) => !tenant || (namespace !== undefined && tenant.includes(namespace)),
  )
  const declared = declarationsOf(objects)
  const served = new Map<string, ServedKind>()
  const notes: string[] = []
  for (const gvk of kindsOf(declared)) {
    const found = await kube.find(gvk.group ?? '', gvk.version, gvk.kind, signal)
    if (found) served.set(JSON.stringify(gvk), found)
    else
      notes.push(`the cluster does not have ${gvk.kind} of ${gvk.group || gvk.version}: these roles say nothing of it`)
  }
  const reads = neededRoles(declared, sinksIn(objects), (gvk) => served.get(JSON.stringify(gvk)), tenant)
  const roles = httpApi ? withReviews(reads) : reads
  if (roles.length === 0) notes.push('nothing is declared that reads anything: there is no role to give')
  return { text: roles.flatMap((role) => documents(role, { namespace, name })).join('---\n'), notes }
}

async function ofCluster(
  kube: KubeClient,
  only: readonly string[] | undefined,
  signal: AbortSignal,
): Promise<readonly KubeObject[]> {
  const objects: KubeObject[] = []
  for (const { group, version, plural, kind, definition } of READ) {
    const resource: Resource = { group, version, plural, kind, namespaced: definition.scope !== 'Cluster' }
    if (only && !resource.namespaced) continue
    if (!(await kube.serves(resource, signal)))
      throw new ManifestError(
        `the cluster does not have ${plural}.${group}: name files with --config, or install the kinds (\`clusterpulse crds --kollect | kubectl apply -f -\`)`,
      )
    for (const namespace of only ?? [undefined])
      for (const object of await kube.listAll(resource, { ...(namespace !== undefined && { namespace }), signal }))
        objects.push({ ...object, kind })
  }
  return objects
}

const ofFiles = (paths: readonly string[]): readonly KubeObject[] =>
  readDeclarations(paths, 'default').declarations.map(({ object, kind, name, namespace }) => ({
    ...(object as Partial<KubeObject>), // an object of YAML
    kind,
    metadata: { name, ...(namespace !== undefined && { namespace }) },
  }))

const REVIEWS = [
  { apiGroups: ['authentication.k8s.io'], resources: ['tokenreviews'], verbs: ['create'] },
  { apiGroups: ['authorization.k8s.io'], resources: ['subjectaccessreviews'], verbs: ['create'] },
]

/** Reviews are of the cluster as a whole. */
function withReviews(roles: readonly NeededRole[]): readonly NeededRole[] {
  const ofCluster = roles.find(({ namespace }) => namespace === '')
  const others = roles.filter((role) => role !== ofCluster)
  return [{ namespace: '', rules: [...(ofCluster?.rules ?? []), ...REVIEWS] }, ...others]
}

const sinksIn = (objects: readonly KubeObject[]): readonly SinkToRead[] =>
  objects
    .filter((object) => SINKS.some(({ kind }) => kind === object.kind))
    .map(({ metadata, spec }) => ({ namespace: metadata.namespace ?? '', spec }))

function documents(
  { namespace, rules }: NeededRole,
  account: { readonly namespace: string; readonly name: string },
): readonly string[] {
  const kind = namespace === '' ? 'ClusterRole' : 'Role'
  const apiVersion = 'rbac.authorization.k8s.io/v1'
  const metadata = { name: NAME, ...(namespace !== '' && { namespace }) }
  const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind, name: NAME }
  const binding = { roleRef, subjects: [{ kind: 'ServiceAccount', ...account }] }
  return [
    { apiVersion, kind, metadata, rules },
    { apiVersion, kind: `${kind}Binding`, metadata, ...binding },
  ].map((object) => stringify(object))
}
