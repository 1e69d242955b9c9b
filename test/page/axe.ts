import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { patient } from './shown.ts'

const source = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const standards = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']
const colours = ['color-contrast', 'link-in-text-block']

/**
 * What axe complains of: every rule in the light theme, and in the dark one the rules about colours. The themes differ in nothing
 * else.
 */
export async function complaintsOf(page: Page): Promise<readonly string[]> {
  await page.evaluate(`window.axe === undefined && (() => { ${source} })()`)
  const found: string[] = []
  for (const [colorScheme, runOnly] of [
    ['dark', { type: 'rule', values: colours }],
    ['light', { type: 'tag', values: standards }],
  ] as const) {
    await page.emulateMedia({ colorScheme })
    await expect.poll(() => page.evaluate('document.documentElement.dataset.theme'), patient).toBe(colorScheme)
    const complaints = await page.evaluate<string[]>(`axe
      .run(document, { runOnly: ${JSON.stringify(runOnly)}, resultTypes: ['violations'], preload: false })
      .then(({ violations }) => violations.flatMap(({ id, nodes }) =>
        nodes.map((node) => id + ' ' + node.html.slice(0, 160) + ' ' + node.failureSummary.slice(0, 200))))`)
    found.push(...complaints.map((complaint) => `${colorScheme}: ${complaint}`))
  }
  return found
}

/** By how many px the page is wider than a window of 320 px, which it is shown in for a moment. */
export async function excessAt320(page: Page): Promise<number> {
  const before = page.viewportSize()
  await page.setViewportSize({ width: 320, height: 740 })
  const excess =
    await page.evaluate<number>(`new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(
    () => resolve(document.documentElement.scrollWidth - document.documentElement.clientWidth))))`)
  if (before) await page.setViewportSize(before)
  return excess
}
