import { invariant } from '#model'
import type { NameRule } from './names.ts'
import { builtInSchema } from './schema/index.ts'
import type { FieldReader, FieldReaders } from './selectors.ts'
import type { Resource } from './served.ts'
import type { ApiObject, Schema } from './types.ts'

interface Declared {
  readonly kind: string
  readonly plural?: string
  readonly shortNames?: readonly string[]
  readonly categories?: readonly string[]
  readonly clusterWide?: boolean
  readonly status?: boolean
  readonly approval?: boolean
  readonly generation?: boolean
  readonly nameRule?: NameRule
  readonly versionRequired?: boolean
  readonly createOnUpdate?: boolean
  readonly fields?: FieldReaders
  readonly scale?: Resource['scale']
  readonly inert?: boolean
}

const at = (object: unknown, ...path: readonly string[]): unknown =>
  path.reduce<unknown>((value, field) => (value as Record<string, unknown> | null | undefined)?.[field], object)

const field =
  (...path: readonly string[]): FieldReader =>
  (object) => {
    const value = at(object, ...path)
    return value === undefined || value === null ? '' : String(value)
  }

const readers = (...paths: readonly string[]): FieldReaders =>
  Object.fromEntries(paths.map((path) => [path, field(...path.split('.'))]))

const replicas = {
  specReplicasPath: '.spec.replicas',
  statusReplicasPath: '.status.replicas',
}

const CORE: readonly Declared[] = [
  {
    kind: 'Namespace',
    shortNames: ['ns'],
    clusterWide: true,
    status: true,
    nameRule: 'label',
    fields: readers('status.phase'),
  },
  {
    kind: 'Node',
    shortNames: ['no'],
    clusterWide: true,
    status: true,
    fields: { 'spec.unschedulable': (node) => String(at(node, 'spec', 'unschedulable') ?? false) },
  },
  {
    kind: 'Pod',
    shortNames: ['po'],
    categories: ['all'],
    status: true,
    generation: true,
    fields: {
      ...readers(
        'spec.nodeName',
        'spec.restartPolicy',
        'spec.schedulerName',
        'spec.serviceAccountName',
        'status.phase',
        'status.podIP',
        'status.nominatedNodeName',
      ),
      'spec.hostNetwork': (pod) => String(at(pod, 'spec', 'hostNetwork') ?? false),
    },
  },
  { kind: 'Secret', fields: readers('type') },
  { kind: 'ConfigMap', shortNames: ['cm'] },
  {
    kind: 'Event',
    createOnUpdate: true,
    shortNames: ['ev'],
    fields: {
      ...readers(
        'involvedObject.kind',
        'involvedObject.namespace',
        'involvedObject.name',
        'involvedObject.uid',
        'involvedObject.apiVersion',
        'involvedObject.resourceVersion',
        'involvedObject.fieldPath',
        'reason',
        'reportingComponent',
        'type',
      ),
      source: (event) => String(at(event, 'source', 'component') ?? at(event, 'reportingComponent') ?? ''),
    },
  },
  { kind: 'ServiceAccount', shortNames: ['sa'] },
  {
    kind: 'Service',
    createOnUpdate: true,
    shortNames: ['svc'],
    categories: ['all'],
    status: true,
    nameRule: 'label',
    fields: readers('spec.clusterIP', 'spec.type'),
  },
  { kind: 'Endpoints', plural: 'endpoints', shortNames: ['ep'] },
  { kind: 'PersistentVolume', shortNames: ['pv'], clusterWide: true, status: true },
  { kind: 'PersistentVolumeClaim', shortNames: ['pvc'], status: true },
  { kind: 'ReplicationController', shortNames: ['rc'], categories: ['all'], status: true, generation: true },
  { kind: 'PodTemplate', generation: true },
  { kind: 'ResourceQuota', shortNames: ['quota'], status: true, inert: true },
  { kind: 'LimitRange', shortNames: ['limits'], createOnUpdate: true, inert: true },
]

const APPS: readonly Declared[] = [
  { kind: 'Deployment', shortNames: ['deploy'], categories: ['all'], status: true, generation: true, scale: replicas },
  {
    kind: 'ReplicaSet',
    shortNames: ['rs'],
    categories: ['all'],
    status: true,
    generation: true,
    scale: replicas,
    fields: readers('status.replicas'),
  },
  { kind: 'DaemonSet', shortNames: ['ds'], categories: ['all'], status: true, generation: true },
  { kind: 'StatefulSet', shortNames: ['sts'], categories: ['all'], status: true, generation: true, scale: replicas },
  { kind: 'ControllerRevision' },
]

const admission = { categories: ['api-extensions'], clusterWide: true, generation: true, inert: true }
const flow = { clusterWide: true, status: true, generation: true, inert: true }

const GROUPS: readonly (readonly [group: string, version: string, resources: readonly Declared[]])[] = [
  ['', 'v1', CORE],
  ['apps', 'v1', APPS],
  [
    'batch',
    'v1',
    [
      {
        kind: 'Job',
        categories: ['all'],
        status: true,
        generation: true,
        fields: { 'status.successful': (job) => String(at(job, 'status', 'succeeded') ?? 0) },
      },
      { kind: 'CronJob', shortNames: ['cj'], categories: ['all'], status: true, generation: true },
    ],
  ],
  [
    'networking.k8s.io',
    'v1',
    [
      { kind: 'Ingress', plural: 'ingresses', shortNames: ['ing'], status: true, generation: true },
      { kind: 'IngressClass', plural: 'ingressclasses', clusterWide: true, generation: true },
      { kind: 'NetworkPolicy', plural: 'networkpolicies', shortNames: ['netpol'], generation: true, inert: true },
    ],
  ],
  ['discovery.k8s.io', 'v1', [{ kind: 'EndpointSlice', generation: true }]],
  [
    'autoscaling',
    'v2',
    [{ kind: 'HorizontalPodAutoscaler', shortNames: ['hpa'], categories: ['all'], status: true, inert: true }],
  ],
  ['policy', 'v1', [{ kind: 'PodDisruptionBudget', shortNames: ['pdb'], status: true, generation: true, inert: true }]],
  [
    'scheduling.k8s.io',
    'v1',
    [{ kind: 'PriorityClass', plural: 'priorityclasses', shortNames: ['pc'], clusterWide: true }],
  ],
  ['node.k8s.io', 'v1', [{ kind: 'RuntimeClass', plural: 'runtimeclasses', clusterWide: true }]],
  [
    'storage.k8s.io',
    'v1',
    [
      { kind: 'StorageClass', plural: 'storageclasses', shortNames: ['sc'], clusterWide: true },
      { kind: 'CSIDriver', clusterWide: true },
      { kind: 'CSINode', clusterWide: true },
      { kind: 'CSIStorageCapacity', plural: 'csistoragecapacities' },
      { kind: 'VolumeAttachment', clusterWide: true, status: true },
    ],
  ],
  [
    'admissionregistration.k8s.io',
    'v1',
    [
      { kind: 'MutatingWebhookConfiguration', ...admission },
      { kind: 'ValidatingWebhookConfiguration', ...admission },
      { kind: 'ValidatingAdmissionPolicy', plural: 'validatingadmissionpolicies', status: true, ...admission },
      { kind: 'ValidatingAdmissionPolicyBinding', ...admission },
    ],
  ],
  [
    'flowcontrol.apiserver.k8s.io',
    'v1',
    [
      { kind: 'FlowSchema', ...flow },
      { kind: 'PriorityLevelConfiguration', ...flow },
    ],
  ],
  [
    'apiregistration.k8s.io',
    'v1',
    [{ kind: 'APIService', categories: ['api-extensions'], clusterWide: true, status: true, inert: true }],
  ],
  [
    'certificates.k8s.io',
    'v1',
    [
      {
        kind: 'CertificateSigningRequest',
        shortNames: ['csr'],
        clusterWide: true,
        status: true,
        approval: true,
        nameRule: 'path',
        fields: readers('spec.signerName'),
      },
    ],
  ],
  ['coordination.k8s.io', 'v1', [{ kind: 'Lease', versionRequired: true, createOnUpdate: true }]],
  [
    'apiextensions.k8s.io',
    'v1',
    [
      {
        kind: 'CustomResourceDefinition',
        shortNames: ['crd', 'crds'],
        categories: ['api-extensions'],
        clusterWide: true,
        status: true,
        generation: true,
      },
    ],
  ],
  [
    'rbac.authorization.k8s.io',
    'v1',
    [
      { kind: 'Role', createOnUpdate: true, nameRule: 'path' },
      { kind: 'RoleBinding', createOnUpdate: true, nameRule: 'path' },
      { kind: 'ClusterRole', createOnUpdate: true, clusterWide: true, nameRule: 'path' },
      { kind: 'ClusterRoleBinding', createOnUpdate: true, clusterWide: true, nameRule: 'path' },
    ],
  ],
]

function schemaOf(group: string, version: string, kind: string): Schema {
  const schema = builtInSchema(group, version, kind)
  invariant(schema, `every built-in kind has a schema, ${kind} too`)
  return schema
}

function builtIn(group: string, version: string, declared: Declared): Resource {
  const singular = declared.kind.toLowerCase()
  const plural = declared.plural ?? `${singular}s`
  return {
    group,
    version,
    plural,
    singular,
    kind: declared.kind,
    shortNames: declared.shortNames ?? [],
    categories: declared.categories ?? [],
    namespaced: !declared.clusterWide,
    status: declared.status ?? false,
    ...(declared.approval ? { approval: true } : {}),
    builtIn: true,
    schema: schemaOf(group, version, declared.kind),
    columns: [],
    collection: `${group}/${plural}`,
    storageVersion: version,
    nameRule: declared.nameRule ?? 'subdomain',
    generation: declared.generation ?? false,
    versionRequired: declared.versionRequired ?? false,
    fields: declared.fields ?? {},
    createOnUpdate: declared.createOnUpdate ?? false,
    inert: declared.inert ?? false,
    ...(declared.scale ? { scale: declared.scale } : {}),
  }
}

const renamed = (
  object: Record<string, unknown>,
  names: readonly (readonly [from: string, to: string])[],
): ApiObject => {
  const copy: Record<string, unknown> = { ...object }
  for (const [from, to] of names) {
    if (!(from in copy)) continue
    copy[to] = copy[from]
    delete copy[from]
  }
  return copy as ApiObject
}

/** The names of the same facts in events.k8s.io/v1 and in core/v1, which is what is stored. */
const EVENT_FIELDS = [
  ['regarding', 'involvedObject'],
  ['note', 'message'],
  ['reportingController', 'reportingComponent'],
  ['deprecatedSource', 'source'],
  ['deprecatedFirstTimestamp', 'firstTimestamp'],
  ['deprecatedLastTimestamp', 'lastTimestamp'],
  ['deprecatedCount', 'count'],
] as const

function newEvents(core: Resource): Resource {
  return {
    ...core,
    group: 'events.k8s.io',
    version: 'v1',
    schema: schemaOf('events.k8s.io', 'v1', 'Event'),
    storageVersion: 'v1',
    fields: {
      ...readers('reason', 'type'),
      ...Object.fromEntries(
        ['kind', 'namespace', 'name', 'uid', 'apiVersion', 'resourceVersion', 'fieldPath'].map((name) => [
          `regarding.${name}`,
          field('involvedObject', name),
        ]),
      ),
      reportingController: field('reportingComponent'),
    },
    toStorage: (object) => ({ ...renamed(object, EVENT_FIELDS), apiVersion: 'v1' }),
    fromStorage: (object) => ({
      ...renamed(
        object,
        EVENT_FIELDS.map(([newer, older]) => [older, newer] as const),
      ),
      apiVersion: 'events.k8s.io/v1',
    }),
  }
}

/** What every server serves, whatever is installed in it. */
export function builtInResources(): Resource[] {
  const resources = GROUPS.flatMap(([group, version, list]) =>
    list.map((declared) => builtIn(group, version, declared)),
  )
  const events = resources.find((resource) => resource.kind === 'Event')
  return events ? [...resources, newEvents(events)] : resources
}
