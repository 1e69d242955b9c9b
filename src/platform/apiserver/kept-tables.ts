import {
  age,
  containerColumns,
  type Declared,
  type Fields,
  fields,
  items,
  labelsText,
  name,
  selectorText,
  shape,
  sizeOf,
  spec,
  status,
  type TableShape,
  text,
  whole,
  wide,
} from './table-shape.ts'
import type { ApiObject } from './types.ts'

const SHOWN = 3

/** A few of many, as kubectl shows them. */
const some = (values: readonly string[], none: string): string => {
  if (values.length === 0) return none
  const more = values.length > SHOWN ? ` + ${values.length - SHOWN} more...` : ''
  return values.slice(0, SHOWN).join(',') + more
}

const at = (object: Fields, ...path: readonly string[]): unknown =>
  path.reduce<unknown>((value, part) => fields(value)[part], object)

const created: Declared = ['Created At', ({ metadata }) => text(metadata.creationTimestamp), { type: 'date' }]
const counted = (heading: string, list: (object: ApiObject) => unknown): Declared => [
  heading,
  (object) => items(list(object)).length,
  whole,
]

function ingressAddress(object: ApiObject): string {
  const given = items(fields(status(object).loadBalancer).ingress).map(({ ip, hostname }) => text(ip, text(hostname)))
  return given.filter(Boolean).join(',')
}

function ingressHosts(object: ApiObject): string {
  return some(
    items(spec(object).rules)
      .map(({ host }) => text(host))
      .filter(Boolean),
    '*',
  )
}

const endpointPorts = (slice: ApiObject): string =>
  some(
    items(slice.ports).map(({ port }) => text(port, '*')),
    '<unset>',
  )
const endpointAddresses = (slice: ApiObject): string =>
  some(
    items(slice.endpoints).flatMap(({ addresses }) => (Array.isArray(addresses) ? addresses.map(String) : [])),
    '<unset>',
  )

/** Endpoints as address:port, of what is ready. */
function endpointsText(object: ApiObject): string {
  const pairs = items(object.subsets).flatMap(({ addresses, ports }) => {
    const open = items(ports)
    const hosts = items(addresses).map(({ ip }) => text(ip))
    return open.length === 0 ? hosts : open.flatMap(({ port }) => hosts.map((host) => `${host}:${text(port)}`))
  })
  return some(pairs, '<none>')
}

/** Of one metric: what is measured, and what is wanted. */
function metricText(metric: Fields, seen: readonly Fields[]): string {
  const type = text(metric.type)
  const of = fields(metric[type.charAt(0).toLowerCase() + type.slice(1)])
  const { averageUtilization, averageValue, value } = fields(of.target)
  const current = fields(
    seen
      .filter((one) => one.type === metric.type)
      .map((one) => fields(one[type.charAt(0).toLowerCase() + type.slice(1)]))
      .find((one) => one.name === of.name && at(one, 'metric', 'name') === at(of, 'metric', 'name'))?.current,
  )
  const label = type === 'Resource' ? `${text(of.name)}: ` : ''
  if (averageUtilization !== undefined && averageUtilization !== null) {
    const now = text(current.averageUtilization)
    return `${label}${now === '' ? '<unknown>' : `${now}%`}/${text(averageUtilization)}%`
  }
  if (averageValue) return `${label}${text(current.averageValue, '<unknown>')}/${text(averageValue)}`
  return `${label}${text(current.value, '<unknown>')}/${text(value, '<auto>')}`
}

function metricsText(autoscaler: ApiObject): string {
  const wanted = items(spec(autoscaler).metrics)
  const seen = items(status(autoscaler).currentMetrics)
  if (wanted.length === 0) return '<none>'
  const shown = wanted.slice(0, 2).map((metric) => metricText(metric, seen))
  return shown.join(', ') + (wanted.length > 2 ? ` + ${wanted.length - 2} more...` : '')
}

const amounts = (quota: ApiObject, isShown: (resource: string) => boolean): string =>
  Object.entries(fields(status(quota).hard))
    .filter(([resource]) => isShown(resource))
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([resource, hard]) => `${resource}: ${text(fields(status(quota).used)[resource], '0')}/${text(hard)}`)
    .join(', ')

const referenceOf = (parameters: unknown): string => {
  const { apiGroup, kind, name: called } = fields(parameters)
  return called ? `${text(kind)}${apiGroup ? `.${text(apiGroup)}` : ''}/${text(called)}` : '<none>'
}

const controllerOf = ({ metadata }: ApiObject): string => {
  const owner = items(metadata.ownerReferences).find(({ controller }) => controller === true)
  if (!owner) return '<none>'
  const group = text(owner.apiVersion).includes('/') ? `.${text(owner.apiVersion).split('/')[0]}` : ''
  return `${text(owner.kind).toLowerCase()}${group}/${text(owner.name)}`
}

const availability = (service: ApiObject): string => {
  const known = items(status(service).conditions).find(({ type }) => type === 'Available')
  if (!known) return 'Unknown'
  return known.status === 'True' ? 'True' : `${text(known.status)} (${text(known.reason)})`
}

/** How kubectl shows kinds that are only kept here, by collection. */
export const keptTables: Readonly<Record<string, TableShape>> = {
  '/endpoints': shape(name, ['Endpoints', endpointsText], age),
  '/replicationcontrollers': shape(
    name,
    ['Desired', (object) => Number(spec(object).replicas ?? 1), whole],
    ['Current', (object) => Number(status(object).replicas ?? 0), whole],
    ['Ready', (object) => Number(status(object).readyReplicas ?? 0), whole],
    age,
    ...containerColumns,
    ['Selector', (object) => labelsText(spec(object).selector), wide],
  ),
  '/resourcequotas': shape(
    name,
    ['Request', (quota) => amounts(quota, (resource) => !resource.startsWith('limits.'))],
    ['Limit', (quota) => amounts(quota, (resource) => resource.startsWith('limits.'))],
    age,
  ),
  '/limitranges': shape(name, created),
  'apps/controllerrevisions': shape(
    name,
    ['Controller', controllerOf],
    ['Revision', (object) => Number(object.revision ?? 0)],
    age,
  ),
  'autoscaling/horizontalpodautoscalers': shape(
    name,
    [
      'Reference',
      (object) =>
        `${text(at(spec(object), 'scaleTargetRef', 'kind'))}/${text(at(spec(object), 'scaleTargetRef', 'name'))}`,
    ],
    ['Targets', metricsText],
    ['MinPods', (object) => text(spec(object).minReplicas, '<unset>')],
    ['MaxPods', (object) => Number(spec(object).maxReplicas ?? 0)],
    ['Replicas', (object) => Number(status(object).currentReplicas ?? 0)],
    age,
  ),
  'policy/poddisruptionbudgets': shape(
    name,
    ['Min Available', (object) => text(spec(object).minAvailable, 'N/A')],
    ['Max Unavailable', (object) => text(spec(object).maxUnavailable, 'N/A')],
    ['Allowed Disruptions', (object) => Number(status(object).disruptionsAllowed ?? 0), whole],
    age,
  ),
  'networking.k8s.io/ingresses': shape(
    name,
    ['Class', (object) => text(spec(object).ingressClassName, '<none>')],
    ['Hosts', ingressHosts],
    ['Address', ingressAddress],
    ['Ports', (object) => (items(spec(object).tls).length > 0 ? '80, 443' : '80')],
    age,
  ),
  'networking.k8s.io/ingressclasses': shape(
    name,
    ['Controller', (object) => text(spec(object).controller)],
    ['Parameters', (object) => referenceOf(spec(object).parameters)],
    age,
  ),
  'networking.k8s.io/networkpolicies': shape(
    name,
    ['Pod-Selector', (object) => selectorText(spec(object).podSelector)],
    age,
  ),
  'discovery.k8s.io/endpointslices': shape(
    name,
    ['AddressType', (object) => text(object.addressType)],
    ['Ports', endpointPorts],
    ['Endpoints', endpointAddresses],
    age,
  ),
  'scheduling.k8s.io/priorityclasses': shape(
    name,
    ['Value', (object) => Number(object.value ?? 0), whole],
    ['Global-Default', (object) => object.globalDefault === true, { type: 'boolean' }],
    age,
    ['PreemptionPolicy', (object) => text(object.preemptionPolicy)],
  ),
  'node.k8s.io/runtimeclasses': shape(name, ['Handler', (object) => text(object.handler)], age),
  'storage.k8s.io/csinodes': shape(
    name,
    counted('Drivers', (object) => spec(object).drivers),
    age,
  ),
  'admissionregistration.k8s.io/mutatingwebhookconfigurations': shape(
    name,
    counted('Webhooks', (object) => object.webhooks),
    age,
  ),
  'admissionregistration.k8s.io/validatingwebhookconfigurations': shape(
    name,
    counted('Webhooks', (object) => object.webhooks),
    age,
  ),
  'admissionregistration.k8s.io/validatingadmissionpolicies': shape(
    name,
    counted('Validations', (object) => spec(object).validations),
    [
      'ParamKind',
      (object) => {
        const { apiVersion, kind } = fields(spec(object).paramKind)
        return sizeOf(spec(object).paramKind) > 0 ? `${text(apiVersion)}/${text(kind)}` : '<unset>'
      },
    ],
    age,
  ),
  'admissionregistration.k8s.io/validatingadmissionpolicybindings': shape(
    name,
    ['PolicyName', (object) => text(spec(object).policyName)],
    [
      'ParamRef',
      (object) => {
        const { namespace, name: called } = fields(spec(object).paramRef)
        if (sizeOf(spec(object).paramRef) === 0) return '<unset>'
        return namespace ? `${text(namespace)}/${text(called)}` : `*/${text(called)}`
      },
    ],
    age,
  ),
  'apiregistration.k8s.io/apiservices': shape(
    name,
    [
      'Service',
      (object) => {
        const { namespace, name: called } = fields(spec(object).service)
        return called ? `${text(namespace)}/${text(called)}` : 'Local'
      },
    ],
    ['Available', availability],
    age,
  ),
}
