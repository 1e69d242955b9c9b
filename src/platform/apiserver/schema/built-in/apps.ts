import type { Schema } from '../../types.ts'
import {
  as,
  component,
  conditions,
  flag,
  int32,
  int64,
  intOrString,
  kindOf,
  labelSelector,
  list,
  object,
  oneOf,
  open,
  text,
  time,
} from '../components.ts'
import { podTemplate } from './pod.ts'
import { persistentVolumeClaim } from './storage.ts'

const apps = (kind: string): string => `io.k8s.api.apps.v1.${kind}`

const NEEDED = { required: ['selector', 'template'] }
const selector = as(labelSelector, 'pods that belong to it; cannot be changed')
const template = as(podTemplate, 'the pods it makes')
const replicas = int32('how many pods are wanted', { default: 1 })
const minReadySeconds = int32('seconds a pod must be ready to count as available')
const revisionHistoryLimit = int32('how many older versions are kept', { default: 10 })
const observedGeneration = int64('generation this was said of')
const collisionCount = int32('how often a made-up name was taken')
const count = (description: string): Schema => int32(description)

export const deployment = kindOf(
  apps('Deployment'),
  'Keeps a number of equal pods running and renews them step by step.',
  {
    spec: component(
      apps('DeploymentSpec'),
      object(
        'What shall run.',
        {
          replicas,
          selector,
          template,
          strategy: component(
            apps('DeploymentStrategy'),
            object(
              'How pods are renewed.',
              {
                type: oneOf(['Recreate', 'RollingUpdate'], 'all at once or step by step'),
                rollingUpdate: component(
                  apps('RollingUpdateDeployment'),
                  object('Size of a step.', {
                    maxSurge: as(intOrString, 'pods above the wanted number'),
                    maxUnavailable: as(intOrString, 'pods that may be missing'),
                  }),
                ),
              },
              {
                'x-kubernetes-patch-strategy': 'retainKeys',
                default: { type: 'RollingUpdate', rollingUpdate: { maxSurge: '25%', maxUnavailable: '25%' } },
              },
            ),
          ),
          minReadySeconds,
          revisionHistoryLimit,
          paused: flag('whether changes are held back'),
          progressDeadlineSeconds: int32('seconds without progress that count as failure', { default: 600 }),
        },
        NEEDED,
      ),
    ),
    status: component(
      apps('DeploymentStatus'),
      object('What runs.', {
        replicas: count('pods there are'),
        readyReplicas: count('pods that are ready'),
        availableReplicas: count('pods that have been ready long enough'),
        unavailableReplicas: count('pods that are missing'),
        updatedReplicas: count('pods of the newest version'),
        terminatingReplicas: count('pods that are going'),
        conditions: conditions(apps('DeploymentCondition'), 'statements on its state', {
          lastUpdateTime: time('when it was said last'),
        }),
        observedGeneration,
        collisionCount,
      }),
    ),
  },
)

export const replicaSet = kindOf(apps('ReplicaSet'), 'Keeps a number of equal pods running.', {
  spec: component(
    apps('ReplicaSetSpec'),
    object('What shall run.', { replicas, minReadySeconds, selector, template }, { required: ['selector'] }),
  ),
  status: component(
    apps('ReplicaSetStatus'),
    object('What runs.', {
      replicas: count('pods there are'),
      fullyLabeledReplicas: count('pods with all labels of the template'),
      readyReplicas: count('pods that are ready'),
      availableReplicas: count('pods that have been ready long enough'),
      terminatingReplicas: count('pods that are going'),
      conditions: conditions(apps('ReplicaSetCondition'), 'statements on its state'),
      observedGeneration,
    }),
  ),
})

export const daemonSet = kindOf(apps('DaemonSet'), 'Keeps one pod running on every node.', {
  spec: component(
    apps('DaemonSetSpec'),
    object(
      'What shall run.',
      {
        selector,
        template,
        minReadySeconds,
        revisionHistoryLimit,
        updateStrategy: component(
          apps('DaemonSetUpdateStrategy'),
          object(
            'How pods are renewed.',
            {
              type: oneOf(['OnDelete', 'RollingUpdate'], 'by themselves or when one is deleted'),
              rollingUpdate: object('Size of a step.', {
                maxSurge: as(intOrString, 'nodes that run two'),
                maxUnavailable: as(intOrString, 'nodes that may run none'),
              }),
            },
            { default: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } } },
          ),
        ),
      },
      NEEDED,
    ),
  ),
  status: component(
    apps('DaemonSetStatus'),
    object('What runs.', {
      currentNumberScheduled: count('nodes that run it and should'),
      desiredNumberScheduled: count('nodes that should run it'),
      numberMisscheduled: count('nodes that run it and should not'),
      numberReady: count('nodes where it is ready'),
      numberAvailable: count('nodes where it has been ready long enough'),
      numberUnavailable: count('nodes where it is missing'),
      updatedNumberScheduled: count('nodes that run the newest version'),
      conditions: conditions(apps('DaemonSetCondition'), 'statements on its state'),
      observedGeneration,
      collisionCount,
    }),
  ),
})

export const statefulSet = kindOf(apps('StatefulSet'), 'Keeps numbered pods running, each with its own storage.', {
  spec: component(
    apps('StatefulSetSpec'),
    object(
      'What shall run.',
      {
        replicas,
        selector,
        template,
        serviceName: text('service that gives its pods their names'),
        volumeClaimTemplates: list(persistentVolumeClaim, 'storage each pod gets'),
        podManagementPolicy: text('OrderedReady: one after the other; Parallel: all at once', {
          default: 'OrderedReady',
        }),
        updateStrategy: component(
          apps('StatefulSetUpdateStrategy'),
          object(
            'How pods are renewed.',
            {
              type: oneOf(['OnDelete', 'RollingUpdate'], 'by themselves or when one is deleted'),
              rollingUpdate: object('Size of a step.', {
                partition: int32('number of the first pod that is renewed'),
                maxUnavailable: as(intOrString, 'pods that may be missing'),
              }),
            },
            { default: { type: 'RollingUpdate', rollingUpdate: { partition: 0 } } },
          ),
        ),
        minReadySeconds,
        revisionHistoryLimit,
        persistentVolumeClaimRetentionPolicy: {
          ...open('what becomes of the storage when pods go'),
          default: { whenDeleted: 'Retain', whenScaled: 'Retain' },
        },
        ordinals: object('How pods are numbered.', { start: int32('number of the first') }),
      },
      NEEDED,
    ),
  ),
  status: component(
    apps('StatefulSetStatus'),
    object('What runs.', {
      replicas: count('pods there are'),
      readyReplicas: count('pods that are ready'),
      availableReplicas: count('pods that have been ready long enough'),
      currentReplicas: count('pods of the current version'),
      updatedReplicas: count('pods of the newest version'),
      currentRevision: text('name of the current version'),
      updateRevision: text('name of the newest version'),
      conditions: conditions(apps('StatefulSetCondition'), 'statements on its state'),
      observedGeneration,
      collisionCount,
    }),
  ),
})
