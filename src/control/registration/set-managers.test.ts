import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { type ApiListener, type ApiObject, ApiServer, listenApi } from '#apiserver'
import {
  CLUSTER_GROUP,
  CLUSTER_SET_LABEL,
  managedCluster,
  managedClusterSet,
  managedClusterSetBinding,
  ocmAdmission,
} from '#kinds'
import { createKubeClient, type KubeClient, type KubeObject } from '#kube'
import { managedClusterSetBindings, managedClusterSets, managedClusters } from './objects.ts'

const role = parse(
  readFileSync(new URL('../../../deploy/components/members/set-managers.yaml', import.meta.url), 'utf8'),
) as ApiObject

describe('who is bound to clusterpulse-set-managers', () => {
  let server: ApiServer
  let listener: ApiListener
  let ann: KubeClient

  beforeAll(async () => {
    server = await ApiServer.open({ storage: { kind: 'memory' }, name: 'hub', admission: ocmAdmission })
    for (const kind of [managedCluster, managedClusterSet, managedClusterSetBinding])
      await server.objects.put(kind.crd() as unknown as ApiObject)
    const rbac = 'rbac.authorization.k8s.io'
    await server.objects.put(role)
    await server.objects.put({
      ...{ apiVersion: `${rbac}/v1`, kind: 'ClusterRoleBinding', metadata: { name: 'ann' } },
      roleRef: { apiGroup: rbac, kind: 'ClusterRole', name: role.metadata.name },
      subjects: [{ apiGroup: rbac, kind: 'User', name: 'ann' }],
    })
    for (const [name, hubAcceptsClient] of [
      ['east', true],
      ['asks', false],
    ] as const)
      await server.objects.put({
        ...{ apiVersion: `${CLUSTER_GROUP}/v1`, kind: 'ManagedCluster', metadata: { name } },
        spec: { hubAcceptsClient },
      })
    listener = await listenApi({ tokens: [{ token: 'ann-token', user: 'ann' }], mounts: new Map([['', server]]) })
    const credentials = { kind: 'token', token: 'ann-token' } as const
    ann = createKubeClient({ server: listener.url, ca: listener.caPem, verifyTls: true, credentials })
  })
  afterAll(async () => {
    await ann[Symbol.asyncDispose]()
    await listener[Symbol.asyncDispose]()
    await server[Symbol.asyncDispose]()
  })

  const change = (name: string, body: object) => ann.patch(managedClusters, { name }, body, { kind: 'merge' })

  it('makes sets, moves clusters into them and out again, labels clusters, and binds sets', async () => {
    const of = (kind: string, metadata: KubeObject['metadata'], spec: object) => ({
      ...{ apiVersion: `${CLUSTER_GROUP}/v1beta2`, kind, metadata, spec },
    })
    await ann.create(managedClusterSets, of('ManagedClusterSet', { name: 'prod' }, {}))
    for (const set of ['prod', 'default']) {
      const moved = await change('east', { metadata: { labels: { [CLUSTER_SET_LABEL]: set, tier: 'one' } } })
      expect(moved.metadata.labels).toMatchObject({ [CLUSTER_SET_LABEL]: set, tier: 'one' })
    }
    const binding = of('ManagedClusterSetBinding', { name: 'prod', namespace: 'default' }, { clusterSet: 'prod' })
    expect((await ann.create(managedClusterSetBindings, binding)).metadata.name).toBe('prod')
    await ann.delete(managedClusterSetBindings, { name: 'prod', namespace: 'default' })
    await ann.delete(managedClusterSets, { name: 'prod' })
  })

  it('neither accepts nor denies a cluster, makes its certificates count, makes one, nor deletes it', async () => {
    const annotations = { 'clusterpulse.io/certificates': 'ab'.repeat(32) }
    const made = { apiVersion: `${CLUSTER_GROUP}/v1`, kind: 'ManagedCluster', metadata: { name: 'new' }, spec: {} }
    for (const attempt of [
      () => change('asks', { spec: { hubAcceptsClient: true } }),
      () => change('east', { spec: { hubAcceptsClient: false } }),
      () => change('east', { metadata: { annotations } }),
      () => ann.create(managedClusters, made as unknown as KubeObject),
      () => ann.delete(managedClusters, { name: 'east' }),
    ])
      await expect(attempt()).rejects.toMatchObject({ reason: 'forbidden' })
  })
})
