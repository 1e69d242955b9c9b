#!/usr/bin/env node
// Asks dependency-cruiser for the rules of .dependency-cruiser.cjs and asserts that it saw the modules at all: with a
// compiler it does not know, it reports success over none.
import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const cruise = spawnSync(
  process.execPath,
  [
    join(root, 'node_modules/dependency-cruiser/bin/dependency-cruise.mjs'),
    'src',
    'web/src',
    '--output-type',
    'json',
    '--config',
    '.dependency-cruiser.cjs',
  ],
  { cwd: root, encoding: 'utf8', maxBuffer: 1 << 28 },
)
let result
try {
  result = JSON.parse(cruise.stdout)
} catch {
  console.error(cruise.stderr || cruise.stdout)
  process.exit(1)
}
const sources = readdirSync(join(root, 'src'), { recursive: true }).filter((name) => /\.tsx?$/.test(name)).length
const seen = result.modules.filter((module) => module.source.startsWith('src/')).length
const violations = result.summary.violations.filter((violation) => violation.rule.severity === 'error')
for (const { rule, from, to, cycle } of violations) {
  console.error(`${rule.name}: ${from} -> ${cycle ? cycle.map((step) => step.name).join(' -> ') : to}`)
}
console.log(
  `${seen} of ${sources} source files, ${result.summary.totalDependenciesCruised} dependencies, ${violations.length} violations`,
)
if (seen < sources) console.error(`only ${seen} of ${sources} source files were seen`)
process.exit(violations.length === 0 && seen >= sources ? 0 : 1)
