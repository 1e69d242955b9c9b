import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { policiesOfManifest } from '#access'
import { type RowsPart, Table, type TableRow } from '#model'
import { resourceOf } from '#resources'
import { buildPage, noBrowser } from '../../web/testing/browser.ts'
import { complaintsOf } from '../page/axe.ts'
import { aCluster } from '../page/clusters.ts'
import { withTables } from '../page/declared.ts'
import { administrator, PageHub } from '../page/hub.ts'
import { patient } from '../page/shown.ts'
import { goTo, Visits } from '../page/visits.ts'

const suite = noBrowser === undefined ? 'events on the page' : `events on the page (skipped: ${noBrowser})`
const alice = `
apiVersion: clusterpulse.io/v1alpha1
kind: MonitorAccessPolicy
metadata: { name: alice, namespace: clusterpulse }
spec:
  identity: { subjects: { users: [alice] }, priority: 100 }
  access: { effect: Allow, enabled: true }
  scope:
    clusters:
      default: none
      rules:
        - selector: { matchNames: [west] }
          permissions: { view: true }
          resources:
            - { type: pods, visibility: filtered, filters: { names: { allowed: ['cart-*'] } } }
`
const second = 1000
const minute = 60 * second

function rowsOf(id: string, rows: readonly (Omit<TableRow, 'labels'> & { labels?: TableRow['labels'] })[]): RowsPart {
  const kind = resourceOf(id)
  if (!kind) throw new Error(`there is no kind ${id}`)
  const fields = kind.columns.filter(({ name }) => !kind.measured?.fields.includes(name)).map(({ name }) => name)
  const table = Table.of(
    fields,
    rows.map((row) => ({ labels: {}, ...row })),
  )
  return {
    ...{ source: kind.id, hash: kind.hash, durationMs: 40, outcome: 'complete', rows: table },
    ...{ aggregations: kind.aggregate(table), truncated: false, errors: [], errorCount: 0, reports: [] },
  }
}

const pod = (name: string, namespace = 'shop', values: TableRow['values'] = {}) => ({
  ...{ namespace, name },
  values: {
    status: 'Running',
    ready: 1,
    containers: 1,
    restarts: 0,
    node: 'n-0',
    workload: 'Deployment/web',
    ...values,
  },
})

/** What a cluster of this name holds: a workload with two pods that crash, one of them told of twice. */
const tablesAt = (now: number) => {
  const event = (name: string, object: string, values: TableRow['values'] = {}, namespace = 'shop') => ({
    ...{ namespace, name },
    values: {
      ...{ type: 'Normal', reason: 'Scheduled', object, message: `it happened to ${object}`, count: 1 },
      ...{ firstAt: now - 10 * minute, lastAt: now - minute, source: 'kubelet', node: 'n-0' },
      ...values,
    },
  })
  const backOff = { type: 'Warning', reason: 'BackOff', message: 'Back-off restarting failed container web' }
  return [
    rowsOf('pods', [
      pod('web-6f9c8d7b5-aaaaa', 'shop', { status: 'CrashLoopBackOff' }),
      pod('web-6f9c8d7b5-bbbbb', 'shop', { status: 'CrashLoopBackOff' }),
      pod('cart-6f9c8d7b5-ccccc', 'shop', { workload: 'Deployment/cart' }),
    ]),
    rowsOf('workloads', [
      {
        ...{ namespace: 'shop', name: 'web:Deployment' },
        values: { kind: 'Deployment', status: 'Degraded', ready: 0, desired: 2, images: 'web:1' },
      },
    ]),
    rowsOf('services', []),
    rowsOf('kubernetes-events', [
      event('a', 'Pod/web-6f9c8d7b5-aaaaa', { ...backOff, count: 7, lastAt: now - 20 * second }),
      event('b', 'Pod/web-6f9c8d7b5-bbbbb', { ...backOff, count: 2, lastAt: now - 40 * second }),
      event('c', 'Deployment/web', { reason: 'ScalingReplicaSet', message: 'Scaled up replica set web-6f9c8d7b5' }),
      event('d', 'Pod/cart-6f9c8d7b5-ccccc'),
    ]),
  ]
}

describe.skipIf(noBrowser !== undefined)(suite, () => {
  let built: ReturnType<typeof buildPage>
  let visits: Visits
  let hub: PageHub
  let base: string
  beforeAll(async () => {
    built = buildPage()
    visits = await Visits.open()
    const { policies } = policiesOfManifest(alice, { now: Date.now() })
    hub = await PageHub.open({ root: built.root, policies })
    const now = hub.now()
    await hub.fill([
      withTables(aCluster('west', now, { ageMs: 0, rounds: 2 }), ...tablesAt(now)),
      withTables(aCluster('east', now, { ageMs: 0, rounds: 2 }), ...tablesAt(now).slice(3)),
    ])
    base = await hub.gateway.start()
  })
  afterAll(async () => {
    await visits?.[Symbol.asyncDispose]()
    await hub?.[Symbol.asyncDispose]()
    built?.[Symbol.dispose]()
  })
  afterEach(async () => {
    const complaints = await visits.leave()
    hub.gateway.visitor = administrator
    expect(complaints).toEqual([])
  })

  const visit = (path: string, options = {}) => visits.visit(`${base}${path}`, options)
  const panel = (page: Page, name: string) => page.getByRole('region', { name, exact: true })
  const reasons = (page: Page) => page.locator('tbody [data-row-link]').allInnerTexts()

  it('stand in one timeline of the fleet, equal causes as one line that unfolds', async () => {
    const page = await visit('/events')
    await page.getByRole('heading', { level: 1, name: 'Events' }).waitFor()
    await page.getByRole('link', { name: 'BackOff' }).first().waitFor()
    const backOffs = async () => (await reasons(page)).filter((reason) => reason === 'BackOff')
    await expect.poll(backOffs, patient).toHaveLength(2) // one of each cluster
    expect((await reasons(page))[0]).toBe('BackOff')
    const line = page.locator('tbody tr', { hasText: '2 Pods' }).filter({ hasText: 'west' })
    await expect.poll(() => line.innerText(), patient).toContain('9')
    await page.goto(`${base}/events?q=${encodeURIComponent('cluster:west reason:BackOff')}`)
    await expect.poll(() => reasons(page), patient).toEqual(['BackOff'])
    await page.getByRole('link', { name: 'BackOff' }).click()
    const open = page.getByRole('dialog')
    await expect.poll(() => open.getByRole('listitem').count(), patient).toBe(2)
    await open.getByRole('link', { name: 'Pod/web-6f9c8d7b5-aaaaa' }).waitFor()
    await page.keyboard.press('Escape')
    await expect.poll(() => page.url(), patient).not.toContain('line=')
  })

  it('of one object stand beside it, and that there are none is said', async () => {
    const page = await visit(`/clusters/west/types/pods?row=${encodeURIComponent('shop/web-6f9c8d7b5-aaaaa')}`)
    const drawer = page.getByRole('dialog')
    await drawer.getByText('Back-off restarting failed container web').waitFor()
    await expect.poll(() => drawer.locator('.event-list li').count(), patient).toBe(1)
    await drawer.getByText(/7 times/).waitFor()
    await page.goto(`${base}/clusters/west/nodes/worker-1`)
    await page.getByRole('dialog').getByText('No events').waitFor()
  })

  it('stand on the pages of a namespace and a workload, with their pods, one link from a pod', async () => {
    const page = await visit(`/clusters/west/types/pods?row=${encodeURIComponent('shop/web-6f9c8d7b5-aaaaa')}`)
    await page.getByRole('dialog').getByRole('link', { name: 'Deployment/web' }).click()
    await page.getByRole('heading', { level: 2, name: 'web' }).waitFor()
    expect(new URL(page.url()).pathname).toBe('/clusters/west/types/workloads/shop%2Fweb%3ADeployment')
    const pods = panel(page, 'Pods').getByRole('row')
    await expect.poll(() => pods.count(), patient).toBe(3) // with its heading
    await expect.poll(() => panel(page, 'Kubernetes events').getByRole('listitem').count(), patient).toBe(3)
    await page.locator('.type-head').getByRole('link', { name: 'shop' }).click()
    await page.getByRole('heading', { level: 2, name: 'shop' }).waitFor()
    await expect.poll(() => panel(page, 'Kubernetes events').getByRole('listitem').count(), patient).toBe(4)
    await panel(page, 'Services').getByText('None.').waitFor()
    // What was never collected is not none.
    await panel(page, 'Volume claims')
      .getByText(/not read|could not be read|not shown/)
      .waitFor()
    await page.goto(`${base}/clusters/west/namespaces?row=shop`)
    await page.getByRole('dialog').getByRole('link', { name: 'Its page' }).click()
    await page.getByRole('heading', { level: 2, name: 'shop' }).waitFor()
    await page.goto(`${base}/clusters/west/namespaces/nowhere`)
    await page.getByText('This namespace is not there').waitFor()
  })

  it('come as they happen, on the timeline, beside their object and on its page, and nobody asks again', async () => {
    const now = hub.now()
    const [pods, workloads, services] = tablesAt(now)
    let count = 0
    const happens = (text: string) =>
      hub.put(
        withTables(
          aCluster('north', hub.now(), { ageMs: 0, rounds: 1 }),
          ...[pods, workloads, services].flatMap((part) => part ?? []),
          rowsOf(
            'kubernetes-events',
            Array.from({ length: ++count }, (_, place) => ({
              ...{ namespace: 'shop', name: `e-${place}` },
              values: {
                ...{ type: 'Warning', reason: `Happened${place}`, object: 'Pod/web-6f9c8d7b5-aaaaa', message: text },
                ...{ count: 1, firstAt: now, lastAt: now + place, source: 'kubelet', node: 'n-0' },
              },
            })),
          ),
        ),
      )
    const asked = () => hub.gateway.requests.filter((path) => /rows\/|types\//.test(path) && !path.includes('stream'))
    /** What somebody reads for values that came is over. */
    const isQuiet = async (page: Page) => {
      for (let before = -1; before !== asked().length; ) {
        before = asked().length
        await page.waitForTimeout(3500)
      }
      return asked().length
    }
    await happens('first')
    for (const path of [
      `/events?q=${encodeURIComponent('cluster:north from:Kubernetes')}`,
      `/clusters/north/types/pods?row=${encodeURIComponent('shop/web-6f9c8d7b5-aaaaa')}`,
      '/clusters/north/namespaces/shop',
      `/clusters/north/types/workloads/${encodeURIComponent('shop/web:Deployment')}`,
    ]) {
      const page = await visit(path)
      const shown = page.getByText(`Happened${count - 1}`).first()
      await shown.waitFor()
      // Equal rows with another text: nothing that leads anywhere is new, so nothing is read. Something else that is
      // read now and then (a history) may fall into one of the changes, not into each.
      let [read, text] = [1, '']
      for (let turn = 0; read !== 0 && turn < 6; turn++) {
        const before = await isQuiet(page)
        text = `seen on ${path.slice(0, 20)} ${turn}`
        count--
        await happens(text)
        await page.getByText(text).first().waitFor()
        read = asked().length - before
      }
      expect([path, read]).toEqual([path, 0])
      await happens(text)
      await page
        .getByText(`Happened${count - 1}`)
        .first()
        .waitFor()
      await page.goto('about:blank')
    }
  })

  it.each([
    ['that are all here', 40],
    ['of which a part is here', 1300],
  ])('%s are as many in the head of their page as at its foot, at every moment', async (_, first) => {
    const now = hub.now()
    const happens = (count: number) =>
      hub.put(
        withTables(
          aCluster('south', hub.now(), { ageMs: 0, rounds: 1 }),
          rowsOf(
            'kubernetes-events',
            Array.from({ length: count }, (_, place) => ({
              ...{ namespace: 'shop', name: `e-${place}` },
              values: {
                ...{
                  type: place % 3 === 0 ? 'Warning' : 'Normal',
                  reason: 'Happened',
                  object: 'Pod/web',
                  message: 'it',
                },
                ...{ count: 1, firstAt: now, lastAt: now + place, source: 'kubelet', node: 'n-0' },
              },
            })),
          ),
        ),
      )
    await happens(first)
    const page = await visit('/types/kubernetes-events')
    const foot = page.locator('.count [role=status]')
    await expect.poll(() => foot.innerText(), patient).toMatch(/^\d[\d,]+ rows$/)
    // Whatever is drawn, in whichever frame.
    await page.evaluate(`window.differing = []
      const look = () => {
        const rows = [...document.querySelectorAll('.status-line > span, .count [role=status]')]
          .map((one) => one.textContent).filter((text) => /^[\\d,]+ rows?$/.test(text))
        const groups = [...document.querySelectorAll('.kind-summary .status-line')].map((line) => [...line.querySelectorAll('b')]
          .reduce((sum, one) => sum + Number(one.textContent.replaceAll(',', '')), 0).toLocaleString('en-US') + ' rows')
        const said = [...rows, groups[0]]
        if (rows.length !== 2 || new Set(said).size !== 1) window.differing.push(said.join(' | '))
      }
      look()
      new MutationObserver(look).observe(document.body, { subtree: true, childList: true, characterData: true })`)
    const before = await foot.innerText()
    for (let more = 1; more <= 12; more++) {
      await happens(first + more)
      await page.waitForTimeout(300)
    }
    await expect.poll(() => foot.innerText(), patient).not.toBe(before)
    expect(await page.evaluate<string[]>('window.differing')).toEqual([])
    await page.getByLabel('Group').selectOption('reason')
    await page.locator('.row-groups').waitFor()
    for (let more = 13; more <= 16; more++) {
      await happens(first + more)
      await page.waitForTimeout(700)
    }
    const numbers = await page.evaluate<string[]>(
      `[...document.querySelectorAll('.status-line > span, .count [role=status]')].map((one) => one.textContent).filter((text) => /^[\\d,]+ rows$/.test(text))`,
    )
    expect(numbers).toHaveLength(2)
    expect(new Set(numbers).size).toBe(1)
  })

  it('are those of what a person may see', async () => {
    hub.gateway.visitor = { username: 'alice', email: '', groups: [] }
    const page = await visit('/events')
    await page.getByRole('link', { name: 'Scheduled' }).waitFor()
    expect((await reasons(page)).filter((reason) => !reason.includes('.'))).toEqual(['Scheduled'])
    expect(await page.getByText('web-6f9c8d7b5').count()).toBe(0)
  })

  it('give axe nothing to complain of, and fit 360 px', { tags: ['long'] }, async () => {
    const page = await visit('/events')
    for (const path of [
      '/events',
      '/clusters/west/namespaces/shop',
      `/clusters/west/types/workloads/${encodeURIComponent('shop/web:Deployment')}`,
    ])
      for (const width of [1280, 360]) {
        await page.setViewportSize({ width, height: 800 })
        await goTo(page, `${base}${path}`)
        await page.locator('.event-list li, tbody tr').first().waitFor()
        await expect.poll(() => page.locator('.skeleton:visible').count(), patient).toBe(0)
        if (process.env.SHOTS) {
          for (const colorScheme of ['light', 'dark'] as const) {
            await page.emulateMedia({ colorScheme })
            await page.screenshot({
              path: `${process.env.SHOTS}/${path.replaceAll(/\W+/g, '-')}-${width}-${colorScheme}.png`,
            })
          }
        }
        const isWide = await page.evaluate(
          'document.documentElement.scrollWidth > document.documentElement.clientWidth',
        )
        expect([path, width, isWide]).toEqual([path, width, false])
        if (width === 1280) expect(await complaintsOf(page), path).toEqual([])
      }
  })
})
