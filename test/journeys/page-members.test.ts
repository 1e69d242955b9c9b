import { readFileSync } from 'node:fs'
import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import type { ServedMembers } from '#api'
import { approve } from '#certificates'
import { AUTHORITY_LOST } from '#model'
import { certificateRequests } from '../../src/control/joining/certificate-request.ts'
import { managedClusters } from '../../src/control/joining/members.ts'
import { aMember, SomeMembers } from '../../src/pipeline/api/test/members.ts'
import { buildPage, noBrowser } from '../../web/testing/browser.ts'
import { complaintsOf } from '../page/axe.ts'
import { aCluster } from '../page/clusters.ts'
import { PageHub } from '../page/hub.ts'
import { aMemberHub, type MembersOfPage } from '../page/joining.ts'
import { patient, shown } from '../page/shown.ts'
import { Visits } from '../page/visits.ts'

/** Somebody on another page. */
const by = { username: 'ann', requestId: 'elsewhere' }

const suite = noBrowser === undefined ? 'members on the page' : `members on the page (skipped: ${noBrowser})`
const DAY_MS = 86_400_000

describe.skipIf(noBrowser !== undefined)(suite, () => {
  let built: ReturnType<typeof buildPage>
  let visits: Visits
  let hub: PageHub
  let base: string
  beforeAll(() => {
    built = buildPage()
  })
  beforeAll(async () => {
    visits = await Visits.open()
  })
  afterAll(async () => {
    await visits?.[Symbol.asyncDispose]()
    built?.[Symbol.dispose]()
  })
  afterEach(async () => {
    const complaints = await visits.leave()
    await hub[Symbol.asyncDispose]()
    expect(complaints).toEqual([])
  })
  async function open(members?: ServedMembers): Promise<void> {
    hub = await PageHub.open({ root: built.root, ...(members && { members }) })
    base = await hub.gateway.start()
  }
  const rowNames = (page: Page) => page.locator('tbody [data-row-link]').allInnerTexts()
  const dialog = (page: Page) => page.getByRole('dialog')

  describe('of a hub that clusters join', () => {
    let members: MembersOfPage
    beforeEach(async () => {
      members = await aMemberHub()
      await open(members.served)
    })
    afterEach(() => members[Symbol.asyncDispose]())

    it('shows who asks as they come, signs for neither of two of one name until one is chosen, and makes it a member', async () => {
      const page = await visits.visit(`${base}/members`)
      await page.getByText('Nobody asks to join.').waitFor()
      await page.getByText('No cluster is a member yet').waitFor()
      await members.asks('edge-7', '10.0.0.1')
      await members.asks('edge-7', '10.6.6.6')
      await page.getByRole('heading', { name: '2 requests to join' }).waitFor()
      await shown(page).toContain('2 requests: only one of them is edge-7')
      await page.getByRole('link', { name: /^Members 2 requests to join/ }).waitFor()
      const mine = page.locator('.request', { hasText: '10.0.0.1' })
      expect(await page.locator('.request').count()).toBe(2)
      // By keyboard alone: the question says what it does, Escape leaves all as it was.
      await mine.getByRole('button', { name: /^Accept edge-7, key [0-9a-f]{16}$/ }).focus()
      await page.keyboard.press('Enter')
      await dialog(page).getByText('The hub signs a certificate for this key').waitFor()
      await shown(dialog(page)).toContain('10.0.0.1')
      await page.keyboard.press('Escape')
      await dialog(page).waitFor({ state: 'detached' })
      expect(await page.locator('.request').count()).toBe(2)
      await page.keyboard.press('Enter')
      await dialog(page).getByRole('button', { name: 'Accept edge-7' }).click()
      await page.getByRole('status').getByText('edge-7 is accepted as a member').waitFor()
      await page.getByRole('heading', { name: '1 request to join' }).waitFor()
      await shown(page.locator('.request')).toContain('10.6.6.6')
      await expect.poll(() => rowNames(page), patient).toEqual(['edge-7'])
      await page.locator('.request').getByRole('button', { name: /^Deny/ }).click()
      await dialog(page).getByRole('button', { name: 'Deny edge-7' }).click()
      await page.getByText('Nobody asks to join.').waitFor()
      expect((await members.kube.get(managedClusters, { name: 'edge-7' }))?.spec?.hubAcceptsClient).toBe(true)
    })

    it('says how a member lives, by which certificate, and what it may; revokes and detaches it after saying what that does', async () => {
      const asked = await members.asks('edge-8', '10.0.0.2')
      await members.served.decide('accept', { cluster: 'edge-8', by })
      for await (const step of members.desk.ask(asked, AbortSignal.timeout(60_000))) if (step.kind === 'joined') break
      const page = await visits.visit(`${base}/members`)
      await page.locator('tbody').getByRole('link', { name: 'edge-8' }).click()
      await page.getByRole('heading', { level: 1, name: 'edge-8' }).waitFor()
      await shown(page).toContain('HubAcceptedManagedCluster')
      await shown(page).toMatch(/Accepted by hub cluster admin/)
      await shown(page.getByRole('region', { name: 'Certificate' })).toMatch(/Ends\s+in 29 d|Ends\s+in 30 d/)
      await shown(page.getByRole('region', { name: 'Certificate' })).toMatch(/Next renewal\s+in (19|20) d/)
      await shown(page.getByRole('region', { name: 'Rights of its agent on the hub' })).toContain(
        'works in its namespace',
      )
      await shown(page.getByRole('region', { name: 'What it is' })).toContain('default, global')
      await page.getByRole('button', { name: 'Revoke…' }).click()
      await shown(dialog(page)).toContain('must join anew with a new join token')
      await dialog(page).getByRole('button', { name: 'Revoke edge-8' }).click()
      await page.getByRole('status').getByText('no certificate of edge-8 counts any more').waitFor()
      await page.getByText('Revoked', { exact: true }).first().waitFor()
      await shown(page.getByRole('region', { name: 'Rights of its agent on the hub' })).toContain('and nothing else')
      await page.getByRole('button', { name: 'Detach…' }).click()
      await shown(dialog(page)).toContain('cleaned up in order')
      await dialog(page).getByRole('button', { name: 'Detach edge-8' }).click()
      await page.getByText('There is no such member').waitFor()
      expect(await members.kube.get(managedClusters, { name: 'edge-8' })).toBeUndefined()
    })

    it('keeps a request that was approved alone in view, with what is missing, until it is accepted or turned down', async () => {
      for (const [name, address] of [
        ['edge-1', '10.0.0.1'],
        ['edge-2', '10.0.0.2'],
      ] as const)
        await members.asks(name, address)
      for (const request of await members.kube.listAll(certificateRequests))
        await approve(members.kube, request, { reason: 'KubectlApprove', message: 'by kubectl' })
      const page = await visits.visit(`${base}/members/edge-1`)
      const request = page.locator('.request')
      await shown(request).toContain('Its certificate is approved; the cluster is not accepted yet.')
      await shown(page.getByRole('region', { name: 'Certificate' })).toContain('None counts yet')
      await page.getByRole('link', { name: /^Members 2 requests to join/ }).waitFor()
      await request.getByRole('button', { name: /^Deny/ }).click()
      await shown(dialog(page)).toContain('that its certificate was approved counts no more')
      await dialog(page).getByRole('button', { name: 'Deny edge-1' }).click()
      await page.getByRole('status').getByText('was approved already, and is turned down now').waitFor()
      await request.waitFor({ state: 'detached' })
      await page.getByText('Denied', { exact: true }).first().waitFor()
      await shown(page.getByRole('region', { name: 'Certificate' })).toContain(
        'None counts: the cluster is not accepted.',
      )
      // Nobody waits under its name: no key is compared.
      await page.getByRole('button', { name: 'Accept…' }).click()
      await shown(dialog(page)).toContain('when it asks with a new join token')
      expect(await dialog(page).innerText()).not.toContain('key')
      await page.keyboard.press('Escape')
      await page.goto(`${base}/members/edge-2`)
      await request.getByRole('button', { name: /^Accept/ }).click()
      await shown(dialog(page)).toContain('The certificate for this key is approved already')
      await dialog(page).getByRole('button', { name: 'Accept edge-2' }).click()
      await page.getByRole('status').getByText('edge-2 is accepted as a member').waitFor()
      await request.waitFor({ state: 'detached' })
      await page.getByRole('link', { name: 'Members', exact: true }).first().waitFor()
    })

    it('says of a denied member that its certificate does not count, and that it comes back when it is accepted again', async () => {
      const asked = await members.asks('edge-3', '10.0.0.3')
      await members.served.decide('accept', { cluster: 'edge-3', by })
      for await (const step of members.desk.ask(asked, AbortSignal.timeout(60_000))) if (step.kind === 'joined') break
      await members.served.decide('deny', { cluster: 'edge-3', by })
      const page = await visits.visit(`${base}/members/edge-3`)
      await page.getByText('Denied', { exact: true }).first().waitFor()
      const certificate = page.getByRole('region', { name: 'Certificate' })
      await shown(certificate).toContain(
        'None counts: the cluster is not accepted. Accepted again, the one it has counts',
      )
      await page
        .getByRole('status')
        .getByText(/Denied by ann on the page at .*Z: it has no rights on the hub; .*accept edge-3/)
        .waitFor()
      await page.getByRole('button', { name: 'Accept again…' }).click()
      await shown(dialog(page)).toContain('comes back by itself')
      expect(await dialog(page).innerText()).not.toContain('Compare the key')
      await dialog(page).getByRole('button', { name: 'Accept edge-3' }).click()
      await shown(certificate).toContain('Next renewal')
      await page.getByRole('button', { name: 'Revoke…' }).click()
      await dialog(page).getByRole('button', { name: 'Revoke edge-3' }).click()
      await shown(certificate).toContain('It was revoked: no certificate of it counts.')
      const said = page.getByRole('status').getByText(/Revoked by ada on the page at .*must join anew/)
      await said.waitFor()
      await page.goto(`${base}/members`)
      await shown(page.locator('tbody tr').filter({ hasText: 'edge-3' })).toMatch(/Revoked[\s\S]*revoked/)
      await page.goto(`${base}/members/edge-3`)
      await said.waitFor()
      await page.getByRole('button', { name: 'Accept again…' }).click()
      await shown(dialog(page)).toContain('must join anew, with a new join token')
    })

    it('says why a decision cannot be carried out, and leaves the question open', async () => {
      await members.asks('edge-9', '10.0.0.3')
      const page = await visits.visit(`${base}/members`)
      await page
        .locator('.request')
        .getByRole('button', { name: /^Accept/ })
        .click()
      const [request] = members.served.requests.requests()
      // Somebody else was faster.
      await members.served.decide('deny', { cluster: 'edge-9', request: request?.name ?? '', by })
      await dialog(page).getByRole('button', { name: 'Accept edge-9' }).click()
      await shown(dialog(page).getByRole('alert')).toMatch(
        /no request .* waits for a decision; waiting: none[\s\S]*no_request/,
      )
    })
  })

  describe('of a hub whose API says who decides', () => {
    let members: MembersOfPage
    beforeEach(async () => {
      members = await aMemberHub({ administratorsDecide: false })
      await open(members.served)
    })
    afterEach(() => members[Symbol.asyncDispose]())
    const alice = { username: 'alice', email: 'alice@example.com', groups: ['developers'] }
    const decider = parse(
      readFileSync(new URL('../../deploy/components/members/deciders.yaml', import.meta.url), 'utf8'),
    ) as object
    const rbac = '/apis/rbac.authorization.k8s.io/v1'

    it('offers decisions to whom its RBAC lets, administrator of the page or not, and takes them back with the right', {
      tags: ['long'],
    }, async () => {
      await members.kube.request('POST', `${rbac}/clusterroles`, { body: decider })
      await members.asks('edge-7', '10.0.0.1')
      const page = await visits.visit(`${base}/members`)
      // Ada administrates the page, and no more.
      await shown(page).toContain('1 request to join')
      await shown(page).toMatch(/You may not accept or deny\. What is missing at the hub’s API: .*managedclusters/)
      expect(await page.locator('.request').getByRole('button').count()).toBe(0)
      expect(await complaintsOf(page)).toEqual([])
      hub.gateway.visitor = alice
      const hers = await visits.visit(`${base}/members`)
      await hers.getByText('No member is shown to you').waitFor()
      expect(await hers.locator('.request').count()).toBe(0)
      const roleRef = {
        apiGroup: 'rbac.authorization.k8s.io',
        kind: 'ClusterRole',
        name: 'clusterpulse-member-deciders',
      }
      const subjects = [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'alice' }]
      const metadata = { name: 'alice-decides' }
      const binding = {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'ClusterRoleBinding',
        metadata,
        roleRef,
        subjects,
      }
      await members.kube.request('POST', `${rbac}/clusterrolebindings`, { body: binding })
      await hers.locator('.request').waitFor({ timeout: 60_000 })
      await hers.getByRole('button', { name: /^Accept edge-7, key/ }).click()
      await dialog(hers).getByRole('button', { name: 'Accept edge-7' }).click()
      await hers.getByRole('status').getByText('edge-7 is accepted as a member').waitFor()
      expect((await members.kube.get(managedClusters, { name: 'edge-7' }))?.spec?.hubAcceptsClient).toBe(true)
      await hers.getByText('Nobody asks to join.').waitFor()
      await members.asks('edge-8', '10.0.0.2')
      await hers.getByRole('button', { name: /^Deny edge-8, key/ }).click({ timeout: 60_000 })
      await members.kube.request('DELETE', `${rbac}/clusterrolebindings/alice-decides`)
      await expect
        .poll(() => members.served.lackedRights({ username: 'alice', groups: [] }, 'deny', 'edge-8'), patient)
        .not.toEqual([])
      await dialog(hers).getByRole('button', { name: 'Deny edge-8' }).click()
      await shown(dialog(hers).getByRole('alert')).toMatch(/alice may not deny edge-8; lacking[\s\S]*rights_missing/)
      expect(members.served.requests.requests().map(({ cluster }) => cluster)).toEqual(['edge-8'])
    })
  })

  it('cuts no word of a state, of where one is or of a button, and has the words of a row on one line', async () => {
    const asks = { state: 'not accepted yet', accepted: false, joined: false, available: null } as const
    const done = `no certificate of edge-1 counts any more: ${'it is no member and its stream ends; '.repeat(4)}`
    await open(new SomeMembers([aMember('edge-1', asks)], [], () => Promise.resolve([done])))
    const page = await visits.visit(`${base}/members`, { viewport: { width: 1440, height: 800 } })
    const word = page.locator('tbody .health-word')
    await word.waitFor()
    const [over = 9, above = 9] = (await page.evaluate(`(() => {
      const one = document.querySelector('tbody .health-word')
      const lineOf = (place) => {
        const mark = document.createElement('span')
        mark.style.cssText = 'display: inline-block; width: 0; height: 0'
        place.append(mark)
        const { bottom } = mark.getBoundingClientRect()
        mark.remove()
        return bottom
      }
      const cell = one.closest('td')
      const age = cell?.parentElement?.lastElementChild?.firstElementChild
      if (!cell || !age) throw new Error('the row has other cells')
      return [cell.scrollWidth - cell.clientWidth, lineOf(age) - lineOf(one)]
    })()`)) as number[]
    expect(over).toBeLessThanOrEqual(0)
    expect(Math.abs(above)).toBeLessThan(1)

    // A page more, as others have: the search gives way, not where one is.
    const lacks = (await page.evaluate(`(() => {
      const pages = document.querySelector('.top-pages')
      pages.append(Object.assign(document.createElement('a'), { innerText: 'One page more than here 12' }))
      return [...document.querySelectorAll('.brand-word, .crumbs li > *')].map((one) => {
        const text = document.createRange()
        text.selectNodeContents(one)
        return text.getBoundingClientRect().width - one.getBoundingClientRect().width
      })
    })()`)) as number[]
    expect(Math.max(...lacks), lacks.join()).toBeLessThanOrEqual(0)

    await page.setViewportSize({ width: 360, height: 800 })
    await page.goto(`${base}/members/edge-1`)
    await page.getByRole('button', { name: 'Revoke…' }).click()
    await dialog(page).getByRole('button', { name: 'Revoke edge-1' }).click()
    await page.getByRole('button', { name: 'Dismiss' }).waitFor()
    const lines = await page.evaluate(`(() => {
      const button = [...document.querySelectorAll('button')].find((one) => one.textContent.trim() === 'Dismiss')
      const text = document.createRange()
      text.selectNodeContents(button)
      return text.getClientRects().length
    })()`)
    expect(lines).toBe(1)
  })

  it('shows states in words, and is clean to axe with requests, members and one of them', async () => {
    const now = Date.now()
    const certificate = (left: number) => ({ from: now - (30 - left) * DAY_MS, until: now + left * DAY_MS })
    const conditions = [
      { type: 'HubAcceptedManagedCluster', status: 'True', reason: 'A', message: 'Accepted', since: now - DAY_MS },
      { type: 'ManagedClusterConditionAvailable', status: 'Unknown', reason: 'Lost', message: '', since: now - 60_000 },
    ]
    const lost = { state: 'lost', available: 'Unknown', reason: 'ManagedClusterStreamLost' } as const
    const served = new SomeMembers(
      [
        aMember('fine', { certificate: certificate(25) }),
        aMember('gone', { ...lost, conditions, taints: ['unreachable:NoSelect'], certificate: certificate(3) }),
        aMember('ill', {
          state: 'unreachable',
          available: 'False',
          claims: { 'id.k8s.io': 'x' },
          capacity: { cpu: '4' },
        }),
        aMember('leaves', { state: 'detaching' }),
        aMember('new', { state: 'not joined yet', joined: false, available: null }),
        aMember('no', { state: 'denied', accepted: false }),
      ],
      [
        ...['a', 'b'].map((digit) => ({
          ...{ name: `asks-${digit}`, cluster: 'asks', username: 'system:admin', address: '10.0.0.1' },
          ...{ key: digit.repeat(64), agentVersion: '1.2.3', requestedAt: now - 5000 },
          missing: digit === 'a' ? (['acceptance'] as const) : (['approval', 'acceptance'] as const),
        })),
      ],
    )
    await open(served)
    const page = await visits.visit(`${base}/members`)
    const words = () => page.locator('tbody tr').evaluateAll((rows) => rows.map((row) => row.textContent))
    await expect.poll(words, patient).toHaveLength(6)
    const text = (await words()).join('\n')
    for (const word of ['Lost', 'Unreachable', 'Detaching', 'Not joined yet', 'Denied', 'Available'])
      expect(text).toContain(word)
    expect(text).toContain('not renewed')
    expect((await rowNames(page))[0]).toBe('gone')
    expect(await complaintsOf(page)).toEqual([])
    served.set([aMember('gone', { certificate: certificate(3) })])
    await expect.poll(words, patient).toEqual([expect.stringContaining('Available')])
    await page.goto(`${base}/members/gone`)
    await page.getByRole('heading', { level: 1, name: 'gone' }).waitFor()
    await shown(page).toContain('ought to have been renewed')
    expect(await complaintsOf(page)).toEqual([])
  })

  it('says of when members are while nobody judges them, on each page that shows them', async () => {
    const served = new SomeMembers([aMember('east')])
    await open(served)
    await hub.fill([aCluster('east', hub.now(), { ageMs: 0, rounds: 2 })])
    served.say({
      ...{ since: hub.now() - 3 * 60_000, code: 'members_not_judged' },
      message: 'no manager of this hub judges members',
    })
    const page = await visits.visit(`${base}/members`)
    const notice = page.locator('.notice', { hasText: 'Not updated.' })
    const words = /No manager of this hub judges members\.? members_not_judged\. All of it is as of 3 min ago/
    await shown(notice).toMatch(words)
    expect(await page.locator('tbody tr.dim').count()).toBe(1)
    expect(await complaintsOf(page)).toEqual([])
    await page.goto(`${base}/members/east`)
    await shown(notice).toMatch(words)
    await page.goto(base)
    await shown(page.locator('.attention')).toMatch(/Whether members need somebody is not known: no manager/)
    await page.goto(`${base}/members`)
    served.say(undefined)
    await expect.poll(() => notice.count(), patient).toBe(0)
    await expect.poll(() => page.locator('tbody tr.dim').count(), patient).toBe(0)
  })

  it('says of a hundred members that are lost at once in one line, and of late certificates in another, with age and link', async () => {
    const now = Date.now()
    const names = Array.from({ length: 100 }, (_, place) => `edge-${String(place).padStart(3, '0')}`)
    const lost = (name: string) =>
      aMember(name, {
        ...{ state: 'lost', available: 'Unknown', reason: 'ManagedClusterStreamLost', since: now - 3 * 60_000 },
      })
    const late = ['north', 'south'].map((name) =>
      aMember(name, { certificate: { from: now - 27 * DAY_MS, until: now + 3 * DAY_MS } }),
    )
    const served = new SomeMembers([...names.map((name) => aMember(name)), ...late])
    await open(served)
    await hub.fill(names.slice(0, 12).map((name) => aCluster(name, hub.now(), { ageMs: 0, rounds: 2 })))
    const page = await visits.visit(base)
    const entries = page.locator('.attention > ul > li')
    await expect.poll(() => entries.count(), patient).toBe(1)
    await shown(entries.first()).toMatch(
      /2 members: certificates were not renewed in time, and end soon or have ended.*first 3 d ago/s,
    )
    const ended = { ...lost('ended'), reason: AUTHORITY_LOST }
    served.set([...names.map(lost), ended, ...late])
    // Their clusters are old by then, too: still it is one line.
    hub.pass(3_600_000)
    await shown(entries.first()).toMatch(/ended must join anew: .* authority of its certificate.*63 min ago/s)
    await shown(entries.nth(1)).toMatch(/100 members lost: nothing is heard of them.*first 63 min ago/s)
    await expect.poll(() => entries.count(), patient).toBe(3)
    await entries.nth(1).locator('summary').click()
    await entries.nth(1).getByRole('button', { name: 'all 100 in the table' }).click()
    await page.getByRole('heading', { level: 1, name: 'Members' }).waitFor()
    await shown(page).toContain('100 of 103 members')
    await page.goto(`${base}/members?q=renewBy%3E0s`)
    await expect.poll(() => rowNames(page), patient).toEqual(['north', 'south'])
  })

  it('keeps to a set of clusters: on the fleet, in lists over it and in events, as the address says', async () => {
    const served = new SomeMembers([
      aMember('east', { sets: ['default', 'global'] }),
      aMember('west', { sets: ['global', 'prod'] }),
    ])
    await open(served)
    await hub.fill(['east', 'west'].map((name) => aCluster(name, hub.now(), { ageMs: 0, rounds: 2 })))
    const page = await visits.visit(base)
    await expect.poll(() => rowNames(page), patient).toEqual(['east', 'west'])
    await page.getByLabel('Set').selectOption('prod')
    await expect.poll(() => rowNames(page), patient).toEqual(['west'])
    await page.getByRole('heading', { level: 1, name: /in prod/ }).waitFor()
    await expect.poll(() => page.url(), patient).toContain('set=prod')
    await page.goto(`${base}/types/nodes?view=rows&set=prod`)
    const clusters = () =>
      page.locator('tbody tr').evaluateAll((rows) => rows.map((row) => /east|west/.exec(row.textContent ?? '')?.[0]))
    await expect.poll(async () => [...new Set(await clusters())], patient).toEqual(['west'])
    served.set([aMember('east', { sets: ['prod'] }), aMember('west', { sets: ['global'] })])
    await expect.poll(async () => [...new Set(await clusters())], patient).toEqual(['east'])
    await page.goto(`${base}/events?set=prod`)
    await page.getByRole('heading', { level: 1, name: 'Events' }).waitFor()
    await expect.poll(async () => [...new Set(await clusters())].filter(Boolean), patient).toEqual(['east'])
    await page.goto(`${base}/?set=nowhere`)
    await page.getByText('There is no set nowhere').waitFor()
    await page.getByRole('button', { name: 'All clusters' }).click()
    await expect.poll(() => rowNames(page), patient).toEqual(['east', 'west'])
  })

  it('shows others the members of their clusters, without requests and decisions', async () => {
    await open(new SomeMembers([aMember('fine')]))
    hub.gateway.visitor = { username: 'alice', email: 'alice@example.com', groups: ['developers'] }
    const page = await visits.visit(`${base}/members`)
    await page.getByText('No member is shown to you').waitFor()
    expect(await page.getByText('Nobody asks to join').count()).toBe(0)
  })

  it('tells a hub without members, one that does not know them yet, and one that cannot be reached apart', async () => {
    await open()
    await hub.fill([aCluster('west', hub.now(), { ageMs: 0, rounds: 2 })])
    const page = await visits.visit(`${base}/members`)
    await page.getByText('This hub looks after no members').waitFor()
    await hub[Symbol.asyncDispose]()
    const served = new SomeMembers([aMember('fine')])
    served.isKnown = false
    await open(served)
    await page.goto(`${base}/members`)
    await page.getByText('The members are not known yet').waitFor()
    served.isKnown = true
    served.set([aMember('fine')])
    await expect.poll(() => rowNames(page), patient).toEqual(['fine'])
    hub.gateway.refuse = { status: 503, code: 'store_unavailable', error: 'the store is away' }
    hub.gateway.only = /rows\/member/
    await page.goto(`${base}/members`)
    await page.getByRole('alert').getByText('The members could not be loaded').waitFor()
  })
})
