import { writeSync } from 'node:fs'
import { Agent, grpcTransport } from '#agent'
import type { Collector } from '#collect'
import type { KubeClient } from '#kube'
import { parseClusterName, seconds } from '#model'
import { createLogger } from '#runtime'
import { aNode } from '../../src/pipeline/state/test/fleet-words.ts'
import { valueAt } from './truth.ts'

/** An agent that is killed from outside: the real one, over a cluster whose every number follows from the time. */
export interface AgentConfig {
  readonly cluster: string
  readonly address: string
  readonly directory: string
  readonly intervalMs: number
}

const { cluster, address, directory, intervalMs } = JSON.parse(process.argv[2] ?? '{}') as AgentConfig
const token = () => Promise.resolve<string | undefined>(`token-${cluster}`)

// The next round waits until the batch of the one before is on disk: by then it may be told as kept.
let before: number | undefined
const collector: Collector = {
  name: 'nodes',
  types: ['node'],
  reads: [],
  critical: true,
  open: () => ({
    take: () => true,
    parts(now) {
      if (before !== undefined) writeSync(1, `kept ${before}\n`)
      before = now
      return { node: [{ ...aNode('n1'), requested: { cpuCores: valueAt(now), memoryBytes: 0 } }] }
    },
  }),
}
// Nothing of a Kubernetes API is asked: the collector knows.
const kube = { ping: () => Promise.resolve() } as unknown as KubeClient

const agent = await Agent.open({
  cluster: parseClusterName(cluster),
  version: 'chaos',
  transport: grpcTransport({ address, token }),
  token,
  kube: () => kube,
  directory,
  collectors: [collector],
  plan: { intervalMs, timeoutMs: seconds(5) },
  logger: createLogger('error', { role: 'chaos-agent', cluster }),
})
process.on('SIGTERM', () => {
  void agent.stop().then(() => process.exit(0))
})
