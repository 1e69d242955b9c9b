import type { ApiObject } from '#apiserver'
import { phaseOf, podKey } from '../facts.ts'
import type { World } from '../world/world.ts'
import type { MapSink } from './map-sink.ts'

/** What is wrong with a world and with the objects it wrote; empty when all is well. */
export function faultsOf(world: World, sink: MapSink, now: number): string[] {
  return [
    ...factFaults(world),
    ...objectFaults(world, sink),
    ...ownerFaults(sink),
    ...claimFaults(sink),
    ...timeFaults(sink, now),
  ]
}

function factFaults(world: World): string[] {
  const faults: string[] = []
  for (const node of world.nodes.values()) {
    const held = [...world.podsOn(node.name)].filter((pod) => !['Succeeded', 'Failed'].includes(phaseOf(pod)))
    const cores = held.reduce((sum, pod) => sum + pod.kin.template.cpuCores, 0)
    if (held.length !== node.podCount) faults.push(`${node.name} counts ${node.podCount} pods and holds ${held.length}`)
    if (Math.abs(cores - node.requestedCores) > 1e-6)
      faults.push(`${node.name} sums ${node.requestedCores} of ${cores} cores`)
    if (node.requestedCores > node.pool.cpuCores) faults.push(`${node.name} is promised more cores than it has`)
  }
  for (const pod of world.pods.values()) {
    if (pod.node !== undefined && !world.podsOn(pod.node).has(pod)) faults.push(`${podKey(pod)} is missing on its node`)
    if (pod.node === undefined && phaseOf(pod) !== 'Pending') faults.push(`${podKey(pod)} runs nowhere`)
  }
  return faults
}

function objectFaults(world: World, sink: MapSink): string[] {
  const faults: string[] = []
  const nodes = new Set(sink.list('nodes').map(({ metadata }) => metadata.name))
  const namespaces = new Set(sink.list('namespaces').map(({ metadata }) => metadata.name))
  const uids = new Set<string | undefined>()
  const pods = sink.list('pods')
  if (pods.length !== world.pods.size) faults.push(`${pods.length} pods are written, ${world.pods.size} exist`)
  for (const { metadata, spec } of pods as ({ spec: { nodeName?: string } } & (typeof pods)[number])[]) {
    if (spec.nodeName !== undefined && !nodes.has(spec.nodeName)) faults.push(`${metadata.name} is on no node`)
    if (!namespaces.has(metadata.namespace ?? '')) faults.push(`${metadata.name} is in no namespace`)
    if (uids.has(metadata.uid)) faults.push(`${metadata.name} shares its uid`)
    uids.add(metadata.uid)
  }
  for (const deployment of sink.list('deployments')) {
    const counts = deployment.status as { replicas: number; readyReplicas: number; updatedReplicas: number }
    if (counts.readyReplicas > counts.replicas || counts.updatedReplicas > counts.replicas)
      faults.push(`${deployment.metadata.name} counts more than all of its pods`)
  }
  return faults
}

/** What each kind is owned by, as its path says. */
const OWNERS: Readonly<Record<string, string>> = {
  ReplicaSet: 'replicasets',
  StatefulSet: 'statefulsets',
  DaemonSet: 'daemonsets',
  Job: 'jobs',
  Deployment: 'deployments',
  CronJob: 'cronjobs',
}

function ownerFaults(sink: MapSink): string[] {
  return [...sink.objects].flatMap(([path, { metadata }]) =>
    ((metadata.ownerReferences ?? []) as { kind: string; name: string; uid: string }[]).flatMap(
      ({ kind, name, uid }) => {
        const owner = sink.objects.get(`${OWNERS[kind]}/${metadata.namespace}/${name}`)
        return owner?.metadata.uid === uid ? [] : [`${path} is owned by a ${kind} ${name} that is not there`]
      },
    ),
  )
}

interface Claim extends ApiObject {
  readonly spec: { readonly volumeName?: string }
  readonly status: { readonly phase: string }
}
interface Volume extends ApiObject {
  readonly spec: { readonly claimRef: { readonly uid: string } }
}
interface MountingPod extends ApiObject {
  readonly spec: { readonly volumes: readonly { readonly persistentVolumeClaim?: { readonly claimName: string } }[] }
}

function claimFaults(sink: MapSink): string[] {
  const claims = sink.list('persistentvolumeclaims') as Claim[]
  const volumes = new Map((sink.list('persistentvolumes') as Volume[]).map((volume) => [volume.metadata.name, volume]))
  const bound = claims.filter(({ status }) => status.phase === 'Bound')
  const names = new Set(claims.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`))
  const mounted = (sink.list('pods') as MountingPod[]).flatMap(({ metadata, spec }) =>
    spec.volumes.flatMap(({ persistentVolumeClaim: claim }) =>
      claim ? [`${metadata.namespace}/${claim.claimName}`] : [],
    ),
  )
  return [
    ...bound
      .filter(({ metadata, spec }) => volumes.get(spec.volumeName ?? '')?.spec.claimRef.uid !== metadata.uid)
      .map(({ metadata }) => `${metadata.name} is bound to no volume of its own`),
    ...(volumes.size === bound.length ? [] : [`${volumes.size} volumes for ${bound.length} bound claims`]),
    ...mounted.filter((name) => !names.has(name)).map((name) => `${name} is mounted and not there`),
  ]
}

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/

function timeFaults(sink: MapSink, now: number): string[] {
  const faults: string[] = []
  for (const [path, object] of sink.objects)
    JSON.stringify(object, (key, value: unknown) => {
      if (typeof value === 'string' && TIME.test(value) && Date.parse(value) > now)
        faults.push(`${path} ${key} is in the future`)
      return value
    })
  return faults
}
