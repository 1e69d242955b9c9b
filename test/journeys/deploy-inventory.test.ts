import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { parseAllDocuments } from 'yaml'

const hasKubectl = spawnSync('kubectl', ['version', '--client']).status === 0
const missing = hasKubectl || process.env.CI_REQUIRE_ALL === '1' ? '' : ' (not run: no kubectl)'

interface Made {
  readonly kind: string
  readonly metadata: { readonly name: string; readonly namespace?: string }
  readonly data?: Readonly<Record<string, string>>
  readonly spec?: {
    readonly template: { readonly spec: { readonly containers: readonly { readonly image: string }[] } }
  }
}

it.skipIf(missing !== '')(`the folder of a cluster, as the guide writes it, names cluster and image${missing}`, () => {
  const [, text = ''] = /clusters\/west\/kustomization\.yaml`:\n\n```yaml\n([\s\S]*?)```/.exec(
    readFileSync('docs/guide/inventory.md', 'utf8'),
  ) ?? ['', '']
  // kustomize takes relative paths only; the guide has this folder two levels below the repository.
  const folder = mkdtempSync(join('deploy', '.west-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  writeFileSync(join(folder, 'kustomization.yaml'), text)
  const { status, stdout, stderr } = spawnSync('kubectl', ['kustomize', folder], { encoding: 'utf8' })
  expect([status, stderr]).toEqual([0, ''])
  const objects = parseAllDocuments(stdout).map((document) => document.toJS() as Made)
  expect(objects.find(({ kind }) => kind === 'ConfigMap')?.data).toEqual({
    CLUSTER_NAME: 'west',
    LEADER_ELECT: 'true',
    SINK_ALLOW_PRIVATE: 'true',
    WEBHOOKS_ENABLED: 'true',
  })
  const agent = objects.find(({ kind }) => kind === 'StatefulSet')
  expect(agent?.metadata.namespace).toBe('clusterpulse-agent')
  expect(agent?.spec?.template.spec.containers.map(({ image }) => image)).toEqual([
    'registry.example.com/clusterpulse/clusterpulse:0.1.0',
  ])
})
