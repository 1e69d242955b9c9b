#!/usr/bin/env node
// `npm run soak NAME [-- words]`: a long run, for a night rather than for each change. Without a name: which there are.
import { spawnSync } from 'node:child_process'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const runs = {
  siege: {
    file: 'test/soak-siege.ts',
    what: 'a crowd at every door of a hub, beside a calm one: [windows = 5] [seconds = 20]',
  },
  damage: { file: 'test/soak-damage.ts', what: 'one harmed file in a data folder: [runs = 500] [seed]' },
}

const [name = '', ...words] = process.argv.slice(2)
const run = runs[name]
if (!run) {
  for (const [each, { what }] of Object.entries(runs)) console.log(`npm run soak ${each} -- …   ${what}`)
  process.exit(name === '' ? 0 : 1)
}
const node = (...args) => spawnSync(process.execPath, args, { cwd: root, stdio: 'inherit' }).status ?? 1
// What is started is the built executable, as people start it.
const built = node('scripts/build.js', 'node')
process.exit(built || node('--import', 'tsx', run.file, ...words))
