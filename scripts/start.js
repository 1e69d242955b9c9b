#!/usr/bin/env node
// `npm start`: builds what is missing or older than its sources, and says so; then it is `clusterpulse up`.
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const parts = [
  { name: 'node', what: 'the program', made: 'dist/node/meta.json', from: ['src', 'proto'] },
  { name: 'web', what: 'the page', made: 'dist/web/index.html', from: ['web/src', 'src/contract'] },
]
const due = parts.filter(({ made, from }) => madeAt(made) < Math.max(...from.map(newestIn)))
if (due.length > 0) {
  process.stdout.write(`Building ${due.map(({ what }) => what).join(' and ')} (some seconds, once) …\n`)
  const built = spawnSync(process.execPath, [join(root, 'scripts/build.js'), ...due.map(({ name }) => name)], {
    stdio: 'inherit',
  })
  if (built.status !== 0) process.exit(built.status ?? 1)
}
// What `up` starts again, such as the agents of the demo, is the program itself.
process.argv.splice(1, 1, join(root, 'bin/clusterpulse.js'), 'up')
await import(new URL('../bin/clusterpulse.js', import.meta.url).href)

/** ms; 0 where it was never made */
function madeAt(path) {
  const file = join(root, path)
  return existsSync(file) ? statSync(file).mtimeMs : 0
}

/** ms; 0 where there is nothing, as in an installation without sources */
function newestIn(path) {
  const folder = join(root, path)
  if (!existsSync(folder)) return 0
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  return Math.max(0, ...files.map((entry) => statSync(join(entry.parentPath ?? entry.path, entry.name)).mtimeMs))
}
