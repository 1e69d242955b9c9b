import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Row } from '#extract'
import { unpackRow } from '../store/index.ts'
import { readQuestion } from './query.ts'
import { Teller } from './teller.ts'
import { type HeardEvent, parseEvent, Reader } from './testing/reader.ts'
import { aRow, World } from './testing/world.ts'

const tellerOf = (world: World, query: string, resume?: string) =>
  new Teller({
    view: world.view,
    cluster: 'west',
    question: { ...readQuestion(new URLSearchParams(query), 'watch'), ...(resume !== undefined && { resume }) },
  })

function* newsOf(teller: Teller): Generator<HeardEvent> {
  for (const pieces of teller.news()) {
    const event = parseEvent([...pieces].join(''))
    if (event) yield event
  }
}
const heard = (teller: Teller) => [...newsOf(teller)]
const apps = (world: World) => world.store.target({ namespace: 'team-a', name: 'apps' })
const names = (rows: readonly Row[] | undefined) => rows?.map(({ name }) => name)

describe('a stream of whole pages', () => {
  it('tells a page when it begins, and again only when the page is another', () => {
    const world = new World()
    world.collect('team-a', 'apps', [{ name: 'a' }, { name: 'b' }, { name: 'c' }])
    const teller = tellerOf(world, 'limit=2')
    const [first, ...rest] = heard(teller)
    expect(rest).toEqual([])
    expect(first).toMatchObject({
      event: 'inventory',
      data: { pagination: { total: 3, hasMore: true }, complete: true },
    })
    expect(names(first?.data.items)).toEqual(['a', 'b'])
    expect(heard(teller)).toEqual([])
    apps(world).put([aRow({ name: 'b', attributes: { replicas: 2 } })])
    expect(heard(teller)).toMatchObject([{ data: { items: [{}, { attributes: { replicas: 2 } }] } }])
  })

  it('tells nothing before anything is known, and an empty page once that is all there is', () => {
    const world = new World()
    world.declare('team-a', 'apps')
    const teller = tellerOf(world, '')
    expect(heard(teller)).toEqual([])
    apps(world).setComplete(true)
    expect(heard(teller)).toMatchObject([{ event: 'inventory', data: { items: [], complete: true } }])
  })
})

describe('a stream of differences', () => {
  it('tells all pages, then only what differs, and who comes back what he missed', () => {
    const world = new World()
    world.collect('team-a', 'apps', [{ name: 'a' }, { name: 'b' }, { name: 'c' }])
    const teller = tellerOf(world, 'deltas=true&limit=2')
    const pages = heard(teller)
    expect(pages.map(({ data }) => names(data.items))).toEqual([['a', 'b'], ['c']])
    expect(pages.map(({ id }) => id !== '')).toEqual([false, true])
    apps(world).put([aRow({ name: 'd' })])
    apps(world).remove([aRow({ name: 'a' })])
    const [delta] = heard(teller)
    expect(delta).toMatchObject({ event: 'delta', data: { put: [{ name: 'd' }], removed: [{ name: 'a' }] } })
    const [missed, ...rest] = heard(tellerOf(world, 'deltas=true&limit=2', pages.at(-1)?.id))
    expect(rest).toEqual([])
    expect(missed).toMatchObject({ event: 'delta', data: { put: [{ name: 'd' }], removed: [{ name: 'a' }] } })
  })

  it.each(['', 'x', '1.2.3', 'former01.7.AAAAAAAAAAAA'])('begins anew for who shows %j', (resume) => {
    const world = new World()
    world.collect('team-a', 'apps', [{ name: 'a' }])
    expect(heard(tellerOf(world, 'deltas=true', resume))).toMatchObject([{ event: 'inventory' }])
  })

  it('begins anew where the place was given for another question, or rows that went are forgotten', () => {
    const world = new World(2)
    world.collect('team-a', 'apps', [{ name: 'a' }, { name: 'b' }, { name: 'c' }, { name: 'd' }])
    const id = heard(tellerOf(world, 'deltas=true')).at(-1)?.id
    expect(heard(tellerOf(world, 'deltas=true&namespace=team-a', id))).toMatchObject([{ event: 'inventory' }])
    apps(world).remove([aRow({ name: 'a' })])
    expect(heard(tellerOf(world, 'deltas=true', id))).toMatchObject([{ event: 'delta' }])
    apps(world).remove([aRow({ name: 'b' })])
    apps(world).remove([aRow({ name: 'c' })])
    expect(heard(tellerOf(world, 'deltas=true', id))).toMatchObject([
      { event: 'inventory', data: { items: [{ name: 'd' }] } },
    ])
  })

  it('says that a row is gone which does not match any more', () => {
    const world = new World()
    world.collect('team-a', 'apps', [{ name: 'a' }, { name: 'b', version: 'v2' }])
    const teller = tellerOf(world, 'deltas=true&version=v1')
    expect(heard(teller).map(({ data }) => names(data.items))).toEqual([['a']])
    apps(world).put([aRow({ name: 'a', version: 'v2' })])
    expect(heard(teller)).toMatchObject([{ event: 'delta', data: { put: [], removed: [{ name: 'a' }] } }])
  })

  it('says when rows may be missing, and when they are all there again', () => {
    const world = new World()
    world.collect('team-a', 'apps', [{ name: 'a' }])
    const teller = tellerOf(world, 'deltas=true')
    heard(teller)
    apps(world).setComplete(false)
    expect(heard(teller)).toMatchObject([
      {
        event: 'delta',
        data: { put: [], removed: [], complete: false, waitsFor: [{ namespace: 'team-a', name: 'apps' }] },
      },
    ])
    apps(world).setComplete(true)
    expect(heard(teller)).toMatchObject([{ event: 'delta', data: { complete: true } }])
  })

  const change = fc.record({
    target: fc.constantFrom('apps', 'more'),
    rows: fc.array(
      fc.record({
        name: fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f'),
        version: fc.constantFrom('v1', 'v2'),
        attributes: fc.record({ value: fc.nat(2) }),
      }),
      { maxLength: 6 },
    ),
    verb: fc.constantFrom('put', 'remove', 'replace', 'drop', 'incomplete', 'complete'),
  })
  type Change = typeof change extends fc.Arbitrary<infer T> ? T : never
  const step = fc.record({
    changes: fc.array(change, { maxLength: 3 }),
    reading: fc.constantFrom('read', 'wait', 'leave', 'return'),
  })

  const apply = (world: World, { target: name, rows, verb }: Change) => {
    const target = world.store.target({ namespace: 'team-a', name })
    const own = rows.map((row) => aRow({ ...row, targetName: name }))
    if (verb === 'put') target.put(own)
    else if (verb === 'remove') target.remove(own)
    else if (verb === 'replace') target.replace(own)
    else if (verb === 'drop') target.drop()
    else target.setComplete(verb === 'complete')
  }

  it('leads who follows it to the rows as they are, whatever changes while it is told, and however often it is cut off', () =>
    fc.assert(
      fc.property(
        fc.array(step, { maxLength: 25 }),
        fc.constantFrom('', '&version=v1', '&target=apps', '&name=a'),
        fc.constantFrom(2, 1000),
        (steps, filter, maxDepartures) => {
          const world = new World(maxDepartures)
          const query = `deltas=true&limit=2${filter}`
          const reader = new Reader()
          let teller = tellerOf(world, query)
          let news = newsOf(teller)
          for (const { changes, reading } of steps) {
            for (const one of changes) apply(world, one)
            if (reading === 'return') teller = tellerOf(world, query, reader.id)
            if (reading === 'return' || reading === 'leave') news = newsOf(teller)
            if (reading !== 'read') continue
            const next = news.next()
            if (next.done) news = newsOf(teller)
            else reader.hear(next.value)
          }
          for (const name of ['apps', 'more']) world.store.target({ namespace: 'team-a', name }).setComplete(true)
          for (const event of news) reader.hear(event)
          for (const event of newsOf(teller)) reader.hear(event)
          expect(reader.rows).toEqual(
            [...world.view.read(readQuestion(new URLSearchParams(query), 'watch').filter).rows()].map(unpackRow),
          )
          expect(reader.isComplete).toBe(true)
        },
      ),
      { numRuns: 300 },
    ))
})
