/**
 * How long a change in a member takes to people who watch the hub's stream, by way of watch, fold, step, log, state and frame. Members,
 * hub (the product as built) and people are three processes of one machine, so that their times are of one clock.
 */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { createClient } from '../src/contract/http/index.ts'
import { monitorAccessPolicy } from '../src/contract/kinds/index.ts'
import {
  accessForContext,
  createKubeClient,
  type KubeClient,
  loadKubeconfig,
  type Resource,
} from '../src/platform/kube/index.ts'
import { Bencher } from './ingest/process.ts'
import type { Change } from './live/mark.ts'
import type { Made } from './live/members.ts'
import { audience, type Sort } from './live/people.ts'
import { report } from './live/report.ts'
import type { Came, Stages } from './live/viewers.ts'
import { Product } from './rounds/product.ts'
import { processOf } from './rounds/reading.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

const ADMINISTRATOR = { 'x-forwarded-user': 'root', 'x-forwarded-groups': 'administrators' }

export interface Size {
  readonly clusters: number
  readonly nodes: number
  readonly pods: number
  readonly rate: number
  readonly viewers: number
  readonly seconds: number
}

/** `--clusters N`, `--nodes N` and `--pods N` of each, `--rate N` changes a second over all, `--viewers N`, `--seconds N`, `--bin FILE`, `--no-write`. */
export async function run(args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      clusters: { type: 'string', default: '100' },
      nodes: { type: 'string', default: '10' },
      pods: { type: 'string', default: '1000' },
      rate: { type: 'string', default: '500' },
      viewers: { type: 'string', default: '300' },
      seconds: { type: 'string', default: '30' },
      bin: { type: 'string', default: 'bin/clusterpulse.js' },
      'no-write': { type: 'boolean', default: false },
    },
  })
  const number = (name: keyof Size) => Number(values[name])
  const size: Size = {
    ...{ clusters: number('clusters'), nodes: number('nodes'), pods: number('pods') },
    ...{ rate: number('rate'), viewers: number('viewers'), seconds: number('seconds') },
  }
  const page = await measure(size, values.bin)
  process.stdout.write(page)
  if (values['no-write']) return
  await mkdir(`${ROOT}bench/results`, { recursive: true })
  await writeFile(`${ROOT}bench/results/live.md`, page)
}

async function measure(size: Size, bin: string): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'bench-live-'))
  try {
    const kubeconfig = join(directory, 'members')
    await using members = new Bencher(new URL('live/members.ts', import.meta.url), { ...size, kubeconfig })
    await members.hear<'ready'>()
    const turn = await members.ask<readonly Change[]>('turn')
    const { product: hub, match } = await startHub(bin, directory, kubeconfig)
    await using _ = hub
    const url = match[1] ?? ''
    const people = audience(size.viewers, turn)
    await using kube = createKubeClient(
      await accessForContext(await loadKubeconfig([join(directory, 'hub/kubeconfig')])),
    )
    for (const { policy } of people.sorts) if (policy) await declare(kube, policy)
    await untilRead(url, size.clusters)
    await using viewers = new Bencher(new URL('live/viewers.ts', import.meta.url), { url, people: people.all })
    await viewers.hear<'ready'>()
    await sleep(2_000)
    const pids = { hub: hub.pid, members: members.pid, viewers: viewers.pid }
    const before = await usageOf(pids, url)
    const made = await members.ask<Made>({ rate: size.rate, seconds: size.seconds })
    const after = await usageOf(pids, url)
    // What is on its way comes within moments, or is counted as missing.
    await sleep(3_000)
    const { came, stages } = await viewers.ask<{ came: readonly Came[]; stages: Stages }>('report')
    return report({ size, turn, made, before, after, people, came, stages })
  } finally {
    await rm(directory, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
  }
}

const startHub = (bin: string, directory: string, kubeconfig: string) =>
  Product.start(
    resolve(ROOT, bin),
    [
      ...['up', '--kubeconfig', kubeconfig, '--data-dir', join(directory, 'hub')],
      ...['--port', '0', '--control-plane-port', '0', '--ingester-port', '0'],
    ],
    /on (http:\/\/\S+)/,
    // Each of the people is another, signed in by a proxy, which is the bench.
    { TRUSTED_PROXIES: '127.0.0.1', ADMIN_GROUPS: 'administrators' },
  )

async function declare(kube: KubeClient, { name, spec }: NonNullable<Sort['policy']>): Promise<void> {
  const { group, version, plural, kind, apiVersion } = monitorAccessPolicy
  const resource: Resource = { group, version, plural, kind, namespaced: true }
  await kube.create(resource, { apiVersion, kind, metadata: { name, namespace: 'clusterpulse' }, spec } as never)
}

/** Every kind of row of every cluster was read once. */
async function untilRead(url: string, clusters: number): Promise<void> {
  const client = createClient({ baseUrl: url, headers: ADMINISTRATOR })
  for (;;) {
    const { clusters: read } = await client.fleetRows('pods', { limit: 1 }).catch(() => ({ clusters: [] }))
    if (read.filter(({ part }) => part.outcome === 'complete').length >= clusters) return
    await sleep(500)
  }
}

/** What the three processes used so far, and what the hub says of itself. */
export interface Usage {
  readonly at: number
  readonly cpuMs: Readonly<Record<'hub' | 'members' | 'viewers', number>>
  readonly rssMb: number
  readonly peakMb: number
  /** records of the log that state has taken */
  readonly steps: number
}

async function usageOf(pids: Readonly<Record<'hub' | 'members' | 'viewers', number>>, url: string): Promise<Usage> {
  const text = await (await fetch(`${url}/metrics`, { headers: ADMINISTRATOR })).text()
  const value = (start: string) =>
    Number(
      text
        .split('\n')
        .find((line) => line.startsWith(start))
        ?.split(' ')
        .at(-1) ?? Number.NaN,
    )
  const { rssMb, peakMb } = processOf(pids.hub)
  const cpuMs = (name: keyof typeof pids) => processOf(pids[name]).cpuMs
  return {
    at: performance.now(),
    cpuMs: { hub: cpuMs('hub'), members: cpuMs('members'), viewers: cpuMs('viewers') },
    ...{ rssMb, peakMb },
    steps: value('clusterpulse_ingest_records_applied_total{consumer="state"'),
  }
}
