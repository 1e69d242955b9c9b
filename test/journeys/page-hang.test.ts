import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { redisMissing, startRedis } from '../../src/pipeline/state/test/redis-server.ts'
import { leastOf } from '../../src/platform/runtime/testing/least-of.ts'
import { noBrowser, openBrowser } from '../../web/testing/browser.ts'
import { originalRound } from '../original-manager.ts'
import { shown } from '../page/shown.ts'
import { clusterpulse, type Running } from '../process.ts'

/** Starts a process that serves the page; the address is where it does. */
interface Serving extends AsyncDisposable {
  readonly hub: Running
  readonly address: string
}

async function up(): Promise<Serving> {
  const folder = await mkdtemp(join(tmpdir(), 'clusterpulse-hang-'))
  const hub = clusterpulse(['up', '--demo', '--data-dir', folder, '--port', '0', '--control-plane-port', '0'])
  const address = (await hub.says(/on (http:\/\/127\.0\.0\.1:\d+)/))[1] ?? ''
  return {
    hub,
    address,
    async [Symbol.asyncDispose]() {
      await hub[Symbol.asyncDispose]()
      await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
    },
  }
}

/** A process of its own beside a manager that another Redis connects it with; whoever wrote there is not needed here. */
async function api(): Promise<Serving> {
  const redis = await startRedis()
  const hand = new Redis(redis.port)
  for (const name of ['one', 'two', 'three', 'four', 'five'])
    await originalRound(hand, { name, nodes: [{ name: `${name}-node` }] })
  hand.disconnect()
  const hub = clusterpulse(['api', '--host', '127.0.0.1', '--port', '0'], {
    env: {
      ...{ REDIS_HOST: '127.0.0.1', REDIS_PORT: String(redis.port), TRUSTED_PROXIES: '127.0.0.1', ADMIN_USERS: 'root' },
      ...{ STATE_SOURCE: 'original', RBAC_SEMANTICS: 'original' },
    },
  })
  const address = (await hub.says(/http:\/\/[\d.:]+/))[0]
  return {
    hub,
    address,
    async [Symbol.asyncDispose]() {
      await hub[Symbol.asyncDispose]()
      await redis[Symbol.asyncDispose]()
    },
  }
}

/** A hub whose process stands still keeps its connections open: nothing breaks off, and nothing comes. */
describe.skipIf(noBrowser !== undefined).each([
  ['up', up, noBrowser, []],
  // The page is the same: what it does there beside the end of a process is shown again.
  ['api', api, noBrowser ?? redisMissing, ['again']],
] as const)('a hub that hangs (%s)', (_, serve, missing, again) => {
  let serving: Serving | undefined
  let browser: Browser
  let page: Page
  beforeAll(async () => {
    if (missing !== undefined) return
    browser = await openBrowser()
    page = await browser.newPage({
      viewport: { width: 1440, height: 900 },
      extraHTTPHeaders: { 'X-Forwarded-User': 'root' },
    })
    // A browser that a test drives puts these headers into what a page asks for, and not into what a worker does.
    await page.addInitScript('delete window.SharedWorker')
    await begin()
  })
  /** A hub, in the place of the one before, and the page on it. */
  const begin = async () => {
    await serving?.[Symbol.asyncDispose]()
    serving = await serve()
    await page.goto(serving.address, { timeout: 90_000 })
    await live().waitFor({ timeout: 60_000 })
    await page.locator('tbody [data-row-link]').nth(4).waitFor({ timeout: 60_000 })
  }
  afterAll(async () => {
    await browser?.close()
    await serving?.[Symbol.asyncDispose]()
  })
  const started = () => {
    if (!serving) throw new Error('no hub was started')
    return serving
  }
  const live = () => page.getByRole('button', { name: /^Connection: Live/ })
  const isFaded = () => page.locator('main.is-unheard').count()
  const hangs = () => page.locator('.banner', { hasText: 'The hub is not heard.' })
  const gone = () => page.locator('.banner', { hasText: /The hub is not heard\.|Offline\./ })

  // Every place between two heartbeats, which are a second apart, has its turn: one at random each time, all in the long run.
  const waits = [1500, 1850, 2200]
  const named = async (waitMs: number) => {
    const saidAfterMs = await leastOf(3, 3000, async () => {
      await page.waitForTimeout(waitMs)
      await expect.poll(() => hangs().count()).toBe(0)
      process.kill(started().hub.pid, 'SIGSTOP')
      try {
        const since = performance.now()
        await hangs().waitFor({ timeout: 20_000 })
        const tookMs = performance.now() - since
        expect(await isFaded()).toBe(1)
        await shown(hangs()).toMatch(/as of \d+ s ago/)
        console.log(`the banner came ${Math.round(tookMs)} ms after the hub stood still`)
        return tookMs
      } finally {
        // A process that stands still does not end.
        process.kill(started().hub.pid, 'SIGCONT')
        await live().waitFor()
        await expect.poll(isFaded).toBe(0)
      }
    })
    expect(saidAfterMs).toBeLessThan(3000)
  }
  const title =
    'is named on the page within three seconds, with everything faded, and heard again as soon as it goes on'
  it.skipIf(missing !== undefined)(title, { tags: [...again] }, () => named(1500 + 1000 * Math.random()))
  it.skipIf(missing !== undefined).each(waits)(`${title}, %d ms after it was`, { tags: ['long'] }, named)

  it.skipIf(missing !== undefined)('is not named where only the page sleeps', { tags: [...again] }, async () => {
    // Of three times: a machine that is too busy to answer in a second is a hub that hangs.
    const seen: unknown[] = []
    while (seen.length < 3 && !seen.includes(false)) {
      await page.locator('main:not(.is-unheard)').waitFor()
      // The page stands still for longer than any of its limits, while the hub goes on.
      await page.evaluate(`(() => {
        const end = Date.now() + 6000
        window.sawBanner = false
        window.watching?.disconnect()
        window.watching = new MutationObserver(() => {
          if (document.querySelector('main.is-unheard')) window.sawBanner = true
        })
        window.watching.observe(document.body, { subtree: true, childList: true, attributes: true })
        while (Date.now() < end);
      })()`)
      await page.waitForTimeout(3000)
      seen.push(await page.evaluate('window.sawBanner'))
    }
    expect(seen).toContain(false)
    await live().waitFor()
  })

  it.skipIf(missing !== undefined)('is named as well where it is killed', async () => {
    let isKilled = false
    const saidAfterMs = await leastOf(3, 3000, async () => {
      if (isKilled) await begin()
      await page.locator('main:not(.is-unheard)').waitFor()
      const since = performance.now()
      await started().hub.kill('SIGKILL')
      isKilled = true
      await gone().waitFor({ timeout: 20_000 })
      const tookMs = performance.now() - since
      console.log(`the banner came ${Math.round(tookMs)} ms after the hub was killed`)
      return tookMs
    })
    expect(saidAfterMs).toBeLessThan(3000)
    expect(await isFaded()).toBe(1)
    await shown(gone()).toMatch(/as of \d+ s ago/)
  })
})
