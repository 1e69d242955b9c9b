import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { buildPage, noBrowser, openBrowser } from '../../web/testing/browser.ts'
import { FakeHub } from '../../web/testing/fake-hub.ts'
import { aCluster, aNode } from '../../web/testing/worlds.ts'

const suite = noBrowser === undefined ? 'the page at scale' : `the page at scale (skipped: ${noBrowser})`
const nodeCount = 100_000

describe.skipIf(noBrowser !== undefined)(suite, { timeout: 90_000 }, () => {
  let built: ReturnType<typeof buildPage>
  let browser: Browser
  let hub: FakeHub
  let base: string
  let page: Page

  beforeAll(async () => {
    built = buildPage()
    browser = await openBrowser()
    const now = Date.now()
    const worlds = Array.from({ length: 500 }, (_, index) =>
      aCluster(`cluster-${index}`, now, { nodes: 2, health: index % 50 === 0 ? 'degraded' : 'healthy' }),
    )
    const large = aCluster('large', now)
    const bare = { conditions: [], labels: {}, annotations: {} }
    large.rows.node.length = 0
    for (let index = 0; index < nodeCount; index++)
      large.rows.node.push({ ...aNode('large', `node-${index}`, now, { used: (index % 101) / 100 }), ...bare })
    hub = new FakeHub({ root: built.root }).fill([...worlds, large])
    base = await hub.start()
    page = await browser.newPage({ viewport: { width: 1280, height: 800 } })
  }, 180_000)
  afterAll(async () => {
    await browser?.close()
    await hub?.stop()
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

  it('scrolls 100 000 rows without a blank, filters and sorts them in place', { timeout: 180_000 }, async () => {
    await page.goto(`${base}/clusters/large/nodes?sort=name`)
    // On a calm machine after 0.9 s; the others follow.
    await page.locator('tr[data-index]').first().waitFor({ timeout: 10_000 })
    expect(await page.evaluate<number>('performance.now()')).toBeLessThan(5_000)
    await page.getByText('100,000 nodes').waitFor({ timeout: 30_000 })
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
    await page.getByRole('textbox', { name: 'Filter nodes' }).fill('cpu>99')
    await page.getByText(/^990 of 100,000 nodes/).waitFor()
    await page.getByRole('button', { name: 'Clear the filter' }).click()
    await page.getByText('100,000 nodes').waitFor()
    const shown = page.locator('tr[data-index="0"]')
    await page.getByRole('button', { name: 'CPU', exact: true }).click()
    await expect.poll(() => shown.innerText(), { timeout: 30_000 }).toContain('100 %')
  })
})
