#!/usr/bin/env node
// `npm test`: every suite, then what could not run and why, then `N passed, N failed`.
// Further words are handed to vitest: `npm test -- src/platform/kube`. With SOAK_JOURNEYS it runs what it leaves out else.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
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

/** Whether this is the long run, of the tests that have a tag, or that of all others. */
const isLong = process.env.SOAK_JOURNEYS !== undefined

/** One run of vitest. @returns its report, or undefined where it left none */
const run = (words) => {
  const end = spawnSync(
    process.execPath,
    [
      join(root, 'node_modules/vitest/vitest.mjs'),
      'run',
      '--reporter=default',
      `--reporter=${join(root, 'scripts/test-report.js')}`,
      `--tags-filter=${isLong ? 'again || long' : '!again && !long'}`,
      ...words,
    ],
    {
      cwd: root,
      stdio: ['ignore', 'inherit', 'inherit'],
      env: {
        ...process.env,
        TEST_REPORT: report,
        CLUSTERPULSE_PAGE: join(root, 'dist/web'),
        ...(!process.stdout.isTTY && { NO_COLOR: '1' }),
      },
    },
  )
  try {
    return { files: JSON.parse(readFileSync(report, 'utf8')), ok: end.status === 0 }
  } catch (error) {
    console.error(`the test run left no report: ${error.message}`)
    return undefined
  }
}

/** How long all processors of this machine worked and were idle since it started, in ms. */
const processors = () => {
  const times = cpus().map((one) => one.times)
  const sum = (of) => times.reduce((total, one) => total + of(one), 0)
  return { busy: sum(({ user, nice, sys, irq }) => user + nice + sys + irq), idle: sum(({ idle }) => idle) }
}

const before = processors()
const ended = run(process.argv.slice(2))
const after = processors()
rmSync(scratch, { recursive: true, force: true })
if (!ended) process.exit(1)
const { files, ok } = ended

const isLeft = ({ tags }) => tags.length > 0 !== isLong
const tests = files.flatMap((file) => file.tests)
const skipped = new Map()
for (const test of tests)
  if (test.state === 'skipped' && !isLeft(test)) skipped.set(test.suite, (skipped.get(test.suite) ?? 0) + 1)
if (skipped.size > 0) {
  console.log('\nNot run:')
  for (const [suite, count] of skipped) console.log(`  - ${suite} (${count})`)
}
const slowest = files.toSorted((a, b) => b.seconds - a.seconds).slice(0, 10)
const [busy, idle] = [after.busy - before.busy, after.idle - before.idle]
const share = Math.round((100 * busy) / (busy + idle || 1))
console.log(`\nThe processors of this machine worked ${Math.round(busy / 1000)} s meanwhile: ${share} % of the time.`)
console.log('\nLongest:')
for (const { file, seconds } of slowest) console.log(`  ${seconds.toFixed(1).padStart(6)} s  ${file}`)
const count = (wanted) => tests.filter(({ state }) => state === wanted).length
const passed = count('passed')
const leftOut = process.env.CI_REQUIRE_ALL === '1' ? skipped.size : 0
const failedFiles = files.filter((file) => file.failed && file.tests.length === 0).length
const failed = count('failed') + failedFiles + leftOut
if (leftOut > 0)
  console.error(
    `\nEvery suite has to run here (CI_REQUIRE_ALL=1); those not run, named above, count as failed: ${leftOut}`,
  )
const left = files.map((file) => file.tests.filter(isLeft).length).filter((count) => count > 0)
if (!isLong && left.length > 0) {
  const sum = left.reduce((total, count) => total + count, 0)
  console.log(`\nLeft for \`npm run soak journeys\`: ${sum} tests in ${left.length} files.`)
}
console.log(`\n${passed} passed, ${failed} failed`)
process.exit(ok && failed === 0 && passed > 0 ? 0 : 1)
