import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { createKubeClient, type KubeObject } from '#kube'
import { embeddedApi, HUB } from '../../../test/owned-fleet.ts'
import { connect } from './connect.ts'

it('waits a moment for a hub that has just started to say where agents reach it', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'connect-'))
  const api = await embeddedApi(folder)
  const kube = createKubeClient(api.access)
  onTestFinished(async () => {
    await kube[Symbol.asyncDispose]()
    await api.close()
    rmSync(folder, { recursive: true, force: true })
  })
  const kubeconfig = join(folder, 'hub.yaml')
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
