import type { EventView, TableRowView } from '../contract.ts'
import type { Need } from './cluster.ts'
import { eventLine } from './events.ts'
import { plural } from './format.ts'
import { scalarOf } from './row-values.ts'

/** The kind of row that tells of a cluster's own events, wherever a MetricSource has the plain name. */
export const kubernetesEvents = 'core/kubernetes-events'

/** One event: of the cluster itself, or what the hub saw of it. */
export interface TimelineEvent {
  readonly key: string
  readonly from: 'Kubernetes' | 'hub'
  readonly cluster: string
  /** '' where it is about nothing in a namespace */
  readonly namespace: string
  /** `Normal` or `Warning`; of the hub the same by how bad it is */
  readonly type: string
  readonly need: Need
  readonly reason: string
  /** `Kind/name`; '' where it names none */
  readonly object: string
  /** null: it is not told, or not for the caller */
  readonly text: string | null
  readonly count: number
  /** ms since the Unix epoch; null: not known */
  readonly firstAt: number | null
  readonly at: number | null
  readonly links: TableRowView['links']
}

const textIn = (row: TableRowView, field: string): string => {
  const value = scalarOf(row.values[field])
  return typeof value === 'string' ? value : ''
}
const numberIn = (row: TableRowView, field: string): number | null => {
  const value = scalarOf(row.values[field])
  return typeof value === 'number' ? value : null
}

export function kubeEvent(cluster: string, row: TableRowView): TimelineEvent {
  const type = textIn(row, 'type')
  return {
    key: `${cluster} ${row.id}`,
    from: 'Kubernetes',
    cluster,
    namespace: row.namespace,
    type,
    need: type === 'Normal' ? 'healthy' : 'degraded',
    reason: textIn(row, 'reason'),
    object: textIn(row, 'object'),
    text: textIn(row, 'message') || null,
    count: numberIn(row, 'count') ?? 1,
    firstAt: numberIn(row, 'firstAt'),
    at: numberIn(row, 'lastAt'),
    links: row.links,
  }
}

export function hubEvent(event: EventView): TimelineEvent {
  const { key, cluster, type, at, need, text } = eventLine(event)
  const { node, namespace } = event.data ?? {}
  return {
    key,
    from: 'hub',
    cluster,
    namespace: typeof namespace === 'string' ? namespace : '',
    type: need === 'healthy' ? 'Normal' : 'Warning',
    need,
    reason: type,
    object: typeof node === 'string' ? `Node/${node}` : '',
    text,
    count: 1,
    firstAt: at,
    at,
    links: undefined,
  }
}

/** Events of one cause, as one line: the newest speaks for all. */
export interface TimelineLine extends TimelineEvent {
  /** newest first */
  readonly members: readonly TimelineEvent[]
  /** what they are about: one object, or how many of a kind */
  readonly about: string
}

const kindOf = (object: string): string => object.split('/', 1)[0] ?? ''
const newestFirst = (one: TimelineEvent, other: TimelineEvent): number =>
  (other.at ?? 0) - (one.at ?? 0) || (one.key < other.key ? -1 : 1)

/** One cause: the same happened, for the same reason, to objects of one kind in one namespace of one cluster. */
const causeOf = ({ from, cluster, namespace, type, reason, object }: TimelineEvent): string =>
  JSON.stringify([from, cluster, namespace, type, reason, kindOf(object)])

/** Lines by their key, newest first. Of each event there is one, whatever the order they came in. */
export function foldEvents(events: Iterable<TimelineEvent>): ReadonlyMap<string, TimelineLine> {
  const byCause = new Map<string, TimelineEvent[]>()
  for (const event of new Map([...events].map((one) => [one.key, one])).values()) {
    const cause = causeOf(event)
    const known = byCause.get(cause)
    if (known) known.push(event)
    else byCause.set(cause, [event])
  }
  const lines = [...byCause].flatMap(([cause, found]): TimelineLine[] => {
    const members = found.sort(newestFirst)
    const [newest] = members
    if (!newest) return []
    const objects = new Set(members.map(({ object }) => object).filter(Boolean))
    const firsts = members.flatMap(({ firstAt }) => firstAt ?? [])
    return [
      {
        ...newest,
        key: cause,
        members,
        about: objects.size > 1 ? plural(objects.size, kindOf(newest.object)) : newest.object,
        count: members.reduce((sum, { count }) => sum + count, 0),
        firstAt: firsts.length > 0 ? Math.min(...firsts) : null,
      },
    ]
  })
  return new Map(lines.sort(newestFirst).map((line) => [line.key, line]))
}

/** Names of pods that a workload's controller makes, and of the replica sets between; `null`: only the workload itself. */
const MADE_BY: Readonly<Record<string, (name: string) => RegExp>> = {
  Deployment: (name) => new RegExp(`^(ReplicaSet/${name}-[a-z0-9]+|Pod/${name}-[a-z0-9]+-[a-z0-9]{5})$`),
  StatefulSet: (name) => new RegExp(`^Pod/${name}-\\d+$`),
  DaemonSet: (name) => new RegExp(`^Pod/${name}-[a-z0-9]{5}$`),
  Job: (name) => new RegExp(`^Pod/${name}-[a-z0-9]{5}$`),
  CronJob: (name) => new RegExp(`^(Job/${name}-\\d+|Pod/${name}-\\d+-[a-z0-9]{5})$`),
}

/** Whether an event is about this workload, or about what is named as its controllers name what they make. */
export function isOfWorkload(reference: string, object: string): boolean {
  const [kind = '', name = ''] = reference.split('/')
  const escaped = name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
  return object === reference || (MADE_BY[kind]?.(escaped).test(object) ?? false)
}
