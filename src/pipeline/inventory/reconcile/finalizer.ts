import type { KubeClient, KubeObject, Resource } from '#kube'
import { isKubeError, type ObjectKey } from '#kube'

/** Puts the finalizer on the object. @returns the object as it is then; undefined: it is gone or changed, and comes again */
export function addFinalizer<T extends KubeObject>(
  kube: KubeClient,
  resource: Resource<T>,
  object: T,
  finalizer: string,
  signal: AbortSignal,
): Promise<T | undefined> {
  return setFinalizers(kube, resource, object, [...(object.metadata.finalizers ?? []), finalizer], signal)
}

/** Takes it off: what has no other is gone by that. */
export async function removeFinalizer<T extends KubeObject>(
  kube: KubeClient,
  resource: Resource<T>,
  object: T,
  finalizer: string,
  signal: AbortSignal,
): Promise<void> {
  const others = (object.metadata.finalizers ?? []).filter((other) => other !== finalizer)
  await setFinalizers(kube, resource, object, others, signal)
}

async function setFinalizers<T extends KubeObject>(
  kube: KubeClient,
  resource: Resource<T>,
  { metadata }: T,
  finalizers: readonly string[],
  signal: AbortSignal,
): Promise<T | undefined> {
  const key: ObjectKey = metadata.namespace
    ? { name: metadata.name, namespace: metadata.namespace }
    : { name: metadata.name }
  // Others write finalizers too: only onto the version that was read.
  const body = { metadata: { finalizers, resourceVersion: metadata.resourceVersion } }
  try {
    return await kube.patch(resource, key, body, { kind: 'merge', signal })
  } catch (error) {
    if (isKubeError(error, 'not_found')) return undefined
    throw error // a conflict is tried again with what is read then
  }
}
