import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type AdmissionRequest, type AdmittedObject, concerns } from '../admission.ts'
import { ocmAdmission, ocmKinds } from '../generate.ts'
import type { CustomResourceDefinition } from '../kind.ts'
import { INSTALL_NAMESPACE, NO_DEFAULT } from './add-on-conversion.ts'
import {
  certificateRequestAdmission,
  clusterManagementAddOn,
  managedCluster,
  managedClusterAddOn,
  managedClusterAdmission,
  managedClusterSetBinding,
  manifestWork,
  manifestWorkAdmission,
  setBindingAdmission,
} from './index.ts'
import { CLUSTER_SET_LABEL } from './names.ts'

const NOW = Date.parse('2026-11-26T12:00:00Z')
const ann = { name: 'ann', groups: ['system:authenticated'] }

function aCluster(spec: object = {}, metadata: object = {}): AdmittedObject {
  return {
    apiVersion: managedCluster.apiVersion,
    kind: 'ManagedCluster',
    metadata: { name: 'west', ...metadata },
    spec,
  }
}

const inSet = (set: string) => ({ labels: { [CLUSTER_SET_LABEL]: set } })

function request(
  object: AdmittedObject | undefined,
  before?: AdmittedObject,
  user: AdmissionRequest['user'] = ann,
): AdmissionRequest {
  const { name = '', namespace } = (object ?? before)?.metadata ?? {}
  return {
    operation: !object ? 'DELETE' : before ? 'UPDATE' : 'CREATE',
    user,
    object,
    before,
    name,
    ...(namespace && { namespace }),
    dryRun: false,
    nowMs: NOW,
  }
}

const asked = (right: { verb: string; resource: string; subresource?: string; name?: string }) =>
  `${right.verb} ${right.resource}/${right.subresource} ${right.name}`
const rightsOf = (object: AdmittedObject, before?: AdmittedObject) =>
  managedClusterAdmission.rights?.(request(object, before)).map(asked)

describe('kinds of Open Cluster Management', () => {
  it.each(ocmKinds.map((kind) => [kind.definition.kind, kind] as const))('%s takes its own example', (_, kind) => {
    expect(kind.faults(kind.definition.example)).toEqual([])
    expect(kind.parse(kind.definition.example)).toMatchObject({ kind: kind.definition.kind })
  })

  it('are definitions that say where objects live, and which versions need no conversion', () => {
    const versionsOf = ({ spec }: CustomResourceDefinition) =>
      (spec.versions as { name: string; storage: boolean }[]).map(({ name, storage }) => (storage ? `${name}*` : name))
    const said = ocmKinds.map((kind) => {
      const plain = kind.crd()
      return `${kind.plural} ${plain.spec.scope} ${versionsOf(plain)} ${versionsOf(kind.crd({ converts: true }))}`
    })
    expect(said).toEqual([
      'managedclusters Cluster v1* v1*',
      'managedclustersets Cluster v1beta2* v1beta2*',
      'managedclustersetbindings Namespaced v1beta2* v1beta2*',
      'clusterclaims Cluster v1alpha1* v1alpha1*',
      'clustermanagementaddons Cluster v1beta1* v1beta1*,v1alpha1',
      'managedclusteraddons Namespaced v1beta1* v1beta1*,v1alpha1',
      'addondeploymentconfigs Namespaced v1beta1*,v1alpha1 v1beta1*,v1alpha1',
      'manifestworks Namespaced v1* v1*',
      'appliedmanifestworks Cluster v1* v1*',
      'klusterlets Cluster v1* v1*',
    ])
  })

  it('fill in what nothing is said of', () => {
    expect(managedCluster.parse(aCluster()).spec).toEqual({ hubAcceptsClient: false, leaseDurationSeconds: 60 })
  })

  it.each([
    ['a name with capitals', aCluster({}, { name: 'West' }), 'metadata.name'],
    ['a name of 64 letters', aCluster({}, { name: 'a'.repeat(64) }), 'metadata.name'],
    ['a name with dots', aCluster({}, { name: 'west.example.com' }), 'metadata.name'],
    [
      'http',
      aCluster({ managedClusterClientConfigs: [{ url: 'http://west' }] }),
      'spec.managedClusterClientConfigs[0].url',
    ],
    [
      'https without host',
      aCluster({ managedClusterClientConfigs: [{ url: 'https://' }] }),
      'spec.managedClusterClientConfigs[0].url',
    ],
    ['a taint of unknown effect', aCluster({ taints: [{ key: 'a', effect: 'NoExecute' }] }), 'spec.taints[0].effect'],
    ['a taint without key', aCluster({ taints: [{ effect: 'NoSelect' }] }), 'spec.taints[0].key'],
  ])('refuse a cluster with %s, and say where', (_, cluster, path) => {
    expect(managedCluster.faults(cluster).map((fault) => fault.path)).toEqual([path])
  })

  it('refuse a binding that is not called as its set', () => {
    const binding = { metadata: { name: 'a', namespace: 'n' }, spec: { clusterSet: 'b' } }
    expect(managedClusterSetBinding.faults(binding)).toEqual([
      { path: 'spec.clusterSet', message: 'must be "a", the name of the binding' },
    ])
  })

  const aManifest = (name: string, more: object = {}) => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name, namespace: 'default' },
    ...more,
  })
  it.each([
    ['nothing to deliver', [], 'spec.workload.manifests'],
    ['more than 500 KiB', [aManifest('a', { data: { a: 'x'.repeat(500 * 1024) } })], 'spec.workload.manifests'],
    ['an object without name', [{ apiVersion: 'v1', kind: 'ConfigMap' }], 'spec.workload.manifests[0].metadata.name'],
    [
      'a name to be made up',
      [aManifest('', { metadata: { generateName: 'a-' } })],
      'spec.workload.manifests[0].metadata.generateName',
    ],
    ['one object twice', [aManifest('a'), aManifest('b'), aManifest('a')], 'spec.workload.manifests[2]'],
  ])('refuse a work with %s', (_, manifests, path) => {
    const work = { metadata: { name: 'work', namespace: 'west' }, spec: { workload: { manifests } } }
    expect(manifestWork.faults(work).map((fault) => fault.path)).toEqual([path])
  })

  it('take one object in two versions for the same, as a member does', () => {
    const scaler = (version: string) => ({
      apiVersion: `autoscaling/${version}`,
      kind: 'HorizontalPodAutoscaler',
      metadata: { name: 'a', namespace: 'n' },
    })
    const work = { metadata: { name: 'work' }, spec: { workload: { manifests: [scaler('v1'), scaler('v2')] } } }
    expect(manifestWork.faults(work)).toHaveLength(1)
  })
})

describe('admission of ManagedClusters', () => {
  const mutate = (object: AdmittedObject, before?: AdmittedObject) => {
    const mutation = managedClusterAdmission.mutate?.(request(object, before))
    if (!mutation || !('object' in mutation)) return mutation?.faults
    return mutation.object
  }
  const taints = (...list: readonly object[]) => ({ taints: list })
  const taint = { key: 'a', effect: 'NoSelect', value: 'x' }
  const since = '2026-11-01T00:00:00Z'
  const now = '2026-11-26T12:00:00Z'

  it('is about the cluster itself, not about its status', () => {
    const about = (operation: 'CREATE' | 'DELETE', plural: string, subresource?: string) =>
      concerns(
        managedClusterAdmission,
        { group: managedCluster.group, plural },
        { operation, ...(subresource && { subresource }) },
      )
    expect(about('CREATE', 'managedclusters')).toBe(true)
    expect(about('DELETE', 'managedclusters')).toBe(false)
    expect(about('CREATE', 'managedclusters', 'status')).toBe(false)
    expect(about('CREATE', 'managedclustersets')).toBe(false)
  })

  it.each([
    ['no label', {}, 'default'],
    ['an empty label', inSet(''), 'default'],
    ['a set', inSet('production'), 'production'],
  ])('puts a cluster with %s into a set', (_, metadata, set) => {
    expect(mutate(aCluster({}, metadata))).toMatchObject({ metadata: { labels: { [CLUSTER_SET_LABEL]: set } } })
  })

  it('says itself since when a taint is there: now on creation, whatever was sent', () => {
    expect(mutate(aCluster(taints({ ...taint, timeAdded: since })))).toMatchObject({
      spec: taints({ ...taint, timeAdded: now }),
    })
    expect(mutate(aCluster(taints({ ...taint, timeAdded: null })))).toMatchObject({
      spec: taints({ ...taint, timeAdded: now }),
    })
  })

  const before = aCluster(taints({ ...taint, timeAdded: since }))
  it.each([
    ['the same taint without time', taint, since],
    ['the same taint with its time', { ...taint, timeAdded: since }, since],
    ['the same time in another zone', { ...taint, timeAdded: '2026-11-01T01:00:00+01:00' }, since],
    ['another value', { ...taint, value: 'y' }, now],
    ['another effect', { ...taint, effect: 'PreferNoSelect' }, now],
  ])('keeps or sets the time on an update with %s', (_, given, time) => {
    expect(mutate(aCluster(taints(given)), before)).toMatchObject({ spec: taints({ ...given, timeAdded: time }) })
  })

  it.each([
    ['another time for the same taint', { ...taint, timeAdded: now }],
    ['a time for a new taint', { key: 'b', effect: 'NoSelect', timeAdded: since }],
    ['a time for a changed taint', { ...taint, value: 'y', timeAdded: since }],
  ])('refuses %s', (_, given) => {
    expect(mutate(aCluster(taints(given)), before)).toMatchObject([{ path: 'spec.taints[0].timeAdded' }])
  })

  it('tells two taints of one key apart by their effect', () => {
    const other = { ...taint, effect: 'PreferNoSelect', timeAdded: now }
    const both = aCluster(taints({ ...taint, timeAdded: since }, other))
    expect(mutate(both, both)).toMatchObject({ spec: both.spec })
  })

  it('makes the same of what it made already', () =>
    fc.assert(
      fc.property(
        fc.array(
          fc.record({
            key: fc.constantFrom('a', 'b'),
            effect: fc.constantFrom('NoSelect', 'PreferNoSelect'),
            value: fc.constantFrom('', 'x'),
          }),
          { maxLength: 4 },
        ),
        fc.option(fc.constantFrom('', 'default', 'production')),
        (list, set) => {
          const once = mutate(aCluster(taints(...list), set === null ? {} : inSet(set))) as AdmittedObject
          expect(mutate(once)).toEqual(once)
          expect(mutate(once, once)).toEqual(once)
        },
      ),
    ))

  it('asks for the right to accept, and to deny, whenever that changes', () => {
    const accepted = aCluster({ hubAcceptsClient: true })
    const accept = 'update managedclusters/accept west'
    expect(rightsOf(aCluster())).toEqual([])
    expect(rightsOf(accepted)).toEqual([accept])
    expect(rightsOf(accepted, aCluster())).toEqual([accept])
    expect(rightsOf(aCluster(), accepted)).toEqual([accept])
    expect(rightsOf(accepted, accepted)).toEqual([])
  })

  it('asks for the right to accept from whoever says which certificates count, which would undo a revocation', () => {
    const listed = (text: string) => aCluster({}, { annotations: { 'clusterpulse.io/certificates': text } })
    const [revoked, forged] = [listed('revoked-2026-11-26T00:00:00.000Z'), listed('a'.repeat(64))]
    const accept = 'update managedclusters/accept west'
    expect(rightsOf(forged, revoked)).toEqual([accept])
    expect(rightsOf(aCluster(), revoked)).toEqual([accept])
    expect(rightsOf(forged)).toEqual([accept])
    expect(rightsOf(revoked, revoked)).toEqual([])
  })

  it('asks for it from whoever says who asks to be the cluster, and from where', () => {
    const asked = (text: string) => aCluster({}, { annotations: { 'clusterpulse.io/asked-by': text } })
    const accept = 'update managedclusters/accept west'
    expect(rightsOf(asked('[]'))).toEqual([accept])
    expect(rightsOf(aCluster(), asked('[]'))).toEqual([accept])
    expect(rightsOf(asked('[]'), asked('[]'))).toEqual([])
  })

  it('asks for the right to join both sets of a cluster that moves', () => {
    const join = (set: string) => `create managedclustersets/join ${set}`
    expect(rightsOf(aCluster({}, inSet('default')))).toEqual([join('default')])
    expect(rightsOf(aCluster({}, inSet('b')), aCluster({}, inSet('a')))).toEqual([join('a'), join('b')])
    expect(rightsOf(aCluster({}, inSet('a')), aCluster({}, inSet('a')))).toEqual([])
  })

  it('lets nobody in while the namespace of a former member of that name is going', () => {
    const accepted = aCluster({ hubAcceptsClient: true })
    const going = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'west', deletionTimestamp: now } }
    const ask = request(accepted, aCluster())
    expect(managedClusterAdmission.reads?.(ask)).toMatchObject([{ plural: 'namespaces', name: 'west' }])
    expect(managedClusterAdmission.faults?.(ask, [going], [])).toMatchObject([{ path: 'spec.hubAcceptsClient' }])
    expect(managedClusterAdmission.faults?.(ask, [undefined], [])).toEqual([])
    expect(managedClusterAdmission.reads?.(request(accepted, accepted))).toEqual([])
  })
})

const BOOTSTRAP = 'system:serviceaccount:open-cluster-management:agent-registration-bootstrap'
const WEST = 'system:open-cluster-management:west:a'

describe('addresses of a ManagedCluster', () => {
  it.each(['https://a\u202eb', 'https://a\u001b[2J', 'https://é', 'https://a b'])(
    'neither hide nor turn around what people read: %j',
    (url) => {
      const [fault, ...more] = managedCluster.faults(aCluster({ managedClusterClientConfigs: [{ url }] }))
      expect([fault?.path, more]).toEqual(['spec.managedClusterClientConfigs[0].url', []])
    },
  )
})

describe('what agents change of a ManagedCluster that is there', () => {
  const users = {
    'a bootstrap kubeconfig': { name: BOOTSTRAP, groups: ['system:serviceaccounts'] },
    'a bootstrap token': { name: 'system:bootstrap:abcdef', groups: ['system:bootstrappers'] },
    'a certificate to join with': { name: 'new', groups: ['system:bootstrappers:managedcluster'] },
    'a member': { name: WEST, groups: ['system:open-cluster-management:west'] },
    'a member by its group': { name: 'west', groups: ['open-cluster-management:west'] },
  }
  type Who = keyof typeof users
  const everybody = Object.keys(users) as Who[]
  const isMember = (who: Who) => who.startsWith('a member')
  const since = '2026-11-01T00:00:00Z'
  const taint = { key: 'a', effect: 'NoSelect', timeAdded: since }
  const address = (host: string, caBundle = 'Y2E=') => ({ url: `https://${host}.example`, caBundle })
  const there = (spec: object = {}, metadata: object = {}) =>
    aCluster(
      { hubAcceptsClient: true, leaseDurationSeconds: 60, taints: [taint], ...spec },
      {
        labels: { [CLUSTER_SET_LABEL]: 'default', stage: 'prod', empty: '' },
        annotations: { note: 'x', 'agent.open-cluster-management.io/zone': 'a' },
        finalizers: ['cluster.open-cluster-management.io/api-resource-cleanup'],
        ...metadata,
      },
    )
  const refusedAt = (who: Who, object: AdmittedObject, before: AdmittedObject = there()) => {
    const asked = request(object, before, users[who])
    const mutation = managedClusterAdmission.mutate?.(asked)
    const made = mutation && 'object' in mutation ? mutation.object : object
    return managedClusterAdmission.faults?.({ ...asked, object: made }, [], []).map(({ path }) => path)
  }

  const labels = there().metadata.labels
  it.each<[string, object, object, string]>([
    ['a label', {}, { labels: { ...labels, stage: 'test' } }, 'metadata.labels'],
    ['a label that is empty, by leaving it out', {}, { labels: { ...labels, empty: undefined } }, 'metadata.labels'],
    ['its set', {}, { labels: { ...labels, [CLUSTER_SET_LABEL]: 'b' } }, 'metadata.labels'],
    ['an annotation', {}, { annotations: { ...there().metadata.annotations, note: 'y' } }, 'metadata.annotations'],
    ['its finalizers', {}, { finalizers: [] }, 'metadata.finalizers'],
    ['an owner that is not there', {}, { ownerReferences: [{ uid: 'gone' }] }, 'metadata.ownerReferences'],
    ['taints, by taking one away', { taints: [] }, {}, 'spec.taints'],
    ['taints, by another one', { taints: [taint, { key: 'b', effect: 'NoSelect' }] }, {}, 'spec.taints'],
    ['its heartbeat', { leaseDurationSeconds: 2_000_000 }, {}, 'spec.leaseDurationSeconds'],
    ['whether it is accepted', { hubAcceptsClient: false }, {}, 'spec.hubAcceptsClient'],
    ['a field that is not known here', { later: 1 }, {}, 'spec.later'],
  ])('are not %s', (_, spec, metadata, path) => {
    for (const who of everybody) expect(refusedAt(who, there(spec, metadata)), who).toEqual([path])
    const waits = there({ ...spec, hubAcceptsClient: false }, metadata)
    const before = there({ hubAcceptsClient: false })
    if (path !== 'spec.hubAcceptsClient')
      for (const who of everybody) expect(refusedAt(who, waits, before), who).toEqual([path])
    expect(managedClusterAdmission.faults?.(request(there(spec, metadata), there()), [], [])).toEqual([])
  })

  it('are addresses of its API: who asks to join adds new ones, a member changes its own', () => {
    const one = there({ managedClusterClientConfigs: [address('one')] })
    const both = there({ managedClusterClientConfigs: [address('one'), address('two')] })
    const other = there({ managedClusterClientConfigs: [address('one', 'Yg==')] })
    const twice = there({ managedClusterClientConfigs: [address('one'), address('one', 'Yg==')] })
    const before = there({ managedClusterClientConfigs: [address('two'), address('one')] })
    for (const who of everybody) {
      expect(refusedAt(who, one), who).toEqual([])
      expect(refusedAt(who, both, one), who).toEqual([])
      for (const [is, was] of [
        [other, one],
        [twice, one],
        [there(), one],
        [one, before],
      ] as const)
        expect(refusedAt(who, is, was), who).toEqual(isMember(who) ? [] : ['spec.managedClusterClientConfigs'])
    }
  })

  it('are annotations of agents, for the member', () => {
    const annotations = { note: 'x', 'agent.open-cluster-management.io/zone': 'b' }
    for (const who of everybody)
      expect(refusedAt(who, there({}, { annotations })), who).toEqual(isMember(who) ? [] : ['metadata.annotations'])
  })

  it('are none of those it has, written as clients in Go write them', () => {
    const read = aCluster(
      {
        taints: [{ effect: 'NoSelect', key: 'a', timeAdded: since }],
        hubAcceptsClient: true,
        leaseDurationSeconds: 60,
      },
      { ...there().metadata, managedFields: [], ownerReferences: [] },
    )
    const stored = there({ leaseDurationSeconds: 0, taints: [{ ...taint, value: '' }] })
    const unlabelled = there({}, { labels: { [CLUSTER_SET_LABEL]: '' }, ownerReferences: null })
    for (const who of everybody) {
      expect(refusedAt(who, read, stored), who).toEqual([])
      expect(refusedAt(who, { ...unlabelled, metadata: { ...unlabelled.metadata, labels: {} } }, unlabelled)).toEqual(
        [],
      )
    }
  })

  it('may be anything of one that is new, and whatever add-ons and people were given the right to', () => {
    for (const who of everybody) {
      const asked = request(aCluster({ taints: [taint] }, inSet('default')), undefined, users[who])
      expect(managedClusterAdmission.faults?.(asked, [], [])).toEqual([])
    }
    const addOn = 'system:open-cluster-management:cluster:west:addon'
    for (const user of [
      { name: 'ann', groups: ['system:open-cluster-management:managed-clusters'] },
      { name: `${addOn}:x:agent:a`, groups: [`${addOn}:x`, 'system:open-cluster-management:addon:x'] },
    ])
      expect(managedClusterAdmission.faults?.(request(there({}, inSet('default')), there(), user), [], [])).toEqual([])
  })

  it('is said with what may be changed', () => {
    const messages = everybody.map(
      (who) =>
        managedClusterAdmission.faults?.(request(there({ taints: [] }), there(), users[who]), [], [])[0]?.message,
    )
    expect(new Set(messages)).toEqual(
      new Set([
        'is not changed with a bootstrap kubeconfig: of a ManagedCluster that is there it adds to spec.managedClusterClientConfigs and no more',
        "is not the member's to change: of its ManagedCluster that is spec.managedClusterClientConfigs and annotations agent.open-cluster-management.io/…",
      ]),
    )
  })
})

describe('admission of certificate requests', () => {
  const LABEL = 'open-cluster-management.io/cluster-name'
  const SIGNER = 'kubernetes.io/kube-apiserver-client'
  const aRequest = ({ cluster = 'west', by = '', signerName = SIGNER, ago = 0, conditions = [] as object[] } = {}) => ({
    ...{ apiVersion: 'certificates.k8s.io/v1', kind: 'CertificateSigningRequest' },
    metadata: {
      name: 'one',
      creationTimestamp: new Date(NOW - ago).toISOString(),
      ...(cluster && { labels: { [LABEL]: cluster } }),
    },
    spec: { username: by, signerName },
    status: { conditions },
  })
  const refusal = (user: string, standing: readonly AdmittedObject[] = [], object: AdmittedObject = aRequest()) => {
    const asked = { ...request(object), user: { name: user, groups: [] } }
    const isAsked = certificateRequestAdmission.lists?.(asked).length === 1
    const [fault] = certificateRequestAdmission.faults?.(asked, [], isAsked ? [standing] : []) ?? []
    return fault?.message
  }
  const times = (count: number, like: Parameters<typeof aRequest>[0]) =>
    Array.from({ length: count }, () => aRequest(like))

  it.each([
    ['a member', WEST],
    ['who holds the bootstrap kubeconfig', BOOTSTRAP],
    ['who holds a bootstrap token', 'system:bootstrap:abcdef'],
  ])('takes no eleventh undecided one of a cluster from %s', (_, user) => {
    expect(refusal(user, times(9, { by: user }))).toBeUndefined()
    expect(refusal(user, times(10, { by: user }))).toBe(
      '10 requests of west wait for a decision; approve one or deny them first',
    )
    const decided = times(10, { by: user, conditions: [{ type: 'Denied' }] })
    expect(refusal(user, decided)).toBeUndefined()
  })

  it('takes no more within an hour than any member needs, also where each is approved by itself', () => {
    const approved = { by: WEST, conditions: [{ type: 'Approved' }] }
    expect(refusal(WEST, times(30, approved))).toMatch(/30 requests of west were made within an hour/)
    expect(refusal(WEST, times(30, { ...approved, ago: 3_700_000 }))).toBeUndefined()
    expect(refusal(WEST, times(100, { ...approved, ago: 3_700_000, signerName: 'example.com/any' }))).toMatch(
      /100 .* are there/,
    )
  })

  it('counts for a member what it made itself, and nothing that others made in its name', () => {
    expect(refusal(WEST, times(50, { by: BOOTSTRAP }))).toBeUndefined()
    expect(refusal(BOOTSTRAP, times(50, { by: WEST }))).toBeUndefined()
  })

  it('takes none for another signer of Kubernetes than that of users, and any for those of add-ons', () => {
    for (const signerName of ['kubernetes.io/kube-apiserver-client-kubelet', 'kubernetes.io/kubelet-serving'])
      expect(refusal(WEST, [], aRequest({ signerName }))).toMatch(/must be kubernetes\.io\/kube-apiserver-client/)
    expect(refusal(WEST, [], aRequest({ signerName: 'example.com/add-on' }))).toBeUndefined()
  })

  it('takes none of a member that is labelled with another cluster, or with none', () => {
    expect(refusal(WEST, [], aRequest({ cluster: 'east' }))).toBe(
      'must be the cluster of who asks: a member west may ask for its own cluster alone',
    )
    expect(refusal(WEST, [], aRequest({ cluster: '' }))).toMatch(/is required/)
  })

  it('is about nobody else: neither kubelets nor administrators nor the hub', () => {
    for (const user of ['admin', 'clusterpulse', 'system:node:n1'])
      expect(refusal(user, times(200, { by: user }))).toBeUndefined()
    expect(refusal('system:bootstrap:abcdef', [], aRequest({ cluster: '' }))).toBeUndefined()
  })
})

describe('admission of bindings and works', () => {
  it('asks for the right to bind a set when the binding is made', () => {
    const binding = { apiVersion: 'v1', kind: 'x', metadata: { name: 'a', namespace: 'n' }, spec: { clusterSet: 'a' } }
    expect(setBindingAdmission.rights?.(request(binding)).map(asked)).toEqual(['create managedclustersets/bind a'])
    expect(setBindingAdmission.rights?.(request(binding, binding))).toEqual([])
  })

  it('asks for the right to execute as an account when a work names it', () => {
    const work = (name?: string): AdmittedObject => ({
      apiVersion: manifestWork.apiVersion,
      kind: 'ManifestWork',
      metadata: { name: 'work', namespace: 'west' },
      spec: name ? { executor: { subject: { type: 'ServiceAccount', serviceAccount: { namespace: 'n', name } } } } : {},
    })
    const rights = (object: AdmittedObject, before?: AdmittedObject) =>
      manifestWorkAdmission
        .rights?.(request(object, before))
        .map(({ verb, namespace, name }) => ({ verb, namespace, name }))
    const right = { verb: 'execute-as', namespace: 'west', name: 'system:serviceaccount:n:deployer' }
    expect(rights(work('deployer'))).toEqual([right])
    expect(rights(work('deployer'), work('other'))).toEqual([right])
    expect(rights(work('deployer'), work('deployer'))).toEqual([])
    expect(rights(work(), work('deployer'))).toEqual([])
  })

  it('has a name of its own for every rule, as webhooks must', () => {
    const names = ocmAdmission.map(({ name }) => name)
    expect(new Set(names).size).toBe(names.length)
    for (const name of names) expect(name.split('.').length).toBeGreaterThanOrEqual(3)
  })
})

describe('versions of add-ons', () => {
  const word = fc.stringMatching(/^[a-z]{1,8}$/)
  const given = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined })
  const plain = <T>(value: T): T => JSON.parse(JSON.stringify(value))
  const resource = { group: word, resource: word }
  const config = fc.record({ ...resource, name: word, namespace: given(word) })
  const subject = given(fc.record({ user: given(word), groups: given(fc.array(word)) }))
  const hashed = given(fc.record({ name: word, namespace: given(word), specHash: given(word) }))

  const newerAddOn = fc.record({
    metadata: fc.record({
      name: word,
      annotations: given(fc.dictionary(fc.constantFrom(INSTALL_NAMESPACE, 'a'), word)),
    }),
    spec: fc.record({ configs: given(fc.array(config)) }),
    status: given(
      fc.record({
        namespace: given(word),
        configReferences: given(fc.array(fc.record({ ...resource, desiredConfig: hashed, lastAppliedConfig: hashed }))),
        registrations: given(
          fc.array(
            fc.oneof(
              fc.record({
                type: fc.constant('kubeClient'),
                kubeClient: fc.record({ subject, driver: fc.constant('csr') }),
              }),
              fc.record({
                type: fc.constant('customSigner'),
                customSigner: fc.record({ signerName: fc.constant('example.com/x'), subject }),
              }),
            ),
          ),
        ),
      }),
    ),
  })

  const [addOn] = managedClusterAddOn.converters
  const [definition] = clusterManagementAddOn.converters

  it('lose nothing of an add-on that goes through the older one', () =>
    fc.assert(
      fc.property(newerAddOn, (made) => {
        const newer = plain(made)
        expect(plain(addOn?.toStored(addOn.fromStored(newer)))).toEqual(newer)
      }),
    ))

  it('keep the namespace of the older one, and what its registrations are for', () => {
    const older = {
      metadata: { name: 'a' },
      spec: { installNamespace: 'here', configs: [] },
      status: {
        kubeClientDriver: 'token',
        registrations: [
          { signerName: 'kubernetes.io/kube-apiserver-client', subject: { user: 'u' } },
          { signerName: 'example.com/x', subject: { organizationUnit: ['o'] } },
        ],
        configReferences: [
          { group: '', resource: 'r', name: 'n', namespace: 's', desiredConfig: { name: 'n', namespace: 's' } },
        ],
      },
    }
    const newer = addOn?.toStored(older)
    expect(newer).toEqual({
      metadata: { name: 'a', annotations: { [INSTALL_NAMESPACE]: 'here' } },
      spec: { configs: [] },
      status: {
        registrations: [
          { type: 'kubeClient', kubeClient: { subject: { user: 'u' }, driver: 'token' } },
          {
            type: 'customSigner',
            customSigner: { signerName: 'example.com/x', subject: { organizationUnits: ['o'] } },
          },
        ],
        configReferences: [{ group: '', resource: 'r', desiredConfig: { name: 'n', namespace: 's' } }],
      },
    })
    expect(addOn?.fromStored(newer ?? {})).toEqual({ ...older, metadata: newer?.metadata })
  })

  it('lose nothing of a definition that goes through the older one, or through the newer', () =>
    fc.assert(
      fc.property(
        fc.record({ defaultConfigs: given(fc.array(config)), addOnMeta: given(fc.constant({ displayName: 'A' })) }),
        (spec) => {
          const newer = plain({ metadata: { name: 'a' }, spec })
          const older = plain(definition?.fromStored(newer) ?? {})
          expect(plain(definition?.toStored(older))).toEqual(newer)
          expect(plain(definition?.fromStored(definition.toStored(older)))).toEqual(older)
        },
      ),
    ))

  it('say by a word that no object has that there is no default', () => {
    const older = { spec: { supportedConfigs: [{ group: 'g', resource: 'r' }] } }
    const newer = definition?.toStored(older)
    expect(newer).toEqual({ spec: { defaultConfigs: [{ group: 'g', resource: 'r', name: NO_DEFAULT }] } })
    expect(definition?.fromStored(newer ?? {})).toEqual(older)
  })
})
