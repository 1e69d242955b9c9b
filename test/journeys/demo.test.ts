import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createClient } from '#http'
import { leastOf } from '../../src/platform/runtime/testing/least-of.ts'
import { clusterpulse, eventually, type Running } from '../process.ts'

const DAY = 86_400_000
let folder: string
let hub: Running
let address: string
let servedAt: number
let starts = 0

const start = async () => {
  const data = join(folder, `${starts++}`)
  hub = clusterpulse(['up', '--demo', '--data-dir', data, '--port', '0', '--control-plane-port', '0'], {
    env: { HISTORY_RETENTION: '' },
  })
  address = (await hub.says(/on (http:\/\/127\.0\.0\.1:\d+)/, 120_000))[1] ?? ''
  servedAt = Date.now()
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'clusterpulse-demo-'))
})
afterAll(async () => {
  await hub?.[Symbol.asyncDispose]()
  await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
})

it('the demo has the first tables at once and its 30 days soon after, marked as made up', async () => {
  const read = async () =>
    (await createClient({ baseUrl: address }).clusters()).items.filter(({ nodes }) => nodes !== null).length
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
  // Half of that on two calm cores, where 5 s are promised for the past.
  const most = { tableMs: 3_000, pastMs: 8_000 }
  const excess = await leastOf(3, 1, async () => {
    await hub?.[Symbol.asyncDispose]()
    await start()
    await eventually(read, (clusters) => clusters >= 5)
    const tableMs = Date.now() - servedAt
    const { spans } = await eventually(past, (history) => since(history) * 1000 < servedAt - 29.5 * DAY)
    const pastMs = Date.now() - servedAt
    console.log(`the first tables stood ${tableMs} ms after the page was served, the past was whole after ${pastMs} ms`)
    expect(spans).toContainEqual(expect.objectContaining({ kind: 'simulated' }))
    return Math.max(tableMs / most.tableMs, pastMs / most.pastMs)
  })
  expect(excess, 'of the time that it may take').toBeLessThan(1)
})

it('the demo says what it does while it starts, and what of it is wrong on purpose, in words and no line of its log', () => {
  const [first, wrong, past, ...others] = hub.stdout().trim().split('\n')
  expect(first).toMatch(/^Starting: a simulated fleet of six clusters …$/)
  expect(wrong).toMatch(/Wrong on purpose.*dr-site cannot be reached.*registry old-registry is off/)
  expect(past).toMatch(/last 30 days are made up/)
  expect(others.join('\n')).toMatch(/^ClusterPulse shows a simulated fleet on http/)
  expect(hub.stderr()).toBe('')
})
