import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { buildPage, noBrowser, openBrowser } from '../../web/testing/browser.ts'
import { pageBefore } from '../../web/testing/page-before.ts'
import { goTo } from '../page/visits.ts'
import { clusterpulse, type Running } from '../process.ts'

const suite = noBrowser === undefined ? 'tables of a real hub' : `tables of a real hub (skipped: ${noBrowser})`
const ofCluster = ['nodes', 'namespaces', 'deployments', 'types', 'types/pods', 'types/workloads', 'types/services']
const kinds = ['nodes', 'pods', 'workloads', 'services', 'persistentvolumeclaims', 'persistentvolumes', 'operators']
const tables = [
  '/',
  ...[...ofCluster, 'types/persistentvolumeclaims'].map((tab) => `/clusters/prod-east/${tab}`),
  ...[...kinds, 'namespaces', 'deployments', 'cluster-operators'].map((kind) => `/types/${kind}`),
  ...['/types', '/access', '/registries'],
]
/** Those with most columns, and others of each kind; all are looked at by `npm run soak journeys`. */
const some = [
  '/',
  '/clusters/prod-east/nodes',
  '/clusters/prod-east/types/pods',
  '/types/pods',
  '/types/workloads',
  '/access',
]

describe.skipIf(noBrowser !== undefined)(suite, { timeout: 300_000 }, () => {
  let built: ReturnType<typeof buildPage>
  let browser: Browser
  let folder = ''
  let hub: Running
  let before: Awaited<ReturnType<typeof pageBefore>>

  beforeAll(async () => {
    built = buildPage()
    browser = await openBrowser()
    folder = await mkdtemp(join(tmpdir(), 'clusterpulse-layout-'))
    const ports = ['--port', '0', '--control-plane-port', '0', '--ingester-port', '0']
    hub = clusterpulse(['up', '--demo', '--data-dir', folder, ...ports])
    before = await pageBefore((await hub.says(/on (http:\/\/127\.0\.0\.1:\d+)/, 120_000))[1] ?? '', built.root)
  })
  afterAll(async () => {
    await browser?.close()
    await before?.[Symbol.asyncDispose]()
    await hub?.[Symbol.asyncDispose]()
    await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
    built?.[Symbol.dispose]()
  })

  async function openPage(width: number, theme: 'light' | 'dark' = 'light'): Promise<Page> {
    const context = await browser.newContext({
      viewport: { width, height: 900 },
      colorScheme: theme,
      reducedMotion: 'reduce',
    })
    const page = await context.newPage()
    page.setDefaultTimeout(60_000)
    return page
  }

  /** Words of states that do not fit their cell. */
  const cutStates = (page: Page) =>
    page.evaluate<string[]>(`[...document.querySelectorAll('.table-scroll td .health')]
      .filter((mark) => mark.getBoundingClientRect().right > mark.closest('td').getBoundingClientRect().right)
      .map((mark) => mark.innerText)`)

  async function load(page: Page, path: string): Promise<void> {
    await goTo(page, `${before.address}${path}`)
    // Clusters are cards where there is little room.
    const first = page.locator('.table-scroll tbody th, main article').first()
    await first.waitFor().catch(async (cause: unknown) => {
      throw new Error(`${path} shows no rows: ${await page.locator('main').innerText()}`, { cause })
    })
  }

  /** By how many px each table of the page is wider than the room it has. */
  async function excess(page: Page): Promise<string[]> {
    const wide = await page.evaluate<string[]>(`[...document.querySelectorAll('.table-scroll')]
      .filter((box) => box.scrollWidth > box.clientWidth)
      .map((box) => location.pathname + ': ' + (box.scrollWidth - box.clientWidth) + ' px, ' +
        box.querySelectorAll('thead th').length + ' columns')`)
    // A shadow says that more follows, and is drawn nowhere else.
    await expect.poll(() => page.locator('.table-scroll:not([data-fits])').count()).toBe(wide.length)
    return wide
  }

  const fit =
    'scroll none of their usual columns sideways at 1440 px, cut no state, and make the page no wider at any width'
  it(fit, () => expectFit(some, ['/', '/types/pods']))
  it(`all of them ${fit}`, { tags: ['long'] }, () =>
    expectFit(tables, ['/', '/clusters/prod-east/types/pods', '/types/pods', '/types/persistentvolumeclaims']),
  )
  const expectFit = async (at1440: readonly string[], narrower: readonly string[]) => {
    const page = await openPage(1440)
    const wide: string[] = []
    const cut: string[] = []
    for (const path of at1440) {
      await load(page, path)
      wide.push(...(await excess(page)))
      cut.push(...(await cutStates(page)))
    }
    expect(wide).toEqual([])
    expect(cut).toEqual([])
    for (const path of narrower) {
      await load(page, path)
      for (const width of [1024, 1015, 900, 761, 360]) {
        await page.setViewportSize({ width, height: 900 })
        await page.evaluate('new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))')
        const over = await excess(page)
        if (path === '/') expect(over, `the fleet at ${width} px`).toEqual([])
        const wider = 'document.documentElement.scrollWidth - document.documentElement.clientWidth'
        expect(await page.evaluate(wider), `${path} at ${width} px`).toBeLessThanOrEqual(0)
      }
    }
    await page.context().close()
  }

  it('have the columns that are left out in their menu, and in the file once they are shown', async () => {
    const page = await openPage(1440)
    await load(page, '/clusters/prod-east/types/pods')
    const file = async () => {
      await page.getByRole('button', { name: 'Export' }).click()
      const href = (await page.getByRole('link', { name: /^CSV of/ }).getAttribute('href')) ?? ''
      await page.keyboard.press('Escape')
      return (await (await page.request.get(new URL(href, page.url()).href)).text()).split('\r\n')[0]?.split(',')
    }
    expect(await file()).not.toContain('CPU requested (cores)')
    await page.getByRole('button', { name: 'Columns' }).click()
    await page.getByLabel('CPU requested').check()
    await page.keyboard.press('Escape')
    await page.getByRole('columnheader', { name: 'CPU requested' }).waitFor()
    expect(await file()).toContain('CPU requested (cores)')
    await page.context().close()
  })

  it('are in files in the words of the screen, never as keys they are sorted by', async () => {
    const page = await openPage(1440)
    const file = async (path: string): Promise<string[][]> => {
      await load(page, path)
      await page.getByRole('button', { name: 'Export' }).click()
      const [download] = await Promise.all([
        page.waitForEvent('download'),
        page.getByRole('button', { name: 'CSV of what is shown' }).click(),
      ])
      const text = await readFile(await download.path(), 'utf8')
      return text
        .trim()
        .split('\r\n')
        .map((line) => line.split(','))
    }
    const cellsOf = ([head = [], ...rows]: string[][], name: string) => rows.map((row) => row[head.indexOf(name)] ?? '')
    // Both were looked at: the one that is off on purpose, and the other.
    await load(page, '/registries')
    for (const state of ['Healthy', 'Unhealthy'])
      await page.locator('tbody').getByText(state, { exact: true }).waitFor()
    const registries = await file('/registries')
    expect(new Set(cellsOf(registries, 'Health'))).toEqual(new Set(['Healthy', 'Unhealthy']))
    expect(new Set(cellsOf(registries, 'API version'))).toEqual(new Set(['registry/2.0', 'unknown']))
    expect(registries[0]).not.toContain('Severity')
    const [head] = await file('/types')
    expect(head?.slice(0, 2).map((name) => name.replace('\uFEFF', ''))).toEqual(['Type', 'Name'])
    const builtIn = async () => (await file('/types')).filter((row) => row.at(-1) === 'built in').length
    await expect.poll(builtIn).toBeGreaterThan(5)
    await page.context().close()
  })

  it.each(['light', 'dark'] as const)(
    'write what is well in quiet ink and what is not in a colour of its own, in %s',
    async (theme) => {
      const page = await openPage(1440, theme)
      const inks = new Map<string, Set<string>>()
      const lost: string[] = []
      page.on('requestfailed', (request) => lost.push(`${request.url()}: ${request.failure()?.errorText}`))
      for (const path of ['/', '/types/pods', '/types/nodes', '/types/workloads']) {
        await load(page, path)
        const { styled, quiet, marks } = await page.evaluate<{
          styled: boolean
          quiet: string
          marks: [state: string, ink: string][]
        }>(`(() => {
          const probe = document.body.appendChild(document.createElement('span'))
          probe.style.color = 'var(--ink-2)'
          const quiet = getComputedStyle(probe).color + ' 400'
          probe.remove()
          const marks = [...document.querySelectorAll('.table-scroll tr:not(.dim) td .health')].map((mark) => {
            const { color, fontWeight } = getComputedStyle(mark.querySelector('.health-word'))
            return [mark.className.replace('health is-', ''), color + ' ' + fontWeight]
          })
          const styled = [...document.querySelectorAll('link[rel=stylesheet]')].every((link) => link.sheet !== null)
          return { styled, quiet, marks }
        })()`)
        expect(styled, `the style sheets of ${path} are there; ${lost.join(', ')}`).toBe(true)
        for (const [state, ink] of marks) {
          if (state === 'healthy') expect(ink, `what is well on ${path}`).toBe(quiet)
          inks.set(state, (inks.get(state) ?? new Set()).add(ink))
        }
      }
      // The fleet of the demo has each of these: what is not seen was not looked at.
      expect([...inks.keys()]).toEqual(expect.arrayContaining(['healthy', 'degraded', 'unhealthy']))
      const [well, ...loud] = ['healthy', 'degraded', 'unhealthy'].map((state) => [...(inks.get(state) ?? [])])
      for (const one of loud) expect(one).toEqual([expect.stringMatching(/^rgb\(\d+, \d+, \d+\) 600$/)])
      const colours = [...(well ?? []), ...loud.flat()].map((ink) => ink.replace(/ \d+$/, ''))
      expect(new Set(colours).size).toBe(3)
      await page.context().close()
    },
  )
})
