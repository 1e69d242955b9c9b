import { readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { buildPage, noBrowser, openBrowser } from '../../web/testing/browser.ts'
import { FakeHub } from '../../web/testing/fake-hub.ts'
import { aCluster, demoFleet } from '../../web/testing/worlds.ts'

const axeSource = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const patient = { timeout: 20_000 }
const suite = noBrowser === undefined ? 'access on the page' : `access on the page (skipped: ${noBrowser})`
const minute = 60_000
const alice = {
  username: 'alice',
  email: 'alice@example.com',
  groups: ['developers', 'on-call'],
  method: 'oidc',
  administrator: false,
}
const ways = [
  { method: 'oidc' as const, title: 'Example SSO' },
  { method: 'password' as const, title: 'Local administrator' },
]

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
  const text = (page: Page) => page.locator('main').innerText()
  const rowNames = (page: Page) => page.locator('tbody [data-row-link]').allInnerTexts()
  const heading = (page: Page, name: string | RegExp) => page.getByRole('heading', { level: 1, name }).waitFor()
  const live = (page: Page) => page.getByRole('button', { name: /^Connection: Live/ }).waitFor({ state: 'attached' })
  const lookAs = (user: typeof alice) => {
    hub.behaviour.session = { ...hub.behaviour.session, user }
  }
  const signOutEverybody = () => {
    hub.behaviour.session = { ...hub.behaviour.session, authenticated: false, user: null, signIn: ways }
    hub.behaviour.refuse = { status: 401, code: 'unauthenticated', error: 'sign in to see this' }
  }

  describe('sign-in', () => {
    it('stands in the place of the page, and comes back to it by the provider', async () => {
      signOutEverybody()
      const page = await visit('/clusters/lab/nodes?q=role%3Aworker')
      await heading(page, 'Sign in to see the fleet')
      expect(await page.title()).toBe('Sign in · ClusterPulse')
      expect(await page.getByRole('button', { name: /Search/ }).count()).toBe(0)
      const link = page.getByRole('link', { name: 'Sign in with Example SSO' })
      expect(await link.getAttribute('href')).toBe(
        `/api/v1/auth/login?returnTo=${encodeURIComponent('/clusters/lab/nodes?q=role:worker')}`.replace(
          encodeURIComponent('role:worker'),
          encodeURIComponent('role%3Aworker'),
        ),
      )
      hub.behaviour.refuse = null
      await link.click()
      await heading(page, 'lab')
      expect(page.url()).toBe(`${base}/clusters/lab/nodes?q=role%3Aworker`)
    })

    it('tells once what went wrong at the provider', async () => {
      signOutEverybody()
      const page = await visit('/clusters/lab?sign_in=identity_unavailable')
      await page.getByRole('alert').getByText('The identity provider does not answer.').waitFor()
      await expect.poll(() => page.url(), patient).toBe(`${base}/clusters/lab`)
      const link = page.getByRole('link', { name: 'Sign in with Example SSO' })
      await expect.poll(() => link.getAttribute('href'), patient).toBe('/api/v1/auth/login?returnTo=%2Fclusters%2Flab')
      await page.reload()
      await link.waitFor()
      expect(await page.getByText('does not answer').count()).toBe(0)
    })

    it('takes the password of the local administrator, says when it is wrong, and how long to wait', async () => {
      signOutEverybody()
      const page = await visit('/')
      await heading(page, 'Sign in to see the fleet')
      await page.getByLabel('User name').fill('admin')
      await page.getByLabel('Password').fill('wrong')
      await page.keyboard.press('Enter')
      await page.getByText('User name or password is wrong.').waitFor()
      await expect.poll(() => page.evaluate<string>('document.activeElement.type'), patient).toBe('password')
      expect(await page.getByLabel('Password').inputValue()).toBe('')
      hub.access.throttledForSeconds = 95
      await page.getByLabel('Password').fill('right')
      await page.keyboard.press('Enter')
      await page.getByText('There were too many tries').waitFor()
      const wait = page.getByRole('button', { name: /^Try again in 1:[0-3]\d$/ })
      await wait.waitFor()
      expect(await wait.isDisabled()).toBe(true)
      await page.reload()
      hub.access.throttledForSeconds = 0
      hub.behaviour.refuse = null
      await page.getByLabel('User name').fill('admin')
      await page.getByLabel('Password').fill('right')
      await page.getByRole('button', { name: 'Sign in', exact: true }).click()
      await heading(page, '3 of 6 clusters need you')
    })

    it.each(['by the stream', 'by an answer'])(
      'comes back when the session ends, told %s, and keeps nothing of what was shown',
      async (how) => {
        const page = await visit('/clusters/lab')
        await heading(page, 'lab')
        await live(page)
        signOutEverybody()
        if (how === 'by the stream') {
          hub.say({ kind: 'reset', reason: 'session_ended' })
          hub.cut()
        } else await page.getByRole('link', { name: 'Events', exact: true }).click()
        await heading(page, 'Your session has ended')
        expect(await page.locator('body').innerText()).not.toMatch(/lab|eu-prod/)
        await page.getByLabel('User name').fill('admin')
        await page.getByLabel('Password').fill('right')
        hub.behaviour.refuse = null
        await page.keyboard.press('Enter')
        await heading(page, 'lab')
        expect(page.url()).toBe(`${base}/clusters/lab${how === 'by the stream' ? '' : '/events'}`)
      },
    )

    it('says in the menu who looks, by which way, until when, and signs out', async () => {
      lookAs(alice)
      hub.behaviour.session = { ...hub.behaviour.session, sessionEndsAt: Date.now() + 40.5 * minute, signIn: ways }
      const page = await visit('/')
      await live(page)
      const menu = page.getByRole('button', { name: 'Signed in as alice' })
      await menu.click()
      const panel = page.locator('.menu:popover-open')
      expect(await panel.innerText()).toMatch(
        /alice[\s\S]*alice@example.com[\s\S]*developers, on-call[\s\S]*identity provider[\s\S]*40 min/,
      )
      expect(await panel.getByRole('link').allInnerTexts()).toEqual(['What may I see?'])
      await panel.getByRole('link', { name: 'What may I see?' }).click()
      await heading(page, 'What may I see?')
      await expect.poll(() => panel.count(), patient).toBe(0)
      await menu.click()
      await page.getByRole('button', { name: 'Sign out' }).click()
      await heading(page, 'Sign in to see the fleet')
    })
  })

  describe('what may be seen', () => {
    it('takes rows away at once when access changes, also from under the pointer, and says so', async () => {
      lookAs(alice)
      const page = await visit('/')
      await live(page)
      await expect.poll(() => rowNames(page), patient).toHaveLength(6)
      await page.locator('tr[data-index="3"]').hover()
      hub.fill([aCluster('lab', Date.now())])
      const began = Date.now()
      hub.say({ kind: 'access', reason: 'policies', now: hub.now() })
      hub.snapshot()
      await expect.poll(() => rowNames(page), { timeout: 2000, interval: 20 }).toEqual(['lab'])
      expect(Date.now() - began).toBeLessThan(2000)
      expect(await page.locator('tr[data-index]').count()).toBe(1)
      expect(await text(page)).not.toMatch(/Europe|edge-07|us-stage/)
      await page.getByRole('status').getByText('What you may see has changed.').waitFor()
      await page.getByRole('button', { name: 'Dismiss' }).click()
      await page.getByText('What you may see has changed.').waitFor({ state: 'detached' })
    })

    it('keeps the keyboard in the page when what had the focus goes', async () => {
      lookAs(alice)
      const page = await visit('/')
      await expect.poll(() => rowNames(page), patient).toHaveLength(6)
      await page.keyboard.press('j')
      hub.fill([aCluster('lab', Date.now())])
      hub.say({ kind: 'access', reason: 'policies', now: hub.now() })
      hub.snapshot()
      await expect.poll(() => rowNames(page), patient).toEqual(['lab'])
      await expect.poll(() => page.evaluate<string>('document.activeElement.id'), patient).toBe('main')
    })

    it('leads from refused history and from a node that is not shown to the reason', async () => {
      lookAs(alice)
      hub.behaviour.refuseHistory = { status: 403, code: 'metrics_not_permitted', error: 'no policy shows you usage' }
      const page = await visit('/clusters/eu-prod-1/history')
      await page.getByText('You may not see this history').waitFor()
      await page.getByRole('link', { name: 'Why?', exact: true }).click()
      await page.getByText('You may see a part of usage and history of cluster eu-prod-1').waitFor()
      await page.goto(`${base}/clusters/eu-prod-1/nodes/hidden-1`)
      await page.getByRole('dialog').getByRole('link', { name: 'Why do I not see it?' }).click()
      await page.getByText('You may see hidden-1 among the nodes of eu-prod-1').waitFor()
    })

    it('turns the open page of a cluster that may no longer be seen into one of none', async () => {
      lookAs(alice)
      const page = await visit('/clusters/eu-prod-1/nodes/worker-1')
      await page.getByRole('dialog', { name: 'worker-1' }).waitFor()
      hub.fill([aCluster('lab', Date.now())])
      hub.say({ kind: 'access', reason: 'time', now: hub.now() })
      hub.snapshot()
      await page.getByText('There is no such cluster, or you may not see it').waitFor()
      expect(await page.locator('body').innerText()).not.toMatch(/Europe production/)
      expect(await page.locator('table, dialog').count()).toBe(0)
      await page.getByRole('link', { name: 'Why do I not see it?' }).click()
      await heading(page, 'Why do I see this, or not?')
      expect(await page.getByLabel('Cluster', { exact: true }).inputValue()).toBe('eu-prod-1')
    })

    it('keeps only the place of a row that went while a list holds still', async () => {
      lookAs(alice)
      const page = await visit('/')
      await expect.poll(() => rowNames(page), patient).toHaveLength(6)
      await page.locator('tr[data-index="1"]').hover()
      hub.remove('lab')
      await page.locator('tr.blank', { hasText: 'no longer here' }).waitFor()
      expect(await page.locator('table').innerText()).not.toContain('lab')
    })

    it('shows what is kept from somebody as kept, never as 0 and never as unknown', async () => {
      lookAs(alice)
      hub.fill([aCluster('west', Date.now(), { filtered: true, openshift: true })])
      const page = await visit('/')
      const row = page.locator('tr[data-index]', { hasText: 'west' })
      await row.waitFor()
      expect(await row.innerText()).toMatch(/filtered view/)
      expect(await row.innerText()).not.toMatch(/\b0\b|not known/)
      expect(await row.locator('.not-shown').allInnerTexts()).toEqual([
        expect.stringContaining('not shown to you: pods'),
        expect.stringContaining('not shown to you: how much CPU'),
        expect.stringContaining('not shown to you: how much Memory'),
      ])
      await row.locator('.filtered-sign').hover()
      await page.locator('.tip', { hasText: 'sums are over what you may see' }).waitFor()
      await row.getByRole('link').click()
      await page
        .getByRole('link', { name: /^Nodes/ })
        .first()
        .click()
      await page.locator('tbody').getByRole('link', { name: 'worker-1' }).click()
      const drawer = page.getByRole('dialog', { name: 'worker-1' })
      await drawer.waitFor()
      expect(await drawer.innerText()).toMatch(/not shown to you: pods[\s\S]*You do not see all pods/)
      await page.goto(`${base}/clusters/west/operators`)
      await page.getByText('No operators are shown to you').waitFor()
      await page.locator('.state').getByRole('link', { name: 'Why?' }).click()
      await page.getByText('You may see a part of the operators of west').waitFor()
    })

    it('tells policies that cannot be read from an empty fleet, and shows the fleet again by itself', async () => {
      lookAs(alice)
      const page = await visit('/')
      await live(page)
      hub.behaviour.refuse = { status: 503, code: 'policies_unavailable', error: 'redis refuses connections' }
      hub.say({ kind: 'reset', reason: 'policies_unavailable' })
      hub.cut()
      await heading(page, 'Nothing can be shown now')
      expect(await text(page)).toMatch(/cannot be decided while the policies cannot be read[\s\S]*policies_unavailable/)
      expect(await page.locator('body').innerText()).not.toMatch(/eu-prod|Europe/)
      await page.goto(`${base}/access/me`)
      await page.getByText('No cluster is shown until they can.').waitFor()
      hub.behaviour.refuse = null
      await page.getByRole('status').getByRole('button', { name: 'Retry now' }).click()
      await page.getByText('No cluster is shown until they can.').waitFor({ state: 'detached' })
      await page.goto(`${base}/`)
      await heading(page, '3 of 6 clusters need you')
    })

    it('tells of an empty fleet the way to its reason', async () => {
      lookAs(alice)
      hub.fill([])
      const page = await visit('/')
      await page.getByText('No cluster is shown to you').waitFor()
      expect(await text(page)).not.toMatch(/kubeconfig/)
      await page.getByRole('link', { name: 'Why do I not see a cluster?' }).click()
      await heading(page, 'Why do I see this, or not?')
    })
  })

  describe('why', () => {
    it('names the policy, the rule, what was passed over and what is let through', async () => {
      lookAs(alice)
      const page = await visit('/access/why')
      await page.getByText('Ask about a cluster').waitFor()
      await page.getByLabel('Cluster', { exact: true }).fill('eu-prod-1')
      await page.getByLabel('Type if not the cluster itself').fill('namespaces')
      await page.getByLabel('Name of one item').fill('billing')
      await page.keyboard.press('Enter')
      await page.getByText('You may not see billing among the namespaces of eu-prod-1').waitFor()
      expect(page.url()).toBe(`${base}/access/why?cluster=eu-prod-1&type=namespaces&name=billing`)
      expect(await text(page)).toMatch(
        /does not let billing through[\s\S]*clusterpulse\/developers[\s\S]*rule 1[\s\S]*9f2c41d07ab3e65f[\s\S]*only those named payments or shop[\s\S]*audit-week[\s\S]*is not valid yet[\s\S]*valid from 2031/,
      )
      expect(await page.getByLabel('As somebody else').count()).toBe(0)
      await page.goBack()
      await page.getByText('Ask about a cluster').waitFor()
    })

    it('tells nobody whether a cluster they may not see is there', async () => {
      lookAs(alice)
      const page = await visit('/access/why?cluster=nowhere')
      await page.getByText('There is no cluster nowhere, or you may not see it').waitFor()
    })

    it('lets administrators ask for others', async () => {
      const page = await visit('/access/why?cluster=edge-07')
      await page.getByLabel('As somebody else').fill('bob')
      await page.getByLabel('In groups').fill('developers, on-call')
      await page.getByRole('button', { name: 'Explain' }).click()
      await page.getByText('bob may not see cluster edge-07').waitFor()
      expect(hub.requests.some((path) => path.includes('as=bob&groups=developers%2Con-call'))).toBe(true)
      await page.getByRole('link', { name: 'team-b/everybody' }).click()
      await heading(page, 'team-b/everybody')
    })

    it('lists what one may see, and by which policies', async () => {
      lookAs(alice)
      const page = await visit('/access/me')
      await expect.poll(() => rowNames(page), patient).toEqual(['Europe production 1', 'us-stage'])
      expect(await text(page)).toMatch(
        /known as alice[\s\S]*You see 2 clusters[\s\S]*limited[\s\S]*clusterpulse\/developers[\s\S]*names your group developers/,
      )
      hub.access.permissions = {}
      hub.access.own = []
      hub.say({ kind: 'access', reason: 'policies', now: hub.now() })
      hub.snapshot()
      await page.getByText('No cluster is shown to you').waitFor()
    })
  })

  describe('for administrators', () => {
    it('lists policies in their order, with state and findings, and says one in words', async () => {
      const page = await visit('/access')
      await expect
        .poll(() => rowNames(page), patient)
        .toEqual([
          'clusterpulse/no-contractors',
          'clusterpulse/audit-week',
          'clusterpulse/developers',
          'clusterpulse/broken',
          'team-b/everybody',
        ])
      expect(await page.locator('tr', { hasText: 'broken' }).innerText()).toMatch(/Error[\s\S]*1 error/)
      await page.getByLabel('Filter policies').fill('effect:Deny')
      await expect.poll(() => rowNames(page), patient).toEqual(['clusterpulse/no-contractors'])
      await page.getByRole('link', { name: 'clusterpulse/no-contractors' }).click()
      await heading(page, 'clusterpulse/no-contractors')
      expect(await text(page)).toMatch(/whose name matches \^eu-prod-[\s\S]*denies the whole cluster/)
      await page.goto(`${base}/access/policies/clusterpulse/developers`)
      await page.getByText('spec.scope.clusters.rules[0].resources[1].filters.labels').waitFor()
      await page.goto(`${base}/access/policies/no/such`)
      await page.getByText('There is no such policy').waitFor()
    })

    it.each(['/access', '/access/seen', '/access/try', '/access/policies/a/b'])(
      'keeps %s from everybody else',
      async (path) => {
        lookAs(alice)
        const page = await visit(path)
        await page.getByText('This page is for administrators').waitFor()
        expect(await page.getByRole('navigation', { name: 'Access' }).getByRole('link').allInnerTexts()).toEqual([
          'My access',
          'Why?',
        ])
        expect(hub.requests.filter((request) => request.startsWith('/api/v2/access'))).toEqual([])
      },
    )

    it('looks through the eyes of somebody: told on every page, ended by a button', async () => {
      const page = await visit('/access/seen')
      await page.getByLabel('Person').fill('alice')
      await page.getByLabel('In groups').fill('developers')
      await page.getByRole('button', { name: 'What do they see?' }).click()
      await page.getByText('alice (developers) sees 2 of 3 clusters').waitFor()
      expect(await page.locator('tr', { hasText: 'eu-prod-1' }).innerText()).toMatch(/limited[\s\S]*2\/6[\s\S]*0\/3/)
      hub.fill([aCluster('eu-prod-1', Date.now(), { filtered: true, openshift: true })])
      await page.getByRole('button', { name: 'View as alice' }).click()
      await heading(page, /1 cluster/)
      expect(hub.access.viewed).toEqual([{ username: 'alice', groups: ['developers'] }])
      const banner = page.getByRole('complementary', { name: 'Looking through other eyes' })
      for (const path of ['/', '/clusters/eu-prod-1', '/access/me', '/no/such/page']) {
        await page.goto(`${base}${path}`)
        await banner.waitFor()
        expect(await banner.innerText()).toMatch(
          /through the eyes of alice \(groups developers\): reading only · 1[45]:\d\d left/,
        )
      }
      hub.fill(demoFleet(Date.now()))
      await page.goto(`${base}/clusters/lab`)
      await banner.getByRole('button', { name: 'Stop' }).click()
      await banner.waitFor({ state: 'detached' })
      await heading(page, 'lab')
    })

    it('comes back to the own eyes by itself when the time is over', async () => {
      const own = hub.behaviour.session
      hub.behaviour.session = { ...own, user: alice, actor: 'ada', sessionEndsAt: Date.now() + 6000 }
      hub.fill([aCluster('eu-prod-1', Date.now(), { filtered: true })])
      const page = await visit('/')
      const banner = page.getByRole('complementary', { name: 'Looking through other eyes' })
      await banner.getByText(/0:0\d left/).waitFor()
      hub.behaviour.session = own
      hub.fill(demoFleet(Date.now()))
      hub.say({ kind: 'reset', reason: 'session_ended' })
      hub.cut()
      await banner.waitFor({ state: 'detached' })
      await expect.poll(() => rowNames(page), patient).toHaveLength(6)
    })

    it('reads the policies again while they are shown', async () => {
      const page = await visit('/access')
      await expect.poll(() => rowNames(page), patient).toHaveLength(5)
      hub.access.policies = { ...hub.access.policies, items: hub.access.policies.items.slice(1) }
      await page.getByRole('button', { name: 'Read again' }).click()
      await expect.poll(() => rowNames(page), patient).toHaveLength(4)
    })

    it('shows what a change would do, from a dropped file, and stores nothing', async () => {
      const page = await visit('/access/try')
      const button = page.getByRole('button', { name: 'Show what would change' })
      await page.getByText('Nothing tried yet').waitFor()
      expect(await button.isDisabled()).toBe(true)
      const file = join(built.root, 'policy.yaml')
      writeFileSync(file, 'kind: MonitorAccessPolicy\n')
      await page.locator('input[type=file]').setInputFiles(file)
      await expect
        .poll(() => page.getByLabel(/^Policies as YAML/).inputValue(), patient)
        .toBe('kind: MonitorAccessPolicy')
      await button.click()
      await expect.poll(() => rowNames(page), patient).toEqual(['alice (developers)', 'anybody in developers'])
      expect(await text(page)).toMatch(
        /Something would change for 2 of 30 pairs of subject and cluster \(5 subjects compared\)/,
      )
      expect(await text(page)).toMatch(/It is to be filtered, but by nothing[\s\S]*rules\[0\]\.resources\[0\]/)
      expect(await page.locator('tr', { hasText: 'eu-prod-1' }).innerText()).toMatch(
        /less[\s\S]*limited[\s\S]*none[\s\S]*12/,
      )
      await page.getByLabel(/^Policies as YAML/).fill('{{')
      await page.keyboard.press('Control+Enter')
      await page.getByText('this is no YAML').waitFor()
      await page.goto(`${base}/access/policies/clusterpulse/developers`)
      await page.getByRole('link', { name: 'What would change without it?' }).click()
      await expect.poll(() => page.getByLabel('Take away').inputValue(), patient).toBe('clusterpulse/developers')
    })

    it('drops a file onto the field', async () => {
      const page = await visit('/access/try')
      const field = page.getByLabel(/^Policies as YAML/)
      await field.waitFor()
      await page.evaluate(`{
        const carried = new DataTransfer()
        carried.items.add(new File(['a: 1\\n'], 'a.yaml'))
        carried.items.add(new File(['b: 2\\n'], 'b.yaml'))
        document.querySelector('.manifest textarea').dispatchEvent(new DragEvent('drop', { dataTransfer: carried, bubbles: true, cancelable: true }))
      }`)
      await expect.poll(() => field.inputValue(), patient).toBe('a: 1\n---\nb: 2')
    })

    it('says of each page why it has no answer', async () => {
      hub.behaviour.refuse = { status: 403, code: 'viewing_as', error: 'reading only' }
      const page = await visit('/access/seen?user=alice')
      await page.locator('main, .state').getByText('reading only').first().waitFor()
      for (const path of ['/access', '/access/me', '/access/seen?user=alice', '/access/why?cluster=west']) {
        hub.behaviour.refuse = null
        await page.goto(`${base}/`)
        await live(page)
        hub.behaviour.refuse = { status: 500, code: 'unexpected', error: 'something broke' }
        await page.goto(`${base}${path}`)
        await page.getByRole('alert').getByText('something broke').waitFor()
        hub.behaviour.refuse = null
        await page.getByRole('alert').getByRole('button', { name: 'Retry now' }).click()
        await page.getByRole('alert').waitFor({ state: 'detached' })
      }
    })
  })

  describe('themes and frames', () => {
    const paths = [
      '/access',
      '/access/policies/clusterpulse/developers',
      '/access/policies/clusterpulse/broken',
      '/access/policies/no/such',
      '/access/seen',
      '/access/seen?user=alice&groups=developers',
      '/access/try',
      '/access/me',
      '/access/why',
      '/access/why?cluster=eu-prod-1&type=namespaces&name=payments',
      '/access/why?cluster=nowhere',
    ]
    const tryIt = async (page: Page) => {
      await page.goto(`${base}/access/try`)
      await page.getByLabel(/^Policies as YAML/).fill('kind: MonitorAccessPolicy')
      await page.keyboard.press('Control+Enter')
      await page.locator('tbody [data-row-link]').first().waitFor()
    }

    it.each(['light', 'dark'] as const)(
      'gives axe nothing to complain of in the %s theme',
      { timeout: 240_000 },
      async (colorScheme) => {
        const page = await visit('/access', { colorScheme })
        const check = async (where: string) => {
          await page.evaluate(axeSource)
          const found = await page.evaluate<
            string[]
          >(`axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] }).then(({ violations }) =>
        violations.flatMap(({ id, nodes }) => nodes.map((node) => id + ' ' + node.html.slice(0, 160) + ' ' + node.failureSummary.slice(0, 200))))`)
          expect(found, where).toEqual([])
        }
        const settle = async (path: string) => {
          await page.goto(`${base}${path}`)
          await live(page)
          await page.locator('h1').waitFor()
          await expect.poll(() => page.locator('.skeleton:visible').count(), patient).toBe(0)
          await check(path)
        }
        for (const path of paths) await settle(path)
        await tryIt(page)
        await check('a tried change')
        lookAs(alice)
        hub.behaviour.session = { ...hub.behaviour.session, actor: 'ada', sessionEndsAt: Date.now() + 15 * minute }
        hub.fill([aCluster('west', Date.now(), { filtered: true, openshift: true })])
        for (const path of [
          '/',
          '/access',
          '/clusters/west',
          '/clusters/west/nodes/worker-1',
          '/clusters/west/operators',
        ])
          await settle(path)
        await page.goto(`${base}/`)
        await live(page)
        hub.say({ kind: 'access', reason: 'policies', now: hub.now() })
        hub.snapshot()
        await page.getByText('What you may see has changed.').waitFor()
        await page.getByRole('button', { name: 'Signed in as alice' }).click()
        await check('the note and the menu')
        signOutEverybody()
        await page.goto(`${base}/`)
        await heading(page, 'Sign in to see the fleet')
        await page.getByLabel('User name').fill('admin')
        await page.getByLabel('Password').fill('wrong')
        await page.keyboard.press('Enter')
        await page.getByText('User name or password is wrong.').waitFor()
        await check('sign-in')
      },
    )

    it('fits 320 px without scrolling sideways', { timeout: 180_000 }, async () => {
      const page = await visit('/', { viewport: { width: 320, height: 740 } })
      const check = async (where: string) => {
        await page.locator('h1').waitFor()
        await expect.poll(() => page.locator('.skeleton:visible').count(), patient).toBe(0)
        const over = await page.evaluate<number>(
          'document.documentElement.scrollWidth - document.documentElement.clientWidth',
        )
        expect(over, where).toBeLessThanOrEqual(0)
      }
      for (const path of paths) {
        await page.goto(`${base}${path}`)
        await check(path)
      }
      await tryIt(page)
      await check('a tried change')
      signOutEverybody()
      await page.goto(`${base}/`)
      await heading(page, 'Sign in to see the fleet')
      await check('sign-in')
    })

    it('is worked by keyboard alone', async () => {
      const page = await visit('/access')
      const focused = () => page.evaluate<string>('document.activeElement.textContent')
      await expect.poll(() => rowNames(page), patient).toHaveLength(5)
      await page.keyboard.press('j')
      await page.keyboard.press('j')
      await expect.poll(focused, patient).toBe('clusterpulse/audit-week')
      await page.keyboard.press('Enter')
      await heading(page, 'clusterpulse/audit-week')
      await expect.poll(focused, patient).toBe('clusterpulse/audit-week')
      await page.keyboard.press('g')
      await page.keyboard.press('a')
      await heading(page, 'What may I see?')
      await page.goBack()
      await heading(page, 'clusterpulse/audit-week')
      await page.keyboard.press('Control+k')
      await page.keyboard.type('what may')
      await page.getByRole('option', { name: /What may I see/, selected: true }).waitFor()
      await page.keyboard.press('Enter')
      await heading(page, 'What may I see?')
    })
  })
})
