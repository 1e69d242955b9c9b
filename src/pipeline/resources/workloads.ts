import { allDeployments, fields, instant, items } from '#collect'
import { cronJobMessage, daemonSetMessage, jobMessage, type KubeObject, statefulSetMessage } from '#kube'
import type { ScalarValue } from '#model'
import { builtIn, defineResource } from './define.ts'
import { createdAt, imagesOf, numberIn, numberOf, owner, textOf } from './read.ts'

/** What runs pods: one row for each Deployment, StatefulSet, DaemonSet, Job and CronJob. */
export const workloads = defineResource({
  name: 'workloads',
  singular: 'workload',
  shortNames: ['wl'],
  title: 'Workloads',
  reads: [
    allDeployments,
    builtIn('apps/v1', 'StatefulSet', 'statefulsets', statefulSetMessage),
    builtIn('apps/v1', 'DaemonSet', 'daemonsets', daemonSetMessage),
    builtIn('batch/v1', 'Job', 'jobs', jobMessage),
    builtIn('batch/v1', 'CronJob', 'cronjobs', cronJobMessage),
  ],
  access: 'namespaced',
  everyMs: 60_000,
  maxRows: 200_000,
  sort: 'status',
  columns: {
    kind: { label: 'Kind', kind: 'string', read: (_, kind) => kind },
    status: {
      label: 'Status',
      kind: 'string',
      health: {
        ...{ Ready: 'healthy', Complete: 'healthy', Running: 'healthy', Scheduled: 'healthy' },
        ...{ Failed: 'unhealthy', Failing: 'unhealthy', Suspended: 'unknown', 'Scaled to zero': 'unknown' },
      },
      read: (object, kind) => statusOf(object, kind),
    },
    ready: { label: 'Ready', kind: 'number', read: (object, kind) => READY[kind]?.(object) ?? null },
    desired: { label: 'Desired', kind: 'number', read: (object, kind) => desiredOf(object, kind) },
    current: {
      label: 'Current',
      kind: 'number',
      isExtra: true,
      read: (object, kind) => currentOf(object, kind),
    },
    updated: {
      label: 'Updated',
      kind: 'number',
      isExtra: true,
      read: (object) => count(object, 'updatedReplicas', 'updatedNumberScheduled'),
    },
    available: {
      label: 'Available',
      kind: 'number',
      isExtra: true,
      read: (object) => count(object, 'availableReplicas', 'numberAvailable'),
    },
    active: { label: 'Active', kind: 'number', isExtra: true, read: (object, kind) => activeOf(object, kind) },
    succeeded: { label: 'Succeeded', kind: 'number', isExtra: true, read: numberOf('status', 'succeeded') },
    failed: { label: 'Failed', kind: 'number', isExtra: true, read: numberOf('status', 'failed') },
    schedule: { label: 'Schedule', kind: 'string', isWide: true, read: textOf('spec', 'schedule') },
    lastScheduleAt: {
      label: 'Last run',
      kind: 'number',
      isWide: true,
      unit: 'time',
      read: ({ status }) => instant(fields(status).lastScheduleTime),
    },
    images: { label: 'Images', kind: 'string', read: ({ spec }, kind) => imagesOf(templateOf(spec, kind)) },
    owner: { ...owner, reverse: { title: 'Jobs', kinds: ['CronJob'] } },
    createdAt,
  },
  counts: {
    byKind: { function: 'count', field: undefined, groupBy: 'kind' },
    byStatus: { function: 'count', field: undefined, groupBy: 'status' },
  },
})

const templateOf = (spec: unknown, kind: string) =>
  kind === 'CronJob' ? fields(fields(fields(spec).jobTemplate).spec).template : fields(spec).template

/** Of the names that kinds have for it, the one that is there; the API leaves out what is 0. */
function count({ status }: KubeObject, ...names: readonly string[]): number {
  for (const name of names) {
    const number = numberIn(fields(status)[name])
    if (number !== null) return number
  }
  return 0
}

const READY: Readonly<Record<string, (object: KubeObject) => number>> = {
  Deployment: (object) => count(object, 'readyReplicas'),
  StatefulSet: (object) => count(object, 'readyReplicas'),
  DaemonSet: (object) => count(object, 'numberReady'),
  Job: (object) => count(object, 'succeeded'),
}

function desiredOf({ spec, status }: KubeObject, kind: string): number | null {
  if (kind === 'DaemonSet') return numberIn(fields(status).desiredNumberScheduled) ?? 0
  if (kind === 'Job') return numberIn(fields(spec).completions) ?? numberIn(fields(spec).parallelism) ?? 1
  return kind === 'CronJob' ? null : (numberIn(fields(spec).replicas) ?? 1)
}

/** Pods there are, whatever their state; a daemon set counts its nodes that have one. */
const currentOf = (object: KubeObject, kind: string): number | null =>
  kind === 'Job' || kind === 'CronJob' ? null : count(object, 'replicas', 'currentNumberScheduled')

const activeOf = ({ status }: KubeObject, kind: string): number | null =>
  kind === 'CronJob' ? items(fields(status).active).length : numberIn(fields(status).active)

/** One word for how a workload is. Conditions come before numbers: a controller that gave up says so there. */
function statusOf(object: KubeObject, kind: string): ScalarValue {
  const { spec, status } = object
  const isTrue = (type: string) =>
    items(fields(status).conditions).some((one) => one.type === type && one.status === 'True')
  const isSuspended = fields(spec).suspend === true
  if (kind === 'CronJob') return isSuspended ? 'Suspended' : activeOf(object, kind) ? 'Running' : 'Scheduled'
  if (kind === 'Job') {
    if (isTrue('Failed')) return 'Failed'
    if (isTrue('Complete')) return 'Complete'
    return isSuspended ? 'Suspended' : 'Running'
  }
  const desired = desiredOf(object, kind) ?? 0
  const ready = READY[kind]?.(object) ?? 0
  if (desired === 0) return 'Scaled to zero'
  const gaveUp = items(fields(status).conditions).some(
    (one) => one.type === 'Progressing' && one.status === 'False' && one.reason === 'ProgressDeadlineExceeded',
  )
  if (gaveUp || isTrue('ReplicaFailure')) return 'Failing'
  const isSeen = (numberIn(fields(status).observedGeneration) ?? 0) >= (object.metadata.generation ?? 0)
  const isUpdated = count(object, 'updatedReplicas', 'updatedNumberScheduled') >= desired
  if (ready >= desired) return isSeen && isUpdated ? 'Ready' : 'Updating'
  return isSeen && isUpdated ? 'Degraded' : 'Updating'
}
