import { isUnanswered, type KubeObject, type ObjectKey } from '#kube'
import { type Clock, FleetError, systemClock } from '#model'
import type { Logger } from '#runtime'
import { causeOf, changesSpec, type Informer, type ObjectChange } from './informer.ts'
import type { Outcome, Reconciler } from './types.ts'
import { keyText, WorkQueue } from './work-queue.ts'

/** What makes a controller look at a key: an informer, and which keys one of its changes concerns. */
export interface Trigger {
  readonly informer: Informer<KubeObject>
  readonly keysOf: (change: ObjectChange<KubeObject>) => readonly ObjectKey[]
  /** keys to look at when the controller starts, though nothing changed */
  readonly keysAtStart: () => readonly ObjectKey[]
}

/** The objects that a reconciler is about: by their own key, when they come, go or their spec changes. */
export function onSpecChange<T extends KubeObject>(informer: Informer<T>): Trigger {
  const keyOfObject = ({ metadata: { name, namespace } }: KubeObject) => (namespace ? { name, namespace } : { name })
  return {
    informer: informer as unknown as Informer<KubeObject>, // it only reads; the listener gets plain objects
    keysOf: (change) => (changesSpec(change) ? [change.key] : []),
    keysAtStart: () => informer.list().map(keyOfObject),
  }
}

/** Objects that others refer to: the keys of those others, on every change of the referred. */
export function onReferredChange<T extends KubeObject>(
  informer: Informer<T>,
  referring: (change: ObjectChange<T>) => readonly ObjectKey[],
): Trigger {
  return {
    informer: informer as unknown as Informer<KubeObject>, // as above; `referring` gets what the informer holds
    keysOf: (change) => referring(change as ObjectChange<T>),
    keysAtStart: () => [],
  }
}

/** What a controller watches, and how it works on keys. */
export interface ControllerOptions {
  readonly reconciler: Reconciler
  readonly triggers: readonly Trigger[]
  readonly concurrency: number
  /** keys of one namespace at once; default: as many as of all */
  readonly perNamespace?: number
  readonly logger: Logger
  readonly clock?: Clock
  readonly random?: () => number
  /** Hears how each reconcile went, for metrics. Must neither wait nor throw. */
  readonly onReconciled?: (went: Reconciled) => void
  /** The first look at each key is spread over this time, ms; default 0. */
  readonly spreadStartMs?: (keys: number) => number
}

/** How one reconcile went. */
export interface Reconciled {
  readonly controller: string
  readonly tookMs: number
  /** undefined: well */
  readonly error?: unknown
}

/** A queue with its reconciler and what feeds it. May be started again after a stop. */
export class Controller {
  readonly #options: ControllerOptions
  #queue: WorkQueue | undefined
  #unsubscribe: (() => void)[] = []

  constructor(options: ControllerOptions) {
    this.#options = options
  }

  get name(): string {
    return this.#options.reconciler.name
  }

  get informers(): readonly Informer<KubeObject>[] {
    return this.#options.triggers.map(({ informer }) => informer)
  }

  /** Keys that wait and keys being worked on, for metrics. */
  get load(): { readonly waiting: number; readonly running: number } {
    return { waiting: this.#queue?.depth ?? 0, running: this.#queue?.running ?? 0 }
  }

  /** Why work on some of its keys does not come to an end, for people; undefined: nothing fails. */
  get fault(): string | undefined {
    const failing = this.#queue?.failing
    if (!failing) return undefined
    const { keys, key, error } = failing
    const others = keys > 1 ? ` and ${keys - 1} more` : ''
    return `${this.name} ${keyText(key)}${others}: ${FleetError.from(error).message}`
  }

  /** Asks for one key, now or after a while. */
  enqueue(key: ObjectKey, afterMs = 0): void {
    this.#queue?.addAfter(key, afterMs)
  }

  /** Begins to work; the informers must be synced, or absent objects would be taken for deleted ones. */
  start(): void {
    const { triggers, concurrency, perNamespace, logger, clock = systemClock, random = Math.random } = this.#options
    const queue = new WorkQueue({
      concurrency,
      ...(perNamespace !== undefined && { perNamespace }),
      clock,
      random,
      work: (key, signal) => this.#reconcile(key, signal),
      onFailure: (key, error, waitMs) =>
        logger.warn({ controller: this.name, key, ...causeOf(error), waitMs }, 'reconcile failed; trying again'),
    })
    this.#queue = queue
    this.#unsubscribe = triggers.flatMap(({ informer, keysOf }) => [
      informer.onChange((change) => {
        for (const key of keysOf(change)) queue.add(key)
      }),
      // A server that was away for a while would else be waited for as long once more.
      informer.onRecovered(() => queue.retry(isUnanswered)),
    ])
    const keys = triggers.flatMap(({ keysAtStart }) => keysAtStart())
    const spreadMs = this.#options.spreadStartMs?.(keys.length) ?? 0
    for (const key of keys) queue.addAfter(key, Math.floor(random() * spreadMs))
  }

  async #reconcile(key: ObjectKey, signal: AbortSignal): Promise<Outcome> {
    const { reconciler, onReconciled } = this.#options
    if (!onReconciled) return reconciler.reconcile(key, signal)
    const beganAt = performance.now()
    const went = () => ({ controller: this.name, tookMs: performance.now() - beganAt })
    try {
      const outcome = await reconciler.reconcile(key, signal)
      onReconciled(went())
      return outcome
    } catch (error) {
      if (!signal.aborted) onReconciled({ ...went(), error })
      throw error
    }
  }

  /** Stops working and waits for what runs; the informers go on. */
  async stop(): Promise<void> {
    for (const end of this.#unsubscribe) end()
    this.#unsubscribe = []
    await this.#queue?.stop()
    this.#queue = undefined
  }
}
