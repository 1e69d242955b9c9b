/*
 * npm run bench <name> [-- arguments of that bench]
 *
 * Each bench is a file beside this one that exports `run(args)`; it prints its result and writes it to results/<name>.md.
 */
import { invariant } from '../src/contract/model/index.ts'

interface Bench {
  readonly summary: string
  readonly arguments: string
  readonly load: () => Promise<{ run(args: readonly string[]): Promise<void> }>
}

const benches: Readonly<Record<string, Bench>> = {
  pull: {
    summary: 'reading 100 nodes and 10 000 pods over TLS: ours, raw JSON, the typed client',
    arguments: '--runs 7 --nodes 100 --pods 10000',
    load: () => import('./pull.ts'),
  },
  api: {
    summary: 'GET /api/v1/clusters of 1000 clusters at 50 concurrent, against Redis per cluster per request',
    arguments: '--clusters 1000 --nodes 10 --seconds 10 --connections 50 --batches 33',
    load: () => import('./api.ts'),
  },
  fanout: {
    summary:
      'streams of rows (or of Cluster Monitor) to 10 000 readers at one change a second, and with 1000 of them stuck',
    arguments: '--of rows|monitor --clients 10000 --slow 1000 --seconds 30 --processes 4',
    load: () => import('./fanout.ts'),
  },
  agent: {
    summary: 'one agent beside 500 nodes and 20 000 pods: memory, CPU and bytes per round, quiet and busy',
    arguments: '--nodes 500 --pods 20000 --interval 30 --intervals 6',
    load: () => import('./agent.ts'),
  },
  live: {
    summary:
      'a change in a member until its row stands with people of mixed rights: p50, p99, CPU of the hub, where the time goes',
    arguments: '--clusters 100 --nodes 10 --pods 1000 --rate 500 --viewers 300 --seconds 30 --bin bin/clusterpulse.js',
    load: () => import('./live.ts'),
  },
  steps: {
    summary: 'steps a second of one process of the hub, from accept to the event bus: CPU and bytes of each',
    arguments: '--clusters 100 --pods 1000 --nodes 10 --seconds 10',
    load: () => import('./steps.ts'),
  },
  rounds: {
    summary: 'one hub that collects from 100, 300 and 1000 simulated clusters: rounds, CPU, memory',
    arguments: '--clusters 100,300,1000 --nodes 10 --pods 100 --intervals 3 --bin bin/clusterpulse.js',
    load: () => import('./rounds.ts'),
  },
  start: {
    summary: 'the first start of a hub with 1000 clusters: until all are listed, until all have their tables',
    arguments: '--clusters 1000 --nodes 10 --pods 100 --runs 3 --bin bin/clusterpulse.js',
    load: () => import('./start.ts'),
  },
  ingest: {
    summary:
      'agents that push to one hub over TLS, durable acks: originals, ours, ours with differences; a reconnect storm',
    arguments: '--streams 500 --nodes 50 --seconds 10 --storm 2000 --runs 3',
    load: () => import('./ingest.ts'),
  },
  join: {
    summary: 'members of one hub: joining alone and all at once, heartbeats of 10 000, how soon a revoked one is out',
    arguments:
      '--of join,heartbeats,revoke --alone 100 --crowd 2000 --members 10000 --seconds 120 --revoked 60 --bin bin/clusterpulse.js',
    load: () => import('./join.ts'),
  },
  history: {
    summary: 'a month of gauges into the embedded history and into VictoriaMetrics, and the charts back',
    arguments: '--clusters 1 --nodes 10 --days 30 --questions 21',
    load: () => import('./history.ts'),
  },
  access: {
    summary:
      'access policies: compile, decide, filter; GET /clusters for people who see less; 1000 streams told of a change',
    arguments: '--own 200 --rows 10000 --policies 5000 --clusters 1000 --nodes 10 --streams 1000',
    load: () => import('./access.ts'),
  },
  extract: {
    summary: 'a row of inventory: CPU per Deployment with everything secret taken out, by paths, by expressions, whole',
    arguments: '--objects 10000 --rounds 9',
    load: () => import('./extract.ts'),
  },
  metricsource: {
    summary: 'a MetricSource: fields, expressions, aggregations, memory; one expression against a tree walker and CEL',
    arguments: '--objects 10000 --many 100000 --evaluations 3000000 --runs 5',
    load: () => import('./metricsource.ts'),
  },
  table: {
    summary: 'one changed row of 100 000: patch, difference, memory, scan; beside the structure it replaced',
    arguments: '--rows 100000 --steps 2000 --runs 3',
    load: () => import('./table.ts'),
  },
  sinks: {
    summary: 'inventory into PostgreSQL, the driver alone: a change until it is committed, 1 %, 50 clusters at once',
    arguments: '--rows 10000,100000 --changes 300 --writers 50 --each 10000 --seconds 60',
    load: () => import('./sinks.ts'),
  },
  inventory: {
    summary:
      'one agent without a hub from a kube-apiserver full of Deployments to PostgreSQL: start, changes, memory, rows written',
    arguments: '--rows 10000,100000 --seconds 60',
    load: () => import('./inventory.ts'),
  },
  sealing: {
    summary: 'Secrets written into the embedded API and read at its start: sealed, and in the clear',
    arguments: '--objects 20000 --bytes 1000 --runs 5',
    load: () => import('./sealing.ts'),
  },
  query: {
    summary:
      'a million pods of 100 clusters: filter, sort, group, type-ahead; the first time, again, while 500 rows change a second',
    arguments: '--clusters 100 --pods 10000 --rounds 50 --changes 500',
    load: () => import('./query.ts'),
  },
  'redis-steps': {
    summary:
      'one changed pod of 20 000 from the owner through Redis to a mirror: latency, CPU, bytes; beside reading the cluster again',
    arguments: '--pods 20000 --steps 500',
    load: () => import('./redis-steps.ts'),
  },
}

function help(): string {
  const lines = Object.entries(benches).map(
    ([name, bench]) => `  ${name.padEnd(13)}${bench.summary}\n               ${bench.arguments}`,
  )
  return `npm run bench <name> [-- arguments]\n\n${lines.join('\n')}\n\nThe arguments shown are the defaults; pull, fanout, rounds, start, history, access, metricsource, live, join, steps, table, sinks, inventory, sealing, query and redis-steps also take --no-write, which leaves the results page alone.\nbench/README.md tells how each measures.\n`
}

async function main([name, ...args]: readonly string[]): Promise<void> {
  if (name === undefined || name === '--help' || name === '-h' || name === 'help') {
    process.stdout.write(help())
    return
  }
  if (!Object.hasOwn(benches, name)) {
    process.stderr.write(`there is no bench ${JSON.stringify(name)}\n\n${help()}`)
    process.exitCode = 1
    return
  }
  const bench = benches[name]
  invariant(bench, 'it is one of them')
  const { run } = await bench.load()
  await run(args)
}

await main(process.argv.slice(2))
