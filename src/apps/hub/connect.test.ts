import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { createKubeClient, type KubeObject } from '#kube'
import { embeddedApi, HUB } from '../../../test/owned-fleet.ts'
import { connect } from './connect.ts'

async function anApi() {
  const folder = mkdtempSync(join(tmpdir(), 'connect-'))
  const api = await embeddedApi(folder)
  const kube = createKubeClient(api.access)
  onTestFinished(async () => {
    await kube[Symbol.asyncDispose]()
    await api.close()
    rmSync(folder, { recursive: true, force: true })
  })
  return { folder, kube, kubeconfig: join(folder, 'hub.yaml') }
}

it('waits a moment for a hub that has just started to say where agents reach it', async () => {
  const { kube, kubeconfig } = await anApi()
  const joining = connect({ cluster: 'edge', kubeconfig, output: 'command', revoke: false, environment: {} })
  await new Promise((resolve) => setTimeout(resolve, 600))
  const configMaps = { group: '', version: 'v1', plural: 'configmaps', kind: 'ConfigMap', namespaced: true } as const
  const data = { address: 'hub.example:9443', tls: 'true' }
  await kube.create(configMaps, {
    metadata: { name: 'clusterpulse-ingester', namespace: HUB },
    data,
  } satisfies KubeObject)
  expect((await joining).text).toContain('INGESTER_ADDRESS=hub.example:9443')
})

it('says of a name that nobody knows that there is nothing to revoke, and revokes what there is once', async () => {
  const { kubeconfig } = await anApi()
  const shared = { kubeconfig, output: 'command', environment: {} } as const
  const revoke = (cluster: string) => connect({ ...shared, cluster, revoke: true })
  await expect(revoke('edge')).rejects.toThrow(/knows no cluster edge, and no credential for one/)
  await connect({ ...shared, cluster: 'edge', address: 'hub.example:9443', revoke: false })
  expect((await revoke('edge')).notes.join()).toMatch(/every credential of the agent of edge is revoked/)
  await expect(revoke('edge')).rejects.toThrow(/no credential for an agent of edge: nothing is to be revoked/)
})
