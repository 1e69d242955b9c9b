import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { ClusterAccess } from './types.ts'

const SERVICE_ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount'

/** The cluster this process runs in, by its service account. */
export interface InCluster {
  readonly access: ClusterAccess
  /** of the pod we run in */
  readonly namespace: string
}

/**
 * The cluster of the pod we run in, entered as the pod's service account; its token is read again as the kubelet renews it.
 * @param options.server default: the name every cluster's DNS has for its API
 * @returns undefined where we do not run in a pod with a service account.
 */
export async function inClusterAccess(options: { server?: string; dir?: string } = {}): Promise<InCluster | undefined> {
  const { server = 'https://kubernetes.default.svc', dir = SERVICE_ACCOUNT } = options
  try {
    const [ca, namespace] = await Promise.all([
      readFile(join(dir, 'ca.crt'), 'utf8'),
      readFile(join(dir, 'namespace'), 'utf8'),
    ])
    const credentials = { kind: 'tokenFile', path: join(dir, 'token') } as const
    return { access: { server, ca, verifyTls: true, credentials }, namespace: namespace.trim() }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
