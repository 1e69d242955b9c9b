import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { availableParallelism, cpus, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs, promisify } from 'node:util'
import { freePort } from '../src/platform/runtime/testing/free-port.ts'
import type { Answering, EngineResult, EngineTask } from './history/engine.ts'

/*
 * A month of node gauges into the embedded history and into VictoriaMetrics, through the same interface, and the charts of
 * it back. Each engine has a process of its own; they run one after the other.
 */

interface Row extends EngineResult {
  readonly name: string
  /** NaN: not measured for this row */
  readonly bytesPerSample: number
  readonly serverRssMb: number
}

interface Options {
  readonly clusters: number
  readonly nodes: number
  readonly days: number
  readonly questions: number
}

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url))
const run1 = promisify(execFile)

/** Runs the bench and writes bench/results/history.md. Needs victoria-metrics on the path for its rows. */
export async function run(args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      clusters: { type: 'string', default: '1' },
      nodes: { type: 'string', default: '10' },
      days: { type: 'string', default: '30' },
      questions: { type: 'string', default: '21' },
      'no-write': { type: 'boolean', default: false },
    },
  })
  const options: Options = {
    clusters: Number(values.clusters),
    nodes: Number(values.nodes),
    days: Number(values.days),
    questions: Number(values.questions),
  }
  const directory = await mkdtemp(join(tmpdir(), 'bench-history-'))
  try {
    const rows = [...(await embedded(options, join(directory, 'duckdb'))), ...(await victoria(options, directory))]
    const text = report(rows, options)
    if (!values['no-write']) {
      await mkdir(here('results'), { recursive: true })
      await writeFile(here('results/history.md'), text)
    }
    process.stdout.write(text)
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

async function embedded(options: Options, directory: string): Promise<Row[]> {
  const raw = await engine({ ...options, directory, config: { kind: 'duckdb', rawDays: 40 }, fill: true })
  const bytes = await bytesIn(directory)
  const rolled = await engine({ ...options, directory, config: { kind: 'duckdb', rawDays: 7 }, fill: false })
  const serverRssMb = Number.NaN
  return [
    { ...raw, name: 'DuckDB, all raw', bytesPerSample: bytes / raw.samples, serverRssMb },
    { ...rolled, name: 'DuckDB, older than 7 days rolled up', bytesPerSample: Number.NaN, serverRssMb },
  ]
}

async function victoria(options: Options, directory: string): Promise<Row[]> {
  const data = join(directory, 'victoria')
  const port = await freePort()
  const endpoint = `http://127.0.0.1:${port}`
  const flags = [
    `-storageDataPath=${data}`,
    `-httpListenAddr=127.0.0.1:${port}`,
    '-retentionPeriod=1y',
    '-loggerLevel=ERROR',
  ]
  const server = spawn('victoria-metrics', flags, { stdio: 'ignore' })
  const failed = once(server, 'error').then(() => false)
  if (!(await Promise.race([answers(endpoint), failed]))) {
    process.stderr.write('victoria-metrics is not on the path: its rows are left out\n')
    return []
  }
  try {
    const config = { kind: 'victoria', endpoint } as const
    const result = await engine({ ...options, directory: join(directory, 'position'), config, fill: true })
    const status = await readFile(`/proc/${server.pid}/status`, 'utf8')
    server.kill('SIGINT')
    await once(server, 'exit')
    const serverRssMb = Number(/VmHWM:\s+(\d+)/.exec(status)?.[1]) / 1024
    return [{ ...result, name: 'VictoriaMetrics', bytesPerSample: (await bytesIn(data)) / result.samples, serverRssMb }]
  } finally {
    server.kill('SIGKILL')
  }
}

async function engine(task: EngineTask): Promise<EngineResult> {
  const { stdout } = await run1(process.execPath, ['--import', 'tsx', here('history/engine.ts'), JSON.stringify(task)])
  return JSON.parse(stdout) as EngineResult
}

async function bytesIn(directory: string): Promise<number> {
  let bytes = 0
  for (const entry of await readdir(directory, { recursive: true, withFileTypes: true })) {
    if (entry.isFile()) bytes += (await stat(join(entry.parentPath, entry.name))).size
  }
  return bytes
}

async function answers(endpoint: string): Promise<boolean> {
  for (let tries = 0; tries < 200; tries++) {
    const isUp = await fetch(`${endpoint}/health`).then(
      ({ ok }) => ok,
      () => false,
    )
    if (isUp) return true
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  return false
}

function report(rows: readonly Row[], { clusters, nodes, days, questions }: Options): string {
  const number = (value: number, digits: number, unit = ''): string =>
    Number.isFinite(value) ? `${value.toFixed(digits)}${unit}` : '–'
  const answering = ({ wallMs, cpuMs }: Answering): string => `${number(wallMs, 1, ' ms')} (${number(cpuMs, 1)} CPU)`
  const lines = rows.map((row) => {
    const rate = row.appendSeconds > 0 ? row.samples / row.appendSeconds / 1e6 : Number.NaN
    const cells = [
      row.name,
      number(rate, 2, ' M'),
      row.appendCpuSeconds > 0 ? number((row.appendCpuSeconds / row.samples) * 1e6, 2, ' s') : '–',
      row.firstMillionSeconds > 0 ? number(row.firstMillionSeconds, 2, ' s') : '–',
      number(row.bytesPerSample, 2),
      answering(row.oneGauge),
      answering(row.allGauges),
      number(row.rssMb, 0, ' MB'),
      number(row.serverRssMb, 0, ' MB'),
    ]
    return `| ${cells.join(' | ')} |`
  })
  const [own] = rows
  const met = (isMet: boolean): string => (isMet ? 'met' : 'missed')
  const rate = own ? own.samples / own.appendSeconds : 0
  return `# History

${clusters} × ${nodes} nodes × 17 gauges × ${days} days at 30 s: ${((own?.samples ?? 0) / 1e6).toFixed(1)} million samples.

| Store | Appended/s | CPU per million | first million | bytes/sample on disk | one gauge, ${days} days in 300 points | 17 gauges | our RSS | server's RSS |
|---|---|---|---|---|---|---|---|---|
${lines.join('\n')}

- Embedded append: ${number(rate / 1e6, 2)} M samples/s. Goal 1 M: ${met(rate >= 1e6)}.
- Embedded on disk: ${number(own?.bytesPerSample ?? Number.NaN, 2)} bytes per raw sample. Goal 3: ${met((own?.bytesPerSample ?? 9) <= 3)}.
- Embedded charts of ${days} raw days: ${number(own?.oneGauge.wallMs ?? Number.NaN, 1)} ms for one gauge (goal 20 ms: ${met((own?.oneGauge.wallMs ?? 99) <= 20)}), ${number(own?.allGauges.wallMs ?? Number.NaN, 1)} ms for 17 (goal 60 ms: ${met((own?.allGauges.wallMs ?? 99) <= 60)}).

## Method

\`npm run bench history\`. The store is the one the hub uses, opened by \`openHistory\`; each row runs in a process of its own, one after the
other (${availableParallelism()} cores, ${cpus()[0]?.model ?? 'unknown'}, Node ${process.version}, load of the machine at the end ${number(loadavg()[0] ?? 0, 1)}). Random walks, rounded as such numbers are: percent and
cores to hundredths, memory to MiB, pods whole. Batches of all clusters come in the order of time, as live ones do, 1000 in one \`append\`,
which is one transaction and one position; making the batches is not timed.

Times of charts are the medians of ${questions} questions through \`range\`, each of another node than the one before. The second row opens what the
first left, keeps older samples than 7 days as means of 5 minutes, which is the default, and asks the same. Bytes are those of all files after
the store was closed, blocks included that DuckDB keeps free for what comes next: with little data they are a good part. CPU is user plus system time of our process: of the embedded store that is all of it, and steadier than the clock where
the machine does other work. VictoriaMetrics is the real server on loopback: its appends are the documented text lines over HTTP, made by us, and
what it took counts as safe at once here, where the hub holds it for 15 s.
`
}
