import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Client, createClient, type FleetPageView } from '#http'
import { get } from '../../src/apps/cli/get.ts'
import { clusterpulse, eventually, type Running } from '../process.ts'

/** What nodes and pods use: from metrics.k8s.io and kubelets of simulated members to rows, sums and a terminal. */
let folder: string
let hub: Running
let address: string
let client: Client
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'clusterpulse-usage-'))
  hub = clusterpulse(['up', '--demo', '--data-dir', folder, '--port', '0', '--control-plane-port', '0'])
  address = (await hub.says(/on (http:\/\/127\.0\.0\.1:\d+)/))[1] ?? ''
  client = createClient({ baseUrl: address })
})
afterAll(async () => {
  await hub?.[Symbol.asyncDispose]()
  await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
})

const onCluster = ({ clusters }: FleetPageView, name: string) => clusters.find(({ cluster }) => cluster === name)
const rows = (type: string, query: Parameters<Client['fleetRows']>[1]) =>
  client.fleetRows(type, query).catch(() => undefined)

describe('what nodes and pods use', () => {
  it('is shown with pods of every cluster that measures it: sorted, filtered and summed up', async () => {
    const page = await eventually(
      () => rows('pods', { sort: 'cpuUsed', order: 'desc', limit: 50 }),
      (one) =>
        onCluster(one ?? ({ clusters: [] } as never), 'prod-east')?.measured?.outcome === 'complete' &&
        typeof one?.items[0]?.values.diskUsed === 'number',
      120_000,
    )
    const used = (page?.items ?? []).map(({ values }) => Number(values.cpuUsed))
    expect(used).toEqual(used.toSorted((a, b) => b - a))
    const [most] = page?.items ?? []
    expect(most?.values).toMatchObject({
      cpuUsed: expect.any(Number),
      memoryUsed: expect.any(Number),
      diskUsed: expect.any(Number),
    })
    expect(page?.source?.columns.filter(({ measured }) => measured).map(({ name }) => name)).toEqual([
      'cpuUsed',
      'memoryUsed',
      'diskUsed',
    ])

    // What was measured a while ago is no more, and measured again as somebody looks.
    const measured = () => client.fleetRows('pods', { cluster: ['prod-east'], where: ['cpuUsed>=0'], limit: 1000 })
    const east = await eventually(measured, ({ total }) => total > 0)
    const seen = onCluster(east, 'prod-east')
    expect(seen?.aggregations?.cpuUsed).toEqual(expect.any(Number))
    for (const { values } of east.items) expect(Number(values.memoryUsed)).toBeGreaterThan(0)
  })

  it('is shown with nodes, within what they have', async () => {
    const page = await eventually(
      () => rows('nodes', { cluster: ['prod-east'] }),
      (one) =>
        one !== undefined &&
        one.items.length > 0 &&
        one.items.every(({ values }) => typeof values.diskUsed === 'number'),
      60_000,
    )
    for (const { values } of page?.items ?? []) {
      expect(Number(values.diskUsed)).toBeLessThan(Number(values.diskCapacity))
      expect(Number(values.cpuUsed)).toBeLessThan(Number(values.cpuCapacity))
    }
  })

  it('is told to be absent where no metrics server runs, by the agent of that cluster', async () => {
    let pushedAt: number | undefined
    const page = await eventually(
      () => rows('pods', { cluster: ['edge-paris'] }),
      (one) => {
        const seen = one && onCluster(one, 'edge-paris')
        // Until the agent delivers the hub reads it: what was measured since then is the agent's.
        if (seen?.part.freshness?.source === 'push') pushedAt ??= seen.part.freshness.observedAt
        return pushedAt !== undefined && (seen?.measured?.attemptedAt ?? 0) > pushedAt
      },
      120_000,
    )
    const seen = page && onCluster(page, 'edge-paris')
    expect(seen?.measured).toMatchObject({ outcome: 'absent', freshness: null })
    expect(seen?.part.freshness?.source).toBe('push')
    expect(page?.items.map(({ values }) => values.cpuUsed)).toEqual(page?.items.map(() => null))
  })

  it('is read every few seconds while somebody looks, and with the rounds when nobody does', async () => {
    const measuredAt = async (name: string) => {
      const page = await client.fleetRows('pods', { cluster: [name], limit: 1 })
      return onCluster(page, name)?.measured?.freshness?.observedAt ?? 0
    }
    // Asked every second, new numbers come after five: three of them in less than a round.
    const times = new Set<number>()
    await eventually(
      async () => times.add(await measuredAt('prod-east')),
      () => times.size >= 4,
      120_000,
    )
    const [, second = 0, ...later] = [...times].sort((a, b) => a - b)
    expect(Math.min(...later.map((at, i) => at - [second, ...later][i]!))).toBeLessThan(15_000)
    // Nobody looked at this one for half a minute: what is known of it is as old as a round.
    await new Promise((resolve) => setTimeout(resolve, 45_000))
    const types = await client.type('pods')
    const looked = types.clusters.find(({ cluster }) => cluster === 'prod-east')?.measured?.freshness?.observedAt ?? 0
    await new Promise((resolve) => setTimeout(resolve, 12_000))
    const again = (await client.type('pods')).clusters.find(({ cluster }) => cluster === 'prod-east')
    const passed = (again?.measured?.freshness?.observedAt ?? 0) - looked
    expect(passed === 0 || passed > 15_000).toBe(true)
  })

  it('is printed by the command line', async () => {
    const top = { what: 'nodes', sort: 'memory', count: 3 } as const
    const { text } = await get({
      noun: { kind: 'nodes' },
      names: [],
      clusters: ['prod-east'],
      output: 'table',
      server: address,
      top,
    })
    const [head, ...lines] = text.split('\n').map((line) => line.split(/ {3,}/))
    expect(head).toEqual(['CLUSTER', 'NAME', 'CPU', 'CPU%', 'MEMORY', 'MEMORY%', 'DISK', 'DISK%', 'AS-OF'])
    expect(lines).toHaveLength(3)
    for (const line of lines) expect(line).not.toContain('-')
    const command = clusterpulse(['top', 'pods', '--server', address, '--limit', '2', '-o', 'json'])
    expect(await command.ended()).toBe(0)
    expect(JSON.parse(command.stdout())).toMatchObject([{ values: { cpu_used: expect.any(Number) } }, {}])
  })
})
