import { type ChildProcess, execFileSync, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { availableParallelism, cpus, loadavg, tmpdir } from 'node:os'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

/*
 * GET /api/v1/clusters at 50 concurrent, while the fleet changes: our server against one that reads Redis per cluster per
 * request. Each server has a process of its own, so has the load; they run one after the other on an otherwise idle machine.
 */

interface Facts {
  readonly rssBytes: number
  readonly cpuMs: number
  readonly applied: number
}

/** What api/load.ts tells; ms. */
interface Load {
  readonly requests: number
  readonly seconds: number
  readonly p50: number
  readonly p99: number
  readonly max: number
  readonly failures: number
}

interface Result {
  readonly name: string
  readonly requestsPerSecond: number
  readonly p50: number
  readonly p99: number
  readonly max: number
  readonly bodyKb: number
  readonly cpuMsPerRequest: number
  readonly rssMb: number
  readonly batchesPerSecond: number
  readonly failures: number
}

interface Options {
  readonly clusters: number
  readonly nodes: number
  readonly seconds: number
  readonly connections: number
  readonly batchesPerSecond: number
}

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url))

/** Runs the bench and writes bench/results/api.md. Needs redis-server on the path. */
export async function run(args: readonly string[]): Promise<void> {
  const number = (value: string | undefined, otherwise: number): number => Number(value ?? otherwise)
  const { values } = parseArgs({
    args: [...args],
    options: {
      clusters: { type: 'string' },
      nodes: { type: 'string' },
      seconds: { type: 'string' },
      connections: { type: 'string' },
      batches: { type: 'string' },
    },
  })
  const options: Options = {
    clusters: number(values.clusters, 1000),
    nodes: number(values.nodes, 10),
    seconds: number(values.seconds, 10),
    connections: number(values.connections, 50),
    batchesPerSecond: number(values.batches, 33),
  }
  const directory = await mkdtemp(`${tmpdir()}/bench-api-`)
  const redis = await startRedis(directory)
  try {
    const ours = (name: string, headers: readonly string[]) =>
      measure({ name, script: 'baseline/memory-server.ts', extra: [directory], headers, options })
    const results = [
      await ours('ours, gzip', ['accept-encoding: gzip']),
      await ours('ours, plain', []),
      await measure({
        name: 'Redis per cluster per request, plain',
        script: 'baseline/redis-per-cluster.ts',
        extra: [String(redis.port)],
        headers: [],
        options,
      }),
    ]
    const text = report(results, options)
    await mkdir(here('results'), { recursive: true })
    await writeFile(here('results/api.md'), text)
    process.stdout.write(text)
  } finally {
    redis.child.kill()
    await once(redis.child, 'exit')
    await rm(directory, { recursive: true, force: true })
  }
}

interface Measurement {
  readonly name: string
  readonly script: string
  readonly extra: readonly string[]
  readonly headers: readonly string[]
  readonly options: Options
}

async function measure({ name, script, extra, headers, options }: Measurement): Promise<Result> {
  const { clusters, nodes, seconds, connections, batchesPerSecond } = options
  const server = fork(here(script), [...[clusters, nodes, batchesPerSecond].map(String), ...extra])
  try {
    const { url } = (await message(server)) as { url: string }
    const bytes = await bodyBytes(url, headers)
    await load(url, connections, 2, headers) // warm
    const before = await ask(server)
    const result = await load(url, connections, seconds, headers)
    const after = await ask(server)
    return {
      name,
      requestsPerSecond: result.requests / result.seconds,
      p50: result.p50,
      p99: result.p99,
      max: result.max,
      bodyKb: bytes / 1000,
      cpuMsPerRequest: (after.cpuMs - before.cpuMs) / Math.max(1, result.requests),
      rssMb: after.rssBytes / 1e6,
      batchesPerSecond: (after.applied - before.applied) / result.seconds,
      failures: result.failures,
    }
  } finally {
    server.kill()
    await once(server, 'exit')
  }
}

async function message(child: ChildProcess): Promise<unknown> {
  const [value] = await Promise.race([
    once(child, 'message'),
    once(child, 'exit').then(() => Promise.reject(new Error('the server ended before it answered'))),
  ])
  return value
}

async function ask(child: ChildProcess): Promise<Facts> {
  const answer = message(child)
  child.send('facts')
  return (await answer) as Facts
}

async function bodyBytes(url: string, headers: readonly string[]): Promise<number> {
  const output = execFileSync('curl', ['-s', ...headers.flatMap((one) => ['-H', one]), url], {
    maxBuffer: 100e6,
  })
  return output.length
}

async function load(url: string, connections: number, seconds: number, headers: readonly string[]): Promise<Load> {
  const flags = [url, connections, seconds, 0].map(String)
  const child = spawn(process.execPath, ['--import', 'tsx', here('api/load.ts'), ...flags, ...headers], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text
  })
  await once(child, 'close')
  return JSON.parse(output) as Load
}

async function startRedis(directory: string): Promise<{ child: ChildProcess; port: number }> {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const address = probe.address()
  const port = typeof address === 'object' && address ? address.port : 0
  probe.close()
  const flags = ['--port', String(port), '--bind', '127.0.0.1', '--dir', directory, '--save', '', '--appendonly', 'no']
  const child = spawn('redis-server', flags)
  let said = ''
  for await (const text of child.stdout.setEncoding('utf8')) {
    said += String(text)
    if (said.includes('Ready to accept')) break
  }
  return { child, port }
}

function report(
  results: readonly Result[],
  { clusters, nodes, seconds, connections, batchesPerSecond }: Options,
): string {
  const [packed, plain, baseline] = results
  const ratio = (one: Result | undefined): string =>
    one && baseline ? (one.requestsPerSecond / baseline.requestsPerSecond).toFixed(0) : '?'
  const rows = results.map((one) =>
    [
      one.name,
      one.requestsPerSecond.toFixed(1),
      `${one.p50.toFixed(1)} ms`,
      `${one.p99.toFixed(1)} ms`,
      `${one.max.toFixed(0)} ms`,
      `${one.bodyKb.toFixed(0)} KB`,
      `${one.cpuMsPerRequest.toFixed(2)} ms`,
      `${one.rssMb.toFixed(0)} MB`,
      one.batchesPerSecond.toFixed(0),
      one.failures,
    ].join(' | '),
  )
  const verdict = (met: boolean): string => (met ? 'met' : 'missed')
  return `# GET /api/v1/clusters

${clusters} clusters of ${nodes} nodes, ${connections} connections, ${seconds} s each after 2 s to warm up, ${batchesPerSecond} batches applied per second meanwhile.

| Server | Requests/s | p50 | p99 | max | Body | CPU per request | RSS | Batches/s | Failures |
|---|---|---|---|---|---|---|---|---|---|
${rows.map((row) => `| ${row} |`).join('\n')}

- Requests per second against the baseline: ${ratio(plain)} × plain, ${ratio(packed)} × gzip. Goal 20 ×: ${verdict(Number(ratio(plain)) >= 20)}.
- p99 with gzip, which is what browsers and our client ask for: ${packed?.p99.toFixed(1)} ms. Goal 20 ms: ${verdict((packed?.p99 ?? 99) <= 20)}.

## Method

\`npm run bench api\`. Each server runs in a process of its own, one after the other, with the load in a third process on the
same machine (${availableParallelism()} cores, ${cpus()[0]?.model ?? 'unknown'}, Node ${process.version}; its load at the end ${loadavg()[0]?.toFixed(1)}), so load and server compete
for cores. Every connection asks again as soon as it has its answer: the server is as busy as it can be, and the times are those of a full
queue of ${connections}. The load only counts the bytes of answers (bench/api/load.ts). A generator that parses them was itself the limit: autocannon 9
took a whole core for 1500 answers of 65 KB a second, and showed its own 65 ms as p99 of a server that was 15 % busy.
A body of this size is bound by copying it: the plain rows measure the loopback as much as the server.

Ours is the real \`apiServer\` over the embedded state store on a temporary directory; batches go through \`apply\` and the event bus, each
replaces all nodes of one cluster with changed ones. CPU per request is user plus system time of the server process, the applying of
batches included, divided by requests.

The baseline answers the same documents the documented way: names from a set, then for each cluster spec, info, metrics, status and
operators one after the other with \`GET\` from a real redis-server (memory only), parsed, put together and encoded again. Its Redis is
written at the same rate. It loads no access policies, which the original does twice per cluster, so it is the faster for it.
`
}
