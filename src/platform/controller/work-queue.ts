import type { ObjectKey } from '#kube'
import { type Clock, systemClock } from '#model'
import { backoffMs } from '#runtime'
import type { Outcome } from './types.ts'

/** `namespace/name`, or the name alone for what has no namespace: neither part can hold a slash. */
export const keyText = ({ namespace, name }: ObjectKey): string => (namespace ? `${namespace}/${name}` : name)

/** How keys are worked on. */
export interface WorkQueueOptions {
  readonly work: (key: ObjectKey, signal: AbortSignal) => Promise<Outcome>
  /** keys worked on at once */
  readonly concurrency: number
  /** of one namespace, where others may not have to wait for what its objects take; default: all */
  readonly perNamespace?: number
  /** Told of every throw, before the key is tried again after `waitMs`. */
  readonly onFailure: (key: ObjectKey, error: unknown, waitMs: number) => void
  readonly clock?: Clock
  readonly random?: () => number
  /** first and last ceiling of the wait after a throw, ms; default 5 ms and 5 min */
  readonly backoff?: { readonly fromMs: number; readonly toMs: number }
}

/** Why a delay is waited for no more. Given, as an error that `abort` makes by itself comes with a stack, which costs more than the delay. */
const OVER = 'no longer needed'

interface Entry {
  readonly key: ObjectKey
  state: 'idle' | 'waiting' | 'running' | 'runningAndAskedAgain'
  failures: number
  /** what the last run threw; undefined: it went well, or never ran */
  error?: unknown
  /** Ends the run. One per run: what derives from a signal is remembered by it, so a long-lived one would grow for ever. */
  run?: AbortController
  /** the pending delay; a key has at most one */
  delay?: { readonly due: number; readonly end: AbortController }
}

/**
 * Keys to be worked on, each at most once in the queue and never twice at once. A key asked for while it runs runs once
 * more afterwards. What the last run asked for replaces any delay that was pending before. Namespaces take turns.
 * Bounded by the number of distinct keys; idle keys are forgotten.
 *
 *   idle ──add──▶ waiting ──worker free──▶ running ──add──▶ runningAndAskedAgain
 *     ▲  └─delay──┘                          │ done/again/throw          │
 *     └──────────────────────────────────────┘      waiting ◀────────────┘
 */
export class WorkQueue implements AsyncDisposable {
  readonly #options: Required<WorkQueueOptions>
  readonly #entries = new Map<string, Entry>()
  /** by namespace; the first is next to have its turn */
  readonly #waiting = new Map<string, Entry[]>()
  /** how many of a namespace run */
  readonly #runningIn = new Map<string, number>()
  readonly #running = new Set<Promise<void>>()
  readonly #stop = new AbortController()

  constructor(options: WorkQueueOptions) {
    this.#options = {
      clock: systemClock,
      random: Math.random,
      backoff: { fromMs: 5, toMs: 300_000 },
      perNamespace: options.concurrency,
      ...options,
    }
  }

  /** keys that wait for a worker */
  get depth(): number {
    return [...this.#waiting.values()].reduce((sum, { length }) => sum + length, 0)
  }

  /** keys being worked on */
  get running(): number {
    return this.#running.size
  }

  /** Keys whose last run threw, with what the first of them threw; undefined: there are none. */
  get failing(): { readonly keys: number; readonly key: ObjectKey; readonly error: unknown } | undefined {
    const [first, ...more] = [...this.#entries.values()].filter(({ failures }) => failures > 0)
    return first && { keys: 1 + more.length, key: first.key, error: first.error }
  }

  /** Asks for the key now. After a stop nothing is taken. */
  add(key: ObjectKey): void {
    if (this.#stop.signal.aborted) return
    const entry = this.#entry(key)
    if (entry.state === 'running') entry.state = 'runningAndAskedAgain'
    if (entry.state !== 'idle') return
    this.#cancelDelay(entry)
    entry.state = 'waiting'
    const { namespace = '' } = key
    const waiting = this.#waiting.get(namespace)
    if (waiting) waiting.push(entry)
    else this.#waiting.set(namespace, [entry])
    this.#pump()
  }

  /** Asks for the key after a while; of two delays the shorter counts. */
  addAfter(key: ObjectKey, afterMs: number): void {
    if (this.#stop.signal.aborted) return
    if (afterMs <= 0) this.add(key)
    else this.#delay(this.#entry(key), afterMs)
  }

  /** Asks now for keys whose last run threw such an error, as if it had not: what was in their way is over. */
  retry(isOver: (error: unknown) => boolean): void {
    for (const entry of this.#entries.values()) {
      if (entry.failures === 0 || !isOver(entry.error)) continue
      entry.failures = 0
      this.add(entry.key)
    }
  }

  /** Takes no more, aborts what runs and waits for its end. */
  async stop(): Promise<void> {
    this.#stop.abort()
    this.#waiting.clear()
    for (const entry of this.#entries.values()) {
      this.#cancelDelay(entry)
      entry.run?.abort()
    }
    await Promise.all(this.#running)
    this.#entries.clear()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop()
  }

  #entry(key: ObjectKey): Entry {
    const text = keyText(key)
    const known = this.#entries.get(text)
    if (known) return known
    const entry: Entry = { key, state: 'idle', failures: 0 }
    this.#entries.set(text, entry)
    return entry
  }

  #delay(entry: Entry, afterMs: number): void {
    const due = this.#options.clock.now() + afterMs
    if (entry.delay && entry.delay.due <= due) return
    this.#cancelDelay(entry)
    const end = new AbortController()
    entry.delay = { due, end }
    void this.#options.clock.sleep(afterMs, end.signal).then(() => {
      if (end.signal.aborted) return
      delete entry.delay
      this.add(entry.key)
    })
  }

  #cancelDelay(entry: Entry): void {
    entry.delay?.end.abort(OVER)
    delete entry.delay
  }

  #pump(): void {
    while (this.#running.size < this.#options.concurrency) {
      const entry = this.#next()
      if (!entry) return
      const { namespace = '' } = entry.key
      this.#runningIn.set(namespace, (this.#runningIn.get(namespace) ?? 0) + 1)
      const run = this.#run(entry).finally(() => {
        this.#running.delete(run)
        const others = (this.#runningIn.get(namespace) ?? 1) - 1
        if (others > 0) this.#runningIn.set(namespace, others)
        else this.#runningIn.delete(namespace)
        this.#pump()
      })
      this.#running.add(run)
    }
  }

  /** The oldest key of the namespace whose turn it is, which then is that of all others first. */
  #next(): Entry | undefined {
    for (const [namespace, waiting] of this.#waiting) {
      if ((this.#runningIn.get(namespace) ?? 0) >= this.#options.perNamespace) continue
      const entry = waiting.shift()
      this.#waiting.delete(namespace)
      if (waiting.length > 0) this.#waiting.set(namespace, waiting)
      return entry
    }
    return undefined
  }

  async #run(entry: Entry): Promise<void> {
    entry.state = 'running'
    this.#cancelDelay(entry)
    const run = new AbortController()
    entry.run = run
    let afterMs: number | undefined
    try {
      // The first await makes sure that a synchronous throw is caught here too.
      const outcome = await this.#options.work(entry.key, run.signal)
      entry.failures = 0
      delete entry.error
      if (outcome.kind === 'again') afterMs = outcome.afterMs
    } catch (error) {
      if (this.#stop.signal.aborted) return
      afterMs = backoffMs(entry.failures++, { ...this.#options.backoff, random: this.#options.random })
      entry.error = error
      this.#options.onFailure(entry.key, error, afterMs)
    } finally {
      delete entry.run
    }
    this.#settle(entry, afterMs)
  }

  #settle(entry: Entry, afterMs: number | undefined): void {
    if (this.#stop.signal.aborted) return
    const askedAgain = entry.state === 'runningAndAskedAgain'
    entry.state = 'idle'
    // A key that keeps failing is not let past its back-off by the events it causes itself.
    if (askedAgain && entry.failures === 0) this.add(entry.key)
    else if (afterMs !== undefined) this.addAfter(entry.key, afterMs)
    else if (!entry.delay) this.#entries.delete(keyText(entry.key))
  }
}
