import { resolve } from 'node:path'
import { build, type Metafile } from 'esbuild'
import { beforeAll, describe, expect, it } from 'vitest'

let inputs: Metafile['inputs'] = {}

beforeAll(async () => {
  const { metafile } = await build({
    entryPoints: [resolve(import.meta.dirname, 'main.ts')],
    absWorkingDir: resolve(import.meta.dirname, '../../..'),
    bundle: true,
    write: false,
    platform: 'node',
    target: 'node20',
    format: 'esm',
    packages: 'external',
    metafile: true,
    logLevel: 'error',
    outfile: 'agent.mjs',
  })
  inputs = metafile.inputs
})

const ALLOWED =
  /^src\/(contract\/(model|path|wire)|platform\/(runtime|kube|outbound)|pipeline\/(collect|expression|metricsource|resources|agent)|apps\/agent)\/[^.]+(\.[^.]+)*\.ts$/

describe('the bundle of the agent', () => {
  it('holds no code of the hub', () => {
    const files = Object.keys(inputs)
    expect(files.length).toBeGreaterThan(40)
    expect(files.filter((file) => !ALLOWED.test(file))).toEqual([])
  })

  it('loads no store, no server framework and no database driver', () => {
    const loaded = new Set(
      Object.values(inputs).flatMap(({ imports }) =>
        imports.filter(({ external }) => external).map(({ path }) => path),
      ),
    )
    const packages = [...loaded]
      // What the bundler itself puts there is called <runtime>.
      .filter((path) => !path.startsWith('node:') && !path.startsWith('<'))
      .map((path) =>
        path
          .split('/')
          .slice(0, path.startsWith('@') ? 2 : 1)
          .join('/'),
      )
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
    expect([...new Set(packages)].filter((name) => !allowed.includes(name))).toEqual([])
  })
})
