import { causeIn } from './cause.ts'
import type { Health } from './fleet.ts'

/** How well something is after an event; `unknown`: neither good nor bad. */
export interface EventWords {
  readonly need: Health
  /** continues a sentence that begins with the cluster's name */
  readonly text: string
}

/** How times are written where the words are shown. */
export interface TimeWords {
  /** from one moment to another, ms since the epoch */
  readonly stretch: (from: number, to: number) => string
  readonly span: (ms: number) => string
}

/** One event in words. What is not known is told by its name and facts, not hidden. */
export function eventWords(
  { type, data }: { readonly type: string; readonly data: Readonly<Record<string, unknown>> | null },
  times: TimeWords,
): EventWords {
  const facts = Object.entries(data ?? {}).map(([name, value]) => `${name} ${text(value)}`)
  const unknown = { need: 'unknown', text: facts.length === 0 ? type : `${type}: ${facts.join(', ')}` } as const
  return sentence(type, (name) => text(data?.[name]), times) ?? unknown
}

type Fact = (name: string) => string

function sentence(type: string, fact: Fact, times: TimeWords): EventWords | undefined {
  const because = causeIn(fact('message') || fact('reason'))
  const why = because ? `: ${because}` : ''
  switch (type) {
    case 'cluster.added':
      return { need: 'unknown', text: 'was connected' }
    case 'cluster.removed':
      return { need: 'unknown', text: 'was disconnected' }
    case 'cluster.version':
      return { need: 'healthy', text: `moved from version ${fact('from')} to ${fact('to')}` }
    case 'cluster.health':
      return { need: healthOf(fact('to')), text: `turned ${fact('to')}, was ${fact('from')}${why}` }
    case 'cluster.reconciled':
      return { need: healthOf(fact('health')), text: `was read: ${fact('health')}` }
    case 'node.added':
      return { need: 'healthy', text: `has a new node ${fact('node')}` }
    case 'node.removed':
      return { need: 'unknown', text: `lost node ${fact('node')}` }
    case 'node.not_ready':
      return { need: 'degraded', text: `node ${fact('node')} is not ready${why}` }
    case 'node.ready':
      return { need: 'healthy', text: `node ${fact('node')} is ready again` }
    case 'node.cordoned':
      return { need: 'unknown', text: `node ${fact('node')} takes no new pods` }
    case 'node.uncordoned':
      return { need: 'healthy', text: `node ${fact('node')} takes pods again` }
    case 'agent.connected':
      return fact('tls') === 'false'
        ? { need: 'degraded', text: 'its agent connected, without encryption' }
        : { need: 'healthy', text: 'its agent connected' }
    case 'agent.disconnected':
      return { need: 'degraded', text: `its agent is away${why}` }
    case 'collection.lost':
      return { need: 'degraded', text: lost(fact, times) }
    case 'operator.failed':
      return { need: 'degraded', text: `operator ${fact('display_name') || fact('operator')} failed` }
    case 'operator.recovered':
      return { need: 'healthy', text: `operator ${fact('display_name') || fact('operator')} recovered` }
    case 'cluster_operator.degraded':
      return { need: 'degraded', text: `cluster operator ${fact('operator')} is in trouble${why}` }
    case 'cluster_operator.recovered':
      return { need: 'healthy', text: `cluster operator ${fact('operator')} recovered` }
    default:
      return undefined
  }
}

function lost(fact: Fact, { stretch, span }: TimeWords): string {
  const [count, from, to, keptMs] = ['count', 'from', 'to', 'kept_every_ms'].map((name) => Number(fact(name)))
  const what = count ? `${count.toLocaleString()} ${count === 1 ? 'batch' : 'batches'}` : 'some batches'
  const where = from && to ? ` of ${stretch(from, to)}` : ''
  const why = fact('cause') ? `: ${lossText(fact('cause'))}` : ''
  return `lost ${what}${where} for good${why}${keptMs ? `; one per ${span(keptMs)} was kept` : ''}`
}

const causes: Readonly<Record<string, string>> = {
  thinned: 'thinned out, because the buffer of the agent was filling',
  dropped: 'dropped, because the buffer of the agent was full',
  damaged: 'damaged on the disk of the agent',
  hub_down: 'not collected: the hub did not run',
  disk_full: 'not kept: the disk of the hub was full',
  log_full: "not kept: the hub's log had no room",
  unreachable: 'not collected: the cluster could not be read',
  not_kept: 'not kept by the hub',
  agent_down: 'not collected: the agent did not run',
  not_received: 'not received: what an agent still has of it takes its place',
  restored: 'lost by the hub: its data folder was put back from an older copy',
}

/** Why batches were lost, for people. A cause that is not known here is told as the hub names it. */
export const lossText = (cause: string): string => causes[cause] ?? cause

const healths: readonly Health[] = ['healthy', 'degraded', 'unhealthy', 'unknown']

const text = (value: unknown): string =>
  typeof value === 'string' ? value : value == null ? '' : JSON.stringify(value)
const healthOf = (word: string): Health => healths.find((one) => one === word) ?? 'unknown'
