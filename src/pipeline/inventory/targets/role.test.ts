import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { declarationsOf } from './declared.ts'
import { kindsOf, neededRoles, ownRules } from './role.ts'
import { aProfile, aTarget } from './testing/cluster.ts'

const profile = (name: string, gvk: object) => ({
  ...aProfile(),
  metadata: { name, namespace: 'shop' },
  spec: { targetGVK: gvk, attributes: [] },
})
const deployments = profile('deployments', { group: 'apps', version: 'v1', kind: 'Deployment' })
const plurals: Readonly<Record<string, string>> = { ConfigMap: 'configmaps', Deployment: 'deployments', Node: 'nodes' }
const served = ({ kind }: { kind: string }) =>
  plurals[kind] === undefined ? undefined : { plural: plurals[kind], namespaced: kind !== 'Node' }
const roles = (objects: Parameters<typeof declarationsOf>[0], sinks: Parameters<typeof neededRoles>[1] = []) =>
  neededRoles(declarationsOf(objects), sinks, served)
const reads = (group: string, ...resources: string[]) => ({ apiGroups: [group], resources, verbs: ['list', 'watch'] })

describe('the role of an agent', () => {
  it('is of the namespace of a target that names none, and of those that it names', () =>
    expect(
      roles([
        aProfile(),
        deployments,
        aTarget(),
        aTarget({ profileRef: 'deployments', includedNamespaces: ['bank'] }, 'd'),
      ]),
    ).toEqual([
      { namespace: 'bank', rules: [reads('apps', 'deployments')] },
      { namespace: 'shop', rules: [reads('', 'configmaps')] },
    ]))

  it('is of the cluster where namespaces are chosen by labels, which need not be said of a namespace again', () =>
    expect(roles([aProfile(), aTarget(), aTarget({ namespaceSelector: { matchLabels: { a: 'b' } } }, 'all')])).toEqual([
      { namespace: '', rules: [reads('', 'configmaps')] },
    ]))

  it('holds every kind that rules name, those of the cluster too, and none that the cluster does not have', () => {
    const resourceRules = [
      { gvk: { version: 'v1', kind: 'Node' } },
      { gvk: { group: 'apps', version: 'v1', kind: 'Deployment' } },
      { gvk: { group: 'x.io', version: 'v1', kind: 'Widget' } },
    ]
    const objects = [aProfile(), aTarget({ resourceRules })]
    expect(kindsOf(declarationsOf(objects)).map(({ kind }) => kind)).toEqual(['Node', 'Deployment', 'Widget'])
    expect(roles(objects)).toEqual([
      { namespace: '', rules: [reads('', 'nodes')] },
      { namespace: 'shop', rules: [reads('apps', 'deployments')] },
    ])
  })

  it('of a tenant is of its namespaces alone, with what an agent needs there whatever is declared', () => {
    const everywhere = { namespaceSelector: { matchLabels: { a: 'b' } } }
    const nodes = { resourceRules: [{ gvk: { version: 'v1', kind: 'Node' } }] }
    const objects = [
      aProfile(),
      aTarget(everywhere),
      aTarget(nodes, 'n'),
      aTarget({ includedNamespaces: ['bank'] }, 'b'),
    ]
    const found = neededRoles(declarationsOf(objects), [], served, ['shop', 'store'])
    expect(found.map(({ namespace }) => namespace)).toEqual(['shop', 'store'])
    for (const { rules } of found) {
      expect(rules).toEqual([...ownRules('namespace'), reads('', 'configmaps')])
      expect(JSON.stringify(rules)).not.toMatch(/kollectcluster|\*/)
    }
  })

  it('of the cluster is what deploy/inventory gives, before anything is declared', () => {
    const documents = parseAllDocuments(readFileSync('deploy/inventory/role.yaml', 'utf8')).map((one) => one.toJS())
    const { rules } = documents.find(({ kind }) => kind === 'ClusterRole') as { rules: object[] }
    expect(rules).toEqual(ownRules('cluster'))
  })

  it('lets it get the Secrets that sinks name, by their names', () => {
    const sinks = [
      {
        namespace: 'shop',
        spec: { type: 'postgres', postgres: { databaseRef: { name: 'db' } }, tls: { caSecretRef: { name: 'ca' } } },
      },
      { namespace: 'shop', spec: { type: 'git', git: { auth: { secretRef: { name: 'git' } } } } },
    ]
    expect(roles([], sinks)).toEqual([
      {
        namespace: 'shop',
        rules: [{ apiGroups: [''], resources: ['secrets'], resourceNames: ['ca', 'db', 'git'], verbs: ['get'] }],
      },
    ])
  })
})
