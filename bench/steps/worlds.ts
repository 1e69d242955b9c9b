import {
  type Batch,
  type Part,
  parseClusterName,
  type RowsPart,
  Table,
  type TableRow,
} from '../../src/contract/model/index.ts'
import { batchOf, connectionOf } from '../baseline/fleet.ts'

/** A cluster as its mirror hands it in: the whole it has become, of which most is as it was. */
export class StepsOfCluster {
  readonly name
  readonly connection = connectionOf(0)
  readonly #seed: number
  readonly #nodes: number
  #pods: Table
  #turn = 0
  #nodePart: Part | undefined

  constructor(seed: number, { pods, nodes }: { readonly pods: number; readonly nodes: number }) {
    this.name = parseClusterName(`cluster-${String(seed).padStart(4, '0')}`)
    this.#seed = seed
    this.#nodes = nodes
    this.#pods = Table.of(
      FIELDS,
      Array.from({ length: pods }, (_, i) => rowOf(i)),
    )
  }

  /** A round, and its rows beside it. */
  first(sequence: number): readonly Batch[] {
    const round = batchOf(this.#seed, this.#nodes, sequence, Date.now())
    this.#nodePart = round.parts.find(({ type }) => type === 'node')
    return [round, this.#step(sequence + 1)]
  }

  /** One pod has changed. With `isBroken` its node has too. */
  next(sequence: number, isBroken: boolean): Batch {
    this.#turn++
    const row = this.#pods.row((this.#turn * 7919) % this.#pods.size)
    const message = `back-off ${this.#turn}s restarting failed container`
    const restarts = this.#turn
    this.#pods = this.#pods.patch(Table.of(FIELDS, [{ ...row, values: { ...row.values, restarts, message } }]), [])
    return this.#step(sequence, isBroken ? [this.#movedNodes()] : [])
  }

  #step(sequence: number, parts: readonly Part[] = []): Batch {
    const now = Date.now()
    return {
      ...{ cluster: this.name, sequence, source: 'pull', collectedAt: now, durationMs: 3, parts, partial: true },
      tables: [this.#rows()],
    }
  }

  #rows(): RowsPart {
    return {
      ...{ source: 'pods', hash: '0123456789abcdef', durationMs: 3, outcome: 'complete', rows: this.#pods },
      aggregations: { byStatus: { Running: this.#pods.size }, restarts: this.#turn, oomKills: 0 },
      ...{ truncated: false, errors: [], errorCount: 0, reports: [] },
    }
  }

  /** All nodes, as the fold gives them: one of them is new. */
  #movedNodes(): Part {
    const part = this.#nodePart
    if (part?.type !== 'node' || part.outcome !== 'complete') throw new Error('the first round tells of nodes')
    const at = this.#turn % part.items.length
    const items = part.items.map((node, i) =>
      i === at ? { ...node, pods: { ...(node.pods as NonNullable<typeof node.pods>), failed: this.#turn } } : node,
    )
    this.#nodePart = { ...part, items }
    return this.#nodePart
  }
}

/** As many as a row of pods has. */
const FIELDS = [
  ...['status', 'ready', 'containers', 'restarts', 'oomKills', 'node', 'workload', 'cpuRequest', 'memoryRequest'],
  ...['createdAt', 'phase', 'reason', 'message', 'containerRestarts', 'lastTermination', 'owner', 'qos', 'ip'],
  'startedAt',
]

const rowOf = (i: number): TableRow => ({
  namespace: `team-${i % 50}`,
  name: `web-${i % 400}-${(i * 2_654_435_761).toString(36).slice(-10)}-${i.toString(36)}`,
  labels: { app: `web-${i % 400}`, 'pod-template-hash': (i % 400).toString(16) },
  values: {
    ...{ status: 'Running', ready: 2, containers: 2, restarts: 0, oomKills: 0, node: `node-${i % 10}` },
    ...{ workload: `Deployment/web-${i % 400}`, cpuRequest: 0.1, memoryRequest: 2 ** 27 },
    ...{ createdAt: 1_760_000_000_000 + i * 1000, phase: 'Running', reason: null, message: null },
    ...{ containerRestarts: '[["web",0,false],["proxy",0,false]]', lastTermination: null },
    ...{ owner: `ReplicaSet/web-${i % 400}`, qos: 'Burstable', ip: `10.0.${(i >> 8) & 255}.${i & 255}` },
    startedAt: 1_760_000_002_000 + i * 1000,
  },
})
