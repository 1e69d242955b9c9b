import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { buildPage, noBrowser, openBrowser } from '../../web/testing/browser.ts'
import { FakeHub } from '../../web/testing/fake-hub.ts'
import { aPast, aTroubledPast } from '../../web/testing/histories.ts'
import { aCluster, anAgent, demoFleet } from '../../web/testing/worlds.ts'

const axeSource = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const suite = noBrowser === undefined ? 'history on the page' : `history on the page (skipped: ${noBrowser})`
const patient = { timeout: 20_000 }
const minute = 60_000

describe.skipIf(noBrowser !== undefined)(suite, { timeout: 90_000 }, () => {
  let built: ReturnType<typeof buildPage>
  let browser: Browser
  let hub: FakeHub
  let base: string
  const open: (() => Promise<void>)[] = []
  const complaints: string[] = []

  beforeAll(async () => {
    built = buildPage()
    browser = await openBrowser()
  }, 180_000)
  afterAll(async () => {
    await browser?.close()
    built?.[Symbol.dispose]()
  })
  beforeEach(async () => {
    complaints.length = 0
    hub = new FakeHub({ root: built.root }).fill(demoFleet(Date.now()))
    hub.pasts.set('eu-prod-2', aTroubledPast(Date.now()))
    base = await hub.start()
  })
  afterEach(async () => {
    for (const close of open.splice(0)) await close()
    await hub.stop()
    expect(complaints).toEqual([])
  })

  async function visit(path: string, options: BrowserContextOptions = {}): Promise<Page> {
    const context = await browser.newContext({
      viewport: { width: 1280, height: 800 },
      reducedMotion: 'reduce',
      ...options,
    })
    open.push(() => context.close())
    const page = await context.newPage()
    page.setDefaultTimeout(20_000)
    page.on('pageerror', (error) => complaints.push(error.message))
    page.on('console', (message) => {
      if (/Content Security Policy|Minified React error/.test(message.text())) complaints.push(message.text())
    })
    await page.goto(`${base}${path}`)
    return page
  }
  const drawn = async (page: Page, charts = 6): Promise<void> => {
    await expect.poll(() => page.locator('.chart canvas').count(), patient).toBe(charts)
  }
  const text = (page: Page) => page.locator('main').innerText()
  const queryOf = (page: Page) => new URL(page.url()).searchParams
  const asked = () => hub.requests.filter((request) => request.includes('/metrics/history'))
  const cpu = (page: Page) => page.getByRole('slider', { name: /^CPU/ })

  /** The middle part of a chart, by share of its width; 0 is the left end of the time axis. */
  async function at(page: Page, share: number): Promise<{ x: number; y: number }> {
    const box = await cpu(page).locator('.u-over').boundingBox()
    if (!box) throw new Error('there is no chart')
    return { x: box.x + box.width * share, y: box.y + box.height / 2 }
  }
  async function brush(page: Page, from: number, to: number): Promise<void> {
    const [start, end] = [await at(page, from), await at(page, to)]
    await page.mouse.move(start.x, start.y)
    await page.mouse.down()
    await page.mouse.move((start.x + end.x) / 2, start.y, { steps: 4 })
    await page.mouse.move(end.x, end.y, { steps: 4 })
    await page.mouse.up()
  }
  const rangeMs = (page: Page) =>
    Date.parse(queryOf(page).get('to') ?? '') - Date.parse(queryOf(page).get('from') ?? '')

  describe('charts', () => {
    it('loads the drawing library with the first chart, and not before', async () => {
      const page = await visit('/clusters/eu-prod-1')
      await page.getByRole('heading', { level: 1 }).waitFor()
      expect(hub.requests.filter((request) => request.includes('history-view'))).toEqual([])
      await page.getByRole('link', { name: 'History' }).click()
      await drawn(page)
      expect(hub.requests.some((request) => request.includes('history-view'))).toBe(true)
    })

    it('asks once for all charts, with a step that gives each point its pixel', async () => {
      const page = await visit('/clusters/eu-prod-1/history?range=24h')
      await drawn(page)
      expect(asked()).toHaveLength(1)
      expect(asked()[0]).toMatch(/^\/api\/v1\/clusters\/eu-prod-1\/metrics\/history\?metric=cpu_used%2C.*range=24h/)
      expect(asked()[0]).toMatch(/step=300\b/)
    })

    it('draws repaired, pulled and lost stretches, and names each in the legend', async () => {
      const page = await visit('/clusters/eu-prod-2/history')
      await drawn(page)
      const legend = await page.getByRole('list', { name: 'Stretches that did not come live' }).innerText()
      expect(legend).toMatch(/repaired\s+24 batches/)
      expect(legend).toMatch(/pulled by the hub\s+12 batches/)
      expect(legend).toMatch(/lost\s+6 batches \(thinned\)/)
    })

    it('leaves a hole where nothing came: no line crosses it', async () => {
      const now = Date.now()
      hub.pasts.set('eu-prod-1', aPast(now, { holes: [[now - 40 * minute, now - 20 * minute]] }))
      const page = await visit('/clusters/eu-prod-1/history')
      await drawn(page)
      const ink = async (share: number) => {
        await expect.poll(() => page.locator('.is-faded').count(), patient).toBe(0)
        return page.evaluate<number>(`(() => {
          const chart = document.querySelector('.chart')
          const canvas = chart.querySelector('canvas'), over = chart.querySelector('.u-over')
          const ratio = canvas.width / canvas.getBoundingClientRect().width
          const left = (over.offsetLeft + over.clientWidth * ${share}) * ratio
          const { data } = canvas.getContext('2d').getImageData(left, over.offsetTop * ratio, 4, over.clientHeight * ratio)
          let blue = 0
          for (let at = 0; at < data.length; at += 4) if (data[at + 3] > 200 && data[at + 2] - data[at] > 80) blue++
          return blue
        })()`)
      }
      await expect.poll(() => ink(0.15), patient).toBeGreaterThan(0)
      expect(await ink(0.5)).toBe(0)
      expect(await ink(0.9)).toBeGreaterThan(0)
    })

    it('shows the charts of a node beside the node', async () => {
      const page = await visit('/clusters/eu-prod-2/nodes/worker-1')
      await drawn(page, 5)
      expect(asked()[0]).toContain('/api/v1/clusters/eu-prod-2/nodes/worker-1/metrics/history?metric=cpu_usage_percent')
      const usage = page.getByRole('figure', { name: 'Usage' })
      await expect.poll(() => usage.innerText(), patient).toMatch(/CPU\s+[\d.]+ %\s+memory\s+[\d.]+ %/)
    })
  })

  describe('in the drawer of a node', () => {
    it('loads the charts with the drawer and not with the list, and fits a telephone', async () => {
      const page = await visit('/clusters/eu-prod-2/nodes', { viewport: { width: 360, height: 640 } })
      const link = page.getByRole('link', { name: 'worker-1' })
      await link.waitFor()
      expect([...asked(), ...hub.requests.filter((request) => request.includes('history-view'))]).toEqual([])
      await link.click()
      const drawer = page.getByRole('dialog', { name: 'worker-1' })
      await drawn(page, 5)
      const over = () =>
        page.evaluate<number>(`Math.max(...[...document.querySelectorAll('dialog, .drawer, .chart')].map((one) =>
          one.scrollWidth - one.clientWidth))`)
      await expect.poll(over, patient).toBeLessThanOrEqual(0)
      const chart = drawer.locator('.chart canvas').first()
      await expect.poll(async () => (await chart.boundingBox())?.width ?? 0, patient).toBeGreaterThan(250)
    })

    it('leaves the zoom by Escape before it closes', async () => {
      const page = await visit('/clusters/eu-prod-2/nodes/worker-1')
      await drawn(page, 5)
      await page.getByRole('slider', { name: /^Usage/ }).focus()
      await page.keyboard.press('+')
      await expect.poll(() => queryOf(page).has('from'), patient).toBe(true)
      await page.keyboard.press('Escape')
      await expect.poll(() => queryOf(page).has('from'), patient).toBe(false)
      expect(await page.getByRole('dialog').count()).toBe(1)
      await page.keyboard.press('Escape')
      await page.getByRole('dialog').waitFor({ state: 'detached' })
    })
  })

  describe('one time for all charts', () => {
    it('tells time, values with units, source and age under the crosshair', async () => {
      const page = await visit('/clusters/eu-prod-2/history')
      await drawn(page)
      const readout = page.getByRole('complementary', { name: 'Values at one time' })
      await expect.poll(() => readout.innerText(), patient).toMatch(/newest/)
      const { x, y } = await at(page, 0.2)
      await page.mouse.move(x, y)
      await expect.poll(() => readout.innerText(), patient).toMatch(/\d+ min ago[\s\S]*repaired: 24 batches sent later/)
      expect(await readout.innerText()).toMatch(/used\s+[\d.]+ cores[\s\S]*used\s+[\d.]+ Gi[\s\S]*running\s+\d+/)
      // Every chart has its crosshair there.
      const spread = () =>
        page.evaluate<[number, number]>(`(() => {
          const lefts = [...document.querySelectorAll('.u-cursor-x')].map((line) => line.getBoundingClientRect().left)
          return [lefts.length, Math.round(Math.max(...lefts) - Math.min(...lefts))]
        })()`)
      await expect.poll(spread, patient).toEqual([6, 0])
      await page.mouse.move(5, 5)
      await expect.poll(() => readout.innerText(), patient).toMatch(/newest/)
    })

    it('says of a lost stretch that it is lost and why, and of a hole that there is no sample', async () => {
      const page = await visit('/clusters/eu-prod-2/history')
      await drawn(page)
      const readout = page.getByRole('complementary', { name: 'Values at one time' })
      const lost = await at(page, 37.5 / 60)
      await page.mouse.move(lost.x, lost.y)
      await expect.poll(() => readout.innerText(), patient).toMatch(/lost: 6 batches will never come, thinned out/)
      const hole = await at(page, 50 / 60)
      await page.mouse.move(hole.x, hole.y)
      await expect.poll(() => readout.innerText(), patient).toMatch(/no sample/)
    })

    it('follows the pointer over 19 lines of 2000 points within the time of a frame', async () => {
      hub.pasts.set('eu-prod-1', aPast(Date.now(), { stepMs: 1800 }))
      const page = await visit('/clusters/eu-prod-1/history')
      await drawn(page)
      const session = await page.context().newCDPSession(page)
      // Time of the thread, not of the wall: other work on the machine does not count.
      await session.send('Performance.enable', { timeDomain: 'threadTicks' })
      const spentMs = async () => {
        const { metrics } = await session.send('Performance.getMetrics')
        const of = (name: string) => metrics.find((metric) => metric.name === name)?.value ?? Number.NaN
        return 1000 * (of('ScriptDuration') + of('LayoutDuration') + of('RecalcStyleDuration'))
      }
      const before = await spentMs()
      const moves = 100
      for (let move = 0; move < moves; move++) {
        const { x, y } = await at(page, ((move * 37) % moves) / moves)
        await page.mouse.move(x, y)
      }
      expect((await spentMs()) - before).toBeLessThan(16 * moves)
    })

    it('is worked by keyboard: walk, zoom, ends, and out again', async () => {
      const page = await visit('/clusters/eu-prod-1/history')
      await drawn(page)
      const slider = cpu(page)
      await slider.focus()
      const value = async () => (await slider.getAttribute('aria-valuetext')) ?? ''
      await page.keyboard.press('ArrowLeft')
      const newest = await value()
      expect(newest).toMatch(/: used [\d.]+ cores, requested [\d.]+ cores/)
      await page.keyboard.press('ArrowLeft')
      expect(await value()).not.toBe(newest)
      await page.keyboard.press('ArrowRight')
      expect(await value()).toBe(newest)
      await page.keyboard.press('Home')
      const first = Number(await slider.getAttribute('aria-valuenow'))
      expect(first - Number(await slider.getAttribute('aria-valuemin'))).toBeLessThan(60)
      await page.keyboard.press('End')
      expect(await value()).toBe(newest)
      await page.keyboard.press('+')
      await expect.poll(() => rangeMs(page), patient).toBeCloseTo(30 * minute, -4)
      await expect.poll(() => page.locator('.is-faded').count(), patient).toBe(0)
      await page.keyboard.press('-')
      await expect.poll(() => rangeMs(page), patient).toBeCloseTo(60 * minute, -4)
      await page.keyboard.press('ArrowLeft')
      await page.keyboard.press('Escape') // lets the crosshair go
      expect(queryOf(page).has('from')).toBe(true)
      await page.keyboard.press('Escape') // back to the whole range
      await expect.poll(() => queryOf(page).has('from'), patient).toBe(false)
    })
  })

  describe('the range', () => {
    it('zooms by brush, is in the address, and Back and double-click lead out', async () => {
      const page = await visit('/clusters/eu-prod-1/history?range=6h')
      await drawn(page)
      await brush(page, 0.25, 0.75)
      await expect.poll(() => rangeMs(page), patient).toBeGreaterThan(2.8 * 60 * minute)
      expect(rangeMs(page)).toBeLessThan(3.2 * 60 * minute)
      const link = page.url()
      await expect.poll(() => asked().at(-1) ?? '', patient).toMatch(/start=\d+&end=\d+/)

      const other = await visit(link.slice(base.length))
      await drawn(other)
      expect(rangeMs(other)).toBe(rangeMs(page))
      await other.close()

      await page.goBack()
      await expect.poll(() => page.url(), patient).toBe(`${base}/clusters/eu-prod-1/history?range=6h`)
      await expect.poll(() => page.locator('.is-faded').count(), patient).toBe(0)
      await brush(page, 0.3, 0.6)
      await expect.poll(() => queryOf(page).has('from'), patient).toBe(true)
      await expect.poll(() => page.locator('.is-faded').count(), patient).toBe(0)
      const { x, y } = await at(page, 0.5)
      await page.mouse.dblclick(x, y)
      await expect.poll(() => page.url(), patient).toBe(`${base}/clusters/eu-prod-1/history?range=6h`)
    })

    it('shows on every chart what is brushed on one', async () => {
      const page = await visit('/clusters/eu-prod-1/history?range=6h')
      await drawn(page)
      const [start, end] = [await at(page, 0.25), await at(page, 0.75)]
      await page.mouse.move(start.x, start.y)
      await page.mouse.down()
      await page.mouse.move(end.x, end.y, { steps: 6 })
      const shares = () =>
        page.evaluate<string[]>(`[...document.querySelectorAll('.chart .u-over')].map((over) =>
          (over.querySelector('.u-select').clientWidth / over.clientWidth).toFixed(1))`)
      await expect.poll(shares, patient).toEqual(['0.5', '0.5', '0.5', '0.5', '0.5', '0.5'])
      await page.mouse.up()
      await expect.poll(() => rangeMs(page), patient).toBeGreaterThan(2.8 * 60 * minute)
      await expect.poll(shares, patient).toEqual(['0.0', '0.0', '0.0', '0.0', '0.0', '0.0'])
    })

    it('takes a brush that ends beyond the chart up to its edge', async () => {
      const page = await visit('/clusters/eu-prod-1/history?range=6h')
      await drawn(page)
      const [start, inside] = [await at(page, 0.5), await at(page, 0.97)]
      await page.mouse.move(start.x, start.y)
      await page.mouse.down()
      await page.mouse.move(inside.x, inside.y, { steps: 5 })
      await page.mouse.move(inside.x + 200, inside.y, { steps: 3 })
      await page.getByText('newest, ').waitFor() // no chart is pointed at
      await page.mouse.up()
      await expect.poll(() => rangeMs(page), patient).toBeGreaterThan(2.6 * 60 * minute)
      expect(rangeMs(page)).toBeLessThan(3.2 * 60 * minute)
    })

    it('takes a custom range, and says what is none', async () => {
      const page = await visit('/clusters/eu-prod-1/history')
      await drawn(page)
      await page.getByRole('button', { name: 'Custom range' }).click()
      await page.getByLabel('From', { exact: true }).fill('2026-01-10T10:00')
      await page.getByLabel('To', { exact: true }).fill('2026-01-10T09:00')
      await page.getByRole('button', { name: 'Show', exact: true }).click()
      await page.getByText('This is no range: its end is not after its start.').waitFor()
      await page.getByLabel('To', { exact: true }).fill('2026-01-10T11:30')
      await page.getByRole('button', { name: 'Show', exact: true }).click()
      await expect.poll(() => rangeMs(page), patient).toBe(90 * minute)
    })

    it('says what is wrong with a link, and shows the usual range', async () => {
      const page = await visit('/clusters/eu-prod-1/history?range=forever')
      await drawn(page)
      expect(await text(page)).toContain('This page knows no range "forever". The usual range is shown.')
    })
  })

  describe('live', () => {
    const quick = (): void => {
      const world = aCluster('quick', Date.now(), { mode: 'push', agent: anAgent(Date.now()) })
      hub.put({ ...world, view: { ...world.view, intervalMs: 1000 } })
    }

    it('follows time at the interval of collection, holds still while somebody points, and goes on after', async () => {
      quick()
      const page = await visit('/clusters/quick/history?range=15m')
      await drawn(page)
      await expect.poll(() => asked().length, patient).toBeGreaterThan(2)
      const { x, y } = await at(page, 0.4)
      await page.mouse.move(x, y)
      await page.getByText('held while you read').waitFor()
      const held = Number(await cpu(page).getAttribute('aria-valuemax'))
      const here = () => asked().filter((request) => request.includes('range=15m')).length
      const before = here()
      // Where nobody points, the same cluster is looked at again meanwhile.
      const other = await visit('/clusters/quick/history?range=1h')
      const there = () => asked().filter((request) => request.includes('range=1h')).length
      await expect.poll(there, patient).toBeGreaterThan(4)
      expect(here() - before).toBeLessThanOrEqual(1) // one may have been on its way
      expect(Number(await cpu(page).getAttribute('aria-valuemax')) - held).toBeLessThanOrEqual(2)
      await other.close()
      await page.mouse.move(5, 5)
      await expect.poll(here, patient).toBeGreaterThan(before + 1)
    })

    it('goes on after a while under a pointer that does not move any more', { timeout: 120_000 }, async () => {
      quick()
      const page = await visit('/clusters/quick/history?range=15m')
      await drawn(page)
      const { x, y } = await at(page, 0.4)
      await page.mouse.move(x, y)
      await page.getByText('held while you read, 30 s at most').waitFor()
      const before = asked().length
      await expect.poll(() => asked().length, { timeout: 60_000 }).toBeGreaterThan(before + 3)
      await page.getByText('every 1 s').waitFor()
      // The crosshair is still there.
      await expect.poll(() => page.locator('.readout').innerText(), patient).toMatch(/ago/)
      await page.mouse.move(x + 20, y)
      await page.getByText('held while you read, 30 s at most').waitFor()
    })

    it('loses nothing that is typed as a range when it is looked at again', async () => {
      quick()
      const page = await visit('/clusters/quick/history?range=15m')
      await drawn(page)
      await page.getByRole('button', { name: 'Custom range' }).click()
      const from = page.getByLabel('From', { exact: true })
      await from.fill('2026-01-10T10:00')
      const before = asked().length
      await expect.poll(() => asked().length, patient).toBeGreaterThan(before + 3)
      expect(await from.inputValue()).toBe('2026-01-10T10:00')
    })

    it('can be switched off, which holds this piece of time in the address, and on again', async () => {
      const page = await visit('/clusters/eu-prod-1/history')
      await drawn(page)
      const live = page.getByRole('button', { name: 'Live', exact: true })
      expect(await live.getAttribute('aria-pressed')).toBe('true')
      await live.click()
      await expect.poll(() => rangeMs(page), patient).toBeGreaterThan(59 * minute)
      await expect.poll(() => live.getAttribute('aria-pressed'), patient).toBe('false')
      await live.click()
      await expect.poll(() => queryOf(page).has('from'), patient).toBe(false)
    })

    it('shifts nothing when it is looked at again', async () => {
      quick()
      const page = await visit('/clusters/quick/history?range=15m')
      await drawn(page)
      await page.evaluate(`window.shift = 0
        new PerformanceObserver((list) => {
          for (const entry of list.getEntries()) window.shift += entry.value
        }).observe({ type: 'layout-shift' })`)
      const before = asked().length
      await expect.poll(() => asked().length, patient).toBeGreaterThan(before + 2)
      expect(await page.evaluate<number>('window.shift')).toBeLessThan(0.01)
    })

    it('fades what is of the past, and says of when it is', async () => {
      const now = Date.now()
      hub.pasts.set('eu-prod-1', aPast(now, { ended: now - 20 * minute }))
      const page = await visit('/clusters/eu-prod-1/history')
      await drawn(page)
      await page.getByText(/As of 2\d min ago/).waitFor()
      await expect.poll(() => page.locator('.chart.is-faded').count(), patient).toBe(6)
    })
  })

  describe('states', () => {
    it.each([
      [501, 'history_off', 'This hub keeps no history', /turns history on/],
      [403, 'history_filtered', 'You may not see this history', /only part of it/],
      [404, 'cluster_not_found', 'There is no history of this that you may see', /cluster_not_found/],
    ])('names an answer of %d, and offers no Retry', async (status, code, title, words) => {
      hub.behaviour.refuseHistory = { status, code, error: 'as the hub says it' }
      const page = await visit('/clusters/eu-prod-1/history')
      await page.getByText(title).waitFor()
      expect(await text(page)).toMatch(words)
      expect(await text(page)).toContain('as the hub says it')
      expect(await page.getByRole('button', { name: 'Retry now' }).count()).toBe(0)
    })

    it.each([
      [502, 'history_failed', 'History cannot answer now'],
      [503, 'history_unavailable', 'History cannot answer now'],
      [504, 'history_timeout', 'History took too long to answer'],
    ])('shows code and request id of a %d, and recovers on Retry', async (status, code, title) => {
      hub.behaviour.refuseHistory = { status, code, error: 'the backend is away' }
      const page = await visit('/clusters/eu-prod-1/history?from=2026-01-10T10:00:00Z&to=2026-01-10T11:00:00Z')
      await page.getByText(title).waitFor()
      expect(await text(page)).toMatch(new RegExp(`the backend is away[\\s\\S]*${code}[\\s\\S]*request req-4711`))
      hub.behaviour.refuseHistory = null
      await page.getByRole('button', { name: 'Retry now' }).click()
      await page.getByText('No samples in this range').waitFor()
    })

    it('keeps the charts when a later look fails, and says that they are not updated', async () => {
      const world = aCluster('quick', Date.now())
      hub.put({ ...world, view: { ...world.view, intervalMs: 1000 } })
      const page = await visit('/clusters/quick/history?range=15m')
      await drawn(page)
      hub.behaviour.refuseHistory = { status: 503, code: 'history_unavailable', error: 'the backend is away' }
      await page.getByText('Not updated.').waitFor()
      await drawn(page)
      hub.behaviour.refuseHistory = null
      await page.getByText('Not updated.').waitFor({ state: 'detached', timeout: 30_000 })
    })

    it('shows the shape of the charts while it waits', async () => {
      hub.behaviour.holdHistory = true
      const page = await visit('/clusters/eu-prod-1/history')
      await page.getByText('Loading the history…').waitFor()
      const heights = () =>
        page.evaluate<number[]>('[...document.querySelectorAll(".chart")].map((one) => one.offsetHeight)')
      const waiting = await heights()
      expect(waiting).toHaveLength(6)
      hub.behaviour.holdHistory = false
      await drawn(page)
      await expect.poll(heights, patient).toEqual(waiting)
    })

    it('says of an empty range since when there are samples, and leads there', async () => {
      const now = Date.now()
      hub.pasts.set('eu-prod-1', aPast(now, { began: now - 5 * 86_400_000, ended: now - 3 * 86_400_000 }))
      const page = await visit('/clusters/eu-prod-1/history')
      await page.getByText('No samples in this range').waitFor()
      await expect.poll(() => text(page), patient).toMatch(/Collection began [45] d ago/)
      await page.getByRole('button', { name: 'Show the newest' }).click()
      await drawn(page)
    })

    it('says that there are no samples at all', async () => {
      hub.pasts.set('new-one', aPast(Date.now(), { began: Date.now() + minute }))
      const page = await visit('/clusters/new-one/history')
      await expect.poll(() => text(page), patient).toMatch(/No samples yet at all: collection has not begun/)
    })
  })

  describe('table and file', () => {
    it('shows the same points as a table, newest first, and remembers that', async () => {
      const page = await visit('/clusters/eu-prod-2/history')
      await drawn(page)
      await page.getByRole('button', { name: 'Table', exact: true }).click()
      const table = page.getByRole('table', { name: /^History of eu-prod-2/ })
      await table.waitFor()
      expect(await table.locator('thead').innerText()).toMatch(
        /Time\s+How it came\s+CPU cores\s+Memory bytes[\s\S]*used\s+requested/,
      )
      const rows = await table.locator('tbody tr').allInnerTexts()
      expect(rows[0]).toMatch(/live\s+[\d.]+ cores[\s\S]*Gi/)
      expect(rows.join('\n')).toMatch(/lost: 6 batches will never come/)
      expect(Number(await table.getAttribute('aria-rowcount'))).toBeGreaterThan(78)
      await page.reload()
      await table.waitFor()
    })

    it('saves exactly what is shown', async () => {
      const page = await visit('/clusters/eu-prod-2/history')
      await drawn(page)
      const [file] = await Promise.all([
        page.waitForEvent('download'),
        page.getByRole('button', { name: /^CSV/ }).click(),
      ])
      const lines = readFileSync(await file.path(), 'utf8')
        .trim()
        .split('\r\n')
      expect(lines[0]).toMatch(/^time,cpu_used_cores,cpu_requested_cores,.*memory_used_bytes,.*source$/)
      expect(lines.length).toBeGreaterThan(78)
      expect(lines.filter((line) => line.includes('repaired: 24 batches')).length).toBeGreaterThan(14)
      expect(lines.filter((line) => /,,,,.*no sample$/.test(line)).length).toBeGreaterThan(3)
    })
  })

  describe('push', () => {
    it('tells in a row how the facts really come, and what is behind', async () => {
      const page = await visit('/')
      const cell = (name: string) => page.locator('tr[data-index]', { hasText: name }).locator('.mode-cell')
      await expect.poll(() => cell('eu-prod-2').innerText(), patient).toMatch(/push → pulled\s+▲ agent away/)
      expect(await cell('eu-prod-2').innerText()).toContain('The agent is away (the stream broke off)')
      await expect.poll(() => cell('eu-prod-1').innerText(), patient).toContain('catching up: 120')
      await expect
        .poll(() => cell('lab').innerText(), patient)
        .toMatch(/6 lost[\s\S]*6 batches lost[\s\S]*clock of the agent is 94 s behind[\s\S]*not encrypted/)
      expect((await cell('us-stage').innerText()).replaceAll(/\s+/g, ' ')).toBe(
        'pull The hub reads this cluster every 30 s',
      )
    })

    it('tells in the heading who pushes, since when, how late, and what waits', async () => {
      const page = await visit('/clusters/eu-prod-1')
      const heading = page.locator('.heading')
      await expect
        .poll(() => heading.innerText(), patient)
        .toMatch(/push[\s\S]*agent 0\.1\.0 connected for 3 h · 0\.2 s lag[\s\S]*catching up: 120 batches, from 2 h ago/)
      await page.goto(`${base}/clusters/eu-prod-2`)
      await expect
        .poll(() => heading.innerText(), patient)
        .toMatch(/agent away: pulled by the hub[\s\S]*away for 12 min/)
      await page.goto(`${base}/clusters/lab`)
      await expect
        .poll(() => heading.innerText(), patient)
        .toMatch(/▲ 6 batches lost[\s\S]*▲ clock 94 s behind[\s\S]*▲ not encrypted/)
    })

    it('follows the agent as it goes, comes back and catches up', async () => {
      const page = await visit('/clusters/eu-prod-1')
      const panel = page.getByRole('region', { name: 'Agent' })
      await expect.poll(() => panel.innerText(), patient).toMatch(/Buffer\s+120 batches, 3\.4 Mi/)
      const world = (source: 'pull' | 'push', agent: Parameters<typeof anAgent>[1]) =>
        aCluster('eu-prod-1', Date.now(), { mode: 'push', source, agent: anAgent(Date.now(), agent) })
      hub.put(world('pull', { connected: false, since: Date.now(), reason: 'a newer stream replaced it' }))
      await expect.poll(() => panel.innerText(), patient).toMatch(/away for \d+ s\s+a newer stream replaced it/)
      await expect.poll(() => panel.innerText(), patient).toMatch(/Buffer\s+empty when last heard/)
      await expect.poll(() => page.locator('.heading').innerText(), patient).toContain('agent away: pulled by the hub')
      hub.put(world('push', {}))
      await expect.poll(() => panel.innerText(), patient).toMatch(/empty: all has arrived/)
      await expect.poll(() => page.locator('.heading').innerText(), patient).not.toContain('pulled')
    })

    it('names agents that need somebody below the clusters that do, though those clusters are healthy', async () => {
      const now = Date.now()
      const agent = (wish: Parameters<typeof anAgent>[1]) => ({ mode: 'push' as const, agent: anAgent(now, wish) })
      hub.fill([
        aCluster('ill', now, { health: 'degraded', message: 'a node is not ready', ...agent({ tls: false }) }),
        aCluster('away', now, { ...agent({ connected: false, reason: 'its token was revoked' }), source: 'pull' }),
        aCluster('behind', now, agent({ bufferedBatches: 240, oldestBufferedAt: now - 120 * minute })),
        aCluster('well', now, agent({})),
      ])
      const page = await visit('/')
      const strip = page.getByRole('region', { name: 'Needs attention' })
      const lines = async () => (await strip.locator('li').allInnerTexts()).map((line) => line.replaceAll(/\s+/g, ' '))
      await expect
        .poll(lines, patient)
        .toEqual([
          expect.stringMatching(/ill a node is not ready ?▲ not encrypted/),
          expect.stringMatching(/away The agent is away \(its token was revoked\); the hub reads the cluster itself/),
          expect.stringMatching(/behind Catching up: 240 batches, from 2 h ago/),
        ])
      await page.getByRole('heading', { level: 1, name: '1 of 4 clusters needs you' }).waitFor()
      await strip.getByRole('link', { name: 'away' }).click()
      await page.getByRole('region', { name: 'Agent' }).waitFor()
    })

    it('tells of batches that were lost within the hour, also before the page was opened', async () => {
      const now = Date.now()
      const lost = (cluster: string, at: number) => ({
        type: 'collection.lost',
        cluster,
        at,
        data: { cause: 'thinned', from: at - 1_800_000, to: at, count: 6, kept_every_ms: 300_000, sequence: 7 },
      })
      const losing = { mode: 'push' as const, agent: anAgent(now, { lostBatches: 6 }) }
      hub.fill([aCluster('west', now, losing), aCluster('past', now, losing), aCluster('east', now, losing)])
      hub.events.push(lost('west', now - 10 * minute), lost('past', now - 90 * minute))
      const page = await visit('/')
      const strip = page.getByRole('region', { name: 'Needs attention' })
      const changes = page.getByRole('region', { name: 'Changes of the last hour' })
      await expect.poll(() => strip.innerText(), patient).toContain('6 batches lost within the last hour')
      await expect
        .poll(() => changes.innerText(), patient)
        .toMatch(/west lost 6 batches of .* for good: thinned out, because .*; one per 5 min was kept/)
      hub.send([{ op: 'event', type: 'event', view: lost('east', now) }])
      await strip.locator('summary', { hasText: '2 agents: 6 batches lost within the last hour' }).click()
      await strip.getByRole('link', { name: 'east' }).waitFor()
      expect(await strip.innerText()).not.toContain('past')
      await strip.getByRole('link', { name: 'west' }).click()
      await page.getByRole('region', { name: 'History of west' }).waitFor()
      await page.getByRole('link', { name: 'Events' }).click()
      await page.getByText(/^lost 6 batches of .* for good: thinned out/).waitFor()
    })

    it('finds clusters by the state of their push', async () => {
      const page = await visit(`/?q=${encodeURIComponent('agent:away')}`)
      await expect
        .poll(() => page.locator('tbody [data-row-link]').allInnerTexts(), patient)
        .toEqual(['Europe production 2'])
    })
  })

  describe('themes and frames', () => {
    const paths = [
      '/clusters/eu-prod-2/history',
      '/clusters/eu-prod-2/history?range=30d',
      '/clusters/eu-prod-2/nodes/worker-1',
      '/clusters/lab',
      '/clusters/eu-prod-2',
      '/',
    ]
    const settled = async (page: Page) => {
      await page.locator('h1').waitFor()
      await expect.poll(() => page.locator('.skeleton:visible, .skeleton-line:visible').count(), patient).toBe(0)
    }

    it.each(['light', 'dark'] as const)(
      'gives axe nothing to complain of in the %s theme',
      { timeout: 240_000 },
      async (colorScheme) => {
        const page = await visit('/', { colorScheme })
        const check = async (where: string) => {
          await page.evaluate(axeSource)
          const found = await page.evaluate<
            string[]
          >(`axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] }).then(({ violations }) =>
          violations.flatMap(({ id, nodes }) => nodes.map((node) => id + ' ' + node.html.slice(0, 160) + ' ' + node.failureSummary.slice(0, 200))))`)
          expect(found, where).toEqual([])
        }
        for (const path of paths) {
          await page.goto(`${base}${path}`)
          await settled(page)
          await check(path)
        }
        await page.goto(`${base}/clusters/eu-prod-2/history`)
        await drawn(page)
        await page.getByRole('button', { name: 'Custom range' }).click()
        await check('custom range')
        await page.keyboard.press('Escape')
        await page.getByRole('button', { name: 'Table', exact: true }).click()
        await page.getByRole('table', { name: /^History of/ }).waitFor()
        await check('table')
        for (const status of [403, 501, 503]) {
          hub.behaviour.refuseHistory = { status, code: 'some_code', error: 'a reason' }
          await page.goto(`${base}/clusters/eu-prod-2/history`)
          await page.getByText('a reason').waitFor()
          await check(`history ${status}`)
        }
      },
    )

    it('fits 320 px without scrolling sideways', { timeout: 180_000 }, async () => {
      const page = await visit('/', { viewport: { width: 320, height: 740 } })
      for (const path of paths) {
        await page.goto(`${base}${path}`)
        await settled(page)
        const over = await page.evaluate<number>(
          'document.documentElement.scrollWidth - document.documentElement.clientWidth',
        )
        expect(over, path).toBeLessThanOrEqual(0)
      }
    })

    it('draws behind a path prefix, styles included', async () => {
      await hub.stop()
      hub = new FakeHub({ root: built.root, prefix: '/tools/fleet' }).fill(demoFleet(Date.now()))
      base = await hub.start()
      const page = await visit('/clusters/eu-prod-1/history')
      await drawn(page)
      const position = await page.evaluate<string>('getComputedStyle(document.querySelector(".u-over")).position')
      expect(position).toBe('absolute')
    })
  })
})
