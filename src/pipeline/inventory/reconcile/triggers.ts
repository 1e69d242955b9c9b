import { changesSpec, type Informer, keyOf, type ObjectChange, onSpecChange, type Trigger } from '#controller'
import type { KubeObject, ObjectKey } from '#kube'

/** As `onSpecChange`, and when annotations change: some of them ask for something. */
export function onSpecOrAnnotations<T extends KubeObject>(informer: Informer<T>): Trigger {
  return {
    ...onSpecChange(informer),
    keysOf: (change) => (changesSpec(change) || annotationsDiffer(change) ? [change.key] : []),
  }
}

function annotationsDiffer(change: ObjectChange<KubeObject>): boolean {
  if (change.kind !== 'changed') return true
  const [now, before] = [change.object, change.previous].map(({ metadata }) =>
    JSON.stringify(metadata.annotations ?? {}),
  )
  return now !== before
}

/** Objects that come, go, or whose labels or spec change: what chooses them may choose otherwise. */
export const changesChoice = (change: ObjectChange<KubeObject>): boolean =>
  changesSpec(change) ||
  (change.kind === 'changed' &&
    JSON.stringify(change.object.metadata.labels ?? {}) !== JSON.stringify(change.previous.metadata.labels ?? {}))

/** All objects of an informer, or those of one namespace. */
export const keysOf = (informer: Informer<KubeObject>, namespace?: string): readonly ObjectKey[] =>
  informer
    .list()
    .filter(({ metadata }) => namespace === undefined || metadata.namespace === namespace)
    .map(keyOf)
