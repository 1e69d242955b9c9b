import type { ApiServer } from '#apiserver'
import { crdObjects } from './objects/crds.ts'
import { routeObject } from './objects/openshift.ts'
import { resources } from './objects/resources.ts'
import { storageClassObject } from './objects/storage.ts'
import type { ObjectSink } from './types.ts'
import { certificateObjects } from './world/certificates.ts'
import { writeChanges } from './world/draw.ts'
import { kubeletAnswer } from './world/kubelet.ts'
import { nodeMetrics, podMetrics } from './world/metrics.ts'
import type { World } from './world/world.ts'

/** Fills the API store of a cluster with its world, for the first time. */
export async function seedCluster(world: World, server: ApiServer, now: () => number): Promise<void> {
  const { scenario } = world
  const openshift = scenario.distribution === 'openshift'
  const olm = openshift || scenario.operators.length > 0
  const bornAt = Math.min(...[...world.nodes.values()].map(({ createdAt }) => createdAt), now())
  const certManager = scenario.operators.includes('cert-manager')
  for (const crd of crdObjects({ olm, openshift, certManager }, bornAt)) await server.objects.put(crd)
  await server.objects.put(storageClassObject(scenario, bornAt))
  await writeChanges(world, sinkOf(server))
  if (certManager) for (const one of certificateObjects(world, now())) await server.objects.put(one)
  if (openshift) await server.objects.put(routeObject(scenario, bornAt))
  if (scenario.metrics) serveMetrics(world, server, now)
  server.proxyNodes((node, path) => kubeletAnswer(world, node, path, now()))
}

export const sinkOf = (server: ApiServer): ObjectSink => ({
  put: (_, object) => server.objects.put(object),
  delete: (resource, key) => server.objects.delete(resource, key),
})

function serveMetrics(world: World, server: ApiServer, now: () => number): void {
  const group = { group: 'metrics.k8s.io', version: 'v1beta1' }
  server.addVirtual({
    ...group,
    plural: resources.nodes.plural,
    kind: 'NodeMetrics',
    namespaced: false,
    list: () => nodeMetrics(world, now()),
  })
  server.addVirtual({
    ...group,
    plural: resources.pods.plural,
    kind: 'PodMetrics',
    namespaced: true,
    list: () => podMetrics(world, now()),
  })
}
