import type { Schema } from '../../types.ts'
import { daemonSet, deployment, replicaSet, statefulSet } from './apps.ts'
import { cronJob, job } from './batch.ts'
import { clusterRole, clusterRoleBinding, customResourceDefinition, lease, role, roleBinding } from './control.ts'
import { configMap, event, namespace, newEvent, node, secret, service, serviceAccount } from './core.ts'
import { endpoints, ingress, replicationController } from './kept.ts'
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
  '/v1/Endpoints': endpoints,
  '/v1/PersistentVolume': persistentVolume,
  '/v1/PersistentVolumeClaim': persistentVolumeClaim,
  '/v1/ReplicationController': replicationController,
  'apps/v1/Deployment': deployment,
  'apps/v1/ReplicaSet': replicaSet,
  'apps/v1/DaemonSet': daemonSet,
  'apps/v1/StatefulSet': statefulSet,
  'batch/v1/Job': job,
  'batch/v1/CronJob': cronJob,
  'networking.k8s.io/v1/Ingress': ingress,
  'storage.k8s.io/v1/StorageClass': storageClass,
  'coordination.k8s.io/v1/Lease': lease,
  'events.k8s.io/v1/Event': newEvent,
  'rbac.authorization.k8s.io/v1/Role': role,
  'rbac.authorization.k8s.io/v1/RoleBinding': roleBinding,
  'rbac.authorization.k8s.io/v1/ClusterRole': clusterRole,
  'rbac.authorization.k8s.io/v1/ClusterRoleBinding': clusterRoleBinding,
  'apiextensions.k8s.io/v1/CustomResourceDefinition': customResourceDefinition,
}
