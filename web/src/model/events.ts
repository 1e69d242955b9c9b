import type { EventView, Health } from '../contract.ts'
import type { Need } from './cluster.ts'
import { formatSpan, formatStretch, plural } from './format.ts'
import { lossText } from './push.ts'

export interface EventLine {
  readonly key: string
  readonly cluster: string
  /** of the event, as the hub names it */
  readonly type: string
  readonly at: number
  readonly need: Need
  /** continues a sentence that begins with the cluster's name */
  readonly text: string
}

const healths = ['healthy', 'degraded', 'unhealthy', 'unknown']

/** One event in words. What this page does not know is told by its name and facts, not hidden. */
export function eventLine(event: EventView): EventLine {
  const { type, cluster, at, data } = event
  const told = sentence(type, (name) => text(data?.[name]))
  return {
    key: `${cluster} ${at} ${type} ${JSON.stringify(data)}`,
    cluster,
    type,
    at,
    need: told?.need ?? 'unknown',
    text: told?.text ?? `${type}${data ? `: ${JSON.stringify(data)}` : ''}`,
  }
}

type Told = { need: Need; text: string } | undefined

function sentence(type: string, fact: (name: string) => string): Told {
  const because = fact('message') || fact('reason')
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
      return { need: 'degraded', text: lost(fact) }
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

function lost(fact: (name: string) => string): string {
  const [count, from, to, keptMs] = ['count', 'from', 'to', 'kept_every_ms'].map((name) => Number(fact(name)))
  const what = count ? plural(count, 'batch', 'batches') : 'some batches'
  const where = from && to ? ` of ${formatStretch(from, to)}` : ''
  const why = fact('cause') ? `: ${lossText(fact('cause'))}` : ''
  return `lost ${what}${where} for good${why}${keptMs ? `; one per ${formatSpan(keptMs)} was kept` : ''}`
}

const text = (value: unknown): string =>
  typeof value === 'string' ? value : value == null ? '' : JSON.stringify(value)
const healthOf = (word: string): Health => (healths.includes(word) ? (word as Health) : 'unknown') // a word of the list
