import { mkdir, rm } from 'node:fs/promises'
import { basename, join, resolve } from 'node:path'
import { build } from 'esbuild'

let made = 0

/** As in scripts/build.js: to open the files of the other packages is much of a start. */
export const withPackages = {
  external: ['@duckdb/node-bindings', 'lmdb', '@aws-sdk/client-s3', 'pg-native'],
  banner: {
    js: "import { createRequire as requireOf } from 'node:module'; const require = requireOf(import.meta.url);",
  },
}

/**
 * A program of a test as one file: plain Node starts it with a tenth of the work that compiling its sources takes.
 * It goes with the value.
 */
export async function bundled(source: string): Promise<{ readonly path: string } & AsyncDisposable> {
  // Beside the installed packages, so that the bundle finds those it leaves out.
  const cache = resolve('node_modules/.cache/clusterpulse')
  await mkdir(cache, { recursive: true })
  const path = join(cache, `${basename(source, '.ts')}-${process.pid}-${++made}.mjs`)
  await build({
    entryPoints: [source],
    outfile: path,
    bundle: true,
    platform: 'node',
    target: 'node20',
    format: 'esm',
    ...withPackages,
    logLevel: 'error',
  })
  return { path, [Symbol.asyncDispose]: () => rm(path, { force: true }) }
}
