#!/usr/bin/env node
// Runs after `npm ci` in a checkout: makes dist/, so that `npx clusterpulse` works at once. An installation without the
// development packages (a container that brings its own dist/) has nothing to build with and is left alone.
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const canBuild = existsSync(join(root, 'node_modules/esbuild')) && existsSync(join(root, 'src/apps/cli/main.ts'))
if (canBuild) {
  const built = spawnSync(process.execPath, [join(root, 'scripts/build.js')], { stdio: 'inherit' })
  process.exit(built.status ?? 1)
}
