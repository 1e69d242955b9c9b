#!/usr/bin/env node
// Reads every import of src/ and web/src/, those of types too, and holds it against scripts/boundary-rules.js.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { builtinModules } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import typescript from 'typescript'
import { forbidden } from './boundary-rules.js'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const aliases = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).imports
const core = new Set(builtinModules)

const sources = ['src', 'web/src'].flatMap((folder) =>
  readdirSync(join(root, folder), { recursive: true })
    .filter((name) => /\.tsx?$/.test(name))
    .map((name) => `${folder}/${name}`),
)
/** By source, what it imports: paths from the root. */
const imports = new Map(sources.map((source) => [source, importsOf(source)]))

const complaints = []
for (const [source, targets] of imports) {
  for (const { name, from, to } of forbidden) {
    const groups = from.path === undefined ? [] : new RegExp(from.path).exec(source)
    if (!groups || matches(from.pathNot, source)) continue
    const filled = (pattern) => pattern?.replaceAll('$1', groups[1])
    for (const { path, isCore, isMissing } of targets) {
      if (to.path !== undefined && !matches(filled(to.path), path)) continue
      if (to.pathNot !== undefined && [to.pathNot].flat().some((pattern) => matches(filled(pattern), path))) continue
      if (to.isCore !== undefined && to.isCore !== isCore) continue
      if (to.isMissing !== undefined && to.isMissing !== isMissing) continue
      complaints.push(`${name}: ${source} -> ${path}`)
    }
  }
}
const files = new Map([...imports].map(([source, targets]) => [source, targets.map(({ path }) => path)]))
for (const cycle of cyclesOf(files)) complaints.push(`no-cycle: ${cycle.join(' -> ')}`)
for (const cycle of cyclesOfFolders()) complaints.push(`no-cycle-of-folders: ${cycle.join(' -> ')}`)
for (const complaint of complaints) console.error(complaint)
const count = [...imports.values()].reduce((sum, targets) => sum + targets.length, 0)
console.log(`${sources.length} source files, ${count} imports, ${complaints.length} violations`)
process.exit(complaints.length === 0 && count > sources.length ? 0 : 1)

function matches(pattern, path) {
  return pattern !== undefined && [pattern].flat().some((one) => new RegExp(one).test(path))
}

function importsOf(source) {
  const { importedFiles } = typescript.preProcessFile(readFileSync(join(root, source), 'utf8'), true, true)
  return importedFiles.map(({ fileName }) => {
    const name = fileName.replace(/\?.*$/, '')
    if (name.startsWith('node:') || core.has(name)) return { path: name, isCore: true, isMissing: false }
    const alias = aliases[name]
    const path = alias ? join(alias) : name.startsWith('.') ? join(dirname(source), name) : `node_modules/${name}`
    // A package is looked for by its name alone: what is in it is the compiler's to know.
    const [at] = path.startsWith('node_modules/') ? /^node_modules\/(@[^/]+\/)?[^/]+/.exec(path) : [path]
    return { path, isCore: false, isMissing: !existsSync(join(root, at)) }
  })
}

/** Folders inside one module (or one part of the page) that import each other, by way of others too. Tests and their helpers do not count. */
function cyclesOfFolders() {
  const isTest = (path) => /\.test\.tsx?$|\/test(ing)?\/|\/behaviour\//.test(path)
  const folderOf = (path) => /^(src\/\w+\/[\w-]+|web\/src\/\w+)\/(?:([\w-]+)\/)?/.exec(path)
  const edges = new Map()
  for (const [source, targets] of imports) {
    const from = folderOf(source)
    if (!from?.[2] || isTest(source)) continue
    for (const { path } of targets) {
      const to = folderOf(path)
      if (!to?.[2] || to[1] !== from[1] || to[2] === from[2] || isTest(path)) continue
      edges.set(from[0], (edges.get(from[0]) ?? new Set()).add(to[0]))
    }
  }
  return cyclesOf(edges)
}

/** @param edges a Map of what each leads to. @returns cycles, each from where it begins to there again */
function cyclesOf(edges) {
  const cycles = []
  const done = new Set()
  const path = []
  const walk = (one) => {
    if (path.includes(one)) return cycles.push([...path.slice(path.indexOf(one)), one])
    if (done.has(one)) return
    path.push(one)
    for (const next of edges.get(one) ?? []) walk(next)
    path.pop()
    done.add(one)
  }
  for (const one of edges.keys()) walk(one)
  return cycles
}
