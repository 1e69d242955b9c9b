import { type BreakerOptions, CircuitBreaker, type Verdict } from '#runtime'
import { isClusterTrouble, isKubeError, KubeError, pausedAfter } from './errors.ts'

export type { BreakerOptions, BreakerState } from '#runtime'

/**
 * The breaker of a cluster. Only its trouble counts (unreachable, timeout, TLS, 5xx); an answer such as forbidden proves that it
 * lives. What it refuses with says what that trouble was: our pause is none of the cluster's faults.
 */
export class Breaker extends CircuitBreaker {
  constructor(options: BreakerOptions = {}) {
    super(options, (trouble, waitMs) => pausedAfter(isKubeError(trouble) ? trouble : undefined, waitMs))
  }

  /**
   * Runs the call, or refuses it.
   * @param isTrouble which failures count
   * @throws KubeError `breaker_open` where it refuses, with the last trouble's words and code, and the time to wait.
   */
  run<T>(call: () => Promise<T>, isTrouble: (error: unknown) => boolean = isClusterTrouble): Promise<T> {
    return this.pass(call, (error) => verdictOf(error, isTrouble))
  }

  /** Runs the call also while others are refused, and hears by it when the trouble is over. */
  runAnyway<T>(call: () => Promise<T>): Promise<T> {
    return this.look(call, (error) => verdictOf(error, isClusterTrouble))
  }
}

function verdictOf(error: unknown, isTrouble: (error: unknown) => boolean): Verdict {
  if (isTrouble(error)) return 'trouble'
  // A call that its caller or our own side ended says nothing.
  return !isClusterTrouble(error) && error instanceof KubeError && error.httpStatus !== undefined ? 'alive' : 'unknown'
}
