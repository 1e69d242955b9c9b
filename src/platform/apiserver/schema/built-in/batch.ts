import {
  as,
  component,
  condition,
  flag,
  int32,
  int64,
  kindOf,
  labelSelector,
  list,
  object,
  objectMeta,
  objectReference,
  oneOf,
  strings,
  text,
  time,
} from '../components.ts'
import { podTemplate } from './pod.ts'

const batch = (kind: string): string => `io.k8s.api.batch.v1.${kind}`

const SET = { 'x-kubernetes-list-type': 'set' } as const

const exitCodes = component(
  batch('PodFailurePolicyOnExitCodesRequirement'),
  object(
    'Exit codes that match.',
    {
      containerName: text('container that is looked at; default: all'),
      operator: oneOf(['In', 'NotIn'], 'whether the code is one of the values or none of them'),
      values: list({ type: 'integer', format: 'int32' }, 'exit codes', SET),
    },
    { required: ['operator', 'values'] },
  ),
)

const failureRule = component(
  batch('PodFailurePolicyRule'),
  object(
    'What a sort of failure means.',
    {
      action: oneOf(['Count', 'FailIndex', 'FailJob', 'Ignore'], 'what becomes of the Job'),
      onExitCodes: exitCodes,
      onPodConditions: list(
        component(
          batch('PodFailurePolicyOnPodConditionsPattern'),
          object(
            'A condition of the pod that matches.',
            { type: text('type of the condition'), status: text('its status; default True', { default: 'True' }) },
            { required: ['type'] },
          ),
        ),
        'conditions of the pod that match',
      ),
    },
    { required: ['action'] },
  ),
)

const jobFields = {
  parallelism: int32('how many pods run at once'),
  completions: int32('how many pods must succeed'),
  activeDeadlineSeconds: int64('seconds it may run at all'),
  podFailurePolicy: component(
    batch('PodFailurePolicy'),
    object(
      'What failures mean.',
      { rules: list(failureRule, 'the first that matches counts') },
      { required: ['rules'] },
    ),
  ),
  successPolicy: component(
    batch('SuccessPolicy'),
    object(
      'When it counts as done.',
      {
        rules: list(
          component(
            batch('SuccessPolicyRule'),
            object('Pods that suffice.', {
              succeededIndexes: text('indexes that must succeed, such as 0,2-4'),
              succeededCount: int32('how many of them suffice'),
            }),
          ),
          'one that is met suffices',
        ),
      },
      { required: ['rules'] },
    ),
  ),
  backoffLimit: int32('failures until it is given up'),
  backoffLimitPerIndex: int32('failures of one index until that is given up'),
  maxFailedIndexes: int32('failed indexes until it is given up'),
  selector: as(labelSelector, 'its pods; made by the server'),
  manualSelector: flag('whether the selector is written by hand'),
  template: as(podTemplate, 'the pods it makes'),
  ttlSecondsAfterFinished: int32('seconds after its end until it is deleted; absent: never'),
  completionMode: oneOf(['NonIndexed', 'Indexed'], 'whether its pods are numbered'),
  suspend: flag('whether its pods are held back'),
  podReplacementPolicy: oneOf(['Failed', 'TerminatingOrFailed'], 'when a failed pod is replaced'),
  managedBy: text('who runs it, if not the Job controller'),
}

const jobSpec = component(batch('JobSpec'), object('What shall run.', jobFields, { required: ['template'] }))

export const job = kindOf(batch('Job'), 'Runs pods until enough of them succeed.', {
  spec: jobSpec,
  status: component(
    batch('JobStatus'),
    object('What ran.', {
      conditions: list(
        condition(batch('JobCondition'), { lastProbeTime: time('when it was looked at last') }),
        'Complete, Failed or Suspended',
        { 'x-kubernetes-patch-strategy': 'merge', 'x-kubernetes-patch-merge-key': 'type' },
      ),
      startTime: time('when it began'),
      completionTime: time('when it succeeded'),
      active: int32('pods that wait or run'),
      ready: int32('pods that are ready'),
      terminating: int32('pods that are going'),
      succeeded: int32('pods that succeeded'),
      failed: int32('pods that failed'),
      completedIndexes: text('indexes that succeeded'),
      failedIndexes: text('indexes that failed'),
      uncountedTerminatedPods: component(
        batch('UncountedTerminatedPods'),
        object('Ended pods that are not counted yet.', {
          succeeded: strings('pods that succeeded', SET),
          failed: strings('pods that failed', SET),
        }),
      ),
    }),
  ),
})

export const cronJob = kindOf(batch('CronJob'), 'Makes Jobs by the clock.', {
  spec: component(
    batch('CronJobSpec'),
    object(
      'When, and what.',
      {
        schedule: text('five fields of cron, such as */5 * * * *'),
        timeZone: text('whose clock the schedule follows; default: that of the control plane'),
        startingDeadlineSeconds: int64('seconds by which a Job may be late'),
        concurrencyPolicy: oneOf(['Allow', 'Forbid', 'Replace'], 'what happens when the last Job still runs', {
          default: 'Allow',
        }),
        suspend: flag('whether no Jobs are made', { default: false }),
        jobTemplate: component(
          batch('JobTemplateSpec'),
          object('The Jobs it makes.', { metadata: as(objectMeta, 'labels and annotations'), spec: jobSpec }),
        ),
        successfulJobsHistoryLimit: int32('successful Jobs that are kept', { default: 3 }),
        failedJobsHistoryLimit: int32('failed Jobs that are kept', { default: 1 }),
      },
      { required: ['schedule', 'jobTemplate'] },
    ),
  ),
  status: component(
    batch('CronJobStatus'),
    object('What it made.', {
      active: list(as(objectReference, 'One Job.'), 'Jobs that run'),
      lastScheduleTime: time('when it made a Job last'),
      lastSuccessfulTime: time('when a Job of it succeeded last'),
    }),
  ),
})
