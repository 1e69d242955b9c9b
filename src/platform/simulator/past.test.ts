import { describe, expect, it } from 'vitest'
import { minutes } from '#model'
import { aNode } from '../../pipeline/state/test/fleet-words.ts'
import { Past } from './past.ts'
import { demandOf, usualDemand } from './rhythm.ts'

const HOUR = minutes(60)
const DAY = 24 * HOUR
// A Wednesday at noon, by UTC.
const known = Date.UTC(2026, 10, 18, 12)
const zones = ['a', 'b', 'c']
const nodes = ['1', '2', '3'].map((name, i) =>
  aNode(name, {
    used: { cpuCores: 2, memoryBytes: 4e9 },
    labels: { 'topology.kubernetes.io/zone': `east-1${zones[i]}` },
  }),
)
const cpuOf = (past: Past, at: number) => (past.at(at).node ?? []).map(({ used }) => used?.cpuCores ?? 0)

describe('the rhythm of demand', () => {
  it('is busier by day than by night, and on a working day than on a weekend', () => {
    const of = (day: number, hour: number) => usualDemand(Date.UTC(2026, 10, day, hour))
    expect(of(18, 15)).toBeGreaterThan(1.3 * of(18, 3))
    expect(of(18, 15)).toBeGreaterThan(1.2 * of(22, 15))
  })

  it('never jumps, at the edges of a weekend neither', () => {
    for (let at = known; at < known + 8 * DAY; at += minutes(5))
      expect(Math.abs(demandOf('shop', at + minutes(5)) - demandOf('shop', at))).toBeLessThan(0.02)
  })
})

describe('the past of a cluster', () => {
  it('ends as what is there now', () => {
    const past = new Past('west', { node: nodes }, known)
    expect(cpuOf(past, known)).toEqual([2, 2, 2])
    for (const cpu of cpuOf(past, known - 30_000)) expect(Math.abs(cpu - 2)).toBeLessThan(0.1)
  })

  it('has grown', () => {
    const past = new Past('west', { node: nodes }, known)
    const [then = 0] = cpuOf(past, known - 28 * DAY)
    expect(then).toBeLessThan(1.8)
    expect(past.at(known - 28 * DAY).node?.[0]?.requested?.cpuCores).toBeLessThan(nodes[0]?.requested?.cpuCores ?? 0)
  })

  it('lost a zone once: its nodes are silent, and the others carry what they did', () => {
    const past = new Past('prod-east', { node: nodes }, known)
    const dark = past.at(known - 9 * DAY + HOUR).node ?? []
    expect(dark.map(({ ready, used }) => [ready, used === null])).toEqual([
      ['ready', false],
      ['unknown', true],
      ['ready', false],
    ])
    const before = cpuOf(past, known - 9 * DAY - minutes(1))
    expect(dark[0]?.used?.cpuCores).toBeGreaterThan(1.2 * (before[0] ?? 0))
  })

  it('gives no node more than it has, and counts pods that add up', () => {
    const past = new Past(
      'gpu-lab',
      { node: nodes.map((node) => ({ ...node, used: { cpuCores: 3.9, memoryBytes: 14e9 } })) },
      known,
    )
    for (let ago = 0; ago < 30 * DAY; ago += 7 * HOUR)
      for (const { used, allocatable, requested, pods } of past.at(known - ago).node ?? []) {
        expect(used?.cpuCores).toBeLessThanOrEqual(allocatable.cpuCores ?? 0)
        expect(used?.memoryBytes).toBeLessThanOrEqual(allocatable.memoryBytes ?? 0)
        expect(requested?.cpuCores).toBeLessThanOrEqual(allocatable.cpuCores ?? 0)
        if (!pods) throw new Error('pods are known')
        expect(pods.total).toBe(pods.running + pods.pending + pods.failed + pods.succeeded + pods.unknown)
      }
  })
})
