import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { PolicyDocument } from '#access'
import { clientSecret, OpenIdProvider } from '../../src/pipeline/identity/test/provider.ts'
import { freePort } from '../../src/platform/runtime/testing/free-port.ts'
import { leastOf } from '../../src/platform/runtime/testing/least-of.ts'
import { buildPage, noBrowser } from '../../web/testing/browser.ts'
import { complaintsOf, excessAt320 } from '../page/axe.ts'
import { demoFleet } from '../page/clusters.ts'
import { PageHub, type PageHubOptions } from '../page/hub.ts'
import { demoPolicies, developers } from '../page/policies.ts'
import { patient, retryNow, shown } from '../page/shown.ts'
import { goTo, type VisitOptions, Visits } from '../page/visits.ts'

const suite = noBrowser === undefined ? 'access on the page' : `access on the page (skipped: ${noBrowser})`
const minute = 60_000
/** The policy `developers` is about her. */
const alice = { username: 'alice', email: 'alice@example.com', groups: ['developers'] }
/** Sees all while she is on call. */
const onCall = { ...alice, groups: ['developers', 'on-call'] }
/** `developers`, with a filter that lets nothing through. */
const narrower = developers.replace('[payments, shop]', '[]')
const password = { username: 'admin', secret: 'right horse battery staple' }

describe.skipIf(noBrowser !== undefined)(suite, () => {
  let built: ReturnType<typeof buildPage>
  let visits: Visits
  let hub: PageHub
  let base: string
  const open: (() => Promise<void>)[] = []

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
    for (const close of open.splice(0)) await close()
    await hub[Symbol.asyncDispose]()
    expect(complaints).toEqual([])
  })

  async function openHub(options: Omit<PageHubOptions, 'root'> = {}, port?: number): Promise<void> {
    hub = await PageHub.open({ root: built.root, policies: demoPolicies(Date.now()), ...options })
    await hub.fill(demoFleet(hub.now()))
    base = await hub.gateway.start(port)
  }
  /** In the place of the hub whose gateway signs people in: one where they sign in themselves. */
  async function openHubWithSignIn(session: { lifetimeMs?: number } = {}): Promise<void> {
    await hub[Symbol.asyncDispose]()
    const port = await freePort()
    const publicUrl = `http://127.0.0.1:${port}`
    const provider = await OpenIdProvider.start({
      people: {
        alice: { email: alice.email, email_verified: true, preferred_username: 'alice', groups: onCall.groups },
      },
      client: { redirect_uris: [`${publicUrl}/api/v1/auth/callback`], post_logout_redirect_uris: [`${publicUrl}/`] },
    })
    open.push(() => provider[Symbol.asyncDispose]())
    const oidc = { issuer: provider.issuer, clientId: 'fleet', clientSecret, publicUrl }
    await openHub({ signIn: { oidc, password, session } }, port)
    hub.gateway.visitor = null
  }
  async function signInAsAdministrator(page: Page): Promise<void> {
    await page.getByLabel('User name').fill(password.username)
    await page.getByLabel('Password').fill(password.secret)
    await page.keyboard.press('Enter')
  }
  /** At the provider: a form that takes any password, and a question whether the hub may know who it is. */
  async function signInAtProvider(page: Page): Promise<void> {
    await page.getByRole('link', { name: /^Sign in with 127\.0\.0\.1/ }).click()
    await page.locator('input[name=login]').fill('alice')
    await page.locator('input[name=password]').fill('any')
    await page.getByRole('button', { name: 'Sign-in' }).click()
    await page.getByRole('button', { name: 'Continue' }).click()
  }
  const visit = (path: string, options?: VisitOptions) => visits.visit(`${base}${path}`, options)
  const rowNames = (page: Page) => page.locator('tbody [data-row-link]').allInnerTexts()
  const heading = (page: Page, name: string | RegExp) => page.getByRole('heading', { level: 1, name }).waitFor()
  const live = (page: Page) => page.getByRole('button', { name: /^Connection: Live/ }).waitFor({ state: 'attached' })
  const lookAs = (visitor: typeof alice) => {
    hub.gateway.visitor = visitor
  }
  /** Those who are on call see what their other groups show them, from now on. */
  const endOnCall = () => hub.policies.remove('clusterpulse/on-call')
  const policy = (name: string): PolicyDocument => {
    const found = demoPolicies(Date.now()).find(({ policy_name }) => policy_name === name)
    if (!found) throw new Error(`there is no policy ${name}`)
    return found
  }
  const seenByDevelopers = ['Europe production 2', 'Europe production 1', 'us-stage']

  describe('sign-in', () => {
    it('stands in the place of the page, and comes back to it by the provider', async () => {
      await openHubWithSignIn()
      const page = await visit('/clusters/lab/nodes?q=role%3Aworker')
      await heading(page, 'Sign in to see the fleet')
      await expect.poll(() => page.title(), patient).toBe('Sign in · ClusterPulse')
      expect(await page.getByRole('button', { name: /Search/ }).count()).toBe(0)
      const link = page.getByRole('link', { name: /^Sign in with 127\.0\.0\.1/ })
      await expect
        .poll(() => link.getAttribute('href'), patient)
        .toBe('/api/v1/auth/login?returnTo=%2Fclusters%2Flab%2Fnodes%3Fq%3Drole%253Aworker')
      await signInAtProvider(page)
      await heading(page, 'lab')
      await expect.poll(() => page.url(), patient).toBe(`${base}/clusters/lab/nodes?q=role%3Aworker`)
    })

    it('tells once what went wrong at the provider', async () => {
      await openHubWithSignIn()
      const page = await visit('/clusters/lab?sign_in=identity_unavailable')
      await page.getByRole('alert').getByText('The identity provider does not answer.').waitFor()
      await expect.poll(() => page.url(), patient).toBe(`${base}/clusters/lab`)
      const link = page.getByRole('link', { name: /^Sign in with 127\.0\.0\.1/ })
      await expect.poll(() => link.getAttribute('href'), patient).toBe('/api/v1/auth/login?returnTo=%2Fclusters%2Flab')
      await page.reload()
      await link.waitFor()
      expect(await page.getByText('does not answer').count()).toBe(0)
    })

    it('takes the password of the local administrator, says when it is wrong, and how long to wait', async () => {
      await openHubWithSignIn()
      const page = await visit('/')
      await heading(page, 'Sign in to see the fleet')
      await page.getByLabel('User name').fill('admin')
      await page.getByLabel('Password').fill('wrong')
      await page.keyboard.press('Enter')
      await page.getByText('User name or password is wrong.').waitFor()
      await expect.poll(() => page.evaluate<string>('document.activeElement.type'), patient).toBe('password')
      await expect.poll(() => page.getByLabel('Password').inputValue(), patient).toBe('')
      // Five tries are free; of those after them, each waits twice as long as the one before.
      for (let tries = 2; tries <= 11; tries++) {
        const status = await page.evaluate<number>(`fetch('/api/v1/auth/password', {
          method: 'POST',
          headers: { 'content-type': 'application/json', 'x-clusterpulse-request': '1' },
          body: JSON.stringify({ username: 'admin', password: 'wrong' }),
        }).then(({ status }) => status)`)
        expect(status).toBe(401)
        hub.pass(33_000)
      }
      hub.pass(-33_000)
      await page.getByLabel('Password').fill('wrong')
      await page.keyboard.press('Enter')
      await page.getByText('There were too many tries').waitFor()
      const wait = page.getByRole('button', { name: /^Try again in [01]:\d\d$/ })
      await wait.waitFor()
      await expect.poll(() => wait.isDisabled(), patient).toBe(true)
      hub.pass(5 * minute)
      await page.reload()
      await signInAsAdministrator(page)
      await heading(page, / clusters need you/)
    })

    it.each(['by the stream', 'by an answer'])(
      'comes back when the session ends, told %s, and keeps nothing of what was shown',
      async (how) => {
        await openHubWithSignIn()
        const page = await visit('/clusters/lab')
        await signInAsAdministrator(page)
        await heading(page, 'lab')
        await live(page)
        if (how === 'by an answer') {
          hub.gateway.streams = false
          hub.gateway.cut()
        }
        const beside = await page.context().newPage()
        await beside.goto(base)
        await beside.getByRole('button', { name: 'Signed in as admin' }).click()
        await beside.getByRole('button', { name: 'Sign out' }).click()
        await beside.getByRole('heading', { level: 1, name: 'Sign in to see the fleet' }).waitFor()
        await heading(page, 'Your session has ended')
        expect(await page.locator('body').innerText()).not.toMatch(/lab|eu-prod/)
        hub.gateway.streams = true
        await signInAsAdministrator(page)
        await heading(page, 'lab')
        await expect.poll(() => page.url(), patient).toBe(`${base}/clusters/lab`)
      },
    )

    it('says in the menu who looks, by which way, until when, and signs out', async () => {
      await openHubWithSignIn({ lifetimeMs: 40.8 * minute })
      const page = await visit('/')
      await signInAtProvider(page)
      await live(page)
      const menu = page.getByRole('button', { name: 'Signed in as alice' })
      await menu.click()
      const panel = page.locator('.menu:popover-open')
      await shown(panel).toMatch(
        /alice[\s\S]*alice@example.com[\s\S]*developers, on-call[\s\S]*identity provider[\s\S]*40 min/,
      )
      await expect.poll(() => panel.getByRole('link').allInnerTexts(), patient).toEqual(['What may I see?'])
      await panel.getByRole('link', { name: 'What may I see?' }).click()
      await heading(page, 'What may I see?')
      await expect.poll(() => panel.count(), patient).toBe(0)
      await menu.click()
      await page.getByRole('button', { name: 'Sign out' }).click()
      // The session at the provider ends too, which it asks about.
      await page.getByRole('button', { name: 'Yes, sign me out' }).click()
      await heading(page, 'Sign in to see the fleet')
    })
  })

  describe('what may be seen', () => {
    it('takes rows away at once when access changes, also from under the pointer, and says so', async () => {
      lookAs(onCall)
      const page = await visit('/')
      await live(page)
      const tookMs = await leastOf(4, 2000, async () => {
        await hub.policies.put(policy('on-call'), {})
        await expect.poll(() => rowNames(page), patient).toHaveLength(6)
        await page.locator('tr[data-index="3"]').hover()
        const began = Date.now()
        await endOnCall()
        await expect.poll(() => rowNames(page), { ...patient, interval: 20 }).toEqual(seenByDevelopers)
        return Date.now() - began
      })
      expect(tookMs).toBeLessThan(2000)
      expect(await page.locator('tr[data-index]').count()).toBe(3)
      expect(await page.locator('main').innerText()).not.toMatch(/Edge|edge-07|lab|new-one/)
      await page.getByRole('status').getByText('What you may see has changed.').waitFor()
      await page.getByRole('button', { name: 'Dismiss' }).click()
      await page.getByText('What you may see has changed.').waitFor({ state: 'detached' })
    })

    it('keeps the keyboard in the page when what had the focus goes', async () => {
      lookAs(onCall)
      const page = await visit('/')
      await expect.poll(() => rowNames(page), patient).toHaveLength(6)
      await page.keyboard.press('j')
      await endOnCall()
      await expect.poll(() => rowNames(page), patient).toEqual(seenByDevelopers)
      await expect.poll(() => page.evaluate<string>('document.activeElement.id'), patient).toBe('main')
    })

    it('leads from refused history and from a node that is not shown to the reason', async () => {
      await hub[Symbol.asyncDispose]()
      await openHub({ history: true })
      lookAs(alice)
      const page = await visit('/clusters/eu-prod-1/history')
      await page.getByText('You may not see this history').waitFor()
      await page.getByRole('link', { name: 'Why?', exact: true }).click()
      await page.getByText('You may not see usage and history of cluster eu-prod-1').waitFor()
      await page.goto(`${base}/clusters/eu-prod-1/nodes/hidden-1`)
      await page.getByRole('dialog').getByRole('link', { name: 'Why do I not see it?' }).click()
      await page.getByText('You may see hidden-1 among the nodes of eu-prod-1').waitFor()
    })

    it('turns the open page of a cluster that may no longer be seen into one of none', async () => {
      lookAs(onCall)
      const page = await visit('/clusters/edge-07/nodes/control-plane-1')
      await page.getByRole('dialog', { name: 'control-plane-1' }).waitFor()
      await endOnCall()
      await page.getByText('There is no such cluster, or you may not see it').waitFor()
      expect(await page.locator('body').innerText()).not.toMatch(/Edge 07/)
      expect(await page.locator('table, dialog').count()).toBe(0)
      await page.getByRole('link', { name: 'Why do I not see it?' }).click()
      await heading(page, 'Why do I see this, or not?')
      await expect.poll(() => page.getByLabel('Cluster', { exact: true }).inputValue(), patient).toBe('edge-07')
    })

    it('keeps only the place of a row that went while a list holds still', async () => {
      lookAs(onCall)
      const page = await visit('/')
      await expect.poll(() => rowNames(page), patient).toHaveLength(6)
      await page.locator('tr[data-index="1"]').hover()
      await hub.remove('lab')
      await page.locator('tr.blank', { hasText: 'no longer here' }).waitFor()
      expect(await page.locator('table').innerText()).not.toContain('lab')
    })

    it('shows what is kept from somebody as kept, never as 0 and never as unknown', async () => {
      lookAs(alice)
      const page = await visit('/')
      const row = page.locator('tr[data-index]', { hasText: 'Europe production 1' })
      await row.waitFor()
      await shown(row).toMatch(/filtered view/)
      expect(await row.innerText()).not.toMatch(/\b0\b|not known/)
      await expect
        .poll(() => row.locator('.not-shown').allInnerTexts(), patient)
        .toEqual([
          expect.stringContaining('not shown to you: pods'),
          expect.stringContaining('not shown to you: how much CPU'),
          expect.stringContaining('not shown to you: how much Memory'),
        ])
      // Health of the past would tell of what is hidden: a round says whether the cluster answered.
      const rounds = await row.locator('.heartbeats').getAttribute('aria-label')
      expect(rounds).toMatch(/answered.*It has (not )?answered for/)
      expect(rounds).not.toMatch(/healthy|degraded/i)
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
      await shown(drawer).toMatch(/not shown to you: Pods/)
      await page.goto(`${base}/clusters/eu-prod-1/operators`)
      await page.getByText('No operators are shown to you').waitFor()
      await page.locator('.state').getByRole('link', { name: 'Why?' }).click()
      await page.getByText('You may see a part of the operators of eu-prod-1').waitFor()
    })

    it('tells policies that cannot be read from an empty fleet, and shows the fleet again by itself', async () => {
      lookAs(onCall)
      const page = await visit('/')
      await live(page)
      hub.policySource.isAway = true
      await heading(page, 'Nothing can be shown now')
      await shown(page).toMatch(/cannot be decided while the policies cannot be read[\s\S]*policies_unavailable/)
      expect(await page.locator('body').innerText()).not.toMatch(/eu-prod|Europe/)
      await page.goto(`${base}/access/me`)
      await page.getByText('No cluster is shown until they can.').waitFor()
      await retryNow(page.getByRole('status'), () => {
        hub.policySource.isAway = false
      })
      await page.getByText('No cluster is shown until they can.').waitFor({ state: 'detached' })
      await page.goto(`${base}/`)
      await heading(page, '3 of 6 clusters need you')
    })

    it('tells of an empty fleet the way to its reason', async () => {
      lookAs({ ...alice, username: 'eve', groups: ['guests'] })
      const page = await visit('/')
      await page.getByText('No cluster is shown to you').waitFor()
      expect(await page.locator('main').innerText()).not.toMatch(/kubeconfig/)
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
      await expect
        .poll(() => page.url(), patient)
        .toBe(`${base}/access/why?cluster=eu-prod-1&type=namespaces&name=billing`)
      await shown(page).toMatch(
        /filtered by name, and this name does not pass[\s\S]*clusterpulse\/developers[\s\S]*rule 1[\s\S]*[0-9a-f]{16}[\s\S]*only those named payments or shop[\s\S]*audit-week[\s\S]*is not valid yet[\s\S]*valid from 2031/,
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
      await page.getByLabel('In groups').fill('developers, guests')
      await page.getByRole('button', { name: 'Explain' }).click()
      await page.getByText('bob may not see cluster edge-07').waitFor()
      await expect
        .poll(() => hub.gateway.requests.some((path) => path.includes('as=bob&groups=developers%2Cguests')), patient)
        .toBe(true)
      await page.getByRole('link', { name: 'clusterpulse/developers' }).click()
      await heading(page, 'clusterpulse/developers')
    })

    it('lists what one may see, and by which policies', async () => {
      lookAs(alice)
      const page = await visit('/access/me')
      await expect
        .poll(() => rowNames(page), patient)
        .toEqual(['Europe production 1', 'Europe production 2', 'us-stage'])
      await shown(page).toMatch(
        /known as alice[\s\S]*You see 3 clusters[\s\S]*limited[\s\S]*clusterpulse\/developers[\s\S]*names your group developers/,
      )
      await hub.policies.resync([])
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
          'clusterpulse/on-call',
          'clusterpulse/audit-week',
          'clusterpulse/developers',
          'clusterpulse/broken',
          'team-b/everybody',
        ])
      await shown(page.locator('tr', { hasText: 'broken' })).toMatch(/Error[\s\S]*1 error/)
      await page.getByLabel('Filter policies').fill('effect:Deny')
      await expect.poll(() => rowNames(page), patient).toEqual(['clusterpulse/no-contractors'])
      await page.getByRole('link', { name: 'clusterpulse/no-contractors' }).click()
      await heading(page, 'clusterpulse/no-contractors')
      await shown(page).toMatch(/whose name matches \^eu-prod-[\s\S]*denies the whole cluster/)
      await page.goto(`${base}/access/policies/clusterpulse/broken`)
      await page.getByText('cluster_rules[0].cluster_selector.matchPattern').first().waitFor()
      await page.goto(`${base}/access/policies/no/such`)
      await page.getByText('There is no such policy').waitFor()
    })

    it.each(['/access', '/access/seen', '/access/try', '/access/policies/a/b'])(
      'keeps %s from everybody else',
      async (path) => {
        lookAs(alice)
        const page = await visit(path)
        await page.getByText('This page is for administrators').waitFor()
        await expect
          .poll(() => page.getByRole('navigation', { name: 'Access' }).getByRole('link').allInnerTexts(), patient)
          .toEqual(['My access', 'Why?'])
        expect(hub.gateway.requests.filter((request) => request.startsWith('/api/v2/access'))).toEqual([])
      },
    )

    it('looks through the eyes of somebody: told on every page, ended by a button', async () => {
      const page = await visit('/access/seen')
      await page.getByLabel('Person').fill('alice')
      await page.getByLabel('In groups').fill('developers')
      await page.getByRole('button', { name: 'What do they see?' }).click()
      await page.getByText('alice (developers) sees 3 of 6 clusters').waitFor()
      await shown(page.locator('tr', { hasText: 'eu-prod-1' })).toMatch(/limited[\s\S]*2\/6[\s\S]*0\/3/)
      await page.getByRole('button', { name: 'View as alice' }).click()
      await heading(page, /3 clusters/)
      await expect.poll(() => rowNames(page), patient).toEqual(seenByDevelopers)
      const banner = page.getByRole('complementary', { name: 'Looking through other eyes' })
      for (const path of ['/', '/clusters/eu-prod-1', '/access/me', '/no/such/page']) {
        await page.goto(`${base}${path}`)
        await banner.waitFor()
        await shown(banner).toMatch(/through the eyes of alice \(groups developers\): reading only · 1[45]:\d\d left/)
      }
      await page.goto(`${base}/clusters/lab`)
      await banner.getByRole('button', { name: 'Stop' }).click()
      await banner.waitFor({ state: 'detached' })
      await heading(page, 'lab')
    })

    it('comes back to the own eyes by itself when the time is over, and says so', { tags: ['long'] }, async () => {
      const page = await visit('/access/seen?user=alice&groups=developers')
      await page.getByRole('button', { name: 'View as alice' }).click()
      const banner = page.getByRole('complementary', { name: 'Looking through other eyes' })
      await banner.waitFor()
      hub.pass(14.7 * minute)
      await page.goto(base)
      await banner.getByText(/0:[01]\d left/).waitFor()
      await banner.waitFor({ state: 'detached' })
      const ended = page.getByRole('complementary', { name: 'Your own eyes' })
      await ended.getByText('no longer through those of alice').waitFor()
      await expect.poll(() => rowNames(page), patient).toHaveLength(6)
      await page.reload()
      await ended.getByRole('button', { name: 'Dismiss' }).click()
      await ended.waitFor({ state: 'detached' })
    })

    it('reads the policies again while they are shown', async () => {
      const page = await visit('/access')
      await expect.poll(() => rowNames(page), patient).toHaveLength(6)
      await endOnCall()
      await page.getByRole('button', { name: 'Read again' }).click()
      await expect.poll(() => rowNames(page), patient).toHaveLength(5)
    })

    it('shows what a change would do, from a dropped file, and stores nothing', async () => {
      const page = await visit('/access/try')
      const button = page.getByRole('button', { name: 'Show what would change' })
      await page.getByText('Nothing tried yet').waitFor()
      await expect.poll(() => button.isDisabled(), patient).toBe(true)
      const file = join(built.root, 'policy.yaml')
      writeFileSync(file, narrower)
      await page.locator('input[type=file]').setInputFiles(file)
      await expect.poll(() => page.getByLabel(/^Policies as YAML/).inputValue(), patient).toBe(narrower.trim())
      await button.click()
      await expect.poll(() => rowNames(page), patient).toContain('anybody in developers')
      await shown(page).toMatch(/Something would change for \d+ of \d+ pairs of subject and cluster/)
      await shown(page).toMatch(/filtered without filters shows nothing[\s\S]*rules\[0\]\.resources\[0\]/)
      await shown(page.locator('tr', { hasText: 'eu-prod-1' }).first()).toMatch(/less[\s\S]*limited[\s\S]*2\s*then\s*0/)
      await page.getByLabel(/^Policies as YAML/).fill('{{')
      await page.keyboard.press('Control+Enter')
      await page.getByText(/Flow map in block collection .* at line 1, column 3/).waitFor()
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

    it('says of each page why it has no answer', { tags: ['long'] }, async () => {
      hub.gateway.refuse = { status: 403, code: 'viewing_as', error: 'reading only' }
      const page = await visit('/access/seen?user=alice')
      await page.locator('main, .state').getByText('reading only').first().waitFor()
      for (const path of ['/access', '/access/me', '/access/seen?user=alice', '/access/why?cluster=west']) {
        hub.gateway.refuse = null
        await page.goto(`${base}/`)
        await live(page)
        hub.gateway.refuse = { status: 500, code: 'unexpected', error: 'something broke' }
        await page.goto(`${base}${path}`)
        await page.getByRole('alert').getByText('something broke').waitFor()
        await retryNow(page.getByRole('alert'), () => {
          hub.gateway.refuse = null
        })
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
      await page.getByLabel(/^Policies as YAML/).fill(narrower)
      await page.keyboard.press('Control+Enter')
      await page.locator('tbody [data-row-link]').first().waitFor()
    }

    it('gives axe nothing to complain of, in both themes, and fits 320 px without scrolling sideways', {
      tags: ['long'],
    }, async () => {
      const page = await visit('/access')
      const check = async (where: string) => expect(await complaintsOf(page), where).toEqual([])
      const settle = async (path: string) => {
        await goTo(page, `${base}${path}`)
        await live(page)
        await page.locator('h1').waitFor()
        await expect.poll(() => page.locator('.skeleton:visible').count(), patient).toBe(0)
        await check(path)
      }
      const fits = async (where: string) => expect(await excessAt320(page), where).toBeLessThanOrEqual(0)
      for (const path of paths) {
        await settle(path)
        await fits(path)
      }
      await tryIt(page)
      await check('a tried change')
      await fits('a tried change')
      await page.goto(`${base}/access/seen?user=alice&groups=developers`)
      await page.getByRole('button', { name: 'View as alice' }).click()
      await page.getByRole('complementary', { name: 'Looking through other eyes' }).waitFor()
      for (const path of [
        '/',
        '/access',
        '/clusters/eu-prod-1',
        '/clusters/eu-prod-1/nodes/worker-1',
        '/clusters/eu-prod-1/operators',
      ])
        await settle(path)
      await page.goto(`${base}/`)
      await live(page)
      await hub.policies.put(
        { ...policy('developers'), cluster_rules: policy('developers').cluster_rules?.slice(1) ?? [] },
        {},
      )
      await page.getByText('What you may see has changed.').waitFor()
      await page.getByRole('button', { name: 'Signed in as alice' }).click()
      await check('the note and the menu')
      await openHubWithSignIn()
      await page.goto(`${base}/`)
      await heading(page, 'Sign in to see the fleet')
      await page.getByLabel('User name').fill('admin')
      await page.getByLabel('Password').fill('wrong')
      await page.keyboard.press('Enter')
      await page.getByText('User name or password is wrong.').waitFor()
      await check('sign-in')
      await fits('sign-in')
    })

    it('is worked by keyboard alone', async () => {
      const page = await visit('/access')
      const focused = () => page.evaluate<string>('document.activeElement.textContent')
      await expect.poll(() => rowNames(page), patient).toHaveLength(6)
      await page.keyboard.press('j')
      await page.keyboard.press('j')
      await expect.poll(focused, patient).toBe('clusterpulse/on-call')
      await page.keyboard.press('Enter')
      await heading(page, 'clusterpulse/on-call')
      await expect.poll(focused, patient).toBe('clusterpulse/on-call')
      await page.keyboard.press('g')
      await page.keyboard.press('a')
      await heading(page, 'What may I see?')
      await page.goBack()
      await heading(page, 'clusterpulse/on-call')
      await page.keyboard.press('Control+k')
      await page.keyboard.type('what may')
      await page.getByRole('option', { name: /What may I see/, selected: true }).waitFor()
      await page.keyboard.press('Enter')
      await heading(page, 'What may I see?')
    })
  })
})
