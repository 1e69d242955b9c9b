import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { KubeObject } from '#kube'
import type { ResourceDescriptor } from '#metricsource'
import { LISTED_KINDS, resourceLists, type Table } from '#model'
import { kinds, resourceOf, resources } from './index.ts'
import { persistentVolumeClaims } from './persistent-volume-claims.ts'
import { persistentVolumes } from './persistent-volumes.ts'
import { pods } from './pods.ts'
import { services } from './services.ts'
import { workloads } from './workloads.ts'

/** The values of one object, as the kind keeps them. */
function valuesOf(resource: ResourceDescriptor, object: object, kind?: string) {
  const target = resource.targets.find((one) => kind === undefined || one.kind === kind)
  if (!target) throw new Error(`${resource.id} reads no ${kind}`)
  const builder = resource.collect(0, target)
  builder.add({ metadata: { name: 'web', namespace: 'shop' }, ...object } as KubeObject)
  return builder.rows().row(0).values
}

const running = { running: { startedAt: '2026-01-01T00:00:00Z' } }
const podWith = (status: object, more: object = {}) => ({ status: { phase: 'Running', ...status }, ...more })

describe('pods', () => {
  it.each([
    ['a pod that runs', podWith({ containerStatuses: [{ ready: true, state: running }] }), 'Running'],
    ['one that waits', podWith({ phase: 'Pending' }), 'Pending'],
    [
      'one that cannot get its image',
      podWith({ containerStatuses: [{ state: { waiting: { reason: 'ImagePullBackOff' } } }] }),
      'ImagePullBackOff',
    ],
    [
      'one that crashes',
      podWith({ containerStatuses: [{ state: { waiting: { reason: 'CrashLoopBackOff' } } }] }),
      'CrashLoopBackOff',
    ],
    [
      'one that ended',
      podWith({
        phase: 'Succeeded',
        containerStatuses: [{ state: { terminated: { exitCode: 0, reason: 'Completed' } } }],
      }),
      'Completed',
    ],
    [
      'one that ended without a reason',
      podWith({ phase: 'Failed', containerStatuses: [{ state: { terminated: { exitCode: 3 } } }] }),
      'ExitCode:3',
    ],
    [
      'one that was killed',
      podWith({ phase: 'Failed', containerStatuses: [{ state: { terminated: { exitCode: 137, signal: 9 } } }] }),
      'Signal:9',
    ],
    [
      'one of which a part ended',
      podWith({
        conditions: [{ type: 'Ready', status: 'True' }],
        containerStatuses: [
          { state: { terminated: { exitCode: 0, reason: 'Completed' } } },
          { ready: true, state: running },
        ],
      }),
      'Running',
    ],
    ['one that is evicted', podWith({ phase: 'Failed', reason: 'Evicted' }), 'Evicted'],
    [
      'one that is deleted',
      podWith({}, { metadata: { name: 'web', namespace: 'shop', deletionTimestamp: '2026-01-01T00:00:00Z' } }),
      'Terminating',
    ],
    [
      'one whose start fails',
      podWith(
        { initContainerStatuses: [{ name: 'a', state: { terminated: { exitCode: 1, reason: 'Error' } } }] },
        { spec: { initContainers: [{ name: 'a' }] } },
      ),
      'Init:Error',
    ],
    [
      'one that starts',
      podWith(
        {
          initContainerStatuses: [
            { name: 'a', state: { terminated: { exitCode: 0 } } },
            { name: 'b', state: running },
          ],
        },
        { spec: { initContainers: [{ name: 'a' }, { name: 'b' }] } },
      ),
      'Init:1/2',
    ],
    [
      'one with a sidecar',
      podWith(
        {
          initContainerStatuses: [{ name: 'a', started: true, state: running }],
          containerStatuses: [{ ready: true, state: running }],
        },
        { spec: { initContainers: [{ name: 'a', restartPolicy: 'Always' }] } },
      ),
      'Running',
    ],
    ['nothing at all', {}, 'Unknown'],
  ])('%s is said in the word of kubectl', (_, pod, status) => expect(valuesOf(pods, pod).status).toBe(status))

  it('counts what happened to all containers', () => {
    const values = valuesOf(pods, {
      spec: {
        nodeName: 'n1',
        containers: [{ name: 'a', resources: { requests: { cpu: '250m', memory: '1Gi' } } }, { name: 'b' }],
      },
      status: {
        containerStatuses: [
          {
            restartCount: 3,
            ready: true,
            lastState: { terminated: { exitCode: 137, reason: 'OOMKilled', finishedAt: '2026-01-02T00:00:00Z' } },
          },
          {
            restartCount: 1,
            ready: false,
            lastState: { terminated: { exitCode: 1, reason: 'Error', finishedAt: '2026-01-01T00:00:00Z' } },
          },
        ],
        initContainerStatuses: [{ restartCount: 2, state: { terminated: { exitCode: 0 } } }],
      },
    })
    expect(values).toMatchObject({ restarts: 6, oomKills: 1, ready: 1, containers: 2, node: 'n1' })
    expect(values).toMatchObject({ lastTermination: 'OOMKilled', cpuRequest: 0.25, memoryRequest: 2 ** 30 })
  })

  it('tell the restarts of each regular container, and whether its last or current end was for lack of memory', () => {
    const end = (reason: string) => ({ terminated: { exitCode: 137, reason } })
    const containerStatuses = [
      { name: 'web', restartCount: 3, state: running, lastState: end('OOMKilled') },
      { name: 'log', restartCount: 0, state: running },
      { name: 'job', restartCount: 1, state: end('OOMKilled'), lastState: end('Error') },
    ]
    const pod = podWith({ containerStatuses, initContainerStatuses: [{ name: 'init', restartCount: 9 }] })
    const told = valuesOf(pods, pod).containerRestarts
    expect(JSON.parse(String(told))).toEqual([
      ['web', 3, true],
      ['log', 0, false],
      ['job', 1, true],
    ])
    expect(valuesOf(pods, podWith({})).containerRestarts).toBeNull()
  })

  it.each([
    [
      'a deployment behind its replica set',
      'ReplicaSet',
      'web-6f9c',
      { 'pod-template-hash': '6f9c' },
      'Deployment/web',
    ],
    ['a replica set of its own', 'ReplicaSet', 'web', {}, 'ReplicaSet/web'],
    ['a stateful set', 'StatefulSet', 'db', {}, 'StatefulSet/db'],
  ])('belong to %s', (_, kind, name, labels, workload) => {
    const ownerReferences = [{ apiVersion: 'apps/v1', kind, name, uid: '1', controller: true }]
    expect(valuesOf(pods, { metadata: { name: 'p', namespace: 'shop', labels, ownerReferences } }).workload).toBe(
      workload,
    )
  })

  it('say nothing of what is not there', () =>
    expect(valuesOf(pods, {})).toMatchObject({
      node: null,
      workload: null,
      restarts: 0,
      createdAt: null,
      message: null,
    }))
})

describe('workloads', () => {
  const deployment = (spec: object, status: object, generation = 1) => ({
    metadata: { name: 'web', namespace: 'shop', generation },
    spec,
    status: { observedGeneration: 1, ...status },
  })
  it.each([
    ['Deployment', deployment({ replicas: 2 }, { readyReplicas: 2, updatedReplicas: 2 }), 'Ready'],
    ['Deployment', deployment({ replicas: 2 }, { readyReplicas: 1, updatedReplicas: 2 }), 'Degraded'],
    ['Deployment', deployment({ replicas: 2 }, { readyReplicas: 1, updatedReplicas: 1 }), 'Updating'],
    ['Deployment', deployment({ replicas: 2 }, { readyReplicas: 2, updatedReplicas: 2 }, 2), 'Updating'],
    ['Deployment', deployment({ replicas: 0 }, {}), 'Scaled to zero'],
    ['Deployment', deployment({}, { readyReplicas: 1, updatedReplicas: 1 }), 'Ready'],
    [
      'Deployment',
      deployment(
        { replicas: 1 },
        { conditions: [{ type: 'Progressing', status: 'False', reason: 'ProgressDeadlineExceeded' }] },
      ),
      'Failing',
    ],
    ['StatefulSet', deployment({ replicas: 3 }, { readyReplicas: 3, updatedReplicas: 3 }), 'Ready'],
    ['DaemonSet', deployment({}, { desiredNumberScheduled: 3, numberReady: 2, updatedNumberScheduled: 3 }), 'Degraded'],
    ['Job', { spec: { completions: 2 }, status: { succeeded: 1, active: 1 } }, 'Running'],
    ['Job', { status: { conditions: [{ type: 'Complete', status: 'True' }] } }, 'Complete'],
    ['Job', { status: { conditions: [{ type: 'Failed', status: 'True' }] } }, 'Failed'],
    ['CronJob', { spec: { schedule: '* * * * *' }, status: {} }, 'Scheduled'],
    ['CronJob', { spec: { suspend: true } }, 'Suspended'],
    ['CronJob', { status: { active: [{ name: 'web-1' }] } }, 'Running'],
  ])('a %s is said in one word', (kind, object, status) =>
    expect(valuesOf(workloads, object, kind)).toMatchObject({ kind, status }),
  )

  it('of two kinds may share a name', () => {
    const tables = ['Deployment', 'StatefulSet'].map((kind) => {
      const target = workloads.targets.find((one) => one.kind === kind)
      const builder = target && workloads.collect(0, target)
      builder?.add({ metadata: { name: 'web', namespace: 'shop' } })
      return builder?.rows()
    })
    const names = tables.flatMap((table) => [...(table?.rows() ?? [])].map(({ name }) => name))
    expect(names).toEqual(['web:Deployment', 'web:StatefulSet'])
    expect(names.map(workloads.rowName)).toEqual(['web', 'web'])
  })

  it('name the images of their pods, also those of jobs to come', () => {
    const template = { spec: { containers: [{ image: 'a:1' }, { image: 'b:2' }, { image: 'a:1' }] } }
    expect(valuesOf(workloads, { spec: { template } }, 'Deployment').images).toBe('a:1, b:2')
    expect(valuesOf(workloads, { spec: { jobTemplate: { spec: { template } } } }, 'CronJob').images).toBe('a:1, b:2')
  })
})

describe('volume claims', () => {
  it('keep what is asked for apart from what is there', () =>
    expect(
      valuesOf(persistentVolumeClaims, {
        spec: {
          accessModes: ['ReadWriteOnce'],
          resources: { requests: { storage: '10Gi' } },
          storageClassName: 'fast',
          volumeName: 'pv-1',
        },
        status: { phase: 'Pending' },
      }),
    ).toMatchObject({
      status: 'Pending',
      requested: 10 * 2 ** 30,
      capacity: null,
      accessModes: 'ReadWriteOnce',
      storageClass: 'fast',
      volume: 'pv-1',
    }))
})

describe('a status', () => {
  const healthOf = ({ columns }: ResourceDescriptor, word: string) =>
    columns.find(({ name }) => name === 'status')?.health?.[word] ?? 'degraded'
  it.each([
    [pods, { Running: 'healthy', Completed: 'healthy', Succeeded: 'healthy', Pending: 'degraded' }],
    [pods, { CrashLoopBackOff: 'unhealthy', 'Init:ImagePullBackOff': 'unhealthy', Evicted: 'unhealthy' }],
    [pods, { NodeLost: 'unhealthy', Failed: 'unhealthy', Unknown: 'unknown', ContainerCreating: 'degraded' }],
    [workloads, { Ready: 'healthy', Complete: 'healthy', Failing: 'unhealthy', Failed: 'unhealthy' }],
    [workloads, { Degraded: 'degraded', Updating: 'degraded', Suspended: 'unknown' }],
    [persistentVolumeClaims, { Bound: 'healthy', Pending: 'degraded', Lost: 'unhealthy' }],
    [persistentVolumes, { Bound: 'healthy', Available: 'healthy', Released: 'degraded', Failed: 'unhealthy' }],
  ])('says how well an object is, and is what rows are sorted by (%#)', (kind, words) => {
    expect(kind.sort).toBe('status')
    for (const [word, health] of Object.entries(words)) expect(healthOf(kind, word), word).toBe(health)
  })
})

it('every kind that says how well its rows are is sorted by that', () => {
  for (const { typeName, columns, sort } of kinds) {
    const named = columns.find(({ health }) => health !== undefined)?.name
    // What happened is in the order of time.
    if (named !== undefined && !sort?.startsWith('-')) expect([typeName, sort]).toEqual([typeName, named])
  }
})

describe('volumes', () => {
  const volume = (name: string, claimRef?: object) =>
    ({ metadata: { name }, spec: { claimRef } }) as unknown as KubeObject
  const rowsAfter = (change: (builder: ReturnType<ResourceDescriptor['collect']>) => void) => {
    const [target] = persistentVolumes.targets
    if (!target) throw new Error('it reads nothing')
    const builder = persistentVolumes.collect(0, target)
    change(builder)
    return [...builder.rows().rows()].map(({ namespace, name, values }) => [namespace, name, values.claim])
  }

  it('move with their claim while they are followed, and come back under their name', () => {
    const [read] = persistentVolumes.collector.reads
    if (!read) throw new Error('it reads nothing')
    const [free, claimed] = [volume('pv-1'), volume('pv-1', { namespace: 'shop', name: 'data' })]
    const fold = persistentVolumes.collector.open({ endpoint: '', onInvalid: () => undefined } as never)
    const idsAfter = (before?: KubeObject, after?: KubeObject) => {
      fold.take(read, { type: 'changed', before, after } as never)
      const told = fold.parts(0) as unknown as { readonly rows: { readonly rows: Table } }
      return [...told.rows.rows.rows()].map(({ namespace, name }) => `${namespace}/${name}`)
    }
    expect(idsAfter(undefined, free)).toEqual(['/pv-1'])
    expect(idsAfter(free, claimed)).toEqual(['shop/pv-1'])
    expect(idsAfter(claimed, undefined)).toEqual([])
    expect(idsAfter(undefined, claimed)).toEqual(['shop/pv-1'])
  })

  it('are what is there, whatever comes, moves and goes, and whenever rows are asked for', () => {
    const names = ['pv-1', 'pv-2', 'pv-3']
    const step = fc.record({
      name: fc.constantFrom(...names),
      claim: fc.constantFrom(undefined, 'shop', 'bank'),
      does: fc.constantFrom('add', 'remove', 'ask'),
    })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
        const there = new Map<string, string>()
        const [target] = persistentVolumes.targets
        const builder = persistentVolumes.collect(0, target!)
        // A list names an object once; afterwards it may come again.
        for (const name of names) {
          builder.add(volume(name))
          there.set(name, '')
        }
        builder.rows()
        for (const { name, claim, does } of steps) {
          if (does === 'ask') builder.rows()
          else if (does === 'remove') {
            builder.remove('', name)
            there.delete(name)
          } else {
            builder.add(volume(name, claim && { namespace: claim, name: 'data' }))
            there.set(name, claim ?? '')
          }
        }
        const ids = [...builder.rows().rows()].map(({ namespace, name }) => `${namespace}/${name}`)
        expect(ids).toEqual([...there].map(([name, namespace]) => `${namespace}/${name}`).sort())
        expect(builder.size).toBe(there.size)
      }),
    )
  })

  it('stand in the namespace of their claim, and go from there', () => {
    const claimed = volume('pv-1', { namespace: 'shop', name: 'data' })
    const free = volume('pv-2')
    expect(rowsAfter((builder) => [claimed, free].map((one) => builder.add(one)))).toEqual([
      ['', 'pv-2', null],
      ['shop', 'pv-1', 'data'],
    ])
    expect(
      rowsAfter((builder) => {
        builder.add(claimed)
        builder.remove('', 'pv-1')
      }),
    ).toEqual([])
  })
})

describe('services', () => {
  it('say where they are reached', () =>
    expect(
      valuesOf(services, {
        spec: {
          type: 'LoadBalancer',
          clusterIP: '10.0.0.1',
          selector: { app: 'web' },
          ports: [
            { port: 80, nodePort: 30080, protocol: 'TCP' },
            { port: 53, protocol: 'UDP' },
          ],
        },
        status: { loadBalancer: { ingress: [{ ip: '1.2.3.4' }] } },
      }),
    ).toMatchObject({ addresses: '1.2.3.4', ports: '80:30080/TCP, 53/UDP', selector: 'app=web' }))
})

describe('every kind that is compiled in', () => {
  it.each(resources.map((resource) => [resource.id, resource] as const))(
    '%s reads anything without throwing',
    (_, resource) => {
      const odd = [
        {},
        { spec: null, status: [] },
        { spec: 'x', status: 7 },
        { spec: { ports: 'x', containers: {} }, status: { containerStatuses: {} } },
      ]
      for (const target of resource.targets) {
        const builder = resource.collect(0, target)
        for (const [place, object] of odd.entries())
          builder.add({ metadata: { name: `o${place}`, namespace: 'n' }, ...object } as unknown as KubeObject)
        // What has no usable name is no row.
        for (const metadata of [{}, { name: '' }, { name: 'a/b' }, { name: 'a:b' }, null])
          builder.add({ metadata } as unknown as KubeObject)
        expect(builder.rows().size).toBe(odd.length)
        expect(builder.rows().fields).toEqual(
          resource.columns.filter(({ isMeasured }) => !isMeasured).map(({ name }) => name),
        )
        builder.remove('n', 'o0')
        expect(builder.rows().size).toBe(odd.length - 1)
      }
    },
  )

  it('adds up in the unit of what it adds, and counts without one', () => {
    const units = ({ aggregations }: ResourceDescriptor) => aggregations.map(({ name, unit }) => [name, unit])
    expect(units(persistentVolumeClaims)).toEqual([
      ['byStatus', 'none'],
      ['capacity', 'bytes'],
    ])
    expect(units(pods)).toContainEqual(['restarts', 'none'])
  })

  it('has a name of its own, and only one', () => {
    const names = resources.flatMap(({ typeName, singular, shortNames = [] }) => [typeName, singular, ...shortNames])
    expect(new Set(names).size).toBe(names.length)
    expect(resourceOf('pods')).toBe(pods)
    expect(resourceOf('nothing')).toBeUndefined()
  })
})

describe('the documented lists', () => {
  const settings = { podsPerNamespace: 100, pods: 1000, deployments: 500, services: 500, labels: true }
  const listed = (resource: ResourceDescriptor, object: object, kind = resource.target.kind) => {
    const target = resource.targets.find((one) => one.kind === kind)!
    const collecting = resource.collect(0, target)
    collecting.add({ metadata: { name: 'web', namespace: 'shop', labels: { app: 'web' } }, ...object } as KubeObject)
    const lists = resourceLists(resource.id, collecting.rows(), settings).filter(({ count }) => count > 0)
    return lists.map(({ name, text }) => [name, JSON.parse(text)])
  }
  const head = { name: 'web', namespace: 'shop', labels: { app: 'web' } }

  it('are made of kinds that are compiled in', () => {
    for (const kind of LISTED_KINDS) expect(resourceOf(kind)?.id).toBe(kind)
  })

  // Objects as the API gives them, documents as the specification of the original has them (state, 2.1).
  it.each([
    [
      'pods',
      listed(pods, { spec: { nodeName: 'n1' }, status: { phase: 'Running' } }),
      { ...head, status: 'Running', node: 'n1' },
    ],
    [
      'deployments',
      listed(workloads, { spec: { replicas: 3 }, status: { replicas: 4, readyReplicas: 2 } }, 'Deployment'),
      { ...head, replicas: 3, ready: 2 },
    ],
    [
      'statefulsets',
      listed(workloads, { spec: { replicas: 3 }, status: { replicas: 3 } }, 'StatefulSet'),
      { ...head, replicas: 3, ready: 0 },
    ],
    [
      'daemonsets',
      listed(
        workloads,
        { status: { desiredNumberScheduled: 5, currentNumberScheduled: 4, numberReady: 3 } },
        'DaemonSet',
      ),
      { ...head, desired: 5, current: 4, ready: 3 },
    ],
    [
      'services',
      listed(services, { spec: { type: 'NodePort', clusterIP: '10.0.0.7' } }),
      { ...head, type: 'NodePort', cluster_ip: '10.0.0.7' },
    ],
  ])('have %s of the rows as they are collected', (name, lists, document) =>
    expect(lists).toEqual([[name, [document]]]),
  )
})
