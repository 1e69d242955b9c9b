import type { SessionView } from '../contract.ts'

interface SessionStoreOptions {
  readonly ask: (signal: AbortSignal) => Promise<SessionView>
  /** by the hub's clock */
  readonly now?: () => number
}

const soonestMs = 1000
/** beyond this a browser's timer would overflow and fire at once */
const longestMs = 2 ** 31 - 1

/** Who looks, as the hub last said. Asked again whenever it may have become somebody else, or nobody. */
export class SessionStore {
  readonly #ask: SessionStoreOptions['ask']
  readonly #now: () => number
  readonly #listeners = new Set<() => void>()
  #session: SessionView | null = null
  #hadUser = false
  #asking: AbortController | undefined
  #end: ReturnType<typeof setTimeout> | undefined

  constructor({ ask, now = Date.now }: SessionStoreOptions) {
    this.#ask = ask
    this.#now = now
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** null until the hub has said so */
  readonly current = (): SessionView | null => this.#session

  /** somebody was signed in since the page was loaded */
  readonly hadUser = (): boolean => this.#hadUser

  /** Asks now. An answer that was on its way is not waited for: it may be of the time before. */
  ask(): void {
    this.#asking?.abort()
    const asking = new AbortController()
    this.#asking = asking
    this.#ask(asking.signal).then(
      (session) => {
        if (!asking.signal.aborted) this.#take(session)
      },
      (cause: unknown) => {
        // The connection indicator tells of a hub that does not answer; who looks is not known then.
        if (!asking.signal.aborted) console.warn('the session could not be read', cause)
      },
    )
  }

  stop(): void {
    this.#asking?.abort()
    clearTimeout(this.#end)
  }

  #take(session: SessionView): void {
    this.#session = session
    this.#hadUser ||= session.authenticated
    clearTimeout(this.#end)
    if (session.authenticated && session.sessionEndsAt !== null) {
      const wait = Math.min(Math.max(soonestMs, session.sessionEndsAt - this.#now() + soonestMs), longestMs)
      this.#end = setTimeout(() => this.ask(), wait)
    }
    for (const listener of this.#listeners) listener()
  }
}
