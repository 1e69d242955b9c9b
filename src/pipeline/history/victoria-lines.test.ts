import { describe, expect, it } from 'vitest'
import { aGroup, aSet, lost } from './testing/sets.ts'
import { formatValue, linesOf } from './victoria-lines.ts'

describe('linesOf', () => {
  it('writes the documented lines, one thing after the other, values not known left out', () => {
    const samples = aSet(1_700_000_000_000, [
      aGroup('cluster', {
        nodes_total: { '': 3 },
        cpu_capacity: { '': 8 },
        memory_capacity_bytes: { '': 64_000_000_000 },
      }),
      aGroup('node', { cpu_usage_percent: { n1: 12.5, n2: Number.NaN }, pods_total: { n1: 10, n2: 1_000_000 } }),
      aGroup('operator', { installed: { 'op.v1': 1 } }),
      aGroup('custom', { bytes: { 'ns/x': 64_000_000_000 } }),
    ])
    expect([...linesOf({ kind: 'samples', samples })].map(({ text }) => text)).toEqual([
      'clusterpulse_cluster_nodes_total{cluster="west"} 3 1700000000000',
      'clusterpulse_cluster_cpu_capacity{cluster="west"} 8 1700000000000',
      'clusterpulse_cluster_memory_capacity_bytes{cluster="west"} 64000000000 1700000000000',
      'clusterpulse_node_cpu_usage_percent{cluster="west",node="n1"} 12.5 1700000000000',
      'clusterpulse_node_pods_total{cluster="west",node="n1"} 10 1700000000000',
      'clusterpulse_node_pods_total{cluster="west",node="n2"} 1000000 1700000000000',
      'clusterpulse_operator_installed{cluster="west",operator="op.v1"} 1 1700000000000',
      'clusterpulse_custom_resource_bytes{cluster="west",source="ns/x"} 6.4e+10 1700000000000',
      'clusterpulse_batch_pulled{cluster="west"} 1 1700000000000',
    ])
  })

  it('escapes label values', () => {
    const samples = aSet(1, [aGroup('custom', { x: { 'a"b\\c\nd': 1 } })])
    const [first] = linesOf({ kind: 'samples', samples })
    expect(first?.text).toBe('clusterpulse_custom_resource_x{cluster="west",source="a\\"b\\\\c\\nd"} 1 1')
  })

  it('tells a loss by its number of batches and its length, at its beginning', () => {
    expect([...linesOf(lost(1000, 4000))].map(({ text }) => text)).toEqual([
      'clusterpulse_batch_lost{cluster="west",cause="dropped"} 2 1000',
      'clusterpulse_batch_lost_ms{cluster="west",cause="dropped"} 3000 1000',
    ])
  })
})

describe('formatValue', () => {
  it.each([
    [8, 'cores', '8'],
    [0.25, 'cores', '0.25'],
    [1e9, 'cores', '1e+09'],
    [6.4e10, undefined, '6.4e+10'],
    [999_999, undefined, '999999'],
    [1_234_567.5, undefined, '1.2345675e+06'],
    [0.0001, undefined, '0.0001'],
    [0.00001234, undefined, '1.234e-05'],
    [1e-200, undefined, '1e-200'],
    [-2_000_000, undefined, '-2e+06'],
    [0, undefined, '0'],
    [64_000_000_000, 'bytes', '64000000000'],
    [1_000_000, 'count', '1000000'],
  ] as const)('writes %d %s as %s', (value, unit, text) => expect(formatValue(value, unit)).toBe(text))
})
