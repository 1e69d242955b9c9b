import type { Browser, BrowserContext, CDPSession, Page } from 'playwright-core'
import { keepWords, openBrowser } from '../../web/testing/browser.ts'
import { patient } from './shown.ts'

export interface VisitOptions {
  readonly viewport?: { readonly width: number; readonly height: number }
  readonly colorScheme?: 'light' | 'dark'
  readonly reducedMotion?: 'reduce' | 'no-preference'
}

/**
 * The browser of a file of tests. To open a window takes a second of a processor: the first page of each test is one and the same,
 * emptied after it. Further pages of a test are of other people, in windows of their own.
 */
export class Visits implements AsyncDisposable {
  readonly #browser: Browser
  readonly #others: BrowserContext[] = []
  readonly #complaints: string[] = []
  #first: { readonly page: Page; readonly session: CDPSession } | undefined
  #isFirstTaken = false

  private constructor(browser: Browser) {
    this.#browser = browser
  }

  static async open(): Promise<Visits> {
    return new Visits(await openBrowser())
  }

  async visit(url: string, options: VisitOptions = {}): Promise<Page> {
    const page = this.#isFirstTaken ? await this.#another() : await this.#firstPage()
    const { viewport = { width: 1280, height: 800 }, colorScheme = 'light', reducedMotion = 'reduce' } = options
    await page.setViewportSize(viewport)
    await page.emulateMedia({ media: null, colorScheme, reducedMotion })
    await page.goto(url)
    return page
  }

  /** Ends a test. @returns what broke the content security policy or was thrown in it */
  async leave(): Promise<readonly string[]> {
    await keepWords(this.#browser)
    for (const context of this.#others.splice(0)) await context.close()
    if (this.#isFirstTaken && this.#first) await empty(this.#first.page, this.#first.session)
    this.#isFirstTaken = false
    return this.#complaints.splice(0)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#browser.close()
  }

  async #firstPage(): Promise<Page> {
    this.#isFirstTaken = true
    if (this.#first) return this.#first.page
    const page = await this.#window()
    this.#first = { page, session: await page.context().newCDPSession(page) }
    return page
  }

  async #another(): Promise<Page> {
    const page = await this.#window()
    this.#others.push(page.context())
    return page
  }

  async #window(): Promise<Page> {
    const page = await (await this.#browser.newContext()).newPage()
    page.setDefaultTimeout(patient.timeout)
    page.on('pageerror', (error) => this.#complaints.push(error.message))
    page.on('console', (message) => {
      if (/Content Security Policy|Minified React error/.test(message.text())) this.#complaints.push(message.text())
    })
    return page
  }
}

/**
 * To another address of the page, which is not loaded anew where it stands there: loading was most of the work of tests that look at
 * many. What was shown before goes away first, so that nobody looks at that.
 */
export async function goTo(page: Page, url: string): Promise<void> {
  const { origin } = new URL(url)
  if (!page.url().startsWith(`${origin}/`)) {
    await page.goto(url)
    return
  }
  for (const to of [`${origin}/no/such/page`, url])
    await page.evaluate(`new Promise((drawn) => {
      window.scrollTo(0, 0)
      window.history.pushState({ key: String(Math.random()) }, '', ${JSON.stringify(to)})
      window.dispatchEvent(new PopStateEvent('popstate'))
      requestAnimationFrame(() => requestAnimationFrame(drawn))
    })`)
}

/** As a new window would be, but for scripts and styles, whose names are of what they hold: another hub may listen where the one of this test did. */
async function empty(page: Page, session: CDPSession): Promise<void> {
  const { origin } = new URL(page.url())
  for (const beside of page.context().pages()) if (beside !== page) await beside.close()
  await page.unrouteAll()
  await page.goto('about:blank')
  await page.mouse.move(0, 0)
  await page.context().clearCookies()
  await session.send('Storage.clearDataForOrigin', { origin, storageTypes: 'all' })
}
