import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { buildPage, noBrowser, openBrowser } from '../../web/testing/browser.ts'
import { FakeHub } from '../../web/testing/fake-hub.ts'
import { aCluster, aDeadCluster, aNode, demoFleet } from '../../web/testing/worlds.ts'

const axeSource = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const patient = { timeout: 20_000 }
const suite = noBrowser === undefined ? 'the page in a browser' : `the page in a browser (skipped: ${noBrowser})`

describe.skipIf(noBrowser !== undefined)(suite, { timeout: 60_000 }, () => {
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
    base = await hub.start()
  })
  afterEach(async () => {
    for (const close of open.splice(0)) await close()
    await hub.stop()
    // Whatever a test was about: nothing may break the content security policy or throw.
    expect(complaints).toEqual([])
  })

  async function visit(path: string, options: BrowserContextOptions = {}, { ready = true } = {}): Promise<Page> {
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
    if (ready) await page.getByRole('button', { name: /^Connection: Live/ }).waitFor()
    return page
  }
  const text = (page: Page) => page.locator('main').innerText()
  const rowNames = (page: Page) => page.locator('tbody [data-row-link]').allInnerTexts()

  describe('states', () => {
    it('shows the shape of the page while it waits, then the fleet, worst first', async () => {
      hub.behaviour.hold = true
      const page = await visit('/', {}, { ready: false })
      await page.getByText('Loading the fleet').waitFor({ state: 'attached' })
      expect(await page.locator('.ledger .ledger-cell').count()).toBe(5)
      hub.behaviour.hold = false
      await page.getByRole('heading', { level: 1, name: '3 of 6 clusters need you' }).waitFor()
      await expect
        .poll(() => rowNames(page), patient)
        .toEqual(['Edge 07', 'Europe production 2', 'new-one', 'Europe production 1', 'lab', 'us-stage'])
    })

    it('says of an empty fleet why it is empty and what comes next', async () => {
      hub.fill([])
      const page = await visit('/')
      await expect
        .poll(() => text(page), patient)
        .toMatch(/No cluster is connected yet[\s\S]*clusterpulse up --kubeconfig/)
    })

    it('tells somebody without access who they are, and not that there is nothing', async () => {
      hub.fill([])
      const user = { username: 'eve', email: '', groups: ['guests'], method: 'trusted-proxy', administrator: false }
      hub.behaviour.session = { ...hub.behaviour.session, user }
      const page = await visit('/')
      await page.getByText('No cluster is shown to you').waitFor()
      expect(await text(page)).toMatch(/known as eve in guests/)
    })

    it.each([
      [401, 'Sign in to see the fleet'],
      [403, 'You may not see this fleet'],
    ])('turns a refusal with %d into a page of its own', async (status, title) => {
      hub.behaviour.refuse = { status, code: 'unauthenticated', error: 'no identity was given' }
      const page = await visit('/', {}, { ready: false })
      await page.getByRole('heading', { level: 1, name: title }).waitFor()
      expect(await text(page)).toContain('no identity was given')
    })

    it('takes a refusal in the words of a proxy for the end of the sign-in there, not for a decision of the hub', async () => {
      const page = await visit('/')
      await page.route('**/api/**', (route) =>
        route.fulfill({ status: 403, contentType: 'text/html', body: '<h1>Log in with OpenShift</h1>' }),
      )
      await page.reload()
      await page.getByRole('heading', { level: 1, name: 'Sign in to see the fleet' }).waitFor()
    })

    it('shows text, code and request id of an error, and recovers on Retry', async () => {
      // It asks for so long a pause that only the button can be what asks again.
      hub.behaviour.refuse = {
        retryAfterSeconds: 3600,
        status: 503,
        code: 'store_unavailable',
        error: 'redis is not available: connection refused',
      }
      const page = await visit('/', {}, { ready: false })
      await page.getByRole('heading', { level: 1, name: 'The hub cannot answer' }).waitFor()
      expect(await text(page)).toMatch(
        /redis is not available[\s\S]*store_unavailable[\s\S]*HTTP 503[\s\S]*request req-4711/,
      )
      hub.behaviour.refuse = null
      await page.getByRole('button', { name: 'Retry now' }).click()
      await page.getByRole('heading', { level: 1, name: '3 of 6 clusters need you' }).waitFor()
    })

    it('keeps what it knew when the hub goes away, and says how old it is', async () => {
      const page = await visit('/')
      const port = Number(new URL(base).port)
      await hub.stop()
      const since = performance.now()
      await page.getByText('The hub cannot be reached.').waitFor({ timeout: 20_000 })
      // A stream that broke off and a question that nothing answers: about half a second, with room for a busy machine.
      expect(performance.now() - since).toBeLessThan(5000)
      expect(await page.locator('main.is-unheard').count()).toBe(1)
      expect(await page.locator('.banner').innerText()).toMatch(/as of \d+ s ago/)
      await expect.poll(() => rowNames(page), patient).toHaveLength(6)
      const retry = page.getByRole('button', { name: 'Retry now' })
      await retry.waitFor()
      await hub.start(port)
      // The page tries by itself as well: the button may be gone before it is pressed.
      await retry.dispatchEvent('click', {}, { timeout: 1_000 }).catch(() => undefined)
      await page.getByRole('button', { name: /^Connection: Live/ }).waitFor()
      await expect.poll(() => page.locator('.banner').count(), patient).toBe(0)
    })

    it('polls where streams do not get through, and says so', async () => {
      hub.behaviour.streams = false
      const page = await visit('/', {}, { ready: false })
      await page.getByRole('button', { name: /^Connection: Polling/ }).waitFor()
      await expect.poll(() => rowNames(page), patient).toHaveLength(6)
    })

    it('tells of one cause once, and leads to nothing that a cluster does not serve', async () => {
      const now = Date.now()
      const dead = { outcome: 'unreachable', code: 'timeout', freshness: null } as const
      const failed = (path: string) => ({ ...dead, message: `GET ${path}: its API did not answer within 10 s` })
      hub.put(
        aCluster('slow', now, {
          parts: {
            namespace: failed('/api/v1/namespaces'),
            deployment: failed('/apis/apps/v1/deployments'),
            operator: failed('/apis/operators.coreos.com'),
            clusterOperator: failed('/apis/config.openshift.io'),
          },
        }),
      )
      const page = await visit('/clusters/slow')
      const notice = page.locator('.notice')
      await notice.waitFor()
      expect(await notice.count()).toBe(1)
      expect(await notice.innerText()).toContain('namespaces, deployments, operators, cluster operators')
      const tabs = () => page.getByRole('navigation', { name: 'Parts of this cluster' }).innerText()
      expect(await tabs()).not.toMatch(/operators/i)
      expect(await page.locator('dt', { hasText: 'Pods' }).getByRole('link').count()).toBe(0)
      await page.goto(`${base}/clusters/eu-prod-1`)
      await expect.poll(tabs, patient).toMatch(/Operators[\s\S]*Cluster operators/)
      await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Access' }).click()
      await page.getByRole('heading', { level: 1, name: /Access/ }).waitFor()
    })

    it('warns while the hub has lost its store', async () => {
      const page = await visit('/')
      hub.say({ kind: 'store', state: 'unavailable', since: Date.now() - 5000, reason: 'redis refuses connections' })
      await page.getByText('The hub has lost its store.').waitFor()
      hub.say({ kind: 'store', state: 'available', since: null, reason: '' })
      await page.getByText('The hub has lost its store.').waitFor({ state: 'detached' })
    })

    it('marks what is old as stale by time alone, and never as healthy', async () => {
      const now = Date.now()
      const world = aCluster('west', now, { ageMs: 5000 })
      hub.fill([{ ...world, view: { ...world.view, staleAfterMs: 6500 } }])
      const page = await visit('/')
      await page.locator('td .health', { hasText: 'Stale' }).waitFor()
      await page.getByRole('heading', { level: 1, name: '1 of 1 cluster needs you' }).waitFor()
      await expect.poll(() => page.locator('tr[data-index]').first().getAttribute('class'), patient).toContain('dim')
    })

    it('counts nothing as stale that is ill, however long ago it was read, and fades all of its row', async () => {
      const now = Date.now()
      hub.fill([aCluster('west', now, { ageMs: 400_000, health: 'unhealthy' }), aCluster('east', now)])
      const page = await visit('/')
      const row = page.locator('tr[data-index].dim')
      await row.waitFor()
      expect(await row.innerText()).not.toMatch(/stale/i)
      await page.getByRole('link', { name: /0 stale/ }).waitFor()
      const colorOf = (of: string) => page.evaluate(`getComputedStyle(document.querySelector('${of}')).color`)
      const [faded, current] = [await colorOf('tr.dim td .mono'), await colorOf('tr[data-index]:not(.dim) td .mono')]
      expect(faded).not.toBe(current)
      const asked = await visit('/?q=stale:yes')
      await asked.getByText('0 of 2 clusters').waitFor()
    })

    it('counts ages by the clock of the hub, not by that of the reader', async () => {
      hub.behaviour.clockAheadMs = 3 * 3_600_000
      hub.fill([aCluster('west', hub.now(), { ageMs: 4000 })])
      const page = await visit('/')
      const age = await page.locator('tr[data-index] time').innerText()
      expect(Number.parseInt(age, 10)).toBeGreaterThanOrEqual(4)
      expect(Number.parseInt(age, 10)).toBeLessThan(110)
      expect(age).toMatch(/ s$/)
    })

    it('writes a dash with its reason where nothing is known, never 0', async () => {
      const page = await visit('/')
      const row = page.locator('tr[data-index]', { hasText: 'new-one' })
      expect(await row.innerText()).not.toMatch(/\b0\b/)
      expect(await row.locator('.missing').first().innerText()).toContain('nodes were never read')
    })

    it('says of every number of a fleet that is away of when it is, and of how many clusters it is current', async () => {
      hub.worlds.clear()
      const away = { health: 'unhealthy', ageMs: 135_000, message: 'connection test failed: timeout' } as const
      hub.fill([
        ...[1, 2].map((number) => aCluster(`gone-${number}`, hub.now(), away)),
        aCluster('never', hub.now(), { blank: true, health: 'unhealthy', message: 'connection test failed' }),
      ])
      const page = await visit('/?group=health')
      const ledger = await page.getByLabel('The fleet in numbers').innerText()
      for (const [what, words] of [
        ['Nodes ready', /10\s*\/ 10[\s\S]*all of them · as of 2 min ago; 0 of 3 current/],
        ['Pods running', /Pods running[\s\S]*as of 2 min ago; 0 of 3 current/],
        ['CPU', /CPU[\s\S]*used of 155 cores · as of 2 min ago; 0 of 2 current · measured in 2 of 3 clusters/],
      ] as const)
        expect(ledger, what).toMatch(words)
      expect(await page.locator('.ledger-cell.past').count()).toBe(4)
      expect(await page.locator('tr.group').innerText()).toMatch(
        /3 clusters · 10\/10 nodes ready[\s\S]* as of 2 min ago; 0 of 3 current/,
      )
      await expect.poll(() => page.locator('tbody tr.dim').count(), patient).toBe(3)

      hub.remove('gone-1')
      hub.remove('gone-2')
      await expect
        .poll(() => page.locator('tr.group').innerText(), patient)
        .toMatch(/1 cluster · nothing known of nodes/)

      hub.put(aCluster('gone-1', hub.now(), away))
      await page.getByRole('link', { name: 'gone-1' }).first().click()
      await page.getByRole('heading', { name: 'How it is read' }).waitFor()
      expect(await text(page)).toMatch(/it did not read the cluster\.[\s\S]*nodes\s+not read since · as of 2 min ago/)
      expect(await page.locator('.panel.past').count()).toBe(2)
      expect(await page.getByText('What runs').locator('..').innerText()).toMatch(/5 of 5 ready · as of 2 min ago/)
    })

    it.each([
      ['/clusters/us-stage/operators', /does not serve OLM/],
      ['/clusters/us-stage/cluster-operators', /does not serve ClusterOperators/],
      ['/clusters/lab/deployments', /may not read the deployments[\s\S]*resources: \["deployments"\]/],
      [
        '/clusters/edge-07/nodes',
        /could not be read[\s\S]*cluster_unreachable[\s\S]*as of 1\d min ago[\s\S]*control-plane-1/,
      ],
      ['/clusters/new-one/nodes', /have not been read yet/],
      ['/clusters/eu-prod-1/events', /No events here/],
      ['/clusters/nowhere', /no such cluster, or you may not see it/],
      ['/no/such/page', /There is no such page/],
      ['/clusters/eu-prod-1/nodes/gone', /control-plane-1/],
    ])('names the state of %s', async (path, words) => {
      const page = await visit(path)
      await expect.poll(() => text(page), patient).toMatch(words)
      expect(await page.locator('h1').count()).toBe(1)
    })
  })

  describe('live', () => {
    it('shows a change within a second, in place', async () => {
      const page = await visit('/')
      const row = page.locator('tr[data-index]', { hasText: 'us-stage' })
      await row.locator('.health', { hasText: 'Healthy' }).waitFor()
      const degraded = () =>
        aCluster('us-stage', Date.now(), {
          health: 'degraded',
          reasons: [{ code: 'nodes_not_ready', message: '1 of 4 nodes not ready: worker-1' }],
          nodes: 4,
          notReady: 1,
        })
      // The best of some tries: what else the machine does is not the time of the page.
      const took: number[] = []
      for (let turn = 0; turn < 5 && Math.min(...took) >= 1000; turn++) {
        if (turn > 0) {
          hub.put(aCluster('us-stage', Date.now(), { nodes: 4 }))
          await row.locator('.health', { hasText: 'Healthy' }).waitFor()
        }
        const started = Date.now()
        hub.put(degraded())
        await row.locator('.health', { hasText: 'Degraded' }).waitFor()
        took.push(Date.now() - started)
      }
      expect(Math.min(...took)).toBeLessThan(1000)
      await page.getByRole('heading', { level: 1, name: '4 of 6 clusters need you' }).waitFor()
      await expect
        .poll(() => page.locator('.attention').innerText(), patient)
        .toContain('1 of 4 nodes not ready: worker-1')
    })

    it('updates rows of the open cluster, adds new ones and takes gone ones away', async () => {
      const page = await visit('/clusters/us-stage/nodes')
      await expect.poll(() => rowNames(page), patient).toHaveLength(4)
      const view = aNode('us-stage', 'worker-9', Date.now(), { ready: 'notReady' })
      hub.send([
        { op: 'put', type: 'node', cluster: 'us-stage', view },
        { op: 'remove', type: 'node', cluster: 'us-stage', name: 'worker-1' },
      ])
      await expect
        .poll(() => rowNames(page), patient)
        .toEqual(['worker-9', 'control-plane-1', 'control-plane-2', 'control-plane-3'])
    })

    it('moves no row under the pointer, says so, and sorts again when the pointer leaves', async () => {
      const page = await visit('/')
      await expect.poll(() => rowNames(page), patient).toHaveLength(6)
      const before = await rowNames(page)
      await page.locator('tr[data-index="3"]').hover()
      hub.put(aCluster('us-stage', Date.now(), { health: 'unhealthy' }))
      hub.remove('lab')
      await page.getByText('order held while you read').waitFor()
      await page
        .locator('tr[data-index]', { hasText: 'us-stage' })
        .locator('.health', { hasText: 'Unhealthy' })
        .waitFor()
      await page.locator('tr.gone', { hasText: 'lab' }).waitFor()
      expect(await rowNames(page)).toEqual(before)
      await page.mouse.move(5, 5)
      await expect
        .poll(() => rowNames(page), patient)
        .toEqual(['Edge 07', 'us-stage', 'Europe production 2', 'new-one', 'Europe production 1'])
    })

    it('shifts nothing when values change, and moves the table for no news', async () => {
      const page = await visit('/')
      await expect.poll(() => rowNames(page), patient).toHaveLength(6)
      await page.evaluate(`window.shift = 0
        window.tableTop = () => document.querySelector('.table-scroll').getBoundingClientRect().top
        window.before = window.tableTop()
        new PerformanceObserver((list) => {
          for (const entry of list.getEntries()) window.shift += entry.value
        }).observe({ type: 'layout-shift' })`)
      const row = page.locator('tr[data-index]', { hasText: 'us-stage' })
      const stage = { labels: { env: 'stage', region: 'us' }, used: null }
      for (const nodes of [7, 12, 120]) {
        hub.put(aCluster('us-stage', Date.now(), { ...stage, nodes }))
        await row.filter({ hasText: `${nodes}/${nodes}` }).waitFor()
      }
      expect(await page.evaluate<number>('window.shift')).toBeLessThan(0.01)
      const reasons = [{ code: 'nodes_not_ready', message: 'a long reason for all of it '.repeat(20) }]
      const beats = Array.from({ length: 60 }, (_, index) => (index % 2 ? ('degraded' as const) : ('healthy' as const)))
      hub.put(aCluster('us-stage', Date.now(), { ...stage, health: 'degraded', reasons, beats }))
      await row.locator('.health', { hasText: 'Degraded' }).waitFor()
      expect(await page.evaluate<number>('window.tableTop() - window.before')).toBe(0)
    })

    it('begins the table in the upper part of the screen, and holds it where it is while the pointer is in it', async () => {
      const now = Date.now()
      const fleet = demoFleet(now)
      hub.fill([...fleet, ...Array.from({ length: 30 }, (_, index) => aDeadCluster(`dead-${index}`, now))])
      const page = await visit('/', { viewport: { width: 1440, height: 900 } })
      const top = () => page.evaluate<number>(`document.querySelector('tr[data-index]').getBoundingClientRect().top`)
      await page.locator('tr[data-index]').first().waitFor()
      expect(await top()).toBeLessThanOrEqual(360)
      const cause = page.locator('.attention summary', { hasText: '31 clusters: did not answer within 10 s' })
      await cause.focus()
      await page.keyboard.press('Enter')
      await page.locator('.attention').getByRole('link', { name: 'dead-29' }).waitFor()
      await page.locator('.changes summary', { hasText: '31 clusters: turned unhealthy' }).waitFor()
      await page.locator('.attention').getByRole('button', { name: 'in the table' }).click()
      await expect.poll(() => page.locator('.count').innerText(), patient).toContain('31 of 36 clusters')
      await page.getByRole('button', { name: 'Clear the filter' }).click()
      for (const { view } of hub.worlds.values()) hub.remove(view.name)
      hub.put(aCluster('calm', now))
      await page.getByText('Every cluster is healthy').waitFor()
      const calm = await top()
      expect(calm).toBeLessThan(320)
      await page.locator('tr[data-index]').first().hover()
      for (const { view } of fleet)
        hub.put(aCluster(view.name, now, { health: 'degraded', reasons: [{ code: view.name, message: view.name }] }))
      await page.locator('.attention li').nth(2).waitFor()
      expect(await top()).toBe(calm)
      await page.mouse.move(5, 5)
      await expect.poll(top, patient).toBeGreaterThan(calm)
    })

    it('holds one stream per tab, also on the pages of a cluster', async () => {
      const page = await visit('/')
      await page.locator('tbody').getByRole('link', { name: 'us-stage' }).click()
      await page.getByRole('heading', { level: 1, name: 'us-stage' }).waitFor()
      await page
        .getByRole('link', { name: /^Nodes/ })
        .first()
        .click()
      await page.locator('tbody tr[data-index]').first().waitFor()
      await expect.poll(() => hub.openStreams, patient).toBe(1)
    })

    it('animates nothing where motion is unwelcome, and does where it is not', async () => {
      for (const [reducedMotion, running] of [
        ['reduce', 0],
        ['no-preference', 1],
      ] as const) {
        hub.fill(demoFleet(Date.now()))
        const page = await visit('/', { reducedMotion })
        await expect.poll(() => rowNames(page), patient).toHaveLength(6)
        // Counted as they begin: one that has ended before it is looked for has run all the same.
        await page.evaluate(`window.begun = 0
          const { animate } = Element.prototype
          Element.prototype.animate = function (...how) {
            window.begun++
            return animate.apply(this, how)
          }`)
        hub.put(aCluster('us-stage', Date.now(), { nodes: 99 }))
        await page.locator('tr[data-index]', { hasText: '99/99' }).waitFor()
        const begun = () => page.evaluate<number>('window.begun')
        if (running) await expect.poll(begun, patient).toBeGreaterThan(0)
        else expect([await begun(), await page.evaluate<number>('document.getAnimations().length')]).toEqual([0, 0])
      }
    })
  })

  describe('finding and keeping', () => {
    it('filters in the address, so that a link shows the same and Back comes back', async () => {
      const page = await visit(`/?q=${encodeURIComponent('env=prod cpu>50')}`)
      await expect.poll(() => rowNames(page), patient).toEqual(['Europe production 2'])
      await page.getByRole('button', { name: 'Remove cpu>50' }).click()
      await expect.poll(() => rowNames(page), patient).toHaveLength(2)
      await page.locator('tbody').getByRole('link', { name: 'Europe production 1' }).click()
      await page.getByRole('heading', { level: 1, name: 'Europe production 1' }).waitFor()
      await page.goBack()
      await expect
        .poll(() => page.getByRole('textbox', { name: 'Filter clusters' }).inputValue(), patient)
        .toBe('env=prod')
      await expect.poll(() => rowNames(page), patient).toHaveLength(2)
    })

    it('makes every headline count a link to what it counts', async () => {
      const page = await visit('/')
      await page.locator('.need-counts a', { hasText: 'degraded' }).click()
      await expect.poll(() => rowNames(page), patient).toEqual(['Europe production 2'])
      // The address follows a moment later, so that typing does not flood the browser.
      await expect.poll(() => page.url(), patient).toContain('q=needs%3Adegraded')
    })

    it('says what it does not understand, and how to get out of an empty answer', async () => {
      const page = await visit('/?q=cpu%3Elots')
      await page.getByText('lots is no percentage').waitFor()
      await page.getByRole('button', { name: 'Clear the filter' }).last().click()
      await expect.poll(() => rowNames(page), patient).toHaveLength(6)
    })

    it('groups with subtotals, and remembers cards', async () => {
      const page = await visit('/?group=label:env')
      await expect
        .poll(() => page.locator('tr.group .group-name').allInnerTexts(), patient)
        .toEqual(['edge', 'prod', 'no env', 'lab', 'stage'])
      expect(await page.locator('tr.group', { hasText: 'prod' }).innerText()).toContain('20/21 nodes ready')
      await page.getByRole('button', { name: 'Cards' }).click()
      await expect.poll(() => page.locator('.card').count(), patient).toBe(6)
      await page.reload()
      await page.locator('.card').first().waitFor()
    })

    it('cuts a long name in its middle where there is little room, and keeps the whole of it in the document', async () => {
      const cluster = 'prod-eu-west-1-customers-000123'
      const world = aCluster(cluster, Date.now(), { displayName: 'Production Europe West, customers 123', nodes: 0 })
      const names = [1, 2, 3].map((number) => `prod-eu-west-1-worker-pool-memory-00012${number}`)
      for (const name of names) world.rows.node.push(aNode(cluster, name, Date.now()))
      hub.put(world)
      const page = await visit(`/clusters/${cluster}/nodes?sort=name`, { viewport: { width: 360, height: 740 } })
      await expect.poll(() => rowNames(page), patient).toEqual(names)
      const drawn = await page.evaluate<{ tail: string; isWholeShown: boolean; copied: string }[]>(`
        [...document.querySelectorAll('tbody [data-row-link] .name-cut')].map((cut) => {
          const [short, whole] = cut.children
          const tail = getComputedStyle(short, '::after').content
          const range = document.createRange()
          range.selectNodeContents(cut)
          getSelection().removeAllRanges()
          getSelection().addRange(range)
          const copied = getSelection().toString().trim()
          return { tail, isWholeShown: whole.getBoundingClientRect().top < cut.getBoundingClientRect().bottom, copied }
        })`)
      expect(drawn).toEqual(
        names.map((name) => ({ tail: JSON.stringify(name.slice(-8)), isWholeShown: false, copied: name })),
      )
      const [, second = ''] = names
      await page.getByRole('link', { name: second, exact: true }).click()
      await page.getByRole('dialog', { name: second, exact: true }).waitFor()
      expect(await page.evaluate('document.querySelector("dialog .dialog-body").scrollWidth <= innerWidth')).toBe(true)
      await page.keyboard.press('Escape')
      await page.setViewportSize({ width: 1440, height: 900 })
      const isWhole = () =>
        page.evaluate(`(() => {
          const cut = document.querySelector('tbody [data-row-link] .name-cut')
          return cut.lastElementChild.getBoundingClientRect().top < cut.getBoundingClientRect().bottom
        })()`)
      await expect.poll(isWhole, patient).toBe(true)
    })

    it('names a cluster by its display name and its technical one, wherever it names it', async () => {
      const page = await visit('/clusters/eu-prod-1')
      const both = 'Europe production 1 (eu-prod-1)'
      await expect.poll(() => page.title(), patient).toContain(both)
      expect(await page.getByRole('navigation', { name: 'Where you are' }).innerText()).toContain(both)
      await page.goto(base)
      await page.getByRole('region', { name: 'Needs attention' }).getByText('Europe production 2 (eu-prod-2)').waitFor()
      await page.keyboard.press('Control+k')
      await page.keyboard.type('eu-prod-1')
      await page.getByRole('option', { name: both }).first().waitFor()
    })

    it('exports the rows and columns that are shown', async () => {
      const page = await visit('/?q=env%3Dprod&sort=name')
      await expect.poll(() => rowNames(page), patient).toHaveLength(2)
      await page.getByRole('button', { name: 'Export' }).click()
      const [file] = await Promise.all([
        page.waitForEvent('download'),
        page.getByRole('button', { name: 'CSV of what is shown' }).click(),
      ])
      const lines = readFileSync(await file.path(), 'utf8')
        .trim()
        .split('\r\n')
      expect(lines[0]).toBe(
        'Cluster,Display name,Health,Last rounds not healthy,Last rounds,Nodes ready,Nodes in all,Pods running,' +
          'Pods unfinished,CPU (%),CPU is,Memory (%),Memory is,Version,Mode,As of,Oldest number as of',
      )
      expect(lines[1]).toMatch(
        /^eu-prod-1,Europe production 1,Healthy,\d+,60,\d+,\d+,\d+,\d+,[\d.]+,used,[\d.]+,used,v?[\d.]+,\w+(?:,20\d\d-\d\d-\d\dT[\d:.]+Z){2}$/,
      )
      expect(file.suggestedFilename()).toMatch(/^clusters-of-the-fleet-\d{8}T\d{6}Z\.csv$/)
      expect(lines).toHaveLength(3)
    })

    it('keeps low rows where they are chosen', async () => {
      const page = await visit('/')
      const height = () =>
        page.evaluate<number>(`document.querySelector('tr[data-index]').getBoundingClientRect().height`)
      await page.locator('tr[data-index]').first().waitFor()
      expect(await height()).toBe(46)
      await page.getByRole('button', { name: 'Compact rows' }).click()
      await expect.poll(height, patient).toBe(30)
      await page.reload()
      await page.locator('tr[data-index]').first().waitFor()
      expect(await height()).toBe(30)
    })

    it('prints whole tables, moments instead of ages, and no chrome', async () => {
      const now = Date.now()
      hub.fill(Array.from({ length: 200 }, (_, index) => aCluster(`c-${index}`, now)))
      const page = await visit('/', { colorScheme: 'dark' })
      await page.locator('tr[data-index]').first().waitFor()
      const rows = page.locator('tr[data-index]')
      expect(await rows.count()).toBeLessThan(100)
      // What is on paper is asked of the page while the browser prints it.
      await page.evaluate(`addEventListener('beforeprint', () => {
        window.printed = document.querySelectorAll('tr[data-index]').length
      })`)
      await page.pdf({ format: 'A4', landscape: true })
      expect(await page.evaluate('window.printed')).toBe(200)
      await expect.poll(() => rows.count(), patient).toBeLessThan(100)
      await page.emulateMedia({ media: 'print' })
      await page.evaluate(`dispatchEvent(new Event('beforeprint'))`)
      expect(await page.locator('.top').isVisible()).toBe(false)
      expect(await page.evaluate(`getComputedStyle(document.body).color`)).toBe('rgb(23, 33, 30)')
      expect(
        await page.evaluate(`getComputedStyle(document.querySelector('tr[data-index] time'), '::after').content`),
      ).toMatch(/^"\d{4}-\d\d-\d\d \d\d:\d\d UTC"$/)
      expect(await page.locator('tr[data-index] time .on-screen').first().isVisible()).toBe(false)
    })

    it('serves the guides, also to whoever is not signed in, and its help lists keys that work', async () => {
      const page = await visit('/')
      const h1 = (name: RegExp) => page.getByRole('heading', { level: 1, name }).waitFor()
      const go = async (key: string, heading: RegExp) => {
        await page.keyboard.press('g')
        await page.keyboard.press(key)
        await h1(heading)
      }
      await go('t', /types/i)
      await go('r', /registries/i)
      await go('a', /see/i)
      await go('h', /^Guides$/)
      await go('c', /need you/)
      await page.keyboard.press('?')
      const help = page.getByRole('dialog', { name: 'Help' })
      await help.waitFor()
      // The browser may close it by itself; it opens again all the same.
      await page.evaluate(`document.querySelector('dialog').close()`)
      await help.waitFor({ state: 'detached' })
      await page.keyboard.press('?')
      await help.getByRole('link', { name: 'Push: agents beside clusters' }).click()
      await h1(/^Push: agents/)
      await help.waitFor({ state: 'detached' })
      hub.behaviour.refuse = { status: 401, code: 'unauthenticated', error: 'no identity was given' }
      await page.reload()
      await page.locator('.guide a', { hasText: 'hub' }).or(page.locator('.guide pre')).first().waitFor()
      await page.goto(`${base}/guide/kubernetes-hub`)
      await page.locator('.guide a[href="push"], .guide a[href^="push#"], .guide a[href="sign-in"]').first().click()
      await h1(/^(Push|Signing in)/)
      const links = await page.evaluate<string[]>(`[...document.querySelectorAll('.guide a')].map(({ href }) => href)`)
      expect(links.filter((href) => /\.md\b/.test(href))).toEqual([])
    })

    it('is worked by keyboard alone', async () => {
      const page = await visit('/')
      const press = async (...keys: string[]) => {
        for (const key of keys) await page.keyboard.press(key)
      }
      const focused = () => page.evaluate<string>('document.activeElement.textContent')
      await expect.poll(() => rowNames(page), patient).toHaveLength(6)
      await press('Tab')
      await expect.poll(focused, patient).toContain('Skip to the content')
      await press('j', 'j')
      await expect.poll(focused, patient).toBe('Europe production 2')
      await press('k')
      await expect.poll(focused, patient).toBe('Edge 07')
      await press('j')
      await expect.poll(focused, patient).toBe('Europe production 2')
      await press('Enter')
      await page.getByRole('heading', { level: 1, name: 'Europe production 2' }).waitFor()
      await expect.poll(focused, patient).toBe('Europe production 2')
      // Not a key is lost between the shortcut and the field it opens.
      await press('/')
      await page.keyboard.type('prod-2 worker-6')
      await page.getByRole('option', { name: /worker-6/, selected: true }).waitFor()
      await press('Enter')
      await page.getByRole('dialog', { name: 'worker-6' }).waitFor()
      expect(page.url()).toBe(`${base}/clusters/eu-prod-2/nodes/worker-6`)
      await expect
        .poll(() => page.getByRole('dialog').innerText(), patient)
        .toMatch(/Not ready[\s\S]*Allocatable[\s\S]*15.5 cores[\s\S]*NodeStatusUnknown/)
      await press('Escape')
      await page.getByRole('dialog').waitFor({ state: 'detached' })
      expect(page.url()).toBe(`${base}/clusters/eu-prod-2/nodes`)
      await press('g', 'c')
      await page.getByRole('heading', { level: 1, name: /need you/ }).waitFor()
      await press('?')
      await page.getByRole('dialog', { name: 'Help' }).waitFor()
      await page.getByRole('checkbox', { name: /Single keys/ }).uncheck()
      await press('Escape')
      await press('g', 'c', '/')
      expect(await page.getByRole('dialog').count()).toBe(0)
      await press('Control+k')
      await page.getByRole('combobox', { name: /^Search/ }).waitFor()
    })
  })

  describe('themes and frames', () => {
    const paths = [
      '/',
      '/?group=label:env',
      '/clusters/eu-prod-2',
      '/clusters/eu-prod-2/nodes',
      '/clusters/eu-prod-2/nodes/worker-6',
      '/clusters/eu-prod-2/namespaces',
      '/clusters/eu-prod-2/deployments',
      '/clusters/eu-prod-2/operators',
      '/clusters/eu-prod-2/cluster-operators',
      '/clusters/eu-prod-2/events',
      '/clusters/lab/deployments',
      '/clusters/edge-07/nodes',
      '/clusters/us-stage/operators',
      '/clusters/nowhere',
      '/no/such/page',
      '/guide',
      '/guide/push',
      '/guide/reference/settings',
    ]

    it.each(['light', 'dark'] as const)(
      'gives axe nothing to complain of in the %s theme',
      { timeout: 240_000 },
      async (colorScheme) => {
        hub.events.push({
          type: 'node.not_ready',
          cluster: 'eu-prod-2',
          at: Date.now() - 60_000,
          data: { node: 'worker-6', message: 'kubelet silent' },
        })
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
          await page.getByRole('button', { name: /^Connection: Live/ }).waitFor({ state: 'attached' })
          await page.locator('h1').waitFor()
          await expect.poll(() => page.locator('.skeleton:visible').count(), patient).toBe(0)
          await check(path)
        }
        await page.setViewportSize({ width: 360, height: 740 })
        await page.goto(`${base}/clusters/eu-prod-2/nodes/worker-6`)
        await page.getByRole('dialog', { name: 'worker-6' }).waitFor()
        await check('a narrow drawer')
        await page.setViewportSize({ width: 1280, height: 800 })
        await page.goto(`${base}/`)
        await page.locator('.attention li').first().waitFor()
        await page.getByRole('button', { name: 'Cards' }).click()
        await check('cards')
        await page.keyboard.press('?')
        await page.getByRole('dialog', { name: 'Help' }).waitFor()
        await check('help')
        await page.keyboard.press('Escape')
        await page.keyboard.press('Control+k')
        await page.keyboard.type('prod')
        await page
          .getByRole('option', { name: /eu-prod-1/ })
          .first()
          .waitFor()
        await check('palette')
        hub.behaviour.refuse = { status: 401, code: 'unauthenticated', error: 'no identity was given' }
        await page.goto(`${base}/`)
        await page.getByRole('heading', { level: 1, name: 'Sign in to see the fleet' }).waitFor()
        await check('refused')
      },
    )

    it('fits 320 px without scrolling sideways', { timeout: 180_000 }, async () => {
      const page = await visit('/', { viewport: { width: 320, height: 740 } })
      for (const path of paths) {
        await page.goto(`${base}${path}`)
        await page.locator('h1').waitFor()
        await expect.poll(() => page.locator('.skeleton:visible').count(), patient).toBe(0)
        const over = await page.evaluate<number>(
          'document.documentElement.scrollWidth - document.documentElement.clientWidth',
        )
        expect(over, path).toBeLessThanOrEqual(0)
      }
    })

    it('knows the chosen theme before it paints, and follows the system where told to', async () => {
      const page = await visit('/', { colorScheme: 'light' })
      const theme = () => page.evaluate<string>('document.documentElement.dataset.theme')
      expect(await theme()).toBe('light')
      await page.getByRole('button', { name: 'Dark' }).click()
      await expect.poll(theme, patient).toBe('dark')
      await page.route('**/assets/*.js', (route) => route.abort())
      await page.reload()
      expect(await theme()).toBe('dark')
      await page.unroute('**/assets/*.js')
      await page.reload()
      await page.getByRole('button', { name: 'As the system' }).click()
      await expect.poll(theme, patient).toBe('light')
      await page.emulateMedia({ colorScheme: 'dark' })
      await expect.poll(theme, patient).toBe('dark')
    })

    it('works behind a path prefix, deep links included', async () => {
      await hub.stop()
      hub = new FakeHub({ root: built.root, prefix: '/tools/fleet' }).fill(demoFleet(Date.now()))
      base = await hub.start()
      const page = await visit('/clusters/eu-prod-2/nodes/worker-6', {}, { ready: false })
      await page.getByRole('dialog', { name: 'worker-6' }).waitFor()
      await page.keyboard.press('Escape')
      await page.getByRole('link', { name: 'ClusterPulse, to the fleet' }).click()
      await page.getByRole('heading', { level: 1, name: '3 of 6 clusters need you' }).waitFor()
      await expect.poll(() => page.url(), patient).toBe(`${base}/`)
    })
  })
})
