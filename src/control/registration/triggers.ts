import { CLUSTER_LABEL } from '#authority'
import type { CertificateRequestObject } from '#certificates'
import { type Informer, type ObjectChange, onSpecChange, type Trigger } from '#controller'
import type { KubeObject, ObjectKey } from '#kube'
import { conditionOf, type ManagedCluster } from './objects.ts'
import { clusterOfRole } from './rights.ts'
import { builtInSets } from './sets.ts'
import { CONDITIONS } from './words.ts'

/** What the hub decides by: spec and deletion; its set, who speaks for it, what holds it; whether its agent finds it available. */
export function onMembershipChange(members: Informer<ManagedCluster>): Trigger {
  const trigger = onSpecChange(members)
  return {
    ...trigger,
    keysOf(change) {
      if (change.kind !== 'changed') return trigger.keysOf(change)
      const parts = ({ metadata, ...rest }: KubeObject) => {
        const { labels, annotations, finalizers } = metadata
        const said = [CONDITIONS.accepted, CONDITIONS.available].map(
          (type) => conditionOf(rest as ManagedCluster, type)?.status,
        )
        return JSON.stringify([labels, annotations, finalizers, said])
      }
      return parts(change.object) === parts(change.previous) ? trigger.keysOf(change) : [change.key]
    },
  }
}

/** What is decided of it stands in its status. */
export const onEveryChange = (requests: Informer<CertificateRequestObject>): Trigger => ({
  ...onSpecChange(requests),
  keysOf: ({ key }) => [key],
})

/** Clusters whose rights outlived them, as somebody deleted them while nobody looked. */
export function withForgotten(
  trigger: Trigger,
  members: Informer<ManagedCluster>,
  roles: Informer<KubeObject> | undefined,
): Trigger {
  const keysAtStart = () => {
    const left = (roles?.list() ?? []).flatMap((role) => clusterOfRole(role) ?? [])
    const gone = left.filter((name) => !members.get({ name })).map((name) => ({ name }))
    return [...gone, ...trigger.keysAtStart()]
  }
  return { ...trigger, keysAtStart }
}

export const withBuiltIn = (trigger: Trigger): Trigger => ({
  ...trigger,
  keysAtStart: () => [...Object.keys(builtInSets).map((name) => ({ name })), ...trigger.keysAtStart()],
})

/** undefined: it belongs to all */
export function clusterOf(change: ObjectChange<KubeObject>): readonly ObjectKey[] | undefined {
  const { metadata } = change.kind === 'deleted' ? change.previous : change.object
  const cluster = metadata.labels?.[CLUSTER_LABEL]
  return cluster ? [{ name: cluster }] : undefined
}

/** What all share is kept right with each of them: one is enough. */
export function anyOf(members: Informer<ManagedCluster>): readonly ObjectKey[] {
  const one = members.list().find(({ spec }) => spec?.hubAcceptsClient === true)
  return one ? [{ name: one.metadata.name }] : []
}

export function labelsDiffer({ object, previous }: Extract<ObjectChange<KubeObject>, { kind: 'changed' }>): boolean {
  return JSON.stringify(object.metadata.labels) !== JSON.stringify(previous.metadata.labels)
}
