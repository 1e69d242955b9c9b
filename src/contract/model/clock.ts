/** Where time comes from, so that a test can own it. Milliseconds since the Unix epoch. */
export interface Clock {
  now(): number
  /** Resolves after `ms`, or at once when the signal aborts (it never rejects). */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
}

/** The longest wait that a timer takes, ms; a longer one would end at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1

/** The clock of this machine. It may be set, also back: what only measures how long something takes uses `steadyClock`. */
export const systemClock: Clock = {
  now: () => Date.now(),
  sleep: (ms, signal) =>
    new Promise((resolve) => {
      if (signal?.aborted) return resolve()
      let timer: ReturnType<typeof setTimeout> | undefined
      const finish = () => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', finish)
        resolve()
      }
      const wait = (leftMs: number) => {
        const nowMs = Math.min(leftMs, LONGEST_TIMER_MS)
        timer = setTimeout(() => (leftMs > nowMs ? wait(leftMs - nowMs) : finish()), nowMs)
      }
      wait(ms)
      signal?.addEventListener('abort', finish, { once: true })
    }),
}

/**
 * Time as it passes, whatever the clock of the machine is set to: for rates, deadlines and ages within this process. It began near
 * the time of `systemClock`, and may be hours away from it by now.
 */
export const steadyClock: Clock = {
  now: () => performance.timeOrigin + performance.now(),
  sleep: systemClock.sleep,
}

/** How long ago by a clock that may be set: none, where it was set back meanwhile. */
export const elapsedMs = (clock: Clock, since: number): number => Math.max(0, clock.now() - since)

/** Milliseconds of so many seconds. */
export const seconds = (n: number): number => n * 1000
/** Milliseconds of so many minutes. */
export const minutes = (n: number): number => n * 60_000

/** That many days in milliseconds. */
export const days = (n: number): number => n * 86_400_000
