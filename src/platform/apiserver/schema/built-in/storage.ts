import {
  as,
  component,
  conditions,
  flag,
  kindOf,
  labelSelector,
  list,
  map,
  object,
  objectReference,
  oneOf,
  open,
  quantity,
  stringMap,
  strings,
  text,
  time,
} from '../components.ts'

const core = (kind: string): string => `io.k8s.api.core.v1.${kind}`

const amounts = (description: string, extra = {}) => map(quantity, description, extra)
const accessModes = strings('ReadWriteOnce, ReadOnlyMany, ReadWriteMany, ReadWriteOncePod')
const volumeMode = oneOf(['Block', 'Filesystem'], 'whether it is mounted or a raw device', { default: 'Filesystem' })
const volumeAttributesClassName = text('name of the class of its attributes')

export const claimSpec = component(
  core('PersistentVolumeClaimSpec'),
  object('What is wished for.', {
    accessModes,
    selector: as(labelSelector, 'volumes that come into question'),
    resources: component(
      core('VolumeResourceRequirements'),
      object('How much.', { requests: amounts('at least'), limits: amounts('at most') }, { default: {} }),
    ),
    volumeName: text('the volume it is bound to'),
    storageClassName: text('class the volume comes from'),
    volumeMode,
    dataSource: component(
      core('TypedLocalObjectReference'),
      object(
        'What the volume is filled from.',
        { apiGroup: text('group of the kind'), kind: text('kind of the source'), name: text('its name') },
        { required: ['kind', 'name'], 'x-kubernetes-map-type': 'atomic' },
      ),
    ),
    dataSourceRef: component(
      core('TypedObjectReference'),
      object(
        'What the volume is filled from.',
        {
          apiGroup: text('group of the kind'),
          kind: text('kind of the source'),
          name: text('its name'),
          namespace: text('its namespace'),
        },
        { required: ['kind', 'name'] },
      ),
    ),
    volumeAttributesClassName,
  }),
)

export const persistentVolumeClaim = kindOf(core('PersistentVolumeClaim'), 'A wish for storage.', {
  spec: claimSpec,
  status: component(
    core('PersistentVolumeClaimStatus'),
    object('What was found.', {
      phase: oneOf(['Bound', 'Lost', 'Pending'], 'whether it has a volume'),
      accessModes,
      capacity: amounts('how much the volume has'),
      conditions: conditions(core('PersistentVolumeClaimCondition'), 'how a change of size is going', {
        lastProbeTime: time('when it was looked at last'),
      }),
      allocatedResources: amounts('how much is set aside'),
      allocatedResourceStatuses: stringMap('how a change of size is going', { 'x-kubernetes-map-type': 'granular' }),
      currentVolumeAttributesClassName: volumeAttributesClassName,
      modifyVolumeStatus: component(
        core('ModifyVolumeStatus'),
        object(
          'How a change of attributes is going.',
          {
            targetVolumeAttributesClassName: volumeAttributesClassName,
            status: oneOf(['InProgress', 'Infeasible', 'Pending'], 'where the change is'),
          },
          { required: ['status'] },
        ),
      ),
    }),
  ),
})

const VOLUME_SOURCES = [
  'awsElasticBlockStore', 'azureDisk', 'azureFile', 'cephfs', 'cinder', 'csi', 'fc', 'flexVolume', 'flocker',
  'gcePersistentDisk', 'glusterfs', 'hostPath', 'iscsi', 'local', 'nfs', 'photonPersistentDisk', 'portworxVolume',
  'quobyte', 'rbd', 'scaleIO', 'storageos', 'vsphereVolume',
] as const // biome-ignore format: a list of words

export const persistentVolume = kindOf(core('PersistentVolume'), 'A piece of storage.', {
  spec: component(
    core('PersistentVolumeSpec'),
    object('What it is.', {
      capacity: amounts('how much it has'),
      ...Object.fromEntries(VOLUME_SOURCES.map((source) => [source, open(`storage from ${source}`)])),
      accessModes,
      claimRef: as(objectReference, 'the claim it is bound to', { 'x-kubernetes-map-type': 'granular' }),
      persistentVolumeReclaimPolicy: oneOf(['Delete', 'Recycle', 'Retain'], 'what becomes of it without its claim', {
        default: 'Retain',
      }),
      storageClassName: text('class it belongs to'),
      mountOptions: strings('options of the mount'),
      volumeMode,
      nodeAffinity: component(
        core('VolumeNodeAffinity'),
        object('Where it can be used.', {
          required: { ...open('labels of the nodes'), 'x-kubernetes-map-type': 'atomic' },
        }),
      ),
      volumeAttributesClassName,
    }),
  ),
  status: component(
    core('PersistentVolumeStatus'),
    object('Whether it is in use.', {
      phase: oneOf(['Available', 'Bound', 'Failed', 'Pending', 'Released'], 'whether it has a claim'),
      message: text('a sentence why'),
      reason: text('one word why'),
      lastPhaseTransitionTime: time('when the phase changed last'),
    }),
  ),
})

export const storageClass = kindOf(
  'io.k8s.api.storage.v1.StorageClass',
  'How claims get their storage.',
  {
    provisioner: text('who makes the volumes'),
    parameters: stringMap('what the provisioner is to know'),
    reclaimPolicy: text('what becomes of a volume without its claim: Delete or Retain', { default: 'Delete' }),
    mountOptions: strings('options of the mount'),
    allowVolumeExpansion: flag('whether claims may grow'),
    volumeBindingMode: oneOf(['Immediate', 'WaitForFirstConsumer'], 'when a volume is made', { default: 'Immediate' }),
    allowedTopologies: list({ ...open('Labels of nodes.'), 'x-kubernetes-map-type': 'atomic' }, 'where volumes may be'),
  },
  { required: ['provisioner'] },
)
