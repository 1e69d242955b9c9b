import type { ApiProblem, RegistryView } from '../contract.ts'
import { backOffMs } from './back-off.ts'
import { mayKeep, problemOf } from './problem.ts'

export interface RegistriesShown {
  /** null until the hub has told them */
  readonly registries: readonly RegistryView[] | null
  /** why the last look brought nothing new */
  readonly problem: ApiProblem | null
}

interface RegistriesStoreOptions {
  readonly ask: (signal: AbortSignal) => Promise<{ readonly items: readonly RegistryView[] }>
  /** nobody looks: the page is hidden, or its session is to end unless somebody uses it */
  readonly isIdle?: () => boolean
  readonly everyMs?: number
}

/** What the indicator and the page show is asked for once, every 15 s. */
export const everyMs = 15_000
const longestMs = 60_000
const nothing: RegistriesShown = { registries: null, problem: null }

/** The registries that whoever looks may see; asked for while anything shows them. */
export class RegistriesStore {
  readonly #ask: RegistriesStoreOptions['ask']
  readonly #isIdle: () => boolean
  readonly #everyMs: number
  readonly #listeners = new Set<() => void>()
  #shown = nothing
  #asking: AbortController | undefined
  #timer: ReturnType<typeof setTimeout> | undefined
  #failures = 0
  #epoch = -1

  constructor({ ask, isIdle = () => false, everyMs: every = everyMs }: RegistriesStoreOptions) {
    this.#ask = ask
    this.#isIdle = isIdle
    this.#everyMs = every
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    const own = () => listener()
    this.#listeners.add(own)
    if (this.#listeners.size === 1) this.refresh()
    return () => {
      this.#listeners.delete(own)
      if (this.#listeners.size === 0) this.#stop()
    }
  }

  readonly current = (): RegistriesShown => this.#shown

  get isAsking(): boolean {
    return this.#asking !== undefined
  }

  /** Asks now, and gives up what is on its way: its connection may be dead. */
  readonly again = (): void => {
    this.#stop()
    this.refresh()
  }

  /** Asks now. What is on its way already is waited for. */
  readonly refresh = (): void => {
    if (this.#asking || this.#listeners.size === 0) return
    clearTimeout(this.#timer)
    if (this.#isIdle()) {
      this.#later(this.#everyMs)
      return
    }
    const asking = new AbortController()
    this.#asking = asking
    this.#ask(asking.signal).then(
      ({ items }) => {
        if (!asking.signal.aborted) this.#take({ registries: items, problem: null }, 0)
      },
      (cause: unknown) => {
        if (asking.signal.aborted) return
        const problem = problemOf(cause)
        // A refusal is an answer: what was shown before is not for whoever looks now.
        const registries = mayKeep(problem) ? this.#shown.registries : null
        this.#take({ registries, problem }, this.#failures + 1)
      },
    )
  }

  /**
   * Of which epoch of the fleet what is asked for is; below 0: of none, nobody looks. Another one is of somebody else, or of
   * somebody who may see something else: nothing of before stays, and it is asked anew.
   */
  seenIn(epoch: number): void {
    const before = this.#epoch
    if (before === epoch) return
    this.#epoch = epoch
    if (before >= 0) this.#forget()
  }

  #forget(): void {
    this.#stop()
    this.#failures = 0
    this.#show(nothing)
    this.refresh()
  }

  #take(shown: RegistriesShown, failures: number): void {
    this.#asking = undefined
    this.#failures = failures
    this.#show(shown)
    this.#later(failures === 0 ? this.#everyMs : backOffMs(failures, this.#everyMs / 2, longestMs))
  }

  #show(shown: RegistriesShown): void {
    this.#shown = shown
    for (const listener of [...this.#listeners]) listener()
  }

  #later(ms: number): void {
    clearTimeout(this.#timer)
    if (this.#listeners.size > 0) this.#timer = setTimeout(this.refresh, ms)
  }

  #stop(): void {
    this.#asking?.abort()
    this.#asking = undefined
    clearTimeout(this.#timer)
  }
}
