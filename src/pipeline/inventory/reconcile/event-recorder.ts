import { randomBytes } from 'node:crypto'
import { events, type KubeClient, type KubeObject } from '#kube'
import { FleetError } from '#model'
import type { Logger } from '#runtime'

/** What an event says of an object. */
export interface Said {
  readonly type: 'Normal' | 'Warning'
  /** one word, such as ExportFailed */
  readonly reason: string
  readonly message: string
}

/** Longest message that Kubernetes takes. */
const MAX_MESSAGE = 1024

/** Writes Kubernetes events beside objects of inventory, and the same into the log. Whoever calls says only what is news. */
export class EventRecorder {
  readonly #kube: KubeClient
  readonly #logger: Logger
  readonly #now: () => number

  constructor(kube: KubeClient, logger: Logger, now: () => number) {
    this.#kube = kube
    this.#logger = logger
    this.#now = now
  }

  /** Never throws but for the signal: an event that is lost changes nothing. */
  async say(object: KubeObject, { type, reason, message }: Said, signal: AbortSignal): Promise<void> {
    const { apiVersion, kind, metadata } = object
    const { name, namespace, uid, resourceVersion } = metadata
    const what = { object: `${kind} ${namespace === undefined ? '' : `${namespace}/`}${name}`, reason, why: message }
    if (type === 'Warning') this.#logger.warn(what, 'an object of inventory is in trouble')
    else this.#logger.info(what, 'an object of inventory is well')
    const at = `${new Date(this.#now()).toISOString().slice(0, 19)}Z`
    const event = {
      apiVersion: 'v1',
      kind: 'Event',
      // Events about objects of the cluster stand in `default`.
      metadata: { name: `${name.slice(0, 200)}.${randomBytes(8).toString('hex')}`, namespace: namespace ?? 'default' },
      involvedObject: {
        apiVersion,
        kind,
        name,
        ...(namespace !== undefined && { namespace }),
        ...(uid !== undefined && { uid }),
        ...(resourceVersion !== undefined && { resourceVersion }),
      },
      type,
      reason,
      message: message.slice(0, MAX_MESSAGE),
      source: { component: 'clusterpulse-agent' },
      reportingComponent: 'clusterpulse.io/agent',
      firstTimestamp: at,
      lastTimestamp: at,
      count: 1,
    }
    try {
      await this.#kube.create(events, event, signal)
    } catch (error) {
      signal.throwIfAborted()
      this.#logger.debug({ reason, error: FleetError.from(error).message }, 'an event could not be written')
    }
  }
}
