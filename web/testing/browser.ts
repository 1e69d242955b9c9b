import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Browser, chromium } from 'playwright-core'

const web = join(import.meta.dirname, '..')
const executable = process.env.CHROMIUM ?? '/usr/bin/chromium'

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
]

export const openBrowser = (...more: readonly string[]): Promise<Browser> =>
  chromium.launch({ executablePath: executable, args: [...flags, ...more] })

/** The page as it is in the sources now, built into a folder of its own. */
export function buildPage(): { readonly root: string } & Disposable {
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
