#!/usr/bin/env node
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const entry = new URL('../dist/node/clusterpulse.js', import.meta.url)
if (!existsSync(fileURLToPath(entry))) {
  process.stderr.write('clusterpulse is not built yet: run `npm ci` (or `npm run build`) in its folder first\n')
  process.exit(1)
}
const { main } = await import(entry.href)
await main(process.argv)
