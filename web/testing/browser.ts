import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core'

const web = join(import.meta.dirname, '..')
// The engine without the windows around it does the same for a fifth less work.
const executables = ['/usr/bin/chromium-headless-shell', '/usr/bin/chromium']
const executable = process.env.CHROMIUM ?? executables.find(existsSync) ?? '/usr/bin/chromium'

/** Why the tests of the page cannot run here; undefined where they can, or must. */
export const noBrowser: string | undefined =
  existsSync(executable) || process.env.CI_REQUIRE_ALL === '1' ? undefined : `there is no ${executable}`

const flags = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  // A page that is loaded anew stays in its process: a third of the work of the test's browsers was to begin in a new one.
  '--process-per-site',
  '--in-process-gpu',
  '--num-raster-threads=1',
  '--disable-features=SpareRendererForSitePerProcess',
]

const open = new Set<Browser>()
/** What pages said before they went away. */
const lastWords: string[] = []

export async function openBrowser(...more: readonly string[]): Promise<Browser> {
  const browser = await chromium.launch({ executablePath: executable, args: [...flags, ...more] })
  open.add(browser)
  for (const make of ['newContext', 'newPage'] as const) {
    const made = browser[make].bind(browser) as (...how: unknown[]) => Promise<BrowserContext | Page>
    const followed = async (...how: unknown[]) => {
      const one = await made(...how)
      const context = 'context' in one ? one.context() : one
      for (const page of context.pages()) withWholeLoads(page)
      context.on('page', withWholeLoads)
      return one
    }
    Object.assign(browser, { [make]: followed })
  }
  const close = browser.close.bind(browser)
  browser.close = async (options) => {
    await keepWords(browser)
    open.delete(browser)
    await close(options)
  }
  return browser
}

const whole = new WeakSet<Page>()

/** A browser gives up all that is on its way where an address of the machine comes or goes, as other tests have it: that is loaded anew. */
function withWholeLoads(page: Page): void {
  if (whole.has(page)) return
  whole.add(page)
  let isLost = false
  page.on('requestfailed', (request) => {
    isLost ||= request.failure()?.errorText === 'net::ERR_NETWORK_CHANGED'
  })
  const goto = page.goto.bind(page)
  page.goto = async (...how) => {
    for (let tries = 0; ; tries++) {
      isLost = false
      try {
        const answer = await goto(...how)
        if (!isLost || tries === 5) return answer
      } catch (error) {
        // The page that says so may still be on its way where the next try begins.
        if (!/ERR_NETWORK_CHANGED|chrome-error:/.test(String(error)) || tries === 5) throw error
      }
    }
  }
}

/** Before pages go away, at the end of a test. */
export async function keepWords(browser: Browser): Promise<void> {
  lastWords.push(...(await wordsOf(browser)))
}

/** What every page that was open in this test says: a locator that waits in vain does not tell what was there instead. */
export async function takeWords(): Promise<readonly string[]> {
  return [...lastWords.splice(0), ...(await Promise.all([...open].map(wordsOf))).flat()]
}

const wordsOf = (browser: Browser): Promise<readonly string[]> =>
  Promise.all(
    browser
      .contexts()
      .flatMap((context) => context.pages())
      .map(async (page) => {
        const words = page.locator('body').innerText({ timeout: 2_000 })
        return `${page.url()}\n${(await words.catch(String)).slice(0, 4_000)}`
      }),
  )

/**
 * The page as it is in the sources now: what `npm test` has just built for all files (CLUSTERPULSE_PAGE names the folder), else
 * built into a folder of its own.
 */
export function buildPage(): { readonly root: string } & Disposable {
  const given = process.env.CLUSTERPULSE_PAGE
  if (given) return { root: given, [Symbol.dispose]: () => undefined }
  const root = mkdtempSync(join(tmpdir(), 'clusterpulse-page-'))
  const vite = join(web, '../node_modules/vite/bin/vite.js')
  const built = spawnSync(process.execPath, [vite, 'build', '--outDir', root, '--emptyOutDir', '--logLevel', 'warn'], {
    cwd: web,
    encoding: 'utf8',
    // The test runner says "test" here, which would build another page than people get.
    env: { ...process.env, NODE_ENV: 'production' },
  })
  if (built.status !== 0) throw new Error(`the page does not build: ${built.stderr || built.stdout}`)
  return { root, [Symbol.dispose]: () => rmSync(root, { recursive: true, force: true }) }
}
