import { afterEach, describe, expect, it } from 'vitest'
import { applyRows, type HeldRows, noRows, type RowsMessage } from '#http'
import { Table } from '#model'
import { parseRowsAsked } from './stream-query.ts'
import { allow, within } from './test/policies.ts'
import { aRow, aSource, GivenCatalog } from './test/sources.ts'
import { type Frame, StreamReader } from './test/stream-reader.ts'
import { aWorld, proxy, type World } from './test/world.ts'

const source = aSource('pvcx')
const opened: StreamReader[] = []
afterEach(() => {
  for (const reader of opened.splice(0)) reader.close()
})

const world = (config: Parameters<typeof aWorld>[0] = {}) => aWorld(config, { catalog: new GivenCatalog(source) })

type Values = Readonly<Record<string, number>>

/** A whole collection: `namespace/name` and its size. */
async function collect(of: World, cluster: string, sizes: Values): Promise<void> {
  const rows = Object.entries(sizes).map(([id, size]) => {
    const [namespace = '', name = ''] = id.split('/')
    return aRow(namespace, name, { size, phase: size > 10 ? 'Bound' : 'Pending' })
  })
  const table = Table.of(['size', 'phase'], rows)
  const facts = { aggregations: {}, truncated: false, errors: [], errorCount: 0, reports: [] }
  await of.batch(cluster, [], {
    tables: [{ source: source.id, hash: source.hash, durationMs: 1, outcome: 'complete', rows: table, ...facts }],
  })
}

async function open(url: string, rows: readonly string[], more = '', headers = {}): Promise<StreamReader> {
  const words = rows.map((one) => `rows=${encodeURIComponent(one)}`).join('&')
  const reader = await StreamReader.open(`${url}/api/v1/stream?clusters=false&${words}${more}`, headers)
  opened.push(reader)
  await reader.until(() => synced(reader) > 0)
  return reader
}

const synced = ({ frames }: StreamReader): number => frames.filter(({ event }) => event === 'synced').length
const events = ({ frames }: StreamReader): string[] => frames.map(({ event }) => event)

function held(frames: readonly Frame[], query = 0): HeldRows {
  const all = noRows()
  for (const { event, data } of frames) {
    const message = { kind: event, ...data } as unknown as RowsMessage
    if (['rows', 'rowsChange', 'rowsEnd'].includes(event) && message.query === query) applyRows(all, message)
  }
  return all
}

const ids = (frames: readonly Frame[], query = 0): string[] => [...held(frames, query).rows.keys()]
/** The frames once this many moments were told. */
async function moment(reader: StreamReader, number: number): Promise<readonly Frame[]> {
  await reader.until(() => synced(reader) >= number)
  return reader.frames
}

describe('rows of a stream', () => {
  it('begin whole and go on by what changes, one moment at a time', async () => {
    await using fleet = await world()
    await fleet.connect('west')
    await collect(fleet, 'west', { 'a/x': 1, 'a/y': 20 })
    const reader = await open(await fleet.server.start(), ['pvcx'])
    expect(events(reader)).toEqual(['store', 'rows', 'synced'])
    expect(reader.frames[1]?.data).toMatchObject({
      ...{ query: 0, from: 0, total: 2, isLast: true },
      source: { type: 'pvcx' },
      clusters: [{ cluster: 'west', outcome: 'complete', filtered: false }],
    })
    await collect(fleet, 'west', { 'a/x': 2, 'a/z': 5 })
    const frames = await moment(reader, 2)
    const [change] = frames.slice(-2)
    expect(change?.data).toMatchObject({
      changes: [
        { op: 'remove', cluster: 'west', id: 'a/y' },
        { op: 'put', row: { id: 'a/x', values: { size: 2 } } },
        { op: 'put', row: { id: 'a/z' } },
      ],
      total: 2,
    })
    expect(frames.at(-1)?.id).toBeDefined()
    expect(ids(frames)).toEqual(['west/a/x', 'west/a/z'])
  })

  it('of a sorted window enter, move and leave, with how many there are', async () => {
    await using fleet = await world()
    await fleet.connect('west')
    await fleet.connect('east')
    await collect(fleet, 'west', { 'a/x': 1, 'a/y': 20 })
    await collect(fleet, 'east', { 'a/q': 10 })
    const reader = await open(await fleet.server.start(), ['pvcx?sort=size&order=desc&limit=2'])
    expect(ids(reader.frames)).toEqual(['west/a/y', 'east/a/q'])
    await collect(fleet, 'west', { 'a/x': 15, 'a/y': 20 })
    expect(ids(await moment(reader, 2))).toEqual(['west/a/y', 'west/a/x'])
    await collect(fleet, 'west', { 'a/y': 5 })
    expect(ids(await moment(reader, 3))).toEqual(['east/a/q', 'west/a/y'])
    expect(held(reader.frames).total).toBe(2)
    expect(reader.frames.filter(({ event }) => event === 'rows')).toHaveLength(1)
  })

  it('of several queries travel over one connection, each under its number', async () => {
    await using fleet = await world()
    await fleet.connect('west')
    await collect(fleet, 'west', { 'a/x': 1, 'b/y': 20 })
    const url = await fleet.server.start()
    const reader = await open(url, ['pvcx?namespace=a', 'nothing', 'pvcx?where=size%3E10'])
    expect([ids(reader.frames, 0), ids(reader.frames, 2)]).toEqual([['west/a/x'], ['west/b/y']])
    expect(held(reader.frames, 1).ended).toMatchObject({ code: 'type_not_found' })
    await collect(fleet, 'west', { 'a/x': 11, 'b/y': 2 })
    const frames = await moment(reader, 2)
    expect([ids(frames, 0), ids(frames, 2)]).toEqual([['west/a/x'], ['west/a/x']])
  })

  it.each([
    ['pvcx?colour=red', 'colour is none of'],
    ['pvcx?limit=0', 'limit is a number'],
    ['pvcx?limit=2001', 'from 1 to 2000'],
    ['pvcx?limit=1e3', 'from 1 to 2000'],
    ['pvcx?cursor=x', 'cursor needs limit'],
    ['pvcx?order=up', 'order is asc or desc'],
    ['pvcx?labels=a%3D%3D%3D', 'labels='],
    ['?limit=1', 'no name of a type'],
    ['pvcx?also=west%2Fa%2Fx', 'also needs limit'],
    [`pvcx?limit=1${'&also=x'.repeat(101)}`, 'also stands there more than 100 times'],
  ])('refuse %s with a sentence', async (text, words) => {
    await using fleet = await world()
    const { status, body } = await fleet.get(`/api/v1/stream?rows=${encodeURIComponent(text)}`)
    expect([status, JSON.stringify(body)]).toEqual([400, expect.stringContaining(words)])
  })

  it('end with a sentence where a column is not there', async () => {
    await using fleet = await world()
    await fleet.connect('west')
    await collect(fleet, 'west', { 'a/x': 1 })
    const reader = await open(await fleet.server.start(), ['pvcx?sort=colour&limit=3'])
    expect(held(reader.frames).ended).toMatchObject({
      code: 'invalid_parameter',
      reason: expect.stringContaining('colour'),
    })
  })

  it('behind a page of the same rows are told as they move', async () => {
    await using fleet = await world()
    await fleet.connect('west')
    await collect(fleet, 'west', { 'a/u': 1, 'a/v': 2, 'a/x': 3, 'a/y': 4 })
    const page = async (query: string) =>
      (await fleet.get(`/api/v2/rows/pvcx?limit=2&${query}`)).body as { readonly next: string }
    const asked = ['', 'sort=size&order=desc&']
    const cursors = await Promise.all(asked.map(page))
    const texts = asked.map((words, at) => `pvcx?${words}limit=9&cursor=${cursors[at]?.next}`)
    const reader = await open(await fleet.server.start(), [
      ...texts,
      `pvcx?sort=size&limit=9&cursor=${cursors[0]?.next}`,
    ])
    expect([ids(reader.frames, 0), ids(reader.frames, 1)]).toEqual([
      ['west/a/x', 'west/a/y'],
      ['west/a/v', 'west/a/u'],
    ])
    expect([held(reader.frames, 0).total, held(reader.frames, 2).ended?.code]).toEqual([4, 'invalid_cursor'])
    await collect(fleet, 'west', { 'a/u': 1, 'a/w': 2, 'a/x': 3, 'a/z': 1 })
    const frames = await moment(reader, 2)
    expect([ids(frames, 0), ids(frames, 1)]).toEqual([
      ['west/a/w', 'west/a/x', 'west/a/z'],
      ['west/a/w', 'west/a/z', 'west/a/u'],
    ])
  })

  it('go on for whoever comes back, without a new beginning', async () => {
    await using fleet = await world()
    await fleet.connect('west')
    await collect(fleet, 'west', { 'a/x': 1, 'a/y': 20 })
    const url = await fleet.server.start()
    const first = await open(url, ['pvcx', 'pvcx?sort=size&limit=1'])
    const { lastEventId } = first
    first.close()
    await collect(fleet, 'west', { 'a/y': 20 })
    const again = await open(url, ['pvcx', 'pvcx?sort=size&limit=1'], `&lastEventId=${lastEventId}`)
    expect(events(again)).toEqual(['store', 'rowsChange', 'rowsChange', 'synced'])
    expect(ids([...first.frames, ...again.frames])).toEqual(['west/a/y'])
    expect(ids([...first.frames, ...again.frames], 1)).toEqual(['west/a/y'])
  })

  const besides = (...names: readonly string[]) => names.map((name) => `&also=${encodeURIComponent(name)}`).join('')
  const outside = (frames: readonly Frame[], query = 0) => {
    const { left, gone } = held(frames, query)
    return [[...left].map(([key, { row }]) => `${key} ${row.values.size}`).sort(), [...gone.keys()].sort()]
  }

  it('tell what became of others that somebody names who comes back, and of what they were told before', async () => {
    await using fleet = await world()
    await fleet.connect('west')
    await collect(fleet, 'west', { 'a/u': 50, 'a/v': 40, 'a/x': 30, 'a/y': 20, 'a/z': 10 })
    const url = await fleet.server.start()
    const asked = 'pvcx?sort=size&order=desc&limit=2'
    const first = await open(url, [asked])
    await collect(fleet, 'west', { 'a/v': 1, 'a/x': 30, 'a/y': 20, 'a/z': 10 })
    await moment(first, 2)
    expect(outside(first.frames)).toEqual([['west/a/v 1'], ['west/a/u']])
    const { lastEventId } = first
    first.close()
    // One lives again, one changes, one is deleted.
    await collect(fleet, 'west', { 'a/u': 5, 'a/v': 2, 'a/x': 30, 'a/y': 20 })
    const also = besides('west/a/u', 'west/a/v', 'west/a/x', 'west/a/z', 'east/a/x', 'west/a/never')
    const again = await open(url, [asked + also], `&lastEventId=${lastEventId}`)
    expect(events(again)).toEqual(['store', 'rowsChange', 'rowsChange', 'synced'])
    const both = () => [...first.frames, ...again.frames]
    const nowhere = ['east/a/x', 'west/a/never', 'west/a/z']
    expect(ids(both())).toEqual(['west/a/x', 'west/a/y'])
    expect(outside(both())).toEqual([['west/a/u 5', 'west/a/v 2'], nowhere])
    // A beginning tells it, too.
    const other = await open(url, [asked, asked + also])
    expect(events(other)).toEqual(['store', 'rows', 'rows', 'rowsChange', 'synced'])
    expect(outside(other.frames, 1)).toEqual([['west/a/u 5', 'west/a/v 2'], nowhere])
    await collect(fleet, 'west', { 'a/u': 6, 'a/x': 3, 'a/y': 20, 'a/z': 1, 'a/w': 4 })
    await moment(again, 2)
    await moment(other, 2)
    const told = [
      ['west/a/x 3', 'west/a/z 1'],
      ['east/a/x', 'west/a/never', 'west/a/v'],
    ]
    expect([ids(both()), outside(both())]).toEqual([['west/a/y', 'west/a/u'], told])
    expect([ids(other.frames, 1), outside(other.frames, 1)]).toEqual([['west/a/y', 'west/a/u'], told])
    expect(outside(other.frames, 0)).toEqual([['west/a/x 3'], []])
  })

  it('are shared by all who name the same others, in whatever order', () => {
    const [one, other, none] = ['&also=w%2Fa&also=w%2Fb', '&also=w%2Fb&also=w%2Fa&also=w%2Fb', ''].map((also) =>
      parseRowsAsked(`pvcx?limit=2${also}`),
    )
    expect(one).toEqual(other)
    expect(one?.text).not.toBe(none?.text)
    expect(one?.rowsText).toBe(none?.rowsText)
  })

  it('go on where they can, and begin where the question is another', async () => {
    await using fleet = await world()
    await fleet.connect('west')
    await collect(fleet, 'west', { 'a/x': 1 })
    const url = await fleet.server.start()
    const first = await open(url, ['pvcx', 'pvcx?namespace=a'])
    await collect(fleet, 'west', { 'a/x': 2 })
    await moment(first, 2)
    const again = await open(url, ['pvcx?namespace=b', 'pvcx'], `&lastEventId=${first.lastEventId}`)
    expect(events(again)).toEqual(['store', 'rows', 'synced'])
    expect(again.frames[1]?.data).toMatchObject({ query: 0, total: 0 })
  })
})

describe('rows that policies hide', () => {
  it('are gone for who names them, as those that are not there, whatever becomes of them', async () => {
    await using fleet = await world({ identity: proxy, policies: [allow('ann', { resources: [within('pvcx', 'a')] })] })
    for (const cluster of ['west', 'east']) await fleet.connect(cluster)
    await collect(fleet, 'west', { 'a/x': 1, 'a/y': 2, 'b/hidden': 20 })
    await collect(fleet, 'east', { 'b/hidden': 20 })
    const names = ['west/a/y', 'west/b/hidden', 'west/b/absent', 'east/b/hidden', 'nowhere/b/hidden']
    const asked = `pvcx?sort=size&limit=1${names.map((name) => `&also=${encodeURIComponent(name)}`).join('')}`
    const ann = await open(await fleet.server.start(), [asked], '', { 'x-forwarded-user': 'ann' })
    const change = ann.frames.find(({ event }) => event === 'rowsChange')?.data as unknown as { changes: object[] }
    const removed = (name: string) => {
      const [cluster = '', ...id] = name.split('/')
      return { op: 'remove', cluster, id: id.join('/') }
    }
    const inOrder = [...names].sort()
    expect(change.changes.map((one) => ({ ...one, row: undefined }))).toEqual(
      inOrder.map((name) => ({ ...removed(name), ...(name !== 'west/a/y' && { gone: true }) })),
    )
    const before = JSON.stringify(ann.frames).length
    await collect(fleet, 'west', { 'a/x': 1, 'a/y': 3, 'b/hidden': 21, 'b/absent': 4 })
    await collect(fleet, 'east', { 'b/hidden': 0 })
    await collect(fleet, 'west', { 'a/x': 1, 'a/y': 4 })
    await ann.until(() => held(ann.frames).left.get('west/a/y')?.row.values.size === 4)
    expect(JSON.stringify(ann.frames).slice(before)).not.toMatch(/hidden|absent/)
  })

  it('are in no message, whether they come, change or go', async () => {
    await using fleet = await world({ identity: proxy, policies: [allow('ann', { resources: [within('pvcx', 'a')] })] })
    await fleet.connect('west')
    await collect(fleet, 'west', { 'a/x': 1, 'secret/y': 20 })
    const ann = await open(await fleet.server.start(), ['pvcx', 'pvcx?sort=size&order=desc&limit=5'], '', {
      'x-forwarded-user': 'ann',
    })
    expect([ids(ann.frames, 0), ids(ann.frames, 1)]).toEqual([['west/a/x'], ['west/a/x']])
    await collect(fleet, 'west', { 'a/x': 2, 'secret/z': 20 })
    await moment(ann, 2)
    expect(held(ann.frames).total).toBe(1)
    expect(JSON.stringify(ann.frames)).not.toContain('secret')
  })

  it('are in no message of another access view that is told the same step, however many rows move at once', async () => {
    const [a, b] = ['a', 'b'].map((space) => ({ resources: [within('pvcx', space)] }))
    await using fleet = await world({ identity: proxy, policies: [allow('ann', a), allow('bea', b)] })
    await fleet.connect('west')
    const all = (size: number) =>
      Object.fromEntries(['a', 'b'].flatMap((space) => Array.from({ length: 300 }, (_, i) => [`${space}/p${i}`, size])))
    await collect(fleet, 'west', all(1))
    const url = await fleet.server.start()
    const readers = await Promise.all(
      ['ann', 'bea'].map((user) => open(url, ['pvcx', 'pvcx?sort=size&limit=900'], '', { 'x-forwarded-user': user })),
    )
    await collect(fleet, 'west', all(2))
    for (const [at, reader] of readers.entries()) {
      const frames = await moment(reader, 2)
      for (const query of [0, 1]) {
        const shown = [...held(frames, query).rows.values()].map(
          ({ namespace, values }) => `${namespace} ${values.size}`,
        )
        expect(shown).toEqual(Array.from({ length: 300 }, () => `${['a', 'b'][at]} 2`))
      }
    }
  })
})
