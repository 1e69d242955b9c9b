/** Lets a loop be woken from its sleep. What wakes it between two sleeps ends the next one at once. */
export class WakeUp {
  #next = new AbortController()

  /** What the next call of `now` ends. Asked before the loop looks at what there is to do, so that nothing is missed. */
  next(): { readonly signal: AbortSignal; readonly promise: Promise<void> } {
    const { signal } = this.#next
    return {
      signal,
      get promise() {
        if (signal.aborted) return Promise.resolve()
        return new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
      },
    }
  }

  now(): void {
    const ended = this.#next
    this.#next = new AbortController()
    ended.abort()
  }
}
