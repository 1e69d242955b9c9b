import { mkdir, rm } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { build } from 'esbuild'
import { Metrics } from '#runtime'
import type { StreamIngester } from '../../stream/ingest-port.ts'
import { aHub, type TestHub } from '../../stream/test/hub.ts'
import { AgentFronts, type AgentFrontsOptions } from '../fronts.ts'

export interface TestFronts extends AsyncDisposable {
  readonly hub: TestHub
  readonly fronts: AgentFronts
  readonly metrics: Metrics
  /** `cluster/origin/sequence` of what the log took, as often as it took it */
  readonly taken: readonly string[]
}

/** A hub whose agents are received by processes of their own; what its log takes is counted. */
export async function aFrontedHub(
  program: string,
  options: Partial<AgentFrontsOptions> & { readonly clusters?: readonly string[] } = {},
): Promise<TestFronts> {
  const { clusters, ...rest } = options
  const hub = await aHub(clusters ? { clusters } : {})
  const taken: string[] = []
  const { ingester } = hub
  const counting: StreamIngester = {
    accept: async (batch, signal, samples) => {
      const accepted = await ingester.accept(batch, signal, samples)
      if (!accepted.duplicate) taken.push(`${batch.cluster}/${batch.origin}/${batch.sequence}`)
      return accepted
    },
    lost: (cluster, loss) => ingester.lost(cluster, loss),
    agent: (cluster, facts) => ingester.agent(cluster, facts),
    received: (cluster, origin) => ingester.received(cluster, origin),
    knows: (cluster) => ingester.knows(cluster),
  }
  const metrics = new Metrics({}, { processMetrics: false })
  const fronts = await AgentFronts.start({
    host: '127.0.0.1',
    port: 0,
    tls: 'plaintext',
    verifier: hub.credentials,
    plans: hub.plans,
    ingester: counting,
    metrics,
    processes: 2,
    random: () => 0.1,
    program: { exec: program, args: [], execArgv: [] },
    ...rest,
  })
  return {
    hub,
    fronts,
    metrics,
    taken,
    async [Symbol.asyncDispose]() {
      await fronts[Symbol.asyncDispose]()
      await hub[Symbol.asyncDispose]()
    },
  }
}

/** The program of the other processes as one file that plain Node starts quickly; it goes with the value. */
export async function frontProgram(): Promise<{ readonly path: string } & AsyncDisposable> {
  // Beside the installed packages, so that the bundle finds those it leaves out.
  const cache = resolve('node_modules/.cache/clusterpulse')
  await mkdir(cache, { recursive: true })
  const path = join(cache, `front-child-${process.pid}.mjs`)
  await build({
    entryPoints: [join(import.meta.dirname, 'front-child.ts')],
    outfile: path,
    bundle: true,
    platform: 'node',
    format: 'esm',
    packages: 'external',
    logLevel: 'error',
  })
  return { path, [Symbol.asyncDispose]: () => rm(path, { force: true }) }
}
