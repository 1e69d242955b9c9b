import { describe, expect, it, onTestFinished } from 'vitest'
import { ApiServer, listenApi } from '#apiserver'
import {
  createKubeClient,
  deploymentFacts,
  deployments,
  type KubeObject,
  namespaces,
  nodes,
  podFacts,
  pods,
  type Resource,
  whole,
} from '#kube'

/** The embedded API behind HTTPS, and our client of it. */
async function world() {
  const server = await ApiServer.open({ storage: { kind: 'memory' } })
  onTestFinished(() => server[Symbol.asyncDispose]())
  const listener = await listenApi({
    mounts: new Map([['', server]]),
    tokens: [{ token: 'journey-token', user: 'journey', groups: ['system:masters'] }],
  })
  onTestFinished(() => listener[Symbol.asyncDispose]())
  const kube = createKubeClient({
    server: listener.url,
    ca: listener.caPem,
    verifyTls: true,
    credentials: { kind: 'token', token: 'journey-token' },
  })
  onTestFinished(() => kube[Symbol.asyncDispose]())
  const both = async <T>(resource: Resource<T>): Promise<[T[], unknown[]]> => [
    await kube.listAll(resource),
    (await kube.listAll(whole(resource))).map((object) => resource.fromJson?.(object)),
  ]
  return { server, both }
}

const at = '2026-01-02T03:04:05Z'

/** Of what the client gives as objects, the facts that are taken of them. */
const asFacts = (resource: Resource, take: (object: KubeObject) => unknown): Resource<unknown> => ({
  ...resource,
  fromJson: take,
  fromProtobuf: (bytes) => take(resource.fromProtobuf?.(bytes) as KubeObject),
})

describe('lists of the embedded API in protobuf', () => {
  it('give our client the facts that JSON gives', async () => {
    const { server, both } = await world()
    const create = (object: object) => server.objects.create(object as never)
    await create({
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: 'n1', labels: { 'node-role.kubernetes.io/worker': '', zone: 'a' } },
      spec: { unschedulable: true, taints: [{ key: 'a', value: 'b', effect: 'NoSchedule' }] },
      status: {
        capacity: { cpu: '4', memory: '16Gi', pods: '110', 'example.com/gpu': '2' },
        allocatable: { cpu: '3500m', memory: '15Gi', pods: '110' },
        conditions: [{ type: 'Ready', status: 'True', reason: 'r', message: 'm', lastTransitionTime: at }],
        addresses: [{ type: 'InternalIP', address: '10.0.0.1' }],
        nodeInfo: { kubeletVersion: 'v1.35.0', osImage: 'Linux', architecture: 'amd64' },
      },
    })
    for (let each = 0; each < 30; each++)
      await create({
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: `p${each}`, namespace: 'default', labels: { app: `a${each % 3}` } },
        spec: {
          ...(each % 4 === 0 ? {} : { nodeName: 'n1' }),
          initContainers: [{ name: 'i', image: 'i', resources: { requests: { cpu: '2' } } }],
          containers: [{ name: 'c', image: 'c', resources: { requests: { cpu: `${each}m`, memory: '1Mi' } } }],
        },
        status: {
          phase: each % 2 === 0 ? 'Running' : 'Pending',
          containerStatuses: [
            { name: 'c', image: 'c', imageID: '', ready: each % 2 === 0, restartCount: each, state: {}, lastState: {} },
          ],
        },
      })
    await create({
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'd', namespace: 'default' },
      spec: {
        replicas: 0,
        selector: { matchLabels: { a: 'b' } },
        template: { metadata: { labels: { a: 'b' } }, spec: { containers: [{ name: 'c', image: 'c' }] } },
      },
      status: { readyReplicas: 2, availableReplicas: 1, updatedReplicas: 3 },
    })
    for (const resource of [nodes, namespaces, asFacts(pods, podFacts), asFacts(deployments, deploymentFacts)]) {
      const [binary, json] = await both<unknown>(resource)
      expect(binary.length, resource.plural).toBeGreaterThan(0)
      expect(binary).toEqual(json)
    }
  })
})
