import type { Schema } from '../../types.ts'
import { daemonSet, deployment, replicaSet, statefulSet } from './apps.ts'
import { cronJob, job } from './batch.ts'
import { certificateSigningRequest } from './certificates.ts'
import { clusterRole, clusterRoleBinding, customResourceDefinition, lease, role, roleBinding } from './control.ts'
import { configMap, event, namespace, newEvent, node, secret, service, serviceAccount } from './core.ts'
import * as kept from './kept.ts'
import { pod } from './pod.ts'
import { persistentVolume, persistentVolumeClaim, storageClass } from './storage.ts'

/** The schemas of the built-in kinds by `group/version/kind`; the core group is empty, as in `/v1/Node`. */
export const builtInSchemas: Readonly<Record<string, Schema>> = {
  '/v1/Namespace': namespace,
  '/v1/Node': node,
  '/v1/Pod': pod,
  '/v1/Secret': secret,
  '/v1/ConfigMap': configMap,
  '/v1/Event': event,
  '/v1/ServiceAccount': serviceAccount,
  '/v1/Service': service,
  '/v1/Endpoints': kept.endpoints,
  '/v1/PersistentVolume': persistentVolume,
  '/v1/PersistentVolumeClaim': persistentVolumeClaim,
  '/v1/ReplicationController': kept.replicationController,
  '/v1/PodTemplate': kept.podTemplateObject,
  '/v1/ResourceQuota': kept.resourceQuota,
  '/v1/LimitRange': kept.limitRange,
  'apps/v1/Deployment': deployment,
  'apps/v1/ReplicaSet': replicaSet,
  'apps/v1/DaemonSet': daemonSet,
  'apps/v1/StatefulSet': statefulSet,
  'apps/v1/ControllerRevision': kept.controllerRevision,
  'autoscaling/v2/HorizontalPodAutoscaler': kept.horizontalPodAutoscaler,
  'policy/v1/PodDisruptionBudget': kept.podDisruptionBudget,
  'batch/v1/Job': job,
  'batch/v1/CronJob': cronJob,
  'networking.k8s.io/v1/Ingress': kept.ingress,
  'networking.k8s.io/v1/IngressClass': kept.ingressClass,
  'networking.k8s.io/v1/NetworkPolicy': kept.networkPolicy,
  'discovery.k8s.io/v1/EndpointSlice': kept.endpointSlice,
  'scheduling.k8s.io/v1/PriorityClass': kept.priorityClass,
  'node.k8s.io/v1/RuntimeClass': kept.runtimeClass,
  'storage.k8s.io/v1/StorageClass': storageClass,
  'storage.k8s.io/v1/CSIDriver': kept.csiDriver,
  'storage.k8s.io/v1/CSINode': kept.csiNode,
  'storage.k8s.io/v1/CSIStorageCapacity': kept.csiStorageCapacity,
  'storage.k8s.io/v1/VolumeAttachment': kept.volumeAttachment,
  'admissionregistration.k8s.io/v1/MutatingWebhookConfiguration': kept.mutatingWebhooks,
  'admissionregistration.k8s.io/v1/ValidatingWebhookConfiguration': kept.validatingWebhooks,
  'admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy': kept.validatingPolicy,
  'admissionregistration.k8s.io/v1/ValidatingAdmissionPolicyBinding': kept.validatingPolicyBinding,
  'flowcontrol.apiserver.k8s.io/v1/FlowSchema': kept.flowSchema,
  'flowcontrol.apiserver.k8s.io/v1/PriorityLevelConfiguration': kept.priorityLevel,
  'apiregistration.k8s.io/v1/APIService': kept.apiService,
  'certificates.k8s.io/v1/CertificateSigningRequest': certificateSigningRequest,
  'coordination.k8s.io/v1/Lease': lease,
  'events.k8s.io/v1/Event': newEvent,
  'rbac.authorization.k8s.io/v1/Role': role,
  'rbac.authorization.k8s.io/v1/RoleBinding': roleBinding,
  'rbac.authorization.k8s.io/v1/ClusterRole': clusterRole,
  'rbac.authorization.k8s.io/v1/ClusterRoleBinding': clusterRoleBinding,
  'apiextensions.k8s.io/v1/CustomResourceDefinition': customResourceDefinition,
}
