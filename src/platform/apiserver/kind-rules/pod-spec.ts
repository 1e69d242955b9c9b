import type { FieldFault } from '../types.ts'
import { type Fields, fields, items, required, unsupported, withDefaults, wrong } from './rule.ts'

const LISTS = ['initContainers', 'containers'] as const

/** A moving tag is pulled anew each time, a version once. */
function pullPolicyOf(image: unknown): string {
  const [name = '', digest] = String(image ?? '').split('@')
  const tag = /:([^/:]+)$/.exec(name)?.[1] ?? 'latest'
  return tag === 'latest' && digest === undefined ? 'Always' : 'IfNotPresent'
}

/** Fills in the pull policies of containers; shares what is complete. */
export function preparePodSpec(spec: Fields): Fields {
  let prepared = spec
  for (const name of LISTS) {
    const containers = items(spec[name])
    if (containers.every((container) => fields(container).imagePullPolicy !== undefined)) continue
    const filled = containers.map((container) =>
      withDefaults(fields(container), { imagePullPolicy: pullPolicyOf(fields(container).image) }),
    )
    prepared = { ...prepared, [name]: filled }
  }
  return prepared
}

export function prepareTemplate<T extends Fields>(holder: T): T {
  const template = fields(holder.template)
  const spec = fields(template.spec)
  const prepared = preparePodSpec(spec)
  return prepared === spec ? holder : { ...holder, template: { ...template, spec: prepared } }
}

/** A pod needs containers, and they need images. */
export function podSpecFaults(spec: unknown, path: string): FieldFault[] {
  const containers = items(fields(spec).containers)
  if (containers.length === 0) return [required(`${path}.containers`)]
  return containers.flatMap((container, index) =>
    fields(container).image ? [] : [required(`${path}.containers[${index}].image`)],
  )
}

/** Pods of a workload that keeps them running start again whenever they end. */
export function lastingTemplateFaults(template: Fields, path: string): FieldFault[] {
  const { restartPolicy = 'Always' } = fields(template.spec)
  const at = `${path}.spec`
  return [
    ...podSpecFaults(template.spec, at),
    ...(restartPolicy === 'Always' ? [] : [unsupported(`${at}.restartPolicy`, restartPolicy, ['Always'])]),
  ]
}

const ENDING = ['OnFailure', 'Never']

/** Pods of a Job may end. */
export function endingTemplateFaults(template: Fields, path: string): FieldFault[] {
  const { restartPolicy = 'Always' } = fields(template.spec)
  const at = `${path}.spec.restartPolicy`
  const faults = podSpecFaults(template.spec, `${path}.spec`)
  if (restartPolicy === 'Always') faults.push(required(at, 'valid values: "OnFailure", "Never"'))
  else if (!ENDING.includes(String(restartPolicy))) faults.push(unsupported(at, restartPolicy, ENDING))
  return faults
}

const AWAY = ['not-ready', 'unreachable'].map((key) => ({
  key: `node.kubernetes.io/${key}`,
  operator: 'Exists',
  effect: 'NoExecute',
  tolerationSeconds: 300,
}))

/** A pod stays for five minutes on a node that is away, unless it says otherwise. */
function tolerationsOf(spec: Fields): readonly unknown[] {
  const own = items(spec.tolerations)
  const missing = AWAY.filter(
    ({ key }) =>
      !own.map(fields).some((each) => (!each.key || each.key === key) && (!each.effect || each.effect === 'NoExecute')),
  )
  return missing.length === 0 ? own : [...own, ...missing]
}

/** What is limited is requested. */
function requestsOf(container: Fields): Fields {
  const resources = fields(container.resources)
  const limits = fields(resources.limits)
  const requests = withDefaults(fields(resources.requests), limits)
  if (requests === resources.requests || Object.keys(limits).length === 0) return container
  return { ...container, resources: { ...resources, requests } }
}

/** What the API server fills in when a pod, not a template of one, is made; shares what is complete. */
export function prepareNewPodSpec(spec: Fields): Fields {
  const tolerations = tolerationsOf(spec)
  const filled = withDefaults(preparePodSpec(spec), {
    enableServiceLinks: true,
    priority: 0,
    preemptionPolicy: 'PreemptLowerPriority',
  })
  const containers = items(filled.containers)
  const requested = containers.map((container) => requestsOf(fields(container)))
  const same = tolerations === spec.tolerations && requested.every((container, at) => container === containers[at])
  return same ? filled : { ...filled, containers: requested, tolerations }
}

const COUNTED = ['cpu', 'memory']

/** Guaranteed: every container gets exactly what it asks for. BestEffort: none asks for anything. */
export function qosClassOf(spec: Fields): string {
  const all = LISTS.flatMap((name) => items(spec[name])).map((container) => fields(fields(container).resources))
  const amounts = all.flatMap(({ requests, limits }) =>
    [requests, limits].flatMap((each) => COUNTED.map((name) => fields(each)[name])),
  )
  if (amounts.every((amount) => amount === undefined)) return 'BestEffort'
  const exact = all.every(({ requests, limits }) =>
    COUNTED.every((name) => {
      const limit = fields(limits)[name]
      return limit !== undefined && (fields(requests)[name] ?? limit) === limit
    }),
  )
  return exact ? 'Guaranteed' : 'Burstable'
}

export const portFault = (path: string, value: unknown): FieldFault[] =>
  typeof value === 'number' && (value < 1 || value > 65535)
    ? [wrong(path, value, 'must be between 1 and 65535, inclusive')]
    : []
