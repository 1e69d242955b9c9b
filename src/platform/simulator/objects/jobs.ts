import type { ApiObject } from '#apiserver'
import { minutes } from '#model'
import type { JobFacts, WorkloadFacts } from '../facts.ts'
import { hash } from '../random.ts'
import { condition, timestamp } from './meta.ts'
import { labelsOf, ownerReference, podTemplateOf } from './workloads.ts'

const EVERY_MINUTES = [2, 5, 10, 60]

/** When a CronJob makes its Jobs: each so many minutes, from the first of them on. */
export function scheduleOf({ name }: WorkloadFacts): { everyMinutes: number; offset: number } {
  const everyMinutes = EVERY_MINUTES[hash(`schedule/${name}`) % EVERY_MINUTES.length] ?? 5
  return { everyMinutes, offset: hash(`offset/${name}`) % everyMinutes }
}

function scheduleText(cronJob: WorkloadFacts): string {
  const { everyMinutes, offset } = scheduleOf(cronJob)
  return everyMinutes === 60 ? `${offset} * * * *` : `${offset}-59/${everyMinutes} * * * *`
}

/** How often a Job tries again before it has failed. */
export const backoffLimitOf = ({ name }: WorkloadFacts): number => hash(`backoff/${name}`) % 3
/** Some Jobs are deleted a while after their end, whatever their CronJob keeps. */
export const ttlSecondsOf = ({ name }: WorkloadFacts): number | undefined =>
  hash(`ttl/${name}`) % 3 === 0 ? 300 : undefined
export const KEPT = { complete: 2, failed: 1 } as const

const jobSpec = (cronJob: WorkloadFacts, labels: Record<string, string>) => ({
  backoffLimit: backoffLimitOf(cronJob),
  ...(ttlSecondsOf(cronJob) === undefined ? {} : { ttlSecondsAfterFinished: ttlSecondsOf(cronJob) }),
  template: podTemplateOf(cronJob.template, labels, { restartPolicy: 'Never' }),
})

export const jobLabels = ({ name, uid, cronJob }: JobFacts): Record<string, string> => ({
  ...labelsOf(cronJob),
  'batch.kubernetes.io/controller-uid': uid,
  'batch.kubernetes.io/job-name': name,
  'controller-uid': uid,
  'job-name': name,
})

/** @param jobs those there are of it */
export function cronJobObject(cronJob: WorkloadFacts, jobs: readonly JobFacts[]): ApiObject {
  const labels = labelsOf(cronJob)
  const active = jobs.filter(({ state }) => state === 'running')
  const last = Math.max(0, ...jobs.map(({ scheduledAt }) => scheduledAt))
  const lastSuccess = Math.max(0, ...jobs.map(({ state, endedAt }) => (state === 'complete' ? (endedAt ?? 0) : 0)))
  return {
    apiVersion: 'batch/v1',
    kind: 'CronJob',
    metadata: {
      name: cronJob.name,
      namespace: cronJob.namespace,
      uid: cronJob.uid,
      generation: 1,
      creationTimestamp: timestamp(cronJob.createdAt),
      labels,
    },
    spec: {
      schedule: scheduleText(cronJob),
      concurrencyPolicy: 'Forbid',
      suspend: false,
      successfulJobsHistoryLimit: KEPT.complete,
      failedJobsHistoryLimit: KEPT.failed,
      jobTemplate: { metadata: { labels }, spec: jobSpec(cronJob, labels) },
    },
    status: {
      ...(active.length > 0 ? { active: active.map(referenceOf) } : {}),
      ...(last > 0 ? { lastScheduleTime: timestamp(last) } : {}),
      ...(lastSuccess > 0 ? { lastSuccessfulTime: timestamp(lastSuccess) } : {}),
    },
  }
}

const referenceOf = ({ cronJob: { namespace }, name, uid }: JobFacts) => ({
  apiVersion: 'batch/v1',
  kind: 'Job',
  namespace,
  name,
  uid,
})

export function jobObject(job: JobFacts, ready: number): ApiObject {
  const { cronJob, uid } = job
  const labels = jobLabels(job)
  return {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: {
      name: job.name,
      namespace: cronJob.namespace,
      uid,
      generation: 1,
      creationTimestamp: timestamp(job.scheduledAt),
      labels,
      annotations: { 'batch.kubernetes.io/cronjob-scheduled-timestamp': timestamp(job.scheduledAt) },
      ownerReferences: [ownerReference('batch/v1', cronJob)],
    },
    spec: {
      parallelism: 1,
      completions: 1,
      completionMode: 'NonIndexed',
      suspend: false,
      podReplacementPolicy: 'TerminatingOrFailed',
      manualSelector: false,
      selector: { matchLabels: { 'batch.kubernetes.io/controller-uid': uid } },
      ...jobSpec(cronJob, labels),
    },
    status: jobStatus(job, ready),
  }
}

function jobStatus(job: JobFacts, ready: number): Record<string, unknown> {
  const { state, endedAt, failed } = job
  const status = { startTime: timestamp(job.scheduledAt), ...(failed > 0 ? { failed } : {}) }
  if (state === 'running' || endedAt === undefined) return { ...status, active: 1, ready, terminating: 0 }
  const ended = { ...status, ready: 0, terminating: 0, uncountedTerminatedPods: {} }
  if (state === 'failed') {
    const why = { reason: 'BackoffLimitExceeded', message: 'Job has reached the specified backoff limit' }
    return { ...ended, conditions: ['FailureTarget', 'Failed'].map((type) => jobCondition(type, endedAt, why)) }
  }
  const why = { reason: 'CompletionsReached', message: 'Reached expected number of succeeded pods' }
  return {
    ...ended,
    succeeded: 1,
    completionTime: timestamp(endedAt),
    conditions: ['SuccessCriteriaMet', 'Complete'].map((type) => jobCondition(type, endedAt, why)),
  }
}

const jobCondition = (type: string, at: number, why: Readonly<Record<string, string>>) =>
  condition(type, true, at, { ...why, lastProbeTime: timestamp(at) })

/** The last minute at which a schedule asked for a Job, and those before it. */
export function scheduledBefore(cronJob: WorkloadFacts, now: number, back = 0): number {
  const { everyMinutes, offset } = scheduleOf(cronJob)
  const minute = Math.floor(now / minutes(1))
  const since = (minute - offset) % everyMinutes
  return (minute - since - back * everyMinutes) * minutes(1)
}
