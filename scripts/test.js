#!/usr/bin/env node
// `npm test`: every suite, then what could not run and why, then `N passed, N failed`.
// Further words are handed to vitest: `npm test -- src/platform/kube`.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
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

/** One run of vitest. @returns its report, or undefined where it left none */
const run = (words) => {
  const end = spawnSync(
    process.execPath,
    [
      join(root, 'node_modules/vitest/vitest.mjs'),
      'run',
      '--reporter=default',
      '--reporter=json',
      `--outputFile.json=${report}`,
      ...words,
    ],
    {
      cwd: root,
      stdio: ['ignore', 'inherit', 'inherit'],
      env: {
        ...process.env,
        CLUSTERPULSE_PAGE: join(root, 'dist/web'),
        ...(!process.stdout.isTTY && { NO_COLOR: '1' }),
      },
    },
  )
  try {
    return { result: JSON.parse(readFileSync(report, 'utf8')), ok: end.status === 0 }
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
const { result, ok } = ended

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
const slowest = result.testResults
  .map(({ name, startTime, endTime }) => ({ file: relative(root, name), seconds: (endTime - startTime) / 1000 }))
  .sort((a, b) => b.seconds - a.seconds)
  .slice(0, 10)
const [busy, idle] = [after.busy - before.busy, after.idle - before.idle]
const share = Math.round((100 * busy) / (busy + idle || 1))
console.log(`\nThe processors of this machine worked ${Math.round(busy / 1000)} s meanwhile: ${share} % of the time.`)
console.log('\nLongest:')
for (const { file, seconds } of slowest) console.log(`  ${seconds.toFixed(1).padStart(6)} s  ${file}`)
const count = (wanted) =>
  result.testResults.flatMap(({ assertionResults }) => assertionResults).filter(({ status }) => status === wanted)
    .length
const passed = count('passed')
const leftOut = process.env.CI_REQUIRE_ALL === '1' ? skipped.size : 0
const failed = count('failed') + failedFiles + leftOut
if (leftOut > 0)
  console.error(
    `\nEvery suite has to run here (CI_REQUIRE_ALL=1); those not run, named above, count as failed: ${leftOut}`,
  )
console.log(`\n${passed} passed, ${failed} failed`)
process.exit(ok && failed === 0 && passed > 0 ? 0 : 1)
