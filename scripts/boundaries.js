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
const folderCycles = cyclesOfFolders(result.modules)
for (const cycle of folderCycles) console.error(`no-cycle-of-folders: ${cycle.join(' -> ')}`)
for (const { rule, from, to, cycle } of violations) {
  console.error(`${rule.name}: ${from} -> ${cycle ? cycle.map((step) => step.name).join(' -> ') : to}`)
}
console.log(
  `${seen} of ${sources} source files, ${result.summary.totalDependenciesCruised} dependencies, ${violations.length} violations`,
)
if (seen < sources) console.error(`only ${seen} of ${sources} source files were seen`)
process.exit(violations.length + folderCycles.length === 0 && seen >= sources ? 0 : 1)

/** Folders inside one module (or one part of the page) that import each other, by way of others too. Tests and their helpers do not count. */
function cyclesOfFolders(modules) {
  const isTest = (path) => /\.test\.tsx?$|\/test(ing)?\/|\/behaviour\//.test(path)
  const folderOf = (path) => /^(src\/\w+\/[\w-]+|web\/src\/\w+)\/(?:([\w-]+)\/)?/.exec(path)
  const edges = new Map()
  for (const { source, dependencies } of modules) {
    const from = folderOf(source)
    if (!from?.[2] || isTest(source)) continue
    for (const { resolved } of dependencies) {
      const to = folderOf(resolved)
      if (!to?.[2] || to[1] !== from[1] || to[2] === from[2] || isTest(resolved)) continue
      edges.set(from[0], (edges.get(from[0]) ?? new Set()).add(to[0]))
    }
  }
  const cycles = []
  const done = new Set()
  const walk = (folder, path) => {
    if (path.includes(folder)) return cycles.push([...path.slice(path.indexOf(folder)), folder])
    if (done.has(folder)) return
    for (const next of edges.get(folder) ?? []) walk(next, [...path, folder])
    done.add(folder)
  }
  for (const folder of edges.keys()) walk(folder, [])
  return cycles
}
