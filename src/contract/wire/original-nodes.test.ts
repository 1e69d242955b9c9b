import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Batch, type NodeSnapshot, parseClusterName } from '#model'
import { all } from '../../../test/properties.ts'
import { decodeRequest, encodeRequest } from './envelopes.ts'
import { MetricsBatchSchema } from './generated/clusterpulse/collector/v1/collector_pb.ts'
import { batchFromOriginal } from './original.ts'
import { readOriginal } from './original-nodes.ts'

const head = { cluster: parseClusterName('west'), origin: 'original', sequence: 9, collectedAt: 1_760_000_000_000 }
type Init = MessageInitShape<typeof MetricsBatchSchema>
type Node = NonNullable<Init['nodeMetrics']>[number]

const requestOf = (value: Init) =>
  encodeRequest({ payload: { case: 'metrics', value: create(MetricsBatchSchema, value) } })

type Outcome = Batch | string

/** A batch, or why there is none. */
function outcomeOf(make: () => Batch): Outcome {
  try {
    return make()
  } catch (error) {
    return String(error)
  }
}

/** What comes of the bytes by the general decoder. */
const slowly = (bytes: Uint8Array): Outcome =>
  outcomeOf(() => {
    const { payload } = decodeRequest(bytes)
    if (payload.case !== 'metrics') throw new Error('no batch')
    return batchFromOriginal(payload.value, head)
  })

function nodesOf(batch: Outcome): readonly NodeSnapshot[] {
  const part = typeof batch === 'string' ? undefined : batch.parts.find(({ type }) => type === 'node')
  return part?.outcome === 'complete' ? (part.items as readonly NodeSnapshot[]) : []
}

/** Both ways must agree; the fast one may pass. @returns whether it did not */
function expectSame(bytes: Uint8Array, known: readonly NodeSnapshot[]): boolean {
  const read = readOriginal(bytes, known)
  if (!read) return false
  const quick = outcomeOf(() => batchFromOriginal(read.metrics, head, undefined, read.nodes))
  expect(quick).toEqual(slowly(bytes))
  return true
}

const text = fc.oneof(fc.constantFrom('', 'a', 'b', 'worker', 'ü', '__proto__', '1'), fc.string({ maxLength: 8 }))
const count = fc.oneof(fc.nat(300), fc.integer({ min: -2, max: 2 ** 31 - 1 }))
const long = fc.oneof(fc.constantFrom(0n, 1n, -1n, 2n ** 53n, 2n ** 62n), fc.bigInt({ min: 0n, max: 2n ** 40n }))
const double = fc.oneof(fc.constantFrom(0, 1.5, -1, Number.NaN, Number.POSITIVE_INFINITY), fc.double())
const optional = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined, freq: 3 })
const nodes: fc.Arbitrary<Node> = fc
  .record({
    name: fc.oneof({ weight: 9, arbitrary: fc.stringMatching(/^n[0-9]{1,2}$/) }, { weight: 1, arbitrary: text }),
    status: optional(fc.constantFrom('Ready', 'NotReady', 'SchedulingDisabled', 'Unknown', 'Sleeping')),
    roles: optional(fc.array(text, { maxLength: 3 })),
    cpuCapacity: optional(double),
    memoryCapacity: optional(long),
    storageCapacity: optional(long),
    podsCapacity: optional(count),
    cpuAllocatable: optional(double),
    memoryAllocatable: optional(long),
    storageAllocatable: optional(long),
    podsAllocatable: optional(count),
    cpuRequested: optional(fc.oneof({ weight: 9, arbitrary: fc.nat(64) }, { weight: 1, arbitrary: double })),
    memoryRequested: optional(fc.bigInt({ min: 0n, max: 2n ** 40n })),
    cpuUsagePercent: optional(double),
    podsRunning: optional(fc.nat(9)),
    podsTotal: optional(fc.nat(99)),
    podsSucceeded: optional(fc.nat(99)),
    kernelVersion: optional(text),
    osImage: optional(text),
    architecture: optional(fc.constant('amd64')),
    labels: optional(fc.dictionary(text, text, { maxKeys: 4 })),
    internalIp: optional(text),
    hostname: optional(text),
  })
  .map((node) => Object.fromEntries(Object.entries(node).filter(([, value]) => value !== undefined)) as Node)
const batches: fc.Arbitrary<Init> = fc.record({
  clusterName: fc.constant('west'),
  batchId: text,
  clusterMetrics: fc.constantFrom({}, { nodes: 2, namespaceList: ['a', 'b'], deployments: 4 }),
  nodeMetrics: fc.array(nodes, { maxLength: 6 }),
  operators: fc.array(fc.record({ name: text, installedNamespace: text }), { maxLength: 2 }),
})
const usual = (node: string, more: Node = {}): Node => ({
  name: node,
  status: 'Ready',
  roles: ['worker'],
  cpuCapacity: 4,
  memoryCapacity: 8n,
  podsCapacity: 110,
  cpuRequested: 1,
  memoryRequested: 5n,
  podsTotal: 7,
  podsRunning: 6,
  kernelVersion: '5.14',
  labels: { 'kubernetes.io/hostname': node, zone: 'a' },
  hostname: node,
  ...more,
})
const usualBytes = (more: Node = {}) =>
  requestOf({
    clusterName: 'west',
    batchId: '1',
    clusterMetrics: { nodes: 2 },
    nodeMetrics: [usual('a'), usual('b', more)],
  })

describe('nodes of the original, read from the bytes', () => {
  it('are what the general decoder makes of them, whatever they say and whatever was known', () => {
    let quick = 0
    fc.assert(
      fc.property(batches, batches, (first, second) => {
        const before = nodesOf(slowly(requestOf(first)))
        for (const known of [[], before]) if (expectSame(requestOf(second), known)) quick++
      }),
      all({ numRuns: 1_000 }),
    )
    expect(quick).toBeGreaterThan(50)
  })

  it('are the same when anything in the bytes is damaged, or are left to the general decoder', () => {
    const known = nodesOf(slowly(usualBytes()))
    let quick = 0
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.nat(10_000), fc.nat(255), fc.constantFrom('set', 'put', 'cut')), {
          minLength: 1,
          maxLength: 4,
        }),
        (edits) => {
          let bytes = [...usualBytes({ labels: { x: 'y' } })]
          for (const [at, value, how] of edits) {
            const place = at % bytes.length
            if (how === 'set') bytes[place] = value
            else if (how === 'put') bytes.splice(place, 0, value)
            else bytes = bytes.toSpliced(place, 1)
          }
          if (expectSame(Uint8Array.from(bytes), known)) quick++
        },
      ),
      all({ numRuns: 5_000 }),
    )
    expect(quick).toBeGreaterThan(100)
  })

  it('are read so when a collector writes them as it does', () => {
    expect(readOriginal(usualBytes())?.nodes).toEqual(nodesOf(slowly(usualBytes())))
  })

  it('are the very objects of before where nothing moved, and share what did not', () => {
    const before = readOriginal(usualBytes())!.nodes
    const [a, b] = readOriginal(usualBytes({ cpuRequested: 2 }), before)!.nodes
    expect(a).toBe(before[0])
    expect(b).not.toBe(before[1])
    expect(b?.labels).toBe(before[1]?.labels)
    expect(b?.capacity).toBe(before[1]?.capacity)
    expect(b?.requested).toEqual({ cpuCores: 2, memoryBytes: 5 })
  })

  it('are known in another order, with their labels in another order', () => {
    const before = readOriginal(usualBytes())!.nodes
    const turned = [usual('b', { labels: { zone: 'a', 'kubernetes.io/hostname': 'b' } }), usual('a')]
    const nodes = readOriginal(requestOf({ nodeMetrics: turned }), before)!.nodes
    expect(nodes[0]).toBe(before[1])
    expect(nodes[1]).toBe(before[0])
  })

  it('lose a label that is gone, even where another comes twice', () => {
    const before = readOriginal(usualBytes())!.nodes
    const one = toBinary(
      MetricsBatchSchema,
      create(MetricsBatchSchema, { nodeMetrics: [{ name: 'a', labels: { zone: 'a' } }] }),
    )
    const entry = one.subarray(5)
    const node = Buffer.concat([one.subarray(2), entry])
    const batch = Buffer.concat([Buffer.from([0x2a, node.length]), node])
    const bytes = Buffer.concat([Buffer.from([0x0a, batch.length]), batch])
    expect(expectSame(bytes, before)).toBe(true)
    expect(readOriginal(bytes, before)?.nodes[0]?.labels).toEqual({ zone: 'a' })
  })

  it.each([
    ['a node without a name', { nodeMetrics: [{ name: '' }] }],
    ['a request that is no number', { nodeMetrics: [{ name: 'a', cpuRequested: Number.NaN }] }],
    ['fewer than no pods', { nodeMetrics: [{ name: 'a', podsTotal: -1 }] }],
    ['a name that comes twice', { nodeMetrics: [{ name: 'a' }, { name: 'a', hostname: 'x' }] }],
    ['a text beyond ASCII', { nodeMetrics: [{ name: 'a', osImage: 'Größe' }] }],
  ] satisfies [string, Init][])('are left to the general decoder with %s', (_, batch) => {
    expect(readOriginal(requestOf(batch))).toBeUndefined()
  })

  it('of a newer collector are read without what is new in them', () => {
    const node = toBinary(MetricsBatchSchema, create(MetricsBatchSchema, { nodeMetrics: [{ name: 'a' }] })).subarray(2)
    const more = Buffer.concat([node, Buffer.from([0x98, 0x06, 7, 0x9a, 0x06, 1, 7])])
    const batch = Buffer.concat([Buffer.from([0x2a, more.length]), more])
    expect(expectSame(Buffer.concat([Buffer.from([0x0a, batch.length]), batch]), [])).toBe(true)
  })
})
