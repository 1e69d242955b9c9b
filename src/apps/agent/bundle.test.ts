import { resolve } from 'node:path'
import { build, type Metafile } from 'esbuild'
import { beforeAll, describe, expect, it } from 'vitest'

/** What is loaded at the start, and what besides where a cluster has the kinds of inventory. */
let atStart: Loaded
let withInventory: Loaded

interface Loaded {
  readonly files: readonly string[]
  readonly packages: readonly string[]
  readonly sizeBytes: number
}

beforeAll(async () => {
  const { metafile } = await build({
    entryPoints: { agent: resolve(import.meta.dirname, 'main.ts') },
    absWorkingDir: resolve(import.meta.dirname, '../../..'),
    bundle: true,
    splitting: true,
    write: false,
    platform: 'node',
    target: 'node20',
    format: 'esm',
    packages: 'external',
    metafile: true,
    logLevel: 'error',
    outdir: 'agent',
  })
  const inventory = ['inventory', 'inventory-reviews', 'leadership'].map(
    (name) =>
      Object.keys(metafile.outputs).find(
        (file) => metafile.outputs[file]?.entryPoint === `src/apps/agent/${name}.ts`,
      ) ?? '',
  )
  // main.ts loads the rest of the agent itself, before anything else.
  const app = Object.keys(metafile.outputs).find(
    (file) => metafile.outputs[file]?.entryPoint === 'src/apps/agent/index.ts',
  )
  atStart = loadedBy(metafile, ['agent/agent.js', app ?? ''])
  withInventory = loadedBy(metafile, inventory)
})

/** Everything that these import, but for what is imported later. */
function loadedBy({ outputs }: Metafile, entries: readonly string[]): Loaded {
  const reached = new Set<string>()
  const packages = new Set<string>()
  const visit = (file: string) => {
    const output = outputs[file]
    if (!output || reached.has(file)) return
    reached.add(file)
    for (const { path, kind, external } of output.imports) {
      if (kind === 'dynamic-import') continue
      if (!external) visit(path)
      // What the bundler itself puts there is called <runtime>.
      else if (!path.startsWith('node:') && !path.startsWith('<'))
        packages.add(
          path
            .split('/')
            .slice(0, path.startsWith('@') ? 2 : 1)
            .join('/'),
        )
    }
  }
  for (const entry of entries) visit(entry)
  const all = [...reached].flatMap((file) => outputs[file] ?? [])
  return {
    files: all.flatMap(({ inputs }) => Object.keys(inputs)),
    packages: [...packages].sort(),
    sizeBytes: all.reduce((sum, { bytes }) => sum + bytes, 0),
  }
}

const ALLOWED =
  /^src\/(contract\/(model|path|wire)|platform\/(runtime|kube|outbound)|pipeline\/(collect|expression|metricsource|resources|agent)|apps\/agent)\/[^.]+(\.[^.]+)*\.ts$|^src\/apps\/(inventory-settings|webhooks-config)\.ts$/
const ALLOWED_OF_INVENTORY =
  /^src\/(contract\/(model|path|kinds)|platform\/(runtime|kube|outbound|controller|webhooks|authority)|pipeline\/(collect|extract|sinks|inventory)|control\/certificates|apps\/agent)\/|^src\/apps\/(inventory-(config|settings|webhooks)|served-webhooks|webhooks-config)\.ts$/

describe('the bundle of the agent', () => {
  it('holds no code of the hub', () => {
    expect(atStart.files.length).toBeGreaterThan(40)
    expect(atStart.files.filter((file) => !ALLOWED.test(file))).toEqual([])
  })

  it('loads no store, no server framework and no database driver', () => {
    const allowed = [
      '@bufbuild/protobuf',
      '@grpc/grpc-js',
      'pino',
      'prom-client',
      'undici',
      'yaml',
      'typebox',
      're2js',
      'p-limit',
    ]
    expect(atStart.packages.filter((name) => !allowed.includes(name))).toEqual([])
  })

  it('loads inventory where a cluster has its kinds, without a driver of any sink and without the hub', () => {
    expect(withInventory.files).toContain('src/pipeline/inventory/targets/engine.ts')
    expect(atStart.files).not.toContain('src/pipeline/inventory/targets/engine.ts')
    expect(atStart.files).not.toContain('src/apps/agent/inventory-api.ts')
    expect(withInventory.files.filter((file) => !ALLOWED_OF_INVENTORY.test(file))).toEqual([])
    const drivers = ['pg', 'kafkajs', '@aws-sdk/client-s3', '@nats-io/jetstream', '@nats-io/transport-node']
    expect(withInventory.packages.filter((name) => drivers.includes(name))).toEqual([])
    expect(withInventory.files.filter((file) => /sinks\/(postgres|git|s3|nats|kafka|directory)/.test(file))).toEqual([])
  })
})
