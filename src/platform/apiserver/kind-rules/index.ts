import { definitionFaults, establish } from '../crd.ts'
import { COLLECTIONS } from '../rbac/objects.ts'
import type { Resource } from '../served.ts'
import { ApiError, forbidden } from '../status.ts'
import type { ApiObject, FieldFault } from '../types.ts'
import { certificateRequestRule } from './certificate-requests.ts'
import { portFault } from './pod-spec.ts'
import { clusterRoleBindingRule, clusterRoleRule, roleBindingRule, roleRule } from './rbac.ts'
import { fields, items, type KindRule, required, withDefaults, withStatus, wrong } from './rule.ts'
import { claimRule, storageClassRule, volumeRule } from './storage.ts'
import {
  cronJobRule,
  daemonSetRule,
  deploymentRule,
  jobRule,
  podRule,
  replicaSetRule,
  statefulSetRule,
} from './workloads.ts'

const KEPT_NAMESPACES = new Set(['default', 'kube-system', 'kube-public'])

const namespaceRule: KindRule = {
  prepare: (object, before) => ({
    ...object,
    metadata: {
      ...object.metadata,
      labels: { ...object.metadata.labels, 'kubernetes.io/metadata.name': object.metadata.name },
    },
    spec: before?.spec ?? { finalizers: ['kubernetes'] },
    status: before?.status ?? { phase: 'Active' },
  }),
  beforeDelete: (resource, object) => {
    if (KEPT_NAMESPACES.has(object.metadata.name))
      throw forbidden(resource, object.metadata.name, 'this namespace may not be deleted')
  },
}

const secretRule: KindRule = {
  prepare: (object) => {
    const { stringData, ...rest } = object as ApiObject & { stringData?: Record<string, string> }
    const written = Object.entries(stringData ?? {}).map(([name, text]) => [
      name,
      Buffer.from(String(text)).toString('base64'),
    ])
    const data = { ...(object.data as object | undefined), ...Object.fromEntries(written) }
    return {
      ...rest,
      ...(Object.keys(data).length > 0 || object.data ? { data } : {}),
      type: object.type || 'Opaque',
    } as ApiObject
  },
  faults: (object, before) => {
    const faults: FieldFault[] = []
    faults.push(...keyFaults(object.data, 'data'))
    for (const [name, value] of Object.entries((object.data as Record<string, unknown> | undefined) ?? {})) {
      if (typeof value !== 'string' || !isBase64(value))
        throw new ApiError(
          'BadRequest',
          `Secret in version "v1" cannot be handled as a Secret: illegal base64 data in data.${name}`,
        )
    }
    if (before && before.type !== object.type)
      faults.push({
        reason: 'FieldValueInvalid',
        path: 'type',
        message: `Invalid value: ${JSON.stringify(object.type)}: field is immutable`,
      })
    return [...faults, ...immutableFaults(object, before)]
  },
}

/** The names of a ConfigMap's or Secret's data become files. */
function keyFaults(data: unknown, path: string): FieldFault[] {
  return Object.keys((data as object | undefined) ?? {})
    .filter((name) => !/^[-._a-zA-Z0-9]+$/.test(name))
    .map((name) => ({
      reason: 'FieldValueInvalid',
      path: `${path}[${name}]`,
      message: `Invalid value: ${JSON.stringify(name)}: a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')`,
    }))
}

const isBase64 = (text: string): boolean =>
  text.replace(/[\r\n]/g, '').length % 4 === 0 && /^[A-Za-z0-9+/\r\n]*={0,2}[\r\n]*$/.test(text)

/** A ConfigMap or Secret that says it is immutable keeps its data. */
function immutableFaults(object: ApiObject, before: ApiObject | undefined): FieldFault[] {
  if (before?.immutable !== true) return []
  const fault = (path: string): FieldFault => ({
    reason: 'FieldValueForbidden',
    path,
    message: 'Forbidden: field is immutable when `immutable` is set',
  })
  const faults: FieldFault[] = []
  if (object.immutable !== true) faults.push(fault('immutable'))
  if (JSON.stringify(object.data) !== JSON.stringify(before.data)) faults.push(fault('data'))
  return faults
}

const definitionRule: KindRule = {
  prepare: (object, before, nowMs) => establish(object, before, nowMs),
  preparesStatus: true,
  faults: definitionFaults,
}

/** A port that clients use goes to the same port of the pods, unless it says otherwise; one of several has a name. */
const serviceRule: KindRule = {
  prepare: (object) => {
    const spec = fields(object.spec)
    const outward = spec.type === 'LoadBalancer' || spec.type === 'NodePort'
    const ports = items(spec.ports).map((port) => withDefaults(fields(port), { targetPort: fields(port).port }))
    const inside = {
      ...(spec.clusterIP ? { clusterIPs: [spec.clusterIP] } : {}),
      ipFamilies: ['IPv4'],
      ipFamilyPolicy: 'SingleStack',
      internalTrafficPolicy: 'Cluster',
    }
    const filled = withDefaults(spec, {
      ...(spec.type === 'ExternalName' ? {} : inside),
      ...(outward ? { externalTrafficPolicy: 'Cluster' } : {}),
      ...(spec.type === 'LoadBalancer' ? { allocateLoadBalancerNodePorts: true } : {}),
    })
    return withDefaults(
      { ...object, spec: { ...filled, ...(spec.ports ? { ports } : {}) } },
      { status: { loadBalancer: {} } },
    )
  },
  faults: ({ spec }) => {
    const ports = items(fields(spec).ports).map(fields)
    return ports.flatMap(({ name, port, targetPort }, index) => {
      const path = `spec.ports[${index}]`
      return [
        ...(ports.length > 1 && !name ? [required(`${path}.name`)] : []),
        ...portFault(`${path}.port`, port),
        ...portFault(`${path}.targetPort`, targetPort),
      ]
    })
  },
}

const eventRule: KindRule = {
  faults: (object) => {
    const namespace = fields(object.involvedObject ?? object.regarding).namespace ?? ''
    const own = object.metadata.namespace ?? ''
    // What has no namespace is told of in "default".
    return namespace === own || (namespace === '' && own === 'default')
      ? []
      : [wrong('involvedObject.namespace', namespace, 'does not match event.namespace')]
  },
}

const RULES: Readonly<Record<string, KindRule>> = {
  '/namespaces': namespaceRule,
  '/secrets': secretRule,
  '/configmaps': {
    faults: (object, before) => [
      ...keyFaults(object.data, 'data'),
      ...keyFaults(object.binaryData, 'binaryData'),
      ...immutableFaults(object, before),
    ],
  },
  '/pods': podRule,
  '/nodes': { prepare: withStatus() },
  '/services': serviceRule,
  '/persistentvolumes': volumeRule,
  '/persistentvolumeclaims': claimRule,
  '/events': eventRule,
  'apps/deployments': deploymentRule,
  'apps/replicasets': replicaSetRule,
  'apps/daemonsets': daemonSetRule,
  'apps/statefulsets': statefulSetRule,
  'batch/jobs': jobRule,
  'batch/cronjobs': cronJobRule,
  'storage.k8s.io/storageclasses': storageClassRule,
  // Its generation never rises, as its value cannot change.
  'scheduling.k8s.io/priorityclasses': {
    prepare: (object) => ({ ...object, metadata: { ...object.metadata, generation: 1 } }),
  },
  '/resourcequotas': { prepare: withStatus() },
  'autoscaling/horizontalpodautoscalers': { prepare: withStatus({ desiredReplicas: 0, currentMetrics: null }) },
  'policy/poddisruptionbudgets': {
    prepare: withStatus({ disruptionsAllowed: 0, currentHealthy: 0, desiredHealthy: 0, expectedPods: 0 }),
  },
  'networking.k8s.io/ingresses': { prepare: withStatus({ loadBalancer: {} }) },
  [COLLECTIONS.roles]: roleRule,
  [COLLECTIONS.clusterRoles]: clusterRoleRule,
  [COLLECTIONS.roleBindings]: roleBindingRule,
  [COLLECTIONS.clusterRoleBindings]: clusterRoleBindingRule,
  'apiextensions.k8s.io/customresourcedefinitions': definitionRule,
  'certificates.k8s.io/certificatesigningrequests': certificateRequestRule,
}

const none: KindRule = {}

export const ruleOf = (resource: Resource): KindRule => (resource.builtIn ? (RULES[resource.collection] ?? none) : none)
