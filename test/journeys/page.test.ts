import { readFileSync } from 'node:fs'
import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { leastOf } from '../../src/platform/runtime/testing/least-of.ts'
import { buildPage, noBrowser } from '../../web/testing/browser.ts'
import { complaintsOf, excessAt320 } from '../page/axe.ts'
import { aCluster, aDeadCluster, aNode, type Cluster, demoFleet } from '../page/clusters.ts'
import type { Gateway } from '../page/gateway.ts'
import { PageHub, type PageHubOptions } from '../page/hub.ts'
import { patient, retryNow, shown } from '../page/shown.ts'
import { goTo, type VisitOptions, Visits } from '../page/visits.ts'

const suite = noBrowser === undefined ? 'the page in a browser' : `the page in a browser (skipped: ${noBrowser})`

describe.skipIf(noBrowser !== undefined)(suite, () => {
  let built: ReturnType<typeof buildPage>
  let visits: Visits
  let hub: PageHub
  let gateway: Gateway
  let base: string

  beforeAll(async () => {
    built = buildPage()
    visits = await Visits.open()
  })
  afterAll(async () => {
    await visits?.[Symbol.asyncDispose]()
    built?.[Symbol.dispose]()
  })
  beforeEach(async () => {
    await openHub()
  })
  afterEach(async () => {
    const complaints = await visits.leave()
    await hub[Symbol.asyncDispose]()
    // Whatever a test was about: nothing may break the content security policy or throw.
    expect(complaints).toEqual([])
  })

  async function openHub(options: Omit<PageHubOptions, 'root'> = {}, fleet?: readonly Cluster[]): Promise<void> {
    hub = await PageHub.open({ root: built.root, ...options })
    await hub.fill(fleet ?? demoFleet(hub.now()))
    gateway = hub.gateway
    base = await gateway.start()
  }
  async function visit(path: string, options: VisitOptions = {}, { ready = true } = {}): Promise<Page> {
    const page = await visits.visit(`${base}${path}`, options)
    if (ready) await page.getByRole('button', { name: /^Connection: Live/ }).waitFor()
    return page
  }
  const rowNames = (page: Page) => page.locator('tbody [data-row-link]').allInnerTexts()

  describe('states', () => {
    it('shows the shape of the page while it waits, then the fleet, worst first', async () => {
      gateway.hold = true
      const page = await visit('/', {}, { ready: false })
      await page.getByText('Loading the fleet').waitFor({ state: 'attached' })
      await expect.poll(() => page.locator('.ledger .ledger-cell').count(), patient).toBe(5)
      gateway.hold = false
      await page.getByRole('heading', { level: 1, name: '3 of 6 clusters need you' }).waitFor()
      await expect
        .poll(() => rowNames(page), patient)
        .toEqual(['Edge 07', 'Europe production 2', 'new-one', 'Europe production 1', 'lab', 'us-stage'])
    })

    it('says of an empty fleet why it is empty and what comes next', async () => {
      await hub.fill([])
      const page = await visit('/')
      await shown(page).toMatch(/No cluster is connected yet[\s\S]*clusterpulse up --kubeconfig/)
    })

    it('tells somebody without access who they are, and not that there is nothing', async () => {
      gateway.visitor = { username: 'eve', email: '', groups: ['guests'] }
      const page = await visit('/')
      await page.getByText('No cluster is shown to you').waitFor()
      await shown(page).toMatch(/known as eve in guests/)
    })

    it.each([
      [401, 'Sign in to see the fleet'],
      [403, 'You may not see this fleet'],
    ])('turns a refusal with %d into a page of its own', async (status, title) => {
      gateway.refuse = { status, code: 'unauthenticated', error: 'no identity was given' }
      const page = await visit('/', {}, { ready: false })
      await page.getByRole('heading', { level: 1, name: title }).waitFor()
      await shown(page).toContain('no identity was given')
    })

    it('takes a refusal in the words of a proxy for the end of the sign-in there, not for a decision of the hub', async () => {
      await visit('/')
      // In a window of its own: what a worker asks for, a browser does not let a test answer, so the stream is the tab's own.
      const page = await visit('/')
      await page.addInitScript('delete window.SharedWorker')
      await page.route('**/api/**', (route) =>
        route.fulfill({ status: 403, contentType: 'text/html', body: '<h1>Log in with OpenShift</h1>' }),
      )
      await page.reload()
      await page.getByRole('heading', { level: 1, name: 'Sign in to see the fleet' }).waitFor()
    })

    it('shows text, code and request id of an error, and recovers on Retry', async () => {
      // It asks for so long a pause that only the button can be what asks again.
      gateway.refuse = {
        retryAfterSeconds: 3600,
        status: 503,
        code: 'store_unavailable',
        error: 'redis is not available: connection refused',
      }
      const page = await visit('/', {}, { ready: false })
      await page.getByRole('heading', { level: 1, name: 'The hub cannot answer' }).waitFor()
      await shown(page).toMatch(/redis is not available[\s\S]*store_unavailable[\s\S]*HTTP 503[\s\S]*request req-4711/)
      await retryNow(page, () => {
        gateway.refuse = null
      })
      await page.getByRole('heading', { level: 1, name: '3 of 6 clusters need you' }).waitFor()
    })

    it.each([/\/assets\/index-[^/]*\.js/, /\/assets\/index-[^/]*\.css/])(
      'is loaded anew where %s was lost on the way, a few times',
      { tags: ['long'] },
      async (lost) => {
        const page = await visit('/')
        let refused = 0
        let most = 2
        await page.route(lost, (route) => (refused++ < most ? route.abort() : route.continue()))
        await page.goto(base)
        await page.getByRole('button', { name: /^Connection: Live/ }).waitFor()
        await expect.poll(() => refused, patient).toBe(3)
        await page.getByRole('heading', { level: 1, name: '3 of 6 clusters need you' }).waitFor()
        await expect.poll(() => page.evaluate("sessionStorage.getItem('clusterpulse.loads')"), patient).toBeNull()
        most = Number.POSITIVE_INFINITY
        if (lost.source.includes('css')) return
        await page.goto(base)
        await page.getByText('The page could not be loaded').waitFor()
        expect(refused).toBe(7)
        // What was lost once may come another time.
        most = 0
        await page.reload()
        await page.getByRole('heading', { level: 1, name: '3 of 6 clusters need you' }).waitFor()
      },
    )

    it('asks again for the script of a view that does not come, and says so in the end', {
      tags: ['long'],
    }, async () => {
      const page = await visit('/')
      let refused = 0
      let most = 2
      await page.route(/\/assets\/events-page-/, (route) => (refused++ < most ? route.abort() : route.continue()))
      await page.evaluate("window.history.pushState(null, '', '/events'), dispatchEvent(new PopStateEvent('popstate'))")
      await page.getByRole('heading', { level: 1, name: 'Events' }).waitFor()
      expect(refused).toBe(3)
      most = Number.POSITIVE_INFINITY
      await page.goto(`${base}/events`)
      await page.getByText('This view could not be loaded').waitFor()
      await page.getByRole('button', { name: /^Connection: Live/ }).waitFor()
      most = 0
      await page.getByRole('button', { name: 'Load the page again' }).click()
      await page.getByRole('heading', { level: 1, name: 'Events' }).waitFor()
    })

    it('keeps what it knew when the hub goes away, and says how old it is', async () => {
      const page = await visit('/')
      const port = Number(new URL(base).port)
      let isAway = false
      const saidAfterMs = await leastOf(3, 3000, async () => {
        if (isAway) await gateway.start(port)
        await page.getByRole('button', { name: /^Connection: Live/ }).waitFor()
        await gateway.stop()
        isAway = true
        const since = performance.now()
        await page.getByText('The hub cannot be reached.').waitFor({ timeout: 20_000 })
        return performance.now() - since
      })
      // A stream that broke off and a question that nothing answers: about half a second, with room for a busy machine.
      expect(saidAfterMs).toBeLessThan(3000)
      await expect.poll(() => page.locator('main.is-unheard').count(), patient).toBe(1)
      await shown(page.locator('.banner')).toMatch(/as of \d+ s ago/)
      // Pictures fade with the numbers they stand beside.
      const opacities = () =>
        page.evaluate<string[]>(
          "[...new Set([...document.querySelectorAll('.meter-track, .heartbeats')].map((one) => getComputedStyle(one).opacity))]",
        )
      await expect.poll(opacities, patient).toEqual(['0.55'])
      await expect.poll(() => rowNames(page), patient).toHaveLength(6)
      await retryNow(page, () => gateway.start(port))
      await page.getByRole('button', { name: /^Connection: Live/ }).waitFor()
      await expect.poll(() => page.locator('.banner').count(), patient).toBe(0)
    })

    it('polls where streams do not get through, and says so', async () => {
      gateway.streams = false
      const page = await visit('/', {}, { ready: false })
      await page.getByRole('button', { name: /^Connection: Polling/ }).waitFor()
      await expect.poll(() => rowNames(page), patient).toHaveLength(6)
    })

    it('tells of one cause once, and leads to nothing that a cluster does not serve', async () => {
      const dead = { outcome: 'unreachable', code: 'timeout' } as const
      const failed = (path: string) => ({ ...dead, message: `GET ${path}: its API did not answer within 10 s` })
      await hub.put(
        aCluster('slow', hub.now(), {
          faults: {
            namespace: failed('/api/v1/namespaces'),
            deployment: failed('/apis/apps/v1/deployments'),
            operator: failed('/apis/operators.coreos.com'),
            clusterOperator: failed('/apis/config.openshift.io'),
          },
        }),
      )
      const page = await visit('/clusters/slow')
      const notice = page.locator('.notice')
      await notice.filter({ hasText: 'namespaces, deployments, operators, cluster operators' }).waitFor()
      expect(await notice.count()).toBe(1)
      const tabs = () => page.getByRole('navigation', { name: 'Parts of this cluster' }).innerText()
      expect(await tabs()).not.toMatch(/operators/i)
      expect(await page.locator('dt', { hasText: 'Pods' }).getByRole('link').count()).toBe(0)
      await page.goto(`${base}/clusters/slow/deployments`)
      await shown(page).toMatch(/Deployment could not be read:[\s\S]*timeout tried/)
      await page.goto(`${base}/clusters/eu-prod-1`)
      await expect.poll(tabs, patient).toMatch(/Operators[\s\S]*Cluster operators/)
      await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Access' }).click()
      await page.getByRole('heading', { level: 1, name: /Access/ }).waitFor()
    })

    it('warns while the hub has lost its store', async () => {
      const page = await visit('/')
      hub.availability = { state: 'unavailable', since: hub.now() - 5000, reason: 'redis refuses connections' }
      const banner = page.locator('.banner', { hasText: 'The hub has lost its store.' })
      const said =
        /^The hub has lost its store\. The store behind the hub does not answer\. It began .+ ago\. What is shown may be old\.$/
      await expect.poll(() => banner.innerText(), patient).toMatch(said)
      await page.getByRole('button', { name: /^Connection: Behind/ }).waitFor()
      hub.availability = undefined
      await banner.waitFor({ state: 'detached' })
      await page.getByRole('button', { name: /^Connection: Live/ }).waitFor()
    })

    it('marks what is old as stale by time alone, and never as healthy', async () => {
      // Three intervals and a timeout: stale 6.5 s after it was read.
      await hub.fill([aCluster('west', hub.now(), { ageMs: 3000, intervalMs: 1500, timeoutMs: 2000 })])
      const page = await visit('/')
      await page.locator('td .health', { hasText: 'Stale' }).waitFor()
      await page.getByRole('heading', { level: 1, name: '1 of 1 cluster needs you' }).waitFor()
      await expect.poll(() => page.locator('tr[data-index]').first().getAttribute('class'), patient).toContain('dim')
    })

    it('counts nothing as stale that is ill, however long ago it was read, and fades all of its row', async () => {
      const now = Date.now()
      await hub.fill([aDeadCluster('west', now, { ageMs: 400_000 }), aCluster('east', now)])
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
      await hub[Symbol.asyncDispose]()
      await openHub({ clockAheadMs: 3 * 3_600_000 })
      await hub.fill([aCluster('west', hub.now(), { ageMs: 4000 })])
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
      await shown(row.locator('.missing').first()).toContain('nodes were never read')
    })

    it('says of every number of a fleet that is away of when it is, and of how many clusters it is current', async () => {
      const away = { ageMs: 122_000, failure: { code: 'timeout', message: 'connection test failed: timeout' } }
      await hub.fill([
        ...[1, 2].map((number) => aCluster(`gone-${number}`, hub.now(), away)),
        aCluster('never', hub.now(), { blank: true, failure: away.failure }),
      ])
      const page = await visit('/?group=health')
      const ledger = page.getByLabel('The fleet in numbers')
      for (const [what, words] of [
        ['Nodes ready', /10\s*\/ 10[\s\S]*all of them · as of 2 min ago; 0 of 3 current/],
        ['Pods running', /Pods running[\s\S]*as of 2 min ago; 0 of 3 current/],
        ['CPU', /CPU[\s\S]*used of 155 cores · as of 2 min ago; 0 of 2 current · measured in 2 of 3 clusters/],
      ] as const)
        await shown(ledger, what).toMatch(words)
      await expect.poll(() => page.locator('.ledger-cell.past').count(), patient).toBe(5)
      await shown(page.locator('tr.group')).toMatch(
        /3 clusters · 10\/10 nodes ready[\s\S]* as of 2 min ago; 0 of 3 current/,
      )
      await expect.poll(() => page.locator('tbody tr.dim').count(), patient).toBe(3)

      await hub.remove('gone-1')
      await hub.remove('gone-2')
      await shown(page.locator('tr.group')).toMatch(/1 cluster · nothing known of nodes/)

      await hub.put(aCluster('gone-1', hub.now(), away))
      await page.getByRole('button', { name: 'Cards' }).click()
      await expect.poll(() => page.locator('.card article.dim').count(), patient).toBe(2)
      await shown(page.locator('.card', { hasText: 'gone-1' })).toMatch(/as of 2 min ago/)
      await shown(page.locator('.card', { hasText: 'never' })).toMatch(/never read/)
      await shown(page.locator('.cards-group')).toMatch(/5\/5 nodes ready[\s\S]*as of 2 min ago; 0 of 2/)
      await page.getByRole('link', { name: 'gone-1' }).first().click()
      await page.getByRole('heading', { name: 'How it is read' }).waitFor()
      await shown(page).toMatch(/it did not read the cluster\.[\s\S]*nodes\s+not read since · as of 2 min ago/)
      await expect.poll(() => page.locator('.panel.past').count(), patient).toBe(2)
      await shown(page.getByText('What runs').locator('..')).toMatch(/5 of 5 ready · as of 2 min ago/)
    })

    it('warns of nothing by numbers of the past, and writes their age in line with them', async () => {
      const notReady = { nodes: 5, notReady: 1 }
      const failure = { code: 'timeout', message: 'connection test failed: GET /api/v1/namespaces: no answer' }
      await hub.fill([
        aCluster('gone', hub.now(), { ...notReady, ageMs: 122_000, failure }),
        aCluster('here', hub.now(), notReady),
        ...['v1.31.4', 'v1.32.4', 'v1.33.4'].map((version) => aCluster(version, hub.now(), { version })),
      ])
      const page = await visit('/')
      const ink = (name: string) =>
        page.evaluate<string>(`getComputedStyle(
          [...document.querySelectorAll('tbody tr')].find((row) => row.innerText.includes('${name}')).querySelector('.short'),
        ).color`)
      await page.locator('tbody tr.dim').waitFor()
      expect(await ink('gone')).not.toBe(await ink('here'))
      const top = async (part: string) => (await page.locator(part).first().boundingBox())?.y ?? 0
      expect(Math.abs((await top('.is-versions .count-link')) - (await top('.ledger-cell > p')))).toBeLessThan(12)
      const end = async (part: string) => {
        const box = await page.locator(part).boundingBox()
        return (box?.x ?? 0) + (box?.width ?? 0)
      }
      expect(await end('.is-versions > .fine')).toBeLessThanOrEqual(await end('.ledger'))
      await page.getByRole('link', { name: 'gone' }).first().click()
      const cause = page.locator('.reasons').getByText('no answer')
      await shown(cause).toBe('no answer')
      expect(await cause.getAttribute('data-tip')).toBe(failure.message)
      await shown(page.locator('.status-line .past')).toMatch(/^v?\d/)
    })

    it('says how often operators are read, where that is not with every round', async () => {
      await hub.fill([aCluster('west', hub.now(), { openshift: true })])
      const page = await visit('/clusters/west')
      await shown(page.locator('.outcomes')).toMatch(/operators\s+read · as of .* ago, every 5 min/)
    })

    it.each([
      ['/clusters/us-stage/operators', /does not serve ClusterServiceVersion/],
      ['/clusters/us-stage/cluster-operators', /does not serve ClusterOperator/],
      ['/clusters/lab/deployments', /may not read Deployment[\s\S]*resources: \["deployments"\]/],
      [
        '/clusters/edge-07/nodes',
        /As of 1\d min ago: the last round failed: edge-07 did not answer within 10 s[\s\S]*control-plane-1/,
      ],
      ['/clusters/new-one/nodes', /have not been read yet/],
      ['/clusters/eu-prod-1/events', /1 event\b|\d events[\s\S]*was connected/],
      ['/clusters/nowhere', /no such cluster, or you may not see it/],
      ['/no/such/page', /There is no such page/],
      ['/clusters/eu-prod-1/nodes/gone', /control-plane-1/],
    ])('names the state of %s', async (path, words) => {
      const page = await visit(path)
      await shown(page).toMatch(words)
      expect(await page.locator('h1').count()).toBe(1)
    })
  })

  describe('live', () => {
    it('shows a change within a second, in place', async () => {
      const page = await visit('/')
      const row = page.locator('tr[data-index]', { hasText: 'us-stage' })
      await row.locator('.health', { hasText: 'Healthy' }).waitFor()
      const degraded = () => aCluster('us-stage', hub.now(), { nodes: 4, notReady: 1 })
      // The best of some tries: what else the machine does is not the time of the page.
      const took: number[] = []
      for (let turn = 0; turn < 5 && Math.min(...took) >= 1000; turn++) {
        if (turn > 0) {
          await hub.put(aCluster('us-stage', hub.now(), { nodes: 4 }))
          await row.locator('.health', { hasText: 'Healthy' }).waitFor()
        }
        const started = Date.now()
        await hub.put(degraded())
        await row.locator('.health', { hasText: 'Degraded' }).waitFor()
        took.push(Date.now() - started)
      }
      expect(Math.min(...took)).toBeLessThan(1000)
      await page.getByRole('heading', { level: 1, name: '4 of 6 clusters need you' }).waitFor()
      await shown(page.locator('.attention')).toContain('1 of 4 nodes not ready: worker-1')
    })

    it('updates rows of the open cluster, adds new ones and takes gone ones away', async () => {
      const page = await visit('/clusters/us-stage/nodes')
      await expect.poll(() => rowNames(page), patient).toHaveLength(4)
      const now = hub.now()
      const nodeList = [1, 2, 3].map((number) => aNode(`control-plane-${number}`, now))
      await hub.put(
        aCluster('us-stage', now, { nodeList: [...nodeList, aNode('worker-9', now, { ready: 'notReady' })] }),
      )
      await expect
        .poll(() => rowNames(page), patient)
        .toEqual(['worker-9', 'control-plane-1', 'control-plane-2', 'control-plane-3'])
    })

    it('moves no row under the pointer, says so, and sorts again when the pointer leaves', async () => {
      const page = await visit('/')
      await expect.poll(() => rowNames(page), patient).toHaveLength(6)
      const before = await rowNames(page)
      await page.locator('tr[data-index="3"]').hover()
      await hub.put(aDeadCluster('us-stage', hub.now()))
      await hub.remove('lab')
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
        await hub.put(aCluster('us-stage', hub.now(), { ...stage, nodes }))
        await row.filter({ hasText: `${nodes}/${nodes}` }).waitFor()
      }
      expect(await page.evaluate<number>('window.shift')).toBeLessThan(0.01)
      const failure = { code: 'timeout', message: 'a long reason for all of it '.repeat(20) }
      await hub.put(aCluster('us-stage', hub.now(), { ...stage, nodes: 120, failure }))
      await row.locator('.health', { hasText: 'Unhealthy' }).waitFor()
      expect(await page.evaluate<number>('window.tableTop() - window.before')).toBe(0)
    })

    it('begins the table in the upper part of the screen, however many clusters are in trouble', async () => {
      const now = hub.now()
      await hub.fill([
        ...demoFleet(now),
        ...Array.from({ length: 30 }, (_, index) => aDeadCluster(`dead-${index}`, now)),
      ])
      const page = await visit('/', { viewport: { width: 1440, height: 900 } })
      const top = () => page.evaluate<number>(`document.querySelector('tr[data-index]').getBoundingClientRect().top`)
      await page.locator('tr[data-index]').first().waitFor()
      const cause = page.locator('.attention summary', { hasText: '31 clusters: did not answer within 10 s' })
      await cause.waitFor()
      // Of 900; each cell of the ledger says here of when it is.
      await expect.poll(top, patient).toBeLessThanOrEqual(360)
      await cause.focus()
      await page.keyboard.press('Enter')
      await page.locator('.attention').getByRole('link', { name: 'dead-29' }).waitFor()
      await page.locator('.changes summary', { hasText: '31 clusters: turned unhealthy' }).waitFor()
      await page.locator('.attention').getByRole('button', { name: 'in the table' }).click()
      await shown(page.locator('.count')).toContain('31 of 36 clusters')
      await page.getByRole('button', { name: 'Clear the filter' }).click()
    })

    it('keeps the head of the changes on one line on a narrow screen, however many there are', async () => {
      for (const notReady of [0, 1, 5, 0, 5, 1, 0, 5, 0]) {
        hub.pass(1000)
        await hub.put(aCluster('restless', hub.now(), { nodes: 5, notReady }))
      }
      const page = await visit('/', { viewport: { width: 360, height: 900 } })
      const head = page.getByRole('region', { name: 'Changes of the last hour' }).locator('.panel-head')
      await shown(head).toMatch(/and [1-9] more/)
      expect(
        await head.evaluate((box) => [box.scrollHeight - box.clientHeight, box.scrollWidth - box.clientWidth]),
      ).toEqual([0, 0])
    })

    it('says of each reason of when it is, folded and unfolded, in little room, and of every one while the hub is not heard', async () => {
      const now = hub.now()
      const message =
        'its API did not answer within 10 s, after three attempts, by way of the proxy of its site, which did'
      const away = { ageMs: 122_000, failure: { code: 'timeout', message } }
      await hub.fill([
        ...[1, 2].map((number) => aDeadCluster(`dead-${number}`, now)),
        aCluster('alone-in-this', now, { ...away, failure: { code: 'proxy', message } }),
        aCluster('here', now, { nodes: 5, notReady: 1 }),
      ])
      const page = await visit('/', { viewport: { width: 900, height: 900 } })
      const box = page.locator('.attention')
      const line = (text: string) => box.locator('li', { hasText: text })
      /** Of when a line says that it is, as far as it is seen. */
      const chip = async (text: string) => {
        const tag = line(text).locator('.tag', { hasText: 'as of' }).first()
        const [outer, inner] = [await box.boundingBox(), await tag.boundingBox()]
        expect((inner?.x ?? 0) + (inner?.width ?? 0)).toBeLessThanOrEqual((outer?.x ?? 0) + (outer?.width ?? 0))
        return tag.innerText()
      }
      await line('alone-in-this').waitFor()
      expect(await chip('alone-in-this')).toMatch(/as of 2 min ago/)
      expect(await chip('2 clusters:')).toMatch(/as of .* ago/)
      await line('2 clusters:').locator('summary').click()
      for (const name of ['dead-1', 'dead-2'])
        await shown(box.locator('.names li', { hasText: name })).toMatch(/as of .* ago/)
      expect(await chip('2 clusters:')).toMatch(/as of .* ago/)
      expect(await line('here').getByText('as of').count()).toBe(0)
      await gateway.stop()
      await shown(line('here')).toMatch(/as of .* ago/)
    })

    it('breaks no word of an address, an image or a label in two, however little room there is', {
      tags: ['long'],
    }, async () => {
      const name = 'prod-eu-west-1-customers-000123'
      const endpoint = `https://api.${name}.example:6443`
      const labels = { 'topology.example.com/customer-segment': 'customers-of-the-first-kind.europe', site: 'paris' }
      const message = `connection test failed: GET ${endpoint}/api/v1/namespaces?limit=1: connect ECONNREFUSED 203.0.113.117:6443`
      await hub.fill([
        aCluster(name, hub.now(), { labels }),
        aCluster('away', hub.now(), { labels, ageMs: 122_000, failure: { code: 'refused', message } }),
      ])
      /** Parts of words of which a piece stands on the next line. */
      const broken = (page: Page) =>
        page.evaluate<string[]>(`(() => {
          const found = []
          const texts = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT)
          for (let node = texts.nextNode(); node; node = texts.nextNode()) {
            if (node.parentElement.closest('.vh, .name-cut, pre, code') || !node.parentElement.checkVisibility()) continue
            for (const part of node.data.matchAll(/[A-Za-z0-9]{2,24}/g)) {
              const range = document.createRange()
              range.setStart(node, part.index)
              range.setEnd(node, part.index + part[0].length)
              const lines = new Set([...range.getClientRects()].filter(({ width }) => width > 0).map(({ top }) => Math.round(top)))
              if (lines.size > 1) found.push(part[0] + ' in ' + node.parentElement.textContent)
            }
          }
          return found
        })()`)
      const page = await visit(`/clusters/${name}`)
      const paths = [`/clusters/${name}`, '/clusters/away', `/clusters/${name}/nodes/worker-1`, '/']
      for (const path of paths)
        for (const width of [1440, 900, 360]) {
          await page.setViewportSize({ width, height: 900 })
          await page.goto(`${base}${path}`)
          await page.locator('main h1').waitFor()
          await expect.poll(() => page.locator('.skeleton:visible').count(), patient).toBe(0)
          expect([path, width, await broken(page)]).toEqual([path, width, []])
        }
      await page.goto(`${base}/clusters/${name}`)
      // Copied it is the address, whole.
      await shown(page.locator('.pairs div', { hasText: 'API' }).locator('dd')).toMatch(/^https:\/\/api\./)
      const copied = await page.evaluate<string>(`(() => {
        const term = [...document.querySelectorAll('.pairs dt')].find((one) => one.textContent === 'API')
        getSelection().selectAllChildren(term.nextElementSibling)
        return getSelection().toString().trim()
      })()`)
      expect(copied).toBe(endpoint)
    })

    it('moves the table for no trouble that comes while the pointer is in it', async () => {
      await hub[Symbol.asyncDispose]()
      await openHub({}, [aCluster('calm', Date.now())])
      const page = await visit('/', { viewport: { width: 1440, height: 900 } })
      const top = () => page.evaluate<number>(`document.querySelector('tr[data-index]').getBoundingClientRect().top`)
      await page.getByText('Every cluster is healthy').waitFor()
      await page.locator('tr[data-index]').first().waitFor()
      const calm = await top()
      expect(calm).toBeLessThan(320)
      await page.locator('tr[data-index]').first().hover()
      const failure = { code: 'broken', message: 'its API is broken' }
      await Promise.all(demoFleet(hub.now()).map(({ name }) => hub.put(aDeadCluster(name, hub.now(), { failure }))))
      await page.locator('.attention li').first().waitFor()
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
      await expect.poll(() => gateway.openStreams, patient).toBe(1)
    })

    it('animates nothing where motion is unwelcome, and does where it is not', { tags: ['long'] }, async () => {
      for (const [reducedMotion, running] of [
        ['reduce', 0],
        ['no-preference', 1],
      ] as const) {
        await hub.fill(demoFleet(hub.now()))
        const page = await visit('/', { reducedMotion })
        await expect.poll(() => rowNames(page), patient).toHaveLength(6)
        // Counted as they begin: one that has ended before it is looked for has run all the same.
        await page.evaluate(`window.begun = 0
          const { animate } = Element.prototype
          Element.prototype.animate = function (...how) {
            window.begun++
            return animate.apply(this, how)
          }`)
        await hub.put(aCluster('us-stage', hub.now(), { nodes: 99 }))
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
      await shown(page.locator('tr.group', { hasText: 'prod' })).toContain('20/21 nodes ready')
      await page.getByRole('button', { name: 'Cards' }).click()
      await expect.poll(() => page.locator('.card').count(), patient).toBe(6)
      await page.reload()
      await page.locator('.card').first().waitFor()
    })

    it('cuts a long name in its middle where there is little room, and keeps the whole of it in the document', async () => {
      const cluster = 'prod-eu-west-1-customers-000123'
      const names = [1, 2, 3].map((number) => `prod-eu-west-1-worker-pool-memory-00012${number}`)
      const nodeList = names.map((name) => aNode(name, hub.now()))
      await hub.put(aCluster(cluster, hub.now(), { displayName: 'Production Europe West, customers 123', nodeList }))
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
      await expect
        .poll(() => page.evaluate('document.querySelector("dialog .dialog-body").scrollWidth <= innerWidth'), patient)
        .toBe(true)
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
      const crumbs = page.getByRole('navigation', { name: 'Where you are' })
      await shown(crumbs).toContain(both)
      await page.setViewportSize({ width: 1024, height: 800 })
      const wordsCut = `[...document.querySelectorAll('.crumbs li > *')].filter((word) => word.scrollWidth > word.clientWidth).length`
      await expect.poll(() => page.evaluate(wordsCut), patient).toBe(0)
      await page.goto(base)
      await page.getByRole('region', { name: 'Needs attention' }).getByText('Europe production 2 (eu-prod-2)').waitFor()
      await page.keyboard.press('Control+k')
      await page.keyboard.type('eu-prod-1')
      await page.getByRole('option', { name: both }).first().waitFor()
    })

    it('says of what is found on which cluster it is, and finds pages of clusters too', async () => {
      const page = await visit('/')
      await page.keyboard.press('Control+k')
      await page.keyboard.type('worker-6')
      await page.getByRole('option', { name: /worker-6.*on Europe production 2 \(eu-prod-2\)/ }).waitFor()
      // Nothing is said not to be there before the hub has said so.
      gateway.only = /search/
      gateway.hold = true
      await page.getByRole('combobox', { name: /^Search/ }).fill('zebra')
      await page.getByRole('status').getByText('Searching…').waitFor()
      gateway.hold = false
      await page.getByRole('status').getByText('Nothing is found for “zebra”.').waitFor()
      await page.getByRole('combobox', { name: /^Search/ }).fill('ndoes eu-prod-2')
      await page.getByRole('option', { name: 'Europe production 2 (eu-prod-2): nodes' }).click()
      await expect.poll(() => page.url(), patient).toContain('/clusters/eu-prod-2/nodes')
    })

    it('says that there is more than it lists, and of what is found on a cluster that is away of when it is', async () => {
      await hub.fill([
        aCluster('west', hub.now(), { nodes: 40 }),
        aCluster('gone', hub.now(), { ageMs: 122_000, failure: { code: 'timeout', message: 'no answer' } }),
      ])
      const page = await visit('/')
      await page.keyboard.press('Control+k')
      await page.keyboard.type('worker')
      await page.getByRole('status').getByText('These are the best 30; there are more.').waitFor()
      await page.getByRole('combobox', { name: /^Search/ }).fill('worker-1 gone')
      await page.getByRole('option', { name: /Stale.*worker-1.*on gone, as of 2 min ago/ }).waitFor()
      await expect.poll(() => page.getByText('These are the best 30').count(), patient).toBe(0)
    })

    it('writes what happened in full where there is little room', async () => {
      const message =
        'connection test failed: GET /api/v1/namespaces: nothing listens at https://west.example:6443; check address and port'
      await hub.fill([
        aCluster('west', hub.now(), {}),
        aCluster('gone', hub.now(), { failure: { code: 'kube_unreachable', message } }),
      ])
      const page = await visit('/clusters/gone/events', { viewport: { width: 360, height: 740 } })
      const line = page.locator('main').getByText(/^turned unhealthy/)
      await shown(line).toMatch(
        /turned unhealthy.*: nothing listens at https:\/\/west\.example:6443; check address and port$/,
      )
      const cut = `[...document.querySelectorAll('main li *')].filter((part) => part.scrollWidth > part.clientWidth + 1 && getComputedStyle(part).overflow === 'hidden').length`
      expect(await page.evaluate<number>(cut)).toBe(0)
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
        /^eu-prod-1,Europe production 1,Healthy,\d+,20,\d+,\d+,\d+,\d+,[\d.]+,used,[\d.]+,used,v?[\d.]+,\w+(?:,20\d\d-\d\d-\d\dT[\d:.]+Z){2}$/,
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

    it('prints whole tables, moments instead of ages, and no chrome', { tags: ['long'] }, async () => {
      const now = hub.now()
      await hub.fill(Array.from({ length: 200 }, (_, index) => aCluster(`c-${index}`, now, { rounds: 1 })))
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
      await expect.poll(() => page.locator('.top').isVisible(), patient).toBe(false)
      await expect.poll(() => page.evaluate(`getComputedStyle(document.body).color`), patient).toBe('rgb(23, 33, 30)')
      const moment = () =>
        page.evaluate<string>(`getComputedStyle(document.querySelector('tr[data-index] time'), '::after').content`)
      await expect.poll(moment, patient).toMatch(/^"\d{4}-\d\d-\d\d \d\d:\d\d UTC"$/)
      await expect.poll(() => page.locator('tr[data-index] time .on-screen').first().isVisible(), patient).toBe(false)
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
      await page.keyboard.press('Escape')
      await help.waitFor({ state: 'detached' })
      await page.keyboard.press('?')
      await help.waitFor()
      // The browser may close it by itself; it opens again all the same.
      await page.evaluate(`document.querySelector('dialog').close()`)
      // That it is closed is told to the page a moment later.
      await page.locator('dialog').waitFor({ state: 'detached' })
      await page.keyboard.press('?')
      await help.getByRole('link', { name: 'Push: agents beside clusters' }).click()
      await h1(/^Push: agents/)
      await help.waitFor({ state: 'detached' })
      gateway.visitor = null
      await page.reload()
      await page.locator('.guide a', { hasText: 'hub' }).or(page.locator('.guide pre')).first().waitFor()
      await page.goto(`${base}/guide/kubernetes-hub`)
      await page.locator('.guide a[href="push"], .guide a[href^="push#"], .guide a[href="sign-in"]').first().click()
      await h1(/^(Push|Signing in)/)
      await page.locator('.guide a').first().waitFor()
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
      await expect.poll(() => page.url(), patient).toBe(`${base}/clusters/eu-prod-2/nodes/worker-6`)
      await shown(page.getByRole('dialog')).toMatch(
        /NotReady[\s\S]*Capacity\s+Allocatable\s+Requested\s+Used[\s\S]*CPU[\s\S]*15.5 cores[\s\S]*NodeStatusUnknown/,
      )
      await press('Escape')
      await page.getByRole('dialog').waitFor({ state: 'detached' })
      await expect.poll(() => page.url(), patient).toBe(`${base}/clusters/eu-prod-2/nodes`)
      await press('g', 'c')
      await page.getByRole('heading', { level: 1, name: /need you/ }).waitFor()
      await press('?')
      await page.getByRole('dialog', { name: 'Help' }).waitFor()
      await page.getByRole('checkbox', { name: /Single keys/ }).uncheck()
      await press('Escape')
      await page.getByRole('dialog').waitFor({ state: 'detached' })
      await press('g', 'c', '/')
      expect(await page.getByRole('dialog').count()).toBe(0)
      await press('Control+k')
      await page.getByRole('combobox', { name: /^Search/ }).waitFor()
    })
  })

  describe('themes and frames', () => {
    const paths = [
      '/',
      '/clusters/eu-prod-2/nodes/worker-6',
      '/clusters/eu-prod-2/events',
      '/clusters/us-stage/operators',
      '/guide/push',
    ]
    const others = [
      '/?group=label:env',
      '/clusters/eu-prod-2',
      '/clusters/eu-prod-2/nodes',
      '/clusters/eu-prod-2/namespaces',
      '/clusters/eu-prod-2/deployments',
      '/clusters/eu-prod-2/operators',
      '/clusters/eu-prod-2/cluster-operators',
      '/clusters/lab/deployments',
      '/clusters/edge-07/nodes',
      '/clusters/nowhere',
      '/no/such/page',
      '/guide',
      '/guide/reference/settings',
    ]
    const check = async (page: Page, where: string) => expect(await complaintsOf(page), where).toEqual([])
    const checkAt = async (page: Page, some: readonly string[]) => {
      for (const path of some) {
        await goTo(page, `${base}${path}`)
        await page.getByRole('button', { name: /^Connection: Live/ }).waitFor({ state: 'attached' })
        await page.locator('h1').waitFor()
        await expect.poll(() => page.locator('.skeleton:visible').count(), patient).toBe(0)
        await check(page, path)
        expect(await excessAt320(page), path).toBeLessThanOrEqual(0)
      }
    }

    it(
      'give axe nothing to complain of and fit 320 px without scrolling sideways, on the other pages',
      {
        tags: ['long'],
      },
      async () => checkAt(await visit('/'), others),
    )

    it('gives axe nothing to complain of, in both themes, and fits 320 px without scrolling sideways', async () => {
      const page = await visit('/')
      await checkAt(page, paths)
      await page.setViewportSize({ width: 360, height: 740 })
      await page.goto(`${base}/clusters/eu-prod-2/nodes/worker-6`)
      await page.getByRole('dialog', { name: 'worker-6' }).waitFor()
      await check(page, 'a narrow drawer')
      await page.setViewportSize({ width: 1280, height: 800 })
      await page.goto(`${base}/`)
      await page.locator('.attention li').first().waitFor()
      await page.getByRole('button', { name: 'Cards' }).click()
      await check(page, 'cards')
      await page.keyboard.press('?')
      await page.getByRole('dialog', { name: 'Help' }).waitFor()
      await check(page, 'help')
      await page.keyboard.press('Escape')
      await page.keyboard.press('Control+k')
      await page.keyboard.type('prod')
      await page
        .getByRole('option', { name: /eu-prod-1/ })
        .first()
        .waitFor()
      await check(page, 'palette')
      gateway.visitor = null
      await page.goto(`${base}/`)
      await page.getByRole('heading', { level: 1, name: 'Sign in to see the fleet' }).waitFor()
      await check(page, 'refused')
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
      await hub[Symbol.asyncDispose]()
      await openHub({ prefix: '/tools/fleet' })
      const page = await visit('/clusters/eu-prod-2/nodes/worker-6', {}, { ready: false })
      await page.getByRole('dialog', { name: 'worker-6' }).waitFor()
      await page.keyboard.press('Escape')
      await page.getByRole('link', { name: 'ClusterPulse, to the fleet' }).click()
      await page.getByRole('heading', { level: 1, name: '3 of 6 clusters need you' }).waitFor()
      await expect.poll(() => page.url(), patient).toBe(`${base}/`)
    })
  })
})
