import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createClient } from '#http'
import { clusterpulse, eventually, type Running } from '../process.ts'

const HOUR_MS = 3_600_000
const SLOW_MS = 90_000
const preload = fileURLToPath(new URL('../shifted-clock.mjs', import.meta.url))

let folder = ''
let fleet: Running
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'clock-'))
  fleet = clusterpulse([
    ...['simulate', '--clusters', '2', '--nodes', '2', '--pods', '4'],
    ...['--kubeconfig-out', join(folder, 'fleet.yaml')],
  ])
  await fleet.says(/kubeconfig in/, SLOW_MS)
})
afterAll(async () => {
  await fleet?.[Symbol.asyncDispose]()
  await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
})

it.each([
  ['back by thirty days', -30 * 24 * HOUR_MS],
  ['forward by two hours', 2 * HOUR_MS],
])('a hub whose clock is set %s goes on reading, by the new time', (_, shiftMs) => goesOn(shiftMs))
// Less far than thirty days.
it(
  'a hub whose clock is set back by two hours goes on reading, by the new time',
  {
    tags: ['again'],
  },
  () => goesOn(-2 * HOUR_MS),
)

async function goesOn(shiftMs: number): Promise<void> {
  const file = join(folder, 'shift')
  const set = (ms: number) => writeFile(file, String(ms))
  await set(0)
  const data = join(folder, `data${shiftMs}`)
  await using hub = clusterpulse(
    [
      ...['up', '--data-dir', data, '--port', '0', '--control-plane-port', '0'],
      ...['--kubeconfig', join(folder, 'fleet.yaml')],
    ],
    {
      env: {
        ...{ INGESTER_PORT: '0', RECONCILIATION_INTERVAL: '30s' },
        ...{ SHIFTED_CLOCK: file, NODE_OPTIONS: `--import ${preload}` },
      },
    },
  )
  const baseUrl = (await hub.says(/on (http:\/\/127\.0\.0\.1:\d+)/, SLOW_MS))[1] ?? ''
  const readSince = (moment: number) =>
    eventually(
      async () => {
        const { items } = await createClient({ baseUrl }).clusters()
        return items.map(({ name, nodes, lastSyncAt }) => ({ name, nodes: nodes?.total, lastSyncAt }))
      },
      (found) =>
        found.length === 2 &&
        found.every(
          ({ nodes, lastSyncAt }) => nodes === 2 && Math.abs((lastSyncAt ?? 0) - Date.now() - moment) < SLOW_MS,
        ),
      SLOW_MS,
    )
  await readSince(0)
  await set(shiftMs)
  const seen = await readSince(shiftMs)
  // And not for once: the next round comes as well.
  await eventually(
    () => createClient({ baseUrl }).clusters(),
    ({ items }) => items.every(({ lastSyncAt }, i) => (lastSyncAt ?? 0) > (seen[i]?.lastSyncAt ?? 0)),
    SLOW_MS,
  )
  expect(hub.stderr()).not.toContain('TimeoutOverflowWarning')
}
