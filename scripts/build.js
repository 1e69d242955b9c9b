#!/usr/bin/env node
// Builds dist/: one bundle for the executable (packages stay outside, but for a few) and the web page.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { buildVersion } from './version.js'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const what = new Set(process.argv.slice(2))
const all = what.size === 0

/**
 * Packages of many small files that every command needs: opening those takes longer than what most commands do. Each is
 * plain JavaScript, of which the bundle then holds what is used.
 */
const takenIn = {
  name: 'taken-in',
  setup: (build) =>
    build.onResolve({ filter: /^(typebox(\/.*)?|yaml)$/ }, ({ path }) => ({
      // The form of yaml that is made of modules is the one it has for browsers.
      path:
        path === 'yaml' ? join(root, 'node_modules/yaml/browser/index.js') : fileURLToPath(import.meta.resolve(path)),
      sideEffects: false,
    })),
}

if (all || what.has('node')) {
  const { build } = await import('esbuild')
  const result = await build({
    absWorkingDir: root,
    entryPoints: { clusterpulse: 'src/apps/cli/main.ts', agent: 'src/apps/agent/main.ts' },
    outdir: 'dist/node',
    bundle: true,
    splitting: true,
    platform: 'node',
    target: 'node20',
    format: 'esm',
    packages: 'external',
    plugins: [takenIn],
    sourcemap: true,
    metafile: true,
    logLevel: 'warning',
    chunkNames: 'chunks/[name]-[hash]',
    define: { 'process.env.CLUSTERPULSE_VERSION': JSON.stringify(buildVersion(root)) },
  })
  assertLean(result.metafile)
  mkdirSync(join(root, 'dist/node'), { recursive: true })
  writeFileSync(join(root, 'dist/node/meta.json'), JSON.stringify(result.metafile))
}

if ((all || what.has('web')) && existsSync(join(root, 'web/vite.config.ts'))) {
  rmSync(join(root, 'dist/web'), { recursive: true, force: true })
  const vite = spawnSync(
    process.execPath,
    [join(root, 'node_modules/vite/bin/vite.js'), 'build', '--logLevel', 'warn'],
    {
      cwd: join(root, 'web'),
      stdio: 'inherit',
    },
  )
  if (vite.status !== 0) process.exit(vite.status ?? 1)
}

/**
 * The agent holds no code of the hub: what its entry reaches comes from these modules only. What it loads later, such as inventory, is
 * judged by src/apps/agent/bundle.test.ts.
 */
function assertLean({ outputs }) {
  const allowed =
    /^src\/(contract\/|platform\/(runtime|kube|outbound)\/|pipeline\/(collect|expression|metricsource|resources|agent)\/|apps\/(agent\/|(inventory-settings|webhooks-config)\.ts))/
  const later = ['inventory', 'inventory-api', 'inventory-reviews', 'leadership'].map(
    (name) => `src/apps/agent/${name}.ts`,
  )
  const isLater = (file) => later.includes(outputs[file]?.entryPoint)
  const reached = new Set()
  const visit = (file) => {
    if (reached.has(file) || !outputs[file]) return
    reached.add(file)
    for (const { path } of outputs[file].imports) if (!isLater(path)) visit(path)
  }
  visit('dist/node/agent.js')
  const inputs = [...reached].flatMap((file) => Object.keys(outputs[file].inputs))
  const foreign = inputs.filter((input) => input.startsWith('src/') && !allowed.test(input))
  const packages = [...reached].flatMap((file) => outputs[file].imports.filter(({ external }) => external))
  const stores = packages.map(({ path }) => path).filter((path) => /^(ioredis|lmdb|@duckdb|fastify)/.test(path))
  if (inputs.length === 0 || foreign.length > 0 || stores.length > 0) {
    console.error(
      `the bundle of the agent holds what it must not: ${[...foreign, ...stores].join(', ') || 'nothing at all'}`,
    )
    process.exit(1)
  }
}
