import { ageSince, humanDuration } from './age.ts'
import { keptTables } from './kept-tables.ts'
import {
  age,
  type Cell,
  containerColumns,
  count,
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

const selectorColumn: Declared = ['Selector', (object) => selectorText(spec(object).selector), wide]

function nodeStatus(node: ApiObject): string {
  const ready = items(status(node).conditions).find((condition) => condition.type === 'Ready')
  const word = ready ? (ready.status === 'True' ? 'Ready' : 'NotReady') : 'Unknown'
  return spec(node).unschedulable ? `${word},SchedulingDisabled` : word
}

const ROLE = 'node-role.kubernetes.io/'

function nodeRoles({ metadata }: ApiObject): string {
  const roles = Object.entries(metadata.labels ?? {}).flatMap(([key, value]) => {
    if (key.startsWith(ROLE)) return [key.slice(ROLE.length)]
    return key === 'kubernetes.io/role' && value ? [value] : []
  })
  return [...new Set(roles)].filter(Boolean).sort().join(',') || '<none>'
}

const address =
  (type: string): Cell =>
  (node) =>
    text(items(status(node).addresses).find((each) => each.type === type)?.address, '<none>')
const nodeInfo =
  (field: string): Cell =>
  (node) =>
    text(fields(status(node).nodeInfo)[field], '<unknown>')

/** Why a pod is where it is, in the one word kubectl shows. */
function podStatus(pod: ApiObject): string {
  const { phase, reason } = status(pod)
  let word = text(reason, text(phase, 'Unknown'))
  const initialising = items(status(pod).initContainerStatuses).findIndex(
    (each) => count(fields(fields(each.state).terminated).exitCode) !== 0 || !fields(each.state).terminated,
  )
  const total = items(spec(pod).initContainers).length
  if (initialising >= 0 && total > 0) {
    const waiting = text(fields(fields(items(status(pod).initContainerStatuses)[initialising]?.state).waiting).reason)
    word = waiting && waiting !== 'PodInitializing' ? `Init:${waiting}` : `Init:${initialising}/${total}`
  } else
    for (const each of items(status(pod).containerStatuses).reverse()) {
      const { waiting, terminated } = fields(each.state)
      if (fields(waiting).reason) word = text(fields(waiting).reason)
      else if (terminated)
        word = text(
          fields(terminated).reason,
          fields(terminated).signal
            ? `Signal:${fields(terminated).signal}`
            : `ExitCode:${count(fields(terminated).exitCode)}`,
        )
    }
  if (pod.metadata.deletionTimestamp) return reason === 'NodeLost' ? 'Unknown' : 'Terminating'
  return word
}

function podRestarts(pod: ApiObject, nowMs: number): string {
  const statuses = items(status(pod).containerStatuses)
  const restarts = statuses.reduce((sum, each) => sum + count(each.restartCount), 0)
  const last = statuses
    .map((each) => text(fields(fields(each.lastState).terminated).finishedAt))
    .sort()
    .at(-1)
  return restarts > 0 && last ? `${restarts} (${ageSince(last, nowMs)} ago)` : String(restarts)
}

const podReady = (pod: ApiObject): string => {
  const ready = items(status(pod).containerStatuses).filter((each) => each.ready === true).length
  return `${ready}/${items(spec(pod).containers).length}`
}

const servicePorts = (service: ApiObject): string =>
  items(spec(service).ports)
    .map(({ port, nodePort, protocol = 'TCP' }) => `${port}${nodePort ? `:${nodePort}` : ''}/${protocol}`)
    .join(',') || '<none>'

const externalIps = (service: ApiObject): string => {
  const { type, externalName, externalIPs } = spec(service)
  if (type === 'ExternalName') return text(externalName)
  const ingress = items(fields(status(service).loadBalancer).ingress).map((each) => text(each.ip, text(each.hostname)))
  const ips = [...ingress, ...(Array.isArray(externalIPs) ? externalIPs.map(String) : [])]
  return ips.join(',') || (type === 'LoadBalancer' ? '<pending>' : '<none>')
}

const eventTime = (event: ApiObject, ...names: readonly string[]): unknown => {
  for (const each of names) {
    const value = each === 'series' ? fields(event.series).lastObservedTime : event[each]
    if (value) return value
  }
  return undefined
}

const involved = (event: ApiObject): Fields => fields(event.involvedObject ?? event.regarding)

const subjects = (binding: ApiObject, kind: string): string =>
  items(binding.subjects)
    .filter((subject) => subject.kind === kind)
    .map((subject) => (kind === 'ServiceAccount' ? `${subject.namespace}/${subject.name}` : text(subject.name)))
    .join(', ')
const createdAt: Declared = ['Created At', ({ metadata }) => text(metadata.creationTimestamp), { type: 'date' }]
const roleRef: Declared = [
  'Role',
  (binding) => `${text(fields(binding.roleRef).kind)}/${text(fields(binding.roleRef).name)}`,
]
const bindingTable = shape(
  name,
  roleRef,
  age,
  ['Users', (binding) => subjects(binding, 'User'), wide],
  ['Groups', (binding) => subjects(binding, 'Group'), wide],
  ['ServiceAccounts', (binding) => subjects(binding, 'ServiceAccount'), wide],
)

const isTrue = (object: ApiObject, type: string): boolean =>
  items(status(object).conditions).some((condition) => condition.type === type && condition.status === 'True')

/** What a Job came to, in the order in which the words win. */
function jobStatus(job: ApiObject): string {
  const ended = ['Complete', 'Failed'].find((type) => isTrue(job, type))
  if (ended ?? job.metadata.deletionTimestamp) return ended ?? 'Terminating'
  return ['Suspended', 'FailureTarget', 'SuccessCriteriaMet'].find((type) => isTrue(job, type)) ?? 'Running'
}

function jobCompletions(job: ApiObject): string {
  const { completions, parallelism } = spec(job)
  const of = completions === undefined && count(parallelism) > 1 ? ` of ${parallelism}` : ''
  return `${count(status(job).succeeded)}/${completions ?? 1}${of}`
}

function jobDuration(job: ApiObject, nowMs: number): string {
  const { startTime, completionTime } = status(job)
  return startTime ? ageSince(startTime, completionTime ? Date.parse(String(completionTime)) : nowMs) : ''
}

const MODES: Readonly<Record<string, string>> = {
  ReadWriteOnce: 'RWO',
  ReadOnlyMany: 'ROX',
  ReadWriteMany: 'RWX',
  ReadWriteOncePod: 'RWOP',
}
const accessModes = (modes: unknown): string =>
  Object.keys(MODES)
    .filter((mode) => Array.isArray(modes) && modes.includes(mode))
    .map((mode) => MODES[mode])
    .join(',')

const storagePhase: Declared = [
  'Status',
  (object) => (object.metadata.deletionTimestamp ? 'Terminating' : text(status(object).phase)),
]
const storageClassOf: Declared = [
  'StorageClass',
  (object) =>
    text(object.metadata.annotations?.['volume.beta.kubernetes.io/storage-class'], text(spec(object).storageClassName)),
]
const volumeAttributes: Declared = [
  'VolumeAttributesClass',
  (object) => text(spec(object).volumeAttributesClassName, '<unset>'),
]
const volumeMode: Declared = ['VolumeMode', (object) => text(spec(object).volumeMode, '<unset>'), wide]

/** A claim shows what it has only when a volume is named. */
const ofVolume =
  (cell: (claim: Fields) => string): Cell =>
  (claim) =>
    spec(claim).volumeName ? cell(status(claim)) : ''

const DEFAULT_CLASS = 'storageclass.kubernetes.io/is-default-class'

/** The part of a CronJob that workloads have at their top. */
const jobTemplateOf = (cronJob: ApiObject): ApiObject => ({ ...cronJob, spec: fields(spec(cronJob).jobTemplate).spec })
const wideOfJobTemplate = (columns: readonly Declared[]): Declared[] =>
  columns.map(([heading, cell]) => [heading, (object, nowMs) => cell(jobTemplateOf(object), nowMs), wide])

/** How kubectl shows built-in kinds, by collection. */
function requestedDuration(request: ApiObject): string {
  const { expirationSeconds } = spec(request)
  return typeof expirationSeconds === 'number' ? humanDuration(expirationSeconds * 1000) : '<none>'
}

function requestCondition(request: ApiObject): string {
  const types = items(status(request).conditions).map(({ type }) => type)
  return [
    types.includes('Denied') ? 'Denied' : types.includes('Approved') ? 'Approved' : 'Pending',
    ...(types.includes('Failed') ? ['Failed'] : []),
    ...(status(request).certificate ? ['Issued'] : []),
  ].join(',')
}

export const builtInTables: Readonly<Record<string, TableShape>> = {
  '/namespaces': shape(name, ['Status', (namespace) => text(status(namespace).phase)], age),
  '/nodes': shape(
    name,
    ['Status', nodeStatus],
    ['Roles', nodeRoles],
    age,
    ['Version', (node) => text(fields(status(node).nodeInfo).kubeletVersion)],
    ['Internal-IP', address('InternalIP'), wide],
    ['External-IP', address('ExternalIP'), wide],
    ['OS-Image', nodeInfo('osImage'), wide],
    ['Kernel-Version', nodeInfo('kernelVersion'), wide],
    ['Container-Runtime', nodeInfo('containerRuntimeVersion'), wide],
  ),
  '/pods': shape(
    name,
    ['Ready', podReady],
    ['Status', podStatus],
    ['Restarts', podRestarts],
    age,
    ['IP', (pod) => text(status(pod).podIP, '<none>'), wide],
    ['Node', (pod) => text(spec(pod).nodeName, '<none>'), wide],
    ['Nominated Node', (pod) => text(status(pod).nominatedNodeName, '<none>'), wide],
    [
      'Readiness Gates',
      (pod) => (items(spec(pod).readinessGates).length > 0 ? `0/${items(spec(pod).readinessGates).length}` : '<none>'),
      wide,
    ],
  ),
  '/secrets': shape(
    name,
    ['Type', (secret) => text(secret.type)],
    ['Data', (secret) => sizeOf(secret.data), whole],
    age,
  ),
  '/configmaps': shape(name, ['Data', (map) => sizeOf(map.data) + sizeOf(map.binaryData), whole], age),
  '/serviceaccounts': shape(name, age),
  '/services': shape(
    name,
    ['Type', (service) => text(spec(service).type, 'ClusterIP')],
    ['Cluster-IP', (service) => text(spec(service).clusterIP, '<none>')],
    ['External-IP', externalIps],
    ['Port(s)', servicePorts],
    age,
    ['Selector', (service) => labelsText(spec(service).selector), wide],
  ),
  '/events': shape(
    [
      'Last Seen',
      (event, nowMs) =>
        ageSince(eventTime(event, 'series', 'lastTimestamp', 'deprecatedLastTimestamp', 'eventTime'), nowMs),
    ],
    ['Type', (event) => text(event.type)],
    ['Reason', (event) => text(event.reason)],
    ['Object', (event) => `${text(involved(event).kind).toLowerCase()}/${text(involved(event).name)}`],
    ['Subobject', (event) => text(involved(event).fieldPath), wide],
    [
      'Source',
      (event) =>
        [text(fields(event.source).component, text(event.reportingComponent)), text(fields(event.source).host)]
          .filter(Boolean)
          .join(', '),
      wide,
    ],
    ['Message', (event) => text(event.message ?? event.note).trim()],
    [
      'First Seen',
      (event, nowMs) => ageSince(eventTime(event, 'firstTimestamp', 'deprecatedFirstTimestamp', 'eventTime'), nowMs),
      wide,
    ],
    [
      'Count',
      (event) => count(fields(event.series).count ?? event.count ?? event.deprecatedCount ?? 1),
      { wide: true, type: 'integer' },
    ],
    ['Name', ({ metadata }) => metadata.name, { wide: true, format: 'name' }],
  ),
  ...keptTables,
  'apps/deployments': shape(
    name,
    ['Ready', (object) => `${count(status(object).readyReplicas)}/${count(spec(object).replicas ?? 1)}`],
    ['Up-to-date', (object) => count(status(object).updatedReplicas)],
    ['Available', (object) => count(status(object).availableReplicas)],
    age,
    ...containerColumns,
    selectorColumn,
  ),
  'apps/replicasets': shape(
    name,
    ['Desired', (object) => count(spec(object).replicas ?? 1), whole],
    ['Current', (object) => count(status(object).replicas), whole],
    ['Ready', (object) => count(status(object).readyReplicas), whole],
    age,
    ...containerColumns,
    selectorColumn,
  ),
  'apps/daemonsets': shape(
    name,
    ['Desired', (object) => count(status(object).desiredNumberScheduled), whole],
    ['Current', (object) => count(status(object).currentNumberScheduled), whole],
    ['Ready', (object) => count(status(object).numberReady), whole],
    ['Up-to-date', (object) => count(status(object).updatedNumberScheduled), whole],
    ['Available', (object) => count(status(object).numberAvailable), whole],
    ['Node Selector', (object) => labelsText(fields(fields(spec(object).template).spec).nodeSelector)],
    age,
    ...containerColumns,
    selectorColumn,
  ),
  'apps/statefulsets': shape(
    name,
    ['Ready', (object) => `${count(status(object).readyReplicas)}/${count(spec(object).replicas ?? 1)}`],
    age,
    ...containerColumns,
  ),
  'batch/jobs': shape(
    name,
    ['Status', jobStatus],
    ['Completions', jobCompletions],
    ['Duration', jobDuration],
    age,
    ...containerColumns,
    selectorColumn,
  ),
  'batch/cronjobs': shape(
    name,
    ['Schedule', (object) => text(spec(object).schedule)],
    ['Timezone', (object) => text(spec(object).timeZone, '<none>')],
    ['Suspend', (object) => (spec(object).suspend ? 'True' : 'False'), { type: 'boolean' }],
    ['Active', (object) => items(status(object).active).length, whole],
    [
      'Last Schedule',
      (object, nowMs) => {
        const { lastScheduleTime } = status(object)
        return lastScheduleTime ? ageSince(lastScheduleTime, nowMs) : '<none>'
      },
    ],
    age,
    ...wideOfJobTemplate([...containerColumns, selectorColumn]),
  ),
  '/persistentvolumeclaims': shape(
    name,
    storagePhase,
    ['Volume', (claim) => text(spec(claim).volumeName)],
    ['Capacity', ofVolume(({ capacity }) => text(fields(capacity).storage))],
    ['Access Modes', ofVolume((of) => accessModes(of.accessModes))],
    storageClassOf,
    volumeAttributes,
    age,
    volumeMode,
  ),
  '/persistentvolumes': shape(
    name,
    ['Capacity', (volume) => text(fields(spec(volume).capacity).storage)],
    ['Access Modes', (volume) => accessModes(spec(volume).accessModes)],
    ['Reclaim Policy', (volume) => text(spec(volume).persistentVolumeReclaimPolicy)],
    storagePhase,
    [
      'Claim',
      (volume) => {
        const { namespace, name } = fields(spec(volume).claimRef)
        return name ? `${namespace}/${name}` : ''
      },
    ],
    storageClassOf,
    volumeAttributes,
    ['Reason', (volume) => text(status(volume).reason)],
    age,
    volumeMode,
  ),
  'storage.k8s.io/storageclasses': shape(
    [
      'Name',
      ({ metadata }) => `${metadata.name}${metadata.annotations?.[DEFAULT_CLASS] === 'true' ? ' (default)' : ''}`,
      { format: 'name' },
    ],
    ['Provisioner', (object) => text(object.provisioner)],
    ['ReclaimPolicy', (object) => text(object.reclaimPolicy, 'Delete')],
    ['VolumeBindingMode', (object) => text(object.volumeBindingMode, '<unset>')],
    ['AllowVolumeExpansion', (object) => object.allowVolumeExpansion === true],
    age,
  ),
  'certificates.k8s.io/certificatesigningrequests': shape(
    name,
    age,
    ['SignerName', (request) => text(spec(request).signerName, '<none>')],
    ['Requestor', (request) => text(spec(request).username)],
    ['RequestedDuration', requestedDuration],
    ['Condition', requestCondition],
  ),
  'coordination.k8s.io/leases': shape(name, ['Holder', (lease) => text(spec(lease).holderIdentity)], age),
  'apiextensions.k8s.io/customresourcedefinitions': shape(name, createdAt),
  'rbac.authorization.k8s.io/roles': shape(name, createdAt),
  'rbac.authorization.k8s.io/clusterroles': shape(name, createdAt),
  'rbac.authorization.k8s.io/rolebindings': bindingTable,
  'rbac.authorization.k8s.io/clusterrolebindings': bindingTable,
}

/** For resources without columns of their own. */
export const plainTable: TableShape = shape(name, age)
