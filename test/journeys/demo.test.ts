import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createClient } from '#http'
import { clusterpulse, eventually, type Running } from '../process.ts'

const DAY = 86_400_000
let folder: string
let hub: Running
let address: string
let servedAt: number

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'clusterpulse-demo-'))
  hub = clusterpulse(['up', '--demo', '--data-dir', folder, '--port', '0', '--control-plane-port', '0'])
  address = (await hub.says(/on (http:\/\/127\.0\.0\.1:\d+)/, 120_000))[1] ?? ''
  servedAt = Date.now()
}, 150_000)
afterAll(async () => {
  await hub?.[Symbol.asyncDispose]()
  await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
})

it('the demo has the first tables at once and its 30 days soon after, marked as made up', async () => {
  const client = createClient({ baseUrl: address })
  const read = async () => (await client.clusters()).items.filter(({ nodes }) => nodes !== null).length
  await eventually(read, (clusters) => clusters >= 5, 30_000)
  const tableMs = Date.now() - servedAt
  const past = async () => {
    const answer = await fetch(
      `${address}/api/v1/clusters/prod-east/metrics/history?metric=nodes_total&range=30d&step=3600`,
    )
    return (await answer.json()) as {
      series: { points: [number, number | null][] }[]
      spans: { kind: string; from: number }[]
    }
  }
  const since = ({ series }: Awaited<ReturnType<typeof past>>) =>
    series[0]?.points.find(([, value]) => value !== null)?.[0] ?? Number.POSITIVE_INFINITY
  const { spans } = await eventually(past, (history) => since(history) * 1000 < servedAt - 29.5 * DAY, 60_000)
  const pastMs = Date.now() - servedAt
  console.log(`the first tables stood ${tableMs} ms after the page was served, the past was whole after ${pastMs} ms`)
  expect(spans).toContainEqual(expect.objectContaining({ kind: 'simulated' }))
  // Half of that on two calm cores, where 5 s are promised for the past.
  expect(pastMs).toBeLessThan(8_000)
  expect(tableMs).toBeLessThan(3_000)
}, 120_000)

it('the demo says what it does while it starts, and what of it is wrong on purpose, in words and no line of its log', () => {
  const [first, wrong, past, ...others] = hub.stdout().trim().split('\n')
  expect(first).toMatch(/^Starting: a simulated fleet of six clusters …$/)
  expect(wrong).toMatch(/Wrong on purpose.*dr-site cannot be reached.*registry old-registry is off/)
  expect(past).toMatch(/last 30 days are made up/)
  expect(others.join('\n')).toMatch(/^ClusterPulse shows a simulated fleet on http/)
  expect(hub.stderr()).toBe('')
})
