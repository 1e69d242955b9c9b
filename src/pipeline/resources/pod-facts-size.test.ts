import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, it } from 'vitest'
import { collectors } from '#collect'
import type { KubeObject } from '#kube'
import { pods } from './pods.ts'

const PODS = 20_000
const MAX_BYTES = 512

/** A pod as they are: names of 40 characters, two containers, ten of one workload, fifty namespaces. */
function pod(i: number): KubeObject {
  const workload = Math.floor(i / 10)
  const [app, hash] = [`service-${workload}`, scattered(workload, 9)]
  const running = { ready: true, restartCount: 0, state: { running: { startedAt: 1_700_000_002_000 } } }
  return {
    metadata: {
      name: `${app}-of-a-team-${hash}-${scattered(i, 5)}`,
      namespace: `team-${workload % 50}`,
      creationTimestamp: 1_700_000_000_000 + i * 977,
      labels: { app, 'pod-template-hash': hash, 'app.kubernetes.io/instance': app },
      ownerReferences: [{ kind: 'ReplicaSet', name: `${app}-${hash}`, controller: true }],
    },
    spec: {
      nodeName: `node-${i % 500}.eu-central.compute.internal`,
      containers: [
        { name: 'app', resources: { requests: { cpu: '100m', memory: '256Mi' } } },
        { name: 'proxy', resources: { requests: { cpu: '10m', memory: '64Mi' } } },
      ],
    },
    status: {
      phase: 'Running',
      podIP: `10.${(i >> 16) & 255}.${(i >> 8) & 255}.${i & 255}`,
      qosClass: 'Burstable',
      startTime: 1_700_000_001_000 + i * 977,
      conditions: [{ type: 'Ready', status: 'True' }],
      containerStatuses: [
        { name: 'app', ...running, restartCount: i % 17 ? 0 : 3 },
        { name: 'proxy', ...running },
      ],
    },
  } as unknown as KubeObject // times are numbers, as protobuf gives them
}

const scattered = (i: number, length: number) =>
  (Math.imul(i + 1, 0x9e37_79b1) >>> 0).toString(36).padStart(length, '0').slice(-length)

/** As a list gives them: no text is shared that the wire would not share. */
const read = (i: number): KubeObject => JSON.parse(JSON.stringify(pod(i))) as KubeObject

describe('what is kept of pods between two rounds', () => {
  it(`is ${MAX_BYTES} bytes a pod at most: for the sums of nodes, and its row`, () => {
    setFlagsFromString('--expose-gc')
    const collect = runInNewContext('gc') as () => void
    const living = () => {
      collect()
      const { heapUsed, arrayBuffers } = process.memoryUsage()
      return heapUsed + arrayBuffers
    }
    const all = [...collectors.filter(({ name }) => name === 'nodes'), pods.collector]
    expect(all).toHaveLength(2)
    const before = living()
    const context = { endpoint: '', now: 0, onMalformed: () => undefined }
    const folds = all.map((collector) => ({ collector, fold: collector.open(context) }))
    for (let i = 0; i < PODS; i++) {
      const after = read(i)
      for (const { collector, fold } of folds)
        for (const one of collector.reads)
          if (one.resource?.plural === 'pods') fold.take(one, { type: 'changed', before: undefined, after })
    }
    const said = folds.map(({ fold }) => fold.parts(0))
    const bytes = (living() - before) / PODS
    // That they are kept: a fold that took nothing would cost nothing.
    expect(said[0]).toMatchObject({ podSummary: [{ counts: { running: PODS } }] })
    expect(said[1]).toMatchObject({ rows: { rows: { size: PODS } } })
    expect(bytes).toBeLessThanOrEqual(MAX_BYTES)
  })
})
