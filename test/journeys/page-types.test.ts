import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { buildPage, noBrowser, openBrowser } from '../../web/testing/browser.ts'
import { pvcRows, someCustoms } from '../../web/testing/customs.ts'
import { FakeHub } from '../../web/testing/fake-hub.ts'
import { pageBefore } from '../../web/testing/page-before.ts'
import { aCluster, demoFleet } from '../../web/testing/worlds.ts'
import { program } from '../process.ts'

const axeSource = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const patient = { timeout: 20_000 }
const suite = noBrowser === undefined ? 'types on the page' : `types on the page (skipped: ${noBrowser})`
const alice = {
  username: 'alice',
  email: 'alice@example.com',
  groups: ['developers'],
  method: 'oidc',
  administrator: false,
}

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
    hub.customs = someCustoms(Date.now())
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
  const rowNames = (page: Page) => page.locator('tbody [data-row-link]').allInnerTexts()
  const heading = (page: Page, name: string | RegExp) => page.getByRole('heading', { level: 1, name }).waitFor()
  const live = (page: Page) => page.getByRole('button', { name: /^Connection: Live/ }).waitFor({ state: 'attached' })
  const lookAs = (user: typeof alice) => {
    hub.behaviour.session = { ...hub.behaviour.session, user }
  }
  const count = (page: Page, text: string) => page.locator('.count').getByText(text, { exact: true }).waitFor()
  const tile = (page: Page, title: string) =>
    page.locator('.tile', { has: page.getByText(title, { exact: true }) }).locator('.tile-value')
  const onWest = (rows = pvcRows(5000, Date.now())) => hub.customs.types.get('pvc')?.on.set('eu-prod-1', { rows })

  describe('the list', () => {
    it('names each type with its clusters, its trouble, its rows and numbers of all clusters', async () => {
      const page = await visit('/types')
      await heading(page, 'Collected types')
      await expect.poll(() => rowNames(page), patient).toEqual(['certificate', 'pvc'])
      const pvc = await page.locator('tbody tr', { hasText: 'PersistentVolumeClaim' }).innerText()
      expect(pvc).toMatch(/3 of 4/)
      expect(pvc).toMatch(/2 clusters/)
      expect(pvc).toMatch(/5,240/)
      expect(pvc).toMatch(/472 Ti\s+total capacity/)
      expect(await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Types' }).count()).toBe(1)
    })

    it('tells an administrator how to declare the first, and others that nothing is shared', async () => {
      hub.customs.types.clear()
      const page = await visit('/types')
      await page.getByText('Nothing is declared yet').waitFor()
      expect(await page.locator('.manifest-example').innerText()).toContain('kind: MetricSource')
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
      hub.customs.refuse = { status: 500, code: 'unexpected', error: 'something broke' }
      const page = await visit('/types')
      await page.getByRole('alert').getByText('something broke').waitFor()
      hub.customs.refuse = null
      await page.getByRole('alert').getByRole('button', { name: 'Retry now' }).click()
      await expect.poll(() => rowNames(page), patient).toEqual(['certificate', 'pvc'])
    })
  })

  describe('one type over all clusters', () => {
    it('adds up what adds up, and leaves averages to the clusters', async () => {
      const page = await visit('/types/pvc')
      await heading(page, 'pvc')
      await expect.poll(() => tile(page, 'Total pvcs').innerText(), patient).toBe('5,240')
      expect(await tile(page, 'Max capacity').innerText()).toBe('500 Gi')
      expect(await tile(page, 'Average used').count()).toBe(0)
      expect(await page.locator('main').innerText()).toContain('Average used: of each cluster, below')
      await page.getByRole('link', { name: 'Europe production 1' }).click()
      await heading(page, 'Europe production 1')
      await page.getByRole('heading', { level: 2, name: 'pvc' }).waitFor()
    })

    it('shows collected, in part, empty and forbidden as four things', async () => {
      const page = await visit('/types/pvc')
      const state = (cluster: string) => page.locator('tbody tr', { hasText: cluster }).locator('td').nth(0)
      await expect.poll(() => state('eu-prod-1').innerText(), patient).toBe('Collected')
      expect(await state('eu-prod-2').innerText()).toBe('In part\ntruncated, 2 errors')
      expect(await state('lab').innerText()).toBe('None there')
      expect(await state('us-stage').innerText()).toBe('Forbidden')
      const marks = await page.evaluate<string[]>(
        `[...document.querySelectorAll('tbody tr td:nth-child(2) svg')].map((one) => one.innerHTML)`,
      )
      expect(new Set(marks).size).toBe(4)
    })

    it('says of an unknown type that it may be hidden', async () => {
      const page = await visit('/types/nothing')
      await page.getByText('There is no such type, or you may not see it').waitFor()
    })
  })

  describe('one type on a cluster', () => {
    it('is found by the tab of the cluster', async () => {
      const page = await visit('/clusters/eu-prod-1')
      await page.getByRole('navigation', { name: 'Parts of this cluster' }).getByRole('link', { name: 'Types' }).click()
      await expect.poll(() => rowNames(page), patient).toEqual(['certificate', 'pvc'])
      await page.locator('tbody').getByRole('link', { name: 'pvc', exact: true }).click()
      await expect.poll(() => tile(page, 'Total capacity').innerText(), patient).toBe('450 Ti')
      expect(page.url()).toBe(`${base}/clusters/eu-prod-1/types/pvc`)
    })

    it('sorts and filters at the hub, and loads further rows as one scrolls', async () => {
      const page = await visit('/clusters/eu-prod-1/types/pvc')
      await count(page, '5,000 rows')
      const box = page.locator('.table-scroll')
      const asked = () => hub.requests.filter((path) => path.includes('cursor=')).length
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
      await expect.poll(() => page.locator('tbody tr').first().innerText(), patient).toContain('500 Gi')
      expect(hub.requests.some((asked) => /sort=capacity&order=desc/.test(asked))).toBe(true)
      await page.getByLabel('Filter pvc rows').fill('phase:Pending namespace:payments')
      await count(page, '59 of 5,000 rows')
      expect(hub.requests.some((asked) => asked.includes('where=phase%3DPending'))).toBe(true)
      await page.getByLabel('Filter pvc rows').fill('owner:me')
      await page.getByText(/owner:me is left out/).waitFor()
      await page.getByLabel('Filter pvc rows').fill('phase:Nowhere')
      await page.getByRole('button', { name: 'Clear the filter' }).last().click()
      await count(page, '5,000 rows')
      await page.getByRole('link', { name: 'efs' }).first().click()
      await count(page, '1,112 of 5,000 rows')
      await page.getByRole('button', { name: 'Export' }).click()
      const csv = await page.getByRole('link', { name: /^CSV of 1,112 rows/ }).getAttribute('href')
      expect(csv).toMatch(/where=storageClass%3Defs.*headings=labels&format=csv/)
    })

    it('shows one row with everything that was collected of it, by a link that can be shared', async () => {
      const page = await visit('/clusters/eu-prod-1/types/pvc')
      await page.getByRole('link', { name: 'data-checkout-00001' }).click()
      const drawer = page.getByRole('dialog', { name: 'data-checkout-00001' })
      expect(await drawer.innerText()).toMatch(
        /capacity\s+5 Gi\s+5368709120[\s\S]*app.kubernetes.io\/managed-by\s+helm/,
      )
      const url = page.url()
      await page.keyboard.press('Escape')
      await drawer.waitFor({ state: 'detached' })
      expect(page.url()).toBe(`${base}/clusters/eu-prod-1/types/pvc`)
      await page.goto(url)
      await drawer.waitFor()
      // One far down is asked for by its name.
      await page.goto(`${base}/clusters/eu-prod-1/types/pvc?row=${encodeURIComponent('search/data-search-04998')}`)
      await page.getByRole('dialog', { name: 'data-search-04998' }).getByText('Labels').waitFor()
      await page.goto(`${base}/clusters/eu-prod-1/types/pvc?row=no%2Fsuch`)
      await page.getByText('This row is not there').waitFor()
    })

    it('takes new rows with the frame of the cluster, and moves none under the pointer', async () => {
      onWest(pvcRows(40, Date.now()))
      const page = await visit('/clusters/eu-prod-1/types/pvc')
      await live(page)
      await count(page, '40 rows')
      const first = (await rowNames(page))[0]
      await page.locator('tbody tr').nth(1).hover()
      const added = {
        ...(pvcRows(1, Date.now())[0] as ReturnType<typeof pvcRows>[number]),
        id: 'a/aaa',
        namespace: 'a',
        name: 'aaa',
      }
      onWest([...pvcRows(40, Date.now()), added])
      hub.put(aCluster('eu-prod-1', Date.now(), { displayName: 'Europe production 1' }))
      await count(page, '41 rows')
      expect((await rowNames(page))[0]).toBe(first)
      expect(await tile(page, 'Total pvcs').innerText()).toBe('41')
      // Without a pointer: one that leaves the table applies what is held by leaving.
      await page.getByRole('button', { name: 'apply now' }).dispatchEvent('click')
      await page.locator('h1').hover()
      await expect.poll(async () => (await rowNames(page))[0], patient).toBe('aaa')
    })

    it('asks at most once a second however many frames come, and stays where it is scrolled to', async () => {
      onWest(pvcRows(40, Date.now()))
      const page = await visit('/clusters/eu-prod-1/types/pvc')
      await live(page)
      await count(page, '40 rows')
      const box = page.locator('.table-scroll')
      await box.evaluate((element) => element.scrollTo(0, 500))
      const asked = () => hub.requests.filter((path) => path.startsWith('/api/v2/clusters/eu-prod-1/types/pvc')).length
      const before = asked()
      const began = Date.now()
      for (let frame = 0; frame < 30; frame++) {
        hub.put(aCluster('eu-prod-1', Date.now(), { displayName: 'Europe production 1', message: String(frame) }))
        await new Promise((resolve) => setTimeout(resolve, 60))
      }
      await expect.poll(asked, patient).toBeGreaterThan(before + 1)
      expect(await page.evaluate<number>("document.querySelector('.table-scroll').scrollTop")).toBe(500)
      expect(asked() - before).toBeLessThanOrEqual(Math.ceil((Date.now() - began) / 1000) + 1)
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
      await page.getByText('Certificate could not be read.').waitFor()
      await page.goto(`${base}/clusters/lab/types/pvc`)
      await page.getByText('None there').first().waitFor()
    })

    it('draws what was, with the ranges and the table of every history', async () => {
      const page = await visit('/clusters/eu-prod-1/types/pvc')
      await page.getByRole('navigation', { name: 'Rows or history' }).getByRole('link', { name: 'History' }).click()
      const charts = page.locator('.chart')
      await expect.poll(() => charts.count(), patient).toBe(4)
      expect(page.url()).toContain('view=history')
      expect(hub.requests.some((asked) => asked.includes('/types/pvc/history?metric=total_pvcs%2C'))).toBe(true)
      await page.getByText('6 h', { exact: true }).click()
      await expect.poll(() => page.url(), patient).toContain('range=6h')
      await page.getByRole('slider').first().focus()
      await page.keyboard.press('Home')
      await expect
        .poll(() => page.getByRole('slider').first().getAttribute('aria-valuetext'), patient)
        .toMatch(/total pvcs \d/)
    })

    it('goes on showing what it has while the hub is away, and nothing once it is refused', async () => {
      onWest(pvcRows(40, Date.now()))
      const page = await visit('/clusters/eu-prod-1/types/pvc')
      await live(page)
      await count(page, '40 rows')
      hub.customs.refuse = { status: 503, code: 'store_unavailable', error: 'the store is away' }
      hub.put(aCluster('eu-prod-1', Date.now(), { displayName: 'Europe production 1' }))
      await page.getByText('Not updated.').first().waitFor()
      expect((await rowNames(page)).length).toBeGreaterThan(10)
      hub.customs.refuse = { status: 403, code: 'forbidden', error: 'not for you' }
      hub.put(aCluster('eu-prod-1', Date.now(), { displayName: 'Europe production 1', message: 'x' }))
      await page.getByRole('alert').getByText('not for you').waitFor()
      expect(await rowNames(page)).toEqual([])
    })
  })

  describe('the editor', () => {
    const field = (page: Page) => page.getByLabel('The declaration, as YAML')
    const text = (page: Page) => field(page).inputValue()
    const replaceText = (page: Page, from: string, to: string) =>
      page.evaluate(`{
        const box = document.querySelector('.code textarea')
        const [from, to] = ${JSON.stringify([from, to])}
        const at = box.value.indexOf(from)
        box.focus()
        box.setSelectionRange(at, at + from.length)
        document.execCommand('insertText', false, to)
      }`)

    it('shows a mistake in its place, mends it, and shows what the declaration gives', async () => {
      const page = await visit('/types/new')
      await page.getByText('It can come into force').waitFor()
      await replaceText(page, 'round(capacity /', 'round(capacty /')
      await page.getByText('1 error keep', { exact: false }).waitFor()
      await page.getByText(/there is no field or computed value called capacty/).waitFor()
      expect(await page.locator('.code-marks mark').allInnerTexts()).toEqual(['capacty'])
      await page.getByLabel('Read from').selectOption('eu-prod-1')
      await page.getByText('A declaration with errors reads nothing').waitFor()
      await page.getByRole('button', { name: /^line \d+, column \d+$/ }).click()
      const chosen = await page.evaluate<string>(
        '{ const box = document.activeElement; box.value.slice(box.selectionStart, box.selectionEnd) }',
      )
      expect(chosen).toBe('capacty')
      await page.getByRole('button', { name: 'Put it there' }).click()
      await page.getByText('It can come into force').waitFor()
      expect(await text(page)).toContain('round(capacity / 1073741824, 2)')
      await page.getByText('20 rows on eu-prod-1, read in 84 ms').waitFor()
      expect(await tile(page, 'Total pvcs').innerText()).toBe('20')
      expect(await page.getByRole('region', { name: 'Fields that were not found everywhere' }).innerText()).toMatch(
        /storageClass\s+80 %\s+3\s+1/,
      )
      await page.getByText('data-checkout-00001').waitFor()
      expect(hub.customs.tried.at(-1)?.cluster).toBe('eu-prod-1')
      // What was seen stays while the text has a mistake, and says of when it is.
      await replaceText(page, 'round(capacity /', 'round(capacty /')
      await page.getByText(/of the text before the last change/).waitFor()
      await page.getByText('data-checkout-00001').waitFor()
    })

    it('says why a cluster cannot be read from here', async () => {
      const { attempt } = hub.customs
      hub.customs.attempt = (asked) => ({
        ...attempt(asked),
        result: null,
        note: 'this process has no way into the cluster',
      })
      const page = await visit('/types/new')
      await page.getByLabel('Read from').selectOption('lab')
      await page.getByText('this process has no way into the cluster').waitFor()
    })

    it('begins with an example, and gives a file and the command for it', async () => {
      const page = await visit('/types/new')
      await page.getByRole('button', { name: 'Examples' }).click()
      await page.getByRole('button', { name: 'Certificates (cert-manager)' }).click()
      await expect.poll(() => text(page), patient).toContain('kind: Certificate')
      await page.getByText('kubectl apply -f certificates.yaml').waitFor()
      const [file] = await Promise.all([
        page.waitForEvent('download'),
        page.getByRole('button', { name: 'Download certificates.yaml' }).click(),
      ])
      expect(file.suggestedFilename()).toBe('certificates.yaml')
      await field(page).focus()
      await page.keyboard.press('Control+z')
      await expect.poll(() => text(page), patient).toContain('kind: PersistentVolumeClaim')
    })

    it('keeps what is written over a look at another page, and begins an edit with what is in force', async () => {
      const page = await visit('/types/edit?source=clusterpulse%2Fpvc')
      await heading(page, 'clusterpulse/pvc')
      await expect.poll(() => text(page), patient).toBe('apiVersion: clusterpulse.io/v1alpha1\nkind: MetricSource\n')
      await replaceText(page, 'kind: MetricSource', 'kind: MetricSource # mine')
      await page.getByRole('link', { name: 'Types' }).first().click()
      await heading(page, 'Collected types')
      await page.goBack()
      await expect.poll(() => text(page), patient).toContain('# mine')
      await page.getByRole('button', { name: 'As it is in force' }).click()
      await expect.poll(() => text(page), patient).not.toContain('# mine')
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
      await expect.poll(() => text(page), patient).toBe('spec:\n  a: 1\nb: 2')
      await page.keyboard.press('Escape')
      await page.keyboard.press('Tab')
      expect(await page.evaluate<string>('document.activeElement.tagName')).not.toBe('TEXTAREA')
    })
  })

  it('shows what a real hub collects: rows, numbers, their past, and a declaration tried on a cluster', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'clusterpulse-types-'))
    open.push(() => rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 }))
    // From the sources, as the page is.
    const dev = join(import.meta.dirname, '../../src/apps/cli/dev.ts')
    const ports = ['--port', '0', '--control-plane-port', '0', '--ingester-port', '0']
    const real = program(process.execPath, ['--import', 'tsx', dev, 'up', '--demo', '--data-dir', folder, ...ports])
    open.unshift(async () => real[Symbol.asyncDispose]())
    const before = await pageBefore((await real.says(/on (http:\/\/127\.0\.0\.1:\d+)/, 60_000))[1] ?? '', built.root)
    open.unshift(async () => before[Symbol.asyncDispose]())
    base = before.address
    const page = await visit('/types')
    await live(page)
    await expect.poll(() => rowNames(page), { timeout: 60_000 }).toContain('deployment')
    await page.locator('tbody').getByRole('link', { name: 'deployment', exact: true }).click()
    await expect.poll(() => tile(page, 'Total deployments').innerText(), { timeout: 60_000 }).toMatch(/^\d+$/)
    await page.getByRole('link', { name: 'Production East' }).click()
    await expect.poll(() => rowNames(page), { timeout: 60_000 }).not.toHaveLength(0)
    const all = Number((await page.locator('.count [role=status]').innerText()).split(' ')[0])
    expect(await tile(page, 'Total deployments').innerText()).toBe(String(all))

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
    expect(await page.locator('.code-marks mark').allInnerTexts()).toEqual(['raedyReplicas'])
    await page.getByRole('button', { name: 'Put it there' }).click()
    await page.getByText('1 warning').waitFor({ state: 'hidden' })
    await page.getByText(/^\d+ rows on prod-east, read in/).waitFor()
  }, 180_000)

  describe('ways to it', () => {
    it('is worked by keyboard alone', async () => {
      const page = await visit('/')
      await live(page)
      await page.keyboard.press('g')
      await page.keyboard.press('t')
      await heading(page, 'Collected types')
      await expect.poll(() => rowNames(page), patient).toHaveLength(2)
      await page.keyboard.press('j')
      await page.keyboard.press('j')
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
      expect(page.url()).toContain('q=phase%3APending')
      await page.keyboard.press('?')
      await page.getByText('to the types').waitFor()
    })

    it('is found by the search: pages, types, and rows', async () => {
      hub.hits.push({
        kind: 'custom',
        cluster: 'eu-prod-1',
        name: 'data-ledger-00002',
        detail: 'pvc in ledger',
        health: 'unknown',
        type: 'pvc',
        namespace: 'ledger',
      })
      const page = await visit('/')
      await live(page)
      await page.keyboard.press('Control+k')
      await page.keyboard.type('certificate')
      await page.getByRole('option', { name: /certificate/, selected: true }).waitFor()
      await page.keyboard.press('Enter')
      await heading(page, 'certificate')
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
      await page.goto(`${base}${path}`)
      await live(page)
      await page.locator('h1').waitFor()
      await expect.poll(() => page.locator('.skeleton:visible').count(), patient).toBe(0)
    }
    const mistake = async (page: Page) => {
      await settle(page, '/types/new')
      await page.getByLabel('Read from').selectOption('eu-prod-1')
      await page.getByText(/20 rows on eu-prod-1/).waitFor()
      await page.getByText('Functions of expressions').click()
      await page
        .getByLabel('The declaration, as YAML')
        .fill('spec:\n  computed:\n    - expression: round(capacty / 1073741824, 2)\n')
      await page.getByText(/called capacty/).waitFor()
    }

    it.each(['light', 'dark'] as const)(
      'gives axe nothing to complain of in the %s theme',
      { timeout: 240_000 },
      async (colorScheme) => {
        const page = await visit('/types', { colorScheme })
        const check = async (where: string) => {
          await page.evaluate(axeSource)
          const found = await page.evaluate<
            string[]
          >(`axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] }).then(({ violations }) =>
        violations.flatMap(({ id, nodes }) => nodes.map((node) => id + ' ' + node.html.slice(0, 160) + ' ' + node.failureSummary.slice(0, 200))))`)
          expect(found, where).toEqual([])
        }
        for (const path of paths) {
          await settle(page, path)
          await check(path)
        }
        await mistake(page)
        await check('a mistake')
        hub.customs.types.clear()
        await settle(page, '/types')
        await check('no type')
      },
    )

    it('fits 320 px without scrolling sideways', { timeout: 180_000 }, async () => {
      const page = await visit('/types', { viewport: { width: 320, height: 740 } })
      const check = async (where: string) => {
        const over = await page.evaluate<number>(
          'document.documentElement.scrollWidth - document.documentElement.clientWidth',
        )
        expect(over, where).toBeLessThanOrEqual(0)
      }
      for (const path of paths) {
        await settle(page, path)
        await check(path)
      }
      await mistake(page)
      await check('a mistake')
    })
  })
})
