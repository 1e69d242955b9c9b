import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'

const missing =
  spawnSync('kubectl', ['version', '--client']).status === 0 || process.env.CI_REQUIRE_ALL === '1'
    ? undefined
    : 'no kubectl'

interface Rule {
  readonly apiGroups: readonly string[]
  readonly resources: readonly string[]
  readonly verbs: readonly string[]
}
interface Container {
  readonly securityContext?: { readonly readOnlyRootFilesystem?: boolean; readonly allowPrivilegeEscalation?: boolean }
  readonly resources?: { readonly limits?: object }
  readonly readinessProbe?: object
}
interface Manifest {
  readonly kind: string
  readonly metadata: { readonly name: string; readonly namespace?: string }
  readonly rules?: readonly Rule[]
  readonly spec?: {
    readonly template?: {
      readonly spec: { readonly securityContext?: object; readonly containers: readonly Container[] }
    }
  }
}

describe.skipIf(missing !== undefined)(`the manifests${missing === undefined ? '' : ` (not run: ${missing})`}`, () => {
  const built = (folder: string): readonly Manifest[] => {
    const { status, stdout, stderr } = spawnSync('kubectl', ['kustomize', folder], { encoding: 'utf8' })
    expect(status, stderr).toBe(0)
    return parseAllDocuments(stdout).map((document) => document.toJS() as Manifest)
  }

  it.each(['deploy/base', 'deploy/overlays/trusted-proxy', 'deploy/overlays/push'])(
    '%s builds, and every container runs with little',
    (folder) => {
      const manifests = built(folder)
      expect(manifests.map(({ kind }) => kind)).toContain('CustomResourceDefinition')
      const deployments = manifests.filter(({ kind }) => kind === 'Deployment')
      expect(deployments.map(({ metadata }) => metadata.name).sort()).toEqual([
        'clusterpulse-api',
        'clusterpulse-manager',
        'redis',
        ...(folder.endsWith('push') ? ['victoriametrics'] : []),
      ])
      for (const { spec, metadata } of deployments) {
        expect(metadata.namespace).toBe('clusterpulse')
        expect(spec?.template?.spec.securityContext).toMatchObject({ runAsNonRoot: true })
        for (const container of spec?.template?.spec.containers ?? []) {
          expect(container.securityContext).toMatchObject({
            readOnlyRootFilesystem: true,
            allowPrivilegeEscalation: false,
          })
          expect(container.resources?.limits).toBeDefined()
          expect(container.readinessProbe).toBeDefined()
        }
      }
    },
  )

  it('receive agents only where that was chosen, on a volume that outlives the pod', () => {
    const manager = (folder: string) =>
      JSON.stringify(
        built(folder).find(({ kind, metadata }) => kind === 'Deployment' && metadata.name.includes('manager')),
      )
    expect(manager('deploy/base')).toMatch(/"INGESTER_ENABLED","value":"false"/)
    expect(manager('deploy/overlays/push')).toMatch(/"INGESTER_ENABLED","value":"true"/)
    expect(manager('deploy/overlays/push')).toMatch(/"persistentVolumeClaim":\{"claimName":"clusterpulse-manager"\}/)
    const rules = built('deploy/overlays/push').flatMap((manifest) => manifest.rules ?? [])
    expect(rules.flatMap(({ apiGroups, resources, verbs }) => [...apiGroups, ...resources, ...verbs])).not.toContain(
      '*',
    )
  })

  it('grant no more than is read and written', () => {
    const rules = built('deploy/base').flatMap((manifest) => manifest.rules ?? [])
    expect(rules.length).toBeGreaterThan(0)
    for (const { apiGroups, resources, verbs } of rules) {
      expect([...apiGroups, ...resources, ...verbs]).not.toContain('*')
      if (resources.includes('secrets')) expect(verbs).toEqual(['get', 'list', 'watch'])
    }
    const manifest = readFileSync('deploy/member/reader.yaml', 'utf8')
    const reader = parseAllDocuments(manifest).map((document) => document.toJS() as Manifest)
    const member = reader.find(({ kind }) => kind === 'ClusterRole')
    expect(member?.rules?.flatMap(({ verbs }) => verbs).every((verb) => verb === 'get' || verb === 'list')).toBe(true)
    expect(member?.rules?.flatMap(({ resources }) => resources)).not.toContain('secrets')
  })
})
