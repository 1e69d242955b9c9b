import { describe, expect, it } from 'vitest'
import { clusterRoleFor, collectors } from '#collect'
import { KubeError } from '#kube'
import { type CompiledSource, compileMetricSource } from '#metricsource'
import { agentRole, readsOf, resolvedReads, usageReads } from './agent-role.ts'

function source(apiVersion: string, kind: string, over: { resource?: string; watch?: boolean } = {}): CompiledSource {
  const { source: compiled, findings } = compileMetricSource({
    metadata: { name: kind.toLowerCase(), namespace: 'ns' },
    spec: {
      source: { apiVersion, kind, ...(over.resource && { resource: over.resource }) },
      fields: [{ name: 'name', path: '.metadata.name' }],
      collection: { watch: over.watch === true },
    },
  })
  if (!compiled) throw new Error(JSON.stringify(findings))
  return compiled
}

const signal = new AbortController().signal
const member = (found: Readonly<Record<string, string>>) => ({
  find: async (_group: string, _version: string, kind: string) => {
    const plural = found[kind]
    return plural === undefined ? undefined : { plural, namespaced: true }
  },
})

describe('the role of an agent', () => {
  it('is that of its collectors where there are no sources', () =>
    expect(agentRole(collectors, [])).toEqual(clusterRoleFor(collectors)))

  it.each([
    [undefined, []],
    [{}, ['metrics.k8s.io nodes', 'metrics.k8s.io pods']],
    [{ kubelets: 'direct' }, ['metrics.k8s.io nodes', 'metrics.k8s.io pods', ' nodes/stats']],
    [{ kubelets: 'proxy' }, ['metrics.k8s.io nodes', 'metrics.k8s.io pods', ' nodes/proxy']],
  ] as const)('names for what nodes and pods use no more than what is asked: %j', async (usage, rights) => {
    const reads = await resolvedReads(member({}), usageReads(usage), signal)
    expect(reads.map(({ group, plural }) => `${group} ${plural}`)).toEqual(rights)
    const granted = agentRole([], reads).flatMap(({ apiGroups, resources }) =>
      resources.map((one) => `${apiGroups[0]} ${one}`),
    )
    for (const right of rights) expect(granted).toContain(right)
    expect(granted).toHaveLength(rights.length + 1)
  })

  it('lets it get and list what sources read, and watch only what they watch', async () => {
    const sources = [
      source('cert-manager.io/v1', 'Certificate'),
      source('apps/v1', 'StatefulSet', { watch: true }),
      source('v1', 'PersistentVolumeClaim'),
    ]
    const rules = agentRole([], await resolvedReads(member({}), readsOf(sources), signal))
    expect(rules).toEqual([
      { apiGroups: [''], resources: ['namespaces', 'persistentvolumeclaims'], verbs: ['get', 'list'] },
      { apiGroups: ['apps'], resources: ['statefulsets'], verbs: ['get', 'list', 'watch'] },
      { apiGroups: ['cert-manager.io'], resources: ['certificates'], verbs: ['get', 'list'] },
    ])
  })

  it('names what the member calls a kind; what is declared counts more, and the guess is for want of both', async () => {
    const plurals = async (found: Readonly<Record<string, string>>, one: CompiledSource) =>
      (await resolvedReads(member(found), readsOf([one]), signal)).map(({ plural }) => plural)
    expect(await plurals({ Widget: 'widgetten' }, source('g.io/v1', 'Widget'))).toEqual(['widgetten'])
    expect(await plurals({ Widget: 'widgetten' }, source('g.io/v1', 'Widget', { resource: 'w' }))).toEqual(['w'])
    expect(await plurals({}, source('g.io/v1', 'Widget'))).toEqual(['widgets'])
    const deaf = { find: () => Promise.reject(new KubeError('unreachable', 'nobody answers')) }
    expect(await resolvedReads(deaf, readsOf([source('g.io/v1', 'Widget')]), signal)).toEqual([
      { group: 'g.io', kind: 'Widget', plural: 'widgets', watch: false },
    ])
  })

  it('never holds Secrets, nor anything but reading, whatever sources say', () => {
    const rules = agentRole(collectors, [
      { group: '', kind: 'Secret', plural: 'secrets', watch: true },
      { group: 'g.io', kind: 'Secret', plural: 'secrets', watch: false },
    ])
    const core = rules.filter(({ apiGroups }) => apiGroups.includes(''))
    expect(core.flatMap(({ resources }) => resources)).not.toContain('secrets')
    expect(new Set(rules.flatMap(({ verbs }) => verbs))).toEqual(new Set(['get', 'list', 'watch']))
  })

  it('is the same for the same sources in any order, each named once', () => {
    const [a, b] = [source('g.io/v1', 'A'), source('g.io/v1', 'B')]
    expect(readsOf([b, a, a])).toEqual(readsOf([a, b]))
    expect(readsOf([source('g.io/v1', 'A'), source('g.io/v1', 'A', { watch: true })])).toHaveLength(1)
  })
})
