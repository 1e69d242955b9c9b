import type { Locator, Page } from 'playwright-core'
import { expect } from 'vitest'
import { slowness } from '../../src/platform/runtime/testing/slowness.ts'

/** What a page comes to say by itself takes its time on a busy machine. */
export const patient = { timeout: 20_000 * slowness }

/** The words on the page's main part, or there, as soon as they are as expected. Read once, a page may still be loading. */
export const shown = (where: Page | Locator, message?: string) =>
  expect.poll(() => ('goto' in where ? where.locator('main') : where).innerText(), {
    ...patient,
    ...(message && { message }),
  })

/** Waits for the button, mends what was in the way, and presses; the page, which tries by itself as well, may have taken it away by then. */
export async function retryNow(where: Page | Locator, mend: () => unknown): Promise<void> {
  const button = where.getByRole('button', { name: 'Retry now' })
  await button.waitFor()
  await mend()
  await button.dispatchEvent('click', {}, { timeout: 1_000 }).catch(() => undefined)
}
