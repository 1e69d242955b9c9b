import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { gzipSync } from 'node:zlib'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { leastOf } from '../../src/platform/runtime/testing/least-of.ts'
import { buildPage, noBrowser, openBrowser } from '../../web/testing/browser.ts'
import { aCluster, aNode, type Round } from '../page/clusters.ts'
import { PageHub } from '../page/hub.ts'

const suite = noBrowser === undefined ? 'the page at scale' : `the page at scale (skipped: ${noBrowser})`
const nodeCount = 100_000

describe.skipIf(noBrowser !== undefined)(suite, () => {
  let built: ReturnType<typeof buildPage>
  let browser: Browser
  let hub: PageHub
  let base: string
  let page: Page

  beforeAll(async () => {
    built = buildPage()
    browser = await openBrowser()
    hub = await PageHub.open({ root: built.root })
    const now = hub.now()
    const clusters = Array.from({ length: 500 }, (_, index) =>
      aCluster(`cluster-${index}`, now, { nodes: 2, rounds: 1, notReady: index % 50 === 0 ? 1 : 0 }),
    )
    const bare = { conditions: [], labels: {}, annotations: {} }
    const nodes = Array.from({ length: nodeCount }, (_, index) => ({
      ...aNode(`node-${index}`, now, { used: (index % 101) / 100 }),
      ...bare,
    }))
    // No record of the log is larger than 32 MiB: what comes after the first of them comes as differences.
    const [nodeList, ...more] = [0, 1, 2, 3].map((part) => nodes.filter((_, index) => index % 4 === part))
    const large = aCluster('large', now, { nodeList: nodeList ?? [], rounds: 1 })
    const rounds = more.map((put): Round => {
      const part = { type: 'node', collector: 'node', durationMs: 20, outcome: 'changed', put, removed: [] } as const
      return { at: now - 4000, source: 'pull', parts: [part] }
    })
    await hub.fill(clusters)
    for (const round of [...large.rounds, ...rounds]) await hub.put({ ...large, rounds: [round] })
    base = await hub.gateway.start()
    page = await browser.newPage({ viewport: { width: 1280, height: 800 } })
  })
  afterAll(async () => {
    await browser?.close()
    await hub?.[Symbol.asyncDispose]()
    built?.[Symbol.dispose]()
  })

  it('loads at most 180 KB of script first and 60 KB per further view, compressed', () => {
    const size = (file: string) => gzipSync(readFileSync(join(built.root, file))).length
    const first = [
      ...readFileSync(join(built.root, 'index.html'), 'utf8').matchAll(/(?:src|href)="\/([^"]+\.js)"/g),
    ].map(([, file]) => file ?? '')
    expect(first.length).toBeGreaterThan(1)
    expect(first.reduce((sum, file) => sum + size(file), 0)).toBeLessThan(180 * 1024)
    const further = readdirSync(join(built.root, 'assets')).filter(
      (file) => file.endsWith('.js') && !first.includes(`assets/${file}`),
    )
    expect(further.length).toBeGreaterThan(0)
    for (const file of further) expect(size(`assets/${file}`), file).toBeLessThan(60 * 1024)
  })

  it('holds 500 clusters with few rows in the document', async () => {
    await page.goto(base)
    await page.getByText('501 clusters').first().waitFor()
    await page.locator('tr[data-index]').first().waitFor()
    expect(await page.locator('tr[data-index]').count()).toBeLessThan(90)
  })

  it('scrolls 100 000 rows without a blank, filters and sorts them in place', async () => {
    const session = await page.context().newCDPSession(page)
    // Time of the thread, not of the wall: other work on the machine does not count.
    await session.send('Performance.enable', { timeDomain: 'threadTicks' })
    const pageCpuMs = async () => {
      const { metrics } = await session.send('Performance.getMetrics')
      const spent = metrics.filter(({ name }) => /^(Script|Layout|RecalcStyle)Duration$/.test(name))
      return 1000 * spent.reduce((sum, { value }) => sum + value, 0)
    }
    // What the hub was filled with is written beside its answers, and leaves garbage: neither is of the first rows.
    await hub.written()
    collectGarbage()
    const timed = `new MutationObserver((_, observer) => {
      if (!document.querySelector('tr[data-index]')) return
      observer.disconnect()
      requestAnimationFrame(() => { globalThis.firstRowsMs = performance.now() })
    }).observe(document, { childList: true, subtree: true })`
    await page.addInitScript(timed)
    let tookMs = Number.NaN
    const told: string[] = []
    // Some 150 and 400 on a calm machine, the half of it the browser's driver; beside others time of a processor triples.
    const most = { pageMs: 500, hubMs: 1500 }
    const excess = await leastOf(3, 1, async () => {
      await page.goto('about:blank')
      const pageBefore = await pageCpuMs()
      const before = process.cpuUsage()
      await page.goto(`${base}/clusters/large/nodes?sort=name`)
      await page.locator('tr[data-index]').first().waitFor({ timeout: 60_000 })
      tookMs = await page.evaluate<number>('globalThis.firstRowsMs')
      const { user, system } = process.cpuUsage(before) // the hub runs in this process, beside the test
      const hubMs = (user + system) / 1000
      const pageMs = (await pageCpuMs()) - pageBefore
      told.push(
        `first rows on screen after ${tookMs.toFixed()} ms, of CPU ${pageMs.toFixed()} of the page and ${hubMs.toFixed()} of the hub`,
      )
      await page.getByText('100,000 rows', { exact: true }).waitFor({ timeout: 30_000 })
      return Math.max(pageMs / most.pageMs, hubMs / most.hubMs)
    })
    console.log(told.join('\n'))
    expect(excess, told.join('\n')).toBeLessThan(1)
    // What others of the machine take is not the page's: the best of several, each without a cache, says what it needs.
    const shownMs = await leastOf(8, 1_000, async () => {
      const fresh = await browser.newPage({ viewport: { width: 1280, height: 800 } })
      await fresh.addInitScript(timed)
      await fresh.goto(`${base}/clusters/large/nodes?sort=name`)
      await fresh.locator('tr[data-index]').first().waitFor({ timeout: 60_000 })
      const firstRowsMs = await fresh.evaluate<number>('globalThis.firstRowsMs')
      await fresh.close()
      return firstRowsMs
    })
    console.log(`first rows on screen after ${Math.round(Math.min(tookMs, shownMs))} ms`)
    expect(Math.min(tookMs, shownMs)).toBeLessThan(1_000)
    await page.getByText('100,000 rows', { exact: true }).waitFor({ timeout: 30_000 })
    // After each jump and one frame, every line of the view must hold a row.
    const blanks = await page.evaluate<number[]>(`(async () => {
      const box = document.querySelector('.table-scroll')
      const frame = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))
      const found = []
      for (let step = 0; step <= 40; step++) {
        box.scrollTop = (box.scrollHeight - box.clientHeight) * (step % 2 ? step : 40 - step) / 40
        await frame()
        const top = box.getBoundingClientRect().top + 40
        let missing = 0
        for (let y = top; y < Math.min(top + box.clientHeight - 60, innerHeight); y += 40)
          if (!document.elementFromPoint(box.getBoundingClientRect().left + 50, y)?.closest('tr[data-index]')) missing++
        found.push(missing)
      }
      return found
    })()`)
    expect(
      blanks.every((count) => count === 0),
      blanks.join(' '),
    ).toBe(true)
    await page.getByRole('textbox', { name: 'Filter nodes rows' }).fill('cpu>99')
    await page.getByText(/^990 of 100,000 rows/).waitFor()
    await page.getByRole('button', { name: 'Clear the filter' }).click()
    await page.getByText('100,000 rows', { exact: true }).waitFor()
    const shown = page.locator('tr[data-index="0"]')
    await page.getByRole('button', { name: 'CPU', exact: true }).click()
    await expect.poll(() => shown.innerText()).toContain('100 %')
  })
})

function collectGarbage(): void {
  setFlagsFromString('--expose-gc')
  ;(runInNewContext('gc') as () => void)()
}
