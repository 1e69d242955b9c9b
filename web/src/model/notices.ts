interface Notice {
  readonly id: string
  readonly cause: string
  readonly retry: () => void
}

/** Which of several places with the same cause tells it: the first. */
export class Notices {
  #notices: readonly Notice[] = []
  readonly #listeners = new Set<() => void>()

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** @returns what takes it away */
  add(id: string, cause: string, retry: () => void): () => void {
    const notice = { id, cause, retry }
    this.#set([...this.#notices, notice])
    return () => this.#set(this.#notices.filter((one) => one !== notice))
  }

  isFirst(id: string): boolean {
    const own = this.#notices.find((one) => one.id === id)
    return own !== undefined && this.#notices.find(({ cause }) => cause === own.cause) === own
  }

  /** Every place with this cause tries again. */
  retry(cause: string): void {
    for (const notice of this.#notices.filter((one) => one.cause === cause)) notice.retry()
  }

  #set(notices: readonly Notice[]): void {
    this.#notices = notices
    for (const listener of this.#listeners) listener()
  }
}
