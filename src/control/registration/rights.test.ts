import { readFileSync } from 'node:fs'
import { beforeAll, describe, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { type ApiObject, ApiServer } from '#apiserver'
import { ADDON_GROUP, CLUSTER_GROUP, REGISTER_GROUP, WORK_GROUP } from '#kinds'
import { rightsOf, sharedRoles } from './rights.ts'
import { groupsOf } from './words.ts'

/** Everything an agent might ask, in its own namespace, in another's, and in the whole cluster; of its own name, of another's, of none. */
const VERBS = [
  ...['get', 'list', 'watch', 'create', 'update', 'patch', 'delete', 'deletecollection'],
  ...['renew', 'approve', 'sign', 'bind', 'escalate', 'impersonate'],
]
const RESOURCES = [
  'certificates.k8s.io/certificatesigningrequests',
  'certificates.k8s.io/certificatesigningrequests/approval',
  'certificates.k8s.io/certificatesigningrequests/status',
  'certificates.k8s.io/signers',
  `${CLUSTER_GROUP}/managedclusters`,
  `${CLUSTER_GROUP}/managedclusters/status`,
  `${REGISTER_GROUP}/managedclusters/clientcertificates`,
  `${REGISTER_GROUP}/managedclusters/accept`,
  `${CLUSTER_GROUP}/managedclustersets`,
  `${CLUSTER_GROUP}/managedclustersets/join`,
  `${CLUSTER_GROUP}/managedclustersets/bind`,
  `${CLUSTER_GROUP}/managedclustersetbindings`,
  `${ADDON_GROUP}/managedclusteraddons`,
  `${ADDON_GROUP}/managedclusteraddons/status`,
  `${ADDON_GROUP}/clustermanagementaddons`,
  `${WORK_GROUP}/manifestworks`,
  `${WORK_GROUP}/manifestworks/status`,
  'coordination.k8s.io/leases',
  '/events',
  'events.k8s.io/events',
  '/secrets',
  '/configmaps',
  '/pods',
  '/namespaces',
  '/serviceaccounts',
  '/serviceaccounts/token',
  '/users',
  '/groups',
  'apps/deployments',
  'rbac.authorization.k8s.io/clusterroles',
  'rbac.authorization.k8s.io/clusterrolebindings',
  'rbac.authorization.k8s.io/roles',
  'rbac.authorization.k8s.io/rolebindings',
  'clusterpulse.io/clusterconnections',
  'clusterpulse.io/clusterconnections/status',
  'clusterpulse.io/monitoraccesspolicies',
]
const NAMESPACES = ['', 'c1', 'c2', 'clusterpulse', 'kube-system', 'open-cluster-management']
const NAMES = ['', 'c1', 'c2']

interface Question {
  readonly verb: string
  readonly resource: string
  readonly namespace: string
  readonly name: string
}

const questions: readonly Question[] = VERBS.flatMap((verb) =>
  RESOURCES.flatMap((resource) =>
    NAMESPACES.flatMap((namespace) => NAMES.map((name) => ({ verb, resource, namespace, name }))),
  ),
)
const textOf = ({ verb, resource, namespace, name }: Question) =>
  `${verb} ${resource} ${name || '*'} in ${namespace || 'all'}`

/** Section 3.6 line by line: verbs, resources, and where. `own`: of the name of the cluster alone. */
type Line = readonly [verbs: string, resources: string, where: 'anywhere' | 'own' | 'namespace']
const ACCEPTED: readonly Line[] = [
  ['create get list watch', 'certificates.k8s.io/certificatesigningrequests', 'anywhere'],
  ['renew', `${REGISTER_GROUP}/managedclusters/clientcertificates`, 'anywhere'],
  ['get list watch update', `${CLUSTER_GROUP}/managedclusters`, 'own'],
  ['patch update', `${CLUSTER_GROUP}/managedclusters/status`, 'own'],
  ['get list watch update', 'coordination.k8s.io/leases', 'namespace'],
  ['get list watch', `${ADDON_GROUP}/managedclusteraddons`, 'namespace'],
  ['patch update', `${ADDON_GROUP}/managedclusteraddons/status`, 'namespace'],
  ['create patch update', '/events', 'namespace'],
  ['create patch update', 'events.k8s.io/events', 'namespace'],
  ['get list watch update patch', `${WORK_GROUP}/manifestworks`, 'namespace'],
  ['patch update', `${WORK_GROUP}/manifestworks/status`, 'namespace'],
]
const OTHERS: readonly Line[] = [['get list watch', `${CLUSTER_GROUP}/managedclusters`, 'own']]

const allows = (lines: readonly Line[], { verb, resource, namespace, name }: Question): boolean =>
  lines.some(
    ([verbs, of, where]) =>
      of === resource &&
      verbs.split(' ').includes(verb) &&
      (where === 'anywhere' || (where === 'own' ? name === 'c1' : namespace === 'c1')),
  )

describe('the rights of a member', () => {
  let server: ApiServer

  const ask = (groups: readonly string[], question: Question): boolean => {
    const [group = '', resource = '', subresource] = question.resource.split('/')
    const { verb, namespace, name } = question
    const attempt = { verb, group, resource, ...(subresource && { subresource }), namespace, name }
    return server.authorizer.decide({ name: 'somebody', groups: [...groups, 'system:authenticated'] }, attempt).allowed
  }
  const give = async (isAccepted: boolean) => {
    for (const { object } of [...sharedRoles, ...rightsOf('c1', isAccepted)])
      await server.objects.put(object as unknown as ApiObject)
    const kept = new Set(rightsOf('c1', isAccepted).map(({ object }) => object.metadata.name))
    for (const { object, resource } of rightsOf('c1', true)) {
      const { name, namespace } = object.metadata
      if (kept.has(name)) continue
      const key = { name, ...(namespace && { namespace }) }
      const stored = server.objects.get(resource, key)
      if (!stored) continue
      await server.objects.put({ ...stored, metadata: { ...stored.metadata, finalizers: [] } })
      await server.objects.delete(resource, key)
    }
  }

  beforeAll(async () => {
    server = await ApiServer.open({ storage: { kind: 'memory' }, name: 'hub', defaultRoles: true })
    for (const name of ['c1', 'c2', 'clusterpulse', 'open-cluster-management'])
      await server.objects.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } })
    // The neighbour has rights of its own, which must not be ours.
    for (const { object } of rightsOf('c2', true)) await server.objects.put(object as unknown as ApiObject)
    return () => server[Symbol.asyncDispose]()
  })

  it.each([
    ['before acceptance', [false], OTHERS],
    ['once accepted', [true], ACCEPTED],
    ['after denial', [true, false], OTHERS],
  ] as const)('are those of the table and no other, %s', async (_, stages, lines) => {
    for (const isAccepted of stages) await give(isAccepted)
    for (const group of groupsOf('c1')) {
      const wrong = questions.filter((question) => {
        const isForEverybody = ask([], question)
        return ask([group], question) !== (isForEverybody || allows(lines, question))
      })
      expect(wrong.map(textOf)).toEqual([])
    }
    const granted = questions.filter((question) => !ask([], question) && ask([groupsOf('c1')[0]], question))
    expect(granted.length).toBeGreaterThan(0)
  })

  it('are nobody’s whose group only looks alike', async () => {
    await give(true)
    const alike = [
      'system:open-cluster-management:c10',
      'system:open-cluster-management:c1:a',
      'system:open-cluster-management:',
      'system:open-cluster-management:managed-clusters',
      'open-cluster-management:c',
    ]
    for (const group of alike) {
      const granted = questions.filter((question) => !ask([], question) && ask([group], question))
      expect(granted.map(textOf), group).toEqual([])
    }
  })
})

it('the shared roles that a hub on Kubernetes is installed with are these', () => {
  const text = readFileSync('deploy/components/members/shared-roles.yaml', 'utf8')
  const installed = parseAllDocuments(text).map((document) => document.toJS() as unknown)
  expect(installed).toEqual(sharedRoles.map(({ object }) => object))
})
