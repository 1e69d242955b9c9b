import { againAfter, type Condition, type Informer, type Reconciler, setCondition } from '#controller'
import { isKubeError, type KubeClient, type KubeObject, type ObjectKey, type Resource } from '#kube'
import type { Said } from './availability.ts'

/** What is said of one condition. */
export type SaidOf = Said & { readonly type: string }

interface WithConditions extends KubeObject {
  readonly status?: { readonly conditions?: readonly Condition[] }
}

/**
 * The conditions with these said. Of what is well a message that only moves is worth no write; of what is not it follows the present cause.
 * Returns the very same array where nothing differs.
 */
export function saying(conditions: readonly Condition[], said: readonly SaidOf[], now: number): readonly Condition[] {
  let next = conditions
  for (const { type, status, reason, message: text } of said) {
    const message = text.slice(0, 1024)
    const known = next.find((one) => one.type === type)
    if (known?.status === status && known.reason === reason && (status === 'True' || known.message === message))
      continue
    // Of no generation, as those of OCM's own hub: a taint would make them old, and `kubectl wait` would wait for ever.
    next = setCondition(next, { type, status, reason, message }, now)
  }
  return next
}

/**
 * Writes conditions, and other fields of the status with them, where they differ.
 * @returns the object as stored then
 * @throws KubeError `conflict` where somebody wrote it meanwhile: conditions of others must not be lost
 */
export async function say<T extends WithConditions>(
  hub: KubeClient,
  resource: Resource<T>,
  object: T,
  {
    to,
    said,
    fields = {},
    now,
    signal,
  }: {
    /** whose next look shall know it */
    readonly to: Pick<Informer<T>, 'wrote'>
    readonly said: readonly SaidOf[]
    readonly fields?: Readonly<Record<string, unknown>>
    readonly now: number
    readonly signal: AbortSignal
  },
): Promise<T> {
  const stored = object.status?.conditions ?? []
  const conditions = saying(stored, said, now)
  if (conditions === stored && Object.keys(fields).length === 0) return object
  const status = { ...fields, ...(conditions !== stored && { conditions }) }
  const body = { metadata: versionOf(object), status }
  const written = await hub.patch(resource, keyOf(object), body, { kind: 'merge', subresource: 'status', signal })
  to.wrote(written)
  return written
}

/** A patch with it fails where somebody wrote the object meanwhile. */
export const versionOf = ({ metadata: { resourceVersion } }: KubeObject): { resourceVersion?: string } =>
  resourceVersion === undefined ? {} : { resourceVersion }

export const keyOf = ({ metadata: { name, namespace } }: KubeObject): ObjectKey =>
  namespace ? { name, namespace } : { name }

const AGAIN_MS = 50

/** What was written meanwhile is in the informer in a moment: no fault, and no word in the log. */
export const takingConflicts = (reconciler: Reconciler): Reconciler => ({
  name: reconciler.name,
  async reconcile(key, signal) {
    try {
      return await reconciler.reconcile(key, signal)
    } catch (error) {
      if (!isKubeError(error, 'conflict') || signal.aborted) throw error
      return againAfter(AGAIN_MS)
    }
  },
})
