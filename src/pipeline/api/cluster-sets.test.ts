import { describe, expect, it } from 'vitest'
import { applyRows, noRows, type RowsMessage } from '#http'
import { CLUSTER_SET_LABEL } from '#model'
import { get } from './test/ask.ts'
import { aMember, SomeMembers } from './test/members.ts'
import { allow } from './test/policies.ts'
import { StreamReader } from './test/stream-reader.ts'
import { aNode, aWorld, complete, proxy } from './test/world.ts'

/** east and west are members, of which west is in `prod`; south is monitored only, and its label says `prod`. */
async function aFleet(policies: Parameters<typeof aWorld>[0] = {}) {
  const members = new SomeMembers([
    aMember('east', { sets: ['default', 'global'] }),
    aMember('west', { sets: ['global', 'prod'] }),
  ])
  members.setsBesides(['empty'])
  const world = await aWorld({ identity: proxy, ...policies }, { members })
  await world.connect('east')
  await world.connect('west')
  await world.connect('south', { labels: { [CLUSTER_SET_LABEL]: 'prod' } })
  for (const name of ['east', 'west', 'south']) await world.batch(name, [complete('node', [aNode(`n-${name}`)])])
  return { world, members }
}

describe('sets of clusters', () => {
  it('are one rule for clusters, rows and groups: the sets of a member, else the label', async () => {
    const { world } = await aFleet()
    await using _ = world
    const ask = async (url: string) => (await get(world, url, { as: 'admin' })).body
    expect(await ask('/api/v2/cluster-sets')).toEqual({
      items: [
        { name: 'default', count: 1 },
        { name: 'empty', count: 0 },
        { name: 'global', count: 2 },
        { name: 'prod', count: 2 },
      ],
    })
    expect(await ask('/api/v2/cluster-sets/prod')).toEqual({ name: 'prod', clusters: ['south', 'west'] })
    const names = (body: Record<string, unknown>, field: string) =>
      (body.items as Record<string, unknown>[]).map((item) => item[field])
    expect(names(await ask('/api/v2/clusters?set=prod'), 'name')).toEqual(['south', 'west'])
    expect(names(await ask('/api/v2/rows/nodes?set=prod'), 'cluster')).toEqual(['south', 'west'])
    expect(names(await ask('/api/v2/rows/nodes?set=prod&cluster=west'), 'cluster')).toEqual(['west'])
    expect(await ask('/api/v2/groups/nodes?by=cluster&set=global')).toMatchObject({ total: 2 })
    expect(names(await ask('/api/v2/clusters?set=empty'), 'name')).toEqual([])
    expect(await ask('/api/v2/clusters?set=prud')).toMatchObject({ code: 'set_not_found' })
  })

  it('choose members by the sets they themselves are in, exactly, and what is in no set is refused by name', async () => {
    const { world, members } = await aFleet()
    await using _ = world
    members.set([
      aMember('east', { sets: ['global', 'prod'] }),
      aMember('north', { sets: ['prod'], state: 'not accepted yet' }),
      aMember('west', { sets: ['global', 'non-prod'] }),
    ])
    const ask = async (url: string) => (await get(world, url, { as: 'admin' })).body
    const items = ['east', 'north'].map((name) => expect.objectContaining({ name }))
    expect(await ask('/api/v2/rows/members?set=prod')).toMatchObject({ items, total: 2 })
    expect(await ask('/api/v2/rows/members?set=prod&where=state%3Davailable')).toMatchObject({ total: 1 })
    expect(await ask('/api/v2/groups/members?by=state&set=prod')).toMatchObject({ total: 2 })
    expect(await ask('/api/v2/rows/members?set=empty')).toMatchObject({ items: [] })
    expect(await ask('/api/v2/rows/members?set=prud')).toMatchObject({ code: 'set_not_found' })
    expect(await ask('/api/v2/rows/memberrequests?set=prod')).toMatchObject({
      code: 'invalid_parameter',
      error: 'memberrequests stand on no cluster, and are in no set: leave out set',
    })
  })

  it('are those of clusters one sees: others do not exist, and an answer of before does not stay', async () => {
    const { world, members } = await aFleet({ policies: [allow('ann', { clusters: ['east'] })] })
    await using _ = world
    const ask = async (url: string) => (await get(world, url, { as: 'ann' })).body
    expect(await ask('/api/v2/cluster-sets')).toEqual({
      items: [
        { name: 'default', count: 1 },
        { name: 'global', count: 1 },
      ],
    })
    for (const set of ['prod', 'empty'])
      expect(await ask(`/api/v2/clusters?set=${set}`)).toMatchObject({ code: 'set_not_found' })
    expect(await ask('/api/v2/clusters?set=default')).toMatchObject({ items: [{ name: 'east' }] })
    members.set([aMember('east', { sets: ['global', 'prod'] })])
    expect(await ask('/api/v2/clusters?set=default')).toMatchObject({ code: 'set_not_found' })
    expect(await ask('/api/v2/clusters?set=prod')).toMatchObject({ items: [{ name: 'east' }] })
  })

  it('are followed by a stream: a cluster that comes into the set brings its rows, one that leaves takes them', async () => {
    const { world, members } = await aFleet()
    await using _ = world
    const address = await world.server.start()
    const rows = encodeURIComponent('nodes?set=prod')
    const reader = await StreamReader.open(`${address}/api/v1/stream?clusters=false&rows=${rows}`, {
      'x-forwarded-user': 'admin',
    })
    const clusters = () => {
      const held = noRows()
      for (const { event, data } of reader.frames) {
        const message = { kind: event, ...data } as unknown as RowsMessage
        if (['rows', 'rowsChange', 'rowsEnd'].includes(event)) applyRows(held, message)
      }
      return held.ended ? held.ended : [...held.rows.values()].map(({ cluster }) => cluster).sort()
    }
    const become = (expected: unknown) => expect.poll(clusters).toEqual(expected)
    await become(['south', 'west'])
    members.set([aMember('east', { sets: ['global', 'prod'] }), aMember('west', { sets: ['global'] })])
    await become(['east', 'south'])
    await world.connect('south', { labels: {} })
    await become(['east'])
    members.set([aMember('east', { sets: ['global'] }), aMember('west', { sets: ['global'] })])
    await become(expect.objectContaining({ code: 'set_not_found' }))
    members.set([aMember('east', { sets: ['prod'] }), aMember('west', { sets: ['global'] })])
    await become(['east'])
    reader.close()
  })

  it('are followed by a stream of members: one that comes into the set, and one that leaves it', async () => {
    const { world, members } = await aFleet()
    await using _ = world
    const address = await world.server.start()
    const rows = encodeURIComponent('members?set=prod')
    const reader = await StreamReader.open(`${address}/api/v1/stream?clusters=false&rows=${rows}`, {
      'x-forwarded-user': 'admin',
    })
    const names = () => {
      const held = noRows()
      for (const { event, data } of reader.frames) {
        const message = { kind: event, ...data } as unknown as RowsMessage
        if (['rows', 'rowsChange', 'rowsEnd'].includes(event)) applyRows(held, message)
      }
      return held.ended ? held.ended : [...held.rows.values()].map(({ name }) => name).sort()
    }
    const become = (expected: unknown) => expect.poll(names).toEqual(expected)
    await become(['west'])
    await world.connect('south', { labels: {} })
    members.set([aMember('east', { sets: ['prod'] }), aMember('west', { sets: ['prod'] })])
    await become(['east', 'west'])
    members.set([aMember('east', { sets: ['prod'] }), aMember('west', { sets: ['global'] })])
    await become(['east'])
    members.set([aMember('east', { sets: ['global'] }), aMember('west', { sets: ['global'] })])
    await become(expect.objectContaining({ code: 'set_not_found' }))
    reader.close()
  })

  it('and members are told anew to who comes back to a stream after they moved, though no cluster did', async () => {
    const { world, members } = await aFleet()
    await using _ = world
    const address = await world.server.start()
    const open = (after: string) =>
      StreamReader.open(`${address}/api/v1/stream?clusters=false&rows=members${after}`, { 'x-forwarded-user': 'admin' })
    const names = ({ frames }: StreamReader) =>
      frames.flatMap(({ event, data }) =>
        event === 'rows' ? (data.items as { name: string }[]).map(({ name }) => name) : [],
      )
    const first = await open('')
    await expect.poll(() => names(first)).toEqual(['east', 'west'])
    await expect.poll(() => first.lastEventId).toBeTruthy()
    first.close()
    members.set([aMember('north')])
    const second = await open(`&lastEventId=${encodeURIComponent(first.lastEventId ?? '')}`)
    await expect.poll(() => names(second)).toEqual(['north'])
    second.close()
  })
})
