import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { policiesOfManifest } from '#access'
import type { ApiOptions } from '#api'
import type { TableRow } from '#model'
import { buildPage, noBrowser } from '../../web/testing/browser.ts'
import { pageBefore } from '../../web/testing/page-before.ts'
import { complaintsOf, excessAt320 } from '../page/axe.ts'
import { aCluster, demoFleet } from '../page/clusters.ts'
import { aCatalog, certificates, claimRows, claims, collected, withDeclared, withTables } from '../page/declared.ts'
import type { Gateway } from '../page/gateway.ts'
import { administrator, PageHub, type PageHubOptions } from '../page/hub.ts'
import { developers } from '../page/policies.ts'
import { patient, retryNow, shown } from '../page/shown.ts'
import { goTo, type VisitOptions, Visits } from '../page/visits.ts'
import { clusterpulse } from '../process.ts'

const allTypes = ['certificate', 'Cluster operators', 'Deployments', 'Namespaces', 'Nodes', 'Operators', 'pvc']
const suite = noBrowser === undefined ? 'types on the page' : `types on the page (skipped: ${noBrowser})`
const alice = { username: 'alice', email: 'alice@example.com', groups: ['developers'] }

describe.skipIf(noBrowser !== undefined)(suite, () => {
  let built: ReturnType<typeof buildPage>
  let visits: Visits
  let shared: PageHub
  let sharedBase: string
  let began: number
  let hub: PageHub
  let gateway: Gateway
  let base: string
  const open: (() => Promise<void>)[] = []
  /** clusters on which a declaration was tried */
  const tried: string[] = []

  /** The way into clusters: claims, wherever there is one. */
  const trySource: ApiOptions['trySource'] = (cluster, source) => {
    tried.push(cluster)
    const report = { missing: 2, malformed: 0, example: '' }
    const reports = [
      { ...report, field: 'capacity' },
      { field: 'storageClass', missing: 3, malformed: 1, example: '[object]' },
    ]
    const rows = () => collected(source, claimRows(20, began), { reports })
    return Promise.resolve(cluster === 'lab' ? undefined : rows())
  }
  beforeAll(async () => {
    built = buildPage()
    visits = await Visits.open()
    const catalog = await aCatalog(claims, certificates)
    shared = await PageHub.open({ root: built.root, history: true, catalog, trySource })
    began = shared.now()
    await shared.fill(withDeclared(demoFleet(began), began))
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
    tried.splice(0)
  })
  afterEach(async () => {
    const complaints = await visits.leave()
    for (const close of open.splice(0)) await close()
    if (hub !== shared) await hub[Symbol.asyncDispose]()
    Object.assign(shared.gateway, { visitor: administrator, refuse: null, only: /^\/api\// })
    expect(complaints).toEqual([])
  })

  /** A hub of this test alone, which changes it. */
  async function openHub(options: Omit<PageHubOptions, 'root'> = {}): Promise<void> {
    hub = await PageHub.open({ root: built.root, ...options })
    gateway = hub.gateway
    base = await gateway.start()
  }
  const west = (rows: readonly TableRow[]) =>
    withTables(
      aCluster('eu-prod-1', hub.now(), { displayName: 'Europe production 1', ageMs: 0, rounds: 2 }),
      collected(claims, rows),
    )
  /** One cluster, with forty claims. */
  async function openWest(): Promise<void> {
    await openHub({ catalog: await aCatalog(claims) })
    await hub.fill([west(claimRows(40, began))])
  }
  /** Types and rows are refused, and nothing else. */
  const refuseTypes = (status: number, code: string, error: string) => {
    gateway.only = /^\/api\/v2\/(clusters\/[^/]+\/)?types/
    gateway.refuse = { status, code, error }
  }

  const visit = (path: string, options?: VisitOptions) => visits.visit(`${base}${path}`, options)
  const rowNames = (page: Page) => page.locator('tbody [data-row-link]').allInnerTexts()
  const heading = (page: Page, name: string | RegExp) => page.getByRole('heading', { level: 1, name }).waitFor()
  const live = (page: Page) => page.getByRole('button', { name: /^Connection: Live/ }).waitFor({ state: 'attached' })
  const lookAs = (visitor: typeof alice) => {
    gateway.visitor = visitor
  }
  const count = (page: Page, text: string) => page.locator('.count').getByText(text, { exact: true }).waitFor()
  const tile = (page: Page, title: string) =>
    page.locator('.tile', { has: page.getByText(title, { exact: true }) }).locator('.tile-value')
  const replaceText = (page: Page, from: string, to: string) =>
    page.evaluate(`{
      const box = document.querySelector('.code textarea')
      const [from, to] = ${JSON.stringify([from, to])}
      const at = box.value.indexOf(from)
      box.focus()
      box.setSelectionRange(at, at + from.length)
      document.execCommand('insertText', false, to)
    }`)

  describe('the list', () => {
    it('names each type with its clusters, its trouble, its rows and numbers of all clusters', async () => {
      const page = await visit('/types')
      await heading(page, 'Collected types')
      await expect.poll(() => rowNames(page), patient).toEqual(allTypes)
      const pvc = page.locator('tbody tr', { hasText: 'PersistentVolumeClaim' })
      for (const words of [/3 of 4/, /2 clusters/, /5,240/, /472 Ti\s+total capacity/]) await shown(pvc).toMatch(words)
      // What is compiled in is read where it is served, which need not be everywhere.
      await shown(page.locator('tbody tr', { hasText: 'Cluster operators' })).toMatch(/built in/)
      expect(await page.getByText('every cluster has it').count()).toBe(0)
      await expect
        .poll(
          () => page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Types' }).count(),
          patient,
        )
        .toBe(1)
    })

    it('tells an administrator how to declare the first, and others that nothing is shared', async () => {
      const { policies } = policiesOfManifest(developers, { now: began })
      await openHub({ policies, catalog: await aCatalog() })
      const page = await visit('/types')
      await page.getByText('Nothing is declared yet').waitFor()
      await shown(page.locator('.manifest-example')).toContain('kind: MetricSource')
      await page.getByRole('link', { name: 'Open the editor' }).click()
      await heading(page, 'Declare a type')
      lookAs(alice)
      const other = await visit('/types')
      await other.getByText('No type is shared with you').waitFor()
      expect(await other.getByRole('link', { name: /Declare|editor/ }).count()).toBe(0)
      await other.goto(`${base}/`)
      await live(other)
      expect(await other.getByRole('link', { name: 'Types' }).count()).toBe(0)
      await other.goto(`${base}/types/new`)
      await other.getByText('This page is for administrators').waitFor()
    })

    it('says what went wrong, and shows the types when they can be asked for again', async () => {
      refuseTypes(500, 'unexpected', 'something broke')
      const page = await visit('/types')
      await page.getByRole('alert').getByText('something broke').waitFor()
      await retryNow(page.getByRole('alert'), () => {
        gateway.refuse = null
      })
      await expect.poll(() => rowNames(page), patient).toEqual(allTypes)
    })
  })

  describe('one type over all clusters', () => {
    it('adds up what adds up, and leaves averages to the clusters', async () => {
      const page = await visit('/types/pvc')
      await heading(page, 'pvc')
      await shown(tile(page, 'Total pvcs')).toBe('5,240')
      await shown(tile(page, 'Max capacity')).toBe('500 Gi')
      expect(await tile(page, 'Average used').count()).toBe(0)
      await shown(page).toContain('Average used: of each cluster, below')
      await page.getByRole('link', { name: 'Europe production 1' }).click()
      await heading(page, 'Europe production 1')
      await page.getByRole('heading', { level: 2, name: 'pvc' }).waitFor()
    })

    it('shows collected, in part, empty and forbidden as four things', async () => {
      const page = await visit('/types/pvc')
      const state = (cluster: string) => page.locator('tbody tr', { hasText: cluster }).locator('td').nth(0)
      await shown(state('eu-prod-1')).toBe('Collected')
      await shown(state('eu-prod-2')).toBe('In part\ntruncated, 2 errors')
      await shown(state('lab')).toBe('None there')
      await shown(state('us-stage')).toBe('Forbidden')
      const marks = await page.evaluate<string[]>(
        `[...document.querySelectorAll('tbody tr td:nth-child(2) svg')].map((one) => one.innerHTML)`,
      )
      expect(new Set(marks).size).toBe(4)
    })

    it('is found by another of its names, whose address becomes that of the type', async () => {
      const page = await visit('/types/node?tab=clusters')
      await expect.poll(() => page.url(), patient).toBe(`${base}/types/nodes?tab=clusters`)
      await heading(page, 'Nodes')
      await page.goto(`${base}/clusters/eu-prod-1/types/ns`)
      await expect.poll(() => page.url(), patient).toMatch(/\/clusters\/eu-prod-1\/(types\/)?namespaces$/)
      await page.locator('tbody').getByText('payments').waitFor()
    })

    it('says of an unknown type that it may be hidden', async () => {
      const page = await visit('/types/nothing')
      await page.getByText('There is no such type, or you may not see it').waitFor()
    })
  })

  describe('one type on a cluster', () => {
    it('is asked for beside the scripts and the stream: none of them waits for another', async () => {
      const page = await visit('/')
      // What the worker of the stream asks for itself, a browser does not let a test hold.
      const parts = [/cluster-page-/, /cluster-types-/, /stream-worker-/, /v2\/types\?cluster=/, /types\/nodes\?/]
      const missing = new Set(parts)
      let release: () => void = () => undefined
      const allAsked = new Promise<void>((done) => {
        release = done
      })
      for (const part of parts)
        await page.context().route(part, async (route) => {
          missing.delete(part)
          if (missing.size === 0) release()
          await allAsked
          await route.continue()
        })
      await page.goto(`${base}/clusters/eu-prod-1/nodes`)
      await allAsked
      await expect.poll(() => rowNames(page), patient).not.toHaveLength(0)
      await page.context().unrouteAll()
    })

    it('is found by the tab of the cluster', async () => {
      const page = await visit('/clusters/eu-prod-1')
      await page.getByRole('navigation', { name: 'Parts of this cluster' }).getByRole('link', { name: 'Types' }).click()
      await expect.poll(() => rowNames(page), patient).toEqual(['certificate', 'pvc'])
      await page.locator('tbody').getByRole('link', { name: 'pvc', exact: true }).click()
      await shown(tile(page, 'Total capacity')).toBe('450 Ti')
      await expect.poll(() => page.url(), patient).toBe(`${base}/clusters/eu-prod-1/types/pvc`)
    })

    it('sorts and filters at the hub, and loads further rows as one scrolls', async () => {
      const page = await visit('/clusters/eu-prod-1/types/pvc')
      await count(page, '5,000 rows')
      const box = page.locator('.table-scroll')
      // A piece that is read again is the same piece.
      const asked = () => new Set(gateway.requests.flatMap((path) => /cursor=[^&]*/.exec(path)?.[0] ?? [])).size
      await page
        .locator('.count')
        .getByText(/loaded, more as you scroll/)
        .waitFor()
      expect(asked()).toBeLessThanOrEqual(1)
      await expect
        .poll(async () => {
          await box.evaluate((element) => element.scrollTo(0, element.scrollHeight))
          expect(await box.getByRole('row').count()).toBeLessThan(120)
          return page.locator('tbody tr[data-index="4999"]').count()
        }, patient)
        .toBe(1)
      await page
        .locator('.count')
        .getByText(/loaded, more/)
        .waitFor({ state: 'detached' })
      expect(asked()).toBe(5)

      await page.getByRole('button', { name: 'capacity', exact: true }).click()
      await shown(page.locator('tbody tr').first()).toContain('500 Gi')
      await expect
        .poll(() => gateway.requests.some((asked) => /sort=capacity&order=desc/.test(asked)), patient)
        .toBe(true)
      await page.getByLabel('Filter pvc rows').fill('phase:Pending namespace:payments')
      await count(page, '59 of 5,000 rows')
      await expect
        .poll(() => gateway.requests.some((asked) => asked.includes('where=phase%3DPending')), patient)
        .toBe(true)
      await page.getByLabel('Filter pvc rows').fill('phsae:me')
      await page.getByText(/phsae:me is left out/).waitFor()
      await page.getByLabel('Filter pvc rows').fill('phase:Pendign')
      await page.getByText('phase:Pendign: did you mean phase:Pending?').waitFor()
      await expect
        .poll(() => page.getByLabel('Filter pvc rows').getAttribute('placeholder'), patient)
        .toMatch(/^phase:(Bound|Pending) /)
      await page.getByRole('button', { name: 'Clear the filter' }).last().click()
      await count(page, '5,000 rows')
      await page.getByRole('link', { name: 'efs' }).first().click()
      await count(page, '1,112 of 5,000 rows')
      await page.getByRole('button', { name: 'Export' }).click()
      const csv = await page.getByRole('link', { name: /^CSV of 1,112 rows/ }).getAttribute('href')
      expect(csv).toMatch(/where=storageClass%3Defs.*columns=phase.*headings=labels&format=csv/)
    })

    it('shows one row with everything that was collected of it, by a link that can be shared', async () => {
      const page = await visit('/clusters/eu-prod-1/types/pvc')
      await page.getByRole('link', { name: 'data-checkout-00001' }).click()
      const drawer = page.getByRole('dialog', { name: 'data-checkout-00001' })
      await shown(drawer).toMatch(/capacity\s+5 Gi\s+5368709120[\s\S]*app.kubernetes.io\/managed-by\s+helm/)
      const url = page.url()
      await page.keyboard.press('Escape')
      await drawer.waitFor({ state: 'detached' })
      await expect.poll(() => page.url(), patient).toBe(`${base}/clusters/eu-prod-1/types/pvc`)
      await page.goto(url)
      await drawer.waitFor()
      // One far down is asked for by its name.
      await page.goto(`${base}/clusters/eu-prod-1/types/pvc?row=${encodeURIComponent('search/data-search-04998')}`)
      await page.getByRole('dialog', { name: 'data-search-04998' }).getByText('Labels').waitFor()
      await page.goto(`${base}/clusters/eu-prod-1/types/pvc?row=no%2Fsuch`)
      await page.getByText('This row is not there').waitFor()
    })

    it('keeps the row of an address as new as it says, far down its list, too, and says when it went', async () => {
      await openHub({ catalog: await aCatalog(claims) })
      const rows = claimRows(3000, began)
      const far = rows[2998] as TableRow
      await hub.fill([west(rows)])
      const address = `/clusters/eu-prod-1/types/pvc?row=${encodeURIComponent(`${far.namespace}/${far.name}`)}`
      const page = await visit(address)
      await live(page)
      const drawer = page.getByRole('dialog', { name: far.name })
      await drawer.getByText('Labels').waitFor()
      const grown = { ...far, values: { ...far.values, phase: 'Released' } }
      await hub.put(west(rows.map((row) => (row === far ? grown : row))))
      await drawer.getByText('Released').waitFor()
      await hub.put(west(rows.filter((row) => row !== far)))
      await drawer.getByText('This row is no longer there').waitFor()
      await shown(drawer).toMatch(/is not among the pvc of\s+Europe production 1[\s\S]* that you may see\.\s+as of/)
      await page.keyboard.press('Escape')
      await expect.poll(() => page.evaluate('document.activeElement?.id'), patient).toBe('main')
    })

    it('does not take a hub that cannot be asked for a row that is not there', async () => {
      const page = await visit('/clusters/eu-prod-1/types/pvc')
      await count(page, '5,000 rows')
      gateway.only = /types\/pvc\/?.*q=/
      gateway.refuse = { status: 503, code: 'store_unavailable', error: 'the store is away' }
      await page.evaluate(`history.pushState(null, '', '?row=no%2Fsuch'); dispatchEvent(new PopStateEvent('popstate'))`)
      const drawer = page.getByRole('dialog', { name: 'no/such' })
      await drawer.getByText('The row could not be loaded').waitFor()
      await retryNow(drawer, () => {
        gateway.refuse = null
      })
      await drawer.getByText('This row is not there').waitFor()
    })

    it('takes new rows with the frame of the cluster, and moves none under the pointer', async () => {
      await openWest()
      const page = await visit('/clusters/eu-prod-1/types/pvc')
      await live(page)
      await count(page, '40 rows')
      await page.locator('tbody [data-row-link]').first().waitFor()
      const first = (await rowNames(page))[0]
      await page.locator('tbody tr').nth(1).hover()
      const rows = claimRows(40, began)
      await hub.put(west([...rows, { ...(rows[0] as TableRow), namespace: 'a', name: 'aaa' }]))
      await count(page, '41 rows')
      expect((await rowNames(page))[0]).toBe(first)
      await shown(tile(page, 'Total pvcs')).toBe('41')
      // Without a pointer: one that leaves the table applies what is held by leaving.
      await page.getByRole('button', { name: 'apply now' }).dispatchEvent('click')
      await page.locator('h1').hover()
      await expect.poll(async () => (await rowNames(page))[0], patient).toBe('aaa')
    })

    it('asks for nothing however many frames come, and stays where it is scrolled to', async () => {
      await openWest()
      const page = await visit('/clusters/eu-prod-1/types/pvc')
      await live(page)
      await count(page, '40 rows')
      const box = page.locator('.table-scroll')
      await box.evaluate((element) => element.scrollTo(0, 500))
      const asked = () =>
        gateway.requests.filter((path) => path.startsWith('/api/v2/clusters/eu-prod-1/types/pvc')).length
      await expect.poll(() => gateway.requests.some((path) => path.includes('rows=pvc')), patient).toBe(true)
      const before = asked()
      const began = Date.now()
      for (let frame = 0; frame < 30; frame++) {
        await hub.put(west(claimRows(40, began + frame)))
        await new Promise((resolve) => setTimeout(resolve, 60))
      }
      await hub.put(west(claimRows(41, began)))
      await count(page, '41 rows')
      expect(await page.evaluate<number>("document.querySelector('.table-scroll').scrollTop")).toBe(500)
      // Once for where the values of the new row lead, and once each half minute.
      expect(asked() - before).toBeLessThanOrEqual(2 + Math.floor((Date.now() - began) / 30_000))
    })

    it('names what is wrong: namespaces that could not be read, a kind that is forbidden, not served or out of reach', async () => {
      const page = await visit('/clusters/eu-prod-2/types/pvc')
      await page.getByText('2 namespaces could not be read.').waitFor()
      await page.getByText('persistentvolumeclaims is forbidden in namespace vault').waitFor()
      await page.goto(`${base}/clusters/us-stage/types/pvc`)
      await page.getByText('resources: ["persistentvolumeclaims"]').waitFor()
      await page.goto(`${base}/clusters/eu-prod-2/types/certificate`)
      await page.getByText('This cluster does not serve Certificate (cert-manager.io/v1)').waitFor()
      await page.goto(`${base}/clusters/us-stage/types/certificate`)
      await page.getByText('Certificate could not be read:').waitFor()
      await page.goto(`${base}/clusters/lab/types/pvc`)
      await page.getByText('None there').first().waitFor()
    })

    it('draws what was, with the ranges and the table of every history', async () => {
      const page = await visit('/clusters/eu-prod-1/types/pvc')
      await page.getByRole('navigation', { name: 'Rows or history' }).getByRole('link', { name: 'History' }).click()
      const charts = page.locator('.chart')
      await expect.poll(() => charts.count(), patient).toBe(4)
      await expect.poll(() => page.url(), patient).toContain('view=history')
      await expect
        .poll(
          () => gateway.requests.some((asked) => asked.includes('/types/pvc/history?metric=total_pvcs%2C')),
          patient,
        )
        .toBe(true)
      await page.getByText('6 h', { exact: true }).click()
      await expect.poll(() => page.url(), patient).toContain('range=6h')
      const slider = page.getByRole('slider').first()
      await slider.focus()
      await page.keyboard.press('End')
      // Nothing comes while the page is looked at: the last steps have no sample yet.
      const sample = async () => {
        const text = (await slider.getAttribute('aria-valuetext')) ?? ''
        if (text.includes('no sample')) await page.keyboard.press('ArrowLeft')
        return text
      }
      await expect.poll(sample, patient).toMatch(/total pvcs \d/)
    })

    it('goes on showing what it has while the hub is away, and nothing once it is refused', async () => {
      await openWest()
      const page = await visit('/clusters/eu-prod-1/types/pvc')
      await live(page)
      await count(page, '40 rows')
      refuseTypes(503, 'store_unavailable', 'the store is away')
      await hub.put(west(claimRows(41, began)))
      await page.getByText('Not updated.').first().waitFor()
      expect((await rowNames(page)).length).toBeGreaterThan(10)
      refuseTypes(403, 'forbidden', 'not for you')
      await hub.put(west(claimRows(42, began)))
      await page.getByRole('alert').getByText('not for you').waitFor()
      expect(await rowNames(page)).toEqual([])
    })
  })

  describe('the editor', () => {
    const field = (page: Page) => page.getByLabel('The declaration, as YAML')
    const written = (page: Page) => expect.poll(() => field(page).inputValue(), patient)

    it('shows a mistake in its place, mends it, and shows what the declaration gives', async () => {
      const page = await visit('/types/new')
      await page.getByText('It can come into force').waitFor()
      await replaceText(page, 'round(capacity /', 'round(capacty /')
      await page.getByText('1 warning').waitFor()
      await page.getByText(/there is no field or computed value capacty/).waitFor()
      await expect.poll(() => page.locator('.code-marks mark').allInnerTexts(), patient).toEqual(['capacty'])
      await page.getByRole('button', { name: /^line \d+, column \d+$/ }).click()
      const chosen = () =>
        page.evaluate<string>(
          '{ const box = document.activeElement; box.value?.slice(box.selectionStart, box.selectionEnd) }',
        )
      await expect.poll(chosen, patient).toBe('capacty')
      await page.getByRole('button', { name: 'Put it there' }).click()
      await page.getByText('It can come into force').waitFor()
      await written(page).toContain('round(capacity / 1073741824, 2)')
      // What keeps it from coming into force keeps it from being read.
      await replaceText(page, 'resourceTypeName: pvc', 'resourceTypeName: nodes')
      await page.getByText('1 error keep', { exact: false }).waitFor()
      await page.getByLabel('Read from').selectOption('eu-prod-1')
      await page.getByText('A declaration with errors reads nothing').waitFor()
      await replaceText(page, 'resourceTypeName: nodes', 'resourceTypeName: pvc')
      await page.getByText('20 rows on eu-prod-1, read in 84 ms').waitFor()
      await shown(tile(page, 'Total pvcs')).toBe('20')
      await shown(page.getByRole('region', { name: 'Fields that were not found everywhere' })).toMatch(
        /storageClass\s+80 %\s+3\s+1/,
      )
      await page.getByText('data-checkout-00001').waitFor()
      await expect.poll(() => tried.at(-1), patient).toBe('eu-prod-1')
      // What was seen stays while the text has a mistake, and says of when it is.
      await replaceText(page, 'resourceTypeName: pvc', 'resourceTypeName: nodes')
      await page.getByText(/of the text before the last change/).waitFor()
      await page.getByText('data-checkout-00001').waitFor()
    })

    it('says why a cluster cannot be read from here', async () => {
      const page = await visit('/types/new')
      await page.getByLabel('Read from').selectOption('lab')
      await page.getByText('The hub has no way into cluster lab from here').waitFor()
    })

    it('begins with an example, and gives a file and the command for it', async () => {
      const page = await visit('/types/new')
      await page.getByRole('button', { name: 'Examples' }).click()
      await page.getByRole('button', { name: 'Certificates (cert-manager)' }).click()
      await written(page).toContain('kind: Certificate')
      await page.getByText('kubectl apply -f certificates.yaml').waitFor()
      const [file] = await Promise.all([
        page.waitForEvent('download'),
        page.getByRole('button', { name: 'Download certificates.yaml' }).click(),
      ])
      expect(file.suggestedFilename()).toBe('certificates.yaml')
      await field(page).focus()
      await page.keyboard.press('Control+z')
      await written(page).toContain('kind: PersistentVolumeClaim')
    })

    it('keeps what is written over a look at another page, and begins an edit with what is in force', async () => {
      const page = await visit('/types/edit?source=clusterpulse%2Fpvc')
      await heading(page, 'clusterpulse/pvc')
      await written(page).toMatch(/^apiVersion: clusterpulse.io\/v1alpha1\nkind: MetricSource\n/)
      await replaceText(page, 'kind: MetricSource', 'kind: MetricSource # mine')
      await page.getByRole('link', { name: 'Types' }).first().click()
      await heading(page, 'Collected types')
      await page.goBack()
      await written(page).toContain('# mine')
      await page.getByRole('button', { name: 'As it is in force' }).click()
      await written(page).not.toContain('# mine')
      await page.goto(`${base}/types/edit?source=no%2Fsuch`)
      await page.getByText('This declaration is not in force').waitFor()
    })

    it('indents by Tab, and lets the keyboard leave', async () => {
      const page = await visit('/types/new')
      await field(page).focus()
      await page.keyboard.press('Control+a')
      await page.keyboard.type('spec:')
      await page.keyboard.press('Enter')
      await page.keyboard.press('Tab')
      await page.keyboard.type('a: 1')
      await page.keyboard.press('Enter')
      await page.keyboard.type('b: 2')
      await page.keyboard.press('Shift+Tab')
      await written(page).toBe('spec:\n  a: 1\nb: 2')
      await page.keyboard.press('Escape')
      await page.keyboard.press('Tab')
      await expect.poll(() => page.evaluate('document.activeElement.tagName'), patient).not.toBe('TEXTAREA')
    })
  })

  // What is before and after it shows each of these of a hub in this process.
  it('shows what a real hub collects: rows, numbers, their past, and a declaration tried on a cluster', {
    tags: ['again'],
  }, async () => {
    const folder = await mkdtemp(join(tmpdir(), 'clusterpulse-types-'))
    open.push(() => rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 }))
    const ports = ['--port', '0', '--control-plane-port', '0', '--ingester-port', '0']
    const real = clusterpulse(['up', '--demo', '--data-dir', folder, ...ports])
    open.unshift(async () => real[Symbol.asyncDispose]())
    const before = await pageBefore((await real.says(/on (http:\/\/127\.0\.0\.1:\d+)/))[1] ?? '', built.root)
    open.unshift(async () => before[Symbol.asyncDispose]())
    base = before.address
    const page = await visit('/types')
    await live(page)
    await expect.poll(() => rowNames(page)).toContain('deployment')
    await page.locator('tbody').getByRole('link', { name: 'deployment', exact: true }).click()
    await expect.poll(() => tile(page, 'Total deployments').innerText()).toMatch(/^\d+$/)
    await page.getByRole('link', { name: 'Production East' }).click({ timeout: 60_000 })
    await expect.poll(() => rowNames(page)).not.toHaveLength(0)
    const all = await tile(page, 'Total deployments').innerText()
    await count(page, `${all} rows`)

    await page.getByRole('button', { name: 'replicas', exact: true }).click()
    const column = async () => (await page.locator('tbody tr[data-index] td:nth-child(3)').allInnerTexts()).map(Number)
    await expect
      .poll(async () => {
        const replicas = await column()
        return (
          replicas.length > 5 &&
          replicas.every((value, index) => value <= (replicas[index - 1] ?? Number.POSITIVE_INFINITY))
        )
      }, patient)
      .toBe(true)
    await page.getByLabel('Filter deployment rows').fill('state:ready replicas>5')
    await expect.poll(async () => (await column()).every((value) => value > 5), patient).toBe(true)
    await page.getByText(new RegExp(`^\\d+ of ${all} rows$`)).waitFor()
    await page.locator('tbody [data-row-link]').first().click()
    await page.getByRole('dialog').getByText('readyPercent').waitFor()
    await page.keyboard.press('Escape')

    await page.getByRole('navigation', { name: 'Rows or history' }).getByRole('link', { name: 'History' }).click()
    await expect.poll(() => page.locator('.chart').count(), patient).toBeGreaterThan(1)

    await page.goto(`${base}/types/new`)
    await page.getByRole('button', { name: 'Examples' }).click()
    await page.getByRole('button', { name: 'Health of deployments' }).click()
    await page.getByLabel('Read from').selectOption('prod-east')
    await page.getByText(/^\d+ rows on prod-east, read in/).waitFor()
    await page.evaluate(`{
      const box = document.querySelector('.code textarea')
      const at = box.value.indexOf('readyReplicas / max')
      box.focus()
      box.setSelectionRange(at, at + 5)
      document.execCommand('insertText', false, 'raedy')
    }`)
    await page.getByText('1 warning').waitFor()
    await page.getByText(/"readyPercent" is null in every object/).waitFor()
    await expect.poll(() => page.locator('.code-marks mark').allInnerTexts(), patient).toEqual(['raedyReplicas'])
    await page.getByRole('button', { name: 'Put it there' }).click()
    await page.getByText('1 warning').waitFor({ state: 'hidden' })
    await page.getByText(/^\d+ rows on prod-east, read in/).waitFor()
  })

  describe('ways to it', () => {
    it('is worked by keyboard alone', async () => {
      const page = await visit('/')
      await live(page)
      await page.keyboard.press('g')
      await page.keyboard.press('t')
      await heading(page, 'Collected types')
      await expect.poll(() => rowNames(page), patient).toHaveLength(allTypes.length)
      for (const _ of allTypes) await page.keyboard.press('j')
      await page.keyboard.press('Enter')
      await heading(page, 'pvc')
      await expect.poll(() => rowNames(page), patient).toHaveLength(4)
      await page.keyboard.press('j')
      await page.keyboard.press('Enter')
      await count(page, '5,000 rows')
      await page.keyboard.press('f')
      await page.keyboard.type('phase:Pending')
      await count(page, '294 of 5,000 rows')
      await page.keyboard.press('Escape')
      await page.keyboard.press('j')
      await page.keyboard.press('Enter')
      await page.getByRole('dialog').waitFor()
      await page.keyboard.press('Escape')
      await page.getByRole('dialog').waitFor({ state: 'detached' })
      await expect.poll(() => page.url(), patient).toContain('q=phase%3APending')
      await page.keyboard.press('?')
      await page.getByText('to the types').waitFor()
    })

    it('is found by the search: pages, types, and rows', async () => {
      const page = await visit('/')
      await live(page)
      await page.keyboard.press('Control+k')
      await page.keyboard.type('certificate')
      await page.getByRole('option', { name: /certificate/, selected: true }).waitFor()
      await page.keyboard.press('Enter')
      await heading(page, 'certificate')
      for (const [typed, title] of [
        ['deploy', 'Deployments'],
        ['first hour', 'The first hour'],
      ] as const) {
        await page.keyboard.press('Control+k')
        await page.keyboard.type(typed)
        await page.getByRole('option', { name: title, selected: true }).waitFor()
        await page.keyboard.press('Enter')
        await heading(page, title)
      }
      await page.keyboard.press('Control+k')
      await page.keyboard.type('data-ledger')
      await page.getByRole('option', { name: /data-ledger-00002/, selected: true }).waitFor()
      await page.keyboard.press('Enter')
      await page.getByRole('dialog', { name: 'data-ledger-00002' }).waitFor()
    })
  })

  describe('themes and frames', () => {
    const paths = [
      '/types',
      '/types/pvc',
      '/types/certificate',
      '/types/nothing',
      '/clusters/eu-prod-1/types',
      '/clusters/eu-prod-1/types/pvc',
      '/clusters/eu-prod-1/types/pvc?row=checkout%2Fdata-checkout-00001',
      '/clusters/eu-prod-1/types/pvc?view=history',
      '/clusters/eu-prod-2/types/pvc',
      '/clusters/us-stage/types/pvc',
      '/clusters/eu-prod-2/types/certificate',
      '/types/new',
    ]
    const settle = async (page: Page, path: string) => {
      await goTo(page, `${base}${path}`)
      await live(page)
      await page.locator('h1').waitFor()
      await expect.poll(() => page.locator('.skeleton:visible').count(), patient).toBe(0)
    }
    const mistake = async (page: Page) => {
      await settle(page, '/types/new')
      await page.getByLabel('Read from').selectOption('eu-prod-1')
      await page.getByText(/20 rows on eu-prod-1/).waitFor()
      await page.getByText('Functions of expressions').click()
      await replaceText(page, 'round(capacity /', 'round(capacty /')
      await page.getByText(/there is no field or computed value capacty/).waitFor()
    }

    it('gives axe nothing to complain of, in both themes, and fits 320 px without scrolling sideways', {
      tags: ['long'],
    }, async () => {
      const page = await visit('/types')
      const check = async (where: string) => {
        expect(await complaintsOf(page), where).toEqual([])
        expect(await excessAt320(page), where).toBeLessThanOrEqual(0)
      }
      for (const path of paths) {
        await settle(page, path)
        await check(path)
      }
      await mistake(page)
      await check('a mistake')
      await openHub({ catalog: await aCatalog() })
      await settle(page, '/types')
      await check('no type')
    })
  })
})
