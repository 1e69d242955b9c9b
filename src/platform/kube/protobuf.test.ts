import fc from 'fast-check'
import protobuf from 'protobufjs'
import { describe, expect, it } from 'vitest'
import { deploymentFacts } from './deployment-facts.ts'
import { isKubeError } from './errors.ts'
import { ListDecoder } from './list-decoder.ts'
import { podFacts } from './pod-facts.ts'
import { ProtoReader, readResourceVersion, readStatus, readWatchFrame, unwrap } from './protobuf.ts'
import { deployments, namespaces, nodes, pods } from './resources.ts'
import type { KubeObject, Resource } from './types.ts'

/** Field numbers as in the generated.proto files of k8s.io/api 1.35; fields nobody reads are here to be stepped over. */
const { root } = protobuf.parse(
  `
syntax = "proto2";
message Time { optional int64 seconds = 1; optional int32 nanos = 2; }
message Quantity { optional string string = 1; }
message OwnerReference { optional string kind = 1; optional string name = 3; optional string uid = 4; }
message ManagedFieldsEntry { optional string manager = 1; optional bytes raw = 7; }
message ObjectMeta {
  optional string name = 1; optional string generateName = 2; optional string namespace = 3; optional string uid = 5;
  optional string resourceVersion = 6; optional int64 generation = 7; optional Time creationTimestamp = 8;
  optional Time deletionTimestamp = 9; optional int64 deletionGracePeriodSeconds = 10;
  map<string, string> labels = 11; map<string, string> annotations = 12;
  repeated OwnerReference ownerReferences = 13; repeated string finalizers = 14;
  repeated ManagedFieldsEntry managedFields = 17;
}
message ListMeta {
  optional string selfLink = 1; optional string resourceVersion = 2; optional string continue = 3;
  optional int64 remainingItemCount = 4;
}
message ResourceRequirements { map<string, Quantity> limits = 1; map<string, Quantity> requests = 2; }
message Container {
  optional string name = 1; optional string image = 2; repeated string command = 3;
  optional ResourceRequirements resources = 8; optional bool stdin = 16; optional string restartPolicy = 24;
}
message PodSpec {
  repeated Container containers = 2; optional string restartPolicy = 3; optional int64 terminationGracePeriodSeconds = 4;
  map<string, string> nodeSelector = 7; optional string nodeName = 10; optional bool hostNetwork = 11;
  repeated Container initContainers = 20; map<string, Quantity> overhead = 32;
  optional ResourceRequirements resources = 40;
}
message PodStatus { optional string phase = 1; optional string message = 3; optional string podIP = 6; }
message Pod { optional ObjectMeta metadata = 1; optional PodSpec spec = 2; optional PodStatus status = 3; }
message Taint { optional string key = 1; optional string value = 2; optional string effect = 3; optional Time timeAdded = 4; }
message NodeSpec {
  optional string podCIDR = 1; optional string providerID = 3; optional bool unschedulable = 4; repeated Taint taints = 5;
}
message NodeCondition {
  optional string type = 1; optional string status = 2; optional Time lastHeartbeatTime = 3;
  optional Time lastTransitionTime = 4; optional string reason = 5; optional string message = 6;
}
message NodeAddress { optional string type = 1; optional string address = 2; }
message NodeSystemInfo {
  optional string machineID = 1; optional string kernelVersion = 4; optional string osImage = 5;
  optional string containerRuntimeVersion = 6; optional string kubeletVersion = 7; optional string operatingSystem = 9;
  optional string architecture = 10;
}
message ContainerImage { repeated string names = 1; optional int64 sizeBytes = 2; }
message AttachedVolume { optional string name = 1; optional string devicePath = 2; }
message NodeStatus {
  map<string, Quantity> capacity = 1; map<string, Quantity> allocatable = 2; optional string phase = 3;
  repeated NodeCondition conditions = 4; repeated NodeAddress addresses = 5; optional NodeSystemInfo nodeInfo = 7;
  repeated ContainerImage images = 8; repeated string volumesInUse = 9; repeated AttachedVolume volumesAttached = 10;
}
message Node { optional ObjectMeta metadata = 1; optional NodeSpec spec = 2; optional NodeStatus status = 3; }
message NamespaceStatus { optional string phase = 1; }
message Namespace { optional ObjectMeta metadata = 1; optional NamespaceStatus status = 3; }
message DeploymentSpec { optional int32 replicas = 1; optional int32 minReadySeconds = 5; optional bool paused = 7; }
message DeploymentStatus {
  optional int64 observedGeneration = 1; optional int32 replicas = 2; optional int32 updatedReplicas = 3;
  optional int32 availableReplicas = 4; optional int32 unavailableReplicas = 5; optional int32 readyReplicas = 7;
}
message Deployment {
  optional ObjectMeta metadata = 1; optional DeploymentSpec spec = 2; optional DeploymentStatus status = 3;
}
message PodList { optional ListMeta metadata = 1; repeated Pod items = 2; }
message StatusDetails { optional string name = 1; optional int32 retryAfterSeconds = 5; }
message Status {
  optional ListMeta metadata = 1; optional string status = 2; optional string message = 3; optional string reason = 4;
  optional StatusDetails details = 5; optional int32 code = 6;
}
message TypeMeta { optional string apiVersion = 1; optional string kind = 2; }
message Unknown { optional TypeMeta typeMeta = 1; optional bytes raw = 2; optional string contentEncoding = 3; optional string contentType = 4; }
message RawExtension { optional bytes raw = 1; }
message WatchEvent { optional string type = 1; optional RawExtension object = 2; }
`,
  { keepCase: true },
)

const TIMES = new Set([
  'creationTimestamp',
  'deletionTimestamp',
  'timeAdded',
  'lastHeartbeatTime',
  'lastTransitionTime',
])
const QUANTITY_MAPS = new Set(['requests', 'limits', 'overhead', 'capacity', 'allocatable'])

/** The message form of a JSON object: times as seconds, quantities as messages. */
function toMessage(value: unknown, key = ''): unknown {
  if (typeof value === 'string' && TIMES.has(key)) return { seconds: Date.parse(value) / 1000, nanos: 0 }
  if (Array.isArray(value)) return value.map((item) => toMessage(item))
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value)
  if (QUANTITY_MAPS.has(key)) return Object.fromEntries(entries.map(([name, text]) => [name, { string: text }]))
  return Object.fromEntries(entries.map(([name, field]) => [name, toMessage(field, name)]))
}

function encode(type: string, value: unknown): Uint8Array {
  const message = root.lookupType(type)
  return message.encode(message.fromObject(toMessage(value) as Record<string, unknown>)).finish()
}

function envelope(kind: string, raw: Uint8Array): Uint8Array {
  const unknown = root.lookupType('Unknown').encode({ typeMeta: { apiVersion: 'v1', kind }, raw, contentType: '' })
  return Buffer.concat([Buffer.from('k8s\0'), unknown.finish()])
}

const text = fc.oneof(
  fc.string({ maxLength: 30 }),
  fc.string({ unit: 'grapheme', maxLength: 120 }),
  fc.constantFrom('Running', 'default', 'node-1', 'ünï', '日本', '😀'),
)
const quantity = fc.constantFrom('100m', '1', '0', '128Mi', '1536Mi', '1Gi', '129e6', '2', '250m')
const key = fc.string({ minLength: 1, maxLength: 20 }).filter((name) => name !== '__proto__')
const textMap = fc.dictionary(key, text, { maxKeys: 4 })
const resourceName = fc.constantFrom('cpu', 'memory', 'ephemeral-storage', 'pods', 'example.com/gpu')
const amounts = fc.dictionary(resourceName, quantity, { maxKeys: 5 })
const instant = fc
  .integer({ min: -62_000_000_000, max: 253_000_000_000 })
  .map((seconds) => new Date(seconds * 1000).toISOString().replace('.000Z', 'Z'))
const count = fc.integer({ min: 0, max: 0x7fffffff })
const some = <T>(model: { [K in keyof T]: fc.Arbitrary<T[K]> }) => fc.record(model, { requiredKeys: [] })

const metadata = some({
  name: text,
  generateName: text,
  namespace: text,
  uid: text,
  resourceVersion: text,
  generation: fc.maxSafeNat(),
  creationTimestamp: instant,
  deletionTimestamp: instant,
  deletionGracePeriodSeconds: fc.maxSafeNat(),
  labels: textMap,
  annotations: textMap,
  ownerReferences: fc.array(some({ kind: text, name: text, uid: text }), { maxLength: 2 }),
  finalizers: fc.array(text, { maxLength: 2 }),
})
const requirements = some({ limits: amounts, requests: amounts })
const container = some({
  name: text,
  image: text,
  command: fc.array(text, { maxLength: 3 }),
  resources: requirements,
  stdin: fc.boolean(),
  restartPolicy: fc.constantFrom('Always', 'Never'),
})
const pod = some({
  metadata,
  spec: some({
    containers: fc.array(container, { maxLength: 4 }),
    restartPolicy: text,
    terminationGracePeriodSeconds: fc.maxSafeInteger(),
    nodeSelector: textMap,
    nodeName: text,
    hostNetwork: fc.boolean(),
    initContainers: fc.array(container, { maxLength: 3 }),
    overhead: amounts,
    resources: requirements,
  }),
  status: some({ phase: text, message: text, podIP: text }),
})
const node = some({
  metadata,
  spec: some({
    podCIDR: text,
    providerID: text,
    unschedulable: fc.boolean(),
    taints: fc.array(some({ key: text, value: text, effect: text, timeAdded: instant }), { maxLength: 3 }),
  }),
  status: some({
    capacity: amounts,
    allocatable: amounts,
    phase: text,
    conditions: fc.array(
      some({
        type: text,
        status: text,
        lastHeartbeatTime: instant,
        lastTransitionTime: instant,
        reason: text,
        message: text,
      }),
      { maxLength: 4 },
    ),
    addresses: fc.array(some({ type: text, address: text }), { maxLength: 4 }),
    nodeInfo: some({
      machineID: text,
      kernelVersion: text,
      osImage: text,
      containerRuntimeVersion: text,
      kubeletVersion: text,
      operatingSystem: text,
      architecture: text,
    }),
    images: fc.array(some({ names: fc.array(text, { maxLength: 2 }), sizeBytes: fc.maxSafeNat() }), { maxLength: 3 }),
    volumesInUse: fc.array(text, { maxLength: 2 }),
    volumesAttached: fc.array(some({ name: text, devicePath: text }), { maxLength: 3 }),
  }),
})
const namespace = some({ metadata, status: some({ phase: text }) })
const deployment = some({
  metadata,
  spec: some({ replicas: count, minReadySeconds: count, paused: fc.boolean() }),
  status: some({
    observedGeneration: fc.maxSafeNat(),
    replicas: count,
    updatedReplicas: count,
    availableReplicas: count,
    unavailableReplicas: count,
    readyReplicas: count,
  }),
})

/** As those do who take them: objects first, facts of them then. */
const factsOf = (resource: Resource, take: (object: KubeObject) => unknown): Resource<unknown> => ({
  ...resource,
  fromJson: take,
  fromProtobuf: (bytes) => take(resource.fromProtobuf?.(bytes) as KubeObject),
})
const podsAsFacts = factsOf(pods, podFacts)
const deploymentsAsFacts = factsOf(deployments, deploymentFacts)

const kinds: [string, Resource<unknown>, fc.Arbitrary<unknown>][] = [
  ['Pod', podsAsFacts, pod],
  ['Node', nodes, node],
  ['Namespace', namespaces, namespace],
  ['Deployment', deploymentsAsFacts, deployment],
]

describe('facts', () => {
  it.each(kinds)('of any %s are the same from JSON and from protobuf', (kind, resource, objects) => {
    fc.assert(
      fc.property(objects, (object) => {
        const fromJson = resource.fromJson?.(object as KubeObject)
        expect(resource.fromProtobuf?.(encode(kind, object))).toEqual(fromJson)
      }),
      { numRuns: 400 },
    )
  })

  it('take the default of the API for replicas nobody wrote', () => {
    expect(deploymentsAsFacts.fromJson?.({ metadata: { name: 'a' } })).toMatchObject({ replicas: 1 })
    expect(deploymentsAsFacts.fromProtobuf?.(encode('Deployment', { spec: { replicas: 0 } }))).toMatchObject({
      replicas: 0,
    })
  })

  it.each(kinds)('of a %s do not fail on JSON of the wrong shape', (_, resource) => {
    fc.assert(
      fc.property(fc.record({ metadata: fc.jsonValue(), spec: fc.jsonValue(), status: fc.jsonValue() }), (object) => {
        resource.fromJson?.(object as unknown as KubeObject)
      }),
    )
  })

  it.each(kinds)('of a %s refuse broken protobuf with a KubeError, and never hang', (_, resource, objects) => {
    const bytes = fc.oneof(
      fc.uint8Array({ maxLength: 200 }),
      fc.tuple(objects, fc.nat(), fc.nat(255)).map(([object, at, byte]) => {
        const good = Buffer.from(encode(resource.kind, object))
        if (good.length > 0) good[at % good.length] = byte
        return good
      }),
    )
    fc.assert(
      fc.property(bytes, (broken) => {
        try {
          resource.fromProtobuf?.(broken)
        } catch (error) {
          expect(isKubeError(error, 'protocol'), String(error)).toBe(true)
        }
      }),
      { numRuns: 500 },
    )
  })
})

describe('ProtoReader', () => {
  it('reads any integer as it was written', () => {
    fc.assert(
      fc.property(fc.maxSafeInteger(), (seconds) => {
        const reader = new ProtoReader(root.lookupType('Time').encode({ seconds }).finish())
        expect(reader.tag()).toBe(8)
        expect(reader.int64()).toBe(seconds)
        expect(reader.tag()).toBe(0)
      }),
    )
  })

  it('gives the same string for shared texts whatever they are', () => {
    fc.assert(
      fc.property(fc.array(text, { maxLength: 50 }), (names) => {
        const meta = root.lookupType('ObjectMeta')
        for (const finalizer of names) {
          const reader = new ProtoReader(meta.encode({ finalizers: [finalizer] }).finish())
          reader.tag()
          expect(reader.shared()).toBe(finalizer)
        }
      }),
    )
  })
})

describe('envelopes', () => {
  const list = fc.record({
    items: fc.array(pod, { maxLength: 5 }),
    resourceVersion: text,
    next: text,
    remaining: fc.maxSafeNat(),
  })
  const pageOf = ({
    items,
    resourceVersion,
    next,
    remaining,
  }: typeof list extends fc.Arbitrary<infer L> ? L : never) => {
    const metadata = { resourceVersion, continue: next, remainingItemCount: remaining }
    return Buffer.from(envelope('PodList', encode('PodList', { metadata, items })))
  }
  const decoder = (read = (bytes: Uint8Array) => podsAsFacts.fromProtobuf?.(bytes)) => new ListDecoder(read)

  it('give back every item of a list, its version and the rest of the paging, wherever the bytes are cut', () => {
    fc.assert(
      fc.property(list, fc.array(fc.nat({ max: 300 }), { maxLength: 8 }), (given, sizes) => {
        const page = pageOf(given)
        const reading = decoder()
        const used = Buffer.alloc(page.length)
        let at = 0
        for (const size of [...sizes, ...sizes, page.length]) {
          // As a connection does: what was pushed is overwritten afterwards.
          const chunk = used.subarray(0, page.copy(used, 0, at, at + size))
          reading.push(chunk)
          chunk.fill(0xff)
          at += chunk.length
        }
        const { items, ...meta } = given
        expect(reading.end()).toEqual({ ...meta, items: items.map((item) => podFacts(item as KubeObject)) })
      }),
      { numRuns: 100 },
    )
  })

  it('say of a list that is cut off that it is broken, wherever that is', () => {
    fc.assert(
      fc.property(list, fc.nat(), (given, cut) => {
        const page = pageOf(given)
        const reading = decoder()
        reading.push(page.subarray(0, cut % page.length))
        // After the list's own message come fields of the envelope alone.
        const isWhole = cut % page.length >= page.length - 2
        if (isWhole) return
        expect(() => reading.end()).toThrow(expect.objectContaining({ reason: 'protocol' }))
      }),
      { numRuns: 100 },
    )
  })

  it('have each item of a list read as soon as its last byte is there', () => {
    const items = Array.from({ length: 50 }, (_, i) => ({ metadata: { name: `pod-${i}` } }))
    const page = pageOf({ items, resourceVersion: '1', next: '', remaining: 0 } as never)
    let read = 0
    const reading = decoder(() => void read++)
    reading.push(page.subarray(0, page.length / 2))
    expect(read).toBeGreaterThan(20)
    reading.push(page.subarray(page.length / 2))
    expect(reading.end().items).toHaveLength(50)
  })

  it('never take more memory for a list because its bytes say that something large comes', () => {
    const reading = decoder()
    // An envelope whose list is one object of 4 GiB.
    reading.push(Buffer.from([0x6b, 0x38, 0x73, 0, 18, 0xff, 0xff, 0xff, 0xff, 15, 18, 0xf0, 0xff, 0xff, 0xff, 15, 10]))
    const before = process.memoryUsage().arrayBuffers
    reading.push(Buffer.alloc(64 * 1024))
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(2 ** 20)
    expect(() => reading.end()).toThrow(/cut off/)
  })

  it('refuse whatever else comes, in bytes of any kind', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), fc.boolean(), (bytes, isMarked) => {
        const reading = decoder(() => undefined)
        if (isMarked) reading.push(Buffer.from('k8s\0'))
        reading.push(Buffer.from(bytes))
        try {
          reading.end()
        } catch (error) {
          expect(error).toMatchObject({ reason: 'protocol' })
        }
      }),
    )
  })

  it('carry the events of a watch', () => {
    const raw = envelope('Pod', encode('Pod', { metadata: { name: 'a', resourceVersion: '42' } }))
    const event = readWatchFrame(root.lookupType('WatchEvent').encode({ type: 'ADDED', object: { raw } }).finish())
    expect(event.type).toBe('ADDED')
    expect(readResourceVersion(event.raw)).toBe('42')
    expect(pods.fromProtobuf?.(event.raw)).toMatchObject({ metadata: { name: 'a' } })
  })

  it('carry what the API says of a failure', () => {
    const failure = { message: 'too many', reason: 'TooManyRequests', code: 429, details: { retryAfterSeconds: 3 } }
    expect(readStatus(encode('Status', failure))).toEqual({ kind: 'Status', ...failure })
  })

  it('are refused without the mark of Kubernetes', () => {
    expect(() => unwrap(Buffer.from('<html>'))).toThrow(/mark of Kubernetes/)
  })
})
