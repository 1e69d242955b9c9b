import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Row } from '#extract'
import { sinkContract } from '../testing/contract.ts'
import { aRow, at, deliveryOf, rowsTo, writingOf } from '../testing/delivery.ts'
import { onPostgres, postgresMissing, startPostgres, type TestPostgres } from '../testing/postgres-server.ts'
import { aPlace, closed, type Place } from './testing/places.ts'

let server: TestPostgres
beforeAll(async () => {
  if (!postgresMissing) server = await startPostgres()
})
afterAll(() => server?.[Symbol.asyncDispose]())

const spec = { provisioning: { mode: 'existing' } }
const signal = new AbortController().signal
const west = writingOf('west')

/** The table as Kollect 0.18 made it. @param key of its rows; the cluster was not in it */
async function anOriginal(key = ''): Promise<Place> {
  const place = await aPlace(server)
  await server.query(`create table ${place.schema}.inventory (
    inventory_namespace text not null, inventory_name text not null, target_name text not null, source_uid text not null,
    cluster text not null default '', resource_namespace text not null default '', payload jsonb not null,
    exported_at timestamptz not null, primary key (inventory_namespace, inventory_name, target_name, source_uid${key}))`)
  await server.query(`alter table ${place.schema}.inventory owner to app`)
  return place
}

const rowsOf = async ({ schema }: Place, { cluster, namespace, inventory } = west): Promise<Row[]> =>
  (
    await server.query<{ payload: Row }>(
      `select payload from ${schema}.inventory where cluster = $1 and inventory_namespace = $2 and inventory_name = $3`,
      [cluster, namespace, inventory],
    )
  ).map(({ payload }) => payload)

sinkContract(onPostgres('a table of Kollect whose key has the cluster'), {
  missing: postgresMissing,
  forgets: true,
  sequences: 6,
  harness: async () => {
    const place = await anOriginal(', cluster')
    return {
      open: async (cluster) => place.sink(cluster, { spec }),
      read: (writing) => rowsOf(place, writing),
      writes: async () => {
        const [row] = await server.query<{ n: string | null }>(
          `select sum(hashtext(ctid::text || xmin::text)) n from ${place.schema}.inventory`,
        )
        return Number(row?.n ?? 0)
      },
    }
  },
})

describe.skipIf(postgresMissing !== undefined)(onPostgres('a table of Kollect'), () => {
  it('is written as Kollect did: the whole row, and the namespace of the inventory for what has none', async () => {
    const place = await anOriginal()
    const node: Row = { ...aRow(1), namespace: '', kind: 'Node' }
    await closed(place.sink('west', { spec })).deliver(deliveryOf(west, at(1), [node, aRow(2)]), signal)
    const rows = await server.query(
      `select inventory_namespace, inventory_name, target_name, source_uid, cluster, resource_namespace, payload from ${place.schema}.inventory order by source_uid`,
    )
    expect(rows[0]).toEqual({
      inventory_namespace: 'team-a',
      inventory_name: 'workloads',
      target_name: 'deployments',
      source_uid: 'uid-1',
      cluster: 'west',
      resource_namespace: 'team-a',
      payload: node,
    })
    expect(rows[1]).toMatchObject({ resource_namespace: 'shop-2' })
  })

  it('takes a load that lasts in pieces that hold, and deletes nothing before the last', async () => {
    const place = await anOriginal(', cluster')
    const sink = closed(place.sink('west', { spec, pieceMs: 0 }))
    await sink.deliver(deliveryOf(west, at(1), [aRow(9999)]), signal)
    const rows = rowsTo(2500)
    for (let n = 2; n < 4; n++)
      expect(await sink.deliver(deliveryOf(west, at(n), rows), signal)).toMatchObject({
        isPartial: true,
        written: 1000,
      })
    expect(await rowsOf(place)).toHaveLength(2001)
    expect(await sink.deliver(deliveryOf(west, at(4), rows), signal)).toMatchObject({ written: 500, removed: 1 })
    expect(await rowsOf(place)).toHaveLength(2500)
  })

  it('touches no row of another cluster where the key does not tell them apart, and says what to do', async () => {
    const place = await anOriginal()
    await closed(place.sink('east', { spec })).deliver(deliveryOf(writingOf('east'), at(1), rowsTo(3)), signal)
    const sink = closed(place.sink('west', { spec }))
    await expect(sink.deliver(deliveryOf(west, at(1), [aRow(1), aRow(7)]), signal)).rejects.toMatchObject({
      code: 'sink_terminal',
      message: expect.stringMatching(/^1 rows have the key of rows of another cluster.*Add the column cluster to it/),
    })
    await sink.deliver(deliveryOf(west, at(2), []), signal)
    expect(await rowsOf(place, writingOf('east'))).toHaveLength(3)
    expect(await place.count()).toBe(3)
  })

  it('is never mixed with the tables of ours', async () => {
    const place = await anOriginal()
    const sink = closed(place.sink('west'))
    expect(await sink.probe(signal)).toMatchObject({
      verified: false,
      message: expect.stringContaining('say spec.provisioning.mode: existing'),
    })
    await expect(sink.deliver(deliveryOf(west, at(1), rowsTo(1)), signal)).rejects.toMatchObject({
      code: 'sink_terminal',
    })
    expect(await server.query('select 1 from pg_tables where schemaname = $1', [place.schema])).toHaveLength(1)
  })
})
