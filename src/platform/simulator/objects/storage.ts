import type { ApiObject } from '#apiserver'
import type { ClaimFacts } from '../facts.ts'
import { hash, uuidFrom } from '../random.ts'
import type { ClusterScenario } from '../types.ts'
import { timestamp } from './meta.ts'

/** What the claims of StatefulSets are called in their pods. */
export const CLAIM_NAME = 'data'

/** The class of each distribution, and how its volumes come about. */
const CLASSES: Readonly<Record<ClusterScenario['distribution'], { name: string; provisioner: string }>> = {
  openshift: { name: 'gp3-csi', provisioner: 'ebs.csi.aws.com' },
  kubernetes: { name: 'standard', provisioner: 'block.csi.example.com' },
  k3s: { name: 'local-path', provisioner: 'rancher.io/local-path' },
}

const classOf = ({ distribution }: ClusterScenario) => CLASSES[distribution]

export const storageClassObject = (scenario: ClusterScenario, bornAt: number): ApiObject => ({
  apiVersion: 'storage.k8s.io/v1',
  kind: 'StorageClass',
  metadata: {
    name: classOf(scenario).name,
    uid: uuidFrom(`${scenario.name}/class`),
    creationTimestamp: timestamp(bornAt),
    annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' },
  },
  provisioner: classOf(scenario).provisioner,
  reclaimPolicy: 'Delete',
  allowVolumeExpansion: scenario.distribution !== 'k3s',
  volumeBindingMode: 'WaitForFirstConsumer',
})

/** As much as an application of this name keeps, GiB. */
const sizeOf = (app: string): string => `${[5, 10, 20, 50, 100][hash(`disk/${app}`) % 5]}Gi`
const MODES = ['ReadWriteOnce']

export const claimSpec = (scenario: ClusterScenario, app: string) => ({
  accessModes: MODES,
  resources: { requests: { storage: sizeOf(app) } },
  storageClassName: classOf(scenario).name,
  volumeMode: 'Filesystem',
})

export const volumeNameOf = ({ uid }: ClaimFacts): string => `pvc-${uid}`

/** Pending: no pod has used it yet, or its volume is still being made. Lost: its volume is gone. */
export function claimObject(claim: ClaimFacts, scenario: ClusterScenario): ApiObject {
  const bound = claim.phase === 'Bound'
  const named = claim.phase !== 'Pending'
  const { provisioner } = classOf(scenario)
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: {
      name: claim.name,
      namespace: claim.namespace,
      uid: claim.uid,
      creationTimestamp: timestamp(claim.createdAt),
      labels: claim.labels,
      ...(named
        ? {
            annotations: {
              'pv.kubernetes.io/bind-completed': 'yes',
              'pv.kubernetes.io/bound-by-controller': 'yes',
              'volume.kubernetes.io/storage-provisioner': provisioner,
            },
          }
        : {}),
    },
    spec: { ...claimSpec(scenario, claim.app), ...(named ? { volumeName: volumeNameOf(claim) } : {}) },
    status: bound
      ? { phase: 'Bound', accessModes: MODES, capacity: { storage: sizeOf(claim.app) } }
      : { phase: claim.phase },
  }
}

/** The volume made for a claim. */
export function volumeObject(claim: ClaimFacts, scenario: ClusterScenario): ApiObject {
  const { name, provisioner } = classOf(scenario)
  const source =
    scenario.distribution === 'k3s'
      ? { hostPath: { path: `/var/lib/rancher/k3s/storage/${volumeNameOf(claim)}`, type: 'DirectoryOrCreate' } }
      : { csi: { driver: provisioner, volumeHandle: `vol-${claim.uid.slice(0, 8)}`, fsType: 'ext4' } }
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: {
      name: volumeNameOf(claim),
      uid: uuidFrom(`${claim.uid}/volume`),
      creationTimestamp: timestamp(claim.createdAt),
      annotations: { 'pv.kubernetes.io/provisioned-by': provisioner },
    },
    spec: {
      capacity: { storage: sizeOf(claim.app) },
      accessModes: MODES,
      ...source,
      claimRef: {
        kind: 'PersistentVolumeClaim',
        apiVersion: 'v1',
        namespace: claim.namespace,
        name: claim.name,
        uid: claim.uid,
      },
      persistentVolumeReclaimPolicy: 'Delete',
      storageClassName: name,
      volumeMode: 'Filesystem',
    },
    status: { phase: 'Bound', lastPhaseTransitionTime: timestamp(claim.createdAt) },
  }
}
