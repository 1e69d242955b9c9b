import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { PolicyDocument } from '#access'
import type { FleetRowView } from '#http'
import { writeCursor } from './page.ts'
import { allow, within } from './test/policies.ts'
import { ManualClock, type PlainFleet, Reader, Replica, ToldFleet } from './test/stream-fleet.ts'

/*
 * Random stories of a fleet that moves, of readers that come, are stuck, go and come back to another process, and of policies that
 * change. At every rest each reader is asked what it holds. What it should hold is worked out from plain numbers by the few lines below,
 * which know nothing of tables, chunks, differences or policies as they are compiled.
 */

const policies = {
  all: { env: undefined, namespaces: ['a', 'b'] },
  some: { env: undefined, namespaces: ['a'] },
  dev: { env: 'dev', namespaces: ['a', 'b'] },
  nothing: { env: 'nowhere', namespaces: ['a'] },
} as const
type Policy = keyof typeof policies

const documentOf = (name: Policy): PolicyDocument => {
  const { env, namespaces } = policies[name]
  const resources = [within('pvcx', ...namespaces)]
  return allow('p', { users: ['ann'], resources, ...(env !== undefined && { labels: { env } }) })
}

/** A row that may be there or not, and that ann may not see under each policy. */
const behind = { cluster: 'east', id: 'b/r1', size: 4 }
const cursor = writeCursor([behind.size, JSON.stringify([behind.cluster, ...behind.id.split('/')])], 'size', 'asc')
const behindByPlace = writeCursor([null, JSON.stringify(['east', 'b', 'r1'])], 'cluster', 'asc')
const place = ({ cluster, id }: Row) => `${cluster} ${id}`

const queries = [
  { text: 'pvcx', holds: () => true },
  { text: 'pvcx?where=size%3E5', holds: (size: number) => size > 5 },
  { text: 'pvcx?namespace=a&q=r1', holds: (_: number, id: string) => id.startsWith('a/') && id.includes('r1') },
  { text: 'pvcx?sort=size&order=desc&limit=3', holds: () => true, limit: 3, order: -1 },
  { text: 'pvcx?sort=size&limit=2&where=size%3E2', holds: (size: number) => size > 2, limit: 2, order: 1 },
  { text: `pvcx?sort=size&limit=2&cursor=${cursor}`, holds: () => true, limit: 2, order: 1, behind },
  {
    ...{ text: `pvcx?limit=2&cursor=${behindByPlace}`, holds: () => true, limit: 2, order: 1 },
    behind: { ...behind, size: 0 },
    byPlace: true,
  },
  {
    ...{ text: 'pvcx?sort=size&limit=2&also=west%2Fa%2Fr1&also=east%2Fb%2Fr3', holds: () => true, limit: 2, order: 1 },
    also: ['west/a/r1', 'east/b/r3'],
  },
] as const

interface Row {
  readonly cluster: string
  readonly id: string
  readonly size: number
}

/** What a query should hold, from plain numbers. */
function expected(fleet: PlainFleet, who: string, policy: Policy, query: (typeof queries)[number]) {
  const { env, namespaces } = policies[policy]
  const sees = (namespace: string) => who === 'admin' || (namespaces as readonly string[]).includes(namespace)
  const rows: Row[] = []
  for (const [cluster, { env: own, rows: all }] of fleet) {
    if (who !== 'admin' && env !== undefined && env !== own) continue
    for (const [id, size] of all) {
      if (sees(id.slice(0, id.indexOf('/'))) && query.holds(size, id)) rows.push({ cluster, id, size })
    }
  }
  const texts = ({ cluster, id, size }: Row) => `${cluster}/${id}=${size}`
  if (!('limit' in query)) return { total: rows.length, also: [], rows: rows.map(texts).sort() }
  const sizeOf = ({ size }: Row) => ('byPlace' in query ? 0 : size)
  const compare = (one: Row, other: Row) =>
    query.order * (sizeOf(one) - sizeOf(other) || (place(one) < place(other) ? -1 : 1))
  const ordered = rows.toSorted(compare)
  const shown = ordered.filter(
    (row) =>
      !('behind' in query) ||
      ((place(row) !== place(query.behind) || sizeOf(row) !== query.behind.size) && compare(query.behind, row) < 0),
  )
  const also = ('also' in query ? query.also : []).map((name) => {
    const row = rows.find(({ cluster, id }) => `${cluster}/${id}` === name)
    return row ? texts(row) : `${name} is gone`
  })
  return { total: rows.length, also, rows: shown.slice(0, query.limit).map(texts) }
}

function holds(reader: Reader, at: number) {
  const { rows, total, left, gone, ended } = reader.held[at] as Reader['held'][number]
  const textOf = ({ cluster, id, values }: FleetRowView) => `${cluster}/${id}=${values.size}`
  const texts = [...rows.values()].map(textOf)
  const query = queries[at] as (typeof queries)[number]
  const also = ('also' in query ? query.also : []).map((name) => {
    const row = rows.get(name) ?? left.get(name)?.row
    return row ? textOf(row) : `${name} is ${gone.has(name) || ended ? 'gone' : 'not told of'}`
  })
  return { total, also, rows: 'limit' in (queries[at] as object) ? texts : texts.sort() }
}

type Act =
  | { readonly do: 'row'; readonly cluster: string; readonly id: string; readonly size: number }
  | { readonly do: 'gone'; readonly cluster: string; readonly id: string }
  | { readonly do: 'label'; readonly cluster: string; readonly env: string }
  | { readonly do: 'remove'; readonly cluster: string }
  | { readonly do: 'tell'; readonly replica: number; readonly steps: number }
  | { readonly do: 'open'; readonly reader: number; readonly replica: number }
  | { readonly do: 'stick' | 'read'; readonly reader: number }
  | { readonly do: 'policy'; readonly policy: Policy }
  | { readonly do: 'wait'; readonly ms: number }
  | { readonly do: 'rest' }

const cluster = fc.constantFrom('west', 'east')
const id = fc.constantFrom('a/r1', 'a/r2', 'b/r1', 'b/r3', 'secret/r1')
const reader = fc.nat({ max: 2 })
const replica = fc.nat({ max: 1 })
const act: fc.Arbitrary<Act> = fc.oneof(
  {
    weight: 10,
    arbitrary: fc.record({ do: fc.constant('row' as const), cluster, id, size: fc.nat({ max: 9 }) }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('gone' as const), cluster, id }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('label' as const), cluster, env: fc.constantFrom('dev', 'prod') }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('remove' as const), cluster }) },
  {
    weight: 8,
    arbitrary: fc.record({ do: fc.constant('tell' as const), replica, steps: fc.integer({ min: 1, max: 4 }) }),
  },
  { weight: 5, arbitrary: fc.record({ do: fc.constant('open' as const), reader, replica }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constantFrom('stick' as const, 'read' as const), reader }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('policy' as const),
      policy: fc.constantFrom<Policy>('all', 'some', 'dev', 'nothing'),
    }),
  },
  { weight: 5, arbitrary: fc.record({ do: fc.constant('wait' as const), ms: fc.constantFrom(0, 60, 600, 3000) }) },
  { weight: 1, arbitrary: fc.constant({ do: 'rest' as const }) },
)

async function play(acts: readonly Act[]): Promise<void> {
  const clock = new ManualClock()
  const told = new ToldFleet()
  const replicas = [new Replica(told, clock), new Replica(told, clock)] as const
  const texts = queries.map(({ text }) => text)
  const readers = [new Reader('admin', texts), new Reader('ann', texts), new Reader('ann', texts)]
  const at = [0, 0, 1]
  let policy: Policy = 'all'
  for (const one of replicas) await one.start(documentOf(policy))

  const plain = (name: string) => told.fleet.get(name) ?? { env: 'dev', rows: new Map() }
  const open = async (number: number, on: number) => {
    at[number] = on
    await (readers[number] as Reader).open(replicas[on as 0 | 1])
  }
  /** Everybody reads, everything is told: then all hold what is true where they are. */
  const rest = async () => {
    for (const { response } of readers) response.read()
    for (const one of replicas) one.take()
    await clock.pass(3000)
    for (const [number, one] of readers.entries()) {
      one.take()
      const { fleet } = replicas[at[number] as 0 | 1]
      for (const [query, asked] of queries.entries())
        expect({ who: one.name, query: asked.text, ...holds(one, query) }).toEqual({
          who: one.name,
          query: asked.text,
          ...expected(fleet, one.name, policy, asked),
        })
    }
  }

  for (const number of readers.keys()) await open(number, at[number] as number)
  for (const one of acts) {
    if (one.do === 'row') {
      const { env, rows } = plain(one.cluster)
      told.move(one.cluster, { env, rows: new Map([...rows, [one.id, one.size]]) })
    } else if (one.do === 'gone') {
      const { env, rows } = plain(one.cluster)
      told.move(one.cluster, { env, rows: new Map([...rows].filter(([id]) => id !== one.id)) })
    } else if (one.do === 'label') told.move(one.cluster, { ...plain(one.cluster), env: one.env })
    else if (one.do === 'remove') told.move(one.cluster, undefined)
    else if (one.do === 'tell') replicas[one.replica as 0 | 1].take(one.steps)
    else if (one.do === 'open') await open(one.reader, one.replica)
    else if (one.do === 'stick') (readers[one.reader] as Reader).response.isStuck = true
    else if (one.do === 'read') (readers[one.reader] as Reader).response.read()
    else if (one.do === 'wait') await clock.pass(one.ms)
    else if (one.do === 'policy') {
      policy = one.policy
      for (const each of replicas) await each.policies.put(documentOf(policy), {})
    } else await rest()
  }
  await rest()
  for (const { name, text } of readers) if (name === 'ann') expect(text).not.toContain('secret')
  for (const one of replicas) await one[Symbol.asyncDispose]()
}

const stories = Number(process.env.STREAM_STORIES ?? 300)

describe('rows of a stream, told in whatever order things happen', () => {
  it(`are those of a fresh query, in ${stories} stories`, { timeout: 60_000 + stories * 200 }, async () => {
    await fc.assert(fc.asyncProperty(fc.array(act, { minLength: 1, maxLength: 60 }), play), { numRuns: stories })
  })
})
