import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { availableParallelism, cpus, loadavg, tmpdir } from 'node:os'
import { fileURLToPath } from 'node:url'
import { parseArgs, promisify } from 'node:util'

/*
 * What one changed row of a large table costs, beside the structure it replaced (CustomRows of commit bd2f9c1, taken out of git). A
 * process each, one after the other; medians.
 */

const FORMER = 'bd2f9c1'

/** Of one process; ms of CPU, bytes per row. */
interface Measured {
  readonly bytes: number
  readonly changed: { readonly patchMs: number; readonly diffMs: number }
  readonly replaced: { readonly patchMs: number; readonly diffMs: number }
  readonly scanMs: number
}

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url))
const execute = promisify(execFile)

/** Runs the bench and writes bench/results/table.md. */
export async function run(args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      rows: { type: 'string' },
      steps: { type: 'string' },
      runs: { type: 'string' },
      'no-write': { type: 'boolean' },
    },
  })
  const [rows, steps, runs] = [Number(values.rows ?? 100_000), Number(values.steps ?? 2000), Number(values.runs ?? 3)]
  const load = loadavg()[0] ?? 0
  const directory = await mkdtemp(`${tmpdir()}/bench-table-`)
  try {
    const { stdout } = await execute('git', ['show', `${FORMER}:src/contract/model/custom.ts`], { cwd: here('..') })
    await writeFile(`${directory}/custom.ts`, stdout)
    const [table, former]: [Measured[], Measured[]] = [[], []]
    for (let i = 0; i < runs; i++) {
      table.push(await measure([here('../src/contract/model/table.ts'), 'Table', rows, steps]))
      former.push(await measure([`${directory}/custom.ts`, 'CustomRows', rows, Math.max(20, steps / 50)]))
    }
    const spent = await measureSteps(rows, steps)
    const text = report({ table, former, ...spent, rows, steps, runs, load })
    if (!values['no-write']) {
      await mkdir(here('results'), { recursive: true })
      await writeFile(here('results/table.md'), text)
    }
    process.stdout.write(text)
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

async function measure(args: readonly (string | number)[]): Promise<Measured> {
  const flags = ['--expose-gc', '--import', 'tsx', here('table/measure.ts'), ...args.map(String)]
  const { stdout } = await execute(process.execPath, flags, { maxBuffer: 10e6 })
  return JSON.parse(stdout) as Measured // our own script's last words
}

/** Of one step, ms: of all blocks of steps. */
interface Spent {
  readonly median: number
  readonly mean: number
}
/** `all` of the way of a step through a hub, its parts, and that of a row that goes while another comes. */
type Step = Readonly<Record<'all' | 'decode' | 'check' | 'log' | 'state' | 'store' | 'replaced', Spent>>

/** A round of that many rows. */
type Round = Readonly<Record<'moved' | 'whole', Spent>>
const ROUND_ROWS = 20_000
const ROUNDS = 30

/** In a bundle, as the product runs: the loader of sources adds to every function that is made. */
async function measureSteps(rows: number, steps: number): Promise<{ step: Step; round: Round }> {
  const directory = here('../node_modules/.cache/bench-table')
  const outfile = `${directory}/step.js`
  const { build } = await import('esbuild')
  try {
    await build({
      entryPoints: [here('table/step.ts')],
      outfile,
      ...{ bundle: true, platform: 'node', format: 'esm', packages: 'external', logLevel: 'error' },
    })
    const measured = async (...args: readonly (string | number)[]): Promise<unknown> =>
      JSON.parse((await execute(process.execPath, [outfile, ...args.map(String)])).stdout)
    const step = (await measured(rows, steps)) as Step // our own script's last words
    return { step, round: (await measured(ROUND_ROWS, ROUNDS, 'round')) as Round }
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN
const ms = (value: number): string => `${value.toFixed(value < 1 ? 3 : 1)} ms`
const bytes = (value: number): string => `${value.toFixed(0)} B`

function report({
  table,
  former,
  step,
  round,
  ...how
}: {
  readonly table: readonly Measured[]
  readonly former: readonly Measured[]
  readonly step: Step
  readonly round: Round
  readonly rows: number
  readonly steps: number
  readonly runs: number
  readonly load: number
}): string {
  const line = (
    what: string,
    of: (one: Measured) => number,
    print: (value: number) => string,
    goal?: number,
  ): string => {
    const [now, before] = [median(table.map(of)), median(former.map(of))]
    const verdict = goal === undefined ? '| |' : `| ${print(goal)} | ${now <= goal ? 'met' : 'missed'}`
    return `| ${what} | ${print(now)} | ${print(before)} ${verdict} |`
  }
  const part = (what: string, { median, mean }: Spent, goal?: number) => {
    const verdict = goal === undefined ? '| | |' : `| ${ms(goal)} | ${median <= goal ? 'met' : 'missed'} |`
    return `| ${what} | ${ms(median)}, mean ${ms(mean)} | ${verdict}`
  }
  return `# Tables

One row of ${how.rows} changes: pod-like rows of 14 columns and three labels. CPU of the process, each of one step; medians of ${how.runs} processes of
${how.steps} steps, beside \`CustomRows\` of ${FORMER} in the same run.

| What | Table | CustomRows | Goal | |
|---|---|---|---|---|
${line('patch: three values of one row', ({ changed }) => changed.patchMs, ms, 0.1)}
${line('difference of that step', ({ changed }) => changed.diffMs, ms, 0.05)}
${line('patch: one row goes, another comes', ({ replaced }) => replaced.patchMs, ms)}
${line('difference of that step', ({ replaced }) => replaced.diffMs, ms)}
${part('a step in the hub, from its bytes to the stored change', step.all, 0.1)}
${part('of that: decoding, with the view of the stream', step.decode)}
${part('of that: checking it', step.check)}
${part('of that: its record of the log', step.log)}
${part('of that: state', step.state)}
${part('of that: the fields of the store, chunks that are written anew included', step.store)}
${part('the same way of a step in which a row goes and another comes', step.replaced)}
${part(`a round of ${ROUND_ROWS} pods in the hub, every one of them moved, told as differences`, round.moved, 60)}
${part('the same, told whole', round.whole, 60)}
${line('kept per row', (one) => one.bytes, bytes, 512)}
${line('reading one column of all rows in order', ({ scanMs }) => scanMs, ms)}

Node ${process.version}, ${availableParallelism()} cores of ${cpus()[0]?.model.trim() ?? 'an unknown processor'}; load ${how.load.toFixed(1)} when the run began.
A round: the same way, every row with another usage; ${ROUNDS} rounds.
A step in the hub: blocks of 100 steps, the median block and the mean of all; its parts are measured apart, in blocks of one part each. Fields are
what the stores are handed; the transaction of Redis or the record of the journal that takes them, shared by all that came since the last, is not in it.
Heap and array buffers after a collection of garbage, over the process before, rows read from JSON as from a store.
`
}
