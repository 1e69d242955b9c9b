import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type MetricScope, metricPrefix, metricsCatalogue, parseClusterName, type SampleSet } from '#model'
import { decodeSamples, encodeSamples, InvalidSamplesError } from './encoding.ts'
import { aGroup, aSet, pods } from './testing/sets.ts'

const catalogueNames = metricsCatalogue.map(({ scope, name }) => metricPrefix[scope] + name)
const scopes: readonly MetricScope[] = ['cluster', 'node', 'operator', 'clusterOperator', 'custom']

const values = fc.oneof(
  fc.double(),
  fc.integer(),
  fc.constantFrom(Number.NaN, -0, 0, Number.MAX_SAFE_INTEGER, 2 ** 53, 2 ** 51, -(2 ** 51), Number.POSITIVE_INFINITY),
  fc.integer({ min: -10_000, max: 10_000 }).map((n) => n / 1000),
)
const anyGroup = fc
  .record({
    scope: fc.constantFrom(...scopes),
    keys: fc.array(fc.string({ unit: 'grapheme', maxLength: 12 }), { maxLength: 6 }),
  })
  .chain(({ scope, keys }) =>
    fc.record({
      scope: fc.constant(scope),
      keys: fc.constant(keys),
      columns: fc.array(
        fc.record({
          metric: fc.oneof(fc.constantFrom(...catalogueNames), fc.string({ unit: 'grapheme', maxLength: 30 })),
          values: fc
            .oneof(
              fc.array(values, { minLength: keys.length, maxLength: keys.length }),
              values.map((value) => keys.map(() => value)),
            )
            .map((list) => Float64Array.from(list)),
        }),
        { maxLength: 6 },
      ),
    }),
  )
const anySet: fc.Arbitrary<SampleSet> = fc.record(
  {
    cluster: fc.constantFrom('west', 'a.b-c', 'x'.repeat(253)).map(parseClusterName),
    at: fc.oneof(fc.integer({ min: 0, max: 2 ** 42 }), fc.double({ noNaN: true })),
    source: fc.constantFrom('pull', 'push'),
    repaired: fc.boolean(),
    groups: fc.array(anyGroup, { maxLength: 4 }),
    simulated: fc.constant(true as const),
  },
  { requiredKeys: ['cluster', 'at', 'source', 'repaired', 'groups'] },
)

describe('encodeSamples and decodeSamples', () => {
  it('give any set back to the bit', () =>
    fc.assert(
      fc.property(anySet, (set) => {
        expect(decodeSamples(encodeSamples(set))).toEqual(set)
      }),
      { numRuns: 500 },
    ))

  it('refuse any other bytes, and never take more memory than they are worth', () =>
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        try {
          decodeSamples(bytes)
        } catch (error) {
          expect(error).toBeInstanceOf(InvalidSamplesError)
        }
      }),
      { numRuns: 2000 },
    ))

  it('refuse or read bytes with one changed, and nothing else', () =>
    fc.assert(
      fc.property(anySet, fc.nat(), fc.nat({ max: 255 }), (set, place, value) => {
        const bytes = encodeSamples(set)
        bytes[place % bytes.length] = value
        try {
          decodeSamples(bytes)
        } catch (error) {
          expect(error).toBeInstanceOf(InvalidSamplesError)
        }
      }),
      { numRuns: 500 },
    ))

  it('refuse bytes that are cut off anywhere, or followed by more', () => {
    const record = pods(1000, 5)
    const bytes = encodeSamples(record.kind === 'samples' ? record.samples : aSet(0, []))
    for (let length = 0; length < bytes.length; length++) {
      expect(() => decodeSamples(bytes.subarray(0, length))).toThrow(InvalidSamplesError)
    }
    expect(() => decodeSamples(Buffer.concat([bytes, Buffer.from([0])]))).toThrow(InvalidSamplesError)
  })

  it('refuse a few bytes that claim to be millions of values', () => {
    const head = encodeSamples(aSet(0, [])).subarray(0, -1)
    // One group of nodes, 100 000 keys of no letters, 100 000 columns.
    const claim = [1, 1, 0xa0, 0x8d, 0x06, ...new Array<number>(100_000).fill(0), 0xa0, 0x8d, 0x06]
    const bytes = Buffer.concat([head, Buffer.from(claim), Buffer.alloc(100_000)])
    expect(() => decodeSamples(bytes)).toThrow(/values/)
  })

  it('refuse to write a column that does not fit its keys', () => {
    const [group] = [aGroup('node', { ready: { n1: 1 } })]
    const broken = aSet(0, [{ ...group, keys: ['n1', 'n2'] }])
    expect(() => encodeSamples(broken)).toThrow(InvalidSamplesError)
  })

  it('know every metric of the catalogue by number, the same number for ever', () => {
    const size = (metric: string): number =>
      encodeSamples(aSet(0, [{ scope: 'node', keys: [], columns: [{ metric, values: new Float64Array() }] }])).length
    for (const name of catalogueNames) expect(size(name), name).toBeLessThanOrEqual(size('x'))
    // Written by the first version: a change here makes the logs of old hubs unreadable.
    const first = 'AQR3ZXN0AAAAAAAAWUADAgABAAIBAgUFAgMBAgJuMQJuMgIWAgcAJwIDAQ=='
    expect(encodeSamples(oldSet).toString('base64')).toBe(first)
    expect(decodeSamples(Buffer.from(first, 'base64'))).toStrictEqual(oldSet)
  })

  it('take about 3 bytes per number of usual nodes', () => {
    const random = (scale: number) => Math.round(Math.random() * scale)
    const nodes = Array.from({ length: 50 }, (_, i) => `worker-${i}`)
    const column = (value: () => number) => Object.fromEntries(nodes.map((node) => [node, value()]))
    const group = aGroup('node', {
      cpu_usage_percent: column(() => Math.random() * 100),
      memory_usage_percent: column(() => Math.random() * 100),
      pods_total: column(() => random(110)),
      pods_running: column(() => random(110)),
      cpu_capacity: column(() => 8),
      memory_capacity_bytes: column(() => 33_000_000_000),
      cpu_allocatable: column(() => 7.91),
      cpu_requested: column(() => random(8000) / 1000),
      memory_requested_bytes: column(() => random(30_000) * 2 ** 20),
      pods_capacity: column(() => 110),
      pods_pending: column(() => random(2)),
      ready: column(() => 1),
    })
    expect(encodeSamples(aSet(1_700_000_000_000, [group])).length / (50 * 12)).toBeLessThan(3.5)
  })
})

const oldSet = aSet(
  100,
  [
    aGroup('cluster', { nodes_total: { '': 2 }, cpu_capacity: { '': 1 } }),
    aGroup('node', { pods_total: { n1: 3 }, ready: { n1: 1, n2: 0 } }),
  ],
  { source: 'push', repaired: true },
)
