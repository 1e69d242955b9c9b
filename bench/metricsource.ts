import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { availableParallelism, cpus, loadavg, tmpdir } from 'node:os'
import { fileURLToPath } from 'node:url'
import { parseArgs, promisify } from 'node:util'
import { invariant } from '#model'
import { writePages } from './metricsource/declaration.ts'

/*
 * What a MetricSource costs whoever collects it: taking objects apart, computing, summing up, keeping the rows; and what one
 * expression costs, beside a walker over its tree and beside CEL. Each part runs in processes of its own, one after the other.
 */

interface Options {
  readonly objects: number
  readonly many: number
  readonly evaluations: number
  readonly runs: number
}

interface Times {
  readonly parseMs: number
  readonly addMs: number
  readonly rowsMs: number
  readonly aggregateMs: number
}

/** What metricsource/collect.ts tells: CPU of the process, memory over what it had when it was ready. */
interface Collected {
  readonly first: Times
  readonly warm: Times
  readonly keptMiB: number
  readonly peakMiB: number
}

/** What metricsource/expressions.ts tells: evaluations per second of CPU. */
interface Expressions {
  readonly ours: number
  readonly walker: number
  readonly cel: number | null
}

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url))

/** Runs the bench and writes bench/results/metricsource.md. */
export async function run(args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      objects: { type: 'string' },
      many: { type: 'string' },
      evaluations: { type: 'string' },
      runs: { type: 'string' },
      'no-write': { type: 'boolean' },
    },
  })
  const options: Options = {
    objects: Number(values.objects ?? 10_000),
    many: Number(values.many ?? 100_000),
    evaluations: Number(values.evaluations ?? 3_000_000),
    runs: Number(values.runs ?? 5),
  }
  const load = loadavg()[0] ?? 0
  const some = await collect(options.objects, options.runs)
  const [many] = await collect(options.many, 1)
  invariant(many, 'it ran once')
  const expressions: Expressions[] = []
  for (let i = 0; i < options.runs; i++) {
    expressions.push(await measure<Expressions>('expressions.ts', [options.evaluations]))
  }
  const text = report({ some, many, expressions, options, load })
  if (!values['no-write']) {
    await mkdir(here('results'), { recursive: true })
    await writeFile(here('results/metricsource.md'), text)
  }
  process.stdout.write(text)
}

/** What several processes tell, each of the same pages. */
async function collect(objects: number, runs: number): Promise<readonly Collected[]> {
  const directory = await mkdtemp(`${tmpdir()}/bench-metricsource-`)
  try {
    const file = `${directory}/pages`
    await writePages(file, objects)
    const collected: Collected[] = []
    for (let i = 0; i < runs; i++) collected.push(await measure<Collected>('collect.ts', [file, objects, 6]))
    return collected
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

async function measure<T>(script: string, args: readonly (string | number)[]): Promise<T> {
  const flags = ['--expose-gc', '--import', 'tsx', here(`metricsource/${script}`), ...args.map(String)]
  const { stdout } = await promisify(execFile)(process.execPath, flags, { maxBuffer: 10e6 })
  return JSON.parse(stdout) as T // our own script's last words
}

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN
const ours = ({ addMs, rowsMs, aggregateMs }: Times): number => addMs + rowsMs + aggregateMs
const ms = (value: number): string => `${value.toFixed(value < 10 ? 1 : 0)} ms`
const mib = (value: number): string => `${value.toFixed(0)} MiB`
const millions = (value: number): string => `${(value / 1e6).toFixed(1)} M/s`
const met = (isMet: boolean): string => (isMet ? 'met' : 'missed')

function report({
  some,
  many,
  expressions,
  options,
  load,
}: {
  readonly some: readonly Collected[]
  readonly many: Collected
  readonly expressions: readonly Expressions[]
  readonly options: Options
  readonly load: number
}): string {
  const first = median(some.map(({ first }) => ours(first)))
  const warm = median(some.map(({ warm }) => ours(warm)))
  const parse = median(some.map(({ first }) => first.parseMs))
  const peak = median(some.map(({ peakMiB }) => peakMiB))
  const kept = median(some.map(({ keptMiB }) => keptMiB))
  const perSecond = median(expressions.map((one) => one.ours))
  const walker = median(expressions.map((one) => one.walker))
  const cel = median(expressions.flatMap((one) => (one.cel === null ? [] : [one.cel])))
  const times = (what: number): string => (Number.isNaN(what) ? '–' : `${(perSecond / what).toFixed(1)} ×`)
  const row = (name: string, { addMs, rowsMs, aggregateMs, parseMs }: Times): string =>
    `| ${name} | ${ms(parseMs)} | ${ms(addMs)} | ${ms(rowsMs)} | ${ms(aggregateMs)} | ${ms(addMs + rowsMs + aggregateMs)} |`
  const [one] = some
  return `# MetricSources

One source of 10 fields, 5 expressions and 8 aggregations over ${options.objects} volumes.

| What | Measured | Goal | |
|---|---|---|---|
| CPU of the first collection of a process | ${ms(first)} | 150 ms | ${met(first <= 150)} |
| memory at its peak, over the process before | ${mib(peak)} | 60 MiB | ${met(peak <= 60)} |
| \`round((used / capacity) * 100, 2)\`, evaluations per second of CPU | ${millions(perSecond)} | 1 M/s | ${met(perSecond >= 1e6)} |

Besides: later collections of the same process take ${ms(warm)}; parsing the JSON of the pages takes ${ms(parse)} on top; what is kept in
the end is ${kept.toFixed(1)} MiB. Medians of ${options.runs} processes.

## Where the time goes

| Collection | Parsing JSON (not ours) | Fields and expressions | Rows in order | Aggregations | Ours |
|---|---|---|---|---|---|
${one ? row(`${options.objects} objects, first`, one.first) : ''}
${one ? row(`${options.objects} objects, warm`, one.warm) : ''}
${row(`${options.many} objects, first`, many.first)}

${options.many} objects: ${mib(many.peakMiB)} at the peak, ${many.keptMiB.toFixed(1)} MiB kept. Pages of 500 come one by one; an object is garbage when its page is.

## Expressions

| Evaluator | Evaluations per second of CPU | Ours is |
|---|---|---|
| compiled by us | ${millions(perSecond)} | |
| a walker over the syntax tree | ${millions(walker)} | ${times(walker)} |
| @marcbachmann/cel-js, variables and function declared | ${Number.isNaN(cel) ? 'not installed' : millions(cel)} | ${times(cel)} |

Node ${process.version}, ${availableParallelism()} cores of ${cpus()[0]?.model.trim() ?? 'an unknown processor'}; load ${load.toFixed(1)} when the run began.
CPU is user plus system time of the process, so others on the machine slow it less than they would a clock.
`
}
