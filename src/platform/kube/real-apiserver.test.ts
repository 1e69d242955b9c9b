import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { noRealApiServer, type RealApiServer, startRealApiServer } from '../../../test/real-apiserver.ts'
import { createKubeClient } from './client.ts'
import { deploymentFacts } from './deployment-facts.ts'
import { accessForContext, mergeKubeconfigs } from './kubeconfig.ts'
import { podFacts } from './pod-facts.ts'
import {
  customResourceDefinitions,
  deployments,
  leases,
  namespaces,
  nodeMetrics,
  nodes,
  pods,
  secrets,
  subscriptions,
  whole,
} from './resources.ts'
import { until } from './testing/scripted-server.ts'
import type { KubeClient, KubeObject, Resource } from './types.ts'

const missing = noRealApiServer()
const skip = missing !== undefined && process.env.CI_REQUIRE_ALL !== '1'

describe.skipIf(skip)(`a real kube-apiserver${skip ? ` (skipped: ${missing})` : ''}`, () => {
  let server: RealApiServer
  let kube: KubeClient
  beforeAll(async () => {
    const started = await startRealApiServer()
    if (!started) throw new Error(missing)
    server = started
    kube = createKubeClient(await accessForContext(mergeKubeconfigs([{ path: 'real', text: server.kubeconfig }])))
  })
  afterAll(async () => {
    await kube?.[Symbol.asyncDispose]()
    await server?.stop()
  })

  /** The facts of every object, once from protobuf and once from JSON. */
  async function both<T>(resource: Resource<T>): Promise<[T[], unknown[]]> {
    const fromProtobuf = await kube.listAll(resource)
    const fromJson = (await kube.listAll(whole(resource))).map((object) => resource.fromJson?.(object))
    return [fromProtobuf, fromJson]
  }

  /** The same, where the client gives objects and somebody else takes facts of them. */
  async function bothOf<T>(resource: Resource, factsOf: (object: KubeObject) => T): Promise<[T[], T[]]> {
    const fromProtobuf = (await kube.listAll(resource)).map(factsOf)
    const fromJson = (await kube.listAll(whole(resource))).map(factsOf)
    return [fromProtobuf, fromJson]
  }

  it('gives the same facts in protobuf and in JSON', async () => {
    await kube.create(whole(nodes), {
      metadata: {
        name: 'n1',
        labels: { 'node-role.kubernetes.io/worker': '', zone: 'a' },
        annotations: { note: '日本 😀' },
      },
      spec: {
        unschedulable: true,
        taints: [
          { key: 'a', value: 'b', effect: 'NoSchedule' },
          { key: 'c', effect: 'NoExecute' },
        ],
      },
    })
    const nodeStatus = {
      capacity: { cpu: '4', memory: '16Gi', pods: '110', 'ephemeral-storage': '100Gi', 'example.com/gpu': '2' },
      allocatable: { cpu: '3500m', memory: '15.5Gi', pods: '110' },
      conditions: [
        {
          type: 'Ready',
          status: 'True',
          reason: 'KubeletReady',
          message: 'ready',
          lastTransitionTime: '2026-01-02T03:04:05Z',
        },
        { type: 'DiskPressure', status: 'False' },
      ],
      addresses: [
        { type: 'InternalIP', address: '10.0.0.1' },
        { type: 'Hostname', address: 'n1' },
      ],
      nodeInfo: {
        machineID: 'm',
        systemUUID: 's',
        bootID: 'b',
        kernelVersion: '6.1',
        osImage: 'Debian',
        containerRuntimeVersion: 'containerd://2',
        kubeletVersion: 'v1.35.4',
        kubeProxyVersion: '',
        operatingSystem: 'linux',
        architecture: 'amd64',
      },
      images: [{ names: ['a', 'b'], sizeBytes: 5_000_000_000 }, { names: ['c'] }],
      volumesAttached: [{ name: 'v', devicePath: 'd' }],
    }
    await kube.patch(whole(nodes), { name: 'n1' }, { status: nodeStatus }, { kind: 'strategic', subresource: 'status' })
    const image = { image: 'i' }
    const podSpecs: Record<string, unknown>[] = [
      {
        nodeName: 'n1',
        containers: [{ ...image, name: 'a', resources: { requests: { cpu: '0.5', memory: '1.5Gi' } } }],
      },
      {
        containers: [
          { ...image, name: 'a' },
          { ...image, name: 'b', resources: { limits: { cpu: '1', memory: '64Mi' } } },
        ],
      },
      {
        nodeName: 'n1',
        resources: { requests: { cpu: '2', memory: '1Gi' } },
        containers: [{ ...image, name: 'a', resources: { requests: { cpu: '100m' } } }],
        initContainers: [
          { ...image, name: 'i', resources: { requests: { cpu: '1' } } },
          { ...image, name: 's', restartPolicy: 'Always', resources: { requests: { memory: '12345678' } } },
        ],
      },
    ]
    for (const [n, spec] of podSpecs.entries()) {
      await kube.create(whole(pods), { metadata: { name: `p${n}`, namespace: 'default' }, spec })
    }
    await kube.patch(
      whole(pods),
      { name: 'p1', namespace: 'default' },
      { status: { phase: 'Failed' } },
      { kind: 'merge', subresource: 'status' },
    )
    // A graceful deletion of a pod on a node waits for its kubelet: the pod stays, marked.
    await kube.delete(pods, { name: 'p0', namespace: 'default' })
    await kube.create(deployments, {
      metadata: { name: 'd', namespace: 'default' },
      spec: {
        selector: { matchLabels: { a: 'b' } },
        template: { metadata: { labels: { a: 'b' } }, spec: { containers: [{ ...image, name: 'a' }] } },
      },
    })
    const counts = { replicas: 3, readyReplicas: 2, availableReplicas: 1, updatedReplicas: 3, unavailableReplicas: 2 }
    await kube.patch(
      deployments,
      { name: 'd', namespace: 'default' },
      { status: counts },
      { kind: 'merge', subresource: 'status' },
    )

    const [podsFromProtobuf, podsFromJson] = await bothOf(pods, podFacts)
    expect(podsFromProtobuf).toEqual(podsFromJson)
    expect(podsFromProtobuf[0]).toMatchObject({ nodeName: 'n1', containers: [{ cpu: '500m', memory: '1536Mi' }] })
    expect(podsFromProtobuf[1]).toMatchObject({
      nodeName: '',
      phase: 'Failed',
      containers: [{ cpu: '', memory: '' }, { cpu: '1' }],
    })
    expect(podsFromProtobuf[2]).toMatchObject({ podRequests: { cpu: '2', memory: '1Gi' } })
    expect(podsFromProtobuf[2]?.initContainers).toMatchObject([{ restartPolicy: '' }, { restartPolicy: 'Always' }])
    const [nodeFacts, nodesFromJson] = await both(nodes)
    expect(nodeFacts).toEqual(nodesFromJson)
    expect(nodeFacts).toMatchObject([{ name: 'n1', unschedulable: true, imagesCount: 2, volumesAttached: 1 }])
    const [deploymentsFromProtobuf, deploymentsFromJson] = await bothOf(deployments, deploymentFacts)
    expect(deploymentsFromProtobuf).toEqual(deploymentsFromJson)
    expect(deploymentsFromProtobuf).toEqual([
      { name: 'd', namespace: 'default', replicas: 1, ready: 2, available: 1, updated: 3 },
    ])
    const [namespaceFacts, namespacesFromJson] = await both(namespaces)
    expect(namespaceFacts).toEqual(namespacesFromJson)
    expect(namespaceFacts.map((namespace) => namespace.name)).toContain('kube-system')
  })

  it('pages, and says how many are left', async () => {
    for (let n = 0; n < 5; n++)
      await kube.create(secrets, { metadata: { name: `page-${n}`, namespace: 'default', labels: { t: 'page' } } })
    const sizes: unknown[] = []
    for await (const page of kube.list(secrets, { namespace: 'default', pageSize: 2 }))
      sizes.push([page.items.length, page.remaining])
    expect(sizes).toEqual([
      [2, 3],
      [2, 1],
      [1, undefined],
    ])
    expect(await kube.listAll(secrets, { labelSelector: 't=page', pageSize: 3 })).toHaveLength(5)
    expect(await kube.listAll(secrets, { fieldSelector: 'metadata.name=page-3' })).toHaveLength(1)
  })

  it.each<[string, Resource<unknown>]>([
    ['protobuf', namespaces],
    ['JSON', whole(namespaces)],
  ])('tells every change of a watch in %s', async (encoding, resource) => {
    const name = `watched-${encoding.toLowerCase()}`
    const stop = new AbortController()
    const seen: string[] = []
    const troubles: Error[] = []
    const watching = (async () => {
      const onTrouble = (error: Error) => troubles.push(error)
      for await (const event of kube.watch(resource, {
        signal: stop.signal,
        fieldSelector: `metadata.name=${name}`,
        onTrouble,
      })) {
        seen.push(event.type)
      }
    })()
    await until(() => seen.length === 1)
    await kube.create(namespaces, { metadata: { name } })
    await kube.patch(namespaces, { name }, { metadata: { labels: { a: 'b' } } }, { kind: 'merge' })
    await kube.delete(namespaces, { name })
    await until(() => seen.length >= 4)
    stop.abort()
    await watching
    expect(seen.slice(0, 4)).toEqual(['reset', 'added', 'modified', 'modified'])
    expect(troubles).toEqual([])
  })

  it('applies, patches and replaces, and tells a conflict', async () => {
    const lease: KubeObject = { metadata: { name: 'l', namespace: 'default' }, spec: { holderIdentity: 'a' } }
    const made = await kube.create(leases, lease)
    const key = { name: 'l', namespace: 'default' }
    await kube.patch(leases, key, [{ op: 'replace', path: '/spec/holderIdentity', value: 'b' }], { kind: 'json' })
    const stale = { ...made, spec: { holderIdentity: 'c' } }
    await expect(kube.replace(leases, stale)).rejects.toMatchObject({ reason: 'conflict' })
    const applied = {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { name: 'l' },
      spec: { holderIdentity: 'd' },
    }
    await expect(kube.patch(leases, key, applied, { kind: 'apply', fieldManager: 'test' })).rejects.toMatchObject({
      reason: 'conflict',
    })
    const forced = await kube.patch(leases, key, applied, { kind: 'apply', fieldManager: 'test', force: true })
    expect(forced).toMatchObject({ spec: { holderIdentity: 'd' } })
    await kube.delete(leases, key)
    expect(await kube.get(leases, key)).toBeUndefined()
    await expect(kube.delete(leases, key)).rejects.toMatchObject({ reason: 'not_found' })
    await expect(kube.create(namespaces, { metadata: { name: 'default' } })).rejects.toMatchObject({
      reason: 'already_exists',
    })
    await expect(kube.create(namespaces, { metadata: { name: 'NO' } })).rejects.toMatchObject({ reason: 'invalid' })
  })

  it('writes as somebody else, in trial, below an object, and deletes only what is meant', async () => {
    const key = { name: 'as', namespace: 'default' }
    const lease: KubeObject = { metadata: key, spec: { holderIdentity: 'a' } }
    const nobody = { user: 'zoë', groups: ['some', 'more'], extra: { 'example.com/why': ['test'] } }
    await expect(kube.create(leases, lease, undefined, { as: nobody })).rejects.toMatchObject({
      reason: 'forbidden',
      message: expect.stringContaining('User "zoë" cannot create'),
    })
    const who = await kube.request('POST', '/apis/authentication.k8s.io/v1/selfsubjectreviews', {
      as: nobody,
      body: { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' },
    })
    expect(who).toMatchObject({
      status: {
        userInfo: {
          username: 'zoë',
          groups: ['some', 'more', 'system:authenticated'],
          extra: { 'example.com/why': ['test'] },
        },
      },
    })
    await kube.create(leases, lease, undefined, { dryRun: true })
    expect(await kube.get(leases, key)).toBeUndefined()
    const { uid = '' } = (await kube.create(leases, lease)).metadata
    await expect(kube.delete(leases, key, undefined, { uid: 'other' })).rejects.toMatchObject({ reason: 'conflict' })
    await kube.delete(leases, key, undefined, { uid, dryRun: true })
    expect(await kube.get(leases, key)).toBeDefined()
    const held = { kind: 'json', dryRun: true } as const
    await kube.patch(leases, key, [{ op: 'add', path: '/metadata/finalizers', value: ['example.com/x'] }], held)
    await kube.delete(leases, key, undefined, { uid, propagation: 'Background' })
    expect(await kube.get(leases, key)).toBeUndefined()
    const accounts: Resource = {
      ...whole(namespaces),
      plural: 'serviceaccounts',
      kind: 'ServiceAccount',
      namespaced: true,
    }
    const account = { name: 'walker', namespace: 'default' }
    await kube.create(whole(accounts), { metadata: account })
    const token = await kube.create(
      whole(accounts),
      { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', metadata: account, spec: {} },
      undefined,
      { subresource: 'token' },
    )
    expect(token).toMatchObject({ status: { token: expect.any(String) } })
  })

  it('tells served, absent and forbidden apart', async () => {
    expect(await kube.serves(deployments)).toBe(true)
    expect(await kube.serves(customResourceDefinitions)).toBe(true)
    expect(await kube.serves(nodeMetrics)).toBe(false)
    expect(await kube.serves(subscriptions)).toBe(false)
    await expect(kube.listAll(subscriptions)).rejects.toMatchObject({ reason: 'not_found' })
    await kube.create(whole({ ...secrets, plural: 'serviceaccounts', kind: 'ServiceAccount' }), {
      metadata: { name: 'poor', namespace: 'default' },
    })
    const answer = (await kube.request('POST', '/api/v1/namespaces/default/serviceaccounts/poor/token', {
      body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { expirationSeconds: 600 } },
    })) as { status: { token: string } }
    const poor = createKubeClient({ ...server.access, credentials: { kind: 'token', token: answer.status.token } })
    await expect(poor.listAll(pods)).rejects.toMatchObject({
      reason: 'forbidden',
      apiMessage: expect.stringContaining('cannot list'),
    })
    await poor[Symbol.asyncDispose]()
    const stranger = createKubeClient({ ...server.access, credentials: { kind: 'token', token: 'wrong' } })
    await expect(stranger.ping()).rejects.toMatchObject({ reason: 'unauthorized' })
    await stranger[Symbol.asyncDispose]()
  })

  it('tells its version', async () => {
    expect(await kube.version()).toEqual({
      gitVersion: expect.stringMatching(/^v1\./),
      platform: expect.stringContaining('/'),
    })
  })
})
