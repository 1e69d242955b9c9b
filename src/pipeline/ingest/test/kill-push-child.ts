import { readFileSync, writeSync } from 'node:fs'
import { openEvents } from '#events'
import { type HistoryStore, openHistory, samplesOf } from '#history'
import { type Batch, type ClusterName, type Part, parseClusterName, systemClock } from '#model'
import { openLog } from '#runtime'
import { openState } from '#state'
import { aBatch, aNode, complete, facts, T0 } from '../../state/test/fleet-words.ts'
import { BaseMismatchError } from '../errors.ts'
import { Ingester } from '../ingester.ts'
import { FileHistory } from './file-history.ts'

/*
 * A hub's write path with the agents of some clusters, killed from outside. The agents send live, hold batches back and
 * send them later in any order, send again what was acknowledged, and declare losses. Every step is said, one line each,
 * in one system call: what the parent read before `acknowledged` was acknowledged.
 */
export interface AgentPlan {
  readonly name: string
  next: number
  /** made, with no word of what became of them */
  readonly open: number[]
  /** declared lost, with no word whether that arrived: [sequence of the declaration, those that are lost] */
  readonly losing: [number, number[]][]
  readonly acknowledged: number[]
}

const EVERY = 1000
const [directory = '', driver = 'file'] = process.argv.slice(2)
const plans = JSON.parse(readFileSync(`${directory}/plan.json`, 'utf8')) as AgentPlan[]
const say = (...words: (string | number)[]) => writeSync(1, `${words.join(' ')}\n`)
const chance = (of: number) => Math.random() < of
const takeAny = <T>(list: T[]): T => list.splice(Math.floor(Math.random() * list.length), 1)[0] as T

// Time runs a thousand times faster, so that checkpoints and the ledger are written often.
const began = Date.now()
const clock = { ...systemClock, now: () => began + (Date.now() - began) * 1000 }
const log = await openLog({ directory: `${directory}/log`, segmentBytes: 64 * 1024, retainBytes: 0 })
const state = await openState({ kind: 'embedded', directory: `${directory}/state`, writeBehindMs: 10 })
const years = 10 * 365 * 86_400_000
const file = driver === 'file' ? await FileHistory.open(`${directory}/history`) : undefined
const history: HistoryStore =
  file ??
  (await openHistory({
    kind: 'duckdb',
    directory: `${directory}/history`,
    retentionMs: years,
    rawMs: years,
    threads: 1,
  }))
const ingester = await Ingester.open({ log, state, events: openEvents({ kind: 'in-process' }), history, clock })
await ingester.flushed()
await ingester.flushed('history')
for (const { name, next } of plans) {
  const known = state.cluster(name)
  const nodes = [...(known?.parts.node?.items.keys() ?? [])].sort()
  say('found', name, known?.sequence ?? 0, nodes.join(','))
  say('history', name, (await keptOf(name, next)).join(','))
  if (file)
    say(
      'losses',
      name,
      file
        .lossesOf(name)
        .filter(({ origin }) => origin === originOf(parseClusterName(name)))
        .map(({ sequence }) => sequence)
        .join(','),
    )
}
say('ready')
await Promise.all(plans.map(runAgent))

/** Sequences whose samples history has; with a database every one that has a number at its time. */
async function keptOf(cluster: string, next: number): Promise<number[]> {
  if (file) return file.timesOf(cluster).map((at) => (at - T0) / EVERY)
  const { series } = await history.range({
    cluster,
    scope: 'cluster',
    metrics: ['clusterpulse_cluster_nodes_total'],
    from: T0,
    to: T0 + (next + 1000) * EVERY,
    stepMs: EVERY,
    maxSeries: 1,
  })
  return (series[0]?.values ?? []).flatMap((value, i) => (value === null ? [] : [i]))
}

async function runAgent(plan: AgentPlan): Promise<void> {
  const cluster = parseClusterName(plan.name)
  const { open, losing, acknowledged } = plan
  await ingester.connect(cluster, facts({ mode: 'push', intervalMs: EVERY }))
  const done = (sequence: number) => {
    say('acknowledged', cluster, sequence)
    acknowledged.push(sequence)
  }
  for (const [sequence, lost] of losing) await declare(cluster, sequence, lost)
  let base: number | undefined
  for (;;) {
    const sequence = plan.next++
    if (chance(0.1) && open.length > 2) {
      const lost = [takeAny(open), takeAny(open)].sort((a, b) => a - b)
      await declare(cluster, sequence, lost)
    } else {
      say('made', cluster, sequence)
      if (chance(0.25)) open.push(sequence)
      else {
        await sendLive(cluster, sequence, base)
        base = sequence
        done(sequence)
      }
    }
    if (chance(0.25) && open.length > 0) {
      const late = takeAny(open)
      await ingester.accept({ batch: { ...whole(cluster, late), backfill: true } })
      done(late)
    }
    if (chance(0.2) && acknowledged.length > 0) {
      const again = acknowledged[Math.floor(Math.random() * acknowledged.length)] as number
      const { duplicate } = await ingester.accept({ batch: whole(cluster, again) })
      if (!duplicate) say('twice', cluster, again)
    }
    await systemClock.sleep(1)
  }
}

async function declare(cluster: ClusterName, sequence: number, lost: readonly number[]): Promise<void> {
  say('losing', cluster, sequence, ...lost)
  const [first = 0, last = 0] = [lost[0], lost.at(-1)]
  await ingester.lost(cluster, {
    origin: originOf(cluster),
    sequence,
    lost: lost.map((n) => [n, n] as const),
    from: T0 + first * EVERY,
    to: T0 + last * EVERY,
    cause: 'dropped',
    count: lost.length,
    keptEveryMs: 0,
  })
  say('lost', cluster, sequence)
}

async function sendLive(cluster: ClusterName, sequence: number, base: number | undefined): Promise<void> {
  if (base !== undefined && chance(0.8)) {
    const batch = difference(cluster, sequence, base)
    const node = new Map([`n${sequence}`, 'always'].map((name) => [name, aNode(name)]))
    try {
      await ingester.accept({ batch, samples: samplesOf(batch, { node }) })
      return
    } catch (error) {
      if (!(error instanceof BaseMismatchError)) throw error
    }
  }
  await ingester.accept({ batch: whole(cluster, sequence) })
}

function originOf(cluster: ClusterName): string {
  return `agent-of-${cluster}`
}

function whole(cluster: ClusterName, sequence: number): Batch {
  const parts = [complete('node', aNode(`n${sequence}`), aNode('always'))]
  return pushed(cluster, sequence, parts)
}

function difference(cluster: ClusterName, sequence: number, base: number): Batch {
  const put = [aNode(`n${sequence}`)]
  const part: Part = { type: 'node', collector: 'nodes', durationMs: 1, outcome: 'changed', put, removed: [`n${base}`] }
  return { ...pushed(cluster, sequence, [part]), base }
}

function pushed(cluster: ClusterName, sequence: number, parts: Part[]): Batch {
  return aBatch(cluster, sequence, parts, {
    origin: originOf(cluster),
    source: 'push',
    collectedAt: T0 + sequence * EVERY,
  })
}
