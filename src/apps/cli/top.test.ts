import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Looks } from '#attention'
import { NODE_USAGE, nodeUsageFields, POD_USAGE, podUsageFields } from '#collect'
import { type JsonValue, type RowsPart, Table } from '#model'
import { resourceOf } from '#resources'
import { silentLogger } from '#runtime'
import { aNode, aWorld, complete, start, type World } from '../../pipeline/api/test/world.ts'
import { type GetOptions, get } from './get.ts'
import { textOf } from './get-kinds.ts'
import type { TopSort } from './top-words.ts'

const facts = { aggregations: {}, truncated: false, errors: [], errorCount: 0, reports: [] }

function rowsPart(
  source: string,
  hash: string,
  fields: readonly string[],
  rows: readonly (readonly [string, string, Readonly<Record<string, JsonValue>>])[],
): RowsPart {
  const table = Table.of(
    fields,
    rows.map(([namespace, name, values]) => ({ namespace, name, labels: {}, values })),
  )
  return { source, hash, durationMs: 1, outcome: 'complete', rows: table, ...facts }
}

const podsPart = (names: readonly string[]) =>
  rowsPart(
    'pods',
    resourceOf('pods')?.hash ?? '',
    ['status', 'node'],
    names.map((name) => ['shop', name, { status: 'Running', node: 'a' }]),
  )

it.each([
  [0.0003, 'cores', '<1m'],
  [0, 'cores', '0m'],
  [0.0025, 'cores', '3m'],
  [0.02, 'percent', '<0.1%'],
  [41.26, 'percent', '41.3%'],
] as const)('writes %d %s as %s: what is not nothing is not rounded to nothing', (value, unit, text) =>
  expect(textOf(value, unit, 0)).toBe(text),
)

const usage = (cpuUsed: number, memoryUsed: number, diskUsed: number | null = null) => ({
  cpuUsed,
  cpuMillicores: cpuUsed * 1000,
  memoryUsed,
  diskUsed,
})

describe('clusterpulse top', () => {
  let world: World
  let server = ''
  const looks = new Looks({ logger: silentLogger })
  beforeAll(async () => {
    world = await aWorld({}, { attention: looks })
    for (const name of ['east', 'west', 'north']) await world.connect(name)
    const rounds = {
      east: [
        podsPart(['small', 'large', 'unmeasured']),
        rowsPart(POD_USAGE, 'h', podUsageFields, [
          ['shop', 'small', usage(0.01, 2 ** 30, 2 ** 20)],
          ['shop', 'large', usage(1.5, 2 ** 20)],
          ['shop', 'gone', usage(9, 9)],
        ]),
        rowsPart(NODE_USAGE, 'h', nodeUsageFields, [
          [
            '',
            'a',
            {
              cpuText: '2',
              memoryText: '4Gi',
              cpuUsed: 2,
              memoryUsed: 4 * 2 ** 30,
              diskCapacity: 200 * 2 ** 30,
              diskUsed: 50 * 2 ** 30,
            },
          ],
        ]),
      ],
      west: [podsPart(['middle']), rowsPart(POD_USAGE, 'h', podUsageFields, [['shop', 'middle', usage(0.5, 2 ** 21)]])],
      north: [
        podsPart(['quiet']),
        {
          source: POD_USAGE,
          hash: 'h',
          durationMs: 1,
          outcome: 'forbidden',
          code: 'kube_forbidden',
          message: 'pods.metrics.k8s.io is forbidden',
        } as const,
      ],
    }
    for (const [name, tables] of Object.entries(rounds))
      await world.batch(name, [complete('node', [aNode('a')])], { tables })
    server = await world.server.start()
  })
  afterAll(async () => {
    await world[Symbol.asyncDispose]()
    await looks[Symbol.asyncDispose]()
  })

  const ask = (what: 'nodes' | 'pods', over: Partial<GetOptions> & { sort?: TopSort; count?: number } = {}) => {
    const { sort = 'cpu', count = 100, ...more } = over
    const top = { what, sort, count }
    return get({ noun: { kind: what }, names: [], clusters: [], output: 'table', server, top, ...more }, start + 7_000)
  }
  const cells = (text: string) => text.split('\n').map((line) => line.split(/ {3,}/))

  it('prints pods of all clusters, those that use most first, with the age of what was measured', async () => {
    const { text, notes } = await ask('pods')
    expect(cells(text)).toEqual([
      ['CLUSTER', 'NAMESPACE', 'NAME', 'CPU', 'MEMORY', 'DISK', 'AS-OF'],
      ['east', 'shop', 'large', '1500m', '1Mi', '-', '7s'],
      ['west', 'shop', 'middle', '500m', '2Mi', '-', '7s'],
      ['east', 'shop', 'small', '10m', '1Gi', '1Mi', '7s'],
      ['north', 'shop', 'quiet', '-', '-', '-', '-'],
      ['east', 'shop', 'unmeasured', '-', '-', '-', '7s'],
    ])
    expect(notes).toEqual(['north: what its pods use is forbidden: pods.metrics.k8s.io is forbidden'])
  })

  it('sorts by memory, keeps to a cluster and a namespace, and says how many more there are', async () => {
    const { text, notes } = await ask('pods', { sort: 'memory', clusters: ['east'], namespace: 'shop', count: 2 })
    expect(
      cells(text)
        .slice(1)
        .map(([, , name]) => name),
    ).toEqual(['small', 'large'])
    expect(notes).toContain('2 of 3 pods; --limit 0 prints all')
    expect(cells((await ask('pods', { count: 0 })).text)).toHaveLength(6)
  })

  it('prints what part of a node is used', async () => {
    const { text } = await ask('nodes', { clusters: ['east'] })
    const [titles = [], values = []] = cells(text)
    const row = Object.fromEntries(titles.map((title, i) => [title, values[i]]))
    expect(row).toMatchObject({ NAME: 'a', CPU: '2000m', MEMORY: '4Gi', DISK: '50Gi', 'DISK%': '25%', 'AS-OF': '7s' })
    expect(row['CPU%']).toMatch(/^\d+%$/)
  })

  it('gives programs all values, and the time of the measurements', async () => {
    const { text } = await ask('pods', { output: 'json', count: 1 })
    expect(JSON.parse(text)).toMatchObject([
      {
        cluster: 'east',
        name: 'large',
        values: { cpu_used: 1.5, disk_used: null },
        measured_at: new Date(start).toISOString(),
      },
    ])
  })

  it('is no silent part of a list: usage that could not be read again is said beside newer rows, and ended where it is', async () => {
    await using one = await aWorld()
    await one.connect('east')
    const lost = {
      ...{ source: POD_USAGE, hash: 'h', durationMs: 1, code: 'kube_timeout' },
      outcome: 'unreachable',
      message: 'metrics.k8s.io did not answer within 10 s',
    } as const
    const read = rowsPart(POD_USAGE, 'h', podUsageFields, [['shop', 'small', usage(0.5, 2 ** 20)]])
    await one.batch('east', [], { tables: [podsPart(['small']), read] })
    const at = await one.server.start()
    const list = () =>
      get({ noun: { kind: 'pods' }, names: [], clusters: [], output: 'table', server: at }, start + 7_000)
    expect((await list()).notes).toEqual([])
    await one.batch('east', [], { tables: [podsPart(['small']), lost] })
    const { text, notes } = await list()
    expect(text).toContain('500m')
    expect(notes).toEqual([
      `east: what its pods use is as of ${new Date(start).toISOString().slice(0, 19)}Z: metrics.k8s.io did not answer within 10 s`,
    ])
    await one.batch('east', [], { tables: [podsPart(['small']), read] })
    expect((await list()).notes).toEqual([])
  })

  it('is a look at the clusters it shows, and at no others', async () => {
    expect(looks.clusters().toSorted()).toEqual(['east', 'north', 'west'])
    const others = new Looks({ logger: silentLogger })
    await using one = await aWorld({}, { attention: others })
    for (const name of ['east', 'west']) {
      await one.connect(name)
      const measured = rowsPart(POD_USAGE, 'h', podUsageFields, [['shop', name, usage(name === 'east' ? 2 : 1, 1)]])
      await one.batch(name, [], { tables: [podsPart([name]), measured] })
    }
    expect((await one.get('/api/v2/rows/pods?sort=cpuUsed&order=desc&limit=1')).status).toBe(200)
    expect(others.clusters()).toEqual(['east'])
    expect((await one.get('/api/v2/rows/services')).status).toBe(200)
    expect((await one.get('/api/v2/clusters')).status).toBe(200)
    expect(others.clusters()).toEqual(['east'])
    await others[Symbol.asyncDispose]()
  })
})
