import { readFileSync } from 'node:fs'
import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { policiesOfManifest } from '#access'
import type { FillingView } from '#http'
import { leastOf } from '../../src/platform/runtime/testing/least-of.ts'
import { buildPage, noBrowser } from '../../web/testing/browser.ts'
import { complaintsOf, excessAt320 } from '../page/axe.ts'
import { aCluster, anAgent, type Cluster, demoFleet, type Wish } from '../page/clusters.ts'
import type { Gateway } from '../page/gateway.ts'
import { administrator, PageHub, type PageHubOptions } from '../page/hub.ts'
import { developers } from '../page/policies.ts'
import { patient, retryNow, shown } from '../page/shown.ts'
import { goTo, type VisitOptions, Visits } from '../page/visits.ts'

const suite = noBrowser === undefined ? 'history on the page' : `history on the page (skipped: ${noBrowser})`
const minute = 60_000
const hour = 60 * minute
const day = 24 * hour

/** Rounds of the last hour, of which those within are left out; minutes ago. */
function withHoles(cluster: Cluster, now: number, ...holes: readonly (readonly [from: number, to: number])[]): Cluster {
  const isMissing = (at: number) => holes.some(([from, to]) => at >= now - from * minute && at < now - to * minute)
  return { ...cluster, rounds: cluster.rounds.filter(({ at }) => !isMissing(at)) }
}

/** An agent that was cut off for twelve minutes: the hub read meanwhile, most was sent later, a little was lost. */
function aTroubled(now: number): Cluster {
  const wish: Wish = { nodes: 9, mode: 'push', agent: anAgent(now), rounds: 130, ageMs: 4000 }
  const cluster = withHoles(aCluster('eu-prod-3', now, wish), now, [24, 21], [12, 8])
  const within = (at: number, from: number, to: number) => at >= now - from * minute && at < now - to * minute
  const rounds = cluster.rounds.map((round, index, all) => {
    const { at } = round
    if (within(at, 52, 40)) return { ...round, backfill: true }
    if (within(at, 36, 30)) return { ...round, source: 'pull' as const }
    const isAfterLoss = within(at, 21, 20) && (all[index - 1]?.at ?? 0) < now - 24 * minute
    if (!isAfterLoss) return round
    const gone = { from: now - 24 * minute, to: now - 21 * minute - 1, cause: 'thinned', count: 6 } as const
    return { ...round, gone }
  })
  const [first] = rounds
  const gone = { from: now - 9 * hour, to: now - 7 * hour, cause: 'dropped', count: 240 } as const
  const long = [3 * day, 2 * day].map((ago) => ({ ...first, at: now - ago, source: 'push' as const }))
  return { ...cluster, rounds: [...long, ...rounds.map((round, index) => (index === 0 ? { ...round, gone } : round))] }
}

/** The fleet of the demonstration, and clusters whose past tells something. */
function pastFleet(now: number): readonly Cluster[] {
  const [first, ...others] = demoFleet(now)
  if (!first) throw new Error('there is no fleet')
  /** Rounds of so long, of which the last is that of now, or an hour and more ago where they are rare. */
  const of = (name: string, rounds: number, intervalMs: number) => {
    const ageMs = intervalMs > minute ? 66 * minute : 4000
    return aCluster(name, now, { nodes: 12, mode: 'push', rounds, intervalMs, ageMs }).rounds
  }
  const past = aCluster('past', now, { ageMs: 3 * day, intervalMs: hour, rounds: 48 })
  return [
    { ...first, rounds: [...of(first.name, 60, 5 * minute), ...of(first.name, 130, minute / 2)] },
    ...others,
    aTroubled(now),
    withHoles(aCluster('holed', now, { rounds: 130 }), now, [40, 20]),
    aCluster('ended', now, { ageMs: 20 * minute, rounds: 80 }),
    past,
    aCluster('quick', now, { mode: 'push', agent: anAgent(now), intervalMs: 1000, timeoutMs: 90_000 }),
  ]
}

describe.skipIf(noBrowser !== undefined)(suite, () => {
  let built: ReturnType<typeof buildPage>
  let visits: Visits
  let shared: PageHub
  let began: number
  let hub: PageHub
  let gateway: Gateway
  let base: string
  let sharedBase: string

  beforeAll(async () => {
    built = buildPage()
    visits = await Visits.open()
    const { policies } = policiesOfManifest(developers, { now: Date.now() })
    // Twelve seconds into a step, whatever steps a chart takes: the last one has its sample, and a test ends within it.
    began = Math.floor(Date.now() / hour) * hour + 12_000
    shared = await PageHub.open({ root: built.root, history: true, policies })
    shared.goTo(began)
    await shared.fill(pastFleet(began))
    sharedBase = await shared.gateway.start()
  })
  afterAll(async () => {
    await visits?.[Symbol.asyncDispose]()
    await shared?.[Symbol.asyncDispose]()
    built?.[Symbol.dispose]()
  })
  beforeEach(() => {
    ;[hub, gateway, base] = [shared, shared.gateway, sharedBase]
    // Nothing is older in a later test.
    hub.goTo(began)
    gateway.requests.splice(0)
  })
  afterEach(async () => {
    const complaints = await visits.leave()
    if (hub !== shared) await hub[Symbol.asyncDispose]()
    Object.assign(shared.gateway, { visitor: administrator, refuse: null, hold: false, only: /^\/api\// })
    expect(complaints).toEqual([])
  })

  /** A hub of this test alone, which changes it. */
  async function openHub(options: Omit<PageHubOptions, 'root'> = {}): Promise<PageHub> {
    hub = await PageHub.open({ root: built.root, ...options })
    gateway = hub.gateway
    base = await gateway.start()
    return hub
  }
  const refuseHistory = (status: number, code: string, error: string) => {
    gateway.only = /\/metrics\/history/
    gateway.refuse = { status, code, error }
  }

  const visit = (path: string, options?: VisitOptions) => visits.visit(`${base}${path}`, options)
  const drawn = async (page: Page, charts = 6): Promise<void> => {
    await expect.poll(() => page.locator('.chart canvas').count(), patient).toBe(charts)
  }
  const queryOf = (page: Page) => new URL(page.url()).searchParams
  const asked = () => gateway.requests.filter((request) => request.includes('/metrics/history'))
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
      expect(gateway.requests.filter((request) => request.includes('history-view'))).toEqual([])
      await page.getByRole('link', { name: 'History' }).click()
      await drawn(page)
      await expect.poll(() => gateway.requests.some((request) => request.includes('history-view')), patient).toBe(true)
    })

    it('asks once for all charts, with a step that gives each point its pixel', async () => {
      const page = await visit('/clusters/eu-prod-1/history?range=24h')
      await drawn(page)
      await expect
        .poll(asked, patient)
        .toEqual([
          expect.stringMatching(
            /^\/api\/v1\/clusters\/eu-prod-1\/metrics\/history\?metric=cpu_used%2C(?=.*step=300\b).*range=24h/,
          ),
        ])
    })

    it('draws repaired, pulled and lost stretches, and names each in the legend', async () => {
      const page = await visit('/clusters/eu-prod-3/history')
      await drawn(page)
      const legend = page.getByRole('list', { name: 'Stretches that did not come live' })
      await shown(legend).toMatch(/repaired\s+24 batches/)
      await shown(legend).toMatch(/pulled by the hub\s+12 batches/)
      // What its agent gave up, and what the hub misses of the time in which it did not run.
      await shown(legend).toMatch(/lost\s+14 batches \(thinned out, because .*; not collected: the agent did not run\)/)
    })

    it('leaves a hole where nothing came: no line crosses it', async () => {
      const page = await visit('/clusters/holed/history')
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
      const page = await visit('/clusters/eu-prod-3/nodes/worker-1')
      await drawn(page, 5)
      await expect
        .poll(() => asked()[0] ?? '', patient)
        .toContain('/api/v1/clusters/eu-prod-3/nodes/worker-1/metrics/history?metric=cpu_usage_percent')
      const usage = page.getByRole('figure', { name: 'Usage' })
      await shown(usage).toMatch(/CPU\s+[\d.]+ %\s+memory\s+[\d.]+ %/)
    })
  })

  describe('in the drawer of a node', () => {
    it('loads the charts with the drawer and not with the list, and fits a telephone', async () => {
      const page = await visit('/clusters/eu-prod-3/nodes', { viewport: { width: 360, height: 640 } })
      const link = page.getByRole('link', { name: 'worker-1' })
      await link.waitFor()
      expect([...asked(), ...gateway.requests.filter((request) => request.includes('history-view'))]).toEqual([])
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
      const page = await visit('/clusters/eu-prod-3/nodes/worker-1')
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
      const page = await visit('/clusters/eu-prod-3/history')
      await drawn(page)
      const readout = page.getByRole('complementary', { name: 'Values at one time' })
      await shown(readout).toMatch(/newest/)
      const { x, y } = await at(page, 0.2)
      await page.mouse.move(x, y)
      await shown(readout).toMatch(/\d+ min ago[\s\S]*repaired: 24 batches sent later/)
      await shown(readout).toMatch(/used\s+[\d.]+ cores[\s\S]*used\s+[\d.]+ Gi[\s\S]*running\s+\d+/)
      // Every chart has its crosshair there.
      const spread = () =>
        page.evaluate<[number, number]>(`(() => {
          const lefts = [...document.querySelectorAll('.u-cursor-x')].map((line) => line.getBoundingClientRect().left)
          return [lefts.length, Math.round(Math.max(...lefts) - Math.min(...lefts))]
        })()`)
      await expect.poll(spread, patient).toEqual([6, 0])
      await page.mouse.move(5, 5)
      await shown(readout).toMatch(/newest/)
    })

    it('says of a lost stretch that it is lost and why, and of a hole that there is no sample', async () => {
      const page = await visit('/clusters/eu-prod-3/history')
      await drawn(page)
      const readout = page.getByRole('complementary', { name: 'Values at one time' })
      const lost = await at(page, 37.5 / 60)
      await page.mouse.move(lost.x, lost.y)
      await shown(readout).toMatch(/lost: 6 batches will never come, thinned out/)
      const hole = await at(page, 50 / 60)
      await page.mouse.move(hole.x, hole.y)
      await shown(readout).toMatch(/no sample/)
    })

    it('follows the pointer over 19 lines of 2000 points within the time of a frame', { tags: ['long'] }, async () => {
      const rounds = aCluster('dense', began, { nodes: 1, mode: 'push', intervalMs: 2000, rounds: 2000 }).rounds
      await openHub({ history: true })
      await hub.fill([aCluster('dense', hub.now(), { mode: 'push', agent: anAgent(hub.now()), rounds: 1 })])
      await hub.repair('dense', rounds.slice(0, -1))
      // A step finer than the page asks for, which the hub allows.
      const page = await visit('/')
      await page.route(/metrics\/history/, (route) => {
        const url = new URL(route.request().url())
        url.searchParams.set('step', '2')
        return route.continue({ url: url.href })
      })
      const [from, to] = [rounds[0], rounds.at(-1)].map((round) => new Date(round?.at ?? 0).toISOString())
      await page.goto(`${base}/clusters/dense/history?from=${from}&to=${to}`)
      await drawn(page)
      const session = await page.context().newCDPSession(page)
      // Time of the thread, not of the wall: other work on the machine does not count.
      await session.send('Performance.enable', { timeDomain: 'threadTicks' })
      const spentMs = async () => {
        const { metrics } = await session.send('Performance.getMetrics')
        const of = (name: string) => metrics.find((metric) => metric.name === name)?.value ?? Number.NaN
        return 1000 * (of('ScriptDuration') + of('LayoutDuration') + of('RecalcStyleDuration'))
      }
      const moves = 100
      const frame = 16 * moves
      // Beside others the same takes more of a processor.
      const followedMs = await leastOf(3, frame, async () => {
        const before = await spentMs()
        for (let move = 0; move < moves; move++) {
          const { x, y } = await at(page, ((move * 37) % moves) / moves)
          await page.mouse.move(x, y)
        }
        return (await spentMs()) - before
      })
      expect(followedMs).toBeLessThan(frame)
    })

    it('is worked by keyboard: walk, zoom, ends, and out again', async () => {
      const page = await visit('/clusters/eu-prod-1/history')
      await drawn(page)
      const slider = cpu(page)
      await slider.focus()
      const value = async () => (await slider.getAttribute('aria-valuetext')) ?? ''
      await page.keyboard.press('ArrowLeft')
      await expect.poll(value, patient).toMatch(/: used [\d.]+ cores, requested [\d.]+ cores/)
      const newest = await value()
      await page.keyboard.press('ArrowLeft')
      await expect.poll(value, patient).not.toBe(newest)
      await page.keyboard.press('ArrowRight')
      await expect.poll(value, patient).toBe(newest)
      await page.keyboard.press('Home')
      const fromStart = async () =>
        Number(await slider.getAttribute('aria-valuenow')) - Number(await slider.getAttribute('aria-valuemin'))
      await expect.poll(fromStart, patient).toBeLessThan(60)
      await page.keyboard.press('End')
      await expect.poll(value, patient).toBe(newest)
      await page.keyboard.press('+')
      await expect.poll(() => rangeMs(page), patient).toBeCloseTo(30 * minute, -4)
      await expect.poll(() => page.locator('.is-faded').count(), patient).toBe(0)
      await page.keyboard.press('-')
      await expect.poll(() => rangeMs(page), patient).toBeCloseTo(60 * minute, -4)
      await page.keyboard.press('ArrowLeft')
      await page.keyboard.press('Escape') // lets the crosshair go
      await page.getByText('newest, ').waitFor()
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
      await shown(page).toContain('This page knows no range "forever". The usual range is shown.')
    })
  })

  describe('live', () => {
    it('follows time at the interval of collection, holds still while somebody points, and goes on after', async () => {
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

    it('goes on after a while under a pointer that does not move any more', { tags: ['long'] }, async () => {
      const page = await visit('/clusters/quick/history?range=15m')
      await drawn(page)
      const { x, y } = await at(page, 0.4)
      await page.mouse.move(x, y)
      await page.getByText('held while you read, 30 s at most').waitFor()
      const before = asked().length
      await expect.poll(() => asked().length).toBeGreaterThan(before + 3)
      await page.getByText('every 1 s').waitFor()
      // The crosshair is still there.
      await shown(page.locator('.readout')).toMatch(/ago/)
      await page.mouse.move(x + 20, y)
      await page.getByText('held while you read, 30 s at most').waitFor()
    })

    it('loses nothing that is typed as a range when it is looked at again', async () => {
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
      await expect.poll(() => live.getAttribute('aria-pressed'), patient).toBe('true')
      await live.click()
      await expect.poll(() => rangeMs(page), patient).toBeGreaterThan(59 * minute)
      await expect.poll(() => live.getAttribute('aria-pressed'), patient).toBe('false')
      await live.click()
      await expect.poll(() => queryOf(page).has('from'), patient).toBe(false)
    })

    it('shifts nothing when it is looked at again', async () => {
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
      const page = await visit('/clusters/ended/history')
      await drawn(page)
      await page.getByText(/As of 2\d min ago\. Nothing newer/).waitFor()
      await expect.poll(() => page.locator('.chart.is-faded').count(), patient).toBe(6)
    })
  })

  describe('states', () => {
    const saidOf = async (page: Page, cluster: string, title: string, words: RegExp) => {
      const answer = await page.request.get(`${base}/api/v1/clusters/${cluster}/metrics/history?metric=cpu_used`)
      const { error } = (await answer.json()) as { error: string }
      await page.getByText(title).waitFor()
      await shown(page).toMatch(words)
      await shown(page).toContain(error)
      expect(await page.getByRole('button', { name: 'Retry now' }).count()).toBe(0)
      return answer.status()
    }

    it('names a hub that keeps no history, and offers no Retry', async () => {
      await openHub()
      await hub.fill([aCluster('west', hub.now())])
      const page = await visit('/clusters/west/history')
      expect(await saidOf(page, 'west', 'This hub keeps no history', /turns history on/)).toBe(501)
    })

    it('names a history of which one may see only a part, and offers no Retry', async () => {
      gateway.visitor = { username: 'alice', email: '', groups: ['developers'] }
      const page = await visit('/clusters/eu-prod-1/history')
      expect(await saidOf(page, 'eu-prod-1', 'You may not see this history', /only part of it/)).toBe(403)
    })

    it('names a cluster that goes while it is looked at, and offers no Retry', async () => {
      refuseHistory(404, 'cluster_not_found', 'as the hub says it')
      const page = await visit('/clusters/eu-prod-1/history')
      const title = 'There is no history of this that you may see'
      expect(await saidOf(page, 'eu-prod-1', title, /cluster_not_found/)).toBe(404)
    })

    it.each([
      [502, 'history_failed', 'History cannot answer now'],
      [503, 'history_unavailable', 'History cannot answer now'],
      [504, 'history_timeout', 'History took too long to answer'],
    ])('shows code and request id of a %d, and recovers on Retry', async (status, code, title) => {
      refuseHistory(status, code, 'the backend is away')
      const page = await visit('/clusters/eu-prod-1/history?from=2026-01-10T10:00:00Z&to=2026-01-10T11:00:00Z')
      await page.getByText(title).waitFor()
      await shown(page).toMatch(new RegExp(`the backend is away[\\s\\S]*${code}[\\s\\S]*request req-4711`))
      await retryNow(page, () => {
        gateway.refuse = null
      })
      await page.getByText('No samples in this range').waitFor()
    })

    it('keeps the charts when a later look fails, and says that they are not updated', async () => {
      const page = await visit('/clusters/quick/history?range=15m')
      await drawn(page)
      refuseHistory(503, 'history_unavailable', 'the backend is away')
      await page.getByText('Not updated.').waitFor()
      await drawn(page)
      gateway.refuse = null
      await page.getByText('Not updated.').waitFor({ state: 'detached', timeout: 30_000 })
    })

    it('shows the shape of the charts while it waits', async () => {
      gateway.only = /\/metrics\/history/
      gateway.hold = true
      const page = await visit('/clusters/eu-prod-1/history')
      await page.getByText('Loading the history…').waitFor()
      const heights = () =>
        page.evaluate<number[]>('[...document.querySelectorAll(".chart")].map((one) => one.offsetHeight)')
      const waiting = await heights()
      expect(waiting).toHaveLength(6)
      gateway.hold = false
      await drawn(page)
      await expect.poll(heights, patient).toEqual(waiting)
    })

    it('says of an empty range since when there are samples, and leads there', async () => {
      const page = await visit('/clusters/past/history')
      await page.getByText('No samples in this range').waitFor()
      await shown(page).toMatch(/Collection began [45] d ago/)
      await page.getByRole('button', { name: 'Show the newest' }).click()
      await drawn(page)
    })

    it('says how far a past that is made up has come, looks again while it comes, then says since when there is one', async () => {
      let filling: FillingView | undefined
      const now = (await openHub({ history: true, filling: () => filling })).now()
      filling = { from: now - 30 * day, reached: now - 9.5 * day, to: now }
      await hub.fill([aCluster('west', now, { ageMs: 4000, rounds: 60 })])
      const page = await visit('/clusters/west/history?range=30d')
      await page.getByText('filling the past').waitFor()
      await page.getByText('9 of 30 days so far, made up for the demonstration').waitFor()
      expect(await page.getByText('Nothing was repaired').count()).toBe(0)
      filling = { ...filling, reached: now - 20 * day }
      await page.getByText('20 of 30 days so far').waitFor()
      filling = undefined
      await page.getByText('filling the past').waitFor({ state: 'detached' })
      await page.getByText(/Collection began .* ago; nothing is kept from before\./).waitFor()
    })

    it('says that there are no samples at all', async () => {
      const page = await visit('/clusters/new-one/history')
      await shown(page).toMatch(/No samples yet at all: collection has not begun/)
    })
  })

  describe('table and file', () => {
    it('shows the same points as a table, newest first, and remembers that', async () => {
      const page = await visit('/clusters/eu-prod-3/history')
      await drawn(page)
      await page.getByRole('button', { name: 'Table', exact: true }).click()
      const table = page.getByRole('table', { name: /^History of eu-prod-3/ })
      await table.waitFor()
      await shown(table.locator('thead')).toMatch(
        /Time\s+How it came\s+CPU cores\s+Memory bytes[\s\S]*used\s+requested/,
      )
      await shown(table.locator('tbody tr').first()).toMatch(/live\s+[\d.]+ cores[\s\S]*Gi/)
      await shown(table.locator('tbody')).toMatch(/lost: 6 batches will never come/)
      await expect.poll(async () => Number(await table.getAttribute('aria-rowcount')), patient).toBeGreaterThan(78)
      await page.reload()
      await table.waitFor()
    })

    it('saves exactly what is shown', async () => {
      const page = await visit('/clusters/eu-prod-3/history')
      await drawn(page)
      const saved = async () => {
        const button = page.getByRole('button', { name: /^CSV/ })
        const [file] = await Promise.all([page.waitForEvent('download'), button.click()])
        return readFileSync(await file.path(), 'utf8')
          .trim()
          .split('\r\n')
      }
      const lines = await saved()
      expect(lines[0]).toMatch(/^time,cpu_used_cores,cpu_requested_cores,.*memory_used_bytes,.*source$/)
      expect(lines.length).toBeGreaterThan(78)
      expect(lines.filter((line) => line.includes('repaired: 24 batches')).length).toBeGreaterThan(14)
      await page.goto(`${base}/clusters/quick/history?range=15m`)
      await drawn(page)
      expect((await saved()).filter((line) => /,,,,.*no sample$/.test(line)).length).toBeGreaterThan(3)
    })
  })

  describe('push', () => {
    it('tells in a row how the facts really come, and what is behind', async () => {
      const page = await visit('/')
      const cell = (name: string) => page.locator('tr[data-index]', { hasText: name }).locator('.mode-cell')
      await shown(cell('eu-prod-2')).toMatch(/push → pulled\s+▲ agent away/)
      await shown(cell('eu-prod-2')).toContain('The agent is away (the stream broke off)')
      await shown(cell('eu-prod-1')).toContain('catching up: 120')
      await shown(cell('lab')).toMatch(
        /6 lost[\s\S]*6 batches lost[\s\S]*clock of the agent is 94 s behind[\s\S]*not encrypted/,
      )
      await shown(cell('us-stage')).toMatch(/^pull\s+The hub\s+reads\s+this\s+cluster\s+every\s+30\s+s$/)
    })

    it('tells in the heading who pushes, since when, how late, and what waits', async () => {
      const page = await visit('/clusters/eu-prod-1')
      const heading = page.locator('.heading')
      await shown(heading).toMatch(
        /push[\s\S]*agent 0\.1\.0 connected for 3 h · 0\.2 s lag[\s\S]*catching up: 120 batches, from 2 h ago/,
      )
      await page.goto(`${base}/clusters/eu-prod-2`)
      await shown(heading).toMatch(/agent away: pulled by the hub[\s\S]*away for 12 min/)
      await page.goto(`${base}/clusters/lab`)
      await shown(heading).toMatch(/▲ 6 batches lost[\s\S]*▲ clock 94 s behind[\s\S]*▲ not encrypted/)
    })

    it('follows the agent as it goes, comes back and catches up', async () => {
      await openHub()
      await hub.fill(demoFleet(hub.now()).slice(0, 1))
      const page = await visit('/clusters/eu-prod-1')
      const panel = page.getByRole('region', { name: 'Agent' })
      await shown(panel).toMatch(/Buffer\s+120 batches, 3\.4 Mi/)
      const now = () => hub.now()
      const cluster = (source: 'pull' | 'push', agent: Parameters<typeof anAgent>[1]) =>
        aCluster('eu-prod-1', now(), { mode: 'push', source, agent: anAgent(now(), agent), ageMs: 0 })
      await hub.put(cluster('pull', { connected: false, since: now(), reason: 'a newer stream replaced it' }))
      await shown(panel).toMatch(/away for \d+ s\s+a newer stream replaced it/)
      await shown(panel).toMatch(/Buffer\s+empty when last heard/)
      await shown(page.locator('.heading')).toContain('agent away: pulled by the hub')
      await hub.put(cluster('push', {}))
      await shown(panel).toMatch(/empty: all has arrived/)
      await shown(page.locator('.heading')).not.toContain('pulled')
    })

    it('names agents that need somebody below the clusters that do, though those clusters are healthy', async () => {
      const now = (await openHub()).now()
      const agent = (wish: Parameters<typeof anAgent>[1]) => ({ mode: 'push' as const, agent: anAgent(now, wish) })
      await hub.fill([
        aCluster('ill', now, { notReady: 1, ...agent({ tls: false }) }),
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
          expect.stringMatching(/ill 1 of 5 nodes not ready: worker-2 ?▲ not encrypted/),
          expect.stringMatching(/away The agent is away \(its token was revoked\); the hub reads the cluster itself/),
          expect.stringMatching(/behind Catching up: 240 batches, from 2 h ago/),
        ])
      await page.getByRole('heading', { level: 1, name: '1 of 4 clusters needs you' }).waitFor()
      await strip.getByRole('link', { name: 'away' }).click()
      await page.getByRole('region', { name: 'Agent' }).waitFor()
    })

    it('tells of batches that were lost within the hour, also before the page was opened', async () => {
      await openHub({ clockAheadMs: -90 * minute })
      const losing = () => ({ mode: 'push' as const, agent: anAgent(hub.now(), { lostBatches: 6 }) })
      const lose = (cluster: string) => {
        const to = hub.now()
        return hub.lost(cluster, { cause: 'thinned', from: to - 30 * minute, to, count: 6, keptEveryMs: 5 * minute })
      }
      await hub.fill(['west', 'past', 'east'].map((name) => aCluster(name, hub.now(), losing())))
      await lose('past')
      hub.pass(80 * minute)
      await lose('west')
      hub.pass(10 * minute)
      for (const name of ['west', 'past', 'east']) await hub.put(aCluster(name, hub.now(), losing()))
      const page = await visit('/')
      const strip = page.getByRole('region', { name: 'Needs attention' })
      const changes = page.getByRole('region', { name: 'Changes of the last hour' })
      await shown(strip).toContain('6 batches lost within the last hour')
      await shown(changes).toMatch(
        /west lost 6 batches of .* for good: thinned out, because .*; one per 5 min was kept/,
      )
      // As the hub tells it to a page of the fleet, which hears the events of no cluster: by a count that grew.
      await lose('east')
      await hub.put(aCluster('east', hub.now(), { ...losing(), agent: anAgent(hub.now(), { lostBatches: 12 }) }))
      await strip.locator('summary', { hasText: '2 agents: 6 batches lost within the last hour' }).click()
      await strip.getByRole('link', { name: 'east' }).waitFor()
      expect(await strip.innerText()).not.toContain('past')
      await strip.getByRole('link', { name: 'west' }).click()
      await page.getByRole('region', { name: 'History of west' }).waitFor()
      await page
        .getByRole('navigation', { name: 'Parts of this cluster' })
        .getByRole('link', { name: 'Events' })
        .click()
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
      '/clusters/eu-prod-3/history',
      '/clusters/eu-prod-3/history?range=30d',
      '/clusters/eu-prod-3/nodes/worker-1',
      '/clusters/lab',
      '/clusters/eu-prod-2',
      '/',
    ]
    const settled = async (page: Page) => {
      await page.locator('h1').waitFor()
      await expect.poll(() => page.locator('.skeleton:visible, .skeleton-line:visible').count(), patient).toBe(0)
    }

    it('gives axe nothing to complain of, in both themes, and fits 320 px without scrolling sideways', {
      tags: ['long'],
    }, async () => {
      const page = await visit('/')
      const check = async (where: string) => expect(await complaintsOf(page), where).toEqual([])
      for (const path of paths) {
        await goTo(page, `${base}${path}`)
        await settled(page)
        await check(path)
        expect(await excessAt320(page), path).toBeLessThanOrEqual(0)
      }
      await page.goto(`${base}/clusters/eu-prod-3/history`)
      await drawn(page)
      await page.getByRole('button', { name: 'Custom range' }).click()
      await check('custom range')
      await page.keyboard.press('Escape')
      await page.getByRole('button', { name: 'Table', exact: true }).click()
      await page.getByRole('table', { name: /^History of/ }).waitFor()
      await check('table')
      for (const status of [403, 501, 503]) {
        refuseHistory(status, 'some_code', 'a reason')
        await page.goto(`${base}/clusters/eu-prod-3/history`)
        await page.getByText('a reason').waitFor()
        await check(`history ${status}`)
      }
    })

    it('draws behind a path prefix, styles included', async () => {
      await openHub({ prefix: '/tools/fleet', history: true })
      await hub.fill(demoFleet(hub.now()).slice(0, 1))
      const page = await visit('/clusters/eu-prod-1/history')
      await drawn(page, 7) // that of operators too
      const position = () => page.evaluate<string>('getComputedStyle(document.querySelector(".u-over")).position')
      await expect.poll(position, patient).toBe('absolute')
    })
  })
})
