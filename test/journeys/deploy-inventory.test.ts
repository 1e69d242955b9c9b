import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
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

/** What kubectl makes of the folder of a cluster, as the guide writes it at `name`. */
function made(name: string): readonly Made[] {
  const [, rest = ''] = readFileSync('docs/guide/inventory.md', 'utf8').split(
    `clusters/${name}/kustomization.yaml\`:\n\n\`\`\`yaml\n`,
  )
  const [text = ''] = rest.split('```')
  const folder = mkdtempSync(join(tmpdir(), `${name}-`))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  // kustomize takes relative paths only; the guide has this folder two levels below the repository.
  const here = relative(realpathSync(folder), process.cwd())
  writeFileSync(join(folder, 'kustomization.yaml'), text.replaceAll('../../', `${here}/`))
  const { status, stdout, stderr } = spawnSync('kubectl', ['kustomize', folder], { encoding: 'utf8' })
  expect([status, stderr]).toEqual([0, ''])
  return parseAllDocuments(stdout).map((document) => document.toJS() as Made)
}

it.skipIf(missing !== '')(`the folder of a cluster, as the guide writes it, names cluster and image${missing}`, () => {
  const objects = made('west')
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

it.skipIf(missing !== '')(`the folder of a tenant holds nothing of the cluster${missing}`, () => {
  const objects = made('west-team-a')
  expect(objects.map(({ kind }) => kind).sort()).toEqual([
    'ConfigMap',
    'Role',
    'RoleBinding',
    'ServiceAccount',
    'StatefulSet',
  ])
  expect(new Set(objects.map(({ metadata }) => metadata.namespace))).toEqual(new Set(['team-a']))
  expect(objects.find(({ kind }) => kind === 'ConfigMap')?.data).toMatchObject({
    TENANT_MODE: 'true',
    WATCH_NAMESPACES: 'team-a',
    WEBHOOKS_ENABLED: 'false',
  })
})
