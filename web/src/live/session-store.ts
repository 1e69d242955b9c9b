import type { SessionView } from '../contract.ts'
import { backOffMs } from './back-off.ts'

interface SessionStoreOptions {
  readonly ask: (signal: AbortSignal) => Promise<SessionView>
  /** by the hub's clock */
  readonly now?: () => number
  /** the session lasts longer than was known: what ends with it can be begun anew */
  readonly onRenewed?: () => void
  readonly random?: () => number
}

const soonestMs = 1000
/** a question without an answer by then is asked anew: its connection may be dead */
const answerMs = 20_000
/** between two questions that were not answered */
const [firstRetryMs, mostRetryMs] = [1000, 15_000]
/** a session is not renewed more often than this */
const renewAfterMs = 15_000
/** beyond this a browser's timer would overflow and fire at once */
const longestMs = 2 ** 31 - 1

/**
 * Who looks, as the hub last said. Asked again whenever it may have become somebody else, or nobody.
 *
 * A session ends when nobody uses the page for a while. The stream alone is no use: it would keep a forgotten screen signed
 * in for ever. So the first key or click in the second half of what is left asks again, which renews it.
 */
export class SessionStore {
  readonly #ask: SessionStoreOptions['ask']
  readonly #now: () => number
  readonly #onRenewed: () => void
  readonly #random: () => number
  readonly #listeners = new Set<() => void>()
  #session: SessionView | null = null
  #hadUser = false
  #asking: AbortController | undefined
  #end: ReturnType<typeof setTimeout> | undefined
  #half: ReturnType<typeof setTimeout> | undefined
  #retry: ReturnType<typeof setTimeout> | undefined
  /** questions in a row that were not answered */
  #unanswered = 0
  #used: 'no' | 'yes' | 'renews' = 'no'
  #left = false

  constructor({ ask, now = Date.now, onRenewed = () => undefined, random = Math.random }: SessionStoreOptions) {
    this.#onRenewed = onRenewed
    this.#random = random
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

  /** Asks now, and again until it is answered. An answer that was on its way is not waited for: it may be of the time before. */
  ask(): void {
    if (this.#left) return
    this.#cancel()
    const asking = new AbortController()
    this.#asking = asking
    this.#ask(AbortSignal.any([asking.signal, AbortSignal.timeout(answerMs)])).then(
      (session) => {
        if (asking.signal.aborted) return
        this.#unanswered = 0
        this.#take(session)
      },
      (cause: unknown) => {
        if (asking.signal.aborted) return
        // The connection indicator tells of a hub that does not answer; who looks is not known then.
        console.warn('the session could not be read', cause)
        const waitMs = backOffMs(this.#unanswered++, firstRetryMs, mostRetryMs, this.#random)
        this.#retry = setTimeout(() => this.ask(), waitMs)
      },
    )
  }

  #cancel(): void {
    this.#asking?.abort()
    clearTimeout(this.#retry)
  }

  /** The person signed out in another tab. Not asked again on this page: a proxy before the hub may let them go a moment later. */
  leave(): void {
    if (!this.#session?.authenticated) return
    this.stop()
    this.#left = true
    this.#take({ ...this.#session, authenticated: false, user: null, actor: null, sessionEndsAt: null })
  }

  /** Somebody pressed a key or a button. */
  readonly use = (): void => {
    if (this.#used === 'renews') this.#renew()
    else this.#used = 'yes'
  }

  stop(): void {
    this.#cancel()
    clearTimeout(this.#end)
    clearTimeout(this.#half)
  }

  #renew(): void {
    this.#used = 'no'
    this.ask()
  }

  #take(session: SessionView): void {
    const endBefore = this.#session?.sessionEndsAt
    this.#session = session
    this.#hadUser ||= session.authenticated
    clearTimeout(this.#end)
    clearTimeout(this.#half)
    if (session.authenticated && session.sessionEndsAt !== null) {
      const left = session.sessionEndsAt - this.#now()
      this.#end = setTimeout(() => this.ask(), within(soonestMs, left + soonestMs))
      // Looking through other eyes ends when it ends.
      if (session.actor === null) this.#half = setTimeout(() => this.#atHalf(), within(renewAfterMs, left / 2))
      if (endBefore != null && session.sessionEndsAt > endBefore) this.#onRenewed()
    }
    for (const listener of this.#listeners) listener()
  }

  #atHalf(): void {
    if (this.#used === 'yes') this.#renew()
    else this.#used = 'renews'
  }
}

const within = (least: number, ms: number): number => Math.min(Math.max(least, ms), longestMs)
