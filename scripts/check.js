#!/usr/bin/env node
// `npm run check`: types, lint and format, import boundaries, unused code, fresh generated files. Every step runs; one
// failure fails the whole.
import { spawnSync } from 'node:child_process'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const bin = (path) => [process.execPath, join(root, 'node_modules', path)]
// TypeScript 7 checks the same with a third of the processor's time. Version 6 stays beside it for scripts/boundaries.js, which reads
// imports with its scanner: 7 has none for programs.
const types = [...bin('typescript-7/bin/tsc'), '--singleThreaded']
// Threads wait for each other at work: alone, lint takes a tenth less of the processors.
const steps = [
  ['types', ...types, '-p', '.'],
  ['types of the page', ...types, '-p', 'web'],
  [
    'lint and format',
    ...bin('@biomejs/biome/bin/biome'),
    'ci',
    '--threads=1',
    '--colors=off',
    '--error-on-warnings',
    '.',
  ],
  ['import boundaries', process.execPath, 'scripts/boundaries.js'],
  ['unused code', process.execPath, '--max-semi-space-size=128', ...bin('knip/bin/knip.js').slice(1)],
  ['generated files', ...bin('tsx/dist/cli.mjs'), 'scripts/generate.ts', '--check'],
]
// What the checker takes it gives back with its end: a third of its time was to collect garbage before. Within 3 GiB it need not.
const env = { ...process.env, GOGC: 'off', GOMEMLIMIT: '3GiB' }
const only = process.argv.slice(2)
let failed = 0
for (const [name, command, ...args] of steps) {
  if (only.length > 0 && !only.some((word) => name.includes(word))) continue
  const started = Date.now()
  const end = spawnSync(command, args, { cwd: root, encoding: 'utf8', env })
  const ok = end.status === 0
  if (!ok) failed++
  console.log(`${ok ? 'ok' : 'FAILED'}  ${name} (${((Date.now() - started) / 1000).toFixed(1)} s)`)
  if (!ok) console.log(`${end.stdout ?? ''}${end.stderr ?? ''}${end.error?.message ?? ''}`)
}
process.exit(failed === 0 ? 0 : 1)
