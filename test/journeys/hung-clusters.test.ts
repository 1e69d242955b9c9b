import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ClusterView, createClient } from '#http'
import { leastOf } from '../../src/platform/runtime/testing/least-of.ts'
import { noBrowser, openBrowser } from '../../web/testing/browser.ts'
import { clusterpulse, eventually, type Running } from '../process.ts'

/** Thirty clusters whose API servers stand still at once: connections stay open, and nothing answers. */
let folder: string
let members: Running
let hub: Running
let address: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'clusterpulse-hung-'))
  const kubeconfig = join(folder, 'fleet.yaml')
  const size = ['--clusters', '30', '--nodes', '2', '--pods', '4']
  members = clusterpulse(['simulate', ...size, '--kubeconfig-out', kubeconfig])
  await members.says(/kubeconfig in/, 120_000)
  const options = ['--data-dir', join(folder, 'hub'), '--port', '0', '--control-plane-port', '0']
  hub = clusterpulse(['up', '--kubeconfig', kubeconfig, ...options])
  address = (await hub.says(/on (http:\/\/127\.0\.0\.1:\d+)/))[1] ?? ''
})
afterAll(async () => {
  await hub?.[Symbol.asyncDispose]()
  process.kill(members.pid, 'SIGCONT')
  await members?.[Symbol.asyncDispose]()
  await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
})

const clusters = async (): Promise<readonly ClusterView[]> =>
  (await createClient({ baseUrl: address }).clusters()).items

describe('clusters that hang', () => {
  it('are each shown as not answering within 15 s, all thirty at once, with the cause in words', async () => {
    const lastMs = await leastOf(3, 15_000, async () => {
      process.kill(members.pid, 'SIGCONT')
      await eventually(clusters, (all) => all.length === 30 && all.every(({ health }) => health === 'healthy'), 120_000)
      process.kill(members.pid, 'SIGSTOP')
      const since = performance.now()
      const shownAfterMs = new Map<string, number>()
      await eventually(
        clusters,
        (all) => {
          for (const { name, health } of all)
            if (health === 'unhealthy' && !shownAfterMs.has(name)) shownAfterMs.set(name, performance.now() - since)
          return shownAfterMs.size === 30
        },
        60_000,
      )
      const times = [...shownAfterMs.values()].sort((a, b) => a - b).map(Math.round)
      console.log(`shown after ${times[0]} to ${times.at(-1)} ms`)
      return times.at(-1) ?? Number.NaN
    })
    expect(lastMs).toBeLessThan(15_000)
    for (const { message, reasons } of await clusters()) {
      // Between two rounds, or in the midst of one.
      expect(message).toMatch(
        /^(connection test failed|failed to get node metrics): .*did not answer completely within 10 s/,
      )
      expect(reasons[0]?.code).toBe('kube_timeout')
    }
  })

  it.skipIf(noBrowser !== undefined)(
    'leave the first row of the fleet in the upper part of the screen, and are one line',
    async () => {
      const browser = await openBrowser()
      try {
        const page = await browser.newPage({ viewport: { width: 1440, height: 900 } })
        await page.goto(address, { timeout: 90_000 })
        await page
          .locator('.attention summary', { hasText: /^30 clusters: its API did not answer completely within 10 s/ })
          .waitFor()
        await page.locator('tr[data-index]').first().waitFor()
        const top = () => page.evaluate<number>(`document.querySelector('tr[data-index]').getBoundingClientRect().top`)
        await expect.poll(top).toBeLessThanOrEqual(360)
        // And it stays there.
        await page.waitForTimeout(1000)
        const { SHOTS } = process.env
        if (SHOTS) await page.screenshot({ path: join(SHOTS, 'hung.png') })
        expect(await top()).toBeLessThanOrEqual(360)
      } finally {
        await browser.close()
      }
    },
  )
})
