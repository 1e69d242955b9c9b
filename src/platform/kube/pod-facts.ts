import { fieldsOf, instantOf, listOf, metadataOf, quantityOf, readInstant, readQuantity, textOf } from './facts.ts'
import { ProtoReader } from './protobuf.ts'
import type { KubeObject } from './types.ts'

/** What a container asks for, as quantity text; '' where it asks for none. Equal requests are one object. */
export interface Requests {
  readonly cpu: string
  readonly memory: string
}

export interface InitRequests extends Requests {
  /** 'Always' for a sidecar, which runs on beside the main containers; '' otherwise */
  readonly restartPolicy: string
}

/**
 * What the sums over pods need of a pod, and no more: about 200 bytes, as texts, requests and lists of one are shared.
 * The scheduler's formula reads `containers`, `initContainers`, `overhead` and, where set, `podRequests` instead.
 */
export interface PodFacts {
  readonly name: string
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
  /** when its deletion was asked for, ms; null for a pod that is to stay */
  readonly deletedAt: number | null
}

const NO_REQUESTS: Requests = Object.freeze({ cpu: '', memory: '' })
const NO_INIT: readonly InitRequests[] = Object.freeze([])
const NO_CONTAINERS: readonly Requests[] = Object.freeze([])

/** Values kept once. Cleared when full: what is in use stays alive, and the common ones are back at once. */
class Shared<K, V> {
  readonly #values = new Map<K, V>()
  readonly #make: (key: K) => V

  constructor(make: (key: K) => V) {
    this.#make = make
  }

  get(key: K): V {
    const known = this.#values.get(key)
    if (known !== undefined) return known
    if (this.#values.size >= 4096) this.#values.clear()
    const made = this.#make(key)
    this.#values.set(key, made)
    return made
  }
}

const requestsOf = new Shared((cpu: string) => new Shared((memory: string): Requests => Object.freeze({ cpu, memory })))
const listOfOne = new Shared((requests: Requests): readonly Requests[] => Object.freeze([requests]))
const texts = new Shared((text: string) => text)

function sharedRequests(cpu: string, memory: string): Requests {
  return cpu === '' && memory === '' ? NO_REQUESTS : requestsOf.get(cpu).get(memory)
}

function sharedList(containers: readonly Requests[]): readonly Requests[] {
  const [first] = containers
  if (first === undefined) return NO_CONTAINERS
  return containers.length === 1 ? listOfOne.get(first) : containers
}

/** From a pod's JSON. */
export function podFromJson(object: KubeObject): PodFacts {
  const metadata = metadataOf(object)
  const spec = fieldsOf(object.spec)
  const resources = fieldsOf(spec.resources)
  const init = listOf(spec.initContainers)
  return {
    name: textOf(metadata.name),
    namespace: texts.get(textOf(metadata.namespace)),
    nodeName: texts.get(textOf(spec.nodeName)),
    phase: texts.get(textOf(fieldsOf(object.status).phase)),
    containers: sharedList(listOf(spec.containers).map(containerRequests)),
    initContainers:
      init.length === 0
        ? NO_INIT
        : init.map((value) => ({
            ...containerRequests(value),
            restartPolicy: texts.get(textOf(fieldsOf(value).restartPolicy)),
          })),
    overhead: requestsIfAny(spec.overhead),
    podRequests: requestsIfAny(resources.requests),
    deletedAt: instantOf(metadata.deletionTimestamp),
  }
}

function containerRequests(container: unknown): Requests {
  return requestsFrom(fieldsOf(fieldsOf(container).resources).requests)
}

function requestsFrom(value: unknown): Requests {
  const amounts = fieldsOf(value)
  return sharedRequests(texts.get(quantityOf(amounts.cpu)), texts.get(quantityOf(amounts.memory)))
}

function requestsIfAny(value: unknown): Requests | null {
  return Object.keys(fieldsOf(value)).length === 0 ? null : requestsFrom(value)
}

/** From a pod's protobuf (v1.Pod). */
export function podFromProtobuf(bytes: Uint8Array): PodFacts {
  const reader = new ProtoReader(bytes)
  let name = ''
  let namespace = ''
  let deletedAt: number | null = null
  let nodeName = ''
  let phase = ''
  let containers: Requests[] | undefined
  let initContainers: InitRequests[] | undefined
  let overhead: Requests | null = null
  let podRequests: Requests | null = null
  for (let tag = reader.tag(); tag !== 0; tag = reader.tag()) {
    if (tag !== 10 && tag !== 18 && tag !== 26) {
      reader.skip(tag)
      continue
    }
    const outer = reader.enter()
    if (tag === 10) {
      for (let field = reader.tag(); field !== 0; field = reader.tag()) {
        if (field === 10) name = reader.string()
        else if (field === 26) namespace = reader.shared()
        else if (field === 74) deletedAt = readInstant(reader)
        else reader.skip(field)
      }
    } else if (tag === 18) {
      for (let field = reader.tag(); field !== 0; field = reader.tag()) {
        if (field === 18) {
          const container = readContainer(reader)
          if (containers === undefined) containers = [container.requests]
          else containers.push(container.requests)
        } else if (field === 82) nodeName = reader.shared()
        else if (field === 162) {
          const { requests, restartPolicy } = readContainer(reader)
          initContainers ??= []
          initContainers.push({ ...requests, restartPolicy })
        } else if (field === 258) overhead = readRequestEntry(reader, overhead)
        else if (field === 322) podRequests = readResources(reader)
        else reader.skip(field)
      }
    } else {
      for (let field = reader.tag(); field !== 0; field = reader.tag()) {
        if (field === 10) phase = reader.shared()
        else reader.skip(field)
      }
    }
    reader.leave(outer)
  }
  return {
    name,
    namespace,
    nodeName,
    phase,
    containers: containers === undefined ? NO_CONTAINERS : sharedList(containers),
    initContainers: initContainers ?? NO_INIT,
    overhead,
    podRequests,
    deletedAt,
  }
}

/** v1.Container: resources is field 8, restartPolicy field 24. */
function readContainer(reader: ProtoReader): { requests: Requests; restartPolicy: string } {
  const outer = reader.enter()
  let requests: Requests | null = null
  let restartPolicy = ''
  for (let tag = reader.tag(); tag !== 0; tag = reader.tag()) {
    if (tag === 66) requests = readResources(reader)
    else if (tag === 194) restartPolicy = reader.shared()
    else reader.skip(tag)
  }
  reader.leave(outer)
  return { requests: requests ?? NO_REQUESTS, restartPolicy }
}

/** v1.ResourceRequirements: requests is field 2. Null where it holds none, as the JSON then has no such field. */
function readResources(reader: ProtoReader): Requests | null {
  const outer = reader.enter()
  let requests: Requests | null = null
  for (let tag = reader.tag(); tag !== 0; tag = reader.tag()) {
    if (tag === 18) requests = readRequestEntry(reader, requests)
    else reader.skip(tag)
  }
  reader.leave(outer)
  return requests
}

/** One entry of a ResourceList, added to what came before. */
function readRequestEntry(reader: ProtoReader, before: Requests | null): Requests {
  const outer = reader.enter()
  let resource: 'cpu' | 'memory' | undefined
  let amount = ''
  for (let tag = reader.tag(); tag !== 0; tag = reader.tag()) {
    if (tag === 10) {
      const key = reader.shared()
      resource = key === 'cpu' || key === 'memory' ? key : undefined
    } else if (tag === 18) amount = readQuantity(reader)
    else reader.skip(tag)
  }
  reader.leave(outer)
  const known = before ?? NO_REQUESTS
  if (resource === 'cpu') return sharedRequests(amount, known.memory)
  return resource === 'memory' ? sharedRequests(known.cpu, amount) : known
}
