import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { managedClusterOf, managedClusters } from '#joining'
import { ocmKinds } from '#kinds'
import { createKubeClient, customResourceDefinitions, type KubeObject } from '#kube'
import { embeddedApi } from '../../../test/owned-fleet.ts'
import { detachMember } from './membership.ts'

it('detaches a member by its name, and says of one that nobody knows where to look', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'membership-'))
  const api = await embeddedApi(folder)
  const kube = createKubeClient(api.access)
  onTestFinished(async () => {
    await kube[Symbol.asyncDispose]()
    await api.close()
    rmSync(folder, { recursive: true, force: true })
  })
  for (const kind of ocmKinds) await kube.create(customResourceDefinitions, kind.crd() as unknown as KubeObject)
  const member = managedClusterOf('edge', { hubAcceptsClient: true })
  const finalizers = ['cluster.open-cluster-management.io/api-resource-cleanup']
  await kube.create(managedClusters, { ...member, metadata: { ...member.metadata, finalizers } })
  const detach = (cluster: string) =>
    detachMember({ cluster, kubeconfig: join(folder, 'hub.yaml'), environment: {} }).then(({ text }) => text)
  expect(await detach('edge')).toBe('edge is being detached; what belongs to it is cleaned up first\n')
  expect((await kube.get(managedClusters, { name: 'edge' }))?.metadata.deletionTimestamp).toBeDefined()
  expect(await detach('edge')).toBe('edge is being detached already\n')
  await expect(detach('west')).rejects.toThrow(/the hub knows no cluster west.*kubectl get managedclusters/)
})
