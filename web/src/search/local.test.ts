import { describe, expect, it } from 'vitest'
import { aCluster } from '../../testing/worlds.ts'
import { isNear, localHits, mergeHits } from './local.ts'

const clusters = [
  aCluster('eu-prod-1', 0, { displayName: 'Europe production' }),
  aCluster('prod-us', 0),
  aCluster('lab', 0, { labels: { env: 'prod' } }),
].map(({ view }) => view)
const names = (text: string) => localHits(clusters, text, 5).map(({ name }) => name)

describe('localHits', () => {
  it('puts names that begin with the text first, then names that hold it, then labels', () => {
    expect(names('prod')).toEqual(['prod-us', 'eu-prod-1', 'lab'])
  })
  it('wants every word, in any order', () => expect(names('prod eu')).toEqual(['eu-prod-1', 'prod-us']))
  it('forgives one slip of the finger', () => {
    expect(names('europpe')).toEqual(['eu-prod-1'])
    expect(isNear('prodcution', 'production')).toBe(true)
    expect(isNear('prodc', 'production')).toBe(false)
  })
})

describe('mergeHits', () => {
  it('shows a hit once, and drops what no longer fits the text', () => {
    const near = localHits(clusters, 'lab', 5)
    const node = { kind: 'node', cluster: 'lab', name: 'n1', detail: '', health: 'healthy' } as const
    expect(mergeHits(near, [...near, node], 'lab')).toHaveLength(2)
    expect(mergeHits([], [node], 'zebra')).toEqual([])
  })
})
