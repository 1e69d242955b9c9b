import { fieldsOf, listOf, metadataOf, quantityOf, textOf } from './facts.ts'
import type { KubeObject } from './types.ts'

/** What a container asks for, as quantity text; '' where it asks for none. */
export interface Requests {
  readonly cpu: string
  readonly memory: string
}

/** What an init container asks for. */
export interface InitRequests extends Requests {
  /** 'Always' for a sidecar, which runs on beside the main containers; '' otherwise */
  readonly restartPolicy: string
}

/**
 * What the sums over pods need of a pod. The scheduler's formula reads `containers`, `initContainers`, `overhead` and, where set, `podRequests` instead.
 */
export interface PodFacts {
  readonly namespace: string
  /** '' while unscheduled */
  readonly nodeName: string
  /** Pending, Running, Succeeded, Failed or Unknown */
  readonly phase: string
  readonly containers: readonly Requests[]
  readonly initContainers: readonly InitRequests[]
  readonly overhead: Requests | null
  /** requests of the pod as a whole (spec.resources): they replace the sums of its containers, resource by resource */
  readonly podRequests: Requests | null
}

/** From a pod, as its JSON or its protobuf gave it. */
export function podFacts(object: KubeObject): PodFacts {
  const spec = fieldsOf(object.spec)
  return {
    namespace: textOf(metadataOf(object).namespace),
    nodeName: textOf(spec.nodeName),
    phase: textOf(fieldsOf(object.status).phase),
    containers: listOf(spec.containers).map(containerRequests),
    initContainers: listOf(spec.initContainers).map((value) => ({
      ...containerRequests(value),
      restartPolicy: textOf(fieldsOf(value).restartPolicy),
    })),
    overhead: requestsIfAny(spec.overhead),
    podRequests: requestsIfAny(fieldsOf(spec.resources).requests),
  }
}

function containerRequests(container: unknown): Requests {
  return requestsFrom(fieldsOf(fieldsOf(container).resources).requests)
}

function requestsFrom(value: unknown): Requests {
  const amounts = fieldsOf(value)
  return { cpu: quantityOf(amounts.cpu), memory: quantityOf(amounts.memory) }
}

function requestsIfAny(value: unknown): Requests | null {
  return Object.keys(fieldsOf(value)).length === 0 ? null : requestsFrom(value)
}
