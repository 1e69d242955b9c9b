import { isClusterTrouble, isKubeError, type KubeClient, type KubeError } from '#kube'
import { type Clock, type ClusterName, seconds } from '#model'

/** Together with the limit of a request (10 s) less than 15 s: so soon it is known that a cluster hangs. */
const EVERY_MS = seconds(3)
/** Of a large fleet each is asked less often, so that asking costs a few per cent of a core: 1000 clusters every 10 s. */
const EACH_MS = 10
/** Silence was waited for; anything else may be a server that starts anew. */
const FAILURES = 2

export interface PulsesOptions {
  /** a cluster is in trouble: the round that says so is due now */
  readonly onTrouble: (cluster: ClusterName) => void
  /** one that was in trouble answers again: its round is due now */
  readonly onRecovered: (cluster: ClusterName) => void
  readonly clock: Clock
}

interface Pulse {
  kube: KubeClient
  readonly left: AbortController
  /** it waits for the end of its trouble */
  isWaiting: boolean
}

/**
 * Clusters that answered their last round: each is asked again and again whether it is there, as rounds come every half minute
 * and one that hangs must be known earlier. One that was found in trouble is asked on, past the circuit breaker, and has its round as soon
 * as it answers.
 */
export class Pulses {
  readonly #options: PulsesOptions
  readonly #pulses = new Map<ClusterName, Pulse>()
  readonly #troubles = new Map<ClusterName, KubeError>()
  readonly #ending = new Set<Promise<void>>()
  #isRunning = false
  #begun: Promise<void> = Promise.resolve()

  constructor(options: PulsesOptions) {
    this.#options = options
  }

  /** @param after nobody is asked before: first looks need all there is */
  start(after: Promise<void> = Promise.resolve()): void {
    this.#isRunning = true
    this.#begun = after
  }

  /** Until `leave`, or until it was in trouble and answered again. A repeat changes the client. */
  follow(cluster: ClusterName, kube: KubeClient): void {
    const known = this.#pulses.get(cluster)
    if (known?.isWaiting) known.left.abort()
    else if (known) known.kube = kube
    if ((known && !known.isWaiting) || !this.#isRunning) return
    const pulse = { kube, left: new AbortController(), isWaiting: false }
    this.#pulses.set(cluster, pulse)
    const run = this.#run(cluster, pulse).finally(() => this.#ending.delete(run))
    this.#ending.add(run)
  }

  leave(cluster: ClusterName): void {
    this.#pulses.get(cluster)?.left.abort()
    this.#pulses.delete(cluster)
    this.#troubles.delete(cluster)
  }

  /** Something was found since the last round. */
  hasTrouble(cluster: ClusterName): boolean {
    return this.#troubles.has(cluster)
  }

  /** What was found since the last round, once. */
  takeTrouble(cluster: ClusterName): KubeError | undefined {
    const trouble = this.#troubles.get(cluster)
    this.#troubles.delete(cluster)
    return trouble
  }

  async stop(): Promise<void> {
    this.#isRunning = false
    for (const cluster of [...this.#pulses.keys()]) this.leave(cluster)
    await Promise.all(this.#ending)
  }

  async #run(cluster: ClusterName, pulse: Pulse): Promise<void> {
    const { clock, onTrouble, onRecovered } = this.#options
    await this.#begun
    const pause = (isSoon: boolean) =>
      clock.sleep(isSoon ? EVERY_MS : Math.max(EVERY_MS, EACH_MS * this.#pulses.size), pulse.left.signal)
    const trouble = await untilTrouble(pulse, pause)
    if (!trouble) return
    pulse.isWaiting = true
    this.#troubles.set(cluster, trouble)
    onTrouble(cluster)
    if (!(await untilAnswer(pulse, () => pause(false)))) return
    // Once: what fails in other ways is for the rounds, until one succeeds.
    this.#pulses.delete(cluster)
    onRecovered(cluster)
  }
}

/** @returns false where it was left before, or we closed the client */
async function untilAnswer(pulse: Pulse, pause: () => Promise<void>): Promise<boolean> {
  const { signal } = pulse.left
  for (;;) {
    await pause()
    if (signal.aborted) return false
    try {
      await pulse.kube.ping(signal, true)
    } catch (error) {
      if (signal.aborted || isKubeError(error, 'closed')) return false
      if (!isKubeError(error) || isClusterTrouble(error)) continue
    }
    return !signal.aborted
  }
}

/** @returns undefined where it was left before */
async function untilTrouble(pulse: Pulse, pause: (isSoon: boolean) => Promise<void>): Promise<KubeError | undefined> {
  const { signal } = pulse.left
  let failures = 0
  for (;;) {
    await pause(failures > 0)
    if (signal.aborted) return undefined
    try {
      await pulse.kube.ping(signal)
      failures = 0
    } catch (error) {
      if (signal.aborted) return undefined
      // Others met it so often that it is spared for now: what they met is known.
      if (isKubeError(error, 'breaker_open')) return error
      // Refusals are for the next round.
      if (!isKubeError(error) || !isClusterTrouble(error)) continue
      failures += 1
      if (error.reason === 'timeout' || failures >= FAILURES) return error
    }
  }
}
