import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createKubeClient, type KubeClient, type KubeObject, type Resource } from '#kube'
import type { ResourceDescriptor, ResourceTarget } from '#metricsource'
import { noRealApiServer, type RealApiServer, startRealApiServer } from '../../../test/real-apiserver.ts'
import { accessForContext, mergeKubeconfigs } from '../../platform/kube/kubeconfig.ts'
import { resources } from './index.ts'

const missing = noRealApiServer()
const skip = missing !== undefined && process.env.CI_REQUIRE_ALL !== '1'

const AT = '2026-01-02T03:04:05Z'
const metadata = (name: string, more: object = {}) => ({
  name,
  namespace: 'shop',
  labels: { app: 'web', a: 'b' },
  ...more,
})
const owner = (kind: string, name: string) => ({
  ownerReferences: [
    { apiVersion: 'apps/v1', kind, name, uid: 'd0c3b0aa-0000-4000-8000-000000000000', controller: true },
  ],
})
const template = {
  metadata: { labels: { app: 'web' } },
  spec: {
    containers: [
      { name: 'a', image: 'web:1' },
      { name: 'b', image: 'side:2' },
    ],
  },
}
const selector = { matchLabels: { app: 'web' } }
const gaveUp = { type: 'Progressing', status: 'False', reason: 'ProgressDeadlineExceeded', message: 'no' }
const status = (name: string, more: object = {}) => ({
  ...{ name, image: 'i', imageID: 'i', ready: false, restartCount: 0, state: {}, lastState: {} },
  ...more,
})

/** Objects of a kind, each with its status: so many that every column has a value in one of them, and nothing in another. */
const OBJECTS: Readonly<Record<string, readonly Readonly<Record<string, unknown>>[]>> = {
  Pod: [
    {
      metadata: metadata('full', {
        ...owner('ReplicaSet', 'web-6f9c'),
        labels: { app: 'web', 'pod-template-hash': '6f9c' },
      }),
      spec: {
        nodeName: 'n1',
        containers: [
          { name: 'a', image: 'i', resources: { requests: { cpu: '250m', memory: '1Gi' }, limits: { memory: '2Gi' } } },
          { name: 'b', image: 'i' },
        ],
        initContainers: [{ name: 'c', image: 'i', restartPolicy: 'Always', resources: { requests: { cpu: '1' } } }],
      },
      status: {
        phase: 'Running',
        reason: 'Odd',
        message: 'it is odd',
        podIP: '10.0.0.1',
        podIPs: [{ ip: '10.0.0.1' }],
        startTime: AT,
        qosClass: 'Burstable',
        conditions: [{ type: 'Ready', status: 'False' }],
        initContainerStatuses: [
          status('c', { ready: true, started: true, restartCount: 2, state: { running: { startedAt: AT } } }),
        ],
        containerStatuses: [
          status('a', { ready: true, state: { running: { startedAt: AT } } }),
          status('b', {
            restartCount: 7,
            state: { waiting: { reason: 'CrashLoopBackOff', message: 'back-off 5m0s' } },
            lastState: { terminated: { exitCode: 137, reason: 'OOMKilled', startedAt: AT, finishedAt: AT } },
          }),
        ],
      },
    },
    { metadata: metadata('empty', { labels: {} }), spec: { containers: [{ name: 'a', image: 'i' }] } },
    {
      metadata: metadata('waits'),
      spec: { containers: [{ name: 'a', image: 'i' }] },
      status: {
        phase: 'Pending',
        conditions: [
          { type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: '0/3 nodes are available' },
        ],
      },
    },
    {
      metadata: metadata('starts'),
      spec: { containers: [{ name: 'a', image: 'i' }], initContainers: [{ name: 'c', image: 'i' }] },
      status: {
        phase: 'Pending',
        initContainerStatuses: [
          status('c', { state: { terminated: { exitCode: 0, signal: 9, startedAt: AT, finishedAt: AT } } }),
        ],
      },
    },
  ],
  Deployment: [
    {
      metadata: metadata('web', owner('App', 'shop')),
      spec: { replicas: 3, selector, template },
      status: {
        observedGeneration: 1,
        replicas: 4,
        readyReplicas: 2,
        updatedReplicas: 3,
        availableReplicas: 1,
        conditions: [gaveUp],
      },
    },
    { metadata: metadata('none'), spec: { replicas: 0, selector, template } },
  ],
  StatefulSet: [
    {
      metadata: metadata('db'),
      spec: { replicas: 3, serviceName: 'db', selector, template },
      status: {
        observedGeneration: 1,
        replicas: 3,
        readyReplicas: 3,
        updatedReplicas: 3,
        availableReplicas: 2,
        currentReplicas: 3,
      },
    },
    { metadata: metadata('none'), spec: { serviceName: 'db', selector, template } },
  ],
  DaemonSet: [
    {
      metadata: metadata('log'),
      spec: { selector, template },
      status: {
        ...{
          observedGeneration: 1,
          currentNumberScheduled: 4,
          numberMisscheduled: 0,
          desiredNumberScheduled: 5,
          numberReady: 3,
        },
        ...{ updatedNumberScheduled: 2, numberAvailable: 1 },
      },
    },
    { metadata: metadata('none'), spec: { selector, template } },
  ],
  Job: [
    {
      metadata: metadata('once', owner('CronJob', 'nightly')),
      spec: { completions: 3, parallelism: 2, template: { spec: { ...template.spec, restartPolicy: 'Never' } } },
      status: { startTime: AT, active: 1, succeeded: 1, failed: 4, ready: 0 },
    },
    {
      metadata: metadata('rests'),
      spec: { suspend: true, template: { spec: { ...template.spec, restartPolicy: 'Never' } } },
    },
  ],
  CronJob: [
    {
      metadata: metadata('nightly'),
      spec: {
        schedule: '0 2 * * *',
        jobTemplate: { spec: { template: { spec: { ...template.spec, restartPolicy: 'Never' } } } },
      },
      status: { lastScheduleTime: AT, active: [{ kind: 'Job', name: 'nightly-1' }] },
    },
    {
      metadata: metadata('rests'),
      spec: {
        schedule: '@daily',
        suspend: true,
        jobTemplate: { spec: { template: { spec: { ...template.spec, restartPolicy: 'Never' } } } },
      },
    },
  ],
  Event: [
    {
      metadata: metadata('web.1'),
      ...{ involvedObject: { kind: 'Pod', namespace: 'shop', name: 'web' }, type: 'Warning', reason: 'BackOff' },
      ...{ message: 'back-off 5m0s', count: 3, firstTimestamp: AT, lastTimestamp: AT },
      source: { component: 'kubelet', host: 'n1' },
    },
    {
      metadata: metadata('web.2'),
      ...{ involvedObject: { kind: 'Pod', namespace: 'shop', name: 'web' }, type: 'Normal', reason: 'Scheduled' },
      ...{
        message: 'Successfully assigned shop/web to n2',
        action: 'Binding',
        eventTime: '2026-01-02T03:04:05.678901Z',
      },
      ...{ reportingComponent: 'default-scheduler', reportingInstance: 's-1' },
      series: { count: 2, lastObservedTime: '2026-01-02T03:05:05.500000Z' },
    },
  ],
  PersistentVolumeClaim: [
    {
      metadata: metadata('data', owner('StatefulSet', 'db')),
      spec: {
        ...{
          accessModes: ['ReadWriteOnce', 'ReadOnlyMany'],
          resources: { requests: { storage: '10Gi' } },
          volumeName: 'pv-1',
        },
        ...{ storageClassName: 'fast', volumeMode: 'Filesystem' },
      },
      status: { phase: 'Bound', accessModes: ['ReadWriteOnce'], capacity: { storage: '12Gi' } },
    },
    {
      metadata: metadata('waits'),
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
    },
  ],
  PersistentVolume: [
    {
      metadata: { name: 'pv-1' },
      spec: {
        ...{ capacity: { storage: '12Gi' }, accessModes: ['ReadWriteOnce'], storageClassName: 'fast' },
        csi: { driver: 'csi.example.com', volumeHandle: 'v1' },
        claimRef: { kind: 'PersistentVolumeClaim', namespace: 'shop', name: 'data' },
      },
      status: { phase: 'Failed', reason: 'DeleteFailed' },
    },
    {
      metadata: { name: 'pv-2' },
      spec: { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteMany'], hostPath: { path: '/srv' } },
    },
  ],
  Service: [
    {
      metadata: metadata('web', owner('App', 'shop')),
      spec: {
        ...{ type: 'LoadBalancer', selector: { app: 'web', a: 'b' }, externalIPs: ['203.0.113.7'] },
        ports: [
          { name: 'http', port: 80, protocol: 'TCP' },
          { name: 'dns', port: 53, protocol: 'UDP' },
        ],
      },
      status: { loadBalancer: { ingress: [{ ip: '198.51.100.1' }, { hostname: 'lb.example.com' }] } },
    },
    { metadata: metadata('far'), spec: { type: 'ExternalName', externalName: 'db.example.com' } },
    { metadata: metadata('peers'), spec: { clusterIP: 'None', selector: { app: 'web' }, ports: [{ port: 80 }] } },
  ],
}

const named = (target: ResourceTarget): Resource => ({
  ...{
    group: target.group,
    version: target.version,
    plural: target.plural,
    kind: target.kind,
    namespaced: target.scope === 'Namespaced',
  },
})

/** An API server gives other kinds in JSON alone. */
const isBuiltIn = ({ group }: ResourceTarget): boolean => group !== 'kollect.dev'
const builtIn = resources.filter(({ targets }) => targets.some(isBuiltIn))

/** The rows of one list, read as it came. */
function rowsOf(resource: ResourceDescriptor, target: ResourceTarget, objects: readonly KubeObject[]) {
  const collecting = resource.collect(0, target)
  for (const object of objects) collecting.add(object)
  return [...collecting.rows().rows()]
}

describe.skipIf(skip)(`rows of built-in kinds, by a real kube-apiserver${skip ? ` (skipped: ${missing})` : ''}`, () => {
  let server: RealApiServer
  let kube: KubeClient
  beforeAll(async () => {
    const started = await startRealApiServer()
    if (!started) throw new Error(missing)
    server = started
    kube = createKubeClient(await accessForContext(mergeKubeconfigs([{ path: 'real', text: server.kubeconfig }])))
    await kube.request('POST', '/api/v1/namespaces', { body: { metadata: { name: 'shop' } } })
    await kube
      .request('POST', '/api/v1/namespaces/shop/serviceaccounts', { body: { metadata: { name: 'default' } } })
      .catch(() => undefined)
  })
  afterAll(async () => {
    await kube?.[Symbol.asyncDispose]()
    await server?.stop()
  })

  it.each(builtIn.flatMap((resource) => resource.targets.map((target) => [target.kind, resource, target] as const)))(
    'are the same of %s in protobuf and in JSON',
    async (kind, resource, target) => {
      for (const { status, ...object } of OBJECTS[kind] ?? []) {
        const made = { apiVersion: target.apiVersion, kind, ...object } as unknown as KubeObject
        await kube.create(named(target), made)
        const key = { name: made.metadata.name, ...(target.scope === 'Namespaced' && { namespace: 'shop' }) }
        if (status) await kube.patch(named(target), key, { status }, { kind: 'merge', subresource: 'status' })
      }
      const { fromProtobuf } = target
      expect(fromProtobuf).toBeDefined()
      const binary = rowsOf(
        resource,
        target,
        await kube.listAll({ ...named(target), ...(fromProtobuf && { fromProtobuf }) }),
      )
      const json = rowsOf(resource, target, await kube.listAll(named(target)))
      expect(json.length).toBeGreaterThanOrEqual(OBJECTS[kind]?.length ?? 1)
      expect(binary).toEqual(json)
      // A column that is null in all rows would be equal whatever is read of it.
      filled.set(
        resource.id,
        new Set([
          ...(filled.get(resource.id) ?? []),
          ...json.flatMap(({ values }) => Object.keys(values).filter((name) => values[name] !== null)),
        ]),
      )
    },
  )

  const filled = new Map<string, Set<string>>()
  it.each(builtIn.map((resource) => [resource.id, resource] as const))(
    'have a value in every column of %s',
    (id, resource) =>
      // What is measured is read of no object.
      expect([...(filled.get(id) ?? [])].sort()).toEqual(
        resource.columns
          .map(({ name }) => name)
          .filter((name) => !resource.measured?.fields.includes(name))
          .sort(),
      ),
  )
})
