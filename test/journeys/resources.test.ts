import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Client, createClient, type FleetPageView } from '#http'
import { resources } from '#resources'
import { get } from '../../src/apps/cli/get.ts'
import { noBrowser, openBrowser } from '../../web/testing/browser.ts'
import { namesBeyond } from '../page/names.ts'
import { patient } from '../page/shown.ts'
import { clusterpulse, eventually, type Running } from '../process.ts'

/** Kinds of rows that every cluster has: from the API of simulated members, by the hub and by agents, to every channel. */
let folder: string
let hub: Running
let address: string
let client: Client
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'clusterpulse-rows-'))
  hub = clusterpulse(['up', '--demo', '--data-dir', folder, '--port', '0', '--control-plane-port', '0'])
  address = (await hub.says(/on (http:\/\/127\.0\.0\.1:\d+)/))[1] ?? ''
  client = createClient({ baseUrl: address })
})
afterAll(async () => {
  await hub?.[Symbol.asyncDispose]()
  await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
})

const readOn = ({ clusters }: FleetPageView) => clusters.filter(({ part }) => part.outcome === 'complete').length

/** One cluster of the demo has an agent. */
const isPushed = ({ clusters }: FleetPageView) => clusters.some(({ part }) => part.freshness?.source === 'push')

describe('rows of every cluster', () => {
  const served = resources.filter(({ target }) => !target.apiVersion.startsWith('kollect.dev/'))
  it.each(served.map(({ typeName }) => typeName))(
    '%s come from all clusters that answer, the others are named',
    async (type) => {
      const page = await eventually(
        () => client.fleetRows(type, { limit: 1000 }).catch(() => undefined),
        (one) => one !== undefined && readOn(one) === 5 && isPushed(one),
        120_000,
      )
      expect(page?.total).toBeGreaterThan(0)
      const away = page?.clusters.find(({ cluster }) => cluster === 'dr-site')
      expect(away?.part).toMatchObject({ outcome: 'unreachable', freshness: null })
    },
  )

  it('say of pods what kubectl would', async () => {
    const { items } = await client.fleetRows('pods', { where: ['status=Running'], limit: 1 })
    const [pod] = items
    const nodes = await client.nodes(pod?.cluster ?? '', {})
    expect(nodes.items.map(({ name }) => name)).toContain(pod?.values.node)
    expect(pod?.values).toMatchObject({
      phase: 'Running',
      containers: expect.any(Number),
      createdAt: expect.any(Number),
    })
  })

  it('are printed by the command line, by namespace and labels, and under short names', async () => {
    const ask = async (kind: string, over: { namespace?: string; selector?: string } = {}) =>
      (await get({ noun: { kind }, names: [], clusters: [], output: 'table', server: address, ...over })).text.split(
        '\n',
      )
    const [head, ...pods] = await ask('po')
    expect(head).toMatch(/^CLUSTER +NAMESPACE +NAME +STATUS +READY/)
    const statuses = pods.map((line) => line.split(/ {3,}/)[3])
    // The demo has broken pods, which come before all others.
    const lastBroken = statuses.findLastIndex((status) => status?.endsWith('BackOff'))
    expect(statuses.slice(0, lastBroken + 1).filter((status) => status === 'Running')).toEqual([])
    const { items } = await client.fleetRows('pods', { limit: 1 })
    const [one] = items
    const namespace = one?.namespace ?? ''
    const inNamespace = await ask('pods', { namespace })
    expect(inNamespace.length).toBeGreaterThan(1)
    expect(inNamespace.length).toBeLessThan(pods.length)
    for (const line of inNamespace.slice(1)) expect(line.split(/ {3,}/)[1]).toBe(namespace)
    expect((await ask('pod', { selector: 'no-such-label' })).join('')).toBe('')
    await expect(ask('podz')).rejects.toThrow(/did you mean/)
  })

  it.skipIf(noBrowser !== undefined)(
    'are on the page over all clusters: a click on a row and Enter open it over the list, which keeps filter and place',
    async () => {
      const browser = await openBrowser()
      try {
        const page = await browser.newPage({ viewport: { width: 1440, height: 900 } })
        // These last: pods of jobs and of rollouts go while one looks at them.
        const onNodes =
          'cluster:staging workload:DaemonSet/cilium,DaemonSet/csi-node,DaemonSet/fluent-bit,DaemonSet/node-exporter'
        await page.goto(`${address}/types/pods`)
        const table = page.getByRole('region', { name: 'pods of all clusters' })
        await table.getByRole('row').nth(3).waitFor()
        await page.getByRole('textbox', { name: 'Filter pods rows' }).fill(onNodes)
        // Once it is answered: until then the old rows are there, and an answer is shown from its first row on.
        const counted = async () =>
          /^([\d,]+) of ([\d,]+) rows$/.exec(await page.locator('.count [role=status]').innerText())
        await expect
          .poll(async () => ((found) => found !== null && found[1] !== found[2])(await counted()), patient)
          .toBe(true)
        const list = page.locator('.table-scroll')
        await list.evaluate((box) => box.scrollTo(0, 500))
        const row = table.locator('tr[data-index="20"]')
        const name = await row.locator('.row-link .name-whole, .row-link').last().textContent()
        // Beside its links.
        await row.getByRole('cell').nth(3).click()
        const dialog = page.getByRole('dialog')
        await dialog.getByText('Restarts').first().waitFor()
        await expect.poll(() => dialog.textContent(), patient).toContain(name)
        const asked = (of: string) => new URL(page.url()).searchParams.get(of)
        await expect.poll(() => asked('row'), patient).toMatch(/^staging\//)
        await expect.poll(() => asked('q'), patient).toBe(onNodes)
        const open = new URL(page.url())
        expect(open.pathname).toBe('/types/pods')

        await page.goBack()
        await dialog.waitFor({ state: 'detached' })
        await expect
          .poll(() => page.getByRole('textbox', { name: 'Filter pods rows' }).inputValue(), patient)
          .toBe(onNodes)
        await expect.poll(() => list.evaluate((box) => box.scrollTop), patient).toBe(500)

        await page.locator('h1').first().click()
        for (const key of ['j', 'j', 'Enter']) await page.keyboard.press(key)
        await dialog.waitFor()
        await page.keyboard.press('Escape')
        await dialog.waitFor({ state: 'detached' })
        await expect.poll(() => new URL(page.url()).pathname, patient).toBe('/types/pods')

        // Its address alone opens it, also where the list does not have it.
        await page.goto(`${address}/types/pods?${open.searchParams}&sort=-name`)
        await dialog.getByText('Restarts').first().waitFor()
        await expect.poll(() => dialog.textContent(), patient).toContain(name)

        // A share says of what it is: measured, or asked for.
        await page.goto(`${address}/types/nodes`)
        await page.locator('tbody tr[data-index] .row-link').first().click()
        await expect.poll(() => dialog.locator('dd .meter').count(), patient).toBe(2)
        for (const meter of await dialog.locator('dd .meter').allInnerTexts()) expect(meter).toMatch(/%\s+(used|req\.)/)
      } finally {
        await browser.close()
      }
    },
  )

  it.skipIf(noBrowser !== undefined)(
    'show at 360 px where each name begins and ends and of which cluster it is, also where other columns are scrolled to',
    async () => {
      const browser = await openBrowser()
      try {
        const page = await browser.newPage({ viewport: { width: 360, height: 740 } })
        for (const path of [
          '/pods?sort=-name',
          '/nodes?sort=-name',
          '/workloads?sort=-name',
          '/operators?sort=-name',
          '',
        ]) {
          await page.goto(`${address}/types${path}`)
          await page.locator('tbody .name-cut').filter({ visible: true }).nth(1).waitFor()
          await expect.poll(() => namesBeyond(page), { ...patient, message: path }).toEqual([])
        }
        await page.goto(`${address}/types/pods`)
        await page.locator('tbody tr[data-index] .row-link').first().waitFor()
        await page.locator('.table-scroll').evaluate((box) => box.scrollTo(400, 0))
        // What is seen at the left edge, of the headings and of the first row.
        const atEdge = () =>
          page.locator('.table-scroll').evaluate((box) => {
            box.scrollIntoView({ block: 'end' })
            return ['thead th', 'tbody tr[data-index] th'].map((of) => {
              const { left } = box.getBoundingClientRect()
              const cell = box.querySelector(of)?.getBoundingClientRect()
              const seen = box.ownerDocument.elementFromPoint(left + 30, (cell?.top ?? 0) + 12)
              return seen?.closest('th')?.textContent
            })
          })
        await expect.poll(async () => (await atEdge())[0], patient).toBe('Name')
        const clusters = (await client.clusters({})).items.map(({ name, displayName }) => displayName || name)
        const [, first] = await atEdge()
        expect(clusters.filter((name) => first?.includes(name))).toHaveLength(1)
      } finally {
        await browser.close()
      }
    },
  )
})
