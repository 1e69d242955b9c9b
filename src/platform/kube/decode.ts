import { describeCall, KubeError } from './errors.ts'
import type { Answer, SinkFor } from './http.ts'
import { JsonListDecoder } from './json-list-decoder.ts'
import { ListDecoder } from './list-decoder.ts'
import { ACCEPT_PROTOBUF, type DecodedList, isProtobuf, unwrap } from './protobuf.ts'
import type { Call } from './transport.ts'
import type { KubeObject, Resource } from './types.ts'

/** What to accept for a resource: protobuf where we can read it. */
export function acceptFor(resource: Resource<unknown>): string {
  return resource.fromProtobuf ? ACCEPT_PROTOBUF : 'application/json'
}

/** Reads one object of an answer. */
export function decodeObject<T>(resource: Resource<T>, call: Call, answer: Answer): T {
  if (isProtobuf(answer.headers)) return protobufReader(resource, call)(unwrap(answer.body))
  return readJson(resource, asObject(parseJson(call, answer.body), call))
}

/** Reads one page while it comes, where it is not compressed. */
export const listSink =
  <T>(resource: Resource<T>, call: Call): SinkFor =>
  ({ status, headers }) => {
    const { 'content-encoding': encoding = 'identity', 'content-type': type } = headers
    if (status !== 200 || encoding !== 'identity') return undefined
    if (isProtobuf(headers)) return new ListDecoder(protobufReader(resource, call))
    if (!String(type ?? '').startsWith('application/json')) return undefined
    return new JsonListDecoder((bytes) => readJson(resource, asObject(parseJson(call, bytes), call)))
  }

/** Reads one page of an answer, as far as `listSink` has not. */
export function decodeList<T>(resource: Resource<T>, call: Call, { sink, headers, body }: Answer): DecodedList<T> {
  if (sink instanceof ListDecoder) return (sink as ListDecoder<T>).end() // made for this resource
  if (sink instanceof JsonListDecoder) {
    const read = (sink as JsonListDecoder<T>).end() // the same
    if (!read) throw noJson(call)
    return jsonList(resource, call, read.around, read.items)
  }
  if (!isProtobuf(headers)) return jsonList(resource, call, body)
  const decoder = new ListDecoder(protobufReader(resource, call))
  decoder.push(body)
  return decoder.end()
}

/** @param read items that the body does not hold */
function jsonList<T>(resource: Resource<T>, call: Call, body: Buffer, read: readonly T[] = []): DecodedList<T> {
  const list = parseJson(call, body) as {
    kind?: unknown
    metadata?: { resourceVersion?: string; continue?: string; remainingItemCount?: number }
    items?: unknown
  } | null
  if (typeof list !== 'object' || list === null || !('items' in list)) throw notKubernetes(call)
  // An empty list may come as null.
  const found = list.items ?? []
  if (!Array.isArray(found)) throw notKubernetes(call)
  const items = [...read, ...found.map((item) => readJson(resource, asObject(item, call)))]
  // "Nothing there" is believed from a list only, not from whatever else happens to have such a field.
  if (items.length === 0 && !String(list.kind).endsWith('List')) throw notKubernetes(call)
  const { resourceVersion = '', continue: next = '', remainingItemCount: remaining } = list.metadata ?? {}
  return { items, resourceVersion, next, ...(remaining === undefined ? {} : { remaining }) }
}

export function parseJson(call: Pick<Call, 'method' | 'path'>, body: Buffer): unknown {
  if (body.length === 0) return undefined
  try {
    return JSON.parse(body.toString('utf8'))
  } catch (cause) {
    throw noJson(call, cause)
  }
}

function noJson(call: Pick<Call, 'method' | 'path'>, cause?: unknown): KubeError {
  const why = `${describeCall(call.method, call.path)}: the answer is no JSON; check that the address is that of a Kubernetes API`
  return new KubeError('protocol', why, { cause })
}

/** Takes from a JSON object what the resource's reader wants. */
export function readJson<T>(resource: Resource<T>, object: KubeObject): T {
  // Without a reader T is KubeObject by the declaration of Resource.
  return resource.fromJson ? resource.fromJson(object) : (object as T)
}

export function asObject(value: unknown, call: Pick<Call, 'method' | 'path'>): KubeObject {
  const object = value as KubeObject | null | undefined
  if (typeof object !== 'object' || object === null || typeof object.metadata !== 'object') throw notKubernetes(call)
  return object
}

export function protobufReader<T>(
  resource: Resource<T>,
  call: Pick<Call, 'method' | 'path'>,
): (bytes: Uint8Array) => T {
  if (resource.fromProtobuf) return resource.fromProtobuf
  throw new KubeError(
    'protocol',
    `${describeCall(call.method, call.path)}: the answer is protobuf, which was not asked for`,
  )
}

export function notKubernetes(call: Pick<Call, 'method' | 'path'>): KubeError {
  const why = 'the answer is not what a Kubernetes API gives; check the address'
  return new KubeError('protocol', `${describeCall(call.method, call.path)}: ${why}`)
}
