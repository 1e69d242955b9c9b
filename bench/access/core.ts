/*
 * What the decision core costs by itself, in a process of its own: compiling, reading and preparing 5000 policies; deciding
 * about clusters that nobody asked about before, with so many policies for the caller; filtering rows that are new each time.
 */
import { compilePolicy, MemoryPolicies, openAccess, type Principal } from '#access'
import { type ClusterState, type NodeSnapshot, parseClusterName, systemClock } from '#model'
import { nodeOf } from '../baseline/fleet.ts'
import { compiled, policyObject } from './policies.ts'

const [own = 200, rows = 10_000, policies = 5000] = process.argv.slice(2).map(Number)
const ann: Principal = { username: 'ann', email: '', groups: ['own'], isServiceAccount: false, method: 'trusted-proxy' }

const clusterWith = (name: string, nodes: readonly NodeSnapshot[] = []): ClusterState => ({
  name: parseClusterName(name),
  connection: {
    displayName: name,
    endpoint: 'https://api.example.org:6443',
    labels: { team: 'nobody', env: 'production' },
    mode: 'pull',
    intervalMs: 30_000,
    timeoutMs: 10_000,
    insecureSkipTlsVerify: false,
    credentialsRef: { name: 'c', namespace: 'clusterpulse' },
  },
  status: { health: 'healthy', message: '', reasons: [], checkedAt: null, lastSyncAt: null },
  sequence: 1,
  origin: '',
  agent: null,
  source: 'pull',
  parts: {
    node: {
      ...{ outcome: 'complete', code: '', message: '', attemptedAt: 0, freshness: null },
      items: new Map(nodes.map((node) => [node.name, node])),
    },
  },
  tables: new Map(),
  heartbeats: [],
  events: [],
  version: 1,
})

/** A quarter of the rounds took less: what others do on the machine, and collecting what was prepared, only ever adds. */
const quartile = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 4)] ?? Number.NaN

/** ms of CPU of this process, whatever else the machine does. */
const cpuMs = (): number => {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}

/** ms of CPU of one call, each round from new inputs; the first rounds warm up and do not count. */
async function timed<T>(
  prepare: (round: number) => T | Promise<T>,
  run: (input: T) => unknown,
  rounds = 60,
): Promise<number> {
  const times: number[] = []
  for (let round = 0; round < rounds; round++) {
    const input = await prepare(round)
    const since = cpuMs()
    await run(input)
    if (round >= rounds / 10) times.push(cpuMs() - since)
  }
  return quartile(times)
}

async function accessTo(documents: readonly ReturnType<typeof compiled>[]) {
  const source = new MemoryPolicies()
  await source.resync(documents.map((document) => ({ document, status: {} })))
  return openAccess({ source, semantics: 'strict', administrators: { users: [], groups: [] }, clock: systemClock })
}

const objects = Array.from({ length: policies }, (_, i) => policyObject(i, `team-${i % 500}`, `team-${i % 500}`))
const compileMs = await timed(
  () => objects,
  (all) => all.map((object) => compilePolicy(object, { now: 0 })),
  15,
)
const documents = objects.map(compiled)
const storeMs = await timed(
  () => undefined,
  () => accessTo(documents),
  15,
)
const prepareMs = await timed(
  () => accessTo(documents),
  (access) => access.viewOf({ ...ann, groups: ['team-7'] }),
  15,
)

// All of them are for the caller, and none selects these clusters: every selector of every policy is asked.
const mine = Array.from({ length: own }, (_, i) => compiled(policyObject(i, 'own', `team-${i}`)))
const decisions = 1000
const access = await accessTo(mine)
const decideMs = await timed(
  async (round) => ({
    accessView: await access.viewOf(ann),
    clusters: Array.from({ length: decisions }, (_, i) => clusterWith(`team-none-east-${round}-${i}`)),
  }),
  ({ accessView, clusters }) => clusters.filter((cluster) => accessView.canSee(cluster)).length,
)

const filtered = await accessTo([
  compiled({
    metadata: { name: 'rows' },
    spec: {
      identity: { subjects: { groups: ['own'] } },
      access: { effect: 'Allow' },
      scope: {
        clusters: {
          rules: [
            {
              selector: { matchNames: ['*'] },
              resources: [
                {
                  type: 'nodes',
                  visibility: 'filtered',
                  filters: {
                    names: { allowed: ['node-*', '*-infra-?', 'edge'], denied: ['*7', 'node-1?1*'] },
                    labels: { 'node-role.kubernetes.io/worker': '' },
                  },
                },
              ],
            },
          ],
        },
      },
    },
  }),
])
let left = 0
const filterMs = await timed(
  async (round) => ({
    accessView: await filtered.viewOf(ann),
    cluster: clusterWith(
      'one',
      Array.from({ length: rows }, (_, i) => nodeOf(i, round)),
    ),
  }),
  ({ accessView, cluster }) => {
    left = accessView.visible(cluster, 'node').length
  },
)

process.stdout.write(
  JSON.stringify({ compileMs, storeMs, prepareMs, decideUs: (decideMs / decisions) * 1000, filterMs, left }),
)
