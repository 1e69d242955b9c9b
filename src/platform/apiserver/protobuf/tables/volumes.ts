import type { Tables } from '../table.ts'

/** k8s.io/api/core/v1: the sources of volumes. */
export const volumes: Tables = {
  VolumeSource: `
    1 hostPath: HostPathVolumeSource, 2 emptyDir: EmptyDirVolumeSource,
    3 gcePersistentDisk: GCEPersistentDiskVolumeSource,
    4 awsElasticBlockStore: AWSElasticBlockStoreVolumeSource, 5 gitRepo: GitRepoVolumeSource,
    6 secret: SecretVolumeSource, 7 nfs: NFSVolumeSource, 8 iscsi: ISCSIVolumeSource,
    9 glusterfs: GlusterfsVolumeSource, 10 persistentVolumeClaim: PersistentVolumeClaimVolumeSource,
    11 rbd: RBDVolumeSource, 12 flexVolume: FlexVolumeSource, 13 cinder: CinderVolumeSource,
    14 cephfs: CephFSVolumeSource, 15 flocker: FlockerVolumeSource, 16 downwardAPI: DownwardAPIVolumeSource,
    17 fc: FCVolumeSource, 18 azureFile: AzureFileVolumeSource, 19 configMap: ConfigMapVolumeSource,
    20 vsphereVolume: VsphereVirtualDiskVolumeSource, 21 quobyte: QuobyteVolumeSource,
    22 azureDisk: AzureDiskVolumeSource, 23 photonPersistentDisk: PhotonPersistentDiskVolumeSource,
    26 projected: ProjectedVolumeSource, 24 portworxVolume: PortworxVolumeSource,
    25 scaleIO: ScaleIOVolumeSource, 27 storageos: StorageOSVolumeSource, 28 csi: CSIVolumeSource,
    29 ephemeral: EphemeralVolumeSource, 30 image: ImageVolumeSource`,
  HostPathVolumeSource: '1 path: string!, 2 type: string!',
  EmptyDirVolumeSource: '1 medium: string, 2 sizeLimit: quantity',
  GCEPersistentDiskVolumeSource: '1 pdName: string!, 2 fsType: string, 3 partition: int32, 4 readOnly: bool',
  AWSElasticBlockStoreVolumeSource: '1 volumeID: string!, 2 fsType: string, 3 partition: int32, 4 readOnly: bool',
  GitRepoVolumeSource: '1 repository: string!, 2 revision: string, 3 directory: string',
  SecretVolumeSource: '1 secretName: string, 2 items: KeyToPath[], 3 defaultMode: int32!, 4 optional: bool!',
  KeyToPath: '1 key: string!, 2 path: string!, 3 mode: int32!',
  NFSVolumeSource: '1 server: string!, 2 path: string!, 3 readOnly: bool',
  ISCSIVolumeSource: `
    1 targetPortal: string!, 2 iqn: string!, 3 lun: int32!, 4 iscsiInterface: string, 5 fsType: string,
    6 readOnly: bool, 7 portals: string[], 8 chapAuthDiscovery: bool, 11 chapAuthSession: bool,
    10 secretRef: LocalObjectReference, 12 initiatorName: string!`,
  LocalObjectReference: '1 name: string',
  GlusterfsVolumeSource: '1 endpoints: string!, 2 path: string!, 3 readOnly: bool',
  PersistentVolumeClaimVolumeSource: '1 claimName: string!, 2 readOnly: bool',
  RBDVolumeSource: `
    1 monitors: string[], 2 image: string!, 3 fsType: string, 4 pool: string, 5 user: string, 6 keyring: string,
    7 secretRef: LocalObjectReference, 8 readOnly: bool`,
  FlexVolumeSource: `
    1 driver: string!, 2 fsType: string, 3 secretRef: LocalObjectReference, 4 readOnly: bool,
    5 options: {string}`,
  CinderVolumeSource: '1 volumeID: string!, 2 fsType: string, 3 readOnly: bool, 4 secretRef: LocalObjectReference',
  CephFSVolumeSource: `
    1 monitors: string[], 2 path: string, 3 user: string, 4 secretFile: string,
    5 secretRef: LocalObjectReference, 6 readOnly: bool`,
  FlockerVolumeSource: '1 datasetName: string, 2 datasetUUID: string',
  DownwardAPIVolumeSource: '1 items: DownwardAPIVolumeFile[], 2 defaultMode: int32!',
  DownwardAPIVolumeFile: `
    1 path: string!, 2 fieldRef: ObjectFieldSelector, 3 resourceFieldRef: ResourceFieldSelector, 4 mode: int32!`,
  ObjectFieldSelector: '1 apiVersion: string, 2 fieldPath: string!',
  ResourceFieldSelector: '1 containerName: string, 2 resource: string!, 3 divisor: quantity',
  FCVolumeSource: '1 targetWWNs: string[], 2 lun: int32!, 3 fsType: string, 4 readOnly: bool, 5 wwids: string[]',
  AzureFileVolumeSource: '1 secretName: string!, 2 shareName: string!, 3 readOnly: bool',
  ConfigMapVolumeSource: `
    1 localObjectReference: inline LocalObjectReference, 2 items: KeyToPath[], 3 defaultMode: int32!,
    4 optional: bool!`,
  VsphereVirtualDiskVolumeSource: `
    1 volumePath: string!, 2 fsType: string, 3 storagePolicyName: string, 4 storagePolicyID: string`,
  QuobyteVolumeSource: `
    1 registry: string!, 2 volume: string!, 3 readOnly: bool, 4 user: string, 5 group: string, 6 tenant: string`,
  AzureDiskVolumeSource: `
    1 diskName: string!, 2 diskURI: string!, 3 cachingMode: string!, 4 fsType: string!, 5 readOnly: bool!,
    6 kind: string!`,
  PhotonPersistentDiskVolumeSource: '1 pdID: string!, 2 fsType: string',
  ProjectedVolumeSource: '1 sources: VolumeProjection[], 2 defaultMode: int32!',
  VolumeProjection: `
    1 secret: SecretProjection, 2 downwardAPI: DownwardAPIProjection, 3 configMap: ConfigMapProjection,
    4 serviceAccountToken: ServiceAccountTokenProjection, 5 clusterTrustBundle: ClusterTrustBundleProjection,
    6 podCertificate: PodCertificateProjection`,
  SecretProjection: '1 localObjectReference: inline LocalObjectReference, 2 items: KeyToPath[], 4 optional: bool!',
  DownwardAPIProjection: '1 items: DownwardAPIVolumeFile[]',
  ConfigMapProjection: '1 localObjectReference: inline LocalObjectReference, 2 items: KeyToPath[], 4 optional: bool!',
  ServiceAccountTokenProjection: '1 audience: string, 2 expirationSeconds: int64!, 3 path: string!',
  ClusterTrustBundleProjection: `
    1 name: string!, 2 signerName: string!, 3 labelSelector: meta.LabelSelector, 5 optional: bool!,
    4 path: string!`,
  PodCertificateProjection: `
    1 signerName: string, 2 keyType: string, 3 maxExpirationSeconds: int32!, 4 credentialBundlePath: string,
    5 keyPath: string, 6 certificateChainPath: string, 7 userAnnotations: {string}`,
  PortworxVolumeSource: '1 volumeID: string!, 2 fsType: string, 3 readOnly: bool',
  ScaleIOVolumeSource: `
    1 gateway: string!, 2 system: string!, 3 secretRef: LocalObjectReference, 4 sslEnabled: bool,
    5 protectionDomain: string, 6 storagePool: string, 7 storageMode: string, 8 volumeName: string,
    9 fsType: string, 10 readOnly: bool`,
  StorageOSVolumeSource: `
    1 volumeName: string, 2 volumeNamespace: string, 3 fsType: string, 4 readOnly: bool,
    5 secretRef: LocalObjectReference`,
  CSIVolumeSource: `
    1 driver: string!, 2 readOnly: bool!, 3 fsType: string!, 4 volumeAttributes: {string},
    5 nodePublishSecretRef: LocalObjectReference`,
  EphemeralVolumeSource: '1 volumeClaimTemplate: PersistentVolumeClaimTemplate',
  PersistentVolumeClaimTemplate: '1 metadata: meta.ObjectMeta, 2 spec: PersistentVolumeClaimSpec',
  PersistentVolumeClaimSpec: `
    1 accessModes: string[], 4 selector: meta.LabelSelector, 2 resources: VolumeResourceRequirements,
    3 volumeName: string, 5 storageClassName: string!, 6 volumeMode: string!,
    7 dataSource: TypedLocalObjectReference, 8 dataSourceRef: TypedObjectReference,
    9 volumeAttributesClassName: string!`,
  VolumeResourceRequirements: '1 limits: {quantity}, 2 requests: {quantity}',
  TypedLocalObjectReference: '1 apiGroup: string!, 2 kind: string!, 3 name: string!',
  TypedObjectReference: '1 apiGroup: string!, 2 kind: string!, 3 name: string!, 4 namespace: string!',
  ImageVolumeSource: '1 reference: string, 2 pullPolicy: string',
}

/** k8s.io/api/core/v1: claims and persistent volumes. */
export const claims: Tables = {
  ModifyVolumeStatus: '1 targetVolumeAttributesClassName: string, 2 status: string!',
  PersistentVolumeClaim: `
    1 metadata: meta.ObjectMeta, 2 spec: PersistentVolumeClaimSpec, 3 status: PersistentVolumeClaimStatus`,
  PersistentVolumeClaimCondition: `
    1 type: string!, 2 status: string!, 3 lastProbeTime: time, 4 lastTransitionTime: time, 5 reason: string,
    6 message: string`,
  PersistentVolumeClaimStatus: `
    1 phase: string, 2 accessModes: string[], 3 capacity: {quantity},
    4 conditions: PersistentVolumeClaimCondition[], 5 allocatedResources: {quantity},
    7 allocatedResourceStatuses: {string}, 8 currentVolumeAttributesClassName: string!,
    9 modifyVolumeStatus: ModifyVolumeStatus`,
  PersistentVolume: '1 metadata: meta.ObjectMeta, 2 spec: PersistentVolumeSpec, 3 status: PersistentVolumeStatus',
  PersistentVolumeSpec: `
    1 capacity: {quantity}, 2 persistentVolumeSource: inline PersistentVolumeSource, 3 accessModes: string[],
    4 claimRef: ObjectReference, 5 persistentVolumeReclaimPolicy: string, 6 storageClassName: string,
    7 mountOptions: string[], 8 volumeMode: string!, 9 nodeAffinity: VolumeNodeAffinity,
    10 volumeAttributesClassName: string!`,
  PersistentVolumeSource: `
    1 gcePersistentDisk: GCEPersistentDiskVolumeSource,
    2 awsElasticBlockStore: AWSElasticBlockStoreVolumeSource, 3 hostPath: HostPathVolumeSource,
    4 glusterfs: GlusterfsPersistentVolumeSource, 5 nfs: NFSVolumeSource, 6 rbd: RBDPersistentVolumeSource,
    7 iscsi: ISCSIPersistentVolumeSource, 8 cinder: CinderPersistentVolumeSource,
    9 cephfs: CephFSPersistentVolumeSource, 10 fc: FCVolumeSource, 11 flocker: FlockerVolumeSource,
    12 flexVolume: FlexPersistentVolumeSource, 13 azureFile: AzureFilePersistentVolumeSource,
    14 vsphereVolume: VsphereVirtualDiskVolumeSource, 15 quobyte: QuobyteVolumeSource,
    16 azureDisk: AzureDiskVolumeSource, 17 photonPersistentDisk: PhotonPersistentDiskVolumeSource,
    18 portworxVolume: PortworxVolumeSource, 19 scaleIO: ScaleIOPersistentVolumeSource,
    20 local: LocalVolumeSource, 21 storageos: StorageOSPersistentVolumeSource,
    22 csi: CSIPersistentVolumeSource`,
  SecretReference: '1 name: string, 2 namespace: string',
  GlusterfsPersistentVolumeSource:
    '1 endpoints: string!, 2 path: string!, 3 readOnly: bool, 4 endpointsNamespace: string!',
  RBDPersistentVolumeSource: `
    1 monitors: string[], 2 image: string!, 3 fsType: string, 4 pool: string, 5 user: string, 6 keyring: string,
    7 secretRef: SecretReference, 8 readOnly: bool`,
  ISCSIPersistentVolumeSource: `
    1 targetPortal: string!, 2 iqn: string!, 3 lun: int32!, 4 iscsiInterface: string, 5 fsType: string,
    6 readOnly: bool, 7 portals: string[], 8 chapAuthDiscovery: bool, 11 chapAuthSession: bool,
    10 secretRef: SecretReference, 12 initiatorName: string!`,
  CinderPersistentVolumeSource: '1 volumeID: string!, 2 fsType: string, 3 readOnly: bool, 4 secretRef: SecretReference',
  CephFSPersistentVolumeSource: `
    1 monitors: string[], 2 path: string, 3 user: string, 4 secretFile: string, 5 secretRef: SecretReference,
    6 readOnly: bool`,
  FlexPersistentVolumeSource: `
    1 driver: string!, 2 fsType: string, 3 secretRef: SecretReference, 4 readOnly: bool, 5 options: {string}`,
  AzureFilePersistentVolumeSource:
    '1 secretName: string!, 2 shareName: string!, 3 readOnly: bool, 4 secretNamespace: string!',
  ScaleIOPersistentVolumeSource: `
    1 gateway: string!, 2 system: string!, 3 secretRef: SecretReference, 4 sslEnabled: bool,
    5 protectionDomain: string, 6 storagePool: string, 7 storageMode: string, 8 volumeName: string,
    9 fsType: string, 10 readOnly: bool`,
  LocalVolumeSource: '1 path: string!, 2 fsType: string!',
  StorageOSPersistentVolumeSource: `
    1 volumeName: string, 2 volumeNamespace: string, 3 fsType: string, 4 readOnly: bool,
    5 secretRef: ObjectReference`,
  CSIPersistentVolumeSource: `
    1 driver: string!, 2 volumeHandle: string!, 3 readOnly: bool, 4 fsType: string, 5 volumeAttributes: {string},
    6 controllerPublishSecretRef: SecretReference, 7 nodeStageSecretRef: SecretReference,
    8 nodePublishSecretRef: SecretReference, 9 controllerExpandSecretRef: SecretReference,
    10 nodeExpandSecretRef: SecretReference`,
  VolumeNodeAffinity: '1 required: NodeSelector',
  PersistentVolumeStatus: '1 phase: string, 2 message: string, 3 reason: string, 4 lastPhaseTransitionTime: time',
  TopologySelectorTerm: '1 matchLabelExpressions: TopologySelectorLabelRequirement[]',
  TopologySelectorLabelRequirement: '1 key: string!, 2 values: string[]',
}

/** k8s.io/api/storage/v1. */
export const storage: Tables = {
  StorageClass: `
    1 metadata: meta.ObjectMeta, 2 provisioner: string!, 3 parameters: {string}, 4 reclaimPolicy: string!,
    5 mountOptions: string[], 6 allowVolumeExpansion: bool!, 7 volumeBindingMode: string!,
    8 allowedTopologies: core.TopologySelectorTerm[]`,
}
