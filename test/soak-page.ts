/**
 * `npm run soak page -- [minutes] [changes per second] [clusters] [pods of each]`: somebody types, clicks and scrolls through all pods of a
 * fleet that never rests; ends with 1 where the page answers late, shows a blank row, holds the browser up while it scrolls, or grows.
 * Times of interactions are the browser's (Event Timing); of tasks the thread's own time counts, so that a loaded machine is no fault
 * of the page. How many programs wanted a processor meanwhile stands in each line.
 */
import { availableParallelism, loadavg } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import type { CDPSession, Page } from 'playwright-core'
import { type RowsPart, Table, type TableRow } from '#model'
import { resourceOf } from '#resources'
import { buildPage, openBrowser } from '../web/testing/browser.ts'
import { aCluster } from './page/clusters.ts'
import { withTables } from './page/declared.ts'
import { PageHub } from './page/hub.ts'

const [minutes = 30, perSecond = 500, clusterCount = 100, podCount = 1000] = process.argv.slice(2).map(Number)
const MOST_INP_MS = 100
const MOST_TASK_MS = 50
const MOST_GROWTH = 1.25
const STEPS_PER_SECOND = 10

const kind = resourceOf('pods')
if (!kind) throw new Error('there is no kind pods')
const fields = kind.columns.filter(({ name }) => !kind.measured?.fields.includes(name)).map(({ name }) => name)
const statuses = ['Running', 'Running', 'Running', 'Running', 'Pending', 'CrashLoopBackOff']

function podOf(cluster: number, place: number, turn: number): TableRow {
  const values = {
    ...{ status: statuses[(place + turn) % statuses.length] ?? null, ready: 1, containers: 1, restarts: turn % 50 },
    ...{ node: `n-${place % 10}`, workload: `Deployment/app-${place % 40}`, createdAt: 1.7e12 + place * 1000 },
  }
  return { namespace: `team-${place % 20}`, name: `app-${place % 40}-${cluster}-${place}`, labels: {}, values }
}

function part(said: { outcome: 'complete'; rows: Table } | { outcome: 'changed'; put: Table; removed: string[] }) {
  const facts = { aggregations: {}, truncated: false, errors: [], errorCount: 0, reports: [] }
  return { source: kind?.id, hash: kind?.hash, durationMs: 1, ...facts, ...said } as RowsPart // there is one, as said above
}

const nameOf = (cluster: number): string => `member-${String(cluster).padStart(3, '0')}`

/** Moves so many pods a second, spread over the clusters. */
class Moves implements AsyncDisposable {
  count = 0
  readonly #over: Promise<void>
  #isOver = false

  constructor(hub: PageHub) {
    this.#over = this.#run(hub)
  }

  async #run(hub: PageHub): Promise<void> {
    const began = performance.now()
    const inStep = Math.max(1, Math.round(perSecond / STEPS_PER_SECOND / 5))
    for (let turn = 0; !this.#isOver; ) {
      const due = ((performance.now() - began) / 1000) * perSecond
      for (; this.count < due && !this.#isOver; turn++) {
        const [cluster, first] = [turn % clusterCount, (turn * 7919) % podCount]
        const rows = Array.from({ length: inStep }, (_, more) => podOf(cluster, (first + more) % podCount, turn))
        await hub.step(nameOf(cluster), [part({ outcome: 'changed', put: Table.of(fields, rows), removed: [] })])
        this.count += inStep
      }
      await sleep(1000 / STEPS_PER_SECOND)
    }
  }

  async [Symbol.asyncDispose]() {
    this.#isOver = true
    await this.#over
  }
}

/** In the page: how long each interaction took to be seen, and each task that held the browser up. */
const observing = `
  globalThis.vitals = { interactions: new Map(), tasks: [] }
  new PerformanceObserver((list) => {
    for (const { interactionId, duration, name, processingStart, processingEnd, startTime } of list.getEntries()) {
      if (!interactionId) continue
      const known = vitals.interactions.get(interactionId)
      if (!known || known.duration < duration)
        vitals.interactions.set(interactionId, { duration, name, waited: processingStart - startTime, worked: processingEnd - processingStart })
    }
  }).observe({ type: 'event', durationThreshold: 16, buffered: true })
`

/** Scrolls as a wheel does, with some leaps. @returns how many lines of the view were blank in any frame */
const scrolling = (ms: number) => `(async () => {
  const box = document.querySelector('.table-scroll')
  const frame = () => new Promise((done) => requestAnimationFrame(done))
  const until = performance.now() + ${ms}
  let blank = 0, frames = 0, down = true
  while (performance.now() < until) {
    const end = box.scrollHeight - box.clientHeight
    if (frames % 120 === 119) box.scrollTop = end * Math.random()
    else box.scrollTop += down ? 240 : -240
    if (box.scrollTop >= end - 1) down = false
    if (box.scrollTop <= 0) down = true
    await frame(); await frame()
    const { left, top } = box.getBoundingClientRect()
    for (let y = top + 60; y < Math.min(top + box.clientHeight - 40, innerHeight); y += 38)
      if (!document.elementFromPoint(left + 50, y)?.closest('tr[data-index]')) blank++
    frames++
  }
  return { blank, frames, lines: box.querySelectorAll('tr[data-index]').length }
})()`

/** Goes to the end until there is no more to load. */
const loading = `(async () => {
  for (const until = performance.now() + 120_000; performance.now() < until; ) {
    const box = document.querySelector('.table-scroll')
    if (box && !document.querySelector('p.count')?.textContent.includes('loaded')) return true
    if (box) box.scrollTop = box.scrollHeight
    await new Promise((done) => setTimeout(done, 50))
  }
  return false
})()`

interface Task {
  readonly ms: number
  readonly what: string
}

/** What the page's main thread did meanwhile, by the thread's own time: its longer tasks, all of it, and what it collected. */
async function workOf(page: Page, run: () => Promise<void>) {
  const browser = page.context().browser()
  if (!browser) throw new Error('the page has no browser')
  await browser.startTracing(page, { categories: ['toplevel', 'devtools.timeline', 'v8', 'disabled-by-default-v8.gc'] })
  await run()
  const { traceEvents } = JSON.parse(String(await browser.stopTracing())) as { traceEvents: readonly TraceEvent[] }
  const main = traceEvents.find(
    ({ name, args }) => name === 'thread_name' && args?.name === 'CrRendererMain' && args.name !== undefined,
  )
  const own = traceEvents.filter(({ pid, tid, tdur }) => pid === main?.pid && tid === main?.tid && tdur !== undefined)
  const all = own.filter(({ name }) => name.endsWith('RunTask'))
  const collections = own.filter(({ name }) => name === 'MinorGC' || name === 'MajorGC')
  const sum = (some: readonly TraceEvent[]) => some.reduce((ms, { tdur = 0 }) => ms + tdur / 1000, 0)
  const freed = ({ args: { usedHeapSizeBefore = 0, usedHeapSizeAfter = 0 } = {} }: TraceEvent) =>
    Math.max(0, usedHeapSizeBefore - usedHeapSizeAfter) / 2 ** 20
  const long = all.filter(({ tdur = 0 }) => tdur > (MOST_TASK_MS / 2) * 1000)
  const tasks = long.map(({ ts, dur = 0, tdur = 0 }): Task => {
    const inside = own.filter((one) => one.ts >= ts && one.ts < ts + dur && !one.name.endsWith('RunTask'))
    const most = [...inside].sort((a, b) => (b.tdur ?? 0) - (a.tdur ?? 0)).slice(0, 4)
    return {
      ms: tdur / 1000,
      what: most.map(({ name, tdur = 0 }) => `${name} ${(tdur / 1000).toFixed()}`).join(', '),
    }
  })
  const freedMb = collections.reduce((mb, one) => mb + freed(one), 0)
  return { tasks, ms: sum(all), collected: { mb: freedMb, ms: sum(collections) } }
}
interface TraceEvent {
  readonly name: string
  readonly pid: number
  readonly tid: number
  readonly ts: number
  readonly dur?: number
  readonly tdur?: number
  readonly args?: { readonly name?: string; readonly usedHeapSizeBefore?: number; readonly usedHeapSizeAfter?: number }
}

async function heapOf(session: CDPSession): Promise<number> {
  await session.send('HeapProfiler.collectGarbage')
  const { usedSize } = await session.send('Runtime.getHeapUsage')
  return usedSize / 2 ** 20
}

interface Interaction {
  readonly duration: number
  readonly name: string
  readonly waited: number
  readonly worked: number
}

/** What somebody does who looks for something. */
async function looksAround(page: Page): Promise<void> {
  const filter = page.getByRole('textbox', { name: 'Filter pods rows' })
  await filter.click()
  await page.keyboard.type('crash', { delay: 90 })
  await sleep(1_500)
  for (let key = 0; key < 5; key++) await page.keyboard.press('Backspace', { delay: 60 })
  await page.keyboard.press('Tab')
  for (const column of ['Restarts', 'Name', 'Cluster']) {
    await page.getByRole('button', { name: column, exact: true }).first().click()
    await sleep(1_000)
  }
  for (let key = 0; key < 8; key++) await page.keyboard.press('j', { delay: 50 })
  await page.mouse.move(5, 5)
}

using built = buildPage()
await using hub = await PageHub.open({ root: built.root })
const rounds = Array.from({ length: clusterCount }, (_, cluster) => {
  const rows = Array.from({ length: podCount }, (_, place) => podOf(cluster, place, 0))
  const bare = aCluster(nameOf(cluster), hub.now(), { nodes: 2, rounds: 1, ageMs: 0 })
  return withTables(bare, part({ outcome: 'complete', rows: Table.of(fields, rows) }))
})
await hub.fill(rounds)
const base = await hub.gateway.start()
const browser = await openBrowser()
const page = await browser.newPage({ viewport: { width: 1440, height: 900 } })
const faults: string[] = []
page.on('pageerror', ({ message }) => faults.push(message))
const session = await page.context().newCDPSession(page)
await page.addInitScript(observing)
await page.goto(`${base}/types/pods?view=rows`)
await page.locator('tr[data-index]').first().waitFor()
const total = (clusterCount * podCount).toLocaleString('en-US')
await page.getByText(`${total} rows`, { exact: true }).first().waitFor({ timeout: 60_000 })
await using moves = new Moves(hub)
const heaps: number[] = []
const interactions: Interaction[] = []
const start = performance.now()
const until = start + minutes * 60_000
let [blank, frames] = [0, 0]
while (performance.now() < until) {
  await looksAround(page)
  const began = performance.now()
  if (!(await page.evaluate(loading))) faults.push('not all rows could be loaded within two minutes')
  const loadedMs = performance.now() - began
  const before = frames
  const { tasks, ms, collected } = await workOf(page, async () => {
    const seen = (await page.evaluate(scrolling(15_000))) as { blank: number; frames: number }
    blank += seen.blank
    frames += seen.frames
  })
  const perFrame = ms / (frames - before)
  const round = await page.evaluate<Interaction[]>('[...vitals.interactions.values()]')
  await page.evaluate('vitals.interactions.clear()')
  interactions.push(...round)
  heaps.push(await heapOf(session))
  const worst = [...round].sort((a, b) => b.duration - a.duration)[0]
  const long = tasks.filter(({ ms }) => ms > MOST_TASK_MS)
  console.log(
    `${new Date().toISOString().slice(11, 19)}  heap ${heaps.at(-1)?.toFixed(1)} MB  worst interaction ${worst ? `${worst.duration} ms (${worst.name}, waited ${worst.waited.toFixed()}, worked ${worst.worked.toFixed()})` : 'none'}  tasks over ${MOST_TASK_MS} ms: ${long.length}  longest ${[
      ...tasks,
    ]
      .sort((a, b) => b.ms - a.ms)
      .slice(0, 3)
      .map(({ ms, what }) => `${ms.toFixed()} (${what})`)
      .join(
        ' | ',
      )}  thread ${perFrame.toFixed(1)} ms a step  collected ${collected.mb.toFixed()} MB in ${collected.ms.toFixed()} ms  all rows loaded in ${(loadedMs / 1000).toFixed(1)} s  load ${loadavg()[0]?.toFixed(1)}`,
  )
  for (const { ms, what } of long) faults.push(`a task of ${ms.toFixed()} ms while it scrolled: ${what}`)
}
// INP: of every fifty interactions the worst is left out.
const sorted = interactions.map(({ duration }) => duration).sort((a, b) => b - a)
const inp = sorted[Math.floor(sorted.length / 50)] ?? 0
const [early = 0, late = 0] = [heaps[Math.min(1, heaps.length - 1)], heaps.at(-1)]
console.log(
  `${moves.count} pods moved (${(moves.count / ((performance.now() - start) / 1000)).toFixed()} a second); ${interactions.length} interactions, INP ${inp} ms; ${blank} blank lines in ${frames} frames; heap ${early.toFixed(1)} MB, then ${late.toFixed(1)} MB; load ${loadavg()
    .map((load) => load.toFixed(1))
    .join(', ')} on ${availableParallelism()} processors`,
)
if (inp > MOST_INP_MS) faults.push(`INP is ${inp} ms`)
if (blank > 0) faults.push(`${blank} blank lines`)
if (late > early * MOST_GROWTH) faults.push(`the heap grew from ${early.toFixed(1)} to ${late.toFixed(1)} MB`)
for (const fault of faults) console.log(`FAULT ${fault}`)
await browser.close()
process.exitCode = faults.length > 0 ? 1 : 0
