import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { availableParallelism, cpus, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { generateServingCertificate } from '#apiserver'
import { invariant } from '#model'
import { FACTOR } from './ingest/calibration.ts'
import type { ClientsResult } from './ingest/clients.ts'
import type { Mode } from './ingest/messages.ts'
import { Bencher, cpuMsOf, type Usage } from './ingest/process.ts'
import { report } from './ingest/report.ts'

/*
 * Many streams of batches into one hub, over TLS, with a real Redis behind it: ours with durable acks, against a hub that
 * writes every document and every sample before it acknowledges. Hub, clients and Redis are processes of their own.
 */

export interface Options {
  readonly streams: number
  readonly nodes: number
  readonly seconds: number
  readonly storm: number
  readonly runs: number
}

export interface Result {
  readonly name: string
  readonly clients: ClientsResult
  /** per acknowledged batch, everything after the ack included */
  readonly hubCpuUs: number
  /** of that, what the busiest process of the hub had: a core for it bounds the whole */
  readonly busiestCpuUs: number
  readonly redisCpuUs: number
  /** until everything acknowledged was in Redis and history, after the last ack */
  readonly settledMs: number
  readonly rssMb: number
  readonly peakRssMb: number
}

interface Case {
  /** how `--only` names it */
  readonly id: string
  readonly name: string
  readonly hub: 'ours' | 'writes-all'
  readonly mode: Mode
  /** default: kept */
  readonly history?: 'none'
  /** processes that share the clusters; default: one */
  readonly owners?: number
}

const cases: readonly Case[] = [
  {
    id: 'baseline',
    name: `stand-in for the original, which does ${FACTOR.rate.toFixed(2)} × its batches/s: writes everything before the ack, original protocol`,
    hub: 'writes-all',
    mode: 'original',
  },
  {
    id: 'same',
    name: 'ours, original protocol, writing what that hub writes (no history)',
    hub: 'ours',
    mode: 'original',
    history: 'none',
  },
  { id: 'original', name: 'ours, original protocol', hub: 'ours', mode: 'original' },
  { id: 'complete', name: 'ours, own protocol, complete', hub: 'ours', mode: 'complete' },
  { id: 'moving', name: 'ours, own protocol, differences, every node moves', hub: 'ours', mode: 'moving' },
  { id: 'quiet', name: 'ours, own protocol, differences, quiet', hub: 'ours', mode: 'quiet' },
  {
    id: 'one-moving',
    name: 'ours, own protocol, differences, every node moves (no history)',
    hub: 'ours',
    mode: 'moving',
    history: 'none',
  },
  {
    id: 'two-original',
    name: 'ours, original protocol, two owners (no history)',
    hub: 'ours',
    mode: 'original',
    history: 'none',
    owners: 2,
  },
  {
    id: 'two-moving',
    name: 'ours, own protocol, differences, every node moves, two owners (no history)',
    hub: 'ours',
    mode: 'moving',
    history: 'none',
    owners: 2,
  },
  {
    id: 'four-moving',
    name: 'ours, own protocol, differences, every node moves, four owners (no history)',
    hub: 'ours',
    mode: 'moving',
    history: 'none',
    owners: 4,
  },
]

/** What is measured runs in bundles, as the product does: the loader of sources takes memory of its own, and time of every function that is made. */
const BUNDLES = fileURLToPath(new URL('../node_modules/.cache/bench-ingest/', import.meta.url))
const bundled = (name: string): URL => pathToFileURL(`${BUNDLES}${name}.js`)

async function bundle(): Promise<void> {
  const { build } = await import('esbuild')
  const entryPoints = ['ours', 'owner', 'writes-all', 'clients'].map((name) => here(`ingest/${name}.ts`))
  const how = { bundle: true, platform: 'node', format: 'esm', packages: 'external', logLevel: 'error' } as const
  await build({ entryPoints, outdir: BUNDLES, ...how })
}

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url))

/**
 * `--streams 500 --nodes 50 --seconds 10 --storm 2000 --runs 3` (0 streams: the storm alone; 0 of the storm: without), `--only
 * baseline,original` for some of the rows, `--no-write` to leave the results page alone. Needs redis-server.
 */
export async function run(args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      streams: { type: 'string', default: '500' },
      nodes: { type: 'string', default: '50' },
      seconds: { type: 'string', default: '10' },
      storm: { type: 'string', default: '2000' },
      runs: { type: 'string', default: '3' },
      only: { type: 'string', default: cases.map(({ id }) => id).join() },
      'no-write': { type: 'boolean', default: false },
    },
  })
  const [streams = 0, nodes = 0, seconds = 0, storm = 0, runs = 0] = [
    values.streams,
    values.nodes,
    values.seconds,
    values.storm,
    values.runs,
  ].map(Number)
  const options = { streams, nodes, seconds, storm, runs }
  const wanted = streams > 0 ? cases.filter(({ id }) => values.only.split(',').includes(id)) : []
  const machine = machineNow()
  await bundle()
  const measured = new Map<string, Result[]>()
  // One of each after the other, again and again: what else the machine does falls on all of them.
  for (let run = 0; run < runs; run++) {
    for (const one of wanted) {
      const result = await measure(one, options)
      const { acks, seconds, p99 } = result.clients
      process.stdout.write(`${one.name}: ${(acks / seconds).toFixed(0)} batches/s, p99 ${p99.toFixed(0)} ms\n`)
      measured.set(one.id, [...(measured.get(one.id) ?? []), result])
    }
  }
  const results = new Map([...measured].map(([id, all]) => [id, median(all)]))
  const stormed =
    options.storm > 0
      ? await measure(
          { id: 'storm', name: 'storm', hub: 'ours', mode: 'quiet' },
          { ...options, streams: options.storm, seconds: Math.min(5, options.seconds) },
        )
      : undefined
  const text = report(results, stormed, options, machine)
  process.stdout.write(text)
  if (values['no-write']) return
  await mkdir(here('results'), { recursive: true })
  await writeFile(here('results/ingest.md'), text)
}

/** Every number of its own: the one in the middle of all runs. */
function median(all: readonly Result[]): Result {
  const [first] = all
  invariant(first, 'a case is measured at least once')
  const middle = (of: (result: Result) => number) =>
    all.map(of).toSorted((a, b) => a - b)[Math.floor((all.length - 1) / 2)] ?? 0
  const clients = Object.keys(first.clients) as (keyof ClientsResult)[]
  return {
    name: first.name,
    clients: Object.fromEntries(
      clients.map((key) => [key, middle((result) => result.clients[key])]),
    ) as unknown as ClientsResult,
    hubCpuUs: middle((result) => result.hubCpuUs),
    busiestCpuUs: middle((result) => result.busiestCpuUs),
    redisCpuUs: middle((result) => result.redisCpuUs),
    settledMs: middle((result) => result.settledMs),
    rssMb: middle((result) => result.rssMb),
    peakRssMb: middle((result) => result.peakRssMb),
  }
}

async function measure(
  { name, hub: which, mode, history, owners }: Case,
  { streams, nodes, seconds }: Options,
): Promise<Result> {
  const directory = await mkdtemp(join(tmpdir(), 'bench-ingest-'))
  const redis = await startRedis(directory)
  try {
    const files = await certificateIn(directory)
    await using hub = new Bencher(bundled(which), {
      directory,
      redisPort: redis.port,
      streams,
      history,
      owners,
      ...files,
    })
    const { port } = await hub.hear<{ readonly port: number }>()
    await using load = new Bencher(bundled('clients'), {
      mode,
      streams,
      nodes,
      port,
      caFile: files.caFile,
      seconds,
      warmSeconds: Math.min(4, seconds / 2),
    })
    const before = await hub.ask<Usage>('usage')
    const redisBefore = cpuMsOf(redis.pid)
    await load.hear()
    const clients = await load.hear<ClientsResult>()
    const ended = performance.now()
    const { rssMb } = await hub.ask<Usage>('usage')
    const after = await hub.ask<Usage>('settle')
    const perBatch = (ms: number) => (ms * 1000) / Math.max(1, clients.allAcks)
    return {
      name,
      clients,
      hubCpuUs: perBatch(after.cpuMs - before.cpuMs),
      busiestCpuUs: perBatch(Math.max(...after.cpuMsEach.map((ms, i) => ms - (before.cpuMsEach[i] ?? 0)))),
      redisCpuUs: perBatch(cpuMsOf(redis.pid) - redisBefore),
      settledMs: performance.now() - ended,
      rssMb,
      peakRssMb: after.peakRssMb,
    }
  } finally {
    redis.child.kill('SIGKILL')
    await once(redis.child, 'exit')
    await rm(directory, { recursive: true, force: true })
  }
}

async function certificateIn(directory: string) {
  const { cert, key, ca } = await generateServingCertificate({ hosts: ['127.0.0.1'] })
  const files = {
    certFile: join(directory, 'tls.crt'),
    keyFile: join(directory, 'tls.key'),
    caFile: join(directory, 'ca'),
  }
  await Promise.all([writeFile(files.certFile, cert), writeFile(files.keyFile, key), writeFile(files.caFile, ca)])
  return files
}

async function startRedis(directory: string): Promise<{ child: ChildProcess; port: number; pid: number }> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  const port = typeof address === 'object' && address ? address.port : 0
  const args = ['--port', port, '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--dir', directory].map(
    String,
  )
  const child = spawn('redis-server', args, { stdio: ['ignore', 'pipe', 'inherit'] })
  for await (const text of child.stdout) if (String(text).includes('Ready to accept connections')) break
  return { child, port, pid: child.pid ?? 0 }
}

function machineNow(): string {
  const redis = execFileSync('redis-server', ['--version'])
    .toString()
    .match(/v=(\S+)/)?.[1]
  const load = loadavg()[0]?.toFixed(1)
  return `${availableParallelism()} shared cores, ${cpus()[0]?.model}, Node ${process.version}, Redis ${redis}, load at the start ${load}`
}
