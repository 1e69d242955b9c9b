/**
 * How long a change in a member takes to a client of the hub's stream, by way of watch, fold, step, log, state and frame. Members and
 * client are in this process, so both times are of one clock; the hub is the product as built, in a process of its own.
 */
import { spawn } from 'node:child_process'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { createClient } from '../src/contract/http/index.ts'
import { createKubeClient, type KubeClient, pods } from '../src/platform/kube/index.ts'
import { kubeconfigOf, scenarios, simulateFleet } from '../src/platform/simulator/index.ts'
import { machine, processOf } from './rounds/reading.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
/** Pods that are moved have it in their message, with the time it was written. */
const MARK = 'bench '

/** `--clusters N`, `--pods N` and `--nodes N` of each, `--changes N` per second over all, `--seconds N`, `--bin FILE`, `--no-write`. */
export async function run(args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      clusters: { type: 'string', default: '100' },
      nodes: { type: 'string', default: '10' },
      pods: { type: 'string', default: '1000' },
      changes: { type: 'string', default: '500' },
      seconds: { type: 'string', default: '30' },
      bin: { type: 'string', default: 'bin/clusterpulse.js' },
      'no-write': { type: 'boolean', default: false },
    },
  })
  const number = (name: 'clusters' | 'nodes' | 'pods' | 'changes' | 'seconds') => Number(values[name])
  const size = { clusters: number('clusters'), nodes: number('nodes'), pods: number('pods') }
  const directory = await mkdtemp(join(tmpdir(), 'bench-live-'))
  await using fleet = await simulateFleet(scenarios.plain({ ...size, seed: 1, lives: false }), {
    seed: 1,
    lives: false,
  })
  await writeFile(join(directory, 'members'), kubeconfigOf(fleet.clusters))
  const hub = spawn(
    process.execPath,
    [
      ...[values.bin, 'up', '--kubeconfig', join(directory, 'members'), '--data-dir', join(directory, 'hub')],
      ...['--port', '0', '--control-plane-port', '0'],
    ],
    { cwd: ROOT, env: { PATH: process.env.PATH ?? '', HOME: directory }, stdio: ['ignore', 'pipe', 'inherit'] },
  )
  const closed = new Promise((resolve) => hub.once('close', resolve))
  const members = fleet.clusters.map(({ name, url, token, caPem }) => ({
    name,
    kube: createKubeClient(
      { server: url, ca: caPem, verifyTls: true, credentials: { kind: 'token', token } },
      { qps: 10_000, burst: 10_000 },
    ),
  }))
  try {
    const client = createClient({ baseUrl: await addressOf(hub) })
    const expected = size.clusters
    await until(async () => {
      const { clusters } = await client.fleetRows('pods', { limit: 1 })
      return clusters.filter(({ part }) => part.outcome === 'complete').length >= expected
    })
    const stop = new AbortController()
    const latencies: number[] = []
    const listening = listen(client, stop.signal, latencies)
    await listening.ready
    const before = { at: performance.now(), ...processOf(hub.pid ?? 0) }
    const made = await change(members, { perSecond: number('changes'), seconds: number('seconds') })
    const after = { at: performance.now(), ...processOf(hub.pid ?? 0) }
    // What is on its way comes within moments, or is counted as missing.
    await sleep(3_000)
    stop.abort()
    await listening.over
    const cpuMilli = ((after.cpuMs - before.cpuMs) / (after.at - before.at)) * 1000
    const seconds = (after.at - before.at) / 1000
    const page = report({ ...size, made, seconds, latencies, cpuMilli, rssMb: after.rssMb, peakMb: after.peakMb })
    process.stdout.write(page)
    if (values['no-write']) return
    await mkdir(`${ROOT}bench/results`, { recursive: true })
    await writeFile(`${ROOT}bench/results/live.md`, page)
  } finally {
    for (const { kube } of members) await kube[Symbol.asyncDispose]()
    hub.kill('SIGTERM')
    await closed
    await rm(directory, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
  }
}

/** Resolves with the address that the hub prints; its output is read on, so that it never waits for us. */
function addressOf(hub: ReturnType<typeof spawn>): Promise<string> {
  return new Promise((resolve, reject) => {
    let said = ''
    hub.stdout?.on('data', (chunk: Buffer) => {
      said += chunk.toString()
      const found = /on (http:\/\/\S+)/.exec(said)?.[1]
      if (found) resolve(found)
    })
    hub.once('close', () => reject(new Error(`the hub ended: ${said}`)))
  })
}

async function until(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo().catch(() => false))) await sleep(500)
}

interface Member {
  readonly name: string
  readonly kube: KubeClient
}

/** Writes the time into the messages of pods, one after the other over all members. @returns how many were written */
async function change(
  members: readonly Member[],
  { perSecond, seconds }: { readonly perSecond: number; readonly seconds: number },
): Promise<number> {
  const named = await Promise.all(
    members.map(async ({ kube }) =>
      (await kube.listAll(pods)).slice(0, 50).map(({ metadata }) => ({ kube, metadata })),
    ),
  )
  // Of each cluster one, then of each the next: neighbours in time are of different clusters.
  const all = Array.from({ length: 50 }, (_, i) => named.flatMap((list) => list[i] ?? [])).flat()
  const end = performance.now() + seconds * 1000
  const running = new Set<Promise<unknown>>()
  let made = 0
  for (let next = performance.now(); next < end; next += 1000 / perSecond) {
    const waitMs = next - performance.now()
    if (waitMs > 1) await sleep(waitMs)
    // A machine that is too slow makes fewer changes, rather than a queue of them.
    if (running.size > 200) await Promise.race(running)
    const pod = all[made % all.length]
    if (!pod) break
    const { namespace = '', name } = pod.metadata
    const body = { status: { message: `${MARK}${performance.now()}` } }
    const written = pod.kube.patch(pods, { namespace, name }, body, { kind: 'merge', subresource: 'status' })
    const one = written.finally(() => running.delete(one))
    running.add(one)
    made++
  }
  await Promise.all(running)
  return made
}

/** Takes every row a stream brings that says when it was changed. */
function listen(client: ReturnType<typeof createClient>, signal: AbortSignal, latencies: number[]) {
  let begin: () => void = () => undefined
  const ready = new Promise<void>((resolve) => {
    begin = resolve
  })
  /** a row comes again when what it uses is measured */
  const seen = new Set<string>()
  const over = (async () => {
    // Those that are moved: no others have a message, and no more than fit a stream.
    const query = { clusters: false, rows: [{ type: 'pods', sort: 'message', order: 'desc', limit: 1000 }] } as const
    for await (const message of client.stream(query, signal)) {
      if (message.kind === 'rows' && message.isLast) begin()
      if (message.kind !== 'rowsChange') continue
      for (const one of message.changes) {
        const said = one.op === 'put' ? one.row.values.message : undefined
        if (typeof said !== 'string' || !said.startsWith(MARK) || seen.has(said)) continue
        seen.add(said)
        latencies.push(performance.now() - Number(said.slice(MARK.length)))
      }
    }
  })().catch((error: unknown) => {
    if (!signal.aborted) throw error
  })
  return { ready, over }
}

interface Measured {
  readonly clusters: number
  readonly nodes: number
  readonly pods: number
  readonly made: number
  readonly seconds: number
  readonly latencies: readonly number[]
  readonly cpuMilli: number
  readonly rssMb: number
  readonly peakMb: number
}

function report({ clusters, nodes, pods: each, made, seconds, latencies, cpuMilli, rssMb, peakMb }: Measured): string {
  const sorted = [...latencies].sort((a, b) => a - b)
  const at = (share: number) =>
    `${(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN).toFixed(0)} ms`
  return [
    '# Live',
    '',
    `\`npm run bench live\`: ${clusters} simulated clusters of ${nodes} nodes and ${each} pods, pulled by one hub; ${made} changes of pods in ${seconds.toFixed(0)} s.`,
    `Members and the stream's client are this process, the hub is another. ${JSON.stringify(machine())}`,
    '',
    '| changes/s | rows that came | p50 | p90 | p99 | most | hub: CPU, mCPU | RSS | peak RSS |',
    '|---|---|---|---|---|---|---|---|---|',
    `| ${(made / seconds).toFixed(0)} | ${sorted.length} | ${at(0.5)} | ${at(0.9)} | ${at(0.99)} | ${at(1)} | ${cpuMilli.toFixed(0)} | ${rssMb.toFixed(0)} MB | ${peakMb.toFixed(0)} MB |`,
    '',
    'From the moment before the change is sent to the member, to the moment the row stands in the client. The stream shows the 1000 pods changed last;',
    'a row that changed again before it was told is told once, so fewer rows than changes come. The list in the order of the message moves with each change.',
    '',
  ].join('\n')
}
