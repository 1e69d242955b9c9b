import { createHash } from 'node:crypto'
import { events, type KubeClient, type KubeObject } from '#kube'

/** What people see in `kubectl describe`. */
export interface Noted {
  readonly type: 'Normal' | 'Warning'
  readonly reason: string
  readonly message: string
}

/** Where Kubernetes keeps events about objects of the cluster. */
const NAMESPACE_OF_CLUSTER = 'default'
/** The API takes no longer one. */
const MAX_LETTERS = 1000

/**
 * Writes an event about an object. Nobody waits for it, and where it may not be written nothing is lost but the event.
 * @param now ms since 1970
 * @throws KubeError
 */
export async function writeEvent(
  kube: KubeClient,
  { apiVersion, kind, metadata }: KubeObject,
  { type, reason, message }: Noted,
  now: number,
  signal: AbortSignal,
): Promise<void> {
  const { name, namespace = NAMESPACE_OF_CLUSTER, uid, resourceVersion } = metadata
  const at = new Date(now).toISOString().replace(/\.\d+Z$/, 'Z')
  // The name holds what happened when: the same again is refused as already there.
  const mark = createHash('sha256').update(`${uid} ${reason} ${message} ${now}`).digest('hex').slice(0, 16)
  const involvedObject = { apiVersion, kind, name, uid, resourceVersion, ...(metadata.namespace && { namespace }) }
  const text = message.slice(0, MAX_LETTERS)
  const event = {
    metadata: { name: `${name.slice(0, 200)}.${mark}`, namespace },
    ...{ involvedObject, type, reason, message: text, count: 1, firstTimestamp: at, lastTimestamp: at },
    source: { component: 'clusterpulse-agent' },
    reportingComponent: 'clusterpulse-agent',
  }
  await kube.create(events, event, signal)
}
