import { afterEach, describe, expect, it } from 'vitest'
import { POD_USAGE, podUsageFields } from '#collect'
import { Table } from '#model'
import { resourceOf } from '#resources'
import { allow } from './test/policies.ts'
import { StreamReader } from './test/stream-reader.ts'
import { aNode, aWorld, complete, proxy, type World } from './test/world.ts'

const opened: StreamReader[] = []
afterEach(() => {
  for (const reader of opened.splice(0)) reader.close()
})

const facts = { aggregations: {}, truncated: false, errors: [], errorCount: 0, reports: [] }
const pods = resourceOf('pods')

/** One pod of each name, and what it uses. */
async function use(of: World, cluster: string, cores: Readonly<Record<string, number>>): Promise<void> {
  const table = (
    fields: readonly string[],
    values: (cpu: number) => Readonly<Record<string, string | number | null>>,
  ) =>
    Table.of(
      fields,
      Object.entries(cores).map(([name, cpu]) => ({ namespace: 'shop', name, labels: {}, values: values(cpu) })),
    )
  const part = (source: string, hash: string, rows: Table) =>
    ({ source, hash, durationMs: 1, outcome: 'complete', rows, ...facts }) as const
  const usage = (cpu: number) => ({ cpuUsed: cpu, cpuMillicores: cpu * 1000, memoryUsed: 1, diskUsed: null })
  await of.batch(cluster, [complete('node', [aNode('a')])], {
    tables: [
      part(
        'pods',
        pods?.hash ?? '',
        table(['status'], () => ({ status: 'Running' })),
      ),
      part(POD_USAGE, 'h', table(podUsageFields, usage)),
    ],
  })
}

async function aFleet(config: Parameters<typeof aWorld>[0] = {}) {
  const looks = new Set<string>()
  const world = await aWorld(config, { attention: { look: (cluster) => looks.add(cluster) } })
  for (const [name, cpu] of [
    ['east', 2],
    ['west', 1],
  ] as const) {
    await world.connect(name)
    await use(world, name, { web: cpu })
  }
  const url = await world.server.start()
  const open = async (rows: string, headers = {}) => {
    const reader = await StreamReader.open(
      `${url}/api/v1/stream?clusters=false&rows=${encodeURIComponent(rows)}`,
      headers,
    )
    opened.push(reader)
    await reader.until(() => reader.frames.some(({ event }) => event === 'synced'))
    return reader
  }
  return { world, looks, open }
}

describe('what pods use, on a stream', () => {
  it('is looked at as long as the stream shows it: the clusters of the rows of a window, again and again', async () => {
    const { world, looks, open } = await aFleet()
    await using _ = world
    const reader = await open('pods?sort=cpuUsed&order=desc&limit=1')
    expect([...looks]).toEqual(['east'])
    looks.clear()
    await expect.poll(() => [...looks], { interval: 100 }).toEqual(['east'])
    // Another pod uses more by now: its cluster is looked at instead.
    await use(world, 'west', { web: 3 })
    await reader.until(() => reader.frames.some(({ event }) => event === 'rowsChange'))
    looks.clear()
    await expect.poll(() => [...looks], { interval: 100 }).toEqual(['west'])
  })

  it('is looked at on all clusters by who is shown all rows, and by nobody who is shown none of it', async () => {
    const { world, looks, open } = await aFleet()
    await using _ = world
    await open('services')
    expect([...looks]).toEqual([])
    await open('pods')
    expect([...looks].toSorted()).toEqual(['east', 'west'])
  })

  it('is neither shown nor looked at without the right to see measurements', async () => {
    const { world, looks, open } = await aFleet({
      identity: proxy,
      policies: [allow('ann', { metrics: false })],
    })
    await using _ = world
    const reader = await open('pods', { 'x-forwarded-user': 'ann' })
    const [rows] = reader.frames.filter(({ event }) => event === 'rows')
    expect(rows?.data).toMatchObject({ total: 2 })
    expect(JSON.stringify(rows?.data)).toContain('"cpuUsed":null')
    expect([...looks]).toEqual([])
  })
})
