import { describe, expect, it } from 'vitest'
import { POD_USAGE, podUsageFields } from '#collect'
import { type JsonValue, type RowsPart, Table } from '#model'
import { resourceOf } from '#resources'
import { SomeMembers } from '../../pipeline/api/test/members.ts'
import { aNode, aWorld, complete } from '../../pipeline/api/test/world.ts'
import { type GetOptions, watch } from './get.ts'

type Row = readonly [name: string, values: Readonly<Record<string, JsonValue>>]

function tableOf(source: string, fields: readonly string[], rows: readonly Row[]): RowsPart {
  const named = rows.map(([name, values]) => ({ namespace: 'shop', name, labels: {}, values }))
  return {
    ...{ source, hash: resourceOf(source)?.hash ?? 'h', durationMs: 1, outcome: 'complete' },
    ...{ rows: Table.of(fields, named), aggregations: {}, truncated: false, errors: [], errorCount: 0, reports: [] },
  }
}
const podsOf = (...names: string[]) =>
  tableOf(
    'pods',
    ['status', 'node'],
    names.map((name) => [name, { status: 'Running', node: 'a' }]),
  )
const usageOf = (used: Readonly<Record<string, number>>) =>
  tableOf(
    POD_USAGE,
    podUsageFields,
    Object.entries(used).map(([name, cpuUsed]) => [
      name,
      { cpuUsed, cpuMillicores: cpuUsed * 1000, memoryUsed: 2 ** 30, diskUsed: null },
    ]),
  )

/** One that never looks again by itself. */
function watched(server: string, options: Partial<GetOptions>) {
  const [out, notes] = [[] as string[][], [] as string[]]
  const stop = new AbortController()
  const over = watch(
    { noun: 'clusters', names: [], clusters: [], output: 'table', server, ...options },
    {
      out: (line) => out.push(line.split(/ {3,}/).map((cell) => cell.trim())),
      note: (text) => notes.push(text),
      ...{ signal: stop.signal, everyMs: 2 ** 30 },
    },
  )
  const close = async () => {
    stop.abort()
    await over
  }
  const cell = (header: string, line: readonly string[] | undefined) => line?.[out[0]?.indexOf(header) ?? -1]
  return { out, notes, cell, [Symbol.asyncDispose]: close }
}

async function aFleet() {
  const world = await aWorld()
  for (const name of ['east', 'west']) {
    await world.connect(name)
    await world.batch(name, [complete('node', [aNode('a')])], { tables: [podsOf('one'), usageOf({ one: 0.5 })] })
  }
  return { world, server: await world.server.start(), [Symbol.asyncDispose]: () => world[Symbol.asyncDispose]() }
}

const soon = <T>(read: () => T) => expect.poll(read)

describe('clusterpulse get -w follows the stream', () => {
  it('of clusters: those that come, turn ill, and go', async () => {
    await using fleet = await aFleet()
    await using seen = watched(fleet.server, {})
    await soon(() => seen.out.length).toBe(3)
    await fleet.world.batch('east', [complete('node', [aNode('a', { ready: 'notReady' })])])
    await soon(() => seen.out.at(-1)?.slice(0, 3)).toEqual(['east', 'unhealthy', '0/1'])
    await fleet.world.connect('north')
    await soon(() => seen.out.at(-1)?.[0]).toBe('north')
    await fleet.world.remove('west')
    await soon(() => seen.notes).toContain('west is gone')
    expect(seen.out).toHaveLength(5)
  })

  it('of chosen clusters alone', async () => {
    await using fleet = await aFleet()
    await using seen = watched(fleet.server, { names: ['east'] })
    await soon(() => seen.out.length).toBe(2)
    for (const name of ['west', 'east'])
      await fleet.world.batch(name, [complete('node', [aNode('a', { ready: 'notReady' })])])
    await soon(() => seen.out.at(-1)?.slice(0, 2)).toEqual(['east', 'unhealthy'])
    expect(seen.out).toHaveLength(3)
  })

  it('of events: each once, as it happens', async () => {
    await using fleet = await aFleet()
    await using seen = watched(fleet.server, { noun: 'events', clusters: ['east'] })
    await soon(() => seen.out.length).toBeGreaterThan(0)
    for (const name of ['west', 'east']) {
      fleet.world.clock.at += 1_000
      await fleet.world.batch(name, [complete('node', [aNode('a', { ready: 'notReady' })])])
    }
    await soon(() => seen.out.filter((line) => seen.cell('TYPE', line) === 'node.not_ready')).toHaveLength(1)
    fleet.world.clock.at += 1_000
    await fleet.world.batch('east', [complete('node', [aNode('a')])])
    await soon(() => seen.out.filter((line) => seen.cell('TYPE', line) === 'node.ready')).toHaveLength(1)
    expect(new Set(seen.out.slice(1).map((line) => seen.cell('CLUSTER', line)))).toEqual(new Set(['east']))
    const names = seen.out.slice(1).map((line) => `${seen.cell('TYPE', line)} ${seen.cell('MESSAGE', line)}`)
    expect(names.filter((name) => name === 'node.not_ready node a is not ready')).toHaveLength(1)
  })

  it('of events on a cluster that came later', async () => {
    await using fleet = await aFleet()
    await using seen = watched(fleet.server, { noun: 'events', names: ['cluster.added'] })
    await soon(() => seen.out.length).toBe(3)
    await fleet.world.connect('north')
    await soon(() => seen.out.at(-1)?.slice(1, 3)).toEqual(['north', 'cluster.added'])
    await fleet.world.remove('north')
    fleet.world.clock.at += 1_000
    await fleet.world.connect('north')
    await soon(() => seen.out.filter((line) => line[1] === 'north')).toHaveLength(2)
  })

  it('of types: how many rows there are', async () => {
    await using fleet = await aFleet()
    await using seen = watched(fleet.server, { noun: 'types', names: ['pods'] })
    await soon(() => seen.cell('ROWS', seen.out[1])).toBe('2')
    await fleet.world.batch('east', [], { tables: [podsOf('one', 'two')] })
    await soon(() => seen.cell('ROWS', seen.out.at(-1))).toBe('3')
  })

  it('of requests to join: each once, however old it gets', async () => {
    const requested = (name: string) => ({
      ...{ name, cluster: 'east', username: '', address: '10.0.0.1', key: 'ab', agentVersion: '' },
      ...{ requestedAt: Date.now() - 30_000, missing: ['approval', 'acceptance'] as const },
    })
    const members = new SomeMembers([], [requested('east-1')])
    await using world = await aWorld({}, { members })
    await using seen = watched(await world.server.start(), { noun: { kind: 'memberrequests' } })
    await soon(() => seen.out.length).toBe(2)
    const begun = Date.now()
    await soon(() => Date.now() - begun).toBeGreaterThan(1_100) // its age is another by then
    members.set([], [...members.requests.requests(), requested('east-2')])
    await soon(() => seen.out.at(-1)?.[0]).toBe('east-2')
    expect(seen.out.map(([name]) => name)).toEqual(['NAME', 'east-1', 'east-2'])
  })

  it('of what pods use: what became another, with its age', async () => {
    await using fleet = await aFleet()
    const top = { what: 'pods', sort: 'cpu', count: 10 } as const
    await using seen = watched(fleet.server, { noun: { kind: 'pods' }, top })
    await soon(() => seen.out.length).toBe(3)
    await fleet.world.batch('west', [], { tables: [usageOf({ one: 1.5 })] })
    await soon(() => seen.out.at(-1)?.slice(0, 4)).toEqual(['west', 'shop', 'one', '1500m'])
    expect(seen.cell('AS-OF', seen.out.at(-1))).toMatch(/^\d+\w$/)
    expect(seen.out).toHaveLength(4)
  })

  it('of what uses most: the first so many, and what comes to be among them', async () => {
    await using fleet = await aFleet()
    const top = { what: 'pods', sort: 'cpu', count: 1 } as const
    await using seen = watched(fleet.server, { noun: { kind: 'pods' }, top, clusters: ['east', 'west'] })
    await soon(() => seen.out.length).toBe(2)
    await fleet.world.batch('west', [], { tables: [podsOf('one', 'two'), usageOf({ one: 0.1, two: 9 })] })
    await soon(() => seen.out.at(-1)?.slice(0, 4)).toEqual(['west', 'shop', 'two', '9000m'])
    expect(seen.out).toHaveLength(3)
    expect(seen.notes.filter((note) => note.includes('gone'))).toEqual([])
  })
})
