import { describe, expect, it } from 'vitest'
import { aCluster } from '../../testing/worlds.ts'
import { localHits, mergeHits, needOfHit, pastOfHit } from './local.ts'
import { viewHits } from './views.ts'

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
    expect(names('eu-prdo-1')).toEqual(['eu-prod-1'])
    expect(names('pord-us')).toEqual(['prod-us'])
  })
})

describe('what is found on a cluster that is away', () => {
  const now = 10 * 60_000
  const { view } = aCluster('west', now, { ageMs: 120_000, health: 'unhealthy' })
  const away = { ...view, checkedAt: now }
  const node = { kind: 'node', cluster: 'west', name: 'worker-1', detail: 'worker', health: 'healthy' } as const
  it('is not told as well, but of when it was read', () => {
    expect([needOfHit(node, away, now), pastOfHit(node, away, now)]).toEqual(['stale', now - 120_000])
    expect(needOfHit({ ...node, health: 'degraded' }, away, now)).toBe('degraded')
    expect(needOfHit({ ...node, kind: 'cluster', health: 'unhealthy' }, away, now)).toBe('unhealthy')
  })
  it('is as it was found where it is current, and where nothing is known of the cluster', () => {
    const here = aCluster('west', now).view
    expect([needOfHit(node, here, now), pastOfHit(node, here, now)]).toEqual(['healthy', null])
    expect([needOfHit(node, undefined, now), pastOfHit(node, undefined, now)]).toEqual(['healthy', null])
  })
})

describe('a cluster that is called as it is typed', () => {
  it('hides those that a slip finds', () => {
    const two = [aCluster('prod-east', 0), aCluster('prod-west', 0)].map(({ view }) => view)
    expect(localHits(two, 'prod-west', 5).map(({ name }) => name)).toEqual(['prod-west'])
    expect(localHits(two, 'prod-wset', 5).map(({ name }) => name)).toContain('prod-west')
  })
})

describe('mergeHits', () => {
  const hit = (name: string) => ({ kind: 'node', cluster: 'lab', name, detail: '', health: 'healthy' }) as const
  const near = localHits(clusters, 'lab', 5)
  it('shows all that the hub answered for the text, in its order, although a hit does not tell why it was found', () => {
    const hits = [hit('worker-us-6'), hit('worker-eu-6'), ...near]
    expect(mergeHits(near, { text: 'europe lab-6', hits }, 'europe lab-6')).toEqual(hits)
  })
  it('shows a hit once, and drops what no longer fits while the hub is asked', () => {
    const far = { text: 'la', hits: [...near, hit('n1')] }
    expect(mergeHits(near, far, 'lab')).toHaveLength(2)
    expect(mergeHits([], far, 'zebra')).toEqual([])
  })
  it('shows clusters from here where the hub found nothing', () => {
    expect(mergeHits(near, { text: 'lab', hits: [] }, 'lab')).toEqual(near)
  })
})

describe('viewHits', () => {
  const views = (text: string) => viewHits(clusters, text, 0)
  it('finds pages of clusters, in any order and with slips', () => {
    const nodes = { kind: 'tab', cluster: 'prod-us', tab: 'nodes' }
    for (const text of ['prod-us nodes', 'nodes prod-us', 'prdo-us ndoes', 'prod-us nod'])
      expect(views(text), text).toContainEqual(nodes)
    expect(views('lab history')).toEqual([{ kind: 'tab', cluster: 'lab', tab: 'history' }])
  })
  it('finds the clusters of one health, and says how many there are', () => {
    expect(views('degraded')).toEqual([{ kind: 'need', need: 'degraded', count: '0 clusters' }])
    expect(views('heal')).toMatchObject([{ need: 'healthy' }])
    expect(views('unhealthy')).toMatchObject([{ need: 'unhealthy' }])
    expect(views('healthy')).toMatchObject([{ need: 'healthy' }])
  })
  it('finds nothing where no page is named', () => {
    for (const text of ['', 'n', 'prod', 'zebra nodes']) expect(views(text), text).toEqual([])
  })
})
