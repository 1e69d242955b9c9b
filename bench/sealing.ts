import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs, promisify } from 'node:util'
import { machine } from './rounds/reading.ts'
import type { Measured } from './sealing/store.ts'

/*
 * What sealing costs the embedded API: Secrets written one by one by many at once, then the start that reads them; beside the same
 * in the clear. A process and a folder each, turn about; medians.
 */

const MODES = ['clear', 'sealed'] as const
const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url))
const execute = promisify(execFile)

/** `--objects N`, `--bytes N` of each, `--runs N`, `--no-write`. Writes bench/results/sealing.md. */
export async function run(args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      objects: { type: 'string', default: '20000' },
      bytes: { type: 'string', default: '1000' },
      runs: { type: 'string', default: '5' },
      'no-write': { type: 'boolean', default: false },
    },
  })
  const begun = machine()
  const found: Record<(typeof MODES)[number], Measured[]> = { clear: [], sealed: [] }
  for (let i = 0; i < Number(values.runs); i++)
    for (const mode of MODES) found[mode].push(await measure(mode, values.objects, values.bytes))
  const line = (mode: (typeof MODES)[number]) => {
    const of = (key: keyof Measured) => median(found[mode].map((one) => one[key]))
    const cells = [
      of('writesPerSecond').toFixed(0),
      `${of('cpuPerWriteUs').toFixed(0)} µs`,
      `${of('startMs').toFixed(0)} ms`,
      `${of('bytesPerObject').toFixed(0)} B`,
      `${of('rssMiB').toFixed(0)} MiB`,
    ]
    return `| ${mode} | ${cells.join(' | ')} |`
  }
  const page = [
    '# Sealing',
    '',
    `\`npm run bench sealing\`: ${values.objects} Secrets of ${values.bytes} bytes created by 64 at once through the embedded API, each on disk twice before it is answered,`,
    `then a start of that folder. Medians of ${values.runs} runs each, turn about. ${begun}.`,
    '',
    '| on disk | objects/s | CPU per write | start | on disk, both copies | peak RSS |',
    '|---|---|---|---|---|---|',
    ...MODES.map(line),
    '',
  ].join('\n')
  process.stdout.write(page)
  if (values['no-write']) return
  await mkdir(here('results'), { recursive: true })
  await writeFile(here('results/sealing.md'), page)
}

async function measure(mode: string, ...size: readonly string[]): Promise<Measured> {
  const dir = await mkdtemp(join(tmpdir(), 'bench-sealing-'))
  try {
    const script = ['--import', 'tsx', here('sealing/store.ts')]
    const { stdout } = await execute(process.execPath, [...script, mode, dir, ...size])
    return JSON.parse(stdout) as Measured // our own script's last words
  } finally {
    await rm(dir, { recursive: true, force: true })
  }
}

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN
