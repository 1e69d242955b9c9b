#!/usr/bin/env node
// Builds dist/: one bundle for the executable, with the packages it needs, and the web page.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { buildVersion } from './version.js'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const what = new Set(process.argv.slice(2))
const all = what.size === 0

/** Packages that hold machine code or are large and rarely needed stay outside. To open the files of the others was a third of a start. */
const outside = ['@duckdb/node-bindings', 'lmdb', '@aws-sdk/client-s3', 'pg-native']

/** What we use of undici: to read the whole of it takes longer than what most commands do. */
const partsOfUndici = {
  Client: 'dispatcher/client',
  Pool: 'dispatcher/pool',
  ProxyAgent: 'dispatcher/proxy-agent',
  buildConnector: 'core/connect',
}

/** The form of yaml that is made of modules, of which the bundle then holds what is used, is the one it has for browsers. */
const asModules = {
  name: 'as-modules',
  setup: (build) => {
    build.onResolve({ filter: /^yaml$/ }, () => ({
      path: join(root, 'node_modules/yaml/browser/index.js'),
      sideEffects: false,
    }))
    build.onResolve({ filter: /^undici$/ }, ({ resolveDir }) => ({ path: resolveDir, namespace: 'parts-of-undici' }))
    build.onLoad({ filter: /.*/, namespace: 'parts-of-undici' }, ({ path }) => ({
      contents: Object.entries(partsOfUndici)
        .map(([name, file]) => `export { default as ${name} } from 'undici/lib/${file}.js'`)
        .join('\n'),
      resolveDir: path,
    }))
    build.onResolve({ filter: /^typebox(\/.*)?$/ }, ({ path }) => ({
      path: fileURLToPath(import.meta.resolve(path)),
      sideEffects: false,
    }))
  },
}

/** What packages in the older form ask Node for. */
const requires = "import { createRequire as requireOf } from 'node:module'; const require = requireOf(import.meta.url);"

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
    external: outside,
    plugins: [asModules],
    banner: { js: requires },
    sourcemap: true,
    metafile: true,
    logLevel: 'warning',
    chunkNames: 'chunks/[name]-[hash]',
    define: { 'process.env.CLUSTERPULSE_VERSION': JSON.stringify(buildVersion(root)) },
  })
  assertLean(result.metafile)
  mkdirSync(join(root, 'dist/node'), { recursive: true })
  writeFileSync(join(root, 'dist/node/meta.json'), JSON.stringify(result.metafile))
  writeFileSync(join(root, 'dist/node/licenses.txt'), licensesOf(Object.keys(result.metafile.inputs)))
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

/** The licences of the packages in a bundle, which they ask to be handed on with. */
function licensesOf(inputs) {
  const folders = new Set(inputs.flatMap((input) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(input)?.[0] ?? []))
  const texts = [...folders].sort().map((folder) => {
    const { name, version, license } = JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8'))
    const files = readdirSync(join(root, folder)).filter((file) => /^(licen[cs]e|notice|copying)/i.test(file))
    const text = files.map((file) => readFileSync(join(root, folder, file), 'utf8').trim()).join('\n\n')
    return `${name} ${version} (${license})\n\n${text}`
  })
  return `${texts.join(`\n\n${'-'.repeat(80)}\n\n`)}\n`
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
  const stores = [...packages.map(({ path }) => path), ...inputs].filter((path) =>
    /(^|node_modules\/)(ioredis|lmdb|@duckdb|fastify)/.test(path),
  )
  if (inputs.length === 0 || foreign.length > 0 || stores.length > 0) {
    console.error(
      `the bundle of the agent holds what it must not: ${[...foreign, ...stores].join(', ') || 'nothing at all'}`,
    )
    process.exit(1)
  }
}
