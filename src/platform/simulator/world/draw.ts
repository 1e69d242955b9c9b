import type { ApiObject } from '#apiserver'
import { isFinished, type WorkloadFacts } from '../facts.ts'
import { eventObject } from '../objects/event.ts'
import { cronJobObject, jobObject } from '../objects/jobs.ts'
import { namespaceObject } from '../objects/namespace.ts'
import { nodeIp, nodeObject } from '../objects/node.ts'
import { clusterOperatorObject, clusterVersionObject } from '../objects/openshift.ts'
import { csvName, csvObject, subscriptionObject } from '../objects/operators.ts'
import { podObject } from '../objects/pod.ts'
import { resources } from '../objects/resources.ts'
import { serviceObject } from '../objects/service.ts'
import { claimObject, volumeObject } from '../objects/storage.ts'
import {
  daemonSetObject,
  deploymentObject,
  type ReplicaCounts,
  replicaSetObject,
  statefulSetObject,
} from '../objects/workloads.ts'
import type { ObjectSink } from '../types.ts'
import type { World, WorldChange } from './world.ts'

/** The full object of one thing as it is now; undefined: it is gone. */
export function drawObject(world: World, { resource, key }: WorldChange): ApiObject | undefined {
  switch (resource) {
    case 'pods': {
      const pod = world.pods.get(key)
      const node = pod?.node === undefined ? undefined : world.nodes.get(pod.node)
      return pod && podObject(pod, node && nodeIp(node))
    }
    case 'nodes':
      return drawn(world.nodes.get(key), (node) => nodeObject(node, world.surroundings))
    case 'namespaces':
      return drawn(world.namespaces.get(key), namespaceObject)
    case 'deployments':
      return drawn(world.deployments.get(key), (workload) => deploymentObject(workload, replicaCounts(world, workload)))
    case 'replicaSets':
      return drawn(world.replicaSets.get(key), (set) =>
        replicaSetObject(set, replicaCounts(world, set.workload, set.revision)),
      )
    case 'statefulSets':
      return drawn(world.statefulSets.get(key), (workload) =>
        statefulSetObject(workload, replicaCounts(world, workload), world.scenario),
      )
    case 'daemonSets':
      return drawn(world.daemonSets.get(key), (workload) => daemonSetObject(workload, replicaCounts(world, workload)))
    case 'cronJobs':
      return drawn(world.cronJobs.get(key), (workload) =>
        cronJobObject(
          workload,
          [...world.jobs.values()].filter(({ cronJob }) => cronJob === workload),
        ),
      )
    case 'jobs':
      return drawn(world.jobs.get(key), (job) => {
        const pods = [...world.podsOf(job.cronJob)].filter((pod) => pod.job === job && pod.state === 'running')
        return jobObject(job, pods.length)
      })
    case 'services':
      return drawn(world.services.get(key), serviceObject)
    case 'events':
      return drawn(world.events.get(key), eventObject)
    case 'claims':
      return drawn(world.claims.get(key), (claim) => claimObject(claim, world.scenario))
    case 'volumes':
      return drawn(world.volumes.get(key), (claim) => volumeObject(claim, world.scenario))
    case 'subscriptions':
      return drawn(world.operators.get(key), subscriptionObject)
    case 'csvs':
      return drawn(
        [...world.operators.values()].find((operator) => `${operator.namespace}/${csvName(operator)}` === key),
        csvObject,
      )
    case 'clusterOperators':
      return drawn(world.clusterOperators.get(key), clusterOperatorObject)
    case 'clusterVersions':
      return drawn(world.version, clusterVersionObject)
    case 'crds':
    case 'routes':
      return undefined // written once, when the world is made
  }
}

const drawn = <T>(facts: T | undefined, draw: (facts: T) => ApiObject): ApiObject | undefined => facts && draw(facts)

/** @param revision counts the pods of this one only */
export function replicaCounts(world: World, workload: WorkloadFacts, revision?: number): ReplicaCounts {
  const pods = [...world.podsOf(workload)].filter(
    (pod) => !isFinished(pod) && (revision === undefined || pod.revision === revision),
  )
  return {
    replicas: pods.length,
    updated: pods.filter(({ revision }) => revision === workload.revision).length,
    ready: pods.filter(({ state }) => state === 'running').length,
  }
}

/** Writes that are under way at once: fewer than an API store queues. */
const AT_ONCE = 500

/**
 * Writes what changed since the last time, in order.
 * @throws what the sink threw first; the other writes were tried all the same
 */
export async function writeChanges(world: World, sink: ObjectSink): Promise<void> {
  const changes = world.takeChanges()
  for (let from = 0; from < changes.length; from += AT_ONCE) {
    const writes = changes.slice(from, from + AT_ONCE).map(async (change) => {
      const object = drawObject(world, change)
      if (object) await sink.put(resources[change.resource], object)
      else await sink.delete(resources[change.resource], keyOf(change.key))
    })
    const failed = (await Promise.allSettled(writes)).find((end) => end.status === 'rejected')
    if (failed) throw failed.reason
  }
}

function keyOf(key: string): { name: string; namespace?: string } {
  const slash = key.indexOf('/')
  return slash < 0 ? { name: key } : { namespace: key.slice(0, slash), name: key.slice(slash + 1) }
}
