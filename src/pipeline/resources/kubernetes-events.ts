import { fields, instant, listOf, text } from '#collect'
import { eventMessage, type KubeObject, projected } from '#kube'
import { defineResource } from './define.ts'
import { numberIn, once } from './read.ts'

/** Characters of a message that are kept: what a webhook or a probe answers has no end. */
export const MESSAGE_LENGTH = 1024
/** Rows of one cluster, the newest by when they were seen last. */
export const NEWEST = 2000

/** What the components of a cluster say happened, as `kubectl get events` lists it. Kept by the cluster for an hour, usually. */
export const kubernetesEvents = defineResource({
  name: 'kubernetes-events',
  singular: 'kubernetes-event',
  shortNames: ['kev'],
  title: 'Kubernetes events',
  reads: [
    listOf(
      {
        ...{ group: '', version: 'v1', plural: 'events', kind: 'Event', namespaced: true },
        fromProtobuf: projected(eventMessage),
      },
      { isOptional: true },
    ),
  ],
  // The API keeps those of nodes and of other things without a namespace in one that they have nothing to do with.
  namespaceOf: ({ metadata, involvedObject }) =>
    text(fields(involvedObject).namespace) === '' ? '' : (metadata.namespace ?? ''),
  access: 'events',
  everyMs: 30_000,
  maxRows: 500_000,
  newest: { column: 'lastAt', most: NEWEST },
  sort: '-lastAt',
  columns: {
    lastAt: { label: 'Last', kind: 'number', unit: 'time', absence: 'unknown', read: (event) => lastOf(event) },
    type: {
      label: 'Type',
      kind: 'string',
      health: { Normal: 'healthy', Warning: 'degraded' },
      read: ({ type }) => text(type) || null,
    },
    reason: { label: 'Reason', kind: 'string', read: ({ reason }) => text(reason) || null },
    object: {
      label: 'Object',
      kind: 'string',
      refersTo: 'object',
      reverse: {
        title: 'Kubernetes events',
        kinds: [
          ...['Pod', 'Node', 'Deployment', 'ReplicaSet', 'StatefulSet', 'DaemonSet', 'Job', 'CronJob'],
          ...['PersistentVolumeClaim', 'PersistentVolume', 'Service'],
        ],
      },
      read: ({ involvedObject }) => objectOf(involvedObject),
    },
    message: { label: 'Message', kind: 'string', isRestricted: true, read: (event) => messageOf(event) },
    count: { label: 'Count', kind: 'number', read: (event) => timesOf(event) },
    firstAt: {
      label: 'First',
      kind: 'number',
      unit: 'time',
      absence: 'unknown',
      isWide: true,
      read: (event) => firstOf(event),
    },
    source: { label: 'Source', kind: 'string', isWide: true, read: (event) => sourceOf(event) },
    node: { label: 'Node', kind: 'string', isWide: true, refersTo: 'node', read: (event) => nodeOf(event) },
  },
  counts: {
    byType: { function: 'count', field: undefined, groupBy: 'type' },
    byReason: { function: 'count', field: undefined, groupBy: 'reason' },
  },
})

const series = once((event) => fields(event.series))

/** How often it was seen; one that was seen once says nothing. */
const timesOf = (event: KubeObject): number =>
  Math.max(numberIn(event.count) ?? 0, numberIn(series(event).count) ?? 0, 1)

/** Components of today say `eventTime` and a series, older ones `lastTimestamp`; where both are there, the later counts. */
function lastOf(event: KubeObject): number | null {
  const times = [event.lastTimestamp, series(event).lastObservedTime, event.eventTime, event.firstTimestamp].map(
    instant,
  )
  const known = times.filter((at) => at !== null)
  return known.length > 0 ? Math.max(...known) : instant(event.metadata.creationTimestamp)
}

const firstOf = (event: KubeObject): number | null =>
  instant(event.firstTimestamp) ?? instant(event.eventTime) ?? instant(event.metadata.creationTimestamp)

function objectOf(involved: unknown): string | null {
  const { kind, name } = fields(involved)
  return text(kind) && text(name) ? `${text(kind)}/${text(name)}` : null
}

/** Cut between characters, never within one. */
function messageOf({ message }: KubeObject): string | null {
  const said = text(message).trim()
  if (said.length <= MESSAGE_LENGTH) return said || null
  return `${said.slice(0, MESSAGE_LENGTH - 1).replace(/[\uD800-\uDBFF]$/, '')}…`
}

const sourceOf = (event: KubeObject): string | null =>
  text(fields(event.source).component) || text(event.reportingComponent) || null

/** Where the scheduler put a pod is said in words alone. */
const ASSIGNED = /^Successfully assigned \S+ to (\S+)$/

function nodeOf(event: KubeObject): string | null {
  const { kind, name } = fields(event.involvedObject)
  if (text(kind) === 'Node') return text(name) || null
  const host = text(fields(event.source).host)
  if (host) return host
  const component = sourceOf(event)
  if (component === 'kubelet') return text(event.reportingInstance) || null
  return text(event.reason) === 'Scheduled' ? (ASSIGNED.exec(text(event.message).trim())?.[1] ?? null) : null
}
