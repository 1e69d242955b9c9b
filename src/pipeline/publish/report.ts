import type { Logger } from '#runtime'

/** Says of one thing when it begins to fail and when it works again, and nothing in between, however often it is tried. */
export class Report {
  readonly #logger: Logger
  readonly #works: string
  #isFailing = false

  constructor(logger: Logger, works: string) {
    this.#logger = logger
    this.#works = works
  }

  failing(sentence: string): void {
    if (this.#isFailing) this.#logger.debug({}, sentence)
    else this.#logger.warn({}, sentence)
    this.#isFailing = true
  }

  working(): void {
    if (this.#isFailing) this.#logger.info({}, this.#works)
    this.#isFailing = false
  }
}
