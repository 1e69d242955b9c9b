#!/usr/bin/env node
// `npm test`: every suite, then what could not run and why, then `N passed, N failed`.
// Further words are handed to vitest: `npm test -- src/platform/kube`.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const scratch = mkdtempSync(join(tmpdir(), 'clusterpulse-test-'))
const report = join(scratch, 'report.json')

const step = (name, args) => {
  const started = Date.now()
  const end = spawnSync(process.execPath, args, { cwd: root, stdio: 'inherit' })
  const ok = end.status === 0
  console.log(`${ok ? 'ok' : 'FAILED'}  ${name} (${((Date.now() - started) / 1000).toFixed(1)} s)`)
  return ok
}

// Page and process tests use what `npm start` uses: the built page and the built executable.
if (!step('build', [join(root, 'scripts/build.js')])) process.exit(1)

const vitest = spawnSync(
  process.execPath,
  [
    join(root, 'node_modules/vitest/vitest.mjs'),
    'run',
    '--reporter=default',
    '--reporter=json',
    `--outputFile.json=${report}`,
    ...process.argv.slice(2),
  ],
  {
    cwd: root,
    stdio: ['ignore', 'inherit', 'inherit'],
    env: process.stdout.isTTY ? process.env : { ...process.env, NO_COLOR: '1' },
  },
)

let result
try {
  result = JSON.parse(readFileSync(report, 'utf8'))
} catch (error) {
  console.error(`the test run left no report: ${error.message}`)
  process.exit(1)
} finally {
  rmSync(scratch, { recursive: true, force: true })
}

const skipped = new Map()
let failedFiles = 0
for (const file of result.testResults) {
  if (file.status === 'failed' && file.assertionResults.length === 0) failedFiles++
  for (const test of file.assertionResults) {
    if (test.status !== 'skipped' && test.status !== 'pending' && test.status !== 'todo') continue
    const suite = test.ancestorTitles.find((title) => title !== '') ?? test.title
    skipped.set(suite, (skipped.get(suite) ?? 0) + 1)
  }
}
if (skipped.size > 0) {
  console.log('\nNot run:')
  for (const [suite, count] of skipped) console.log(`  - ${suite} (${count})`)
}
const failed = result.numFailedTests + failedFiles
console.log(`\n${result.numPassedTests} passed, ${failed} failed`)
if (process.env.CI_REQUIRE_ALL === '1' && skipped.size > 0) {
  console.error('every suite had to run here (CI_REQUIRE_ALL=1)')
  process.exit(1)
}
process.exit(vitest.status === 0 && failed === 0 && result.numPassedTests > 0 ? 0 : 1)
