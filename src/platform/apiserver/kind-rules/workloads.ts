import { isDeepStrictEqual } from 'node:util'
import type { ApiObject, FieldFault } from '../types.ts'
import { scheduleFault, timeZoneFault } from './cron-schedule.ts'
import {
  endingTemplateFaults,
  lastingTemplateFaults,
  podSpecFaults,
  prepareNewPodSpec,
  preparePodSpec,
  prepareTemplate,
  qosClassOf,
} from './pod-spec.ts'
import {
  type Fields,
  fields,
  forbidden,
  type KindRule,
  negative,
  required,
  withDefaults,
  without,
  wrong,
} from './rule.ts'

const NAMES_TEMPLATE = ['spec.template', 'spec.selector']

export const podRule: KindRule = {
  prepare: (object, before) => {
    const spec = fields(object.spec)
    const prepared = before ? preparePodSpec(spec) : prepareNewPodSpec(spec)
    if (prepared === spec && object.status) return object
    const status = object.status ?? { phase: 'Pending', qosClass: qosClassOf(prepared) }
    return { ...object, spec: prepared, status }
  },
  faults: (object) => podSpecFaults(object.spec, 'spec'),
}

/** What the four kinds that keep pods running differ in. */
interface Lasting {
  readonly status: Fields
  /** field of the strategy, and what a rolling one has where it says nothing */
  readonly strategy?: readonly [field: string, rolling: Fields]
  /** whether an absent selector is named */
  readonly namesSelector?: boolean
  readonly prepare?: KindRule['prepare']
  readonly faults?: (spec: Fields, before: Fields | undefined) => FieldFault[]
}

function lasting({ status, strategy, namesSelector = true, prepare, faults }: Lasting): KindRule {
  return {
    required: NAMES_TEMPLATE,
    prepare: (object, before, nowMs, write) => {
      let spec = prepareTemplate(fields(object.spec))
      const chosen = strategy && fields(spec[strategy[0]])
      if (strategy && chosen?.type === 'RollingUpdate') {
        const rollingUpdate = withDefaults(fields(chosen.rollingUpdate), strategy[1])
        if (rollingUpdate !== chosen.rollingUpdate) spec = { ...spec, [strategy[0]]: { ...chosen, rollingUpdate } }
      }
      const prepared = withDefaults({ ...object, spec }, { status })
      return prepare?.(prepared, before, nowMs, write) ?? prepared
    },
    faults: (object, before) => {
      const spec = fields(object.spec)
      const { selector, template } = spec
      return [
        ...negative(spec, 'spec', ['replicas', 'minReadySeconds']),
        ...(selector || !namesSelector ? [] : [required('spec.selector')]),
        ...labelsFaults(selector, fields(template)),
        ...lastingTemplateFaults(fields(template), 'spec.template'),
        ...(faults?.(spec, before && fields(before.spec)) ?? []),
      ]
    },
  }
}

/** A workload must be able to find the pods it makes. */
function labelsFaults(selector: unknown, template: Fields): FieldFault[] {
  const labels = fields(fields(template.metadata).labels)
  const wanted = Object.entries(fields(fields(selector).matchLabels))
  if (selector && wanted.every(([key, value]) => labels[key] === value)) return []
  const shown = fields(template.metadata).labels ?? null
  return [wrong('spec.template.metadata.labels', shown, '`selector` does not match template `labels`')]
}

const keepsSelector = ({ selector }: Fields, before: Fields | undefined): FieldFault[] =>
  !before || isDeepStrictEqual(selector, before.selector)
    ? []
    : [wrong('spec.selector', selector, 'field is immutable')]

const isNone = (amount: unknown): boolean => amount === 0 || amount === '0%'

function deploymentFaults(spec: Fields): FieldFault[] {
  const { maxSurge, maxUnavailable } = fields(fields(spec.strategy).rollingUpdate)
  const { minReadySeconds = 0, progressDeadlineSeconds: deadline } = spec as Record<string, number>
  return [
    ...(isNone(maxSurge) && isNone(maxUnavailable)
      ? [wrong('spec.strategy.rollingUpdate.maxUnavailable', maxUnavailable, 'may not be 0 when `maxSurge` is 0')]
      : []),
    ...(deadline !== undefined && deadline <= minReadySeconds
      ? [wrong('spec.progressDeadlineSeconds', deadline, 'must be greater than minReadySeconds')]
      : []),
  ]
}

const TEMPLATE_GENERATION = 'deprecated.daemonset.template.generation'

/** Counts the templates a DaemonSet has had, as the original still does. */
function countTemplates(object: ApiObject, before: ApiObject | undefined): ApiObject {
  const old = Number(before?.metadata.annotations?.[TEMPLATE_GENERATION] ?? 0)
  const same = before && isDeepStrictEqual(fields(before.spec).template, fields(object.spec).template)
  const annotations = { ...object.metadata.annotations, [TEMPLATE_GENERATION]: String(same ? old : old + 1) }
  return { ...object, metadata: { ...object.metadata, annotations } }
}

const OF_STATEFUL_SETS = [
  'replicas',
  'ordinals',
  'template',
  'updateStrategy',
  'revisionHistoryLimit',
  'persistentVolumeClaimRetentionPolicy',
  'minReadySeconds',
]

function statefulSetFaults(spec: Fields, before: Fields | undefined): FieldFault[] {
  const { podManagementPolicy: policy } = spec
  const names = OF_STATEFUL_SETS.map((name) => `'${name}'`)
  const fixed = `updates to statefulset spec for fields other than ${names.slice(0, -1).join(', ')} and ${names.at(-1)} are forbidden`
  return [
    ...(policy === 'OrderedReady' || policy === 'Parallel'
      ? []
      : [wrong('spec.podManagementPolicy', policy, "must be 'OrderedReady' or 'Parallel'")]),
    ...(!before || isDeepStrictEqual(without(spec, OF_STATEFUL_SETS), without(before, OF_STATEFUL_SETS))
      ? []
      : [forbidden('spec', fixed)]),
  ]
}

const CLAIM = { kind: 'PersistentVolumeClaim', apiVersion: 'v1', status: { phase: 'Pending' } }

function prepareStatefulSet(object: ApiObject): ApiObject {
  const spec = fields(object.spec)
  const retention = {
    whenDeleted: 'Retain',
    whenScaled: 'Retain',
    ...fields(spec.persistentVolumeClaimRetentionPolicy),
  }
  const templates = spec.volumeClaimTemplates
  return {
    ...object,
    spec: {
      ...spec,
      persistentVolumeClaimRetentionPolicy: retention,
      ...(Array.isArray(templates)
        ? { volumeClaimTemplates: templates.map((template) => withDefaults(fields(template), CLAIM)) }
        : {}),
    },
  }
}

export const deploymentRule = lasting({
  status: {},
  strategy: ['strategy', { maxUnavailable: '25%', maxSurge: '25%' }],
  faults: (spec, before) => [...keepsSelector(spec, before), ...deploymentFaults(spec)],
})

export const replicaSetRule = lasting({ status: { replicas: 0 }, faults: keepsSelector })

export const daemonSetRule = lasting({
  status: { currentNumberScheduled: 0, numberMisscheduled: 0, desiredNumberScheduled: 0, numberReady: 0 },
  strategy: ['updateStrategy', { maxUnavailable: 1, maxSurge: 0 }],
  namesSelector: false,
  prepare: countTemplates,
  faults: keepsSelector,
})

export const statefulSetRule = lasting({
  status: { replicas: 0, availableReplicas: 0 },
  strategy: ['updateStrategy', { partition: 0 }],
  prepare: prepareStatefulSet,
  faults: statefulSetFaults,
})

const CONTROLLER_UID = 'batch.kubernetes.io/controller-uid'
const JOB_NAME = 'batch.kubernetes.io/job-name'
const JOB_COUNTS = ['parallelism', 'completions', 'activeDeadlineSeconds', 'backoffLimit', 'ttlSecondsAfterFinished']

/** A Job finds its pods by labels no other gives. */
const jobLabels = ({ uid = '', name }: ApiObject['metadata']): Readonly<Record<string, string>> => ({
  [CONTROLLER_UID]: uid,
  [JOB_NAME]: name,
  'controller-uid': uid,
  'job-name': name,
})

function withSelector({ metadata }: ApiObject, spec: Fields): Fields {
  if (spec.manualSelector === true) return spec
  const selector = fields(spec.selector)
  const template = fields(spec.template)
  const own = fields(template.metadata)
  return {
    ...spec,
    manualSelector: false,
    selector: { ...selector, matchLabels: { [CONTROLLER_UID]: metadata.uid, ...fields(selector.matchLabels) } },
    template: { ...template, metadata: { ...own, labels: { ...jobLabels(metadata), ...fields(own.labels) } } },
  }
}

function selectorFaults({ metadata }: ApiObject, spec: Fields): FieldFault[] {
  if (spec.manualSelector === true) return []
  const { labels } = fields(fields(spec.template).metadata)
  const own = { matchLabels: { [CONTROLLER_UID]: metadata.uid } }
  return [
    ...Object.entries(jobLabels(metadata))
      .filter(([name, value]) => fields(labels)[name] !== value)
      .map(([name, value]) => wrong(`spec.template.metadata.labels[${name}]`, labels, `must be '${value}'`)),
    ...(isDeepStrictEqual(spec.selector, own)
      ? []
      : [wrong('spec.selector', spec.selector, '`selector` not auto-generated')]),
  ]
}

function jobSpecFaults(spec: Fields, path: string): FieldFault[] {
  return [...negative(spec, path, JOB_COUNTS), ...endingTemplateFaults(fields(spec.template), `${path}.template`)]
}

/** Fields a suspended Job's pods may be given before they start. */
const PLACEMENT = ['affinity', 'nodeSelector', 'schedulingGates', 'tolerations']

function fixedTemplate(job: Fields, suspended: boolean): unknown {
  const { template } = fields(job.spec)
  if (!suspended) return template
  return { ...fields(template), metadata: undefined, spec: without(fields(fields(template).spec), PLACEMENT) }
}

function jobChangeFaults(object: ApiObject, before: ApiObject): FieldFault[] {
  const [spec, old] = [fields(object.spec), fields(before.spec)]
  const elastic = spec.completionMode === 'Indexed' && spec.completions === spec.parallelism
  const suspended = old.suspend === true && fields(before.status).startTime === undefined
  const names = ['selector', 'completionMode', ...(elastic ? [] : ['completions'])]
  return [
    ...names
      .filter((name) => !isDeepStrictEqual(spec[name], old[name]))
      .map((name) => wrong(`spec.${name}`, spec[name], 'field is immutable')),
    ...(isDeepStrictEqual(fixedTemplate(object, suspended), fixedTemplate(before, suspended))
      ? []
      : [wrong('spec.template', spec.template, 'field is immutable')]),
  ]
}

export const jobRule: KindRule = {
  required: ['spec.template'],
  prepare: (object, before) => {
    const { backoffLimitPerIndex, podFailurePolicy, parallelism, completions, ...rest } = fields(object.spec)
    const given = { ...rest, backoffLimitPerIndex, podFailurePolicy, parallelism, completions }
    const spec = withDefaults(prepareTemplate(given), {
      parallelism: 1,
      ...(parallelism === undefined ? { completions: 1 } : {}),
      backoffLimit: backoffLimitPerIndex === undefined ? 6 : 2 ** 31 - 1,
      completionMode: 'NonIndexed',
      suspend: false,
      podReplacementPolicy: podFailurePolicy === undefined ? 'TerminatingOrFailed' : 'Failed',
    })
    const clean = Object.fromEntries(Object.entries(spec).filter(([, value]) => value !== undefined))
    return withDefaults({ ...object, spec: before ? clean : withSelector(object, clean) }, { status: {} })
  },
  faults: (object, before) => {
    const spec = fields(object.spec)
    return [
      ...jobSpecFaults(spec, 'spec'),
      ...selectorFaults(object, spec),
      ...(spec.completionMode === 'Indexed' && spec.completions === undefined
        ? [required('spec.completions', 'when completion mode is Indexed')]
        : []),
      ...(before ? jobChangeFaults(object, before) : []),
    ]
  },
}

/** The names of its Jobs are eleven characters longer. */
const LONGEST_CRON_NAME = 52

export const cronJobRule: KindRule = {
  required: ['spec.schedule', 'spec.jobTemplate', 'spec.jobTemplate.spec.template'],
  prepare: (object) => {
    const spec = fields(object.spec)
    const template = fields(spec.jobTemplate)
    const jobTemplate = { metadata: {}, ...template, spec: prepareTemplate(fields(template.spec)) }
    return withDefaults({ ...object, spec: { ...spec, jobTemplate } }, { status: {} })
  },
  faults: ({ metadata: { name }, spec: given }) => {
    const spec = fields(given)
    const job = fields(fields(spec.jobTemplate).spec)
    return [
      ...(name.length > LONGEST_CRON_NAME
        ? [wrong('metadata.name', name, `must be no more than ${LONGEST_CRON_NAME} characters`)]
        : []),
      ...scheduleFault(spec.schedule, 'spec.schedule'),
      ...timeZoneFault(spec.timeZone, 'spec.timeZone'),
      ...negative(spec, 'spec', ['startingDeadlineSeconds', 'successfulJobsHistoryLimit', 'failedJobsHistoryLimit']),
      ...(job.selector === undefined
        ? []
        : [wrong('spec.jobTemplate.spec.selector', job.selector, '`selector` will be auto-generated')]),
      ...jobSpecFaults(job, 'spec.jobTemplate.spec'),
    ]
  },
}
