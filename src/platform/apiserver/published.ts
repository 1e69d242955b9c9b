import { isDeepStrictEqual } from 'node:util'
import type { Logger } from '#runtime'
import type { ObjectStore } from './objects.ts'

const CONFIG_MAPS = { group: '', version: 'v1', plural: 'configmaps' }
const ROLES = { group: 'rbac.authorization.k8s.io', version: 'v1' }
const NAMESPACE = 'kube-system'
const NAME = 'extension-apiserver-authentication'
const READER = `${NAME}-reader`

/** CAs whose client certificates count, and that come and go. */
export interface PublishedAuthorities {
  readonly pem: string
  onChange(listener: () => void): () => void
}

/** The Role by which programs read where every cluster says how its callers prove who they are. */
export async function publishReader(objects: ObjectStore): Promise<void> {
  if (objects.get({ ...ROLES, plural: 'roles' }, { namespace: NAMESPACE, name: READER })) return
  await objects.create({
    apiVersion: `${ROLES.group}/${ROLES.version}`,
    kind: 'Role',
    metadata: {
      namespace: NAMESPACE,
      name: READER,
      labels: { 'kubernetes.io/bootstrapping': 'rbac-defaults' },
      annotations: { 'rbac.authorization.kubernetes.io/autoupdate': 'true' },
    },
    rules: [{ apiGroups: [''], resources: ['configmaps'], resourceNames: [NAME], verbs: ['get', 'list', 'watch'] }],
  })
}

/** Publishes them now, and whenever they have changed, beside fixed ones. @returns what ends it */
export async function publishFollowing(
  objects: ObjectStore,
  authorities: PublishedAuthorities,
  { fixed, logger }: { readonly fixed: string; readonly logger: Logger },
): Promise<() => void> {
  const publish = () => publishAuthorities(objects, joined(fixed, authorities.pem))
  await publish()
  let publishing = Promise.resolve()
  return authorities.onChange(() => {
    publishing = publishing
      .then(publish)
      .catch((error: unknown) => logger.warn({ err: error }, `${NAMESPACE}/${NAME} names former CAs of clients`))
  })
}

const joined = (...pems: readonly string[]): string =>
  pems
    .filter((pem) => pem !== '')
    .map((pem) => (pem.endsWith('\n') ? pem : `${pem}\n`))
    .join('')

/**
 * Says where programs look for it whose client certificates are taken: in the ConfigMap that every cluster has.
 * @param pem '': none are
 */
export async function publishAuthorities(objects: ObjectStore, pem: string): Promise<void> {
  const key = { namespace: NAMESPACE, name: NAME }
  const data = pem ? { 'client-ca-file': pem } : {}
  const stored = objects.get(CONFIG_MAPS, key)
  if (!stored) await objects.create({ apiVersion: 'v1', kind: 'ConfigMap', metadata: key, data })
  else if (!isDeepStrictEqual(stored.data ?? {}, data)) await objects.update({ ...stored, data })
}
