import { mkdir, rm } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { build } from 'esbuild'

/** A program of these tests as one file that plain Node starts quickly; it goes with the value. */
export async function bundle(name: string): Promise<{ readonly path: string } & AsyncDisposable> {
  // Beside the installed packages, so that the bundle finds those it leaves out.
  const cache = resolve('node_modules/.cache/clusterpulse')
  await mkdir(cache, { recursive: true })
  const path = join(cache, `${name}-${process.pid}.mjs`)
  await build({
    entryPoints: [join(import.meta.dirname, `${name}.ts`)],
    outfile: path,
    bundle: true,
    platform: 'node',
    format: 'esm',
    packages: 'external',
    logLevel: 'error',
  })
  return { path, [Symbol.asyncDispose]: () => rm(path, { force: true }) }
}
