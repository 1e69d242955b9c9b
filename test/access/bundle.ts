import { readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

export const root = fileURLToPath(new URL('../..', import.meta.url))

/** One place in one source file, and what stands there instead. */
export interface Mutation {
  /** from the root of the project */
  readonly file: string
  /** exactly once in the file */
  readonly text: string
  readonly instead: string
}

/**
 * The fuzz as one file for plain node, with places of the source exchanged where asked.
 * @throws Error where a text to exchange is not there exactly once: the list of faults is to follow the source
 */
export async function bundle(directory: string, name: string, mutations: readonly Mutation[] = []): Promise<string> {
  const outfile = join(directory, `${name}.mjs`)
  const used = new Set<Mutation>()
  for (const { file, text } of mutations) {
    const found = readFileSync(join(root, file), 'utf8').split(text).length - 1
    if (found !== 1) throw new Error(`${file} holds ${found} times, and not once:\n${text}`)
  }
  await build({
    entryPoints: [join(root, 'test/access/run.ts')],
    bundle: true,
    outfile,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    packages: 'external',
    sourcemap: 'inline',
    logLevel: 'error',
    plugins: [
      {
        name: 'faults',
        setup: ({ onLoad }) => {
          onLoad({ filter: /\.ts$/ }, ({ path }) => {
            const here = mutations.filter(({ file }) => relative(root, path) === file)
            if (here.length === 0) return undefined
            for (const one of here) used.add(one)
            const changed = here.reduce(
              (source, { text, instead }) => source.replace(text, () => instead),
              readFileSync(path, 'utf8'),
            )
            return { contents: changed, loader: 'ts' }
          })
        },
      },
    ],
  })
  const unused = mutations.filter((mutation) => !used.has(mutation))
  if (unused.length > 0) throw new Error(`the fuzz does not use ${unused.map(({ file }) => file).join(', ')}`)
  return outfile
}
