import { isDeepStrictEqual } from 'node:util'
import type { ObjectStore } from './objects.ts'

const CONFIG_MAPS = { group: '', version: 'v1', plural: 'configmaps' }
const ROLES = { group: 'rbac.authorization.k8s.io', version: 'v1' }
const NAMESPACE = 'kube-system'
const NAME = 'extension-apiserver-authentication'
const READER = `${NAME}-reader`

/**
 * Says where programs look for it how callers of this API prove who they are: the CAs of client certificates, in the ConfigMap
 * that every cluster has, and the Role by which it is read.
 * @param clientCa PEM; absent: no client certificate is taken
 */
export async function publishAuthentication(objects: ObjectStore, clientCa?: string): Promise<void> {
  const key = { namespace: NAMESPACE, name: NAME }
  const data = clientCa ? { 'client-ca-file': clientCa } : {}
  const stored = objects.get(CONFIG_MAPS, key)
  if (!stored) await objects.create({ apiVersion: 'v1', kind: 'ConfigMap', metadata: key, data })
  else if (!isDeepStrictEqual(stored.data ?? {}, data)) await objects.update({ ...stored, data })
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
